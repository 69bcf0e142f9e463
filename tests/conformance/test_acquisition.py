"""Every acquisition rule that claims to be exact chooses what a brute-force greedy choice by J chooses.

The reference knows nothing of rounds, bids or weights: in each step it computes J(S + x) by features for
every point of every owner, in whole numbers, and takes the best. Rules come from the registry, so a new one
is tested automatically.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from hushbid.protocol.data import Dataset
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.names import CONSUMER
from hushbid.protocol.privacy.acquisition import RULES, AcquisitionRule, BidStanding, acquisition_rule
from hushbid.protocol.privacy.noise import SimulatedNoise
from hushbid.protocol.session.session import Session, open_session
from hushbid.protocol.space.features import SEED_BYTES, FeatureMap
from hushbid.protocol.space.grid import round_weights
from hushbid.simulation.simulator import Simulation
from tests.simulation.harness import names, session_file
from tests.support.totals import check_total

EXACT_RULES = sorted(name for name, rule in RULES.items() if rule.exact and not rule.herds)
COLUMNS = 5
DIMENSION = 16

Points = npt.NDArray[np.float64]


def data(seed: int, sizes: tuple[int, ...]) -> dict[str, Points]:
    """Owners' points with few distinct values: many occur repeatedly, within and across owners."""
    rng = np.random.default_rng(seed)
    distinct = rng.random((max(4, sum(sizes) // 2), COLUMNS))
    return {
        owner: distinct[rng.integers(0, len(distinct), size=size)]
        for owner, size in zip(names(len(sizes)), sizes, strict=True)
    }


def simulate(
    session: Session, owners: dict[str, Points], validation: Points, seed_set: Points
) -> list[tuple[str, bytes]]:
    """The owners of the chosen points, in order, and their φ at the consumer."""
    simulation = Simulation(
        session,
        owners={name: Dataset.from_arrays(name, points) for name, points in owners.items()},
        validation=Dataset.from_arrays("validation", validation),
        seed_set=Dataset.from_arrays("seed-set", seed_set),
    )
    outcome = simulation.run()
    check_total(outcome)
    assert outcome.delivered is not None
    return [
        (entry.owner, entry.candidate.features.tobytes())
        for entry in outcome.delivered.delivered
        if entry.candidate is not None
    ]


def map_of(session: Session) -> FeatureMap:
    """The session's feature map; where it is secret, the one that the simulated consumer draws."""
    if session.public_map is not None:
        return session.public_map
    seed = session.file.noise.seed
    assert seed is not None
    return session.space.map(SimulatedNoise(seed, CONSUMER).random_bytes(SEED_BYTES))


def greedy_by_weights(
    session: Session, owners: dict[str, Points], validation: Points, seed_set: Points
) -> list[tuple[str, bytes]]:
    """The greedy choice, with each round's weight on the grid and everything else in whole numbers."""
    hash_ = map_of(session).hash
    target = hash_(validation).sum(axis=0, dtype=np.int64) / 2.0**15 / len(validation)
    total = hash_(seed_set).sum(axis=0, dtype=np.int64)
    rest = points_of(session, owners)
    chosen = []
    for step in range(session.file.session.points):
        if not rest:
            break
        q = len(seed_set) + step
        mean = total / 2.0**15 / q
        # A score is below 2^15 · 2^31 · 16, so that int64 is exact.
        scores = np.array([point[2] for point in rest]) @ round_weights(target - q / (q + 1) * mean).astype(
            np.int64
        )
        best = min(range(len(rest)), key=lambda place: (-int(scores[place]), rest[place][1], rest[place][0]))
        owner, encoded, features = rest.pop(best)
        total = total + features
        chosen.append((owner, encoded))
    return chosen


def points_of(session: Session, owners: dict[str, Points]) -> list[tuple[str, bytes, npt.NDArray[np.int64]]]:
    """The owner of every point, its φ as sent, and its φ in grid units."""
    hash_ = map_of(session).hash
    return [
        (owner, row.tobytes(), row.astype(np.int64))
        for owner in sorted(owners)
        for row in hash_(owners[owner])
    ]


def best_by_objective(
    session: Session, chosen: list[tuple[str, bytes]], owners: dict[str, Points], sets: tuple[Points, Points]
) -> None:
    """Assert that every choice is as good as any, judged by J(S + x), rounding aside."""
    hash_ = map_of(session).hash
    validation, seed_set = sets
    wanted = hash_(validation).sum(axis=0, dtype=np.int64)
    held = hash_(seed_set).sum(axis=0, dtype=np.int64)
    rest = points_of(session, owners)
    n, q = len(validation), len(seed_set)

    def objectives() -> npt.NDArray[np.int64]:
        """J(S + x) of every x without ‖φ(x)‖², which differs between points by the rounding of φ only.

        J(S + x) is Σ 2·w·m - m² with w = `wanted`/(2^15·n) and m = (`held` + φ)/(2^15·(q + 1)). Here it is
        times 2^30·n·(q + 1)², which makes it a whole number, and one below 2^56.
        """
        features = np.array([point[2] for point in rest])
        total = held + features
        return np.asarray((2 * wanted * total * (q + 1) - n * total**2 + n * features**2).sum(axis=1))

    for owner, encoded in chosen:
        position = next(i for i, point in enumerate(rest) if point[:2] == (owner, encoded))
        values = objectives()
        # A weight is off by half a grid unit a coordinate at most, and so is J by that times ‖φ‖₁·2/(q + 1):
        # 2^-22 a coordinate.
        slack = 2 ** (30 - 22) * DIMENSION * n * (q + 1) ** 2
        assert values.max() <= values[position] + slack
        held = held + rest.pop(position)[2]
        q += 1


CASES = {
    "five owners": ((12, 9, 15, 7, 10), 20),
    "owners that run out": ((2, 1, 25), 20),
    "fewer points than rounds": ((3, 4, 2), 14),
    "one owner": ((30,), 12),
    "one owner with one point": ((1,), 3),
    "more rounds than one batch of noise": ((40, 40), 70),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("rule", EXACT_RULES)
def test_the_chosen_points_are_the_greedy_ones(rule: str, case: str) -> None:
    sizes, points = CASES[case]
    session = open_session(
        session_file(owners=names(len(sizes)), points=points, rule=rule, dimension=DIMENSION, columns=COLUMNS)
    )
    for seed in range(3):
        owners = data(seed, sizes)
        rng = np.random.default_rng(100 + seed)
        validation, seed_set = rng.random((9, COLUMNS)), rng.random((6, COLUMNS))
        chosen = simulate(session, owners, validation, seed_set)
        assert chosen == greedy_by_weights(session, owners, validation, seed_set)
        assert len(chosen) == min(points, sum(sizes))
        best_by_objective(session, chosen, owners, (validation, seed_set))


def test_the_data_has_the_same_point_within_and_across_owners() -> None:
    owners = data(0, CASES["five owners"][0])
    rows = [(name, row.tobytes()) for name, points in owners.items() for row in points]
    assert len(set(rows)) < len(rows)
    assert len({features for _, features in rows}) < len(set(rows))


def test_the_reference_tells_another_choice() -> None:
    """A choice that swaps a good point for a bad one must not pass as greedy."""
    sizes, points = CASES["five owners"]
    session = open_session(
        session_file(owners=names(len(sizes)), points=points, dimension=DIMENSION, columns=COLUMNS)
    )
    owners = data(0, sizes)
    rng = np.random.default_rng(100)
    sets = rng.random((9, COLUMNS)), rng.random((6, COLUMNS))
    chosen = greedy_by_weights(session, owners, *sets)
    with pytest.raises(AssertionError):
        best_by_objective(session, chosen[-1:], owners, sets)


FEW: dict[str, Any] = {"owners": 3, "rounds": 10, "delta": 1e-5}
MANY: dict[str, Any] = FEW | {"owners": 10_000}


def parameters_of(rule: str) -> dict[str, float]:
    """The keys that a rule requires, so far each an ε."""
    fields = RULES[rule].Parameters.model_fields
    return {key: 1.0 for key, field in fields.items() if field.is_required()}


def make(rule: str) -> AcquisitionRule:
    """The rule, for few owners unless it requires many."""
    try:
        return acquisition_rule(rule, parameters_of(rule), **FEW)
    except ConfigError:
        return acquisition_rule(rule, parameters_of(rule), **MANY)


@pytest.mark.parametrize("rule", sorted(RULES))
def test_a_rule_that_is_not_for_few_owners_says_which_are(rule: str) -> None:
    if make(rule).owners == FEW["owners"]:
        return
    with pytest.raises(ConfigError, match=f"acquisition.rule: {rule} is not for 3 owners") as caught:
        acquisition_rule(rule, parameters_of(rule), **FEW)
    assert "sealed" in caught.value.advice


@pytest.mark.parametrize("rule", sorted(RULES))
def test_a_rule_is_sealed_and_takes_points_with_bids_together(rule: str) -> None:
    """Asking for a sealed point would tell its owner that it may have won; and an offer has no box."""
    if RULES[rule].sealed:
        assert RULES[rule].candidate_with_bid
        assert RULES[rule].private


def asks_whoever_bids(rule: AcquisitionRule) -> bool:
    """Whether asks do not depend on any bid, so that an ask reveals nothing about bids."""
    standings = [
        BidStanding(f"owner-{place}", 100 * -place, 1, place, place + 1) for place in range(rule.owners)
    ]
    everybody = {standing.owner for standing in standings}
    return not rule.draws() and set(rule.ask(0, standings, frozenset(), ())) == everybody


@pytest.mark.parametrize("rule", sorted(RULES))
def test_a_private_rule_that_asks_nobody_costs_nothing_and_one_that_asks_is_charged(rule: str) -> None:
    made = make(rule)
    if made.candidate_with_bid:
        assert (made.costs(), made.slack, made.draws()) == ((), (0.0, 0.0), ())
        assert made.ask(0, (), frozenset(), ()) == ()
    elif made.private:
        assert made.costs() or asks_whoever_bids(made)
    slack_epsilon, slack_delta = made.slack
    assert slack_epsilon >= 0.0
    assert 0.0 <= slack_delta < made.delta
    assert made.exact == (made.slack == (0.0, 0.0))


@pytest.mark.parametrize("rule", sorted(RULES))
def test_every_rule_says_what_it_is(rule: str) -> None:
    made = make(rule)
    assert made.name == rule
    assert type(made.private) is type(made.exact) is type(made.candidate_with_bid) is bool
    assert type(made.sealed) is type(made.ranked) is bool
    assert made.learns
    assert made.curator_sees
    assert type(made).__doc__
    assert all(draw.size > 0 for draw in made.draws())


@pytest.mark.parametrize("rule", sorted(RULES))
def test_a_rule_refuses_parameters_that_it_does_not_have(rule: str) -> None:
    with pytest.raises(ConfigError, match=r"acquisition\.colour"):
        acquisition_rule(rule, parameters_of(rule) | {"colour": 1}, **FEW)


def test_an_unknown_rule_is_a_configuration_error() -> None:
    with pytest.raises(ConfigError, match="no rule is named 'auction'") as caught:
        acquisition_rule("auction", {}, **FEW)
    assert all(name in caught.value.advice for name in RULES)
