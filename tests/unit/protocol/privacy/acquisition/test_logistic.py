"""`logistic`: its asks, charges and refusals, and that one record shifts a rank by at most one."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from hushbid.curator.round import Round
from hushbid.curator.selection.open import OpenSelection
from hushbid.protocol.errors import ConfigError, ExitCode
from hushbid.protocol.privacy.accounting import ask_epsilon, epsilon_of
from hushbid.protocol.privacy.acquisition import AcquisitionRule, BidStanding, Logistic, acquisition_rule
from hushbid.protocol.privacy.acquisition.ranks import bid_ranks
from hushbid.protocol.privacy.releases import Neighbours
from hushbid.protocol.session.session import open_session
from hushbid.protocol.space.grid import Scores, Weights, exact_scores, round_weights
from hushbid.protocol.space.scoring import NO_SCORE, Pool
from hushbid.protocol.wire.bids import PointBid
from hushbid.protocol.wire.messages import Ask, Broadcast, Offer, unfixed
from tests.simulation.harness import CuratorBench, candidate_of, names, session_file
from tests.simulation.lemma import make_case, play
from tests.support.exact_points import round_features
from tests.support.session_files import load

DELTA = 1e-5
SETTINGS = [(1.0, 3000, 30, DELTA), (3.0, 500, 30, DELTA), (1.0, 5000, 1000, 1e-6), (4.0, 200, 1, 1e-4)]


def logistic(epsilon: float = 1.0, owners: int = 3000, rounds: int = 30, delta: float = DELTA) -> Logistic:
    rule = acquisition_rule("logistic", {"epsilon": epsilon}, owners=owners, rounds=rounds, delta=delta)
    assert isinstance(rule, Logistic)
    return rule


def ask(rule: AcquisitionRule, coins: dict[int, float], standings: list[BidStanding], stage: int = 0) -> Any:
    noise = np.ones(rule.owners)
    for position, coin in coins.items():
        noise[position] = coin
    return rule.ask(stage, standings, frozenset(), (noise,))


# -- probabilities --------------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_rank_is_asked_with_the_probability_of_the_curve(setting: tuple[float, int, int, float]) -> None:
    rule = logistic(*setting)
    ranks = np.arange(1, rule.owners + 1)
    curve = 1.0 / (1.0 + np.exp(np.minimum(rule.slope * (ranks - rule.middle), 700.0)))
    floor = 2.0**-26
    np.testing.assert_allclose(rule.probabilities, np.maximum(curve, floor), rtol=1e-7)
    # Rounded up, to what a coin of 53 bits can have.
    coins = rule.probabilities * 2.0**53
    assert (coins == np.rint(coins)).all()
    assert (rule.probabilities >= curve * (1.0 - 1e-12)).all()
    assert (np.diff(rule.probabilities) <= 0.0).all()


def test_the_coin_below_the_probability_asks_and_the_probability_itself_does_not() -> None:
    rule = logistic()
    for rank in (1, round(rule.middle), 3000):
        probability = rule.probabilities[rank - 1]
        standing = BidStanding("someone", 0, 1, position=7, rank=rank)
        assert ask(rule, {7: probability - 2.0**-53}, [standing]) == ("someone",)
        assert ask(rule, {7: probability}, [standing]) == ()


def test_a_coin_serves_its_owner_for_the_whole_round() -> None:
    rule = logistic()
    middle = round(rule.middle)
    coin = {4: float(rule.probabilities[middle - 1])}
    assert ask(rule, coin, [BidStanding("b", 0, 1, position=4, rank=middle)]) == ()
    # Those ahead of it did not deliver, and so it moved up.
    assert ask(rule, coin, [BidStanding("b", 0, 1, position=4, rank=middle - 1)], stage=1) == ("b",)


def test_nobody_is_asked_for_a_point_that_is_there() -> None:
    rule = logistic()
    standing = BidStanding("b", 0, 1, position=4, rank=1)
    assert rule.ask(1, [standing], frozenset({"b"}), (np.zeros(rule.owners),)) == ()


# -- what is charged ------------------------------------------------------------------------------------


def log_odds(probability: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    coins = probability * 2.0**53
    return np.log(coins / (2.0**53 - coins))


@pytest.mark.parametrize("setting", SETTINGS)
def test_the_charged_range_covers_the_rounded_probabilities(setting: tuple[float, int, int, float]) -> None:
    epsilon, _, rounds, delta = setting
    rule = logistic(*setting)
    steps = np.abs(np.diff(log_odds(rule.probabilities)))
    assert steps.max() <= rule.eta <= ask_epsilon(epsilon, 0.75 * delta, rounds)
    (cost,) = rule.costs()
    assert (cost.eta, cost.count) == (rule.eta, rounds)  # type: ignore[union-attr]


def test_a_curve_without_a_floor_would_not_be_covered() -> None:
    rule = logistic()
    ranks = np.arange(1, rule.owners + 1)
    curve = 1.0 / (1.0 + np.exp(np.minimum(rule.slope * (ranks - rule.middle), 700.0)))
    coins = np.ceil(curve * 2.0**53)
    assert np.abs(np.diff(log_odds(coins * 2.0**-53))).max() > 2 * rule.eta


@pytest.mark.parametrize("setting", SETTINGS)
def test_misses_take_a_tenth_of_delta_and_r0_is_the_smallest_for_it(
    setting: tuple[float, int, int, float],
) -> None:
    _, _, rounds, delta = setting
    rule = logistic(*setting)

    def failure(middle: float) -> float:
        return rounds / (1.0 + math.exp(rule.slope * (middle - 1.0)))

    charged = 1.0 + math.exp(rule.eta)
    most = min(delta / 10, delta / 4 / charged)
    assert rule.failure <= most * (1 + 1e-9)
    assert failure(rule.middle) == pytest.approx(most, rel=1e-6)
    assert failure(rule.middle - 0.01) > most
    assert rule.slack[1] == pytest.approx(rule.failure * charged)
    assert rule.slack[0] == pytest.approx(rule.failure, rel=1e-4)


@pytest.mark.parametrize("setting", SETTINGS)
def test_asks_and_misses_together_meet_the_epsilon_of_the_file(
    setting: tuple[float, int, int, float],
) -> None:
    epsilon, _, _, delta = setting
    rule = logistic(*setting)
    more_epsilon, more_delta = rule.slack
    assert 0.95 * epsilon < more_epsilon + epsilon_of(rule.costs(), delta - more_delta) <= epsilon


def test_the_figures_of_one_setting() -> None:
    # ρ of 30 rounds at ε = 1 and δ = 7.5e-6: η²/8 each; ln(30·10/δ)/η ranks until p·q is δ/10.
    rule = logistic()
    assert rule.eta == pytest.approx(0.0889, abs=1e-4)
    assert rule.middle == pytest.approx(194.7, abs=0.1)
    assert rule.expected_points == pytest.approx(30 * 194.2, abs=5)
    assert rule.expected_points < 30 * (rule.middle + math.log(2) / rule.eta)


def test_the_owners_statement_is_of_releases_and_asks_together() -> None:
    gaussian = {"mechanism": "gaussian", "epsilon": 2.0, "neighbours": "add-remove-one"}
    changes = {
        "session.points": 30,
        "summary": gaussian,
        "roster.owners": dict.fromkeys(names(300), ""),
    }
    alone = open_session(load(changes)).privacy()[0]
    session = open_session(load(changes | {"acquisition": {"rule": "logistic", "epsilon": 3.0}}))
    stated = session.privacy()[0]
    assert alone.epsilon is not None
    assert stated.epsilon is not None
    assert (stated.delta, stated.neighbours) == (alone.delta, alone.neighbours)
    more_epsilon, more_delta = session.rule.slack
    costs = (*session.summary.costs(neighbours=Neighbours.ADD_REMOVE_ONE), *session.rule.costs())
    assert stated.epsilon == more_epsilon + epsilon_of(costs, stated.delta - more_delta)
    # More than either, and less than their sum at half of δ each.
    asks = epsilon_of(session.rule.costs(), stated.delta / 2)
    releases = epsilon_of(session.summary.costs(neighbours=Neighbours.ADD_REMOVE_ONE), stated.delta / 4)
    assert max(alone.epsilon, 3.0) < stated.epsilon < asks + releases
    # Nobody's data but the owners' is concerned.
    assert session.privacy()[1] == open_session(load(changes)).privacy()[1]


# -- refusals -------------------------------------------------------------------------------------------


def refusal(**given: Any) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        logistic(**given)
    assert caught.value.exit_code is ExitCode.USAGE
    return caught.value


def test_few_owners_are_refused_with_the_numbers_and_what_is_right_for_them() -> None:
    error = refusal(epsilon=1.0, owners=194, rounds=30)
    for number in ("194 owners", "epsilon = 1", "delta = 1e-05", "30 rounds", "r0 = 195"):
        assert number in error.what
    assert "sealed" in error.advice
    assert "ask-all" in error.advice
    logistic(epsilon=1.0, owners=195, rounds=30)


def test_coins_that_are_too_coarse_are_refused() -> None:
    assert "53 bits" in refusal(epsilon=0.01, owners=10_000, rounds=1_000_000, delta=1e-10).what


@pytest.mark.parametrize("parameters", [{}, {"epsilon": 0.0}, {"epsilon": math.inf}, {"epsilon": "1"}])
def test_epsilon_is_asked_for_and_has_no_default(parameters: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"acquisition\.epsilon"):
        acquisition_rule("logistic", parameters, owners=3000, rounds=30, delta=DELTA)


# -- ranks ----------------------------------------------------------------------------------------------


def test_owners_are_counted_and_not_points_and_never_an_owner_against_itself() -> None:
    none = NO_SCORE
    bids = np.array([5, 5, 3, none, none, -2])
    pooled = np.array([9, none, 4, 6, none, none])
    # Of 5: the pools of owners 0 (but for itself) and 3; a bid of the same score is not ahead.
    assert bid_ranks(bids, pooled).tolist() == [2, 3, 4, 0, 0, 5]


RankRule = Callable[[Scores, Scores, list[list[int]]], npt.NDArray[np.intp]]


def against_best_unselected(bids: Scores, pooled: Scores, _points: list[list[int]]) -> npt.NDArray[np.intp]:
    return bid_ranks(bids, pooled)


def against_new_bids(bids: Scores, _pooled: Scores, _points: list[list[int]]) -> npt.NDArray[np.intp]:
    """A broken control: the pool does not count."""
    return bid_ranks(bids, np.full_like(bids, NO_SCORE))


def against_all_points(bids: Scores, _pooled: Scores, points: list[list[int]]) -> npt.NDArray[np.intp]:
    """A broken control: every point counts, new or pooled, instead of every owner."""
    better = [
        sum(score > bid for other, scores in enumerate(points) if other != owner for score in scores)
        + sum(score > bid for other, score in enumerate(bids) if other != owner)
        for owner, bid in enumerate(bids)
    ]
    return np.where(bids > NO_SCORE, np.array(better) + 1, 0)


def by_order_of_owners(bids: Scores, pooled: Scores, _points: list[list[int]]) -> npt.NDArray[np.intp]:
    """A broken control: among equal scores, the owner that comes first is ahead."""
    best = np.maximum(bids, pooled)
    ahead = [
        sum(
            score > bid or (score == bid > NO_SCORE and other < owner)
            for other, score in enumerate(best)
            if other != owner
        )
        for owner, bid in enumerate(bids)
    ]
    return np.where(bids > NO_SCORE, np.array(ahead) + 1, 0)


@dataclass(frozen=True)
class Game:
    """The fixed part to which one record is added: releases, absences, and the watcher's view (owner 0)."""

    data: tuple[tuple[int, ...], ...]
    """Per owner, its points: φ by number, from a palette of few."""
    extra: int
    extra_owner: int
    scores: npt.NDArray[np.int64]
    """Per round and φ."""
    present: npt.NDArray[np.bool_]
    """Per round and owner."""
    asked: npt.NDArray[np.bool_]
    """Per round, whether the watcher is asked."""


