"""What declares an experiment: the options of its verb, the keys of its TOML file, and what Python takes.

This module is read whenever the command line is. What runs an experiment is in
`hushbid.evidence.experiments`, in the module of its name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Final

import tomli_w

from hushbid.evidence.experiment_fields import (
    ExperimentOptions,
    JobsOption,
    OutOption,
    QuickOption,
    SchedulerOption,
    argument_field,
    bounded_field,
    data_field,
    epsilons_field,
    positive_field,
    refuse_out_of_bounds,
    seeds_field,
)
from hushbid.evidence.purchase_options import PURCHASES
from protocol.errors import ConfigError
from protocol.runtime.command import option

__all__ = [
    "OPTIONS",
    "ExperimentOptions",
    "JobsOption",
    "KmeOptions",
    "OutOption",
    "QuickOption",
    "RaceOptions",
    "RegressionOptions",
    "SchedulerOption",
    "ScreeningOptions",
    "SelectionOptions",
    "declaration",
    "experiment",
    "read_declaration",
]

_KIND: Final = "experiment"


@dataclass(frozen=True, kw_only=True)
class SelectionOptions(ExperimentOptions):
    """A private selection, by number of points and ε.

    Attributes:
        dataset: One of `hushbid.datasets.DATASETS`, or the path of a cluster file; None: digits.
        data: Where the dataset lies; None if it needs no files.
        session: A cluster file in place of a dataset: its parties' data, feature map and session, with the
            releases and the rule of the experiment.
        epsilons: ε of each protected side; None: 1 and 3.
        points: p of each setting; None: 100, or as the cluster file says.
        mechanism: A release mechanism that takes `epsilon` and `neighbours`.
        delta: The δ of each ε; None: the cluster file's, or 1e-5.
        batch: b; None: the cluster file's, or the session's own default.
        seed_weight: s; None: likewise.
        jitter: N; None: likewise.
    """

    NAME: ClassVar[str] = "selection"
    QUICK: ClassVar[Mapping[str, Any]] = {"seeds": 1, "epsilons": (1.0,)}

    dataset: str | Path | None = field(
        default=None,
        kw_only=False,
        metadata=argument_field(
            str | None, help="digits, mnist or insurance; default: digits.", show_default=False
        ),
    )
    data: Path | None = field(
        default=None, kw_only=False, metadata=data_field("Where the dataset's files lie.", Path | None)
    )
    session: Path | None = option(
        Path | None,
        metavar="CLUSTER.toml",
        help="In place of a dataset, a cluster file: its session and its parties' data.",
    )
    epsilons: Sequence[float] | None = epsilons_field("ε of owners and of consumer, each; may be repeated.")
    points: Sequence[int] | None = option(
        list[int] | None,
        min=1,
        help="Points to buy; may be repeated. Default: 100, or the cluster file's.",
    )
    mechanism: str = option(str, default="filtered-gaussian", help="Release mechanism.")
    delta: float | None = option(
        float | None, min=0.0, max=1.0, help="δ of each ε; default: 1e-5, or the cluster file's."
    )
    batch: int | None = option(int | None, min=1, help="b, points that a round buys; default: p/50.")
    seed_weight: float | None = option(
        float | None, help="s, what a point of the seed set counts for; default: 0.1."
    )
    jitter: float | None = option(
        float | None, min=0.0, help="N, points' worth of jitter; default: 25, or 50."
    )


@dataclass(frozen=True, kw_only=True)
class ScreeningOptions(ExperimentOptions):
    """The owners that catalogue entries choose.

    Attributes:
        data: Where MNIST lies.
        epsilon: ε of the entries; None: both settings of the documents.
        owner_points: With `epsilon`, most points of an owner; None: all.
        points: p of the sessions with all and with the chosen owners; None: none is run.
    """

    NAME: ClassVar[str] = "screening"
    QUICK: ClassVar[Mapping[str, Any]] = {"seeds": 2, "epsilon": 1.0, "owner_points": 500}

    data: Path = field(kw_only=False, metadata=data_field("Where MNIST lies."))
    seeds: int | Sequence[int] = seeds_field(20)
    epsilon: float | None = positive_field(float | None, help_text="ε of the entries, in place of both.")
    owner_points: int | None = option(
        int | None, min=1, help="With --epsilon: most points of an owner; default: all."
    )
    points: int | None = option(
        int | None, min=1, help="Buy so many of all and of the chosen owners; default: none."
    )


@dataclass(frozen=True, kw_only=True)
class RaceOptions(ExperimentOptions):
    """RACE sketches on the data of their paper.

    Attributes:
        tasks: Some of `hushbid.evidence.experiments.race.TASKS`; None: all.
        data: Directory of the data files.
        epsilons: ε of each private setting; None: those of the documents. Each table has a row without
            privacy besides.
        rows: R.
    """

    NAME: ClassVar[str] = "race"
    QUICK: ClassVar[Mapping[str, Any]] = {"seeds": 1, "tasks": ("density",), "epsilons": (1.0,), "rows": 100}

    tasks: Sequence[str] | None = field(
        default=None,
        kw_only=False,
        metadata=argument_field(
            list[str] | None,
            help="density, classification, defaults or salaries; all if none is named.",
            metavar="task",
        ),
    )
    data: Path = field(
        default=Path(), kw_only=False, metadata=data_field("Directory of codrna.npz, skin.npz and so on.")
    )
    seeds: int | Sequence[int] = seeds_field(10)
    epsilons: Sequence[float] | None = epsilons_field("ε; may be repeated.")
    rows: int = option(int, default=1000, min=1, help="Rows of a sketch; the task defaults chooses its own.")


@dataclass(frozen=True, kw_only=True)
class KmeOptions(ExperimentOptions):
    """Kernel mean releases of the data of their paper.

    Attributes:
        data: Directory with ``kme-mixture-2d.npz`` and ``kme-mixture-5d.npz``, array ``points`` each.
        settings: Names of `hushbid.evidence.experiments.kme.SETTINGS`; none: all but those with more than
            `LONG` points.
        epsilons: ε of each release; None: 0.01, 0.1 and 1.
        full: Whether those are run as well. Algorithm 2 is run with their first seed alone.
        simulated: Whether noise is simulated, which is faster and protects nobody.
        records: How many of the points are taken, the first ones; None: all. Published figures are of all.
    """

    NAME: ClassVar[str] = "kme"
    QUICK: ClassVar[Mapping[str, Any]] = {
        "seeds": 1,
        "settings": ("1-2d-leak-104",),
        "epsilons": (0.1,),
        "simulated": True,
        "records": 5000,
    }

    data: Path = field(kw_only=False, metadata=data_field("Where the mixture's files lie."))
    settings: Sequence[str] | None = option(
        list[str] | None,
        "--setting",
        help="A row, such as 1-2d-leak-977 or 2-5d-1000; may be repeated.",
    )
    epsilons: Sequence[float] | None = epsilons_field("ε; may be repeated.")
    full: bool = option(bool, default=False, help="Settings of 10,000 points too; Algorithm 2 with one seed.")
    simulated: bool = option(bool, default=False, help="Simulated noise: faster, and protects nobody.")
    records: int | None = bounded_field(int | None, default=None, least=1)


@dataclass(frozen=True, kw_only=True)
class RegressionOptions(ExperimentOptions):
    """Private linear regressions.

    Attributes:
        dataset: One of `hushbid.evidence.experiments.regression.DATASETS`.
        data: Directory of ``airfoil.npz``; None for ``linear``, which is drawn.
        epsilons: ε of each private method; None: 1.
    """

    NAME: ClassVar[str] = "regression"
    QUICK: ClassVar[Mapping[str, Any]] = {"seeds": 1}

    dataset: str = field(
        default="linear", kw_only=False, metadata=argument_field(str, help="linear or airfoil.")
    )
    data: Path | None = field(
        default=None, kw_only=False, metadata=data_field("Directory of airfoil.npz.", Path | None)
    )
    seeds: int | Sequence[int] = seeds_field(3)
    epsilons: Sequence[float] | None = epsilons_field("ε of a model; may be repeated.")


OPTIONS: Final[Mapping[str, type[ExperimentOptions]]] = {
    kind.NAME: kind
    for kind in (
        SelectionOptions,
        ScreeningOptions,
        RaceOptions,
        KmeOptions,
        RegressionOptions,
        *PURCHASES,
    )
}
"""What each experiment takes, by its name."""


def declaration(options: ExperimentOptions) -> str:
    """A TOML file that declares an experiment, with absolute paths, for `read_declaration`."""
    values: dict[str, Any] = {_KIND: options.NAME}
    for each in fields(options):
        value = getattr(options, each.name)
        if value is None or each.name in ("out", "jobs", "scheduler", "quick", "say"):
            continue
        values[each.name] = list(value) if isinstance(value, range | tuple) else value
        if isinstance(value, Path):
            values[each.name] = str(value.absolute())
    return tomli_w.dumps(values)


def experiment(name: str) -> Any:
    """The experiment of that name (`hushbid.evidence.experiments.runner.Experiment`)."""
    kind = OPTIONS[name]
    module = import_module(f"hushbid.evidence.experiments.{kind.NAME.replace('-', '_')}")
    return module.EXPERIMENT


def read_declaration(path: Path, **changes: Any) -> ExperimentOptions:
    """The experiment that a TOML file declares. Relative paths are relative to the file.

    Args:
        path: The file: `experiment`, and the attributes of its class in `OPTIONS`.
        changes: Attributes in place of the file's.

    Raises:
        ConfigError: The file cannot be read, or a key is missing, unknown, of a wrong type or out of bounds.
    """
    from pydantic import TypeAdapter, ValidationError

    from protocol.config.loading import read_toml

    values = read_toml(path)
    kind = values.pop(_KIND, None)
    if not isinstance(kind, str) or kind not in OPTIONS:
        raise ConfigError(
            f"{path} declares no experiment: `{_KIND}` is "
            + ("missing." if kind is None else f"{kind!r}, which there is not."),
            advice=f"It is one of {', '.join(OPTIONS)}.",
        )
    refuse_out_of_bounds(OPTIONS[kind], values)  # before types are made to fit: `true` would be a 1
    try:
        options = TypeAdapter(OPTIONS[kind]).validate_python(values | changes)
    except ValidationError as error:
        said = [".".join(map(str, fault["loc"])) + f": {fault['msg']}" for fault in error.errors()]
        raise ConfigError(
            f"{path} cannot hold: {'; '.join(said)}.", advice="docs/results.md says what an experiment takes."
        ) from None
    given = {each.name: getattr(options, each.name) for each in fields(options) if each.name not in changes}
    places = {name: value for name, value in given.items() if isinstance(value, Path)}
    absolute: Any = {name: path.parent / place.expanduser() for name, place in places.items()}
    return replace(options, **absolute)
