"""The cluster file: a whole demonstration session, with every party's data, in the operator's hands.

It has the session file's sections without the roster, whose keys each run makes anew, and the sources of the
parties' data: ``[dataset]`` deals out a public dataset, or ``[owners.NAME]`` and ``[consumer]`` name a file
for each. Relative paths are relative to the cluster file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import ConfigDict, Field, StringConstraints, model_validator

from hushbid.cluster.data import ClusterData, of_partition
from hushbid.cluster.display_names import MOST_SHOWN
from hushbid.cluster.settings import Settings, plain, with_settings
from hushbid.consumer.drawn_seed_set import STREAM, drawn_seed_set
from hushbid.datasets import Partition, build
from hushbid.protocol import ranges
from hushbid.protocol.config.completing import features_of
from hushbid.protocol.config.key_request import Role
from hushbid.protocol.config.loading import read_toml, validated
from hushbid.protocol.config.party import (
    LABEL_WEIGHT,
    RIDGE,
    BudgetSection,
    DataSection,
    Money,
    Ridge,
)
from hushbid.protocol.config.session import (
    FeatureSection,
    NetworkSection,
    PartyName,
    RosterSection,
    Section,
    SessionFile,
    SessionTables,
)
from hushbid.protocol.data import DataColumns, Dataset, load_dataset
from hushbid.protocol.data.arrays import Arrays, dataset_of_arrays
from hushbid.protocol.data.dataset import Outside
from hushbid.protocol.data.schema import Schema
from hushbid.protocol.errors import ConfigError, DataError
from hushbid.protocol.names import CONSUMER, CURATOR, MODEL
from hushbid.protocol.printable import printable
from hushbid.protocol.privacy.acquisition import RULES
from hushbid.protocol.privacy.noise import SimulatedNoise
from hushbid.protocol.privacy.payment import Price
from hushbid.protocol.utf8_names import resolved

__all__ = [
    "CLUSTER_FILE",
    "Cluster",
    "ClusterFile",
    "ConsumerSection",
    "DatasetSection",
    "OwnerSection",
    "RunSection",
    "found_cluster",
    "made_cluster",
    "open_cluster",
    "read_cluster",
]

FilePath = Annotated[Path, Field(strict=False)]

_SUGGESTED_FEATURES = ("gamma", "dimension")
CLUSTER_FILE: Final = "cluster.toml"
"""The name of a directory's cluster file, as `hushbid init` makes it."""
_EXAMPLES = "configs"
_OF_DATA = (
    "dataset.", "owners.", "consumer.validation", "consumer.seed_set", "consumer.seed_points", "consumer.test"
)  # fmt: skip
"""Keys of what data a session has begin so."""

_Read: TypeAlias = Callable[[DataColumns], Dataset]
"""Reads a party's data, from wherever they are."""


class DatasetSection(Section):
    """``[dataset]``: a public dataset (`hushbid.datasets`); further keys are its options."""

    model_config = ConfigDict(extra="allow")

    name: str
    path: FilePath | None = None
    seed: ranges.Seed = 0

    @property
    def options(self) -> dict[str, Any]:
        """The keys that are the dataset's own (`PartitionOptions`)."""
        return dict(self.model_extra or {})


class OwnerSection(Section):
    """``[owners.NAME]``: an owner's data files."""

    data: FilePath | None
    """None, which no file can say: they are in memory (`made_cluster`)."""
    columns: DataSection = DataSection()
    ledger: FilePath | None = None
    """The data's lifetime ledger; None: beside the data."""
    budget: BudgetSection | None = None
    """The maximum of the ledger's total; None: unlimited."""
    display: Annotated[str, StringConstraints(min_length=1, max_length=MOST_SHOWN)] | None = None
    """Its display name, for results and the report; None: NAME."""


