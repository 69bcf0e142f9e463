"""What a curator can learn from its record of a `blind` session, compared with `sealed` (docs/privacy.md).

Four attacks: distances between points, picking a record out of a list with known points beside it, aligning a
cloud of points with a cloud of rows, and, with a colluding owner, solving for φ. Sessions use scikit-learn's
digits, with 4 owners, fifty rounds and releases at ε = 1. Owners that send all scores, or unmasked scores,
are the controls: they reveal more. Seeds are fixed; nothing here fails by chance.
"""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.optimize import linear_sum_assignment, quadratic_assignment
from scipy.stats import norm, rankdata

from hushbid.protocol.space.grid import exact_scores
from hushbid.protocol.space.scoring import score_bound
from tests.statistics.blind_sessions import EARLY, GAMMA, NOTHING, Blind, blind, sealed

Matrix = npt.NDArray[Any]


# -- what the attacker makes of its record ----------------------------------------------------------------


def early(session: Blind, count: int = 160) -> Matrix:
    """Early boxes of different points, without the latest of each owner."""
    rows = np.flatnonzero(session.came <= EARLY)
    _, where = np.unique(session.features[rows], axis=0, return_index=True)
    return rows[np.sort(where)][:count]


def views(session: Blind, rows: Matrix) -> dict[str, Matrix]:
    """Complete matrices of the rounds from `EARLY` on: by value and by rank, each round on one scale.

    A score that was not sent is lower than all that its owner sent; half of the remaining range is used.
    """
    rounds = range(EARLY - 1, session.masked.shape[1])
    found: dict[str, list[Matrix]] = {"value": [], "quantile": []}
    for number in rounds:
        here = session.came <= number + 1
        column = session.masked[here, number]
        there = column != NOTHING
        known = np.array([float(each) for each in column[there]])
        middle, spread = known.mean(), known.std()
        values, ranks = np.full(len(column), np.nan), np.full(len(column), np.nan)
        values[there] = (known - middle) / spread
        ranks[there] = rankdata(known) + (~there).sum()
        for owner in np.unique(session.owner):
            mine = session.owner[here] == owner
            if (mine & ~there).any():
                values[mine & ~there] = values[mine & there].min() - 0.5
                ranks[mine & ~there] = ranks[mine & there].min() / 2
        for name, made in (("value", values), ("quantile", norm.ppf(ranks / (len(ranks) + 1)))):
            whole = np.full(len(session.came), np.nan)
            whole[here] = made
            found[name].append(whole[rows])
    return {name: np.column_stack(columns) for name, columns in found.items()}


def whitened(values: Matrix, count: int) -> Matrix:
    """The first principal components, scaled to equal deviation."""
    u, _, _ = np.linalg.svd(values - values.mean(axis=0), full_matrices=False)
    return np.asarray(u[:, :count])


def squares(first: Matrix, second: Matrix) -> Matrix:
    """Squared distances."""
    found = (first**2).sum(1)[:, None] + (second**2).sum(1)[None] - 2 * first @ second.T
    return np.asarray(np.maximum(found, 0.0))


def estimates(session: Blind, rows: Matrix) -> dict[str, Matrix]:
    """Squared distances between points as the attacker may estimate them."""
    made = {}
    for name, values in views(session, rows).items():
        made[name] = squares(values, values)
        for count in (5, 10, 20):
            made[f"{name} {count}"] = squares(whitened(values, count), whitened(values, count))
    return made


def kernel(first: Matrix, second: Matrix) -> Matrix:
    return np.asarray(np.exp(-GAMMA * squares(first, second)))


# -- distances --------------------------------------------------------------------------------------------


def judged(estimate: Matrix, features: Matrix) -> tuple[float, float]:
    """The correlation of distances with the true ones, and how often the nearest neighbour is found."""
    true = squares(features.astype(float), features.astype(float))
    upper = np.triu_indices(len(true), 1)
    correlation = np.corrcoef(np.sqrt(estimate[upper]), np.sqrt(true[upper]))[0, 1]
    inf = np.diag(np.full(len(true), np.inf))
    nearest = (estimate + inf).argmin(axis=1) == (true + inf).argmin(axis=1)
    return float(correlation), float(nearest.mean())


def distances(kind: str) -> tuple[float, float]:
    """The best correlation and the best recall that an attacker has."""
    session = blind(kind)
    rows = early(session)
    found = [judged(each, session.features[rows]) for each in estimates(session, rows).values()]
    return max(one for one, _ in found), max(other for _, other in found)