def make_game(rng: np.random.Generator) -> Game:
    """A small game with ties, absences, exhausted owners and owners without points."""
    owners, rounds, palette = int(rng.integers(2, 7)), int(rng.integers(2, 10)), int(rng.integers(2, 9))
    most = int(rng.integers(2, 7))
    return Game(
        data=tuple(
            tuple(rng.integers(0, palette, size=int(rng.integers(0, most))).tolist()) for _ in range(owners)
        ),
        extra=int(rng.integers(palette)),
        extra_owner=int(rng.integers(1, owners)),
        scores=rng.integers(-4, 5, size=(rounds, palette)),
        present=rng.random((rounds, owners)) < 0.8,
        asked=rng.random(rounds) < 0.5,
    )


@dataclass
class Course:
    """A game up to a round that missed the best point, and its own ranks."""

    ranks: list[tuple[int, int]]
    """Of the watcher, per round: its bid's score and rank; 0, 0 without a bid."""
    best_bids: list[int]
    """Ranks of best available points that were bids."""


def run_game(game: Game, rng: np.random.Generator, ranks_of: RankRule, *, with_extra: bool) -> Course:
    """Play a game. Owners besides the watcher are asked at random, and whenever their bid is the best."""
    data = [list(points) for points in game.data]
    if with_extra:
        data[game.extra_owner].append(game.extra)
    handed: list[set[int]] = [set() for _ in data]
    selected: set[tuple[int, int]] = set()
    course = Course([], [])
    for scores, present, watcher_asked in zip(game.scores, game.present, game.asked, strict=True):
        here = [owner for owner in range(len(data)) if present[owner]]

        def place(entry: tuple[int, int], scores: Any = scores) -> tuple[int, int, int, int]:
            owner, row = entry
            return -int(scores[data[owner][row]]), data[owner][row], owner, row

        bid_of: dict[int, tuple[int, int]] = {}
        bids, pooled = np.full(len(data), NO_SCORE), np.full(len(data), NO_SCORE)
        points: list[list[int]] = [[] for _ in data]
        for owner in here:
            left = [(owner, row) for row in range(len(data[owner])) if row not in handed[owner]]
            if left:
                bid_of[owner] = min(left, key=place)
                bids[owner] = -place(bid_of[owner])[0]
            points[owner] = [-place((owner, row))[0] for row in handed[owner] if (owner, row) not in selected]
            pooled[owner] = max(points[owner], default=NO_SCORE)
        ranks = ranks_of(bids, pooled, points)
        course.ranks.append((int(bids[0]), int(ranks[0])) if 0 in bid_of else (0, 0))
        unselected = [
            (owner, row) for owner in here for row in range(len(data[owner])) if (owner, row) not in selected
        ]
        if not unselected:
            continue
        best = min(unselected, key=place)
        if bid_of.get(best[0]) == best:
            course.best_bids.append(int(ranks[best[0]]))
        for owner, (_, row) in bid_of.items():
            coin = watcher_asked if owner == 0 else rng.random() < 0.4 or bid_of[owner] == best
            if coin:
                handed[owner].add(row)
        if best[1] not in handed[best[0]]:
            break  # a miss: it is charged, and nothing is claimed for what follows
        selected.add(best)
    return course