class ConsumerSection(Section):
    """``[consumer]``: the consumer's files, if no dataset is dealt out, and its downstream model."""

    validation: FilePath | None = None
    seed_set: FilePath | None = None
    seed_points: ranges.DrawnPoints | None = None
    """Number of points of a drawn seed set, in place of a file's or a dataset's; None: it is not drawn."""
    test: FilePath | None = None
    columns: DataSection = DataSection()
    ledger: FilePath | None = None
    """The validation set's lifetime ledger; None: beside it."""
    budget: BudgetSection | None = None
    """The maximum of the ledger's total; None: unlimited."""
    model: str | None = None
    """`hushbid.consumer.learners.MODELS`, or a scikit-learn estimator; None: what suits the dataset."""
    seed: ranges.ModelSeed = 0
    """Seed of the model, and of the uniform choice that a result is compared with."""
    ridge: Ridge = RIDGE
    """λ of the weights of delivered points, and of those that they are compared with."""
    label_weight: ranges.LabelWeight = LABEL_WEIGHT
    """Strength of labels in those weights; 0: features alone."""


class RunSection(Section):
    """``[run]``: settings of `hushbid run`."""

    durability: Literal["fsync", "flush"] = "fsync"
    directory: FilePath | None = None
    """Parent of run directories; None: ``runs`` in the working directory."""
    unit_price: Money | None = None
    """As in the curator's private file, which receives it. So is the next."""
    total_price: Money | None = None
    greedy: bool | None = None
    """Whether a result is compared with the greedy choice; None: unless that is too large."""

    @model_validator(mode="after")
    def _has_one_price(self) -> RunSection:
        _ = self.price
        return self

    @property
    def price(self) -> Price:
        """The prices for the numbers of the settlement's statement."""
        return Price(self.unit_price, self.total_price)


class ClusterFile(SessionTables):
    """A whole cluster file."""

    features: dict[str, Any]
    """The keys of `FeatureSection`; those that the dataset or `columns` give may be left out."""
    network: NetworkSection = NetworkSection(address="tcp://127.0.0.1:*")
    """Port ``*``: one that is free when a run starts."""
    dataset: DatasetSection | None = None
    owners: dict[PartyName, OwnerSection] = Field(default_factory=dict)
    consumer: ConsumerSection = ConsumerSection()
    run: RunSection = RunSection()

    @model_validator(mode="after")
    def _owners_are_called_otherwise(self) -> ClusterFile:
        if taken := {CONSUMER, CURATOR} & set(self.owners):
            raise ValueError(f"an owner cannot be named {taken.pop()}")
        shown: dict[str, str] = {}
        for name, owner in self.owners.items():
            as_shown = printable(owner.display or name)
            if not as_shown.strip() or as_shown.strip().lower() in (CONSUMER, CURATOR):
                raise ValueError(
                    f"the owner {name} cannot be shown as {as_shown!r}: give it another `display`"
                )
            if other := shown.get(as_shown):
                raise ValueError(
                    f"the owners {other} and {name} are both shown as {as_shown!r}: "
                    "give each a `display` of its own"
                )
            shown[as_shown] = name
        return self

    @property
    def held(self) -> bool:
        """Whether the parties' data are in memory, and no section names them."""
        return bool(self.owners) and all(owner.data is None for owner in self.owners.values())

    @model_validator(mode="after")
    def _data_come_from_one_place(self) -> ClusterFile:
        consumer = self.consumer
        if self.held:
            return self
        if consumer.seed_set is not None and consumer.seed_points is not None:
            raise ValueError(
                "consumer.seed_set names a file and consumer.seed_points has one drawn: leave one of them out"
            )
        named = [consumer.validation, consumer.seed_set, consumer.test, consumer.ledger, consumer.budget]
        if self.dataset is not None:
            if self.owners or any(value is not None for value in named):
                raise ValueError("the data come either from [dataset] or from files that are named, not both")
        else:
            wanted = {
                "owners.NAME.data": bool(self.owners),
                "consumer.validation": consumer.validation is not None,
                "consumer.seed_set (or seed_points)": consumer.seed_set is not None
                or consumer.seed_points is not None,
            }
            if not any(wanted.values()):
                raise ValueError(f"no data: either a [dataset], or files in {', '.join(wanted)}")
            missing = [key for key, there in wanted.items() if not there]
            if missing:
                raise ValueError(
                    f"without a [dataset] every party's file is named, and {', '.join(missing)} "
                    + ("is missing" if len(missing) == 1 else "are missing")
                )
        return self


