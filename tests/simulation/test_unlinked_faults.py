"""Crashes of all parties, and lying owners, with a blind curator that cannot link."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hushbid.consumer.buying.unlinked import UnlinkedBuying
from hushbid.curator.selection.unlinked import UnlinkedSelection
from hushbid.evidence.sweep.course import run_plan
from hushbid.evidence.sweep.invariants import broken
from hushbid.evidence.sweep.plan import plan_of
from hushbid.owner.party import owner_party
from hushbid.owner.unlinked import UnlinkedOwnerNumerics
from hushbid.protocol.crypto.blinding import MASK_BYTES
from hushbid.protocol.crypto.unlinking import OwnMask, Places
from hushbid.protocol.data import Dataset
from hushbid.protocol.errors import ExitCode, HushbidError
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.session.session import Session, open_session
from hushbid.simulation.simulator import Crash, Simulation, SimulationOutcome
from tests.simulation.harness import names, session_file

OWNERS = names(3)
LIAR = OWNERS[1]
COLUMNS, DIMENSION, POINTS, BATCH = 4, 12, 24, 3
WRONG = "the score is not the point's"
NO_BOX = "the owner's signature does not hold"


@pytest.fixture(autouse=True)
def _unlinked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Session, "unlinked", True)


def simulation(sizes: tuple[int, ...] = (30, 30, 30), **more: Any) -> Simulation:
    rng = np.random.default_rng(5)
    file = session_file(
        owners=OWNERS,
        points=POINTS,
        batch=BATCH,
        rule="blind",
        dimension=DIMENSION,
        columns=COLUMNS,
        summary={"mechanism": "filtered-gaussian", "epsilon": 5.0, "neighbours": "add-remove-one"},
        target={"mechanism": "filtered-gaussian", "epsilon": 5.0, "neighbours": "substitute-one"},
    )
    return Simulation(
        open_session(file),
        owners={
            name: Dataset.from_arrays(name, rng.random((size, COLUMNS)))
            for name, size in zip(OWNERS, sizes, strict=True)
        },
        validation=Dataset.from_arrays("validation", rng.random((20, COLUMNS))),
        seed_set=Dataset.from_arrays("seed-set", rng.random((10, COLUMNS))),
        **more,
    )


def bought(outcome: SimulationOutcome) -> list[tuple[str, int, bytes, str]]:
    assert outcome.delivered is not None
    return [
        (
            entry.owner,
            entry.chosen_round,
            b"" if entry.candidate is None else entry.candidate.point.tobytes(),
            entry.dispute,
        )
        for entry in outcome.delivered.delivered
    ]


STEPS = {CURATOR: range(6, 66, 5), CONSUMER: range(2, 24, 2), LIAR: range(2, 13)}
"""At which steps a party crashes in the slow test; a session's last steps are beyond."""
SOME = {CURATOR: range(5, 66, 8), CONSUMER: range(2, 24, 3), LIAR: (2, 3, 4, 5, 8, 11, 12)}
"""At which it does in the quick one: as many kinds of steps, and more of the curator's."""


# -- crashes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("party", STEPS)
@pytest.mark.parametrize("sizes", [(30, 4, 30), pytest.param((30, 30, 30), marks=pytest.mark.slow)])
def test_whoever_crashes_goes_on_and_the_same_is_bought(party: str, sizes: tuple[int, ...]) -> None:
    large, quiet = min(sizes) == 30, simulation(sizes).run()
    came, steps = 0, (STEPS if large else SOME)[party]
    for place, step in enumerate(steps):
        for left in (0, 1) if large else (place % 2,):
            crashing = simulation(sizes, crashes=[Crash(party, step, left)])
            outcome = crashing.run()
            came += len(crashing.crashed)
            assert {finish.code for finish in outcome.finishes.values()} == {ExitCode.DONE}
            assert bought(outcome) == bought(quiet)
            wins = [
                [(win.owner, win.handle, win.chosen_round) for win in each.curator.ledger.wins]
                for each in (outcome, quiet)
            ]
            assert wins[0] == wins[1]
    assert came >= len(steps) // (1 if large else 2), "those that leave nothing always come"


def test_an_owner_that_was_started_again_shows_as_many_scores_as_before() -> None:
    """Otherwise a crash would reveal how many it must show; the control forgets."""

    def bids(crashes: list[Crash]) -> list[bytes]:
        found = []
        outer = UnlinkedSelection.take_bid

        def noted(self: UnlinkedSelection, owner: str, bid: Any) -> None:
            found.append(bid.scores)
            outer(self, owner, bid)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(UnlinkedSelection, "take_bid", noted)
            simulation((30, 30, 30), crashes=crashes).run()
        return found

    quiet = set(bids([]))
    crashes = [Crash(LIAR, step, 0) for step in (5, 7, 9, 11)]
    assert set(bids(crashes)) == quiet
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(UnlinkedOwnerNumerics, "restore", UnlinkedOwnerNumerics.__mro__[1].restore)  # type: ignore[attr-defined]
        assert set(bids(crashes)) != quiet


# -- whatever goes wrong ----------------------------------------------------------------------------------


def violated(seed: int) -> dict[str, list[str]]:
    return broken(run_plan(plan_of(seed, ("blind",))))


@pytest.mark.parametrize(
    "seeds", [range(3), pytest.param(range(3, 120), marks=[pytest.mark.slow, pytest.mark.timeout(600)])]
)
def test_whatever_goes_wrong_what_must_hold_holds(seeds: range) -> None:
    assert {seed: found for seed in seeds if (found := violated(seed))} == {}


