"""Algorithms 1 and 2 in three steps: sums of whole numbers, their noise, and weighted points."""

from __future__ import annotations

import math
from typing import Final, Protocol, TypeAlias, Unpack

import numpy as np
import numpy.typing as npt

from hushbid.kme.kernels import in_threads
from hushbid.kme.privacy import Calibration, Guarantee, calibrate
from hushbid.kme.reduced_set import WeightRule, reduced_set
from hushbid.kme.shrinkage import Risk, shrunk_weights
from hushbid.kme.subspace import COORDINATE_UNIT, span
from protocol.space.features import PairedSpace
from protocol.space.grid import FEATURE_UNIT, features_to_float

__all__ = ["FeatureMechanism", "Mechanism", "SubspaceMechanism"]

Points: TypeAlias = npt.NDArray[np.float64]
Vector: TypeAlias = npt.NDArray[np.float64]
Totals: TypeAlias = npt.NDArray[np.int64]

CHUNK_VALUES: Final = 2**20
"""Features that a thread works out at a time."""


class Mechanism(Protocol):
    """One of the paper's algorithms with its public part computed. All points are scaled to [0, 1].

    Attributes:
        calibration: The noise of `totals`, and its cost.
        unit: The value of a unit of `totals`.
    """

    calibration: Calibration
    unit: float

    def totals(self, data: Points) -> Totals:
        """Sum over records of vectors of whole numbers: private, int64 of shape (width,)."""
        ...

    def finish(self, noisy: Vector, sigma: float) -> tuple[Points, Vector, Risk]:
        """Points, weights and an estimate of the squared distance, from the noisy mean alone.

        Args:
            noisy: Mean of the records' vectors with noise, shape (width,).
            sigma: Standard deviation of that noise on each coordinate.
        """
        ...


class SubspaceMechanism:
    """Algorithm 1: the embedding's projection on the span of public points (`hushbid.kme.subspace`).

    Args:
        points: Public points, scaled, shape (M, columns).
        gamma: γ.
        norm: C; may be infinite.
        seed: Seed of the probes that test the basis.
        guarantee: `neighbours`, `epsilon` and `delta` of `calibrate`.
    """

    unit = COORDINATE_UNIT

    def __init__(
        self,
        points: Points,
        *,
        gamma: float,
        norm: float,
        seed: int,
        **guarantee: Unpack[Guarantee],
    ) -> None:
        self.span = span(points, gamma, np.random.default_rng(seed))
        self._norm = norm
        self.calibration = calibrate(
            record_norm=self.span.record_norm,
            distance=self.span.distance,
            width=self.span.rank,
            **guarantee,
        )

    def totals(self, data: Points) -> Totals:
        return self.span.totals(data)

    def finish(self, noisy: Vector, sigma: float) -> tuple[Points, Vector, Risk]:
        weights, risk = shrunk_weights(self.span.coordinates, noisy, sigma, self._norm)
        return self.span.points, weights, risk


class FeatureMechanism:
    """Algorithm 2: the mean of random Fourier features, and a reduced set of new points.

    The features are those of a `paired` map, ‖φ‖ = 1 before they are rounded to the grid of 2^-15, and the
    sensitivity holds for the rounded ones (`PairedSpace.norm_bound`). Two of them can be opposite, so that
    substitution has the distance 2·max‖φ‖, and not √2: random features' kernel can be negative.

    Args:
        columns: Columns of the data.
        gamma: γ.
        dimension: J, even.
        count: M.
        norm: C.
        weights: As `reduced_set`.
        seed: Seed of the map and of the starting points.
        guarantee: `neighbours`, `epsilon` and `delta` of `calibrate`.
    """

    unit = FEATURE_UNIT

    def __init__(
        self,
        columns: int,
        *,
        gamma: float,
        dimension: int,
        count: int,
        norm: float,
        weights: WeightRule,
        seed: int,
        **guarantee: Unpack[Guarantee],
    ) -> None:
        space = PairedSpace(dimension=dimension, gamma=gamma, lower=0.0, upper=1.0, columns=columns)
        self.map = space.map(seed)
        self._count, self._norm, self._weights, self._seed = count, norm, weights, seed
        length = space.norm_bound / FEATURE_UNIT
        self.calibration = calibrate(record_norm=length, distance=2.0 * length, width=dimension, **guarantee)

    def totals(self, data: Points) -> Totals:
        rows = max(1, CHUNK_VALUES // self.map.space.dimension)

        def part(start: int) -> Totals:
            return np.asarray(self.map.hash(data[start : start + rows]).sum(axis=0, dtype=np.int64))

        return np.asarray(np.sum(in_threads(part, range(0, len(data), rows)), axis=0))

    def finish(self, noisy: Vector, sigma: float) -> tuple[Points, Vector, Risk]:
        """The reduced set, with Stein's estimate of its squared distance in features.

        The estimate counts a degree of freedom for each weight that is not 0 and for each coordinate of its
        point. It errs upwards: the constraint leaves fewer.
        """
        points, weights = reduced_set(
            noisy,
            self.map,
            lower=0.0,
            upper=1.0,
            count=self._count,
            norm=self._norm,
            weights=self._weights,
            sigma=sigma,
            seed=self._seed,
        )
        rest = -noisy
        rows = max(1, CHUNK_VALUES // len(noisy))
        for start in range(0, len(points), rows):
            features = features_to_float(self.map.hash(points[start : start + rows]))
            rest += weights[start : start + rows] @ features
        free = np.count_nonzero(weights) * (points.shape[1] + 1)
        freedom = 2.0 * min(free, len(noisy)) - len(noisy)
        mean = float(rest @ rest) + freedom * sigma**2
        deviation = sigma * math.sqrt(2.0 * len(noisy) * sigma**2 + 4.0 * max(mean, 0.0))
        return points, weights, Risk(mean, deviation)
