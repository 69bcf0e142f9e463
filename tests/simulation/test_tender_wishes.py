"""What `tender` allows and rounds cannot: prices, a budget, caps, and a finer release for the curator."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hushbid.consumer.events import ReleaseTarget, TargetReleased
from hushbid.protocol import limits
from hushbid.protocol.config.session import TimeoutSection
from hushbid.protocol.data import Dataset
from hushbid.protocol.errors import ConfigError, ReplayDivergence
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.privacy.releases import Neighbours
from hushbid.protocol.runtime.driver import Outgoing
from hushbid.protocol.wire.messages import NestedTarget
from hushbid.simulation.simulator import Crash, SimulationOutcome
from hushbid.transcripts.recompute import Recomputation
from tests.simulation.harness import DIMENSION
from tests.simulation.tender_market import (
    DATA,
    OWNERS,
    POINTS,
    PRIVATE,
    VALIDATION,
    bought,
    session,
    simulated,
)

PRICES = {"owner-0": 1.0, "owner-1": 3.0, "owner-2": 2.0}


def sold(outcome: SimulationOutcome) -> Counter[str]:
    return Counter(owner for owner, _ in bought(outcome))


def paid(outcome: SimulationOutcome) -> float:
    return sum(PRICES[owner] * count for owner, count in sold(outcome).items())


# -- wishes --------------------------------------------------------------------------------------------------


def test_an_owner_sells_no_more_than_its_cap() -> None:
    free = sold(simulated(session()))
    favourite, most = free.most_common(1)[0]
    capped = simulated(session(wishes={"caps": {favourite: most // 2}}))
    assert sold(capped)[favourite] == most // 2
    assert len(bought(capped)) == POINTS


def test_a_cheaper_owner_sells_more() -> None:
    free = sold(simulated(session()))
    # The favourite costs the most, and so does nothing else change.
    favourite, most = free.most_common(1)[0]
    priced = sold(
        simulated(session(wishes={"prices": {name: 9.0 if name == favourite else 1.0 for name in DATA}}))
    )
    assert priced[favourite] < most


@pytest.mark.parametrize("budget", [25.0, 30.0, 40.0, 60.0])
def test_a_budget_is_kept_and_all_points_are_bought(budget: float) -> None:
    outcome = simulated(session(wishes={"prices": PRICES, "budget": budget}))
    assert len(bought(outcome)) == POINTS
    assert paid(outcome) <= budget


def test_where_the_cheap_owner_has_too_few_points_the_money_buys_fewer() -> None:
    few = DATA | {"owner-0": Dataset.from_arrays("owner-0", DATA["owner-0"].features[:4])}
    outcome = simulated(session(wishes={"prices": PRICES, "budget": 24.0}), few)
    # Four points at 1 and ten at 2: the 15th cannot be paid for.
    assert len(bought(outcome)) == 14
    assert paid(outcome) == 24.0


def test_a_point_of_several_owners_is_bought_once_from_the_cheapest() -> None:
    shared = {name: Dataset.from_arrays(name, DATA["owner-1"].features) for name in DATA}
    outcome = simulated(session(distinct=True, wishes={"prices": PRICES}), shared)
    points = [point for _, point in bought(outcome)]
    assert len(set(points)) == len(points) == POINTS
    assert set(sold(outcome)) == {"owner-0"}
    even = simulated(session(distinct=True), shared)
    assert len(sold(even)) == OWNERS  # no name comes first where all cost the same


def test_with_a_cap_on_the_cheapest_copies_come_from_the_next() -> None:
    shared = {name: Dataset.from_arrays(name, DATA["owner-1"].features) for name in DATA}
    wishes = {"prices": PRICES, "caps": {"owner-0": 5, "owner-2": 7}}
    outcome = simulated(session(distinct=True, wishes=wishes), shared)
    assert sold(outcome) == {"owner-0": 5, "owner-2": 7, "owner-1": 8}
    points = [point for _, point in bought(outcome)]
    assert len(set(points)) == POINTS


# -- submissions in several messages -------------------------------------------------------------------------


def test_a_submission_in_several_messages_is_the_choice_of_one() -> None:
    whole = simulated(session(submission=24))
    parts: list[int] = []

    def tap(sender: str, _receiver: str, frame: Outgoing) -> None:
        if frame.kind == "submission" and sender == "owner-1":
            parts.append(len(frame.data))

    several = simulated(session(submission=24, batch=6), tap=tap)
    assert len(parts) == 4
    assert len(set(parts)) == 1
    assert bought(several) == bought(whole)
    assert several.curator.ledger.candidates == 24 * OWNERS


def test_a_submission_takes_more_messages_than_a_peer_may_leave_unacknowledged() -> None:
    opened = session(batch=2, points=40, submission=40)
    assert opened.messages > limits.MAX_HELD_PER_PEER
    assert bought(simulated(opened)) == bought(simulated(session(points=40, submission=40)))


def test_an_owner_is_asked_for_each_message_but_the_first_and_for_no_more() -> None:
    kinds: list[str] = []

    def tap(_sender: str, receiver: str, frame: Outgoing) -> None:
        if receiver == "owner-1" and frame.kind in ("call", "next"):
            kinds.append(frame.kind)

    simulated(session(batch=6), tap=tap)
    assert kinds == ["call", "next", "next", "next"]


@pytest.mark.parametrize("party", [CURATOR, CONSUMER, "owner-1"])
@pytest.mark.parametrize("left", [0, 1])
def test_whoever_is_started_again_between_messages_the_choice_is_the_same(party: str, left: int) -> None:
    opened = session(batch=6)
    expected = bought(simulated(opened, crashes=[]))
    for step in range(2, 22, 2):
        assert bought(simulated(opened, crashes=[Crash(party, step, left)])) == expected, step


def test_of_an_owner_that_leaves_in_the_middle_nothing_is_bought() -> None:
    opened = session(batch=6, timeouts=TimeoutSection(round=5.0, closing=5.0))
    for step in range(4, 9):
        gone = simulated(opened, crashes=[Crash("owner-1", step, 0, 1e5)])
        submitted = gone.curator.seats["owner-1"].parts
        assert ("owner-1" in sold(gone)) is (submitted == opened.messages)
        assert len(bought(gone)) == POINTS


# -- owners that come before and after each other ------------------------------------------------------------


def test_an_owner_that_comes_late_is_waited_for_until_the_enrolment_is_over() -> None:
    times = TimeoutSection(enrolment=600.0, round=5.0, comeback=1.0, abandon=2000.0)
    opened = session(timeouts=times)
    whole = simulated(opened, crashes=[])
    at: dict[str, bool] = {}

    def tap(sender: str, _receiver: str, frame: Outgoing) -> None:
        if frame.kind == "submission":
            at.setdefault(sender, True)

    late = simulated(opened, crashes=[Crash("owner-1", 0, 0, 300.0)], tap=tap)
    assert bought(late) == bought(whole)
    assert late.seconds > 300.0
    assert list(at)[-1] == "owner-1"  # the others had submitted, and were not held up
    too_late = simulated(opened, crashes=[Crash("owner-1", 0, 0, 700.0)])
    assert "owner-1" not in sold(too_late)
    assert too_late.seconds > 600.0


def test_owners_that_submitted_may_be_gone_when_the_others_come() -> None:
    times = TimeoutSection(enrolment=600.0, round=5.0, comeback=1.0, closing=5.0, abandon=2000.0)
    opened = session(timeouts=times)
    whole = bought(simulated(opened, crashes=[]))
    # Two leave for good once they have submitted, long before the third comes.
    leave = [Crash(name, 9, 0, 1e5) for name in ("owner-0", "owner-2")]
    outcome = simulated(opened, crashes=[*leave, Crash("owner-1", 0, 0, 400.0)])
    assert bought(outcome) == whole
    assert outcome.finishes.keys() >= {CURATOR, CONSUMER, "owner-1"}


def test_the_consumer_may_come_last() -> None:
    times = TimeoutSection(enrolment=600.0, round=5.0, comeback=1.0, abandon=2000.0)
    opened = session(timeouts=times)
    late = simulated(opened, crashes=[Crash(CONSUMER, 0, 0, 300.0)])
    assert bought(late) == bought(simulated(opened, crashes=[]))


# -- a finer release for the curator -------------------------------------------------------------------------


def nested(epsilon: float = 1.0, curators: float = 30.0, **changes: Any) -> Any:
    target = PRIVATE["target"] | {"epsilon": epsilon, "epsilon_curator": curators}
    return session(target=target, **changes)


def test_owners_get_a_release_with_more_noise_that_follows_from_the_curators() -> None:
    opened = nested()
    assert opened.nested is not None
    owners, curator = opened.target, opened.nested.finer
    whole = sum(draw.variance for draw in opened.nested.draws)
    assert whole == pytest.approx(owners.draws(0)[0].variance, rel=1e-12)
    assert whole >= owners.draws(0)[0].variance
    assert opened.nested.draws[0] == curator.draws(0)[0]
    given = {"neighbours": Neighbours.SUBSTITUTE_ONE, "delta": 1e-5}
    assert owners.guarantee(**given).epsilon == pytest.approx(1.0, abs=1e-3)
    assert curator.guarantee(**given).epsilon == pytest.approx(30.0, rel=1e-3)


def test_the_finer_release_is_nearer_and_never_leaves_the_curator() -> None:
    outcome = simulated(nested())
    target = outcome.curator.target
    assert isinstance(target, NestedTarget)
    exact = session(target={"mechanism": "exact"})
    true = simulated(exact).curator.target
    assert true is not None
    # The map is drawn from the same seed, so that the two sessions' embeddings compare.
    far, near = (float(((each - true.embedding) ** 2).sum()) for each in (target.embedding, target.finer))
    assert near < 0.05 * far
    sent: list[bytes] = []

    def tap(by: str, to: str, frame: Outgoing) -> None:
        if to.startswith("owner"):
            sent.append(frame.data)

    simulated(nested(), tap=tap)
    assert any(target.embedding.tobytes() in data for data in sent)
    assert not any(target.finer.tobytes() in data for data in sent)


@pytest.mark.parametrize("change", ["moved", "the owners'", "left out"])
def test_recomputing_finds_that_the_finer_release_is_another(change: str) -> None:
    embedding, finer = np.zeros(DIMENSION), np.full(DIMENSION, 0.25)
    total = np.zeros(DIMENSION, dtype=np.int64)
    released = TargetReleased(embedding, 9, total, 9, b"", b"", "secure", (), finer=finer)

    class Same:
        """Computes this release again."""

        def perform(self, _effect: Any) -> TargetReleased:
            return released

        def restore(self, _effect: Any, _outcome: Any) -> None:
            pass

    again = Recomputation(Same(), boxes_gone=False)
    again(ReleaseTarget(), released)
    other = {"moved": finer + 1e-3, "the owners'": embedding, "left out": None}[change]
    with pytest.raises(ReplayDivergence, match="finer"):
        again(ReleaseTarget(), replace(released, finer=other))


def test_the_consumer_is_charged_what_the_curator_learns_and_both_are_stated() -> None:
    opened = nested()
    owners, of_curator, of_owners, trust = opened.privacy()
    assert owners.epsilon == 0.0
    assert (of_curator.against, of_owners.against) == ("the curator", "the owners")
    assert of_curator.epsilon == pytest.approx(30.0, rel=1e-3)
    assert of_owners.epsilon == pytest.approx(1.0, abs=1e-3)
    assert trust.epsilon is None
    outcome = simulated(opened)
    assert outcome.consumer.charge.costs == opened.charged_target.cost(
        0, neighbours=Neighbours.SUBSTITUTE_ONE
    )


def test_the_curator_chooses_by_the_finer_one() -> None:
    def distance(opened: Any) -> float:
        points = np.stack([np.frombuffer(point, dtype=np.float64) for _, point in bought(simulated(opened))])
        return float(((points.mean(axis=0) - VALIDATION.features.mean(axis=0)) ** 2).sum())

    seeds = range(8)
    coarse = [
        distance(session(target=PRIVATE["target"] | {"epsilon": 0.5}, noise_seed=seed)) for seed in seeds
    ]
    finer = [distance(nested(0.5, 30.0, noise_seed=seed)) for seed in seeds]
    assert np.mean(finer) < 0.5 * np.mean(coarse)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"target": PRIVATE["target"] | {"epsilon_curator": 2.0}}, "is to be the larger one"),
        ({"target": PRIVATE["target"] | {"epsilon_curator": 3.0}}, "is to be the larger one"),
        ({"target": PRIVATE["target"] | {"epsilon_curator": 0.0}}, "epsilon_curator"),
        (
            {"rule": "sealed", "target": PRIVATE["target"] | {"epsilon_curator": 4.0}},
            "the target of a tender",
        ),
        ({"summary": PRIVATE["summary"] | {"epsilon_curator": 4.0}}, "the target of a tender"),
    ],
)
def test_what_a_curators_release_cannot_be(changes: dict[str, Any], expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        session(**changes)
