"""One record more moves a private settlement by √2·U at most over the lemma's cases.

Two owners' totals at most, each by U at most. Settlements that depend on the round in which a point was taken
have to be caught by the same test.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curator.ledger import settle, settle_privately
from protocol.acquisition import RULES
from protocol.settlement import SENSITIVITY, UNITS, whole_score, worth
from tests.simulation.harness import CuratorBench
from tests.simulation.lemma import Case, make_case, play

EXACT_RULES = sorted(name for name, rule in RULES.items() if rule.exact)

Totals = Callable[[Case, CuratorBench], Mapping[str, float]]


def private(case: Case, bench: CuratorBench) -> Mapping[str, float]:
    """What is released, without its noise, in units."""
    owners = tuple(sorted(case.data))
    noise = np.zeros(len(owners), dtype=np.int64)
    paid = settle_privately(bench.machine.ledger.wins, (), owners, case.weights[0], noise)
    return {owner: points * UNITS for owner, points in paid.items()}


def by_round(case: Case, bench: CuratorBench) -> Mapping[str, float]:
    """A broken control: a point counts by its score in the round in which it was taken."""
    totals = dict.fromkeys(case.data, 0)
    for win in bench.machine.ledger.wins:
        weights = case.weights[win.round - 1]
        totals[win.owner] += worth(win.candidate.features, weights, whole_score(weights))
    return totals


def by_gain(case: Case, bench: CuratorBench) -> Mapping[str, float]:
    """A broken control, today's exact settlement: gains of J, in units of the largest of the first round."""
    target = case.weights[0] / np.linalg.norm(case.weights[0])
    wins, owners = bench.machine.ledger.wins, tuple(case.data)
    shares = settle(wins, (), owners, target, np.zeros(4, dtype=np.int64), 2)
    most = 2.0 / 3.0 + 1.0 / 9.0
    return {owner: share / most * UNITS for owner, share in shares.items()}


def moves(case: Case, rule: str, totals: Totals) -> list[float]:
    """By how much each owner's total changes with the extra record, where it does."""
    _, without = play(case, rule, with_extra=False)
    _, including = play(case, rule, with_extra=True)
    before, after = totals(case, without), totals(case, including)
    return [abs(after[owner] - before[owner]) for owner in case.data if after[owner] != before[owner]]


def bounded(found: list[float]) -> bool:
    return len(found) <= 2 and max(found, default=0) <= UNITS and math.hypot(*found) <= SENSITIVITY


def cases(seed: int, count: int) -> list[Case]:
    rng = np.random.default_rng(seed)
    return [case for case in (make_case(rng) for _ in range(count)) if case.weights[0].any()]


@pytest.mark.parametrize("rule", EXACT_RULES)
def test_one_record_moves_two_owners_at_most_by_a_point_each(rule: str) -> None:
    found = [moves(case, rule, private) for case in cases(11, 200)]
    assert all(map(bounded, found))
    # The bound is one that is reached: a point of one owner was taken in the place of another's.
    assert max(math.hypot(*each) for each in found) == pytest.approx(SENSITIVITY, abs=1)


@pytest.mark.slow
@pytest.mark.parametrize("rule", EXACT_RULES)
def test_one_record_moves_two_owners_at_most_in_ten_thousand_cases(rule: str) -> None:
    assert all(bounded(moves(case, rule, private)) for case in cases(12, 10_000))


@pytest.mark.parametrize("totals", [by_round, by_gain])
def test_settlements_by_the_round_are_caught(totals: Totals) -> None:
    broken = [case for case in cases(13, 150) if not bounded(moves(case, "ask-all", totals))]
    assert broken
    assert all(bounded(moves(case, "ask-all", private)) for case in broken)


WEIGHTS = st.lists(st.integers(-(2**24), 2**24), min_size=4, max_size=4)
ANY_FEATURES = st.lists(st.integers(-(2**15), 2**15 - 1), min_size=4, max_size=4)


@given(WEIGHTS, ANY_FEATURES)
def test_no_point_counts_less_than_nothing_or_more_than_a_whole(
    weights: list[int], features: list[int]
) -> None:
    # Forged features too, and of any length.
    first = np.array(weights, dtype=np.int32)
    found = worth(np.array(features, dtype=np.int16), first, whole_score(first))
    assert type(found) is int
    assert 0 <= found <= UNITS


def test_a_point_counts_whole_from_half_of_the_weight_s_length_on() -> None:
    weights = np.array([3000, 4000, 0, 0], dtype=np.int32)
    whole = whole_score(weights)
    assert whole == 5000 * 2**14 + 1

    def worth_of(share: float) -> int:
        direction = np.array([0.6, 0.8, 0.0, 0.0]) * share * 2**15
        return worth(np.rint(direction).astype(np.int16), weights, whole)

    assert worth_of(0.9) == worth_of(0.51) == UNITS
    assert worth_of(0.25) == pytest.approx(UNITS / 2, abs=2)
    assert worth_of(0.0) == worth_of(-0.5) == 0


def test_the_sensitivity_is_the_root_of_two_points_rounded_up() -> None:
    assert (SENSITIVITY - 1) ** 2 < 2 * UNITS**2 <= SENSITIVITY**2
