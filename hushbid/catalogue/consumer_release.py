"""The consumer's side of a screening: its own release of D_v, made and charged once, or kept from before.

Against `kme` entries it is the target of a session (`consumer.target`), which a session may use again;
against `race` entries a sketch by the entries' hash functions.
"""

from __future__ import annotations

import datetime
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from consumer.target import KeptTarget, map_identity, release_target
from hushbid.catalogue.entry import decode_part, encode_part
from hushbid.catalogue.estimates import NoisyMean
from hushbid.catalogue.race import (
    HashSection,
    RaceRelease,
    exact_counts,
    hash_family_of,
    race_noise,
    release_race,
)
from protocol import limits
from protocol.config.party import BudgetSection
from protocol.data import Dataset, dataset_digest
from protocol.errors import ConfigError, DataError
from protocol.privacy.accounting import Cost
from protocol.privacy.noise import NoiseSource
from protocol.privacy.releases import Neighbours, Prior, ReleaseMechanism, Setting, release_mechanism
from protocol.runtime.files.durable import write_new
from protocol.runtime.files.private_files import read_private
from protocol.runtime.ledger.known_ledgers import KnownRows
from protocol.runtime.ledger.lifetime_ledger import LifetimeLedger
from protocol.runtime.ledger.spending import Spending
from protocol.space.features import FeatureMap
from protocol.space.grid import FEATURE_UNIT, Totals

__all__ = [
    "MECHANISMS",
    "Asked",
    "KeptSketch",
    "Payment",
    "exact_mean",
    "exact_sketch_mean",
    "make_sketch",
    "make_target",
    "read_sketch",
    "read_target",
    "target_mean",
]

MECHANISMS: Final = ("gaussian", "filtered-gaussian")
"""Release mechanisms whose noise on an embedding is Gaussian and alike on all coordinates."""
SKETCH_TAG: Final = b"hushbid target sketch 1\n"
"""What the file of a kept sketch begins with."""
RELATION: Final = Neighbours.SUBSTITUTE_ONE
"""Of D_v, whose size is public."""


@dataclass(frozen=True)
class Asked:
    """What release of D_v is wanted.

    Attributes:
        mechanism: One of `MECHANISMS`.
        parameters: Its parameters, as a session file's `[target]` has them.
        delta: The δ that its ε goes with.
    """

    mechanism: str
    parameters: dict[str, Any]
    delta: float

    def mechanism_of(self, feature_map: FeatureMap, prior: Prior | None) -> ReleaseMechanism[Any]:
        """A fresh mechanism of one release.

        Raises:
            ConfigError: The mechanism is none of `MECHANISMS`, or its parameters cannot hold.
        """
        if self.mechanism not in MECHANISMS:
            raise ConfigError(
                f"Screening by a {self.mechanism!r} release of the validation set is not possible.",
                advice=f"It takes {' or '.join(MECHANISMS)} in [target]; or `--epsilon` without a session.",
            )
        setting = Setting(
            dimension=feature_map.space.dimension,
            releases=1,
            norm_bound=feature_map.space.norm_bound,
            delta=self.delta,
            prior=prior,
        )
        return release_mechanism(self.mechanism, self.parameters, setting)


@dataclass(frozen=True)
class Payment:
    """From what a release is paid, and where it is kept.

    Attributes:
        ledger: D_v's lifetime ledger.
        budget: What is said of the most that it may come to; None: what it says itself.
        rows: D_v's rows.
        path: Where the release is kept: a new file that only its owner can read.
    """

    ledger: Path
    budget: BudgetSection | None
    rows: KnownRows
    path: Path

    def charge(self, epsilon: float | None, delta: float, costs: Sequence[Cost], noise: NoiseSource) -> str:
        """Charge a release of D_v before it is made.

        Returns:
            What the ledger has it under.

        Raises:
            BudgetExceeded: The budget does not allow it; nothing was charged.
            ConfigError: The release could not be kept, or the ledger cannot be used.
        """
        if self.path.exists() or not os.access(self.path.parent, os.W_OK | os.X_OK):
            raise ConfigError(
                f"{self.path}: the release cannot be kept there.",
                advice="Name a new file with `--target-file`.",
            )
        spending = Spending(
            kind="screening",
            identifier=f"target/{os.urandom(8).hex()}",
            date=datetime.datetime.now(datetime.UTC).date(),
            neighbours=RELATION.value,
            epsilon=epsilon if noise.protects else None,
            delta=delta,
            costs=tuple(costs) if noise.protects else (),
        )
        with LifetimeLedger.open(
            self.ledger, budget=self.budget, neighbours=RELATION.value, rows=self.rows
        ) as held:
            held.warn()
            held.charge(spending)
        return spending.identifier


def make_target(
    asked: Asked,
    feature_map: FeatureMap,
    validation: Dataset,
    seed_set: Dataset | None,
    noise: NoiseSource,
    payment: Payment,
) -> KeptTarget:
    """Charge D_v's lifetime ledger, make the release, and keep it, in this order.

    Args:
        asked: What release.
        feature_map: φ, public.
        validation: D_v, within the public bounds.
        seed_set: D_init, public; None: there is none, which `filtered-gaussian` cannot do without.
        noise: Draws the noise.
        payment: From what it is paid.

    Raises:
        BudgetExceeded: The budget does not allow it; nothing was charged.
        ConfigError: The file is there already or cannot be made, or the mechanism cannot be had.
    """
    total, size = _seed_total(feature_map, seed_set)
    prior = Prior.of_total(total, size) if size else None
    mechanism = asked.mechanism_of(feature_map, prior)
    if asked.mechanism == "filtered-gaussian" and prior is None:
        raise ConfigError(
            "A filtered-gaussian release needs the public seed set.", advice="Name it with `--seed-set`."
        )
    guarantee = mechanism.guarantee(neighbours=RELATION, delta=asked.delta)
    costs = mechanism.cost(0, neighbours=RELATION)
    charged_as = payment.charge(guarantee.epsilon, guarantee.delta, costs, noise)
    kept = KeptTarget(
        release=release_target(mechanism, feature_map, validation, noise, noise_name=noise.name),
        charged_as=charged_as,
        map_identity=map_identity(feature_map),
        mechanism=asked.mechanism,
        parameters=asked.parameters,
        delta=asked.delta,
        seed_total=total,
        seed_size=size,
        data=dataset_digest(validation),
        deviation=_deviation(lambda: asked.mechanism_of(feature_map, prior), len(validation)),
    )
    write_new(payment.path, kept.to_bytes())
    return kept


