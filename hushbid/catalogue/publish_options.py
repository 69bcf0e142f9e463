"""Options of `hushbid publish` and `hushbid.Catalogue.publish`: a dataset, its release, and its cost."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, MISSING, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from hushbid.catalogue.sketch_ranges import Power, Rows, Width
from hushbid.owner.role import (
    BudgetOption,
    FeaturesOption,
    IdentifierOption,
    LabelOption,
    LedgerOption,
    LiftOption,
    SessionOption,
)
from hushbid.protocol import ranges
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.runtime.command import KeyOption, by_option, option
from hushbid.protocol.runtime.given_tables import GivenPath, path_of, stated_budget

if TYPE_CHECKING:
    from hushbid.catalogue.model import Functions
    from hushbid.catalogue.publishing import PublishedEntry
    from hushbid.protocol.config.session import DraftSession, FeatureSection
    from hushbid.protocol.data import DataColumns

__all__ = ["PublishKme", "PublishRace"]


class _Neighbours(StrEnum):
    """`hushbid.protocol.privacy.releases.Neighbours` for the command line."""

    ADD_REMOVE_ONE = "add-remove-one"
    SUBSTITUTE_ONE = "substitute-one"


class _Family(StrEnum):
    """Hash families of an entry for the command line."""

    L2 = "l2"
    L1 = "l1"
    SRP = "srp"


DataArgument: TypeAlias = Annotated[Path, typer.Argument(help="Dataset to publish.", metavar="DATA")]


@dataclass(frozen=True)
class _Publish(ABC):
    """The options of both kinds of entries: each option's help describes it.

    Attributes:
        neighbours: ``add-remove-one`` or ``substitute-one``.
        clip: Without it, rows out of bounds are refused.
        key: The owner's secret key; None: ``NAME.key``.
    """

    points = 0  # Synthetic points, which a `kme` entry may have.

    data: Path | str = field(metadata=by_option(DataArgument))
    _: KW_ONLY
    name: str = option(str, default=MISSING, help="Owner's name for a session's roster.")
    neighbours: str = option(
        _Neighbours,
        default=MISSING,
        help="Neighbour relation of ε: a record added or removed, or substituted (size public).",
    )
    epsilon: float = option(
        ranges.Epsilon, default=MISSING, help="ε of the entry, including its number of points."
    )
    delta: float = option(
        ranges.PureDelta,
        default=1e-5,
        help="δ of the entry; 0, for `race` only, gives pure ε with more noise.",
    )
    lower: str | None = option(
        str | None, help="Public lower bounds: one number, or one per column as in 0,0,18."
    )
    upper: str | None = option(str | None, help="Public upper bounds, in the same form.")
    clip: bool = option(
        bool,
        "--clip/--refuse",
        default=False,
        help="Treatment of rows out of bounds, which are counted.",
    )
    key: GivenPath = field(default=None, metadata=by_option(KeyOption))
    ledger: GivenPath = field(default=None, metadata=by_option(LedgerOption))
    budget_epsilon: float | None = field(default=None, metadata=by_option(BudgetOption))
    lift_budget: bool = field(default=False, metadata=by_option(LiftOption))
    features: str | None = field(default=None, metadata=by_option(FeaturesOption))
    label: str | None = field(default=None, metadata=by_option(LabelOption))
    identifier: str | None = field(default=None, metadata=by_option(IdentifierOption))
    simulated: int | None = option(
        int | None, help="Seed of simulated noise, for experiments; it protects nobody.", metavar="SEED"
    )

    def publish(self, directory: Path) -> PublishedEntry:
        """Charge the ledger, then make, sign and write the entry; raises as `Catalogue.publish`."""
        from hushbid.catalogue.publishing import Publication, publish
        from hushbid.protocol.privacy.noise import SecureNoise, SimulatedNoise
        from hushbid.protocol.privacy.releases import Neighbours
        from hushbid.protocol.runtime.keys import read_secret

        columns, functions = self._public()
        data = Path(self.data)
        if self.neighbours not in list(_Neighbours):
            raise ConfigError(
                f"There are no neighbours {self.neighbours!r}.",
                advice=f"Give one of: {', '.join(_Neighbours)}.",
            )
        pair = read_secret(path_of(self.key) or Path(f"{self.name}.key"))
        what = Publication(
            data=data,
            columns=columns,
            name=self.name,
            functions=functions,
            neighbours=Neighbours(str(self.neighbours)),
            epsilon=self.epsilon,
            delta=self.delta,
            clip=self.clip,
            points=self.points,
            directory=directory,
            ledger=path_of(self.ledger) or data.with_name(f"{data.name}.ledger"),
            budget=stated_budget(None, self.budget_epsilon, lift=self.lift_budget),
        )
        noise = SecureNoise() if self.simulated is None else SimulatedNoise(self.simulated, self.name)
        return publish(what, pair, noise)

    @abstractmethod
    def _public(self) -> tuple[DataColumns, Functions]:
        """How to read the data, and the feature map or hash functions."""

    def _columns(self) -> DataColumns:
        from hushbid.protocol.data import DataColumns
        from hushbid.protocol.data.names import split_names

        return DataColumns(split_names(self.features), self.label, self.identifier)


@dataclass(frozen=True)
class PublishKme(_Publish):
    """A kernel mean embedding to publish; further attributes are those of both kinds."""

    _: KW_ONLY
    session: GivenPath = field(default=None, metadata=by_option(SessionOption))
    seed: int | None = option(
        ranges.PublicSeed | None, help="Public seed of the feature map; default: the session's."
    )
    gamma: float | None = option(ranges.Gamma | None, help="γ of the kernel, on columns scaled to [0, 1].")
    dimension: int | None = option(ranges.Dimension | None, help="d, coordinates of φ; default: 140.")
    points: int = option(int, default=0, help="Number of synthetic points; 0: none.", min=0)

    def _public(self) -> tuple[DataColumns, Functions]:
        """As in the session, if one is named."""
        from hushbid.roster.file import RosterFile

        own: dict[str, Any] = {"seed": self.seed, "gamma": self.gamma, "dimension": self.dimension}
        own |= _bounds(self.lower, self.upper)
        given = {name: value for name, value in own.items() if value is not None}
        columns, session = self._columns(), path_of(self.session)
        if session is None:
            return columns, _stated_map(given, Path(self.data), columns)
        draft = RosterFile(session).draft
        return draft.reading(columns, sold=True), _session_map(draft, given, session)


@dataclass(frozen=True)
class PublishRace(_Publish):
    """A RACE sketch to publish; further attributes are those of both kinds."""

    _: KW_ONLY
    family: str = option(_Family, default=_Family.L2, help="Hash functions.")
    rows: int = option(Rows, default=200, help="R, number of hash functions.")
    width: int = option(Width, default=100, help="W, maximum cells per function.")
    power: int = option(Power, default=1, help="Functions of the family joined into one.")
    bandwidth: float | None = option(
        ranges.Bandwidth | None, help="Bandwidth of l2 and l1: the distance at which points count as near."
    )
    seed: int = option(ranges.PublicSeed, default=0, help="Public seed of the functions.")

    def _public(self) -> tuple[DataColumns, Functions]:
        from hushbid.catalogue.race import HashSection
        from hushbid.protocol.config.loading import validated

        columns = self._columns()
        own = {
            "family": str(self.family), "rows": self.rows, "width": self.width, "power": self.power,
            "bandwidth": self.bandwidth, "seed": self.seed,
            "columns": _column_count(Path(self.data), columns), **_bounds(self.lower, self.upper),
        }  # fmt: skip
        given = {name: value for name, value in own.items() if value is not None}
        _require(given, ("lower", "upper"))
        return columns, validated(HashSection, given, where="the options")


def _column_count(data: Path, columns: DataColumns) -> int:
    from hushbid.protocol.data import load_dataset

    return int(load_dataset(data, columns).features.shape[1])


def _bounds(lower: str | None, upper: str | None) -> dict[str, float | list[float] | None]:
    """Bounds in a session file's form; None if they are not given."""

    def parsed(option: str, text: str | None) -> float | list[float] | None:
        if text is None:
            return None
        try:
            numbers = [float(part) for part in text.split(",")]
        except ValueError:
            raise ConfigError(
                f"{option} {text}: these are not numbers.", advice="Write 0, or 0,0,18 for three columns."
            ) from None
        return numbers if len(numbers) > 1 else numbers[0]

    return {"lower": parsed("--lower", lower), "upper": parsed("--upper", upper)}


