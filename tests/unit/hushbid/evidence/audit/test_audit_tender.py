"""The tenders that an audit attacks: the purchases, and what an owner could see of them."""

from __future__ import annotations

from typing import cast
from unittest.mock import patch

import numpy as np
import pytest

from hushbid.evidence.audit import nested, tenders
from hushbid.evidence.audit.attack import SessionAttack
from hushbid.evidence.audit.faults import FAULTS
from hushbid.evidence.audit.settings import SESSION_EPSILON
from hushbid.evidence.audit.suites import SUITES, suite_of
from hushbid.evidence.audit.tenders import CallView, OwnerAttack
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.privacy.acquisition import RULES
from hushbid.protocol.privacy.acquisition.tender import Tender
from hushbid.protocol.runtime.driver import Outgoing
from hushbid.protocol.wire.codec import Direction, decode_frame, decode_message
from hushbid.protocol.wire.messages import NestedTarget

SEED = 5


def attack(suite: str) -> OwnerAttack:
    return cast("OwnerAttack", SUITES[suite].attack())


def sellers(suite: str, neighbour: int) -> list[str]:
    simulation = attack(suite).simulation(neighbour, SEED)
    simulation.run()
    return [win.owner for win in simulation.curator.ledger.wins]


def views(suite: str) -> tuple[CallView, CallView]:
    one, other = (attack(suite).view(neighbour, SEED) for neighbour in (0, 1))
    return one, other


def test_one_record_of_another_owner_takes_the_watcher_s_only_sale() -> None:
    assert sellers("tender", 0) == ["victim", "watcher"]
    assert sellers("tender", 1) == ["victim", "victim"]


def test_one_record_makes_the_purchase_whole() -> None:
    assert len(sellers("tender-exhausted", 0)) == 3
    assert len(sellers("tender-exhausted", 1)) == 4


@pytest.mark.parametrize("suite", ["tender", "tender-exhausted"])
@pytest.mark.parametrize("neighbour", [0, 1])
def test_the_watcher_is_called_when_all_others_have_submitted(suite: str, neighbour: int) -> None:
    course: list[tuple[str, str, str]] = []

    def tap(sender: str, receiver: str, frame: Outgoing) -> None:
        course.append((sender, receiver, frame.kind))

    attacked = attack(suite)
    attacked.simulation(neighbour, SEED, tap=tap).run()
    called = course.index((CURATOR, "watcher", "call"))
    submitted = [sender for sender, _, kind in course[:called] if kind == "submission"]
    others = [owner for owner in attacked.session.file.owners if owner != "watcher"]
    assert sorted(submitted) == sorted(others * attacked.session.messages)
    assert attacked.session.messages == tenders.MESSAGES


@pytest.mark.parametrize("suite", ["tender", "tender-exhausted"])
def test_what_it_is_sent_is_the_same_to_the_byte(suite: str) -> None:
    one, other = views(suite)
    assert one.frames == one.expected == other.expected == other.frames
    assert [kind for kind, _ in one.frames] == ["welcome", "secret-map", "call", "next", "close"]
    assert other.differing == 0


def test_every_run_has_noise_of_its_own() -> None:
    first, again, other = (attack("tender").view(0, seed) for seed in (1, 1, 2))
    assert first.frames == again.frames
    assert not np.array_equal(first.calls[0].embedding, other.calls[0].embedding)


@pytest.mark.parametrize(
    "fault", [name for name, fault in FAULTS.items() if fault.sound in ("tender", "tender-exhausted")]
)
def test_a_broken_curator_lets_it_see_a_difference(fault: str) -> None:
    one, other = views(fault)
    assert one.differing == 0
    assert other.differing > 0


def test_a_call_by_the_pool_differs_in_its_bytes_alone() -> None:
    """Frames have the same number and lengths: only their bytes differ."""
    one, other = views("tender-call-by-pool")
    assert one.shape == other.shape
    assert not np.array_equal(one.calls[0].seed_total, other.calls[0].seed_total)


def test_owners_are_called_with_the_coarser_release_unless_the_curator_is_broken() -> None:
    for suite, sent in (("tender-finer-release", "embedding"), ("tender-finer-called", "finer")):
        attacked = attack(suite)
        targets: list[NestedTarget] = []

        def tap(sender: str, _receiver: str, frame: Outgoing, targets: list[NestedTarget] = targets) -> None:
            if sender == CONSUMER and frame.kind == "nested-target":
                message = decode_message(Direction.CONSUMER_TO_CURATOR, decode_frame(frame.data).body)
                assert isinstance(message, NestedTarget)
                targets.append(message)

        attacked.simulation(0, SEED, tap=tap).run()
        (call,) = attacked.view(0, SEED).calls
        assert np.array_equal(call.embedding, getattr(targets[0], sent))


def test_the_two_releases_state_what_each_sees() -> None:
    owners, curator = nested.nested(), nested.curator()
    assert owners.stated.epsilon == pytest.approx(nested.EPSILON, abs=1e-6)
    assert curator.stated.epsilon == pytest.approx(SESSION_EPSILON, abs=1e-6)
    one, both = (each.run(0, range(2)).values for each in (owners, curator))
    assert one.shape == (2, 1, nested.DIMENSION)
    assert both.shape == (2, 1, 2 * nested.DIMENSION)
    # The owners' release is the curator's with more noise.
    coarser, finer = np.split(both, 2, axis=2)
    assert not np.array_equal(coarser, finer)


def test_a_rule_from_outside_under_which_owners_herd_is_attacked_as_tender_is() -> None:
    class Auction(Tender):
        name = "sealed-tender"

    with patch.dict(RULES, {Auction.name: Auction}):
        suite = suite_of(Auction.name)
        attacked = suite.attack()
        assert isinstance(attacked, OwnerAttack)
        assert attacked.session.rule.name == Auction.name
        assert attacked.stated.epsilon == 0.0
        assert suite.expected == "pass"
    assert isinstance(SUITES["sealed"].attack(), SessionAttack)
    assert not isinstance(SUITES["sealed"].attack(), OwnerAttack)
