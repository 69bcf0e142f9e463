"""Declarations of experiments: options of the verb, keys of the TOML file, and arguments in Python.

The part of a class's docstring before the attributes is the verb's help. Attributes add what the options'
help leaves out. The command line always imports this module; `hushbid.lab.experiments` has the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final

import tomli_w
from annotated_types import Ge

from hushbid.catalogue.sketch_ranges import Rows
from hushbid.lab.experiment_fields import (
    ExperimentOptions,
    Small,
    argument_field,
    data_field,
    epsilons_field,
    python_field,
    refuse_out_of_bounds,
    seeds_field,
)
from hushbid.lab.purchase_options import PURCHASES
from hushbid.protocol import ranges
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.runtime.command import option

__all__ = [
    "OPTIONS",
    "KmeOptions",
    "RaceOptions",
    "RegressionOptions",
    "ScreeningOptions",
    "SelectionOptions",
    "WorthOptions",
    "declaration",
    "experiment",
    "read_declaration",
]

_KIND: Final = "experiment"


@dataclass(frozen=True, kw_only=True)
class SelectionOptions(ExperimentOptions):
    """Measure how close privately bought points come to the wanted ones, beside greedy and uniform choices.

    With --session the data are those of a cluster file's parties, as in `simulate`. No ledger is charged, and
    the output is not private.

    Attributes:
        dataset: One of `hushbid.datasets.DATASETS`, or the path of a cluster file.
        session: The experiment's releases and rule replace the file's.
        epsilons: None: 1 and 3.
        mechanism: A mechanism with the parameters `epsilon` and `neighbours`.
        batch, seed_weight, jitter: None: the cluster file's, or the session's own default.
    """

    NAME: ClassVar[str] = "selection"
    QUICK: ClassVar[Small] = {"seeds": 1, "epsilons": (1.0,)}

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
        help="Cluster file to use instead of a dataset: its session and its parties' data.",
    )
    epsilons: Sequence[float] | None = epsilons_field("ε of owners and of the consumer; may be repeated.")
    points: Sequence[int] | None = option(
        list[ranges.Points] | None,
        help="Points to buy; may be repeated. Default: 100, or the cluster file's.",
    )
    mechanism: str = option(str, default="filtered-gaussian", help="Release mechanism.")
    delta: float | None = option(
        ranges.Delta | None, help="δ of each ε; default: 1e-5, or the cluster file's."
    )
    batch: int | None = option(ranges.PointsOfRound | None, help="b, points bought per round; default: p/50.")
    seed_weight: float | None = option(
        ranges.SeedWeight | None, help="s, weight of a seed-set point; default: 0.1."
    )
    jitter: float | None = option(ranges.Jitter | None, help="N, jitter in points; default: 25, or 50.")


@dataclass(frozen=True, kw_only=True)
class ScreeningOptions(ExperimentOptions):
    """Measure how often catalogue entries rank the right owner first, and what a screened session loses."""

    NAME: ClassVar[str] = "screening"
    QUICK: ClassVar[Small] = {"seeds": 2, "epsilon": 1.0, "owner_points": 500}

    data: Path = field(kw_only=False, metadata=data_field("Where MNIST lies."))
    seeds: int | Sequence[int] = seeds_field(20)
    epsilon: float | None = option(
        ranges.Epsilon | None, help="ε of the entries, instead of the two defaults."
    )
    owner_points: int | None = option(
        ranges.Count | None, help="With --epsilon: maximum points per owner; default: all."
    )
    points: int | None = option(
        ranges.Points | None, help="Points to buy from all owners, and from the chosen ones; default: none."
    )


@dataclass(frozen=True, kw_only=True)
class WorthOptions(ExperimentOptions):
    """Measure where buying pays: the consumer's model with and without a purchase, by its number of own rows.

    Attributes:
        settings: Some of `hushbid.lab.experiments.worth.SETTINGS`; None: all.
        own_rows: m; None: 30, 100, 300 and 1000.
        labelled: None: 0, 50 and 1000.
        points: p; None: 300.
        epsilons: None: 1.
        models: None: `logistic`.
        choices: What selection looks at: ``features`` alone, or ``labels`` too; None: `features`.
        similarity: Similarity of two different labels in the choice (`hushbid.protocol.config.labels`); None:
            its default.
        rules: ``sealed``, in rounds, or ``tender``; None: `sealed`.
    """

    NAME: ClassVar[str] = "worth"
    QUICK: ClassVar[Small] = {
        "seeds": 1,
        "settings": ("occupancy-far", "airfoil-near"),
        "own_rows": (100,),
        "points": (100,),
    }

    settings: Sequence[str] | None = field(
        default=None,
        kw_only=False,
        metadata=argument_field(
            list[str] | None,
            help="mnist, rare, insurance, or occupancy, skin, codrna and airfoil with -near or -far; all "
            "if none is named.",
            metavar="setting",
        ),
    )
    data: Path = field(
        default=Path(), kw_only=False, metadata=data_field("Directory of mnist.npz, occupancy.npz and so on.")
    )
    own_rows: Sequence[int] | None = option(
        list[ranges.Count] | None, help="Number of the consumer's rows; may be repeated."
    )
    labelled: Sequence[int] | None = option(
        list[Annotated[int, Ge(0)]] | None, help="How many of these rows have a label; may be repeated."
    )
    points: Sequence[int] | None = option(list[ranges.Points] | None, help="Points to buy; may be repeated.")
    epsilons: Sequence[float] | None = epsilons_field("ε of owners and of the consumer; may be repeated.")
    models: Sequence[str] | None = option(
        list[str] | None,
        "--model",
        help="logistic, boosted, or another model of a consumer; may be repeated.",
    )
    choices: Sequence[str] | None = option(
        list[str] | None,
        "--choice",
        help="features, or labels to choose by labels too; may be repeated.",
    )
    similarity: float | None = option(
        ranges.Similarity | None, help="Similarity of two different labels, with labels; default: 0.5."
    )
    rules: Sequence[str] | None = option(
        list[str] | None, "--rule", help="Acquisition rule, sealed or tender; may be repeated."
    )


@dataclass(frozen=True, kw_only=True)
class RaceOptions(ExperimentOptions):
    """Measure the accuracy of RACE sketches at sound ε, beside that of the authors' code.

    Attributes:
        tasks: Some of `hushbid.lab.experiments.race.TASKS`.
        epsilons: None: those of the documents. Each table also has a row without privacy.
        rows: R.
    """

    NAME: ClassVar[str] = "race"
    QUICK: ClassVar[Small] = {"seeds": 1, "tasks": ("density",), "epsilons": (1.0,), "rows": 100}

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
    rows: int = option(
        Rows, default=1000, help="Rows of a sketch; the task `defaults` chooses its own number."
    )


@dataclass(frozen=True, kw_only=True)
class KmeOptions(ExperimentOptions):
    """Measure how close a private release as weighted points comes to its dataset, beside published figures.

    Attributes:
        data: Directory with ``kme-mixture-2d.npz`` and ``kme-mixture-5d.npz``, array ``points`` each.
        settings: Names of `hushbid.lab.experiments.kme.SETTINGS`; none: all but those with more than
            `LONG` points.
        epsilons: None: 0.01, 0.1 and 1.
        records: Use this many of the first points; None: all. The published figures use all.
    """

    NAME: ClassVar[str] = "kme"
    QUICK: ClassVar[Small] = {
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
        help="Table row, such as 1-2d-leak-977 or 2-5d-1000; may be repeated.",
    )
    epsilons: Sequence[float] | None = epsilons_field("ε; may be repeated.")
    full: bool = option(
        bool, default=False, help="Include settings of 10,000 points; Algorithm 2 uses one seed."
    )
    simulated: bool = option(bool, default=False, help="Use simulated noise: faster, but it protects nobody.")
    records: int | None = python_field(ranges.Count | None, default=None)


@dataclass(frozen=True, kw_only=True)
class RegressionOptions(ExperimentOptions):
    """Fit a linear model by noisy products and by RACE, and compare with least squares, AdaSSP and the mean.

    Attributes:
        dataset: One of `hushbid.lab.experiments.regression.DATASETS`; ``linear`` is synthetic and needs
            no data.
        epsilons: None: 1.
    """

    NAME: ClassVar[str] = "regression"

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
        WorthOptions,
        RaceOptions,
        KmeOptions,
        RegressionOptions,
        *PURCHASES,
    )
}
"""The options class of each experiment, by name."""


def declaration(options: ExperimentOptions) -> str:
    """The TOML text that declares an experiment, with absolute paths, for `read_declaration`."""
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
    """Look up an experiment by name (`hushbid.lab.experiments.runner.Experiment`)."""
    identifier = name.replace("-", "_")
    return getattr(import_module(f"hushbid.lab.experiments.{identifier}"), identifier)


def read_declaration(path: Path, **changes: Any) -> ExperimentOptions:
    """Read the experiment that a TOML file declares. Relative paths are relative to the file.

    Args:
        path: The file: `experiment`, and the attributes of its class in `OPTIONS`.
        changes: Attributes that override the file's.

    Raises:
        ConfigError: The file cannot be read, or a key is missing, unknown, of a wrong type or out of bounds.
    """
    from pydantic import TypeAdapter, ValidationError

    from hushbid.protocol.config.loading import read_toml

    values = read_toml(path)
    kind = values.pop(_KIND, None)
    if not isinstance(kind, str) or kind not in OPTIONS:
        raise ConfigError(
            f"{path} declares no experiment: `{_KIND}` is "
            + ("missing." if kind is None else f"{kind!r}, which there is not."),
            advice=f"It is one of {', '.join(OPTIONS)}.",
        )
    refuse_out_of_bounds(OPTIONS[kind], values)  # Check before types are coerced, as `true` would become 1.
    try:
        options = TypeAdapter(OPTIONS[kind]).validate_python(values | changes)
    except ValidationError as error:
        said = [".".join(map(str, fault["loc"])) + f": {fault['msg']}" for fault in error.errors()]
        raise ConfigError(
            f"{path} cannot hold: {'; '.join(said)}.",
            advice="docs/results.md lists what an experiment takes.",
        ) from None
    given = {each.name: getattr(options, each.name) for each in fields(options) if each.name not in changes}
    places = {name: value for name, value in given.items() if isinstance(value, Path)}
    absolute: Any = {name: path.parent / place.expanduser() for name, place in places.items()}
    return replace(options, **absolute)
