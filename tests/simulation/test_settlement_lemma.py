"""One more record moves a private settlement by at most √2·U in all cases of the lemma.

At most two owners' totals change, each by at most U, whatever is disputed. Settlements that depend on the
round in which a point was chosen, or on the order of rounds, must be caught by the same test.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushbid.protocol.privacy.acquisition import RULES, BidStanding
from hushbid.protocol.privacy.acquisition.winner_only import WinnerOnly
from hushbid.protocol.privacy.settlement import SENSITIVITY, UNITS, whole_score, worths
from hushbid.protocol.session.settling import HandedOver, settle, settle_privately
from tests.simulation.harness import CuratorBench, Player, corners, names, weights_of
from tests.simulation.lemma import Case, make_case, play

EXACT_RULES = sorted(name for name, rule in RULES.items() if rule.exact and not (rule.blind or rule.herds))
WITH_BIDS = [name for name in EXACT_RULES if RULES[name].candidate_with_bid]
QUICK = ("sealed", "ask-all")

Totals = Callable[[Case, CuratorBench], Mapping[str, float]]
Disputes = Callable[[Case, Sequence[HandedOver]], set[tuple[int, str, int]]]


def none(case: Case, wins: Sequence[HandedOver]) -> set[tuple[int, str, int]]:
    return set()


def by_the_point(case: Case, wins: Sequence[HandedOver]) -> set[tuple[int, str, int]]:
    """About half of attackers' sold points, each for its content; never an honest owner's."""
    return {
        (win.chosen_round, win.owner, win.handle)
        for win in wins
        if win.owner != case.extra_owner
        and zlib.crc32(repr((win.owner, win.handle, win.candidate.features.tolist())).encode()) % 2
    }


def by_the_order(case: Case, wins: Sequence[HandedOver]) -> set[tuple[int, str, int]]:
    """A broken control: points under a number that was delivered in an earlier round."""
    had: set[tuple[str, int]] = set()
    disputed = set()
    for win in wins:
        if (win.owner, win.handle) in had:
            disputed.add((win.chosen_round, win.owner, win.handle))
        had.add((win.owner, win.handle))
    return disputed


def private(case: Case, bench: CuratorBench, disputes: Disputes = none) -> Mapping[str, float]:
    """The release without its noise, in units."""
    owners = tuple(sorted(case.data))
    noise = np.zeros(len(owners), dtype=np.int64)
    wins = bench.machine.ledger.wins
    paid = settle_privately(wins, disputes(case, wins), owners, case.weights[0], noise)
    return {owner: points * UNITS for owner, points in paid.items()}


def by_round(case: Case, bench: CuratorBench) -> Mapping[str, float]:
    """A broken control: a point counts by its score in the round in which it was chosen."""
    totals = dict.fromkeys(case.data, 0)
    for win in bench.machine.ledger.wins:
        totals[win.owner] += worths([win.candidate.features], case.weights[win.chosen_round - 1])[0]
    return totals


def by_gain(case: Case, bench: CuratorBench) -> Mapping[str, float]:
    """A broken control, the exact settlement: gains of J, in units of the largest of the first round."""
    target = case.weights[0] / np.linalg.norm(case.weights[0])
    wins, owners = bench.machine.ledger.wins, tuple(case.data)
    shares = settle(wins, (), owners, target, np.zeros(4, dtype=np.int64), 2)
    most = 2.0 / 3.0 + 1.0 / 9.0
    return {owner: share / most * UNITS for owner, share in shares.items()}


def moves(case: Case, rule: str, totals: Totals, **changes: Any) -> list[float]:
    """The nonzero changes of owners' totals by the extra record; `changes` as in `play`."""
    return moved(case, totals, both(case, rule, **changes))


def both(case: Case, rule: str, **changes: Any) -> tuple[CuratorBench, CuratorBench]:
    """The curator without the extra record, and with it."""
    return (
        play(case, rule, with_extra=False, **changes)[1],
        play(case, rule, with_extra=True, **changes)[1],
    )


