"""The `race` release of a catalogue entry: an LSH count sketch of a dataset with noise on every count."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from hushbid.catalogue.consumer_release import RELATION, ConsumerData, another, other_price
from hushbid.catalogue.estimates import NoisyMean
from hushbid.catalogue.model import (
    Digest,
    EntryPart,
    EntryRelease,
    Vector,
    array_error,
    check_projection,
    decode_part,
    encode_part,
)
from hushbid.catalogue.sketch_ranges import MAX_CELLS, Power, Rows, Width
from hushbid.protocol import limits, ranges
from hushbid.protocol.config.section import FINITE
from hushbid.protocol.config.session import Real
from hushbid.protocol.data import Dataset, dataset_digest
from hushbid.protocol.data.dataset import row_chunks
from hushbid.protocol.errors import ConfigError, DataError
from hushbid.protocol.privacy.accounting import ApproximateCost, Cost, DiscreteGaussianCost
from hushbid.protocol.privacy.noise import Draw, NoiseSource
from hushbid.protocol.privacy.releases import Neighbours
from hushbid.protocol.runtime.files.durable import write_new
from hushbid.protocol.runtime.files.private_files import read_private
from hushbid.protocol.space.lsh import FAMILIES, HashFamily
from hushbid.race.counts import Counts, count_cells
from hushbid.race.release import CHANGED, RaceCalibration, calibrate

if TYPE_CHECKING:
    from hushbid.catalogue.consumer_release import Screening

__all__ = ["HashSection", "RaceEntry", "exact_counts", "hash_family_of"]

SMALLEST_SCALE: Final = 2.0**-10
"""Smallest scale of the noise on a count: far below it noise is 0, and hides nothing."""
_SKETCH_TAG: Final = b"hushbid target sketch 1\n"
"""The first bytes of a stored sketch's file."""


class HashSection(EntryPart):
    """The hash functions of a sketch, all public (`hushbid.protocol.space.lsh`).

    Attributes:
        family: "l2" and "l1" hash by distance, "srp" by angle.
        rows: R, the number of functions.
        width: W, maximum cells per row.
        power: Number of functions of the family joined into one.
        bandwidth: Bandwidth of l2 and l1, in the unit of the data; None for srp.
        seed: Seed of the functions.
        columns: Feature columns of a point.
        lower, upper: Public bounds, one number or one per column.
    """

    family: Literal["l2", "l1", "srp"]
    rows: Rows
    width: Width
    power: Power = 1
    bandwidth: Annotated[ranges.Bandwidth, FINITE] | None = None
    seed: ranges.PublicSeed
    columns: ranges.Columns
    lower: Real | list[Real] = 0.0
    upper: Real | list[Real] = 1.0

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if (self.bandwidth is None) is not (self.family == "srp"):
            raise ValueError("the families l2 and l1 need a bandwidth, and srp has none")
        if self.rows * self.width > MAX_CELLS:
            raise ValueError(f"a sketch has at most {MAX_CELLS} cells")
        for name in ("lower", "upper"):
            bound = getattr(self, name)
            if isinstance(bound, list) and len(bound) != self.columns:
                raise ValueError(f"{name} has {len(bound)} values for {self.columns} columns")
        return self


