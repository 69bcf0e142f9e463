"""The lemma behind the sensitivity of 2 (DESIGN §1), under the presence rule (DESIGN §3).

Fix the released weights, and add one record to one owner: S' is S with at most one point replaced by another.
This is a property test over small cases with ties, absences, returns, exhausted owners and fewer points than
rounds; seeds are fixed, and two machines that break a rule must be caught.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import pytest

from hushbid.protocol.privacy.acquisition import RULES
from hushbid.protocol.space.grid import Features, Weights
from hushbid.protocol.space.scoring import Pool
from tests.simulation.harness import RADIUS, CuratorBench, Player, weights_of
from tests.simulation.lemma import (
    LABELLED,
    BidsItsBestAlone,
    BringsIn,
    Case,
    JitterByArrival,
    KeepsAbsentOwnersPool,
    OneOfEachPhi,
    RestsTheLabelItBought,
    TiesByArrival,
    difference,
    make_case,
    play,
)

WITH_BIDS = sorted(
    name for name, rule in RULES.items() if rule.candidate_with_bid and not (rule.blind or rule.herds)
)
EXACT_RULES = sorted(name for name, rule in RULES.items() if rule.exact and not (rule.blind or rule.herds))
"""Those whose curator scores points; `test_blind_lemma` is about the other."""


COUNT = 50
"""Cases that every test plays which has no control: each is played once by each rule, with x and without.

The slow tests play thousands; the controls show that such cases tell what breaks a rule."""


def cases(seed: int, **kind: Any) -> Iterator[Case]:
    """Cases of a kind (`make_case`), drawn one after the other."""
    rng = np.random.default_rng(seed)
    while True:
        yield make_case(rng, **kind)


def changed(
    case: Case, rule: str, pool: type[Pool] = Pool, player: type[Player] = Player, **also: Any
) -> int:
    """By how many points S and S' differ; `also` goes to `play`."""
    players = {"honest": player, "attacker": player} | also
    without, including = (
        play(case, rule, with_extra=there, pool=pool, **players)[0] for there in (False, True)
    )
    return difference(without, including)


class Played(NamedTuple):
    """The outcome of a case."""

    points: Counter[bytes]
    chosen: list[bytes]
    books: dict[str, Any]
    points_accessed: int


@cache
def shared_cases() -> tuple[Case, ...]:
    return tuple(islice(cases(1), COUNT))


@cache
def played(rule: str, *, with_extra: bool) -> tuple[Played, ...]:
    """The outcomes of the cases under a rule."""
    found = []
    for case in shared_cases():
        points, bench = play(case, rule, with_extra=with_extra)
        ledger = bench.machine.ledger
        wins = [(win.chosen_round, win.owner, win.score, win.bid_round, win.handle) for win in ledger.wins]
        books = {
            "wins": wins,
            "absences": list(ledger.absences),
            "candidates": ledger.candidates,
            "settlement": bench.machine.settlement(),
        }
        found.append(Played(points, bench.chosen, books, ledger.points_accessed))
    return tuple(found)


@pytest.mark.parametrize("rule", EXACT_RULES)
def test_one_record_substitutes_at_most_one_point(rule: str) -> None:
    pairs = zip(played(rule, with_extra=False), played(rule, with_extra=True), strict=True)
    assert {difference(without.points, including.points) for without, including in pairs} == {0, 1}


@pytest.mark.slow
@pytest.mark.parametrize("rule", EXACT_RULES)
def test_one_record_substitutes_at_most_one_point_in_ten_thousand_cases(rule: str) -> None:
    assert max(changed(case, rule) for case in islice(cases(2), 10_000)) == 1


# With these seeds the first case that shows the bug comes soon; about one case in 400 does.
@pytest.mark.parametrize(("pool", "seed"), [(KeepsAbsentOwnersPool, 35), (TiesByArrival, 31)])
def test_the_test_catches_a_curator_that_breaks_a_rule(pool: type[Pool], seed: int) -> None:
    broken = next(case for case in islice(cases(seed), 1500) if changed(case, "ask-all", pool) > 1)
    assert changed(broken, "ask-all") <= 1