def read_target(path: Path, feature_map: FeatureMap, validation: Dataset) -> KeptTarget:
    """A release that was kept, if it is one of D_v by this map: to screen again costs nothing.

    Raises:
        DataError, ConfigError: It cannot be read, or is another.
    """
    kept = KeptTarget.from_bytes(read_private(path, limits.MAX_TARGET_FILE_BYTES), where=str(path))
    if kept.map_identity != map_identity(feature_map):
        raise _another(path, "feature map or bounds than the entries'")
    if kept.data != dataset_digest(validation):
        raise _another(path, "validation set")
    return kept


@dataclass(frozen=True)
class KeptSketch:
    """A sketch of D_v that was made and charged for screening.

    Attributes:
        release: The sketch, under substitution.
        charged_as: What the lifetime ledger of D_v has it under.
        data: Digest of D_v.
        epsilon: What it was asked to cost.
        delta: The δ that goes with it.
        noise: Where its noise came from.
    """

    release: RaceRelease
    charged_as: str
    data: bytes
    epsilon: float
    delta: float
    noise: str


def make_sketch(
    section: HashSection,
    validation: Dataset,
    noise: NoiseSource,
    payment: Payment,
    *,
    epsilon: float,
    delta: float,
) -> KeptSketch:
    """Charge D_v's lifetime ledger, make a sketch by the entries' hash functions, and keep it.

    Raises:
        BudgetExceeded, ConfigError: As `make_target`.
    """
    calibration = race_noise(section, RELATION, epsilon, delta)
    charged_as = payment.charge(epsilon, delta, calibration.costs, noise)
    release = release_race(validation, section, calibration, noise)
    kept = KeptSketch(release, charged_as, dataset_digest(validation), epsilon, delta, noise.name)
    write_new(payment.path, SKETCH_TAG + encode_part(dict(kept.__dict__)))
    return kept


def read_sketch(path: Path, functions: bytes, validation: Dataset) -> KeptSketch:
    """A sketch that was kept, if it is one of D_v by these hash functions.

    Raises:
        DataError, ConfigError: It cannot be read, or is another.
    """
    content = read_private(path, limits.MAX_TARGET_FILE_BYTES)
    if not content.startswith(SKETCH_TAG):
        raise _another(path, "kind")
    try:
        values = decode_part(content[len(SKETCH_TAG) :])
        kept = KeptSketch(**{**values, "release": RaceRelease.model_validate(values["release"])})
    except (ValueError, TypeError, KeyError):
        raise DataError(
            f"{path}: the release in it is damaged.", advice="Restore the file, or screen again."
        ) from None
    if kept.release.functions() != functions:
        raise _another(path, "set of hash functions than the entries'")
    if kept.data != dataset_digest(validation):
        raise _another(path, "validation set")
    return kept


def _another(path: Path, what: str) -> ConfigError:
    return ConfigError(
        f"{path}: the release that is kept there is of another {what}.",
        advice="Name a new file with `--target-file`: a release of these is made there, and charged.",
    )


def target_mean(kept: KeptTarget) -> NoisyMean:
    """A release as estimates take it."""
    release = kept.release
    return NoisyMean(release.embedding, kept.deviation**2, 0.0, float(release.size), 0.0)


def exact_mean(feature_map: FeatureMap, validation: Dataset) -> NoisyMean:
    """The mean embedding of D_v without noise: whoever learns what comes of it learns of D_v."""
    total = feature_map.hash(validation.features).sum(axis=0, dtype=np.int64)
    return NoisyMean(total * (FEATURE_UNIT / len(validation)), 0.0, 0.0, float(len(validation)), 0.0)


def exact_sketch_mean(section: HashSection, validation: Dataset) -> NoisyMean:
    """The mean of D_v's sketch without noise: as `exact_mean`."""
    counts = exact_counts(hash_family_of(section), validation)
    mean = counts / (len(validation) * math.sqrt(section.rows))
    return NoisyMean(mean, 0.0, 0.0, float(len(validation)), 0.0)


def _seed_total(feature_map: FeatureMap, seed_set: Dataset | None) -> tuple[Totals, int]:
    if seed_set is None:
        return np.zeros(0, dtype=np.int64), 0
    return feature_map.hash(seed_set.features).sum(axis=0, dtype=np.int64), len(seed_set)


def _deviation(fresh: Callable[[], ReleaseMechanism[Any]], count: int) -> float:
    """Standard deviation of the noise on a coordinate of the embedding.

    A release is affine in its noise: one step of the grid on each coordinate is tried, and σ has so many.
    """
    mechanism = fresh()
    draw = mechanism.draws(0)[0]
    nothing = np.zeros(draw.size, dtype=np.int64)
    without = mechanism.release(0, nothing, count, (nothing,))
    moved = fresh().release(0, nothing, count, (np.full(draw.size, 2**20, dtype=np.int64),))
    return float(np.abs(moved - without)[0]) * draw.scale / 2.0**20
