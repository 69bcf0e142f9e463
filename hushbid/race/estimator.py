"""RACE sketches as scikit-learn estimators: the common base, and the sketch itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted, validate_data

from hushbid.estimators import PrivateEstimator
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.privacy.accounting.validation import check_delta_of
from hushbid.protocol.privacy.releases import Neighbours
from hushbid.protocol.space.lsh import FAMILIES, HashFamily, Points, Sampling, StableFamily
from hushbid.race.release import Records, SketchPrivacy, calibrate, default_size_share, optimal_rows
from hushbid.race.sketch import How, Sketch, empty_sketches

__all__ = ["RaceSketch", "Sketching", "make_family"]

MOST_ROWS: Final = 1000
"""Number of rows if neither noise nor `rows` limits it."""
DEFAULT_BANDWIDTH: Final = 1.0 / 8.0
"""The default bandwidth, as a share of the diagonal of the bounds."""

LEAST_POINTS = 0.5
"""Smallest kernel sum for logarithms: noise can make a sum negative."""


def make_family(
    name: str,
    *,
    rows: int,
    width: int,
    lower: npt.ArrayLike,
    upper: npt.ArrayLike,
    seed: int,
    bandwidth: float = 1.0,
    power: int = 1,
    sampling: Sampling = "sobol",
) -> HashFamily:
    """Hash functions of a family by its name (`hushbid.protocol.space.lsh.FAMILIES`); see `HashFamily`.

    The angular families ignore the bandwidth.

    Raises:
        ConfigError: No such family, or an argument out of its range.
    """
    kind = FAMILIES.get(name)
    if kind is None:
        raise ConfigError(
            f"There are no hash functions {name!r}.", advice=f"Families are: {', '.join(FAMILIES)}."
        )
    parameters: dict[str, Any] = {"bandwidth": bandwidth} if issubclass(kind, StableFamily) else {}
    return kind(
        rows=rows,
        width=width,
        lower=lower,
        upper=upper,
        seed=seed,
        power=power,
        sampling=sampling,
        **parameters,
    )


@dataclass(kw_only=True, eq=False, repr=False)
class Sketching(PrivateEstimator):
    """The parameters and checks of all estimators on sketches. `RaceSketch` documents them."""

    delta: float = 0.0
    size_share: float | None = None
    family: str = "l2"
    rows: int | None = None
    width: int = 1000
    bandwidth: float | None = 1.0
    power: int = 1
    sampling: Sampling = "sobol"
    threads: int | None = None

    def _box(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Public bounds of each column."""
        columns = int(self.n_features_in_)
        lower, upper = (np.asarray(bound, dtype=np.float64) for bound in (self.lower, self.upper))
        return np.broadcast_to(lower, columns), np.broadcast_to(upper, columns)

    def _make_family(self, rows: int) -> HashFamily:
        lower, upper = self._box()
        bandwidth = self.bandwidth
        if bandwidth is None:
            bandwidth = DEFAULT_BANDWIDTH * math.sqrt(math.fsum(np.square(upper - lower)))
        return make_family(
            self.family,
            rows=rows,
            width=self.width,
            lower=lower,
            upper=upper,
            seed=self._seed(),
            bandwidth=bandwidth,
            power=self.power,
            sampling=self.sampling,
        )

    def _relation(self) -> Neighbours:
        """The neighbour relation of a private fit, or a ConfigError if it was not named."""
        if self.neighbours not in tuple(Neighbours):
            raise ConfigError(
                f"A sketch was to be private, and its neighbours are {self.neighbours!r}, which does not say "
                "what datasets that compares.",
                advice='Set neighbours to "add-remove-one" or to "substitute-one".',
            )
        return Neighbours(self.neighbours)

    def _empty(self, classes: int, sizes: Sequence[int] | None) -> tuple[Sketch, ...]:
        """A sketch of no points for each class: its noise, or zeros.

        Args:
            classes: How many; 1 for a single sketch.
            sizes: Number of points that will be added to each class, which determines the number of rows if
                `rows` is None; None: unknown, as in a stream.
        """
        if self.epsilon is None:
            return empty_sketches(self._make_family(self.rows or MOST_ROWS), classes, None, None)
        relation = self._relation()
        if self.rows is None:
            return self._sized(classes, sizes, relation, float(self.epsilon))
        family = self._make_family(self.rows)
        calibration = calibrate(
            rows=family.rows,
            cells=int(family.cells.sum()) * classes,
            sizes=classes,
            neighbours=relation,
            epsilon=self.epsilon,
            delta=self.delta,
            size_share=self.size_share,
        )
        return empty_sketches(family, classes, calibration, self.noise())

    def _sized(
        self, classes: int, sizes: Sequence[int] | None, relation: Neighbours, epsilon: float
    ) -> tuple[Sketch, ...]:
        """As `_empty`, after a release of private sizes; the smallest of them determines the rows."""
        if sizes is None:
            raise ConfigError(
                "A private stream was begun without a number of rows, which would follow from its size.",
                advice="Set rows: optimal_rows says how many suit a size that is public or expected.",
            )
        source = self.noise()
        for_sizes, on_sizes, left = None, np.zeros(classes, dtype=np.int64), epsilon
        if classes > 1 or relation is Neighbours.ADD_REMOVE_ONE:
            share = default_size_share(MOST_ROWS) if self.size_share is None else self.size_share
            left = epsilon - share * epsilon
            for_sizes = calibrate(
                rows=1, cells=classes, sizes=0, neighbours=relation, epsilon=share * epsilon
            )
            on_sizes = np.array(source.draw(for_sizes.cells), dtype=np.int64)
        smallest = float((np.array(sizes) + on_sizes).min())
        rows = min(MOST_ROWS, optimal_rows(max(smallest, 0.0), left, neighbours=relation))
        family = self._make_family(rows)
        calibration = calibrate(
            rows=rows,
            cells=int(family.cells.sum()) * classes,
            sizes=0,
            neighbours=relation,
            epsilon=left,
            delta=self.delta,
        )
        if for_sizes is not None:
            costs = calibration.costs + for_sizes.costs
            calibration = replace(calibration, sizes=for_sizes.cells, costs=costs)
        return empty_sketches(family, classes, calibration, source, sizes=on_sizes.tolist())

    def _read(self, X: Any, *, reset: bool, y: Any = None) -> tuple[Points, int, Any]:
        """Points within the public bounds, the number of clipped rows, and y unchanged.

        Raises:
            ConfigError: Another `out_of_bounds`.
            ValueError: From scikit-learn, for a wrong shape or values that are not finite.
        """
        self._check_out_of_bounds()
        if y is None:
            points = validate_data(self, X, dtype=np.float64, order="C", reset=reset)
        else:
            points, y = validate_data(self, X, y, dtype=np.float64, order="C", reset=reset)
        if reset and self.epsilon is not None:
            check_delta_of(self.delta, len(points), "the points")
        if self.out_of_bounds == "refuse":
            return points, 0, y
        lower, upper = (np.asarray(bound, dtype=np.float64) for bound in (self.lower, self.upper))
        outside = ((points < lower) | (points > upper)).any(axis=1)
        return np.clip(points, lower, upper), int(np.count_nonzero(outside)), y