@pytest.mark.parametrize("rule", WITH_BIDS)
def test_one_record_substitutes_at_most_one_point_of_batches(rule: str) -> None:
    found = [changed(case, rule) for case in islice(cases(3, batches=True), COUNT)]
    assert set(found) == {0, 1}


@pytest.mark.slow
@pytest.mark.parametrize("rule", WITH_BIDS)
def test_one_record_substitutes_at_most_one_point_of_batches_in_ten_thousand_cases(rule: str) -> None:
    assert max(changed(case, rule) for case in islice(cases(4, batches=True), 10_000)) == 1


@pytest.mark.parametrize(
    ("pool", "player", "seed"),
    [
        (KeepsAbsentOwnersPool, Player, 39),
        (TiesByArrival, Player, 165),
        (Pool, BidsItsBestAlone, 44),
        (JitterByArrival, Player, 7),
    ],
)
def test_the_test_catches_what_breaks_a_rule_of_batches(
    pool: type[Pool], player: type[Player], seed: int
) -> None:
    found = cases(seed, batches=True)
    broken = next(case for case in islice(found, 1500) if changed(case, "ask-all", pool, player) > 1)
    assert changed(broken, "ask-all") <= 1


@pytest.mark.parametrize("batches", [False, True])
def test_one_labelled_record_substitutes_at_most_one_point(batches: bool) -> None:
    """Labels are part of φ, points are alike except for them, and weights want one of them."""
    found = [changed(case, "sealed") for case in islice(cases(8, batches=batches, of=LABELLED), COUNT)]
    assert set(found) == {0, 1}


@pytest.mark.slow
@pytest.mark.parametrize("batches", [False, True])
def test_one_labelled_record_substitutes_at_most_one_point_in_ten_thousand_cases(batches: bool) -> None:
    found = cases(9, batches=batches, of=LABELLED)
    assert max(changed(case, "sealed") for case in islice(found, 10_000)) == 1


def test_the_test_catches_a_curator_that_balances_labels() -> None:
    """Balancing labels is therefore refused at the selection (`hushbid.protocol.config.wishes.REFUSED`)."""
    found = cases(10, of=LABELLED)
    broken = next(case for case in islice(found, 1500) if changed(case, "sealed", RestsTheLabelItBought) > 1)
    assert changed(broken, "sealed") <= 1


def test_the_batches_have_what_the_rules_are_about() -> None:
    found = list(islice(cases(3, batches=True), COUNT))
    held = [sum(map(len, case.data.values())) for case in found]
    bought = [len(case.weights) * case.batch - case.short for case in found]
    fewer_left = sum(points < most for points, most in zip(held, bought, strict=True))
    smaller_last = sum(bool(case.short) for case in found)
    absent = sum(bool(case.late | case.gone) for case in found)
    jittered = sum(len(set(case.jitter)) > 1 for case in found)
    assert min(fewer_left, smaller_last, absent, jittered) > COUNT // 6


