"""The consumer's side of a screening: its own release of D_v, charged once and reusable."""

from __future__ import annotations

import datetime
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from hushbid.consumer.target import KeptTarget, map_identity, release_target
from hushbid.protocol import limits
from hushbid.protocol.config.party import BudgetSection
from hushbid.protocol.data import Dataset, dataset_digest
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.names import CONSUMER
from hushbid.protocol.privacy.accounting import Cost
from hushbid.protocol.privacy.accounting.validation import check_delta_of
from hushbid.protocol.privacy.noise import NoiseSource, SecureNoise, SimulatedNoise
from hushbid.protocol.privacy.releases import Neighbours, Prior, ReleaseMechanism, Setting, release_mechanism
from hushbid.protocol.runtime.files.durable import write_new
from hushbid.protocol.runtime.files.private_files import read_private
from hushbid.protocol.runtime.ledger.known_ledgers import KnownRows
from hushbid.protocol.runtime.ledger.lifetime_ledger import LifetimeLedger
from hushbid.protocol.runtime.ledger.spending import Spending
from hushbid.protocol.space.features import FeatureMap
from hushbid.roster.file import RosterFile

__all__ = [
    "MECHANISMS",
    "RELATION",
    "Asked",
    "ConsumerData",
    "Screening",
    "another",
    "make_target",
    "other_price",
    "read_target",
]

MECHANISMS: Final = ("gaussian", "filtered-gaussian")
"""Release mechanisms whose noise on an embedding is Gaussian and equal on all coordinates."""
RELATION: Final = Neighbours.SUBSTITUTE_ONE
"""The relation for D_v, whose size is public."""


@dataclass(frozen=True)
class Asked:
    """The requested release of D_v: mechanism and parameters as a session's `[target]` has them, and δ."""

    mechanism: str
    parameters: dict[str, Any]
    delta: float

    def mechanism_of(self, feature_map: FeatureMap) -> ReleaseMechanism:
        """The mechanism, for a single release.

        Raises:
            ConfigError: The mechanism is not in `MECHANISMS`, or its parameters are inconsistent.
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
        )
        return release_mechanism(self.mechanism, self.parameters, setting)


@dataclass(frozen=True, kw_only=True)
class Screening:
    """A request to screen.

    Attributes:
        catalogue: Files of entries, and directories of them.
        session: The session file that gives map, target mechanism and roster, if any.
        epsilon, delta: Of the consumer's release; None: ε of the session's `[target]`.
        best: Number of owners to choose.
        unaccounted: Rank by the exact D_v. Its result is not private.
        allow_simulated: Include entries whose noise protects nobody.
    """

    catalogue: Sequence[Path]
    session: RosterFile | None
    epsilon: float | None
    delta: float
    best: int
    unaccounted: bool
    allow_simulated: bool

    def asked(self) -> Asked:
        """The release that the session would make; without one, or by `epsilon`, a Gaussian one.

        Raises:
            ConfigError: No ε is given.
        """
        if self.session is None or self.epsilon is not None:
            if self.epsilon is None:
                raise ConfigError(
                    "No ε is given for the release of the validation set.",
                    advice="Give `--epsilon`, or a session file whose [target] says it; `--unaccounted` "
                    "releases nothing, and its result is not private.",
                )
            return Asked("gaussian", {"epsilon": self.epsilon, "neighbours": RELATION.value}, self.delta)
        section = self.session.draft.target
        return Asked(section.mechanism, section.parameters, self.session.draft.session.delta)

    def noise(self) -> NoiseSource:
        """The source of that release's noise, as in the session."""
        if self.session is None or self.session.draft.noise.source == SecureNoise.name:
            return SecureNoise()
        return SimulatedNoise(self.session.draft.noise.seed or 0, CONSUMER)


