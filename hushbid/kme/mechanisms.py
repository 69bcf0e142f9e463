"""Algorithms 1 and 2 in three steps: sums of whole numbers, their noise, and weighted points."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final, Protocol, TypeAlias, Unpack

import numpy as np
import numpy.typing as npt

from hushbid.kme.freedom import degrees_of_freedom
from hushbid.kme.privacy import KmeCalibration, WantedGuarantee, calibrate
from hushbid.kme.reduced_set import WeightRule, reduced_set
from hushbid.kme.shrinkage import Risk, SpanDistance, shrunk_weights
from hushbid.kme.subspace import COORDINATE_UNIT, span
from hushbid.protocol.runtime.threads import in_threads
from hushbid.protocol.space.features import PairedSpace
from hushbid.protocol.space.grid import FEATURE_UNIT, features_to_float

__all__ = ["FeatureMechanism", "Mechanism", "SubspaceMechanism"]

Points: TypeAlias = npt.NDArray[np.float64]
Vector: TypeAlias = npt.NDArray[np.float64]
Totals: TypeAlias = npt.NDArray[np.int64]

BESIDE_SHARE: Final = 0.02
"""Share of the squared sensitivity for the distance beside the span: it raises the noise on the embedding by
1 %."""

CHUNK_VALUES: Final = 2**20
"""Features that a thread works out at a time."""


class Mechanism(Protocol):
    """One of the paper's algorithms with its public part computed. All points are scaled to [0, 1].

    Attributes:
        calibration: The noise of `totals`, and its cost.
        unit: The value of a unit of `totals`.
    """

    calibration: KmeCalibration
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

    One more coordinate says how much of the embedding is beside the span: the sum of the records' distances
    to it (`Subspace.distances`), each a whole number from 0 to `beside_unit`. A record's vector is longer by
    that, so that the squared sensitivity has `BESIDE_SHARE` more.

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
        **guarantee: Unpack[WantedGuarantee],
    ) -> None:
        self.span = span(points, gamma, np.random.default_rng(seed))
        self._norm = norm
        length, apart = self.span.record_norm, self.span.distance
        self.beside_unit = max(1, round(length * math.sqrt(BESIDE_SHARE / (1.0 - BESIDE_SHARE))))
        self.calibration = calibrate(
            record_norm=math.hypot(length, self.beside_unit),
            distance=math.hypot(apart, self.beside_unit),
            width=self.span.rank + 1,
            **guarantee,
        )

    def totals(self, data: Points) -> Totals:
        return np.append(self.span.totals(data), self.span.distances(data, self.beside_unit))

    def finish(self, noisy: Vector, sigma: float) -> tuple[Points, Vector, Risk]:
        weights, risk = shrunk_weights(self.span.coordinates, noisy[:-1], sigma, self._norm)
        unit = self.beside_unit * self.unit
        return (
            self.span.points,
            weights,
            replace(risk, beside=SpanDistance(float(noisy[-1]) / unit, sigma / unit)),
        )


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
        **guarantee: Unpack[WantedGuarantee],
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

        It counts the directions in which the weighted points can move (`degrees_of_freedom`), and errs
        upwards: the constraints leave fewer.
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
        freedom = 2.0 * degrees_of_freedom(self.map, points, weights) - len(noisy)
        mean = float(rest @ rest) + freedom * sigma**2
        deviation = sigma * math.sqrt(2.0 * len(noisy) * sigma**2 + 4.0 * max(mean, 0.0))
        return points, weights, Risk(mean, deviation)
