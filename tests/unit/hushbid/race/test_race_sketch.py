"""Sketches: counts, estimates from them, streams and sums."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial, reduce
from typing import Any, get_args

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from hushbid.protocol.errors import ConfigError, DataError
from hushbid.protocol.privacy.accounting import ApproximateCost
from hushbid.protocol.privacy.noise import Draw, NoiseSource, SimulatedNoise
from hushbid.protocol.privacy.releases import Neighbours
from hushbid.protocol.space.lsh import HashFamily
from hushbid.race import (
    RaceClassifier,
    RaceDensity,
    RaceSketch,
    Sketch,
    calibrate,
    count_cells,
    make_family,
    optimal_rows,
)
from hushbid.race.sketch import How

Points = npt.NDArray[np.float64]

PUBLIC: dict[str, Any] = {"lower": 0.0, "upper": 1.0, "rows": 50, "bandwidth": 0.3, "random_state": 1}


def private(seed: int = 1) -> dict[str, Any]:
    return {
        "epsilon": 1.0,
        "neighbours": "add-remove-one",
        "noise": partial(SimulatedNoise, seed, "owner"),
    }


def points(count: int = 500, columns: int = 2, seed: int = 0) -> Points:
    return np.random.default_rng(seed).beta(2.0, 5.0, (count, columns))


def family(**changed: Any) -> HashFamily:
    common: dict[str, Any] = {"name": "l2", "rows": 50, "width": 64, "seed": 1, "bandwidth": 0.3}
    return make_family(**common | {"lower": [0.0, 0.0], "upper": [1.0, 1.0]} | changed)


def noise(functions: HashFamily, *, epsilon: float = 1.0, seed: int = 1, **changed: Any) -> Sketch:
    calibration = calibrate(
        rows=functions.rows,
        cells=int(functions.cells.sum()),
        epsilon=epsilon,
        **{"neighbours": Neighbours.ADD_REMOVE_ONE} | changed,
    )
    return Sketch.empty(functions, calibration, SimulatedNoise(seed, "owner"))


def noisy(functions: HashFamily, x: Points, **changed: Any) -> Sketch:
    return noise(functions, **changed).add(x)


def many_noisy(functions: HashFamily, x: Points, seeds: int, **changed: Any) -> list[Sketch]:
    """`noisy` of each seed; points are counted once."""
    counted = exact(functions, x)
    drawn = [noise(functions, seed=seed, **changed) for seed in range(seeds)]
    return [replace(one, counts=one.counts + counted.counts, size=one.size + counted.size) for one in drawn]


def exact(functions: HashFamily, x: Points) -> Sketch:
    return Sketch.empty(functions, None, None).add(x)


# Counts


@pytest.mark.parametrize("threads", [1, 2, 5, None])
def test_counts_are_those_of_a_plain_loop_whatever_the_threads(threads: int | None) -> None:
    functions, x = family(), points()
    expected = [
        np.bincount(row, minlength=cells)
        for row, cells in zip(functions.hash(x).T, functions.cells, strict=True)
    ]
    assert np.array_equal(count_cells(functions, x, threads=threads), np.concatenate(expected))


def test_counts_are_the_same_in_many_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = count_cells(family(), points())
    monkeypatch.setattr("hushbid.race.counts.CHUNK_CODES", 999)
    assert np.array_equal(count_cells(family(), points(), threads=3), whole)


def test_five_owners_sketches_add_up_to_that_of_the_union_bit_for_bit() -> None:
    x = points(1003)
    parts = [exact(family(), part) for part in np.array_split(x, 5)]
    merged = reduce(lambda one, other: one.merge(other, records="disjoint"), parts)
    union = exact(family(), x)
    assert merged.counts.tobytes() == union.counts.tobytes()
    assert merged.size == union.size == 1003
    assert merged.kernel_sums(x[:9]).tobytes() == union.kernel_sums(x[:9]).tobytes()


# Noise


class Drawing:
    """A source that remembers its requests and answers."""

    name, protects = "simulated", False

    def __init__(self) -> None:
        self.drawn: list[tuple[Draw, npt.NDArray[Any]]] = []
        self.source = SimulatedNoise(3, "owner")

    def check(self, request: Draw) -> None:
        pass

    def draw(self, request: Draw) -> npt.NDArray[Any]:
        self.drawn.append((request, self.source.draw(request)))
        return self.drawn[-1][1]

    def random_bytes(self, count: int) -> bytes:
        return self.source.random_bytes(count)


def test_a_delta_that_lets_a_point_be_published_is_no_guarantee() -> None:
    def sketch(delta: float) -> RaceSketch:
        return RaceSketch(**PUBLIC | private() | {"delta": delta}).fit(points(20))

    assert sketch(0.049).sketch_.privacy is not None
    with pytest.raises(ConfigError, match="not below 1 over the number of rows"):
        sketch(0.05)


def test_a_private_fit_draws_once_for_all_cells_and_once_for_the_size_and_keeps_no_exact_count() -> None:
    sources: list[Drawing] = []

    def source() -> NoiseSource:
        sources.append(Drawing())
        return sources[-1]

    sketch = RaceSketch(**PUBLIC | private() | {"noise": source})
    for part in np.array_split(points(), 3):
        sketch.partial_fit(part)
    (used,) = sources
    (cells, on_cells), (sizes, on_size) = used.drawn
    truth = exact(sketch.sketch_.family, points())
    assert np.array_equal(sketch.sketch_.counts, truth.counts + on_cells)
    assert sketch.sketch_.size == 500 + on_size[0]
    assert cells.size == sketch.sketch_.family.cells.sum()
    assert sizes.size == 1
    held = [value for value in vars(sketch).values() if isinstance(value, np.ndarray)]
    assert held == []
    assert not np.array_equal(sketch.sketch_.counts, truth.counts)


@pytest.mark.parametrize("how", ["huber", "mean", "median-of-means"])
def test_a_stream_in_any_parts_is_the_fit_of_all(how: How) -> None:
    whole = RaceSketch(**PUBLIC | private()).fit(points())
    stream = RaceSketch(**PUBLIC | private())
    for part in np.array_split(points(), 7):
        stream.partial_fit(part)
    assert np.array_equal(stream.sketch_.counts, whole.sketch_.counts)
    assert np.array_equal(stream.kernel_sums(points(9), how), whole.kernel_sums(points(9), how))


def test_the_statement_of_a_fit_is_that_of_its_calibration() -> None:
    fitted = RaceSketch(**PUBLIC | private()).fit(points())
    assert fitted.privacy_ is not None
    assert fitted.privacy_.epsilon == pytest.approx(1.0)
    assert fitted.privacy_.neighbours is Neighbours.ADD_REMOVE_ONE
    assert fitted.privacy_.sources == ("simulated",)
    assert not fitted.privacy_.protects
    assert RaceSketch(**PUBLIC, epsilon=None).fit(points()).privacy_ is None


def test_without_another_source_noise_is_secure() -> None:
    fitted = RaceSketch(**PUBLIC, epsilon=1.0, neighbours="substitute-one").fit(points())
    assert fitted.privacy_ is not None
    assert fitted.privacy_.protects
    assert fitted.sketch_.size == 500  # public under substitution


def test_a_private_fit_without_a_neighbour_relation_is_refused() -> None:
    unsaid: tuple[Any, ...] = (None, "substitute")
    for neighbours in unsaid:
        with pytest.raises(ConfigError, match=f"neighbours are {neighbours!r}") as caught:
            RaceSketch(**PUBLIC, epsilon=1.0, neighbours=neighbours).fit(points())
        assert "add-remove-one" in caught.value.advice


# Queries


def test_kernel_sums_come_near_the_exact_ones_and_nearer_with_more_rows() -> None:
    x, queries = points(2000), points(50, seed=1)
    errors = []
    for rows in (30, 3000):
        functions = family(rows=rows)
        truth = functions.kernel(x, queries).sum(axis=0)
        errors.append(np.mean(np.abs(exact(functions, x).kernel_sums(queries) / truth - 1.0)))
    assert errors[1] < 0.02
    assert errors[0] > 3 * errors[1]


@pytest.mark.parametrize("how", ["huber", "mean"])
@pytest.mark.parametrize("neighbours", Neighbours)
def test_noise_is_as_large_as_stated_and_unbiased(how: How, neighbours: Neighbours) -> None:
    """The mean error of 200 seeds is within 5 standard errors: other seeds would fail once in 10⁶ times."""
    functions, x, query = family(), points(3000), points(1, seed=1)
    truth = exact(functions, x).kernel_sums(query)[0]
    sketches = many_noisy(functions, x, 200, neighbours=neighbours)
    found = np.array([sketch.kernel_sums(query, how)[0] for sketch in sketches])
    assert abs(found.mean() - truth) < 5 * found.std() / np.sqrt(200)
    if how == "mean":
        assert 0.8 * sketches[0].noise_deviation < found.std() < 1.25 * sketches[0].noise_deviation


def test_where_noise_dominates_hubers_estimate_has_far_less_of_it_than_the_mean() -> None:
    functions, x, query = family(rows=400), points(300), points(1, seed=1)
    sketches = many_noisy(functions, x, 150, epsilon=0.1, neighbours="substitute-one")
    spread = {
        how: np.std([sketch.kernel_sums(query, how)[0] for sketch in sketches]) for how in get_args(How)
    }
    assert spread["huber"] < 0.85 * spread["mean"]
    assert spread["huber"] < spread["median-of-means"]


def test_without_noise_or_with_gaussian_noise_hubers_estimate_is_the_mean() -> None:
    functions, x, queries = family(), points(), points(9, seed=1)
    for sketch in (exact(functions, x), noisy(functions, x, delta=1e-3)):
        assert np.array_equal(sketch.kernel_sums(queries), sketch.kernel_sums(queries, "mean"))
    assert not np.array_equal(
        noisy(functions, x).kernel_sums(queries), noisy(functions, x).kernel_sums(queries, "mean")
    )


def test_a_median_of_means_of_one_group_is_the_mean_and_of_all_groups_the_median() -> None:
    sketch, queries = noisy(family(), points()), points(9, seed=1)
    estimates = sketch.row_estimates(queries)
    mean = sketch.kernel_sums(queries, "median-of-means", groups=1)
    assert np.allclose(mean, estimates.mean(axis=1))
    median = sketch.kernel_sums(queries, "median-of-means", groups=50)
    assert np.allclose(median, np.median(estimates, axis=1))


def test_spread_rows_are_freed_from_what_collides_by_chance() -> None:
    x, queries = points(2000), points(40, seed=1)
    functions = family(rows=4000, width=5, power=3, bandwidth=0.4)
    assert functions.spread.mean() > 0.9
    truth = functions.kernel(x, queries).sum(axis=0)
    sketch = exact(functions, x)
    as_counted = sketch.counts[functions.hash(queries) + sketch.starts[:-1]].mean(axis=1)
    assert np.abs(sketch.kernel_sums(queries) - truth).max() < 0.1 * truth.max()
    assert np.abs(as_counted - truth).max() > 0.15 * truth.max()


def test_rows_of_the_table_sum_to_the_size() -> None:
    sketch = noisy(family(), points())
    sums = np.add.reduceat(sketch.table, sketch.starts[:-1])
    assert np.allclose(sums, sketch.points)


def test_the_size_is_nearer_the_truth_than_the_sum_of_all_cells() -> None:
    functions, x = family(), points(3000)
    sketches = many_noisy(functions, x, 100)
    own = np.array([sketch.points for sketch in sketches])
    summed = np.array([sketch.counts.sum() / functions.rows for sketch in sketches])
    assert abs(own.mean() - 3000) < 5 * own.std() / 10
    assert own.std() < 0.5 * summed.std()


@pytest.mark.parametrize(("how", "groups"), [("median", None), ("mean", 0), ("mean", 51)])
def test_another_way_to_ask_is_refused(how: Any, groups: int | None) -> None:
    with pytest.raises(ConfigError, match="as many groups as rows"):
        exact(family(), points()).kernel_sums(points(3), how, groups=groups)


def test_a_sketch_of_no_points_or_of_fewer_than_noise_hides_says_so() -> None:
    with pytest.raises(DataError, match="no points"):
        _ = exact(family(), points(1)[:0]).points
    hidden = replace(noisy(family(), points(1)), size=-(10**9))
    with pytest.raises(DataError, match="raise epsilon"):
        hidden.kernel_sums(points(1))


def test_scores_are_logarithms_of_mean_kernel_values_and_finite_far_away() -> None:
    sketch = RaceSketch(**PUBLIC, epsilon=None).fit(points())
    assert np.allclose(np.exp(sketch.score_samples(points(9))) * 500, sketch.kernel_sums(points(9)))
    few = RaceSketch(**PUBLIC | private() | {"epsilon": 0.1}).fit(points())
    grid = np.random.default_rng(0).random((500, 2))
    assert few.kernel_sums(grid).min() < 0
    assert np.isfinite(few.score_samples(grid)).all()


# Bad input


def test_points_out_of_bounds_are_refused_or_clipped_and_counted() -> None:
    x = points()
    x[[3, 8], [0, 1]] = [1.5, -0.1]
    with pytest.raises(DataError, match="2 of 500 points"):
        RaceSketch(**PUBLIC, epsilon=None).fit(x)
    clipped = RaceSketch(**PUBLIC, epsilon=None, out_of_bounds="clip").fit(x).partial_fit(x)
    assert clipped.n_clipped_ == 4
    assert clipped.sketch_.size == 1000
    with pytest.raises(ConfigError, match="clip"):
        RaceSketch(**PUBLIC, epsilon=None, out_of_bounds="drop").fit(x)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "changed", [{"seed": 2}, {"bandwidth": 0.4}, {"rows": 51}, {"upper": [1.0, 2.0]}], ids=str
)
def test_sketches_of_different_functions_do_not_merge(changed: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="different hash functions"):
        exact(family(), points()).merge(exact(family(**changed), points()), records="disjoint")


def test_a_private_sketch_does_not_merge_with_one_that_is_not() -> None:
    with pytest.raises(ConfigError, match="without noise"):
        exact(family(), points()).merge(noisy(family(), points()), records="disjoint")


def test_estimators_merge_as_their_sketches_do() -> None:
    one = RaceSketch(**PUBLIC | private(1)).fit(points())
    other = RaceSketch(**PUBLIC | private(2)).fit(points(seed=1))
    expected = one.sketch_.merge(other.sketch_, records="shared")
    assert one.merge(other, records="shared").sketch_.privacy == expected.privacy
    assert one.privacy_ is not None
    assert one.privacy_.epsilon == pytest.approx(2.0)


def test_counts_of_other_functions_are_refused() -> None:
    with pytest.raises(DataError, match="cells"):
        Sketch(family(), np.zeros(3, dtype=np.int64), 0, None)


def test_there_is_no_such_family() -> None:
    with pytest.raises(ConfigError, match="Families are"):
        RaceSketch(**PUBLIC, epsilon=None, family="l3").fit(points())


# Without a number of rows


def test_a_sketch_without_a_number_of_rows_releases_its_size_first_and_chooses() -> None:
    x = np.random.default_rng(0).normal(size=(6000, 5)) * 2.5
    x = np.clip(x @ (np.eye(5) + 0.5), -20.0, 20.0)
    common: dict[str, Any] = {
        "lower": -20.0,
        "upper": 20.0,
        "bandwidth": None,
        "random_state": 0,
        "noise": partial(SimulatedNoise, 3, "owner"),
    }
    noisy = RaceDensity(**common, epsilon=0.05, neighbours="add-remove-one").fit(x)
    privacy, rows = noisy.privacy_, noisy.sketch_.family.rows
    assert privacy is not None
    assert 0.0499 < privacy.epsilon <= 0.05 * (1 + 1e-12)
    assert rows == pytest.approx(optimal_rows(6000, 0.05, neighbours=Neighbours.ADD_REMOVE_ONE), abs=8)
    assert [cost.count for cost in privacy.costs if isinstance(cost, ApproximateCost)] == [rows, 1]
    public = RaceSketch(**common, epsilon=0.05, neighbours="substitute-one").fit(x)
    assert public.sketch_.family.rows == optimal_rows(6000, 0.05, neighbours=Neighbours.SUBSTITUTE_ONE)
    assert public.sketch_.size == 6000
    assert public.privacy_ is not None
    assert public.privacy_.sizes == ()
    assert RaceSketch(**common, epsilon=10.0, neighbours="substitute-one").fit(x).sketch_.family.rows == 1000
    assert RaceSketch(**common, epsilon=None).fit(x[:100]).sketch_.family.rows == 1000
    thousand = RaceDensity(**common, epsilon=0.05, neighbours="add-remove-one", rows=1000).fit(x)
    exact = noisy.sketch_.family.kernel(x, x[:200]).mean(axis=0)
    errors = [
        float(np.mean(np.abs(np.exp(model.score_samples(x[:200])) - exact) / exact))
        for model in (noisy, thousand)
    ]
    assert errors[0] < 0.7 * errors[1]
    with pytest.raises(ConfigError, match="private stream"):
        RaceSketch(**common, epsilon=1.0, neighbours="substitute-one").partial_fit(x)


# Conventions of scikit-learn


def estimators() -> list[Any]:
    common: dict[str, Any] = {
        "lower": -100.0,
        "upper": 100.0,
        "rows": 20,
        "out_of_bounds": "clip",
        "random_state": 1,
    }
    return [
        RaceSketch(**common | private(), bandwidth=20.0),
        RaceDensity(**common | private(), bandwidth=20.0),
        RaceClassifier(**common | {"rows": 100, "lower": -10.0, "upper": 10.0}, epsilon=None, bandwidth=1.0),
    ]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(estimators())
def test_the_conventions_of_scikit_learn_hold(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


def test_hash_functions_follow_from_a_number_or_a_generator_and_differ_without() -> None:
    def seed(state: Any) -> int | bytes:
        return RaceSketch(**PUBLIC | {"random_state": state}, epsilon=None).fit(points(5)).sketch_.family.seed

    assert seed(17) == 17
    assert seed(np.random.RandomState(3)) == seed(np.random.RandomState(3))
    assert seed(None) != seed(None)


def test_a_clone_makes_the_same_sketch() -> None:
    one = RaceSketch(**PUBLIC | private())
    assert np.array_equal(one.fit(points()).sketch_.counts, clone(one).fit(points()).sketch_.counts)


def test_hash_functions_are_spread_out_unless_they_are_asked_to_be_independent() -> None:
    even = RaceSketch(**PUBLIC, epsilon=None).fit(points())
    independent = RaceSketch(**PUBLIC, epsilon=None, sampling="independent").fit(points())
    assert even.sketch_.family.sampling == "sobol"
    with pytest.raises(ConfigError, match="different hash functions"):
        even.merge(independent, records="disjoint")