@dataclass(frozen=True, kw_only=True)
class ConsumerData:
    """The consumer's data, and the budget that pays for a release of D_v.

    Attributes:
        validation: D_v, within the public bounds.
        seed_set: D_init, public, if there is one.
        target: The release's file: reused if it exists, else made, readable by its owner only.
        ledger: D_v's lifetime ledger.
        budget: The stated maximum of the ledger; None: the recorded one.
    """

    validation: Dataset
    seed_set: Dataset | None
    target: Path
    ledger: Path
    budget: BudgetSection | None

    def described(
        self, mechanism: str, epsilon: float | None, delta: float, noise: str, *, charged: bool
    ) -> dict[str, Any]:
        """A description of a release, for `ScreeningResult.release`."""
        return {
            "mechanism": mechanism,
            "epsilon": epsilon,
            "delta": delta,
            "neighbours": RELATION.value,
            "noise": noise,
            "file": str(self.target),
            "ledger": str(self.ledger),
            "charged": charged,
        }

    def charge(self, epsilon: float | None, delta: float, costs: Sequence[Cost], noise: NoiseSource) -> str:
        """Charge a release of D_v before it is made.

        Returns:
            The release's entry in the ledger.

        Raises:
            BudgetExceeded: The budget does not allow it; nothing was charged.
            ConfigError: The release could not be kept, δ is no guarantee for so many rows, or the ledger
                cannot be used.
        """
        if noise.protects:
            check_delta_of(delta, len(self.validation), "the validation set")
        if self.target.exists() or not os.access(self.target.parent, os.W_OK | os.X_OK):
            raise ConfigError(
                f"{self.target}: the release cannot be kept there.",
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
        rows = KnownRows(self.validation)
        with LifetimeLedger.open(
            self.ledger, budget=self.budget, neighbours=RELATION.value, rows=rows
        ) as held:
            held.warn()
            held.charge(spending)
        return spending.identifier


def make_target(
    asked: Asked, feature_map: FeatureMap, consumer: ConsumerData, noise: NoiseSource
) -> KeptTarget:
    """Charge D_v's lifetime ledger, make the release, and store it, in this order.

    Raises:
        BudgetExceeded: The budget does not allow it; nothing was charged.
        ConfigError: The file already exists or cannot be created, the mechanism is unavailable, or it is
            `filtered-gaussian` and there is no seed set.
    """
    total, size = np.zeros(0, dtype=np.int64), 0
    if consumer.seed_set is not None:
        total = feature_map.hash(consumer.seed_set.features).sum(axis=0, dtype=np.int64)
        size = len(consumer.seed_set)
    mechanism = asked.mechanism_of(feature_map)
    if asked.mechanism == "filtered-gaussian" and size == 0:
        raise ConfigError(
            "A filtered-gaussian release needs the public seed set.", advice="Name it with `--seed-set`."
        )
    guarantee = mechanism.guarantee(neighbours=RELATION, delta=asked.delta)
    costs = mechanism.cost(0, neighbours=RELATION)
    charged_as = consumer.charge(guarantee.epsilon, guarantee.delta, costs, noise)
    stream = mechanism.stream(prior=Prior.of_total(total, size) if size else None)
    kept = KeptTarget(
        release=release_target(stream, feature_map, consumer.validation, noise, noise_name=noise.name),
        charged_as=charged_as,
        map_identity=map_identity(feature_map),
        mechanism=asked.mechanism,
        parameters=asked.parameters,
        delta=asked.delta,
        seed_total=total,
        seed_size=size,
        data=dataset_digest(consumer.validation),
        deviation=stream.deviation / len(consumer.validation),
    )
    write_new(consumer.target, kept.to_bytes())
    return kept


def read_target(consumer: ConsumerData, feature_map: FeatureMap) -> KeptTarget:
    """Read the stored release, which must be of D_v and by this map: screening again costs nothing.

    Raises:
        DataError, ConfigError: It cannot be read, or is a different release.
    """
    path = consumer.target
    kept = KeptTarget.from_bytes(read_private(path, limits.MAX_TARGET_FILE_BYTES), where=str(path))
    if kept.map_identity != map_identity(feature_map):
        raise another(path, "feature map or bounds than the entries'")
    if kept.data != dataset_digest(consumer.validation):
        raise another(path, "validation set")
    return kept


def another(path: Path, what: str) -> ConfigError:
    """The error of a screening for a stored release of something else."""
    return ConfigError(
        f"{path}: the release that is kept there is of another {what}.",
        advice="Name a new file with `--target-file`: a release of these is made there, and charged.",
    )


def other_price(path: Path) -> ConfigError:
    """The error of a screening for a stored release other than the requested one."""
    return ConfigError(
        f"{path}: the release that is kept there was made by another mechanism, or at another ε or δ.",
        advice="Screen as it was made; or name a new file with `--target-file`: another release is charged.",
    )