def moved(case: Case, totals: Totals, benches: tuple[CuratorBench, CuratorBench]) -> list[float]:
    before, after = (totals(case, bench) for bench in benches)
    return [abs(after[owner] - before[owner]) for owner in case.data if after[owner] != before[owner]]


def bounded(found: list[float]) -> bool:
    return len(found) <= 2 and max(found, default=0) <= UNITS and math.hypot(*found) <= SENSITIVITY


def cases(seed: int, count: int) -> list[Case]:
    rng = np.random.default_rng(seed)
    return [case for case in (make_case(rng) for _ in range(count)) if case.weights[0].any()]


# A settlement is a function of what was bought, which is the same under every exact rule (test_lemma.py).
@pytest.mark.parametrize(
    "rule", [pytest.param(rule, marks=() if rule in QUICK else pytest.mark.slow) for rule in EXACT_RULES]
)
def test_one_record_moves_two_owners_at_most_by_a_point_each(rule: str) -> None:
    found = [moves(case, rule, private) for case in cases(18, 100)]
    assert all(map(bounded, found))
    # The bound is one that is reached: a point of one owner was taken in the place of another's, twice.
    assert max(math.hypot(*each) for each in found) == pytest.approx(SENSITIVITY, abs=1)


@pytest.mark.slow
@pytest.mark.parametrize("rule", EXACT_RULES)
def test_one_record_moves_two_owners_at_most_in_ten_thousand_cases(rule: str) -> None:
    assert all(bounded(moves(case, rule, private)) for case in cases(12, 10_000))


# With these seeds about one case in five shows the bug; of others, one in twenty.
@pytest.mark.parametrize(("totals", "seed"), [(by_round, 38), (by_gain, 20)])
def test_settlements_by_the_round_are_caught(totals: Totals, seed: int) -> None:
    broken = [case for case in cases(seed, 15) if not bounded(moves(case, "ask-all", totals))]
    assert broken
    assert all(bounded(moves(case, "ask-all", private)) for case in broken)


# -- disputes, and numbers that are used twice -----------------------------------------------------------


class SellsPairs(Player):
    """An attacker with one number for two points each, which hands over whichever it bids."""

    def number(self, row: int) -> int:
        return row // 2 + 1


class AsksEverybody(WinnerOnly):
    """The asked owners are fixed, as in the proof where a rule asks by coins."""

    def ask(self, stage: int, standings: Sequence[BidStanding], *_: Any) -> tuple[str, ...]:
        return () if stage else tuple(standing.owner for standing in standings)


def unaltered(bench: CuratorBench) -> None:
    """The curator as it is."""


def asking_everybody(bench: CuratorBench) -> None:
    bench.machine.selection._rule = AsksEverybody(
        WinnerOnly.Parameters(),
        owners=len(bench.session.owners),
        rounds=bench.session.session.points,
        delta=bench.session.session.delta,
    )


def without_refusals(bench: CuratorBench) -> None:
    """A broken control: the curator does not know what was handed over."""
    asking_everybody(bench)
    for seat in bench.machine.seats.values():
        seat.handed_over = Forgetful()


class Forgetful(set[int]):
    def update(self, *_: Iterable[int]) -> None:
        """Forget them."""


def with_disputes(disputes: Disputes) -> Totals:
    return lambda case, bench: private(case, bench, disputes)


@pytest.mark.parametrize(
    ("rule", "alter"), [*((rule, unaltered) for rule in WITH_BIDS), ("winner-only", asking_everybody)]
)
@pytest.mark.parametrize("attacker", [Player, SellsPairs])
def test_disputes_and_repeated_numbers_move_it_no_further(
    rule: str, alter: Callable[[CuratorBench], None], attacker: type[Player]
) -> None:
    for case in [*cases(14, 10), turning_disputes_round()]:
        played = both(case, rule, attacker=attacker, alter=alter)
        for disputes in (by_the_point, by_the_order):
            assert bounded(moved(case, with_disputes(disputes), played)), (disputes, case)