# -- known points and a list ------------------------------------------------------------------------------


def listed(values: Matrix, points: Matrix, *, known: int, listed: int = 40, trials: int = 60) -> float:
    """How often a row is picked out of a list, by regression of scores on rows that are known."""
    rng = np.random.default_rng(0)
    similar = kernel(points, points)
    y = (values - values.mean(axis=0)) / (values.std(axis=0) + 1e-12)
    hits = 0
    for _ in range(trials):
        drawn = rng.permutation(len(points))
        have, others = drawn[:known], drawn[known : known + listed]
        mean = y[have].mean(axis=0)
        inner = similar[np.ix_(have, have)] + 0.1 * np.eye(known)
        guess = similar[np.ix_(others, have)] @ np.linalg.solve(inner, y[have] - mean) + mean
        hits += int(((guess - y[others[0]]) ** 2).sum(axis=1).argmin() == 0)
    return hits / trials


def listed_by_features(features: Matrix, points: Matrix, *, known: int, trials: int = 60) -> float:
    """The same by distances, which `sealed` gives."""
    rng = np.random.default_rng(0)
    inner, similar = features.astype(float) @ features.astype(float).T * 2.0**-30, kernel(points, points)
    hits = 0
    for _ in range(trials):
        drawn = rng.permutation(len(points))
        have, others = drawn[:known], drawn[known : known + 40]
        misfit = (similar[np.ix_(others, have)] - inner[others[0], have]) ** 2
        hits += int(misfit.sum(axis=1).argmin() == 0)
    return hits / trials


# -- clouds -----------------------------------------------------------------------------------------------


def on_one_scale(similarity: Matrix) -> Matrix:
    """Similarities as normal quantiles of their ranks."""
    upper = np.triu_indices(len(similarity), 1)
    out = np.zeros_like(similarity)
    out[upper] = norm.ppf(rankdata(similarity[upper]) / (len(upper[0]) + 1))
    return np.asarray(out + out.T)


def aligned(similarity: Matrix, points: Matrix) -> float:
    """The share of rows that are matched to their points, if the attacker has them all, shuffled."""
    order = np.random.default_rng(1).permutation(len(points))
    ours, theirs = on_one_scale(similarity), on_one_scale(kernel(points[order], points[order]))
    profiles = [np.sort(each, axis=1) for each in (ours, theirs)]
    rows, columns = linear_sum_assignment(squares(*profiles))
    start = np.full(ours.shape, 0.5 / len(points))
    start[rows, columns] += 0.5
    tried = [
        quadratic_assignment(
            ours, theirs, method="faq", options={"maximize": True, "P0": first, "maxiter": 50}
        )
        for first in (start, "barycenter")
    ]
    best = max(tried, key=lambda each: float(each.fun))
    return float(np.mean(order[best.col_ind] == np.arange(len(points))))


# -- with an owner that colludes --------------------------------------------------------------------------


