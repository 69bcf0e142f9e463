"""A RACE sketch: noisy counts, their guarantee, and kernel sums from them (RACE, Algorithms 1 and 2)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from hushbid.protocol.errors import ConfigError, DataError
from hushbid.protocol.privacy.noise import NoiseSource
from hushbid.protocol.runtime.blas_threads import one_blas_thread
from hushbid.protocol.space.lsh import HashFamily, Points
from hushbid.race.counts import Counts, count_cells, row_starts
from hushbid.race.release import RaceCalibration, Records, SketchPrivacy, check_noise

__all__ = ["GROUPS", "How", "Sketch", "empty_sketches"]

How: TypeAlias = Literal["huber", "mean", "median-of-means"]
"""How to combine the rows' estimates (`Sketch.kernel_sums`)."""

GROUPS: Final = 9
"""Groups of a median of means: with 8·ln(1/β) of them Theorem 4's bound fails with probability β."""
CHUNK_ESTIMATES: Final = 2**17
"""Rows' estimates held at a time: 1 MiB, which stays in a core's cache."""
STEPS: Final = 50
"""Maximum Newton steps of Huber's estimate; a handful is enough."""
TOLERANCE: Final = 1e-4
"""Largest last step, as a share of N̂."""


@dataclass(frozen=True, eq=False)
class Sketch:
    """Counts of points in the cells of R hash functions, with noise or without.

    Noise is drawn once, when the sketch is made (`empty_sketches`), and points are counted on top of it: a
    private sketch never holds exact counts. Its guarantee covers one published state: two states of one
    stream have the same noise, and their difference is exact.

    Attributes:
        family: The hash functions.
        counts: Counts of every cell, row after row: int64 of shape (family.cells.sum(),).
        size: The number of counted points; with noise of its own if `privacy` says so.
        privacy: The guarantee of the noise; None: there is no noise, and counts and size are exact.
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
    def empty(
        cls, family: HashFamily, calibration: RaceCalibration | None, source: NoiseSource | None
    ) -> Sketch:
        """A sketch of no points: its noise, or zeros (`empty_sketches`)."""
        return empty_sketches(family, 1, calibration, source)[0]

    def add(self, points: Points, *, threads: int | None = None) -> Sketch:
        """The sketch with more points counted; points, threads and errors as in `count_cells`."""
        counts = self.counts + count_cells(self.family, points, threads=threads)
        return replace(self, counts=counts, size=self.size + len(points))

    def merge(self, other: Sketch, *, records: Records) -> Sketch:
        """The sketch of both datasets: sums of counts and sizes, with the privacy of `SketchPrivacy.merged`.

        Without noise it is bit for bit the sketch of the union.

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
        """Start of each row in `counts`: int64 of shape (rows + 1,)."""
        return row_starts(self.family)

    @cached_property
    def size_estimate(self) -> float:
        """The size, combined with the rows' sums by their variances; noise can make it negative.

        A row's exact sum is N, and its sum has the noise of all of its cells.
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
        """N̂: `size_estimate`, or a DataError if it is not positive: too few points for the noise."""
        if not self.size_estimate > 0.0:
            raise DataError(
                "A sketch's size is not positive: it has no points, or fewer than its noise hides.",
                advice="Sketch more points, or raise epsilon.",
            )
        return self.size_estimate

    @property
    def _row_sums(self) -> Counts:
        return np.add.reduceat(self.counts, self.starts[:-1])

    @cached_property
    def table(self) -> npt.NDArray[np.float64]:
        """The contribution of each cell to a kernel sum: unbiased post-processing of the counts.

        All cells of a row are moved by the same number, so that they sum to N̂: the least squares estimate
        under that constraint, which removes 1/cells of the noise's variance. In rows whose codes are spread
        over W cells, a point that does not collide is still counted with probability 1/W, and the kernel sum
        is the mean of (W·c - N̂)/(W - 1). Negative counts stay: clipping would add a bias, which unlike noise
        does not average out over rows.
        """
        family, cells = self.family, self.family.cells
        moved = np.zeros(family.rows) if self.privacy is None else (self.points - self._row_sums) / cells
        return self._without_chance(self.counts.astype(np.float64) + np.repeat(moved, cells))

    @cached_property
    def _loose_table(self) -> npt.NDArray[np.float64]:
        """`table` without moved rows: each cell has its own noise only."""
        return self._without_chance(self.counts.astype(np.float64))

    def _without_chance(self, table: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """A table corrected for the points that are in spread rows' cells by chance."""
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
            queries: float64 of shape (m, columns).

        Returns:
            float64 of shape (m, rows).

        Raises:
            DataError: Queries that the family refuses, or as `points`.
        """
        return self._read(self.table, queries)

    def kernel_sums(
        self, queries: Points, how: How = "huber", *, groups: int | None = None
    ) -> npt.NDArray[np.float64]:
        """Σ_x k(x, q) over the sketched points, for each query (RACE, Algorithm 2).

        ``mean``: of the rows' estimates, unbiased. ``median-of-means``: the median of the means of groups of
        rows, with a larger error on average and a smaller probability of a very large one (Theorem 4).
        ``huber``: Huber's estimate of location with the threshold N̂. A row's count is never farther than N
        from the kernel sum; anything farther is noise, and weighs as if it were at the threshold. If Laplace
        noise is much larger than N that is about a median, with half the mean's variance. If noise is small,
        or not Laplace noise, it is the mean.

        Args:
            queries: float64 of shape (m, columns).
            how: One of these.
            groups: Groups of a median of means, from 1 to the number of rows; None: `GROUPS`, or the rows if
                there are fewer.

        Returns:
            float64 of shape (m,); noise can make it negative.

        Raises:
            ConfigError: `how` or `groups` is something else.
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
        """Standard deviation of the mean of the rows' estimates by noise on cells; 0 without noise."""
        if self.privacy is None:
            return 0.0
        cells = self.family.cells.astype(np.float64)
        left = np.where(self.family.spread, cells / np.maximum(cells - 1.0, 1.0), 1.0 - 1.0 / cells)
        return math.sqrt(self.privacy.cell_variance * float(left.sum())) / self.family.rows


def empty_sketches(
    family: HashFamily,
    classes: int,
    calibration: RaceCalibration | None,
    source: NoiseSource | None,
    *,
    sizes: Sequence[int] | None = None,
) -> tuple[Sketch, ...]:
    """A sketch of no points for each of so many classes: its noise, or zeros.

    Args:
        calibration: For the cells and sizes of all classes together; None: no noise, no privacy.
        source: Draws the noise; None without noise.
        sizes: The noise on the classes' sizes, if it was drawn before; None: it is drawn here.

    Raises:
        LocalProtocolError: A calibration without a source, or a source without one.
    """
    check_noise(calibration, source)
    cells = int(family.cells.sum())
    if calibration is None or source is None:
        return (Sketch(family, np.zeros(cells, dtype=np.int64), 0, None),) * classes
    noise = np.array(source.draw(calibration.cells), dtype=np.int64).reshape(classes, cells)
    if sizes is None:
        sizes = [0] * classes if calibration.sizes is None else source.draw(calibration.sizes).tolist()
    privacy = calibration.privacy(source)
    return tuple(Sketch(family, part, int(size), privacy) for part, size in zip(noise, sizes, strict=True))


def _huber(samples: npt.NDArray[np.float64], threshold: float) -> npt.NDArray[np.float64]:
    """Huber's estimate of location along the last axis, by Newton's method from the mean, each row alone."""
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