@dataclass(frozen=True, eq=False, repr=False)
class Cluster:
    """A cluster file completed by its dataset.

    Attributes:
        file: The content of the file, paths resolved.
        where: The file's path, or who made its sections, for errors.
        owners: The owners' names in order.
        partition: The shares that the dataset deals to the parties; None if files are named.
    """

    file: ClusterFile
    where: Path
    features: FeatureSection
    model: str
    owners: tuple[str, ...]
    partition: Partition | None

    def __repr__(self) -> str:
        return f"<Cluster {self.file.session.name!r}: {', '.join(self._said())}>"

    def _repr_html_(self) -> str:
        said = "".join(f"<li>{escape(each)}</li>" for each in self._said())
        return f"<b>{escape(self.file.session.name)}</b><ul>{said}</ul>"

    def _said(self) -> list[str]:
        rule, points = self.file.acquisition.rule, self.file.session.points
        return [f"{points} points of {len(self.owners)} owners", f"rule {rule}", f"from {self.where.name}"]

    def session_file(self, roster: RosterSection, network: NetworkSection) -> SessionFile:
        """The session's public file.

        Raises:
            ConfigError: The sections do not fit together.
        """
        tables = {name: getattr(self.file, name) for name in SessionTables.model_fields}
        tables |= {"features": self.features, "network": network, "roster": roster}
        return validated(SessionFile, tables, where=str(self.where))

    def patient(self, least: Mapping[str, float]) -> Cluster:
        """The same cluster with at least these time-outs in seconds, by name, where its file gives none."""
        timeouts = self.file.timeouts
        longer = {
            name: seconds
            for name, seconds in least.items()
            if name not in timeouts.model_fields_set and seconds > getattr(timeouts, name)
        }
        file = self.file.model_copy(update={"timeouts": timeouts.model_copy(update=longer)})
        return replace(self, file=file)

    @property
    def display(self) -> dict[str, str]:
        """Display names of owners, by those of the roster; other owners have none."""
        owners = self.file.owners.items()
        return {name: owner.display for name, owner in owners if owner.display is not None}

    def reading_with(self, outside: Outside) -> Cluster:
        """The same cluster with this treatment of rows that do not fit, for all its tables.

        Raises:
            ConfigError: It names no tables.
        """
        if self.partition is not None:
            raise ConfigError(
                f"{self.where}: --outside is for tables, and this file names a dataset.",
                advice="Leave --outside and HUSHBID_OUTSIDE out.",
            )

        def said(section: Any) -> Any:
            return section.model_copy(update={"columns": section.columns.with_options(outside=outside)})

        owners = {name: said(owner) for name, owner in self.file.owners.items()}
        file = self.file.model_copy(update={"owners": owners, "consumer": said(self.file.consumer)})
        return replace(self, file=file)

    @property
    def drawing(self) -> dict[str, Any]:
        """The entries of the consumer's private file about a drawn seed set, if it is drawn."""
        points = self.file.consumer.seed_points
        return {} if points is None else {"seed_points": points}

    def private(self, role: Role) -> dict[str, Any]:
        """The entries of a party's private file besides its identity and paths."""
        run, consumer = self.file.run, self.file.consumer
        own: dict[Role, dict[str, Any]] = {
            "curator": {"unit_price": run.unit_price, "total_price": run.total_price},
            "owner": {},
            "consumer": {
                "model": self.model,
                "seed": consumer.seed,
                "ridge": consumer.ridge,
                "label_weight": consumer.label_weight,
                **self.drawing,
            },
        }
        return {"durability": run.durability, **own[role]}

    def load(self) -> ClusterData:
        """Every party's data.

        A seed set to be drawn is drawn with simulated noise: for a session with secure noise the consumer's
        process draws another, and keeps it (`hushbid.consumer.process.consumer_seed_set`).

        Raises:
            ConfigError: No seed set can be drawn.
            DataError: A named file cannot be used, or an owner has no labels although D_v has, and the file
                does not mention labels.
        """
        draw = None if self.file.consumer.seed_points is None else self._draw
        if self.partition is not None:
            return of_partition(self.partition, draw)
        owners, consumer = self.file.owners.items(), self.file.consumer
        paths = {"validation": consumer.validation, "seed_set": consumer.seed_set, "test": consumer.test}
        return self._read(
            {name: partial(load_dataset, owner.data) for name, owner in owners if owner.data is not None},
            {name: partial(load_dataset, path) for name, path in paths.items() if path is not None},
        )

    def holding(self, owners: Mapping[str, Arrays], consumer: Mapping[str, Arrays]) -> ClusterData:
        """Every party's data from their arrays, which are read as those of ``.npz`` files are.

        Args:
            owners: By name on the roster. Errors have display names.
            consumer: ``validation``, ``seed_set`` and, if there is one, ``test``.

        Raises:
            DataError: As `load` does.
        """
        shown = self.display
        return self._read(
            {
                name: partial(dataset_of_arrays, shown.get(name, name), arrays)
                for name, arrays in owners.items()
            },
            {name: partial(dataset_of_arrays, name, arrays) for name, arrays in consumer.items()},
        )

    def _read(self, owners: Mapping[str, _Read], consumer: Mapping[str, _Read]) -> ClusterData:
        columns = self._reading(self.file.consumer.columns)
        validation = consumer["validation"](columns.with_gaps())
        if "seed_set" in consumer:
            seed_set = consumer["seed_set"](replace(columns, outside="refuse"))
        else:
            seed_set = self._draw(validation)
        sellers = {
            name: read(self._reading(self.file.owners[name].columns, sold=True))
            for name, read in sorted(owners.items())
        }
        test = consumer["test"](columns) if "test" in consumer else None
        self.check_labelled(sellers, validation)
        return ClusterData(sellers, validation, seed_set, test)

    def check_labelled(self, owners: Mapping[str, Dataset], validation: Dataset) -> None:
        """Refuse unlabelled points of owners whose consumer has labels, if the file does not mention labels.

        Raises:
            DataError: There are some.
        """
        if self.file.session.labels is not None or self.file.labels is not None or validation.known is None:
            return
        for name, dataset in owners.items():
            if dataset.unlabelled:
                which = "has no labels" if dataset.labels is None else "has rows without a label"
                raise DataError(
                    f"{dataset.name}, of {name}, {which}, and the validation set has labels: points without "
                    "one teach no model.",
                    advice="Name the label's column under `columns` in the owner's section. If points may "
                    'come without one, set session.labels = "optional".',
                )

    def _reading(self, section: DataSection, *, sold: bool = False) -> DataColumns:
        owners = len(self.file.owners) if sold else None
        return self.file.reading_of(section.columns(), self.features, owners=owners)

    @property
    def schema(self) -> Schema | None:
        return self.file.rows

    def _draw(self, validation: Dataset) -> Dataset:
        file = self.file
        assert file.consumer.seed_points is not None, "otherwise none is drawn"
        rule = RULES.get(file.acquisition.rule)
        return drawn_seed_set(
            self.features,
            file.consumer.seed_points,
            validation.features.dtype,
            # With the noise of a session in one process, and of a session with simulated noise anywhere.
            SimulatedNoise(
                (file.noise.seed or 0) if file.noise.source == SimulatedNoise.name else file.consumer.seed,
                STREAM,
            ).random_bytes,
            column_values=file.session.column_values,
            sealed=rule is not None and rule.sealed,
            schema=self.schema,
        )


