"""The `kme` release of a catalogue entry: Σφ of a dataset with discrete Gaussian noise."""

from __future__ import annotations

import math
from typing import Final, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from consumer.target import map_identity
from hushbid.catalogue.estimates import NoisyMean
from hushbid.catalogue.model import Digest, EntryPart, Matrix, Vector, array_error, check_projection
from hushbid.kme.privacy import Calibration, calibrate
from protocol.config.session import FeatureSection
from protocol.data import Dataset
from protocol.data.dataset import row_chunks
from protocol.errors import ConfigError
from protocol.privacy.accounting import Cost, DiscreteGaussianCost
from protocol.privacy.noise import NoiseSource
from protocol.privacy.releases import Neighbours
from protocol.privacy.releases.gaussian import SMALLEST_SIGMA
from protocol.session.session import feature_space_of
from protocol.space.features import FeatureMap, FeatureSpace
from protocol.space.grid import FEATURE_UNIT, Totals

__all__ = ["MAX_POINTS", "KmeRelease", "feature_map_of", "kme_calibration", "release_kme"]

MAX_POINTS: Final = 10_000
"""Most synthetic points of an entry."""


class KmeRelease(EntryPart):
    """A dataset's mean embedding (KME, §4; DESIGN §2, `gaussian`).

    `total` is Σφ + Z with Z discrete Gaussian of standard deviation `sigma` on each coordinate, in grid units
    of 2^-15. Under `substitute-one` the number of points is public. Under `add-remove-one` it is one
    coordinate more of the same noisy vector: each point has `count_unit` there, so that its vector is at most
    √(‖φ‖² + count_unit²) long, which is what the noise is calibrated to.

    Attributes:
        kind: "kme".
        features: The feature map, its public seed, and the public bounds of the columns.
        digest: SHA-256 of the map's frequencies and phases (`FeatureMap.digest`).
        sigma: σ in grid units.
        total: int64 of shape (d,).
        count: The number of points under `substitute-one`; the noisy number times `count_unit` else.
        count_unit: What a point counts in the noisy number, in grid units; 0 where the number is public.
        points: Synthetic points within the bounds, float64 of shape (M, columns), of which `weights` are the
            weights; made of the noisy total, so that they cost nothing. None: there are none.
        weights: float64 of shape (M,), Σ|w| ≤ 1.
    """

    kind: Literal["kme"] = "kme"
    features: FeatureSection
    digest: Digest
    sigma: float = Field(ge=SMALLEST_SIGMA / FEATURE_UNIT, le=2.0**60, allow_inf_nan=False)
    total: Vector
    count: int = Field(ge=-(2**62), le=2**62)
    count_unit: int = Field(ge=0, le=2**20)
    points: Matrix | None = None
    weights: Vector | None = None

    @model_validator(mode="after")
    def _arrays_fit(self) -> Self:
        width, columns = self.features.dimension, self.features.columns
        if self.total.dtype != np.int64 or self.total.shape != (width,):
            raise array_error("total", f"int64 of {width} values")
        if (self.points is None) is not (self.weights is None):
            raise ValueError("points and weights go together")
        if self.points is None or self.weights is None:
            return self
        if (
            self.points.dtype != np.float64
            or self.points.shape[1] != columns
            or len(self.points) > MAX_POINTS
        ):
            raise array_error("points", f"float64 of up to {MAX_POINTS} rows of {columns}")
        if self.weights.dtype != np.float64 or self.weights.shape != (len(self.points),):
            raise array_error("weights", f"float64 of {len(self.points)} values")
        if math.fsum(np.abs(self.weights)) > 1.0:
            raise ValueError("the weights' absolute values add up to more than 1")
        return self

    @property
    def column_count(self) -> int:
        """Feature columns of a point."""
        return self.features.columns

    @property
    def norm_bound(self) -> float:
        """Largest norm of a point in its mean."""
        return feature_space_of(self.features).norm_bound

    @property
    def point_count(self) -> int:
        """Synthetic points."""
        return 0 if self.points is None else len(self.points)

    @property
    def size(self) -> float:
        """The number of points, noisy or not."""
        return self.count / (self.count_unit or 1)

    @property
    def size_deviation(self) -> float:
        """Standard deviation of the noise on `size`."""
        return self.sigma / self.count_unit if self.count_unit else 0.0

    def functions(self) -> bytes:
        """What entries that can be compared have in common, 32 bytes."""
        return map_identity(feature_map_of(self.features))

    def check(self, neighbours: Neighbours) -> FeatureMap:
        """Work the feature map out again and compare it with what the entry says of it.

        Returns:
            The map.

        Raises:
            ConfigError: The map cannot be made, is another, or synthetic points lie out of bounds.
        """
        feature_map = feature_map_of(self.features)
        if feature_map.digest != self.digest:
            raise ConfigError("Its feature map's digest is not that of the map that its seed gives.")
        if (self.count_unit == 0) is not (neighbours is Neighbours.SUBSTITUTE_ONE):
            raise ConfigError("Its number of points is noisy where it is public, or exact where it is not.")
        if self.count_unit == 0 and self.count < 1:
            raise ConfigError("Its number of points is none.")
        if self.points is not None and not _within(self.points, feature_map.space):
            raise ConfigError("A synthetic point lies out of its public bounds.")
        return feature_map

    def costs(self, neighbours: Neighbours) -> tuple[Cost, ...]:
        """What the noise costs, recomputed."""
        longest = _longest(feature_space_of(self.features))
        changed, width = 2.0 * longest, len(self.total)
        if neighbours is Neighbours.ADD_REMOVE_ONE:
            changed, width = math.hypot(longest, self.count_unit), width + 1
        return (DiscreteGaussianCost(sensitivity=changed, sigma=self.sigma, width=width, count=1),)

    def noisy_mean(self) -> NoisyMean:
        """The mean embedding as a consumer estimates it."""
        size = max(self.size, 1.0)
        return NoisyMean(
            self.total * (FEATURE_UNIT / size),
            variance=(self.sigma * FEATURE_UNIT / size) ** 2,
            fourth=0.0,
            size=size,
            size_variance=(self.size_deviation / size) ** 2,
        )