def shifts(ranks_of: RankRule, *, seed: int, games: int) -> list[int]:
    """The differences of the watcher's rank between D and D', in all rounds of all games."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(games):
        game = make_game(rng)
        without, including = (run_game(game, rng, ranks_of, with_extra=extra) for extra in (False, True))
        for (score, rank), (score_, rank_) in zip(without.ranks, including.ranks, strict=False):
            assert score == score_, "what the watcher saw decides its bid"
            found.append(rank_ - rank)
    return found


def test_one_record_of_another_owner_shifts_a_rank_by_at_most_one() -> None:
    # Others' coins differ between D and D' as they like, and so does what they brought into the pool.
    found = shifts(against_best_unselected, seed=1, games=1500)
    assert set(found) == {0, 1}
    assert found.count(1) > 100


@pytest.mark.parametrize("broken", [against_new_bids, against_all_points])
def test_the_games_catch_ranks_against_anything_else(broken: RankRule) -> None:
    assert max(map(abs, shifts(broken, seed=2, games=500))) > 1


def best_bids(ranks_of: RankRule) -> set[int]:
    rng = np.random.default_rng(3)
    return {
        rank
        for _ in range(500)
        for rank in run_game(make_game(rng), rng, ranks_of, with_extra=True).best_bids
    }


def test_the_best_available_point_has_rank_one_if_it_is_a_bid() -> None:
    assert best_bids(against_best_unselected) == {1}


def test_ties_by_order_of_owners_would_put_it_lower() -> None:
    assert max(best_bids(by_order_of_owners)) > 1


def test_the_pool_knows_every_owners_best_score() -> None:
    rng = np.random.default_rng(4)
    for _ in range(100):
        features = round_features(rng.uniform(-0.4, 0.4, size=(int(rng.integers(0, 60)), 6)))
        weights = (rng.integers(-3, 4, size=6) * int(rng.choice([1, 2**20]))).astype(np.int32)
        ranks = rng.integers(0, 5, size=len(features))
        pool = Pool(6, norm_bound=1.1)
        pool.extend(features, ranks)
        out = set(np.flatnonzero(rng.random(len(features)) < 0.3).tolist())
        for entry in out:
            pool.withdraw(entry)
        withheld = rng.random(5) < 0.3
        wanted = [
            max(
                (
                    int(exact_scores(features[entry][None], weights)[0])
                    for entry in range(len(features))
                    if ranks[entry] == owner and entry not in out and not withheld[owner]
                ),
                default=NO_SCORE,
            )
            for owner in range(5)
        ]
        assert pool.best_scores(weights, 5, withheld=withheld).tolist() == wanted
        if not withheld.any():
            assert pool.best_scores(weights, 5).tolist() == wanted


# -- the curator ----------------------------------------------------------------------------------------


def test_the_curators_ranks_are_against_others_data_without_the_summary(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The definition, from the owners' data and S alone, without what was asked for."""
    seen: list[tuple[OpenSelection, dict[str, tuple[int, int]]]] = []

    def look(selection: OpenSelection, current: Round, given: Mapping[str, PointBid]) -> npt.NDArray[np.intp]:
        ranks = original(selection, current, given)
        bids = {
            owner: (bid.score, int(ranks[selection._seats[owner].rank]))
            for owner, bid in given.items()
            if not bid.exhausted
        }
        present = set(given)
        left = {owner: list(map(bytes, data[owner])) for owner in present}
        for win in selection._ledger.wins:
            if win.owner in present:
                left[win.owner].remove(win.candidate.features.tobytes())
        weights = current.weights
        assert weights is not None
        best = {
            owner: max((score(point, weights) for point in left[owner]), default=NO_SCORE) for owner in left
        }
        for owner, (bid, rank) in bids.items():
            assert rank == 1 + sum(best[other] > bid for other in present if other != owner)
        seen.append((selection, bids))
        return ranks

    def score(point: bytes, weights: Weights) -> int:
        return int(np.frombuffer(point, dtype=np.int16).astype(np.int64) @ weights.astype(np.int64))

    original = OpenSelection._ranks
    monkeypatch.setattr(OpenSelection, "_ranks", look)
    monkeypatch.setattr("hushbid.protocol.privacy.acquisition.published.Published.ranked", True)
    rng = np.random.default_rng(5)
    for _ in range(40):
        case = make_case(rng)
        data = {owner: [row.tobytes() for row in rows] for owner, rows in case.data.items()}
        data[case.extra_owner].append(case.extra.tobytes())
        play(case, "published", with_extra=True)
    ranks = [rank for _, bids in seen for _, rank in bids.values()]
    assert max(ranks) > 2
    assert any(selection.pool._withdrawn.entries.size for selection, _ in seen)


