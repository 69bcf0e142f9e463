"""`transcript verify` compares charges with the costs of the session's releases."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from hushbid.evidence.sweep.small_session import small_session
from hushbid.protocol.machine.machine import Charge
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.transcript.record import Record, RecordedItem
from hushbid.transcripts.verification.account import account_of
from tests.support.forgeries import Recording, rewritten

OWNER = "owner-0"
ROUNDS = 3
Public = dict[str, Any]


@cache
def images_of(rule: str) -> dict[str, bytes]:
    return dict(Recording(small_session(rule, release="filtered-gaussian", rounds=ROUNDS, owners=2)).run())


def faults(image: bytes, directory: Path) -> list[str]:
    path = directory / "read.transcript"
    path.write_bytes(image)
    return [fault.what for fault in account_of(path)[1].faults]


def charged(change: Callable[[Public], Public | None]) -> Callable[[Record], Record]:
    """A record with its charges changed; None: removed."""

    def item(each: RecordedItem) -> RecordedItem | None:
        if each.kind != Charge.KIND:
            return each
        public = change(dict(each.public))
        return None if public is None else each._replace(public=public)

    def record(each: Record) -> Record:
        return each._replace(effects=tuple(kept for kept in map(item, each.effects) if kept is not None))

    return record


@pytest.mark.parametrize("rule", ["ask-all", "sealed", "blind", "tender"])
@pytest.mark.parametrize("party", [CURATOR, CONSUMER, OWNER])
def test_what_was_charged_as_it_is_due_is_no_fault(tmp_path: Path, rule: str, party: str) -> None:
    assert faults(images_of(rule)[party], tmp_path) == []


def without_costs(public: Public) -> Public:
    return public | {"costs": []}


def cheaper(public: Public) -> Public:
    (cost, *others) = public["costs"]
    name = "sigma" if "sigma" in cost else "noise_multiplier"
    return public | {"costs": [cost | {name: cost[name] * 2.0}, *others]}


@pytest.mark.parametrize("change", [without_costs, cheaper])
@pytest.mark.parametrize("party", [CONSUMER, OWNER, CURATOR])
def test_a_charge_of_less_than_a_release_costs_is_told(
    tmp_path: Path, party: str, change: Callable[[Public], Public]
) -> None:
    def later(public: Public) -> Public:
        return change(public) if public["costs"] else public  # what is public costs nothing

    found = faults(rewritten(images_of("sealed")[party], tmp_path, charged(later)), tmp_path)
    assert found
    assert all("is not what the session says that it costs" in what for what in found)


@pytest.mark.parametrize(
    ("rule", "party", "message"),
    [
        ("sealed", CONSUMER, "target"),
        ("sealed", OWNER, "bid"),
        ("sealed", CURATOR, "broadcast"),
        ("tender", CONSUMER, "target"),
        ("tender", OWNER, "submission"),
        ("blind", CONSUMER, "sealed-broadcast"),
        ("blind", OWNER, "blind-bid"),
    ],
)
def test_what_leaves_without_a_charge_is_told(tmp_path: Path, rule: str, party: str, message: str) -> None:
    image = rewritten(images_of(rule)[party], tmp_path, charged(lambda _public: None))
    assert f"a {message} left before what it costs was charged" in faults(image, tmp_path)


@pytest.mark.parametrize("last", [40, 2**62])  # so many cannot be gone through one by one
def test_a_charge_of_a_release_that_there_is_not_is_told(tmp_path: Path, last: int) -> None:
    def another(public: Public) -> Public:
        return public | {"first": 40, "last": last} if public["first"] == ROUNDS else public

    found = faults(rewritten(images_of("sealed")[CURATOR], tmp_path, charged(another)), tmp_path)
    assert f"a charge for releases 40 to {last}, which this party never makes" in found
    assert "a broadcast left before what it costs was charged" in found


def test_a_charge_that_was_left_out_is_not_made_up_for_by_the_next(tmp_path: Path) -> None:
    def without(public: Public) -> Public | None:
        return None if public["first"] == 2 else public

    found = faults(rewritten(images_of("sealed")[CURATOR], tmp_path, charged(without)), tmp_path)
    assert found.count("a broadcast left before what it costs was charged") == 1


def test_a_charge_of_no_neighbour_relation_is_told(tmp_path: Path) -> None:
    def another(public: Public) -> Public:
        return public | {"neighbours": "next-door"}

    found = faults(rewritten(images_of("sealed")[OWNER], tmp_path, charged(another)), tmp_path)
    assert "a charge is unreadable" in found
    assert "a bid left before what it costs was charged" in found