class RaceEntry(EntryRelease):
    """An LSH count sketch (RACE, Algorithm 1) with noise on every cell (`hushbid.race.release.calibrate`).

    Under `substitute-one` the number of points is public. Under `add-remove-one` it has discrete Laplace
    noise of its own, for a share of ε.

    Attributes:
        hashes: The hash functions.
        digest: SHA-256 of all their parameters (`HashFamily.digest`).
        distribution, scale: Of the noise on each cell.
        counts: Noisy counts of the cells, row after row, in the smallest of int16, int32 and int64 that holds
            them.
        count: The number of points, noisy or not.
        count_scale: Scale of the discrete Laplace noise on `count`; 0 where the number is public.
    """

    SECTION = HashSection
    kind: Literal["race"] = "race"
    hashes: HashSection
    digest: Digest
    distribution: Literal["discrete-laplace", "discrete-gaussian"]
    scale: float = Field(gt=SMALLEST_SCALE, le=2.0**56, allow_inf_nan=False)
    counts: Vector
    count: int = Field(ge=-(2**62), le=2**62)
    count_scale: float = Field(ge=0, le=2.0**56, allow_inf_nan=False)

    @model_validator(mode="after")
    def _counts_fit(self) -> Self:
        if self.counts.dtype.kind != "i" or self.counts.dtype != _smallest(self.counts):
            raise array_error("counts", "of the smallest type of whole numbers")
        return self

    @classmethod
    def calibration(
        cls, section: HashSection, neighbours: Neighbours, epsilon: float, delta: float
    ) -> RaceCalibration:
        cells = int(hash_family_of(section).cells.sum())
        found = calibrate(rows=section.rows, cells=cells, neighbours=neighbours, epsilon=epsilon, delta=delta)
        if found.cells.scale <= SMALLEST_SCALE:
            raise ConfigError(f"epsilon = {epsilon:g} leaves almost no noise.", advice="Ask for a smaller ε.")
        return found

    @classmethod
    def of(
        cls, dataset: Dataset, section: HashSection, calibration: RaceCalibration, noise: NoiseSource
    ) -> Self:
        family = hash_family_of(section)
        counts = exact_counts(family, dataset) + noise.draw(calibration.cells)
        sizes = calibration.sizes
        distribution: Literal["discrete-laplace", "discrete-gaussian"] = "discrete-laplace"
        if calibration.cells.distribution == "discrete-gaussian":
            distribution = "discrete-gaussian"
        return cls(
            hashes=section,
            digest=family.digest,
            distribution=distribution,
            scale=calibration.cells.scale,
            counts=counts.astype(_smallest(counts)),
            count=len(dataset) + (0 if sizes is None else int(noise.draw(sizes)[0])),
            count_scale=0.0 if sizes is None else sizes.scale,
        )

    @property
    def section(self) -> HashSection:
        return self.hashes

    @property
    def size(self) -> float:
        return float(self.count)

    @property
    def size_deviation(self) -> float:
        if self.count_scale == 0.0:
            return 0.0
        return math.sqrt(Draw("discrete-laplace", self.count_scale, 1).variance)

    def check(self, neighbours: Neighbours) -> None:
        family = hash_family_of(self.hashes)
        if family.digest != self.digest:
            raise ConfigError("The hash functions from its seed have another digest.")
        if len(self.counts) != int(family.cells.sum()):
            raise ConfigError("Its number of counts differs from the cells of its hash functions.")
        self.check_size(neighbours, public=self.count_scale == 0.0)

    def functions(self) -> bytes:
        return self.digest

    def costs(self, neighbours: Neighbours) -> tuple[Cost, ...]:
        """The costs of the noise, recomputed from its scales (RACE, Theorem 3)."""
        changed = CHANGED[neighbours]
        cells, rows = len(self.counts), changed * self.hashes.rows
        cost: Cost = ApproximateCost(epsilon=1.0 / self.scale, delta=0.0, count=rows)
        if self.distribution == "discrete-gaussian":
            cost = DiscreteGaussianCost(sensitivity=math.sqrt(rows), sigma=self.scale, width=cells, count=1)
        if self.count_scale == 0.0:
            return (cost,)
        return cost, ApproximateCost(epsilon=1.0 / self.count_scale, delta=0.0, count=changed)

    def noisy_mean(self) -> NoisyMean:
        """The mean of features that are √(1/R) in each cell that a point hashes to.

        The inner product of two points is the share of rows in which they collide: it estimates the kernel.
        """
        size = max(self.size, 1.0)
        unit = 1.0 / (size * math.sqrt(self.hashes.rows))
        laplace = self.distribution == "discrete-laplace"
        variance = Draw(self.distribution, self.scale, len(self.counts)).variance
        return NoisyMean(
            self.counts.astype(np.float64) * unit,
            variance=variance * unit**2,
            # 12·scale⁴ holds for continuous Laplace noise: less than 1 % off from a scale of 3 on.
            fourth=12.0 * (self.scale * unit) ** 4 if laplace else 0.0,
            size=size,
            size_variance=(self.size_deviation / size) ** 2,
        )

    def target(self, what: Screening, consumer: ConsumerData) -> tuple[NoisyMean, dict[str, Any] | None]:
        if what.unaccounted:
            size = len(consumer.validation)
            counts = exact_counts(hash_family_of(self.hashes), consumer.validation)
            mean = counts / (size * math.sqrt(self.hashes.rows))
            return NoisyMean(mean, 0.0, 0.0, float(size), 0.0), None
        if what.epsilon is None:
            raise ConfigError(
                "Sketches are compared with a sketch of the validation set, which no session releases.",
                advice="Give its ε with `--epsilon`.",
            )
        noise, fresh = what.noise(), not consumer.target.exists()
        if fresh:
            kept = _make_sketch(self.hashes, consumer, noise, epsilon=what.epsilon, delta=what.delta)
        else:
            kept = _read_sketch(consumer, self.digest)
            if (kept.epsilon, kept.delta) != (what.epsilon, what.delta):
                raise other_price(consumer.target)
        described = consumer.described("race", kept.epsilon, kept.delta, kept.noise, charged=fresh)
        return kept.release.noisy_mean(), described