@pytest.mark.parametrize(("attacker", "rule"), [(Player, "sealed"), (BringsIn, "ask-all")])
def test_one_record_substitutes_at_most_one_point_where_a_point_is_bought_once(
    attacker: type[Player], rule: str
) -> None:
    found = [changed(case, rule, attacker=attacker) for case in islice(cases(5, distinct=True), COUNT // 2)]
    assert set(found) == {0, 1}


@pytest.mark.slow
@pytest.mark.parametrize("rule", WITH_BIDS)
@pytest.mark.parametrize(("attacker", "seed"), [(Player, 6), (BringsIn, 7)])
def test_one_record_substitutes_at_most_one_point_bought_once_in_five_thousand_cases(
    attacker: type[Player], seed: int, rule: str
) -> None:
    drawn = islice(cases(seed, distinct=True), 5_000)
    assert max(changed(case, rule, attacker=attacker) for case in drawn) == 1


def lets_absent_owners_come_back(bench: CuratorBench) -> None:
    """A broken control: an owner that missed a round takes part in the next."""
    bench.machine.leave_for_good = False


def buys_one_of_each_phi(bench: CuratorBench) -> None:
    """A broken control: a point that one owner holds twice is bought once."""
    bench.machine.selection.pool._copies = OneOfEachPhi(bench.opened.identifier)


def features_of(*values: int) -> Features:
    return np.array(values, dtype=np.int16) * np.int16(RADIUS)


def bought_once(
    data: tuple[list[Features], list[Features]],
    extra: Features,
    weights: list[Weights],
    gone: frozenset[tuple[str, int]] = frozenset(),
) -> Case:
    """A case of two owners, the first of which may have x; each round buys a point."""
    owners = ("owner-0", "owner-1")
    return Case(
        data=dict(zip(owners, map(np.stack, data), strict=True)),
        extra=extra,
        extra_owner=owners[0],
        weights=tuple(weights),
        order=(owners,) * len(weights),
        late=frozenset(),
        delay=1,
        gone=gone,
        distinct=True,
    )


def test_the_test_catches_owners_that_come_back_with_copies_of_what_was_bought() -> None:
    # The case of docs/design.md: both hold a, b and c, and rounds rank x, c, a, b; c, b, a; and c, a, b, x.
    a, b = features_of(1, 1, 0, 0), features_of(0, -1, 1, 0)
    c, x = features_of(-1, 0, 0, -1), features_of(1, -1, 0, 0)
    weights = [weights_of(2, -2, -3, -3), weights_of(-1, -1, 3, -5), weights_of(-4, 3, -3, -3)]
    gone = frozenset({("owner-0", 2), ("owner-1", 3)})
    case = bought_once(([a, b, c], [a, b, c]), x, weights, gone)
    assert changed(case, "ask-all", alter=lets_absent_owners_come_back) == 2
    assert changed(case, "ask-all") <= 1


def test_the_test_catches_a_curator_that_buys_one_of_each_phi() -> None:
    # The first holds p twice, and q; the second r and s. The rounds rank x, p, r, q, s, then p, q, r, s, then
    # p, q, s, r. A copy of p that is not wanted keeps q back, once with D and once with D'.
    p, q = features_of(-1, 1, 0, 0), features_of(0, 0, 1, 1)
    r, s, x = features_of(-1, 0, 0, -1), features_of(-1, 0, 0, 1), features_of(1, 1, 0, 0)
    weights = [weights_of(6, 7, -2, -6), weights_of(-1, 5, 4, -1), weights_of(-4, 5, 6, 2)]
    case = bought_once(([p, p, q], [r, s]), x, weights)
    assert changed(case, "ask-all", alter=buys_one_of_each_phi) == 2
    assert changed(case, "ask-all") <= 1


def test_the_cases_of_points_bought_once_have_what_the_rule_is_about() -> None:
    absent = batches = repeated = left = 0
    for case in islice(cases(5, distinct=True), COUNT // 2):
        with_copies = play(replace(case, distinct=False), "ask-all", with_extra=True)[0]
        found, bench = play(case, "ask-all", with_extra=True)
        absent += any(seat.out for seat in bench.machine.seats.values())
        batches += case.batch > 1
        repeated += max(found.values(), default=0) > 1
        left += found != with_copies
    assert min(absent, batches, repeated, left) > COUNT // 12


def test_the_cases_have_what_the_rules_are_about() -> None:
    absences = late = exhausted = ties = 0
    for case, found in zip(shared_cases(), played("ask-all", with_extra=False), strict=True):
        absences += len(found.books["absences"])
        late += bool(case.late)
        exhausted += sum(map(len, case.data.values())) < len(case.weights)
        ties += any(count > 1 for count in found.points.values())
    assert min(absences, late, exhausted, ties) > COUNT // 6


@pytest.mark.parametrize("rule", [rule for rule in EXACT_RULES if rule != "ask-all"])
def test_every_exact_rule_chooses_the_same_points(rule: str) -> None:
    # What is asked of whom differs, what is chosen does not.
    references = played("ask-all", with_extra=True)
    for found, reference in zip(played(rule, with_extra=True), references, strict=True):
        assert found.points == reference.points


def test_sealed_and_ask_all_keep_the_same_books() -> None:
    # Under the same map and weights; the points that a curator is handed raw are none of them sealed.
    both = zip(played("sealed", with_extra=True), played("ask-all", with_extra=True), strict=True)
    for sealed, opened in both:
        assert sealed.chosen == opened.chosen
        assert sealed.books == opened.books
        assert opened.points_accessed == opened.books["candidates"]
        assert sealed.points_accessed == 0
