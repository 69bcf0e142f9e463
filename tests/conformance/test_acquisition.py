"""Every acquisition rule that says it is exact chooses what a brute-force greedy on J chooses.

The reference knows nothing of rounds, bids or weights: in each step it computes J(S + x) by features for
every point of every owner, in whole numbers and fractions, and takes the best. Rules come from the
registry, so a new one is tested without being told.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest

from hushbid.simulator import Simulation
from protocol.acquisition import RULES, acquisition_rule
from protocol.data import Dataset
from protocol.errors import ConfigError
from protocol.grid import round_weights
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


def greedy_by_weights(
    session: Session, owners: dict[str, Points], validation: Points, seed_set: Points
) -> list[tuple[str, bytes]]:
    """The greedy choice, with each round's weight on the grid and everything else in Python integers."""
    hash_ = session.feature_map.hash
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
    hash_ = session.feature_map.hash
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
    for seed in range(4):
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


@pytest.mark.parametrize("rule", sorted(RULES))
def test_every_rule_says_what_it_is(rule: str) -> None:
    made = acquisition_rule(rule, {}, owners=3)
    assert made.name == rule
    assert type(made.private) is type(made.exact) is type(made.candidate_with_bid) is bool
    assert made.learns
    assert type(made).__doc__
    assert all(draw.size > 0 for draw in made.draws())


@pytest.mark.parametrize("rule", sorted(RULES))
def test_a_rule_refuses_parameters_that_it_does_not_have(rule: str) -> None:
    with pytest.raises(ConfigError, match=r"acquisition\.colour"):
        acquisition_rule(rule, {"colour": 1}, owners=3)


def test_an_unknown_rule_is_a_configuration_error() -> None:
    with pytest.raises(ConfigError, match="no rule is named 'auction'") as caught:
        acquisition_rule("auction", {}, owners=3)
    assert all(name in caught.value.advice for name in RULES)
