"""The `kme` release of a catalogue entry: Σφ of a dataset with discrete Gaussian noise."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from hushbid.catalogue.consumer_release import (
    RELATION,
    Asked,
    ConsumerData,
    make_target,
    other_price,
    read_target,
)
from hushbid.catalogue.estimates import NoisyMean
from hushbid.catalogue.model import Digest, EntryRelease, Matrix, Vector, array_error, check_projection
from hushbid.consumer.target import map_identity
from hushbid.kme.privacy import KmeCalibration, calibrate
from hushbid.protocol import limits
from hushbid.protocol.config.session import FeatureSection
from hushbid.protocol.data import Dataset
from hushbid.protocol.data.dataset import row_chunks
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.privacy.accounting import Cost, DiscreteGaussianCost
from hushbid.protocol.privacy.noise import NoiseSource
from hushbid.protocol.privacy.releases import Neighbours
from hushbid.protocol.privacy.releases.gaussian import SMALLEST_SIGMA
from hushbid.protocol.session.session import feature_space_of
from hushbid.protocol.space.features import FeatureMap, FeatureSpace, PairedSpace
from hushbid.protocol.space.grid import FEATURE_UNIT, Totals

if TYPE_CHECKING:
    from hushbid.catalogue.consumer_release import Screening

__all__ = ["MAX_POINTS", "KmeRelease", "feature_map_of"]

MAX_POINTS: Final = 10_000
"""Maximum number of synthetic points in an entry."""


class KmeRelease(EntryRelease):
    """A dataset's mean embedding (KME, §4; DESIGN §2, `gaussian`).

    `total` is Σφ + Z with Z discrete Gaussian of standard deviation `sigma` on each coordinate, in grid units
    of 2^-15. Under `substitute-one` the number of points is public. Under `add-remove-one` it is one more
    coordinate of the noisy vector, in which each point has `count_unit`. The noise is calibrated to the
    length of such a vector, √(‖φ‖² + count_unit²).

    Attributes:
        features: The feature map, its public seed, and the public bounds of the columns.
        digest: SHA-256 of the map's frequencies and phases (`FeatureMap.digest`).
        total: int64 of shape (d,).
        count: The number of points under `substitute-one`; else the noisy number times `count_unit`.
        count_unit: The weight of a point in the noisy number, in grid units; 0 where the number is public.
        points: Synthetic points within the bounds, float64 of shape (M, columns), made from the noisy total.
            None: there are none.
        weights: Their weights, float64 of shape (M,), Σ|w| ≤ 1.
    """

    SECTION = FeatureSection
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

    @classmethod
    def check_points(cls, section: FeatureSection, points: int) -> None:
        if section.map != PairedSpace.name:
            super().check_points(section, points)
        room = limits.MAX_ENTRY_FILE_BYTES // 2 // (8 * (section.columns + 1))
        if points > (most := min(MAX_POINTS, room)):
            raise ConfigError(
                f"{points} synthetic points were asked for; an entry of these columns has {most} at most.",
                advice="Ask for fewer.",
            )

    @classmethod
    def calibration(
        cls, section: FeatureSection, neighbours: Neighbours, epsilon: float, delta: float
    ) -> KmeCalibration:
        # Substituting one point changes Σφ by at most 2·max‖φ‖.
        space = feature_map_of(section).space
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
            raise ConfigError(f"epsilon = {epsilon:g} leaves almost no noise.", advice="Ask for a smaller ε.")
        return calibration

    @classmethod
    def of(
        cls, dataset: Dataset, section: FeatureSection, calibration: KmeCalibration, noise: NoiseSource
    ) -> Self:
        feature_map = feature_map_of(section)
        count_unit, total = calibration.count_unit, _total(feature_map, dataset)
        vector: Totals = np.append(total, np.int64(count_unit * len(dataset))) if count_unit else total
        noisy = vector + noise.draw(calibration.draw)
        return cls(
            features=section,
            digest=feature_map.digest,
            sigma=calibration.draw.scale,
            total=noisy[: section.dimension].copy(),
            count=int(noisy[-1]) if count_unit else len(dataset),
            count_unit=count_unit,
        )

    def with_points(self, count: int) -> Self:
        if count == 0:
            return self
        from hushbid.kme.reduced_set import reduced_set

        feature_map = feature_map_of(self.features)
        space = feature_map.space
        mean = self.noisy_mean()
        points, weights = reduced_set(
            mean.mean,
            feature_map,
            lower=space.lower,
            upper=space.lower + space.range,
            count=count,
            sigma=self.sigma * FEATURE_UNIT / mean.size,
            seed=self.features.seed or 0,
        )
        return type(self)(**{**self.__dict__, "points": points, "weights": weights})

    @property
    def section(self) -> FeatureSection:
        return self.features

    @property
    def norm_bound(self) -> float:
        return feature_space_of(self.features).norm_bound

    @property
    def point_count(self) -> int:
        return 0 if self.points is None else len(self.points)

    def point_features(self) -> npt.NDArray[np.float64] | None:
        if self.points is None:
            return None
        return np.asarray(feature_map_of(self.features).hash(self.points) * FEATURE_UNIT)

    @property
    def size(self) -> float:
        return self.count / (self.count_unit or 1)

    @property
    def size_deviation(self) -> float:
        return self.sigma / self.count_unit if self.count_unit else 0.0

    def functions(self) -> bytes:
        return map_identity(feature_map_of(self.features))

    def check(self, neighbours: Neighbours) -> None:
        feature_map = feature_map_of(self.features)
        if feature_map.digest != self.digest:
            raise ConfigError("The feature map from its seed has another digest.")
        self.check_size(neighbours, public=self.count_unit == 0)
        if self.points is not None and not _within(self.points, feature_map.space):
            raise ConfigError("A synthetic point lies out of its public bounds.")

    def costs(self, neighbours: Neighbours) -> tuple[Cost, ...]:
        longest = _longest(feature_space_of(self.features))
        changed, width = 2.0 * longest, len(self.total)
        if neighbours is Neighbours.ADD_REMOVE_ONE:
            changed, width = math.hypot(longest, self.count_unit), width + 1
        return (DiscreteGaussianCost(sensitivity=changed, sigma=self.sigma, width=width, count=1),)

    def noisy_mean(self) -> NoisyMean:
        size = max(self.size, 1.0)
        return NoisyMean(
            self.total * (FEATURE_UNIT / size),
            variance=(self.sigma * FEATURE_UNIT / size) ** 2,
            fourth=0.0,
            size=size,
            size_variance=(self.size_deviation / size) ** 2,
        )

    def target(self, what: Screening, consumer: ConsumerData) -> tuple[NoisyMean, dict[str, Any] | None]:
        """As the base; a session may reuse the release as its target (`hushbid.consumer.target`)."""
        feature_map = feature_map_of(self.features)
        if what.unaccounted:
            size, total = len(consumer.validation), _total(feature_map, consumer.validation)
            mean = np.asarray(total * (FEATURE_UNIT / size), dtype=np.float64)
            return NoisyMean(mean, 0.0, 0.0, float(size), 0.0), None
        asked, fresh = what.asked(), not consumer.target.exists()
        if fresh:
            kept = make_target(asked, feature_map, consumer, what.noise())
        else:
            kept = read_target(consumer, feature_map)
            if Asked(kept.mechanism, kept.parameters, kept.delta) != asked:
                raise other_price(consumer.target)
        guarantee = asked.mechanism_of(feature_map).guarantee(neighbours=RELATION, delta=asked.delta)
        release = kept.release
        described = consumer.described(
            asked.mechanism, guarantee.epsilon, asked.delta, release.noise_name, charged=fresh
        )
        return NoisyMean(release.embedding, kept.deviation**2, 0.0, float(release.size), 0.0), described


def feature_map_of(section: FeatureSection) -> FeatureMap:
    """The public map of a section; raise a ConfigError without a seed or with invalid parameters."""
    if section.seed is None:
        raise ConfigError(
            "The feature map has no public seed.", advice="A catalogue's map is public: set features.seed."
        )
    check_projection(section.dimension, section.columns)
    return feature_space_of(section).map(section.seed)


def _total(feature_map: FeatureMap, dataset: Dataset) -> Totals:
    """Σφ without noise: anything derived from it reveals the dataset."""
    total = np.zeros(feature_map.space.dimension, dtype=np.int64)
    for start, stop in row_chunks(dataset.features):
        total += feature_map.hash(dataset.features[start:stop]).sum(axis=0, dtype=np.int64)
    return total


def _longest(space: FeatureSpace) -> float:
    """Largest norm of a point's φ, in grid units."""
    return space.norm_bound / FEATURE_UNIT


def _within(points: npt.NDArray[np.float64], space: FeatureSpace) -> bool:
    upper = space.lower + space.range
    room = 1e-9 * space.range
    return bool(((points >= space.lower - room) & (points <= upper + room)).all())