def unmasked(session: Blind, box: int) -> tuple[Matrix, Matrix]:
    """With weights and key: the rounds in which a box has a score, and these scores."""
    numbers, scores = [], []
    for number in np.flatnonzero(session.masked[box] != NOTHING):
        weights = session.weights[number]
        bound = score_bound(weights, session.session.space.coordinate_bound, session.session.jitter)
        mask = session.keys.mask(int(number) + 1, bound)
        zero = int.from_bytes(mask.of_nothing, "big")
        scores.append((session.masked[box, number] - zero) // mask._scale - bound - 1)
        numbers.append(number)
    return np.array(numbers), np.array(scores)


def regressed(session: Blind, *, count: int = 40) -> float:
    """The median relative error of φ, from the scores of early points and prior knowledge of φ."""
    prior = session.features[session.owner == 0].astype(float) * 2.0**-15
    root = np.linalg.cholesky(np.cov(prior.T) + 1e-9 * np.eye(prior.shape[1]))
    mean, errors = prior.mean(axis=0), []
    for box in np.flatnonzero((session.owner > 0) & (session.came <= 5))[:count]:
        numbers, scores = unmasked(session, box)
        weights, known = session.weights[numbers] * 2.0**-22, scores.astype(float) * 2.0**-37
        found = mean + root @ np.linalg.lstsq(weights @ root, known - weights @ mean, rcond=1e-13)[0]
        true = session.features[box] * 2.0**-15
        errors.append(np.linalg.norm(found - true) / np.linalg.norm(true))
    return float(np.median(errors))


# -- what they come to ------------------------------------------------------------------------------------


def known_points(session: Blind, known: int) -> float:
    """The best rate with a list of 40."""
    rows = early(session)
    return max(listed(each, session.rows[rows], known=known) for each in views(session, rows).values())


def of_sealed(count: int = 160) -> tuple[Matrix, Matrix]:
    """φ and rows of as many different early points."""
    session = sealed()
    rows = np.unique(session.features, axis=0, return_index=True)[1][:count]
    return session.features[rows], session.rows[rows]


def test_sealed_gives_distances_and_blind_gives_some_of_them() -> None:
    features, _ = of_sealed()
    correlation, recall = judged(squares(features.astype(float), features.astype(float)), features)
    assert correlation > 0.999
    assert recall == 1.0
    correlation, recall = distances("as built")
    assert correlation < 0.55
    assert recall < 0.45
    # Chance is 1 of 159: what is left is not nothing, and the page says so.
    assert recall > 0.1


def test_all_scores_tell_more_of_distances_than_those_that_matter() -> None:
    assert all(
        more > less + 0.03 for more, less in zip(distances("all scores"), distances("as built"), strict=True)
    )


def test_with_known_points_a_row_is_picked_out_of_a_list_and_under_blind_less_often() -> None:
    features, points = of_sealed()
    for known, least, most in ((10, 0.8, 0.2), (100, 0.95, 0.6)):
        assert listed_by_features(features, points, known=known) > least
        assert known_points(blind(), known) < most
    assert known_points(blind(), 100) > 5 / 40, "it works in part, as the page says"


@pytest.mark.slow
def test_clouds_are_aligned_under_sealed_and_not_under_blind() -> None:
    features, points = of_sealed()
    assert aligned(features.astype(float) @ features.astype(float).T, points) > 0.9
    session = blind()
    rows = early(session)
    found = [aligned(-each, session.rows[rows]) for each in estimates(session, rows).values()]
    assert max(found) < 0.06, "chance is 1 of 160, and the best of eight tries counts"


def test_a_colluding_owner_solves_for_features_where_all_scores_are_sent() -> None:
    # 20 features, and an early point has 21 scores or more of 25 rounds.
    assert regressed(blind("all scores", dimension=20, rounds=25)) < 1e-9
    assert regressed(blind("as built", dimension=20, rounds=25)) > 0.4


@pytest.mark.slow
def test_more_rounds_tell_a_colluding_owner_more_and_more_features_less() -> None:
    few = [regressed(blind(dimension=20, rounds=rounds)) for rounds in (12, 25, 50)]
    assert few[0] > few[1] > few[2] > 0.3
    # With more features than rounds not even all scores determine them.
    assert regressed(blind("all scores")) > 0.4
    assert regressed(blind()) > few[2]


def scales(session: Blind) -> tuple[Matrix, Matrix]:
    """For each round the mask's slope, and the mask of 0."""
    found = []
    for number, weights in enumerate(session.weights):
        sent = np.flatnonzero(session.masked[:, number] != NOTHING)
        masked = [int(each) for each in session.masked[sent, number]]
        true = exact_scores(session.features[sent], weights).tolist()
        high, low = int(np.argmax(true)), int(np.argmin(true))
        scale = (masked[high] - masked[low]) / (true[high] - true[low])
        found.append((scale, masked[high] - scale * true[high]))
    slopes, offsets = np.array(found).T
    return slopes, offsets


def test_without_a_mask_scores_are_found_to_be_in_the_clear() -> None:
    slopes, offsets = scales(blind("open"))
    assert np.allclose(slopes, 1.0)
    assert np.ptp(offsets) < 2.0**30, "what float64 rounds away of an offset of 2^80"
    slopes, offsets = scales(blind())
    assert slopes.max() / slopes.min() > 1.7
    assert len(set(offsets)) == len(offsets)
    # The offset is far larger than all scores together, so that it tells nothing of their size.
    assert np.ptp(offsets) > 2.0**120 > 2.0**15 * slopes.max() * 2.0**40


def test_differences_of_masked_scores_have_no_common_divisor() -> None:
    def divisor(session: Blind, number: int) -> int:
        sent = [int(each) for each in session.masked[:, number] if each != NOTHING]
        return reduce(math.gcd, (each - sent[0] for each in sent[1:]))

    assert [divisor(blind(), number) for number in range(5)] == [1] * 5