def _require(given: Mapping[str, Any], names: Sequence[str]) -> None:
    if missing := [name for name in names if name not in given]:
        raise ConfigError(
            f"What entries are made with is public, and these are not given: {', '.join(missing)}.",
            advice="Give them as options, the same at every owner; for `kme` also by a session file.",
        )


def _stated_map(given: Mapping[str, Any], data: Path, columns: DataColumns) -> FeatureSection:
    """The feature map given by options alone."""
    from hushbid.protocol.config.loading import validated
    from hushbid.protocol.config.session import FeatureSection

    _require(given, ("seed", "gamma", "lower", "upper"))
    counted = {"columns": _column_count(data, columns)}
    return validated(FeatureSection, {**given, **counted}, where="the options")


def _session_map(draft: DraftSession, given: Mapping[str, Any], session: Path) -> FeatureSection:
    """The feature map of a session file; an option may add a missing seed."""
    from hushbid.protocol.config.loading import validated
    from hushbid.protocol.config.session import FeatureSection

    features = draft.features
    if taken := sorted(set(given) - {"seed"}):
        raise ConfigError(
            f"The features come from {session}, and these options too: {', '.join(taken)}.",
            advice="Leave the options out, or the session file.",
        )
    if features.seed is not None and given:
        raise ConfigError(
            f"{session} has a seed of its own.", advice="Leave `--seed` out: all entries need the same."
        )
    if features.seed is None and not given:
        raise ConfigError(
            f"{session} keeps its feature map secret, and an entry's is public.",
            advice="Give a public seed for the catalogue with `--seed`, the same at every owner.",
        )
    return validated(FeatureSection, {**features.model_dump(), **given}, where="--seed")
