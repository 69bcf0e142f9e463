"""A RACE sketch: noisy counts, what they guarantee, and what is read off them (RACE, Algorithms 1 and 2)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from hushbid.race.counts import Counts, count_cells, row_starts
from hushbid.race.release import Calibration, Records, SketchPrivacy, check_noise
from protocol.errors import ConfigError, DataError
from protocol.privacy.noise import NoiseSource
from protocol.runtime.blas_threads import one_blas_thread
from protocol.space.lsh import HashFamily, Points

__all__ = ["GROUPS", "How", "Sketch"]

How: TypeAlias = Literal["huber", "mean", "median-of-means"]
"""How the rows' estimates become one (`Sketch.kernel_sums`)."""

GROUPS: Final = 9
"""Groups of a median of means: with 8·ln(1/β) of them Theorem 4's bound fails with probability β."""

CHUNK_ESTIMATES: Final = 2**17
"""Rows' estimates that are held at a time: 1 MiB, so that they stay in a core's cache."""

STEPS: Final = 50
"""Most Newton steps of Huber's estimate; a handful is enough."""

TOLERANCE: Final = 1e-4
"""Largest last step, as a share of N̂."""


@dataclass(frozen=True, eq=False)
class Sketch:
    """Counts of points in the cells of R hash functions, with noise or without.

    Noise is drawn once, when the sketch is made (`empty`), and points are counted on top of it: a private
    sketch never holds exact counts. Its guarantee is for one state of it that is given away: two states of
    one stream have the same noise, and their difference is exact.

    Attributes:
        family: The hash functions.
        counts: Counts of every cell, row after row: int64 of shape (family.cells.sum(),).
        size: How many points were counted; with noise of its own if `privacy` says so.
        privacy: What the noise guarantees; None: there is no noise, and counts and size are exact.
    """

    family: HashFamily
    counts: Counts
    size: int
    privacy: SketchPrivacy | None

    def __post_init__(self) -> None:
        if self.counts.shape != (int(self.family.cells.sum()),) or self.counts.dtype != np.int64:
            raise DataError(
                f"A sketch has {self.counts.dtype} counts of shape {self.counts.shape}; "
                f"its hash functions have {self.family.cells.sum()} cells.",
                advice="Read it with the parameters and the seed that it was made with.",
            )

    @classmethod
    def empty(cls, family: HashFamily, calibration: Calibration | None, source: NoiseSource | None) -> Sketch:
        """A sketch of no points: noise alone, or zeros.

        Args:
            family: The hash functions.
            calibration: For the family's cells and one size (`calibrate`); None: no noise, no privacy.
            source: Where the noise comes from; None without noise.

        Raises:
            LocalProtocolError: A calibration without a source, or a source without one.
        """
        check_noise(calibration, source)
        if calibration is None or source is None:
            return cls(family, np.zeros(int(family.cells.sum()), dtype=np.int64), 0, None)
        noise = source.draw(calibration.cells)
        size = 0 if calibration.sizes is None else int(source.draw(calibration.sizes)[0])
        return cls(family, np.array(noise, dtype=np.int64), size, calibration.privacy(source))

    def add(self, points: Points, *, threads: int | None = None) -> Sketch:
        """The sketch with more points counted.

        Args:
            points: float64 of shape (n, columns), within the public bounds.
            threads: As `count_cells`.

        Raises:
            DataError: Points that the family does not take.
        """
        counts = self.counts + count_cells(self.family, points, threads=threads)
        return replace(self, counts=counts, size=self.size + len(points))

    def merge(self, other: Sketch, *, records: Records) -> Sketch:
        """The sketch of both datasets: sums of counts and sizes, of noise variances, and of what was spent.

        Without noise it is bit for bit the sketch of the union.

        Args:
            other: A sketch by the same hash functions.
            records: Whether a record can be in both datasets (`SketchPrivacy.merged`).

        Raises:
            ConfigError: Other hash functions, one sketch private and one not, or as `SketchPrivacy.merged`.
        """
        if self.family.digest != other.family.digest:
            raise ConfigError(
                "Two sketches of different hash functions were to be merged.",
                advice="Make them with the same family, rows, width, bandwidth, power, bounds and seed.",
            )
        if (self.privacy is None) != (other.privacy is None):
            raise ConfigError(
                "A private sketch and one without noise were to be merged.",
                advice="The sum would protect only a part of the records. Make both private, or neither.",
            )
        privacy = None
        if self.privacy is not None and other.privacy is not None:
            privacy = self.privacy.merged(other.privacy, records)
        return Sketch(self.family, self.counts + other.counts, self.size + other.size, privacy)

    @cached_property
    def starts(self) -> Counts:
        """Where each row starts in `counts`: int64 of shape (rows + 1,)."""
        return row_starts(self.family)

    @cached_property
    def size_estimate(self) -> float:
        """The size, combined with the rows' own sums by their variances; noise can make it negative.

        A row sums to N in truth, and its sum has the noise of all of its cells.
        """
        privacy = self.privacy
        if privacy is None or privacy.size_variance == 0.0:
            return float(self.size)
        shares = 1.0 / self.family.cells
        total = float(shares.sum())
        by_rows = float(self._row_sums @ shares) / total
        weight, row_weight = 1.0 / privacy.size_variance, total / privacy.cell_variance
        return (weight * self.size + row_weight * by_rows) / (weight + row_weight)

    @property
    def points(self) -> float:
        """N̂: `size_estimate`, where it can be one.

        Raises:
            DataError: It is not positive: there are too few points for this much noise.
        """
        if not self.size_estimate > 0.0:
            raise DataError(
                "A sketch says that it has no points: it has none, or fewer than its noise hides.",
                advice="Sketch more points, or raise epsilon.",
            )
        return self.size_estimate

    @property
    def _row_sums(self) -> Counts:
        return np.add.reduceat(self.counts, self.starts[:-1])

    @cached_property
    def table(self) -> npt.NDArray[np.float64]:
        """What each cell adds to a kernel sum: post-processing of the counts that keeps them unbiased.

        A row's cells are moved, all by the same, so that they sum to N̂: the least squares estimate under that
        constraint, which takes 1/cells of the noise's variance away. In rows whose codes are spread over W
        cells, a point that does not collide is counted with probability 1/W nonetheless: (W·c - N̂)/(W - 1)
        has the kernel sum as its mean. Negative counts stay: to clip them would add a bias that does not
        average out over rows, as noise does.
        """
        family, cells = self.family, self.family.cells
        moved = np.zeros(family.rows) if self.privacy is None else (self.points - self._row_sums) / cells
        return self._without_chance(self.counts.astype(np.float64) + np.repeat(moved, cells))

    @cached_property
    def _loose_table(self) -> npt.NDArray[np.float64]:
        """`table`, but rows do not sum to N̂: each cell has its own noise only."""
        return self._without_chance(self.counts.astype(np.float64))

    def _without_chance(self, table: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """A table without what points that do not collide add to spread rows on average."""
        family, cells = self.family, self.family.cells
        if family.spread.any():
            slopes = np.where(family.spread, cells / np.maximum(cells - 1.0, 1.0), 1.0)
            offsets = np.where(family.spread, self.points / np.maximum(cells - 1.0, 1.0), 0.0)
            table = table * np.repeat(slopes, cells) - np.repeat(offsets, cells)
        table.flags.writeable = False
        return table

    def row_estimates(self, queries: Points) -> npt.NDArray[np.float64]:
        """Each row's estimate of Σ_x k(x, q): unbiased over hash functions and noise (RACE, Theorem 2).

        Args:
            queries: float64 of shape (m, columns), as the family takes them.

        Returns:
            float64 of shape (m, rows).

        Raises:
            DataError: Queries that the family does not take, or as `points`.
        """
        return self._read(self.table, queries)

    def kernel_sums(
        self, queries: Points, how: How = "huber", *, groups: int | None = None
    ) -> npt.NDArray[np.float64]:
        """Σ_x k(x, q) over the sketched points, for each query (RACE, Algorithm 2).

        ``mean``: of the rows' estimates, unbiased. ``median-of-means``: the median of the means of groups of
        rows, which has a larger error on average and a smaller probability of a very large one (Theorem 4).
        ``huber``: Huber's estimate of location, whose threshold is N̂. A row's count is never farther than N
        from the kernel sum: what is farther is noise, and weighs as if it were at the threshold. Where
        Laplace noise is much larger than N that comes to a median, of half the mean's variance; where noise
        is small, or not Laplace noise, it is the mean.

        Args:
            queries: float64 of shape (m, columns), as the family takes them.
            how: One of these.
            groups: Groups of a median of means, from 1 to the number of rows; None: `GROUPS`, or as many as
                rows.

        Returns:
            float64 of shape (m,); noise can make it negative.

        Raises:
            ConfigError: Another `how`, or another number of groups.
            DataError: As `row_estimates`.
        """
        rows = self.family.rows
        groups = min(GROUPS, rows) if groups is None else groups
        if how not in get_args(How) or not 1 <= groups <= rows:
            raise ConfigError(
                f"Kernel sums were asked for by {how!r}, or by {groups} groups of {rows} rows.",
                advice=f"Use one of {', '.join(get_args(How))}, and at most as many groups as rows.",
            )
        robust = how == "huber" and self.privacy is not None and self.privacy.is_laplace
        table = self._loose_table if robust else self.table
        sums = np.empty(len(queries))
        length = max(1, CHUNK_ESTIMATES // rows)
        with one_blas_thread():
            for start in range(0, len(queries), length):
                estimates = self._read(table, queries[start : start + length])
                if robust:
                    part = _huber(estimates, self.points)
                elif how == "median-of-means":
                    parts = np.array_split(estimates, groups, axis=1)
                    part = np.median([group.mean(axis=1) for group in parts], axis=0)
                else:
                    part = estimates.mean(axis=1)
                sums[start : start + length] = part
        return sums

    def _read(self, table: npt.NDArray[np.float64], queries: Points) -> npt.NDArray[np.float64]:
        return np.asarray(table[self.family.hash_queries(queries) + self.starts[:-1]])

    @property
    def noise_deviation(self) -> float:
        """Standard deviation that noise on cells gives the mean of the rows' estimates; 0 without noise."""
        if self.privacy is None:
            return 0.0
        cells = self.family.cells.astype(np.float64)
        left = np.where(self.family.spread, cells / np.maximum(cells - 1.0, 1.0), 1.0 - 1.0 / cells)
        return math.sqrt(self.privacy.cell_variance * float(left.sum())) / self.family.rows


def _huber(samples: npt.NDArray[np.float64], threshold: float) -> npt.NDArray[np.float64]:
    """Huber's estimate of location along the last axis, by Newton's method from the mean.

    Each row is computed alone: its result does not depend on how far the others have come.
    """
    centres = np.asarray(samples.mean(axis=1), dtype=np.float64)
    left = np.arange(len(samples))
    for _ in range(STEPS):
        residuals = samples[left] - centres[left, None]
        inside = np.count_nonzero(np.abs(residuals) < threshold, axis=1)
        np.clip(residuals, -threshold, threshold, out=residuals)
        steps = residuals.sum(axis=1) / np.maximum(inside, 1)
        # Few residuals within the threshold make a Newton step too long.
        steps = np.clip(steps, -threshold, threshold)
        centres[left] += steps
        left = left[np.abs(steps) > threshold * TOLERANCE]
        if not len(left):
            break
    return centres