def found_cluster(path: Path) -> Path:
    """The cluster file of that path, or that of a directory, as `hushbid init` makes it.

    A bare name such as `digits` that is neither stands for an example that comes with hushbid.

    Raises:
        ConfigError: There is no example of a bare name, or no cluster file in a directory.
    """
    if (path / CLUSTER_FILE).is_file():
        return path / CLUSTER_FILE
    bare = not path.suffix and len(path.parts) == 1
    if not path.is_dir() and (path.is_file() or not bare):
        return path
    found = Path(__file__).parents[1] / _EXAMPLES / path / CLUSTER_FILE
    if path.is_dir() and not (bare and found.is_file()):
        raise ConfigError(
            f"{path} is a directory without {CLUSTER_FILE}.",
            advice="Name a cluster file. Between machines each party has its own command, as "
            "`hushbid init --for several` prints them.",
        )
    if not found.is_file():
        raise ConfigError(
            f"{path}: no such file, and no example of that name.", advice="Check the path, or run `digits`."
        )
    return found


def read_cluster(
    path: Path,
    settings: Settings = (),
    sections: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None,
) -> ClusterFile:
    """The content of a cluster file, its paths resolved; arguments and errors are those of `open_cluster`."""
    values = with_settings(read_toml(path), settings)
    if sections is not None:
        values |= sections(values)
    return _resolved(validated(ClusterFile, values, where=str(path)), path.parent)