def hash_family_of(section: HashSection) -> HashFamily:
    """The hash functions of a section; raise a ConfigError for invalid parameters."""
    check_projection(section.rows * section.power, section.columns)
    own: Mapping[str, Any] = {} if section.bandwidth is None else {"bandwidth": section.bandwidth}
    lower, upper = (
        np.broadcast_to(np.asarray(bound, dtype=np.float64), (section.columns,))
        for bound in (section.lower, section.upper)
    )
    family = FAMILIES[section.family]
    return family(
        rows=section.rows, width=section.width, power=section.power, seed=section.seed,
        lower=lower, upper=upper, **own,
    )  # fmt: skip


def exact_counts(family: HashFamily, dataset: Dataset) -> Counts:
    """The number of points in each cell, without noise: private. The dataset is within the bounds."""
    counts = np.zeros(int(family.cells.sum()), dtype=np.int64)
    for start, stop in row_chunks(dataset.features):
        # A float32 value at a bound may lie slightly outside, as the bound rounds to it.
        points = np.asarray(dataset.features[start:stop], dtype=np.float64)
        counts += count_cells(family, np.clip(points, family.lower, family.upper))
    return counts


def _smallest(counts: npt.NDArray[Any]) -> np.dtype[Any]:
    low, high = int(counts.min()), int(counts.max())
    for kind in (np.int16, np.int32):
        if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
            return np.dtype(kind)
    return np.dtype(np.int64)


@dataclass(frozen=True)
class _KeptSketch:
    """A sketch of D_v that was made and charged for screening.

    Attributes:
        release: The sketch, under substitution.
        charged_as: Its entry in the lifetime ledger of D_v.
        data: Digest of D_v.
        epsilon, delta: The requested cost.
        noise: Name of the noise source.
    """

    release: RaceEntry
    charged_as: str
    data: bytes
    epsilon: float
    delta: float
    noise: str


def _make_sketch(
    section: HashSection, consumer: ConsumerData, noise: NoiseSource, *, epsilon: float, delta: float
) -> _KeptSketch:
    """Charge D_v's lifetime ledger, make a sketch by the entries' hash functions, and store it.

    Raises:
        BudgetExceeded, ConfigError: As `make_target`.
    """
    calibration = RaceEntry.calibration(section, RELATION, epsilon, delta)
    charged_as = consumer.charge(epsilon, delta, calibration.costs, noise)
    release = RaceEntry.of(consumer.validation, section, calibration, noise)
    kept = _KeptSketch(release, charged_as, dataset_digest(consumer.validation), epsilon, delta, noise.name)
    write_new(consumer.target, _SKETCH_TAG + encode_part(dict(kept.__dict__)))
    return kept


def _read_sketch(consumer: ConsumerData, functions: bytes) -> _KeptSketch:
    """Read the stored sketch, which must be of D_v by these hash functions.

    Raises:
        DataError, ConfigError: It cannot be read, or is a different sketch.
    """
    path = consumer.target
    content = read_private(path, limits.MAX_TARGET_FILE_BYTES)
    if not content.startswith(_SKETCH_TAG):
        raise another(path, "kind")
    try:
        values = decode_part(content[len(_SKETCH_TAG) :])
        kept = _KeptSketch(**{**values, "release": RaceEntry.model_validate(values["release"])})
    except (ValueError, TypeError, KeyError):
        raise DataError(
            f"{path}: the release in it is damaged.", advice="Restore the file, or screen again."
        ) from None
    if kept.release.functions() != functions:
        raise another(path, "set of hash functions than the entries'")
    if kept.data != dataset_digest(consumer.validation):
        raise another(path, "validation set")
    return kept