@dataclass(kw_only=True, eq=False, repr=False)
class RaceSketch(Sketching):
    """A private sketch of a dataset that answers any number of kernel sums (Coleman and Shrivastava 2020).

    A fit draws noise first and counts on top of it, so that exact counts are never held. `partial_fit` adds
    to a stream. The guarantee covers one published state of it, as two differ exactly. Publish `sketch_`, not
    the estimator: `n_clipped_` is private.

    Args:
        lower, upper, epsilon, neighbours, out_of_bounds, random_state, noise: As `PrivateEstimator`; the
            bounds hold for queries too.
        delta: δ; 0 for pure differential privacy.
        size_share: As `calibrate`.
        family: ``l2``, ``l1`` or ``srp``, and ``asymmetric-srp`` (`hushbid.protocol.space.lsh`).
        rows: R. More rows average over more hash functions, and need more noise. None: `optimal_rows` of the
            size, which is public or is released first, and at most `MOST_ROWS`. Private streams need a
            number, and so do sketches that are merged later.
        width: Maximum cells per row.
        bandwidth: Bandwidth of the distances, in the points' unit; ``srp`` has none. None:
            `DEFAULT_BANDWIDTH` of the diagonal of the bounds.
        power: Number of hash functions joined into one; the kernel is raised to that power.
        sampling: ``sobol``: rows are spread evenly, and their mean errs less; ``independent``: as in the
            paper, and as its Theorem 4 needs.
        threads: As `count_cells`.

    Attributes:
        sketch_: The release: noisy counts, size, hash functions and guarantee.
        n_clipped_: Number of clipped data rows. It is private, and not part of the release.
        n_features_in_: Columns.
    """

    sketch_: Sketch = field(init=False)
    n_clipped_: int = field(init=False)

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002 scikit-learn's signature
        """Sketch X alone, finite and of shape (n, columns).

        Raises:
            ConfigError: A parameter out of its range.
            DataError: Points out of bounds, with `out_of_bounds` "refuse".
            ValueError: From scikit-learn.
        """
        return self._begin(X, stream=False)

    def _begin(self, X: Any, *, stream: bool) -> Self:
        points, clipped, _ = self._read(X, reset=True)
        (empty,) = self._empty(1, None if stream else [len(points)])
        self.sketch_ = empty.add(points, threads=self.threads)
        self.n_clipped_ = clipped
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002 scikit-learn's signature
        """Add X to the sketch; the first call is a `fit`, which needs `rows` for a private stream."""
        if not hasattr(self, "sketch_"):
            return self._begin(X, stream=True)
        points, clipped, _ = self._read(X, reset=False)
        self.sketch_ = self.sketch_.add(points, threads=self.threads)
        self.n_clipped_ += clipped
        return self

    def merge(self, other: RaceSketch, *, records: Records) -> Self:
        """Add the sketch of another fitted estimator to this one; raises as `Sketch.merge`."""
        check_is_fitted(self)
        check_is_fitted(other)
        self.sketch_ = self.sketch_.merge(other.sketch_, records=records)
        self.n_clipped_ += other.n_clipped_
        return self

    @property
    def privacy_(self) -> SketchPrivacy | None:
        """The guarantee of the noise; None without noise."""
        check_is_fitted(self)
        return self.sketch_.privacy

    def kernel_sums(
        self, X: Any, how: How = "huber", *, groups: int | None = None
    ) -> npt.NDArray[np.float64]:
        """Σ over the sketched points of k(point, x), for each x of X (`Sketch.kernel_sums`).

        Args:
            X: Queries, shape (m, columns).
            how, groups: As `Sketch.kernel_sums`.

        Returns:
            float64 of shape (m,); noise can make it negative.

        Raises:
            DataError: Queries out of bounds, with `out_of_bounds` "refuse", or a sketch without points.
        """
        check_is_fitted(self)
        points, _, _ = self._read(X, reset=False)
        return self.sketch_.kernel_sums(points, how, groups=groups)

    def score_samples(self, X: Any) -> npt.NDArray[np.float64]:
        """The logarithm of the mean kernel value at each x of X, shape (m, columns).

        It is not a log density: the families' kernels have no finite integral over the whole space. Only
        differences and the order of scores are meaningful.

        Returns:
            float64 of shape (m,). Kernel sums below `LEAST_POINTS` count as `LEAST_POINTS`.

        Raises:
            DataError: As `kernel_sums`.
        """
        sums = np.maximum(self.kernel_sums(X), LEAST_POINTS)
        return np.asarray(np.log(sums / self.sketch_.points))