def open_cluster(
    path: Path | str,
    *,
    data: Path | None = None,
    settings: Settings = (),
    sections: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None,
) -> Cluster:
    """Read a cluster file and deal out its dataset, if it names one.

    Args:
        path: The cluster file (`found_cluster`).
        data: Directory of the dataset, in place of the file's.
        settings: Values that override the file's, ``{"section.key": value}``; or ``"section.key=value"`` with
            a TOML value each, as ``--set`` has them.
        sections: Makes sections from the file's; they replace those of the same name.

    Raises:
        ConfigError: The file or a setting is invalid.
        DataError: The dataset's files cannot be used.
    """
    path = found_cluster(Path(path))
    return _completed(read_cluster(path, settings, sections), path, data)


def made_cluster(
    sections: Mapping[str, Any],
    *,
    of: str,
    data: Path | None = None,
    held: bool = False,
    settings: Settings = (),
) -> Cluster:
    """The cluster of sections that are in memory, as `open_cluster` makes one of a file's.

    Args:
        sections: The tables of a cluster file; relative paths start at the working directory.
        of: Who has made them, for errors.
        data: As `open_cluster` takes it, like `settings`.
        held: Whether the parties' data are in memory too (`Cluster.holding`): no section names them.

    Raises:
        ConfigError: A section or a setting is invalid.
        DataError: The dataset's files cannot be used.
    """
    try:
        values = plain(sections)
    except TypeError as error:
        raise ConfigError(
            f"{of}: {error} is neither a number nor text, or a list of such.", advice="Correct it."
        ) from None
    if held:
        if others := next((each for each in settings if each.startswith(_OF_DATA)), None):
            raise ConfigError(
                f"{of}: the data are given, and the setting {others!r} is about others.",
                advice="Leave it out.",
            )
        values["owners"] = {name: owner | {"data": None} for name, owner in values["owners"].items()}
    file = validated(ClusterFile, with_settings(values, settings), where=of)
    # Where data are in memory no path is needed, nor a working directory, which may be gone.
    return _completed(file if held else _resolved(file, Path.cwd()), Path(of), data)


def _completed(file: ClusterFile, path: Path, data: Path | None) -> Cluster:
    """The cluster of a file, with its dataset dealt out if it names one."""
    partition = _partition(file, path, data)
    features = (features_of(file.columns) if file.columns else {}) | dict(file.features)
    model = file.consumer.model
    if partition is not None:
        suggested = partition.suggested
        given = {name: suggested[name] for name in _SUGGESTED_FEATURES}
        given |= {"columns": partition.columns, "lower": partition.lower, "upper": partition.upper}
        features = given | features
        model = model or str(suggested["model"])
    return Cluster(
        file=file,
        where=path,
        features=validated(FeatureSection, features, where=f"{path}, [features]"),
        model=model or MODEL,
        owners=tuple(sorted(file.owners if partition is None else partition.owners)),
        partition=partition,
    )


def _partition(file: ClusterFile, where: Path, data: Path | None) -> Partition | None:
    if file.dataset is None:
        if data is not None:
            raise ConfigError(
                f"{where} names a file for each party, so there is no dataset to find in {data}.",
                advice="Leave --data and HUSHBID_DATA out.",
            )
        return None
    section = file.dataset
    return build(section.name, path=data or section.path, seed=section.seed, options=section.options)


def _resolved(file: ClusterFile, base: Path) -> ClusterFile:
    """The file with its relative paths made absolute, from its own directory."""

    def absolute(path: Path | None) -> Path | None:
        return None if path is None else resolved(base / path.expanduser())

    dataset, consumer = file.dataset, file.consumer
    changes: dict[str, Any] = {
        "run": file.run.model_copy(update={"directory": absolute(file.run.directory)}),
        "consumer": consumer.model_copy(
            update={
                name: absolute(getattr(consumer, name))
                for name in ("validation", "seed_set", "test", "ledger")
            }
        ),
        "owners": {
            name: owner.model_copy(update={"data": absolute(owner.data), "ledger": absolute(owner.ledger)})
            for name, owner in file.owners.items()
        },
    }
    if dataset is not None:
        changes["dataset"] = dataset.model_copy(update={"path": absolute(dataset.path)})
    return file.model_copy(update=changes)