def the_second_best_is_taken(patch: pytest.MonkeyPatch) -> None:
    best = UnlinkedSelection.best
    patch.setattr(
        UnlinkedSelection, "best", lambda self, present, count: best(self, present, count + 1)[-count:]
    )


def what_was_bought_is_chosen_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        UnlinkedSelection,
        "candidates",
        lambda self, owner: np.arange(len(self.scores[owner]) // MASK_BYTES) + 1,
    )
    patch.setattr(UnlinkedBuying, "check_choice", lambda self, choice, number: None)


def any_score_fits(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        "hushbid.consumer.unlinked_numerics.UnlinkedConsumerNumerics._fits", lambda self, *given: True
    )


BUGS: dict[Callable[[pytest.MonkeyPatch], None], tuple[str, int]] = {
    the_second_best_is_taken: ("awards-are-the-best", 0),
    what_was_bought_is_chosen_again: ("awards-are-the-best", 0),
    any_score_fits: ("void-boxes-are-not-paid", 14),
}
"""The invariant that finds a bug, and a seed soon after which one does."""


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_a_bug_is_found_by_its_invariant(bug: Callable[[pytest.MonkeyPatch], None]) -> None:
    invariant, first = BUGS[bug]
    with pytest.MonkeyPatch.context() as patched:
        bug(patched)
        found: set[str] = set()
        for seed in range(first, 40):
            try:
                found |= set(violated(seed))
            except HushbidError:
                found.add("an error")
            if invariant in found:
                break
    assert invariant in found


# -- owners that lie --------------------------------------------------------------------------------------


class _HigherMask(OwnMask):
    def masked(self, handles: Any, scores: Any, ties: Any) -> Any:
        return super().masked(handles, scores + 1, ties)


class _Higher(UnlinkedOwnerNumerics):
    """Raises every point's score by one."""

    def _own_mask(self, number: int, weights: Any) -> OwnMask:
        honest = super()._own_mask(number, weights)
        honest.__class__ = _HigherMask
        return honest


class _Elsewhere(UnlinkedOwnerNumerics):
    """Puts its scores in places of its own."""

    def _masked(self, mask: Any, weights: Any) -> bytes:
        honest = super()._masked(mask, weights)
        scores = [honest[at : at + MASK_BYTES] for at in range(0, len(honest), MASK_BYTES)]
        return b"".join(scores[1:] + scores[:1])


class _Empty(UnlinkedOwnerNumerics):
    """Seals nothing, and scores it like its best points."""

    def _contents(self, rows: Any) -> list[bytes]:
        return [bytes(len(content)) for content in super()._contents(rows)]


def played(kind: type[UnlinkedOwnerNumerics] | None) -> SimulationOutcome:
    def owner(session: Any, name: str, *given: Any, **more: Any) -> Any:
        machine, numerics = owner_party(session, name, *given, **more)
        if name == LIAR and kind is not None:
            numerics.__class__ = kind
        return machine, numerics

    return simulation(owner=owner).run()


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [(_Higher, WRONG), (_Elsewhere, WRONG), (_Empty, "the box holds nothing, and was scored as a point")],
)
def test_a_liars_boxes_are_disputed_and_nobody_elses(kind: type[UnlinkedOwnerNumerics], wrong: str) -> None:
    lied = played(kind)
    found = bought(lied)
    assert {dispute for owner, _, _, dispute in found if owner != LIAR} == {""}
    assert {dispute for owner, _, _, dispute in found if owner == LIAR} == {wrong}
    assert {finish.code for finish in lied.finishes.values()} == {ExitCode.DONE}
    account = lied.curator.selection.account
    sold = {name: sum(not dispute for owner, _, _, dispute in found if owner == name) for name in OWNERS}
    assert dict(zip(OWNERS, account.sold.tolist(), strict=True)) == sold
    assert sold[LIAR] == 0


def _total(outcome: Any) -> list[int]:
    found: list[int] = outcome.consumer.buying.weighing.total.tolist()
    return found


def test_a_wrong_score_counts_as_what_its_point_is() -> None:
    honest, lied = played(None), played(_Higher)
    pairs = list(zip(bought(honest), bought(lied), strict=True))
    assert all(one[:3] == other[:3] for one, other in pairs)
    assert _total(lied) == _total(honest)


def test_a_score_of_a_box_that_never_came_is_a_void_box(monkeypatch: pytest.MonkeyPatch) -> None:
    """An owner that missed a round has places without boxes; one that puts a score there sells nothing."""
    from hushbid.simulation.network import SteadyNetwork

    arranged: Callable[[Places, Any], bytes] = Places.arranged

    def moved(self: Places, scores: Any) -> bytes:
        if not scores[-1].any():  # of the last number there is no box
            best = max(range(len(scores)), key=lambda at: scores[at].tolist())
            scores[-1], scores[best] = scores[best].copy(), 0
        return arranged(self, scores)

    class Moves(UnlinkedOwnerNumerics):
        def _masked(self, mask: Any, weights: Any) -> bytes:
            with pytest.MonkeyPatch.context() as patched:
                patched.setattr(Places, "arranged", moved)
                return super()._masked(mask, weights)

    def owner(session: Any, name: str, *given: Any, **more: Any) -> Any:
        machine, numerics = owner_party(session, name, *given, **more)
        if name == LIAR:
            numerics.__class__ = Moves
        return machine, numerics

    network = SteadyNetwork(lambda number: {LIAR} if number == 2 else ())
    outcome = simulation(owner=owner, network=network).run()
    assert outcome.finishes[CURATOR].code == ExitCode.DONE
    found = {dispute for name, _, _, dispute in bought(outcome) if name == LIAR}
    assert NO_BOX in found
    assert {dispute for name, _, _, dispute in bought(outcome) if name != LIAR} == {""}
