"""What declares an experiment: the options of its verb, the keys of its TOML file, and what Python takes.

A class's docstring, as far as its attributes, is the help of its verb; attributes say what the help of their
options does not. The command line always imports this module. What runs an experiment is in
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
    argument_field,
    bounded_field,
    data_field,
    epsilons_field,
    positive_field,
    refuse_out_of_bounds,
    seeds_field,
)
from hushbid.evidence.purchase_options import PURCHASES
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
    """Say how near privately bought points come to the consumer's, beside greedy and uniform choices.

    With --session on the data of a cluster file's parties, as `simulate` has them: no ledger is charged, and
    what is printed is not private.

    Attributes:
        dataset: One of `hushbid.datasets.DATASETS`, or the path of a cluster file.
        session: The releases and the rule of the experiment take the place of the file's.
        epsilons: None: 1 and 3.
        mechanism: One that takes `epsilon` and `neighbours`.
        batch, seed_weight, jitter: None: the cluster file's, or the session's own default.
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
    """Say how often catalogue entries rank the right owner first, and what a screened session loses."""

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
class WorthOptions(ExperimentOptions):
    """Say where buying pays: the consumer's model with a purchase and without, by the rows that it has.

    Attributes:
        settings: Some of `hushbid.evidence.experiments.worth.SETTINGS`; None: all.
        own_rows: m; None: 30, 100, 300 and 1000.
        labelled: None: 0, 50 and 1000.
        points: p; None: 300.
        epsilons: None: 1.
        models: None: `logistic`.
        choices: Of ``features`` alone, or of ``labels`` too; None: `features`.
        similarity: Of two labels in the choice (`hushbid.protocol.config.labels`); None: its default.
        rules: ``sealed``, in rounds, or ``tender``; None: `sealed`.
    """

    NAME: ClassVar[str] = "worth"
    QUICK: ClassVar[Mapping[str, Any]] = {
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
        list[int] | None, min=1, help="Rows of the consumer; may be repeated."
    )
    labelled: Sequence[int] | None = option(
        list[int] | None, min=0, help="How many of them have a label, at most all; may be repeated."
    )
    points: Sequence[int] | None = option(list[int] | None, min=1, help="Points to buy; may be repeated.")
    epsilons: Sequence[float] | None = epsilons_field("ε of owners and of consumer, each; may be repeated.")
    models: Sequence[str] | None = option(
        list[str] | None,
        "--model",
        help="logistic, boosted, or another model of a consumer; may be repeated.",
    )
    choices: Sequence[str] | None = option(
        list[str] | None,
        "--choice",
        help="features, or labels: whether labels have a part in the choice; may be repeated.",
    )
    similarity: float | None = option(
        float | None, help="Of two labels, where they have a part; default: 0.5."
    )
    rules: Sequence[str] | None = option(
        list[str] | None, "--rule", help="sealed, which buys in rounds, or tender; may be repeated."
    )


@dataclass(frozen=True, kw_only=True)
class RaceOptions(ExperimentOptions):
    """Say how well RACE sketches answer at sound ε, beside what the authors' code does.

    Attributes:
        tasks: Some of `hushbid.evidence.experiments.race.TASKS`.
        epsilons: None: those of the documents. Each table has a row without privacy besides.
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
    """Say how near a dataset's private release as weighted points comes to it, beside published figures.

    Attributes:
        data: Directory with ``kme-mixture-2d.npz`` and ``kme-mixture-5d.npz``, array ``points`` each.
        settings: Names of `hushbid.evidence.experiments.kme.SETTINGS`; none: all but those with more than
            `LONG` points.
        epsilons: None: 0.01, 0.1 and 1.
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
    """Fit a linear model by products and by RACE, beside least squares, AdaSSP and the mean.

    Attributes:
        dataset: One of `hushbid.evidence.experiments.regression.DATASETS`; ``linear`` is drawn, without data.
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
    identifier = name.replace("-", "_")
    return getattr(import_module(f"hushbid.evidence.experiments.{identifier}"), identifier)


def read_declaration(path: Path, **changes: Any) -> ExperimentOptions:
    """The experiment that a TOML file declares. Relative paths are relative to the file.

    Args:
        path: The file: `experiment`, and the attributes of its class in `OPTIONS`.
        changes: Attributes in place of the file's.

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
