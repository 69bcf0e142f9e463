"""Every acquisition rule that says it is exact chooses what a brute-force greedy on J chooses.

The reference knows nothing of rounds, bids or weights: in each step it computes J(S + x) by features for
every point of every owner, in whole numbers and fractions, and takes the best. Rules come from the
registry, so a new one is tested without being told.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from hushbid.simulator import Simulation
from protocol.acquisition import RULES, AcquisitionRule, acquisition_rule
from protocol.data import Dataset
from protocol.errors import ConfigError
from protocol.features import SEED_BYTES, FeatureMap
from protocol.grid import round_weights
from protocol.names import CONSUMER
from protocol.noise import SimulatedNoise
from protocol.session import Session, open_session
from tests.simulation.harness import names, session_file

EXACT_RULES = sorted(name for name, rule in RULES.items() if rule.exact)
COLUMNS = 5
DIMENSION = 16

Points = npt.NDArray[np.float64]


def data(seed: int, sizes: tuple[int, ...]) -> dict[str, Points]:
    """Owners' points, of few distinct values: many are there twice or more, within and across owners."""
    rng = np.random.default_rng(seed)
    distinct = rng.random((max(4, sum(sizes) // 2), COLUMNS))
    return {
        owner: distinct[rng.integers(0, len(distinct), size=size)]
        for owner, size in zip(names(len(sizes)), sizes, strict=True)
    }


def simulate(
    session: Session, owners: dict[str, Points], validation: Points, seed_set: Points
) -> list[tuple[str, bytes]]:
    """Whose point was chosen in each round, and its φ."""
    simulation = Simulation(
        session,
        owners={name: Dataset.from_arrays(name, points) for name, points in owners.items()},
        validation=Dataset.from_arrays("validation", validation),
        seed_set=Dataset.from_arrays("seed-set", seed_set),
    )
    outcome = simulation.run()
    outcome.curator.check_total()
    return [(win.owner, win.candidate.features.tobytes()) for win in outcome.curator.ledger.wins]


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
    """The greedy choice, with each round's weight on the grid and everything else in Python integers."""
    hash_ = map_of(session).hash
    target = hash_(validation).sum(axis=0, dtype=np.int64) / 2.0**15 / len(validation)
    total = hash_(seed_set).sum(axis=0, dtype=np.int64)
    rest = [
        (tuple(int(value) for value in row), row.tobytes(), owner)
        for owner in sorted(owners)
        for row in hash_(owners[owner])
    ]
    chosen = []
    for step in range(session.file.session.points):
        if not rest:
            break
        q = len(seed_set) + step
        mean = total / 2.0**15 / q
        weights = [int(value) for value in round_weights(target - q / (q + 1) * mean)]
        best = min(
            rest,
            key=lambda point: (
                -sum(a * b for a, b in zip(point[0], weights, strict=True)),
                point[1],
                point[2],
            ),
        )
        rest.remove(best)
        total = total + np.array(best[0])
        chosen.append((best[2], best[1]))
    return chosen


def best_by_objective(
    session: Session, chosen: list[tuple[str, bytes]], owners: dict[str, Points], sets: tuple[Points, Points]
) -> None:
    """Assert that every choice is as good as any, judged by J(S + x) in fractions, rounding aside."""
    hash_ = map_of(session).hash
    validation, seed_set = sets
    scale = Fraction(1, 2**15)
    wanted = [
        Fraction(int(total)) * scale / len(validation)
        for total in hash_(validation).sum(axis=0, dtype=np.int64)
    ]
    held = [Fraction(int(total)) * scale for total in hash_(seed_set).sum(axis=0, dtype=np.int64)]
    rest = [
        (owner, row.tobytes(), [Fraction(int(value)) * scale for value in row])
        for owner in sorted(owners)
        for row in hash_(owners[owner])
    ]
    q = len(seed_set)

    def objective(features: list[Fraction]) -> Fraction:
        """J(S + x) without ‖φ(x)‖², which differs between points by the rounding of φ only."""
        mean = [(total + value) / (q + 1) for total, value in zip(held, features, strict=True)]
        square = sum(((value / (q + 1)) ** 2 for value in features), start=Fraction(0))
        return sum(
            (2 * want * value - value**2 for want, value in zip(wanted, mean, strict=True)), start=square
        )

    # A weight is off by half a grid unit a coordinate at most, and so is J by that times ‖φ‖₁·2/(q + 1).
    slack = Fraction(1, 2**22) * DIMENSION
    for owner, features in chosen:
        position = next(i for i, point in enumerate(rest) if point[:2] == (owner, features))
        value = objective(rest[position][2])
        assert all(objective(point[2]) <= value + slack for point in rest)
        held = [total + part for total, part in zip(held, rest.pop(position)[2], strict=True)]
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
    """The keys that a rule cannot do without, all of them an ε so far."""
    fields = RULES[rule].Parameters.model_fields
    return {key: 1.0 for key, field in fields.items() if field.is_required()}


def make(rule: str) -> AcquisitionRule:
    """The rule, for few owners unless it is for many only."""
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
    """To ask for a sealed point would tell its owner that it may have won; and an offer has no box."""
    if RULES[rule].sealed:
        assert RULES[rule].candidate_with_bid
        assert RULES[rule].private


@pytest.mark.parametrize("rule", sorted(RULES))
def test_a_private_rule_that_asks_nobody_costs_nothing_and_one_that_asks_is_charged(rule: str) -> None:
    made = make(rule)
    if made.candidate_with_bid:
        assert (made.costs(), made.slack, made.draws()) == ((), (0.0, 0.0), ())
        assert made.ask(0, (), frozenset(), ()) == ()
    elif made.private:
        assert made.costs()
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