def turning_disputes_round() -> Case:
    """An attacker's a1, b1, a2, b2, in pairs with one number each, and the victim's y or nothing.

    a1, b1, a2, b2 are chosen in this order without y; with it y, b1, a1, b2: b comes before a in both pairs.
    y and both a are worth a whole point, both b nothing.
    """
    place = np.array([(1, 0, 0, 1), (-1, -1, 0, 0), (0, 1, 1, 0), (-1, 0, 0, -1), (1, 1, 0, 0)])
    points = (place * abs(corners()).max()).astype(np.int16)
    attacker, victim = names(2)
    first = weights_of(10_000, 10_000, 1000, 2000)
    return Case(
        data={attacker: points[:4], victim: points[:0]},
        extra=points[4],
        extra_owner=victim,
        weights=(first, weights_of(-2000, -2000, 0, 0), first, weights_of(-2000, 0, 0, -2000)),
        order=((attacker, victim),) * 4,
        late=frozenset(),
        delay=1,
        gone=frozenset(),
    )


def test_disputes_by_the_order_of_rounds_are_caught_where_numbers_are_sold_twice() -> None:
    case = turning_disputes_round()
    played = both(case, "winner-only", attacker=SellsPairs, alter=without_refusals)
    assert moved(case, with_disputes(by_the_order), played) == [2 * UNITS, UNITS]
    # Either remedy alone mends it.
    assert bounded(moved(case, with_disputes(by_the_point), played))
    assert moved(case, with_disputes(none), played) == [UNITS, UNITS]
    refusing = both(case, "winner-only", attacker=SellsPairs, alter=asking_everybody)
    assert all(len(bench.machine.ledger.refusals) == 1 for bench in refusing)
    assert bounded(moved(case, with_disputes(by_the_order), refusing))


WEIGHTS = st.lists(st.integers(-(2**24), 2**24), min_size=4, max_size=4)
ANY_FEATURES = st.lists(st.integers(-(2**15), 2**15 - 1), min_size=4, max_size=4)


@given(WEIGHTS, ANY_FEATURES)
def test_no_point_counts_less_than_nothing_or_more_than_a_whole(
    weights: list[int], features: list[int]
) -> None:
    # Forged features too, and of any length.
    first = np.array(weights, dtype=np.int32)
    (found,) = worths([np.array(features, dtype=np.int16)], first)
    assert type(found) is int
    assert 0 <= found <= UNITS


def test_a_point_counts_whole_from_half_of_the_weight_s_length_on() -> None:
    weights = np.array([3000, 4000, 0, 0], dtype=np.int32)
    whole = whole_score(weights)
    assert whole == 5000 * 2**14 + 1

    def worth_of(share: float) -> int:
        direction = np.array([0.6, 0.8, 0.0, 0.0]) * share * 2**15
        return worths([np.rint(direction).astype(np.int16)], weights)[0]

    assert worth_of(0.9) == worth_of(0.51) == UNITS
    assert worth_of(0.25) == pytest.approx(UNITS / 2, abs=2)
    assert worth_of(0.0) == worth_of(-0.5) == 0


def test_points_count_the_same_alone_and_among_any_others() -> None:
    rng = np.random.default_rng(16)
    dimension = 4096
    # The largest that weights can be, so that worths need more than 64 bits.
    weights = (rng.choice([-1, 1], size=dimension) * 2**30).astype(np.int32)
    angles = rng.uniform(0, 2 * np.pi, size=(1100, dimension // 2))
    features = np.rint(
        np.concatenate([np.cos(angles), np.sin(angles)], axis=1) * 2**15 * math.sqrt(2 / dimension)
    ).astype(np.int16)
    features[::2] += (np.sign(weights) * 100).astype(np.int16)
    whole = whole_score(weights)
    wanted = [
        min(max(int(row.astype(np.int64) @ weights.astype(np.int64)), 0), whole) * UNITS // whole
        for row in features
    ]
    assert worths(list(features), weights) == wanted
    assert worths(list(features[::-1]), weights) == wanted[::-1]
    assert [worths([row], weights)[0] for row in features[:20]] == wanted[:20]
    assert len(set(wanted)) > 100
    assert worths([], weights) == []


def test_the_sensitivity_is_the_root_of_two_points_rounded_up() -> None:
    assert (SENSITIVITY - 1) ** 2 < 2 * UNITS**2 <= SENSITIVITY**2
