"""p-stable projections: kernels of the Euclidean and of the Manhattan distance (Datar et al. 2004)."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from hushbid.protocol import ranges
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.intervals import within
from hushbid.protocol.space.expansion import cauchys, uniforms
from hushbid.protocol.space.lsh.base import Cells, HashFamily, Points, Sampling, interval
from hushbid.protocol.space.lsh.projection import ExactProjection

__all__ = ["L1Family", "L2Family", "StableFamily"]


class StableFamily(HashFamily):
    """h(x) = ⌊a·x/w + b⌋, with a's coordinates from a p-stable law, b ~ U[0, 1) and the bandwidth w.

    a·(x - y) is distributed as the distance of x and y times one variable of the law. Hence points at c
    bandwidths from each other collide with a probability that depends on c alone.

    Args:
        bandwidth: w, positive, in the unit of the points.

    Raises:
        ConfigError: As `HashFamily`, or bounds that are too wide for the bandwidth.
    """

    metric: ClassVar[Literal["euclidean", "cityblock"]]

    def __init__(
        self,
        *,
        rows: int,
        width: int,
        lower: npt.ArrayLike,
        upper: npt.ArrayLike,
        seed: int | bytes,
        bandwidth: float,
        power: int = 1,
        sampling: Sampling = "independent",
    ) -> None:
        if not within(ranges.Bandwidth, bandwidth):
            raise ConfigError(
                f"Hash functions {self.name!r}: the bandwidth {bandwidth} is not positive.",
                advice="Set it to a distance at which points count as near.",
            )
        self.bandwidth = bandwidth
        super().__init__(
            rows=rows, width=width, lower=lower, upper=upper, seed=seed, power=power, sampling=sampling
        )

    def _draw(self) -> None:
        low, high = self.lower / self.bandwidth, self.upper / self.bandwidth
        directions = self._directions()
        reach = max(float(np.abs(low).max()), float(np.abs(high).max()))
        self._projection = ExactProjection(directions, reach=reach)
        self._offsets = self._drawn_rows("offsets", 1, uniforms)[:, 0]
        least, most = interval(self._projection.directions, low, high, step=self._projection.step)
        self._first = np.floor(least + self._offsets)
        bases = np.floor(most + self._offsets) - self._first + 1.0
        if bases.max() >= 2.0**31:
            raise ConfigError(
                f"Hash functions {self.name!r} have {bases.max():.3g} codes within the public bounds.",
                advice="Use a larger bandwidth, or narrower bounds.",
            )
        self._join(bases.astype(np.int64).reshape(self.rows, self.power))

    @property
    def _parameters(self) -> tuple[float, ...]:
        return (self.bandwidth,)

    @property
    def _drawn(self) -> tuple[npt.NDArray[np.float64], ...]:
        return self._projection.directions, self._offsets

    @property
    def directions(self) -> npt.NDArray[np.float64]:
        """What points are projected on, a/w: shape (rows, power, columns), in one over the points' unit."""
        return (self._projection.directions / self.bandwidth).reshape(self.rows, self.power, self.columns)

    @property
    def edges(self) -> npt.NDArray[np.float64]:
        """Where the first code begins, shape (rows, power): code k is for projections from edge + k on."""
        return (self._first - self._offsets).reshape(self.rows, self.power)

    @abstractmethod
    def _directions(self) -> npt.NDArray[np.float64]:
        """Coordinates of the directions, from the p-stable law: shape (rows * power, columns)."""

    @abstractmethod
    def collision(self, distances: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """The probability that two points collide under one function, by their distance in bandwidths."""

    def hash(self, points: Points) -> Cells:
        """⌊a·x/w + b⌋, counted from the row's first code."""
        self.check_points(points)
        codes = self._projection.of(points / self.bandwidth)
        codes += self._offsets
        np.floor(codes, out=codes)
        codes -= self._first
        if self.power == 1 and not self.spread.any():
            return codes.astype(np.int32)
        return self._cell(codes.astype(np.int64).reshape(len(points), self.rows, self.power))

    def kernel(self, points: Points, queries: Points) -> npt.NDArray[np.float64]:
        """`collision` of the points' distances, to the power p."""
        from scipy.spatial.distance import cdist  # noqa: PLC0415 - no party computes kernels

        distances = np.asarray(cdist(points, queries, self.metric), dtype=np.float64) / self.bandwidth
        return np.asarray(self.collision(distances) ** self.power)


class L2Family(StableFamily):
    """a ~ N(0, I): at c bandwidths 1 - 2Φ(-1/c) - c·√(2/π)·(1 - e^(-1/(2c²))) (Datar et al. 2004)."""

    name: ClassVar[str] = "l2"
    metric = "euclidean"

    def _directions(self) -> npt.NDArray[np.float64]:
        return self._normals(self.columns)

    def collision(self, distances: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        from scipy.special import ndtr  # noqa: PLC0415 - no party computes kernels

        c = np.maximum(distances, 1e-12)
        probability = 1.0 - 2.0 * ndtr(-1.0 / c) + c * math.sqrt(2.0 / math.pi) * np.expm1(-0.5 / c**2)
        return np.asarray(np.clip(probability, 0.0, 1.0))


class L1Family(StableFamily):
    """a of Cauchy coordinates: at c bandwidths 2·atan(1/c)/π - (c/π)·ln(1 + 1/c²) (Datar et al. 2004)."""

    name: ClassVar[str] = "l1"
    metric = "cityblock"

    def _directions(self) -> npt.NDArray[np.float64]:
        if self.sampling == "sobol":
            return np.asarray(np.tan(math.pi * (self._sobol(self.columns) - 0.5)))
        return self._drawn_rows("directions", self.columns, cauchys, words=2)

    def collision(self, distances: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        c = np.maximum(distances, 1e-12)
        probability = 2.0 * np.arctan(1.0 / c) / math.pi - c / math.pi * np.log1p(1.0 / c**2)
        return np.asarray(np.clip(probability, 0.0, 1.0))