def feature_map_of(section: FeatureSection) -> FeatureMap:
    """The public map of a section.

    Raises:
        ConfigError: It has no seed, or parameters that no map has.
    """
    if section.seed is None:
        raise ConfigError(
            "The feature map has no public seed.", advice="A catalogue's map is public: set features.seed."
        )
    check_projection(section.dimension, section.columns)
    return feature_space_of(section).map(section.seed)


def release_kme(
    dataset: Dataset,
    section: FeatureSection,
    *,
    neighbours: Neighbours,
    epsilon: float,
    delta: float,
    noise: NoiseSource,
) -> KmeRelease:
    """Release a dataset's mean embedding. What it costs has been charged already (`kme_calibration`).

    Args:
        dataset: Its features within the public bounds of `section`.
        section: The feature map, with a public seed.
        neighbours: The datasets that ε compares.
        epsilon: Positive.
        delta: In (0, 1).
        noise: Draws the noise.
    """
    feature_map = feature_map_of(section)
    calibration = kme_calibration(feature_map.space, neighbours, epsilon, delta)
    count_unit = calibration.count_unit
    total = np.zeros(section.dimension, dtype=np.int64)
    for start, stop in row_chunks(dataset.features):
        total += feature_map.hash(dataset.features[start:stop]).sum(axis=0, dtype=np.int64)
    vector: Totals = np.append(total, np.int64(count_unit * len(dataset))) if count_unit else total
    noisy = vector + noise.draw(calibration.draw)
    return KmeRelease(
        features=section,
        digest=feature_map.digest,
        sigma=calibration.draw.scale,
        total=noisy[: section.dimension].copy(),
        count=int(noisy[-1]) if count_unit else len(dataset),
        count_unit=count_unit,
    )


def kme_calibration(space: FeatureSpace, neighbours: Neighbours, epsilon: float, delta: float) -> Calibration:
    """The noise of a release and what it costs: that of a KME release (`hushbid.kme.privacy.calibrate`).

    One point in the place of another changes Σφ by 2·max‖φ‖ at most.

    Raises:
        ConfigError: ε or δ outside of its range, or so small that no noise meets them; or so large an ε that
            there is hardly any.
    """
    if delta == 0.0:
        raise ConfigError("A `kme` entry has Gaussian noise, and no δ.", advice="Give a δ above 0.")
    longest = _longest(space)
    calibration = calibrate(
        record_norm=longest,
        distance=2.0 * longest,
        width=space.dimension,
        neighbours=neighbours,
        epsilon=epsilon,
        delta=delta,
    )
    if calibration.draw.scale < SMALLEST_SIGMA / FEATURE_UNIT:
        raise ConfigError(f"epsilon = {epsilon:g} leaves hardly any noise.", advice="Ask for a smaller ε.")
    return calibration


def _longest(space: FeatureSpace) -> float:
    """Largest norm of a point's φ, in grid units."""
    return space.norm_bound / FEATURE_UNIT


def _within(points: npt.NDArray[np.float64], space: FeatureSpace) -> bool:
    upper = space.lower + space.range
    room = 1e-9 * space.range
    return bool(((points >= space.lower - room) & (points <= upper + room)).all())
