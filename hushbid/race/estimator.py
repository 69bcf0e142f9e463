"""RACE sketches as scikit-learn estimators: what they share, and the sketch itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted, validate_data

from hushbid.estimators import PrivateEstimator
from hushbid.race.release import (
    Records,
    SketchPrivacy,
    calibrate,
    default_size_share,
    optimal_rows,
)
from hushbid.race.sketch import How, Sketch
from protocol.errors import ConfigError
from protocol.privacy.accounting.validation import check_delta_of
from protocol.privacy.releases import Neighbours
from protocol.space.lsh import FAMILIES, HashFamily, Points, Sampling, StableFamily

__all__ = ["RaceSketch", "Sketching", "make_family"]

MOST_ROWS: Final = 1000
"""Rows where noise sets no limit to them, and `rows` does not say."""
DEFAULT_BANDWIDTH: Final = 1.0 / 8.0
"""The default bandwidth, as a share of the diagonal of the bounds."""

LEAST_POINTS = 0.5
"""A kernel sum below it is read as this much: noise can make it negative, and it has no logarithm then."""


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
    """Hash functions of a family by its name.

    Args:
        name: One of `protocol.space.lsh.FAMILIES`.
        rows: As `HashFamily`, like what follows.
        width: Most cells of a row.
        lower: Public bounds.
        upper: Public bounds.
        seed: Public.
        power: Hash functions that are joined to one.
        sampling: How rows are drawn.
        bandwidth: Bandwidth of the families of a distance; those of an angle have none.

    Raises:
        ConfigError: No such family, or an argument outside of its range.
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
    """Parameters and checks that all estimators on sketches share. `RaceSketch` documents them."""

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

    def _bandwidth(self, lower: npt.NDArray[np.float64], upper: npt.NDArray[np.float64]) -> float:
        """As it was given, or `DEFAULT_BANDWIDTH` of the bounds' diagonal."""
        if self.bandwidth is not None:
            return self.bandwidth
        return DEFAULT_BANDWIDTH * math.sqrt(math.fsum(np.square(upper - lower)))

    def _make_family(self, rows: int) -> HashFamily:
        lower, upper = self._box()
        return make_family(
            self.family,
            rows=rows,
            width=self.width,
            lower=lower,
            upper=upper,
            seed=self._seed(),
            bandwidth=self._bandwidth(lower, upper),
            power=self.power,
            sampling=self.sampling,
        )

    def _relation(self) -> Neighbours:
        """The neighbour relation of a private fit.

        Raises:
            ConfigError: It was not said.
        """
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
            sizes: How many points of each class will be added, by which rows are chosen where `rows` does not
                say how many; None: it is not known, as of a stream.
        """
        if self.epsilon is None:
            return (Sketch.empty(self._make_family(self.rows or MOST_ROWS), None, None),) * classes
        relation = self._relation()
        if self.rows is None:
            return self._sized(classes, sizes, relation, float(self.epsilon))
        family = self._make_family(self.rows)
        cells = int(family.cells.sum())
        calibration = calibrate(
            rows=family.rows,
            cells=cells * classes,
            sizes=classes,
            neighbours=relation,
            epsilon=self.epsilon,
            delta=self.delta,
            size_share=self.size_share,
        )
        source = self.noise()
        noise = np.array(source.draw(calibration.cells), dtype=np.int64).reshape(classes, cells)
        on_sizes = [0] * classes if calibration.sizes is None else source.draw(calibration.sizes)
        privacy = calibration.privacy(source)
        return tuple(
            Sketch(family, part, int(size), privacy) for part, size in zip(noise, on_sizes, strict=True)
        )

    def _sized(
        self, classes: int, sizes: Sequence[int] | None, relation: Neighbours, epsilon: float
    ) -> tuple[Sketch, ...]:
        """As `_empty`, but sizes that are not public are released first, and rows follow from the least."""
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
        cells = int(family.cells.sum())
        calibration = calibrate(
            rows=rows,
            cells=cells * classes,
            sizes=0,
            neighbours=relation,
            epsilon=left,
            delta=self.delta,
        )
        if for_sizes is not None:
            costs = calibration.costs + for_sizes.costs
            calibration = replace(calibration, sizes=for_sizes.cells, costs=costs)
        noise = np.array(source.draw(calibration.cells), dtype=np.int64).reshape(classes, cells)
        privacy = calibration.privacy(source)
        return tuple(
            Sketch(family, part, int(size), privacy) for part, size in zip(noise, on_sizes, strict=True)
        )

    def _read(self, X: Any, *, reset: bool, y: Any = None) -> tuple[Points, int, Any]:
        """Points within the public bounds, how many rows were clipped, and y as it was given.

        Raises:
            ConfigError: Another `out_of_bounds`.
            ValueError: What scikit-learn refuses: a wrong shape, values that are not finite.
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

    Fitting draws noise first and counts on top of it, so that exact counts are never held. `partial_fit` adds
    to a stream; the guarantee is for one state of it, the one that is given away, as two differ exactly. Give
    away `sketch_`, not the estimator: `n_clipped_` is private.

    Args:
        lower, upper, epsilon, neighbours, out_of_bounds, random_state, noise: As `PrivateEstimator`; queries
            are held to the bounds, too.
        delta: δ; 0 for pure differential privacy.
        size_share: As `calibrate`.
        family: ``l2``, ``l1`` or ``srp``, and ``asymmetric-srp`` (`protocol.space.lsh`).
        rows: R. More rows average over more hash functions, and need more noise. None: `optimal_rows` of the
            size, which is public or is released first, and at most `MOST_ROWS`. A private stream needs a
            number, and so do sketches that are to be merged.
        width: Most cells of a row.
        bandwidth: Bandwidth of the distances, in the points' unit; ``srp`` has none. None:
            `DEFAULT_BANDWIDTH` of the diagonal of the bounds.
        power: Hash functions that are joined to one; kernels are to that power.
        sampling: ``sobol``: rows are spread out together, and their mean errs less; ``independent``: as in
            the paper, and as its Theorem 4 needs.
        threads: As `count_cells`.

    Attributes:
        sketch_: The release: noisy counts, size, hash functions and privacy statement.
        n_clipped_: How many data rows were clipped. It is private, and not a part of the release.
        n_features_in_: Columns.
    """

    sketch_: Sketch = field(init=False)
    n_clipped_: int = field(init=False)

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002 scikit-learn's signature
        """Sketch X, and nothing that was sketched before.

        Args:
            X: Shape (n, columns), finite.
            y: Ignored.

        Raises:
            ConfigError: A parameter outside of its range.
            DataError: Points out of bounds that are not to be clipped.
            ValueError: What scikit-learn refuses.
        """
        return self._begin(X, stream=False)

    def _begin(self, X: Any, *, stream: bool) -> Self:
        points, clipped, _ = self._read(X, reset=True)
        (empty,) = self._empty(1, None if stream else [len(points)])
        self.sketch_ = empty.add(points, threads=self.threads)
        self.n_clipped_ = clipped
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002 scikit-learn's signature
        """Add X to what was sketched; the first call is a `fit`.

        Args:
            X: Shape (n, columns), finite.
            y: Ignored.

        Raises:
            As `fit`; ConfigError: a private stream whose `rows` are not given.
        """
        if not hasattr(self, "sketch_"):
            return self._begin(X, stream=True)
        points, clipped, _ = self._read(X, reset=False)
        self.sketch_ = self.sketch_.add(points, threads=self.threads)
        self.n_clipped_ += clipped
        return self

    def merge(self, other: RaceSketch, *, records: Records) -> Self:
        """Add another's sketch to this one, as `Sketch.merge`.

        Args:
            other: A fitted estimator with the same hash functions.
            records: ``disjoint`` or ``shared``: whether one record can be in both datasets.

        Raises:
            ConfigError: Other hash functions, or as `Sketch.merge`.
        """
        check_is_fitted(self)
        check_is_fitted(other)
        self.sketch_ = self.sketch_.merge(other.sketch_, records=records)
        self.n_clipped_ += other.n_clipped_
        return self

    @property
    def privacy_(self) -> SketchPrivacy | None:
        """What the noise guarantees; None without noise."""
        check_is_fitted(self)
        return self.sketch_.privacy

    def kernel_sums(
        self, X: Any, how: How = "huber", *, groups: int | None = None
    ) -> npt.NDArray[np.float64]:
        """Σ over the sketched points of k(point, x), for each x of X.

        Args:
            X: Queries, shape (m, columns).
            how: As `Sketch.kernel_sums`.
            groups: Groups of a median of means.

        Returns:
            float64 of shape (m,); noise can make it negative.

        Raises:
            DataError: Queries out of bounds that are not to be clipped, or a sketch without points.
        """
        check_is_fitted(self)
        points, _, _ = self._read(X, reset=False)
        return self.sketch_.kernel_sums(points, how, groups=groups)

    def score_samples(self, X: Any) -> npt.NDArray[np.float64]:
        """The logarithm of the mean kernel value at each x of X: a density up to a constant factor.

        The families' kernels have no finite integral over the whole space, so that there is no such constant
        for them; differences of scores mean something, and what is above what.

        Args:
            X: Queries, shape (m, columns).

        Returns:
            float64 of shape (m,). A kernel sum below `LEAST_POINTS` counts as that.

        Raises:
            As `kernel_sums`.
        """
        sums = np.maximum(self.kernel_sums(X), LEAST_POINTS)
        return np.asarray(np.log(sums / self.sketch_.points))
