"""The lemma behind the sensitivity of 2 (DESIGN §1), under the presence rule (DESIGN §3).

Fix the released weights, and add one record to one owner: S' is S with at most one point in the place of
another. A property test over small cases with ties, absences, returns, exhausted owners and fewer points
than rounds; seeds are fixed, and two machines that break a rule must be caught.
"""

from __future__ import annotations

import numpy as np
import pytest

from protocol.acquisition import RULES
from protocol.scoring import Pool
from tests.simulation.lemma import (
    Case,
    KeepsAbsentOwnersPool,
    TiesByArrival,
    difference,
    make_case,
    play,
)

EXACT_RULES = sorted(name for name, rule in RULES.items() if rule.exact)


def cases(seed: int, count: int) -> list[Case]:
    rng = np.random.default_rng(seed)
    return [make_case(rng) for _ in range(count)]


def changed(case: Case, rule: str, pool: type[Pool] = Pool) -> int:
    """How many points S and S' differ by."""
    without, _ = play(case, rule, with_extra=False, pool=pool)
    including, _ = play(case, rule, with_extra=True, pool=pool)
    return difference(without, including)


@pytest.mark.parametrize("rule", EXACT_RULES)
def test_one_record_substitutes_at_most_one_point(rule: str) -> None:
    changes = [changed(case, rule) for case in cases(1, 400)]
    assert set(changes) == {0, 1}


@pytest.mark.slow
@pytest.mark.parametrize("rule", EXACT_RULES)
def test_one_record_substitutes_at_most_one_point_in_ten_thousand_cases(rule: str) -> None:
    assert max(changed(case, rule) for case in cases(2, 10_000)) == 1


@pytest.mark.parametrize("pool", [KeepsAbsentOwnersPool, TiesByArrival])
def test_the_test_catches_a_curator_that_breaks_a_rule(pool: type[Pool]) -> None:
    broken = next(case for case in cases(3, 1500) if changed(case, "ask-all", pool) > 1)
    assert changed(broken, "ask-all") <= 1


def test_the_cases_have_what_the_rules_are_about() -> None:
    absences = late = exhausted = ties = 0
    for case in cases(1, 400):
        chosen, bench = play(case, "ask-all", with_extra=False)
        ledger = bench.machine.ledger
        absences += len(ledger.absences)
        late += bool(case.late)
        exhausted += sum(map(len, case.data.values())) < len(case.weights)
        ties += any(count > 1 for count in chosen.values())
    assert min(absences, late, exhausted, ties) > 50


@pytest.mark.parametrize("rule", EXACT_RULES)
def test_every_exact_rule_chooses_the_same_points(rule: str) -> None:
    # What is asked of whom differs, what is chosen does not.
    for case in cases(4, 100):
        reference, _ = play(case, "ask-all", with_extra=True)
        chosen, _ = play(case, rule, with_extra=True)
        assert chosen == reference


def test_sealed_and_ask_all_keep_the_same_books() -> None:
    # Under the same map and weights; the points that a curator is handed raw are none of them sealed.
    for case in cases(5, 100):
        _, opened = play(case, "ask-all", with_extra=True)
        _, sealed = play(case, "sealed", with_extra=True)
        assert sealed.chosen == opened.chosen
        books = [
            [
                (win.round, win.owner, win.score, win.bid_round, win.handle)
                for win in bench.machine.ledger.wins
            ]
            for bench in (opened, sealed)
        ]
        assert books[0] == books[1]
        assert sealed.machine.ledger.absences == opened.machine.ledger.absences
        assert sealed.machine.ledger.candidates == opened.machine.ledger.candidates
        assert opened.machine.ledger.points_accessed == opened.machine.ledger.candidates
        assert sealed.machine.ledger.points_accessed == 0
        assert sealed.machine.settlement() == opened.machine.settlement()