def market(owners: int, rounds: int, points: int, seed: int) -> tuple[CuratorBench, list[bytes]]:
    """A session of the curator's real machine, and the greedy points."""
    rng = np.random.default_rng(seed)
    session = session_file(owners=names(owners), points=rounds, rule="logistic", epsilon=3.0)
    bench = CuratorBench(session)
    angles = rng.uniform(0, 2 * np.pi, size=(owners, points, 2))
    features = round_features(np.concatenate([np.cos(angles), np.sin(angles)], axis=2) * math.sqrt(0.5))
    target = np.array([0.3, -0.1, 0.2, 0.25])
    row_of = {owner: row for row, owner in enumerate(bench.machine.owners)}
    free = np.ones((owners, points), dtype=np.bool_)
    available = np.ones((owners, points), dtype=np.bool_)
    greedy: list[bytes] = []
    total = np.zeros(4, dtype=np.int64)
    bench.enrol()
    for number in range(1, rounds + 1):
        weights = round_weights(target - total * 2.0**-15 / (number + 2))
        weights.flags.writeable = False
        bench.broadcast(weights)
        scores = (features.reshape(-1, 4) @ weights.astype(np.int64)).reshape(owners, points)
        best = np.unravel_index(np.argmax(np.where(available, scores, NO_SCORE)), available.shape)
        available[best] = False
        total = total + features[best]
        greedy.append(features[best].tobytes())
        own = np.argmax(np.where(free, scores, NO_SCORE), axis=1)
        for owner, row in row_of.items():
            mine = int(own[row])
            bid = bench.bid(number, features[row, mine], mine + 1, weights)
            bench.say(owner, bid if free[row, mine] else bench.no_bid(number))
        while bench.machine.phase in ("verifying", "asking"):
            for owner in bench.machine.current.asked if bench.machine.phase == "asking" else ():
                answer(bench, owner, features[row_of[owner]], free[row_of[owner]])
            bench.verify_all()
    return bench, greedy


def answer(bench: CuratorBench, owner: str, features: npt.NDArray[np.int16], free: Any) -> None:
    request = bench.last(owner)
    assert isinstance(request, Ask)
    row = unfixed(request.handle) - 1
    free[row] = False
    bench.say(
        owner,
        Offer.model_construct(
            round=request.round, handle=request.handle, candidate=candidate_of(features[row])
        ),
    )


def test_three_thousand_owners_are_not_all_asked_and_the_choice_is_greedy() -> None:
    bench, greedy = market(owners=3000, rounds=5, points=3, seed=6)
    assert bench.machine.phase == "delivering"
    asked = [sum(isinstance(m, Ask) for m in bench.inbox[owner]) for owner in bench.machine.owners]
    assert bench.chosen == greedy
    assert not bench.machine.ledger.absences
    assert 0 < sum(count > 0 for count in asked) < 800
    assert sum(asked) == bench.machine.ledger.points_accessed <= 1.2 * bench.rule.expected_points
    # Nobody is left out of a round because of its rank.
    assert all(
        sum(isinstance(m, Broadcast) for m in bench.inbox[owner]) == 5 for owner in bench.machine.owners
    )
