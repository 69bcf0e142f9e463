"""A blind session whose curator cannot link buys the same as one whose curator can.

Only points of one φ that several owners hold may come from another owner: their order is drawn in every
round.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any

import numpy as np
import pytest

from hushbid.protocol.data import Dataset
from hushbid.protocol.names import CURATOR
from hushbid.protocol.session.session import Session
from hushbid.protocol.session.sizes import longest_to_curator
from hushbid.simulation.simulator import Simulation
from tests.simulation.harness import names
from tests.simulation.test_blind_equals import (
    ABSENCES,
    COLUMNS,
    RELEASES,
    Away,
    Bought,
    Points,
    bought,
    data_of,
    session_of,
)


def different_rows(sizes: Collection[int]) -> dict[str, Points]:
    """Owners' points without duplicates."""
    rng = np.random.default_rng(8)
    return {owner: rng.random((size, COLUMNS)) for owner, size in zip(names(len(sizes)), sizes, strict=True)}


def both(
    data: dict[str, Points], patch: pytest.MonkeyPatch, away: Away | None = None, **options: Any
) -> tuple[Bought, Bought]:
    """The purchases with a curator that can link, and with one that cannot."""
    session = session_of("blind", owners=len(data), **options)
    linked = bought(session, data, away)
    with patch.context() as patched:
        patched.setattr(Session, "unlinked", True)
        return linked, bought(session, data, away)


@pytest.mark.parametrize("batch", [1, 4, 20])
@pytest.mark.parametrize("release", RELEASES)
def test_the_same_points_are_bought_in_the_same_order(
    release: str, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = different_rows([40, 25, 40])
    linked, unlinked = both(data, monkeypatch, points=3 * batch + 2, batch=batch, release=release)
    assert linked == unlinked
    assert len(unlinked.points) == 3 * batch + 2


@pytest.mark.parametrize("batch", [1, 4, 20])
def test_so_they_are_where_owners_run_out(batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    linked, unlinked = both(different_rows([2, 1, 9, 5]), monkeypatch, points=24, batch=batch)
    assert linked == unlinked
    assert len(unlinked.points) == 17, "all that there are, and none twice"


def test_so_they_are_with_caps(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, _ = names(3)
    caps = {"caps": {first: 4, second: 6}}
    linked, unlinked = both(different_rows([15, 20, 9]), monkeypatch, points=16, batch=2, wishes=caps)
    assert linked == unlinked


@pytest.mark.parametrize("when", ABSENCES)
@pytest.mark.parametrize("batch", [1, 4])
def test_so_they_are_where_owners_are_absent_and_come_back(
    when: str, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = different_rows([20, 20, 20])
    linked, unlinked = both(data, monkeypatch, ABSENCES[when], points=10 * batch, batch=batch)
    assert unlinked.absences, "the control: somebody was away"
    assert linked == unlinked


@pytest.mark.parametrize("batch", [1, 4])
def test_of_copies_as_many_are_bought_whoever_sells_them(batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    data = data_of([15, 20, 9], seed=2)
    linked, unlinked = both(data, monkeypatch, points=18, batch=batch)
    assert linked.weights == unlinked.weights
    assert [Counter(point for _, _, point, _ in each.points) for each in (linked, unlinked)] == [
        Counter(point for _, _, point, _ in linked.points)
    ] * 2
    assert [owner for owner, *_ in linked.points] != [owner for owner, *_ in unlinked.points]


def test_a_session_in_which_owners_commit_is_one_of_these() -> None:
    session = session_of("blind", owners=2, points=4, commitment_depth=6)
    assert session.unlinked
    assert not session_of("blind", owners=2, points=4).unlinked
    assert not session_of("sealed", owners=2, points=4, commitment_depth=6).unlinked


def frames(data: dict[str, Points], **options: Any) -> list[tuple[str, str, str, int]]:
    """Sender, receiver, kind and length of every frame of a session, except signs of life."""
    found: list[tuple[str, str, str, int]] = []
    Simulation(
        session_of("blind", owners=len(data), **options),
        owners={name: Dataset.from_arrays(name, rows) for name, rows in data.items()},
        validation=Dataset.from_arrays("validation", np.random.default_rng(100).random((9, COLUMNS))),
        seed_set=Dataset.from_arrays("seed-set", np.random.default_rng(101).random((9, COLUMNS))),
        tap=lambda sender, receiver, frame: found.append((sender, receiver, frame.kind, len(frame.data))),
    ).run()
    return found


def test_frames_have_one_size_whether_an_owner_runs_out_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Session, "unlinked", True)
    many, few = different_rows([40, 40, 40]), different_rows([40, 40, 40])
    few["owner-1"] = few["owner-1"][:7]
    found = [frames(data, points=30, batch=3) for data in (many, few)]
    assert found[0] == found[1]
    kinds = {kind for _, _, kind, _ in found[0]}
    assert {"round-opening", "sealed-broadcast", "blind-bid", "choice", "picks", "picked", "account"} <= kinds
    assert "award" not in kinds
    opened = [length for _, _, kind, length in found[0] if kind == "round-opening"]
    assert len(set(opened)) > 5, "places of bought boxes grow with what was bought"


def test_no_frame_is_longer_than_the_curator_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Session, "unlinked", True)
    sent = frames(different_rows([80, 80, 80]), points=200, batch=2)
    longest = max(length for _, receiver, _, length in sent if receiver == CURATOR)
    assert longest <= longest_to_curator(session_of("blind", owners=3, points=200, batch=2))
