"""Quality of private selection: MMD² of purchases for several ε, numbers of points, and seeds.

The seed distributes the dataset and draws the noise; the feature map stays the same. Sessions run in one
process (`hushbid.running.simulate.simulate`) with simulated noise: it has the distribution that the stated ε
needs, but whoever knows the seed could subtract it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from hushbid.cluster.file import Cluster, made_cluster, open_cluster, read_cluster
from hushbid.lab.experiment_options import SelectionOptions
from hushbid.lab.experiments.cells import Configuration, Measured
from hushbid.lab.experiments.purchases import figures_of, means
from hushbid.lab.experiments.results import ExperimentRow, PlottedFigure
from hushbid.lab.experiments.runner import Experiment, refuse_none
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.privacy.releases import Neighbours
from hushbid.running.simulate import simulate

__all__ = ["DELTA", "SelectionRow", "selection"]

DELTA: Final = 1e-5
_MAP_SEED: Final = 20190101


@dataclass(frozen=True, kw_only=True)
class SelectionRow(ExperimentRow):
    """One setting, over all seeds. MMD² of the bought points is against D_v, with the exact kernel."""

    dataset: str
    mechanism: str
    points: int
    batch: int
    seed_weight: float
    jitter: float
    epsilon: float
    delta: float
    epsilon_owners: float
    epsilon_consumer: float
    mmd2: float
    mmd2_each: tuple[float, ...]
    mmd2_greedy: float
    mmd2_uniform: float
    accuracy: float | None
    choices: Mapping[str, Mapping[str, Mapping[str, float | None]]]
    wall_seconds: float


def _pairs(options: SelectionOptions) -> Iterator[tuple[Configuration, int]]:
    where, session = _where(options), isinstance(_where(options), Path)
    epsilons = [1.0, 3.0] if options.epsilons is None else options.epsilons
    points = ([None] if session else [100]) if options.points is None else options.points
    refuse_none(an_epsilon=epsilons, a_number_of_points=points, a_seed=options.every_seed)
    said = {name: getattr(options, name) for name in ("batch", "seed_weight", "jitter", "delta")}
    given = {key: value for key, value in said.items() if value is not None}
    name = where.name if isinstance(where, Path) else where
    fixed = {"dataset": name, "mechanism": options.mechanism}
    for count in points:
        for epsilon in epsilons:
            for seed in options.every_seed:
                yield {**fixed, "points": count, "epsilon": epsilon, **given}, seed


def _where(options: SelectionOptions) -> str | Path:
    """A dataset's name, or the path of a cluster file."""
    if options.session is not None and options.dataset is not None:
        raise ConfigError(
            f"Both a dataset ({options.dataset}) and a cluster file ({options.session}) are named.",
            advice="Leave one of them out.",
        )
    return options.session or options.dataset or "digits"


def _files(options: SelectionOptions, configuration: Configuration) -> list[Path]:
    where = _where(options)
    if not isinstance(where, Path):
        return [] if options.data is None else [options.data]
    protection = _protection(configuration["mechanism"], configuration["epsilon"], 0)
    file = read_cluster(where, sections=lambda values: _sections(where, values, protection, None, 0, {}))
    consumer, dataset = file.consumer, file.dataset
    named = [owner.data for owner in file.owners.values()]
    named += [consumer.validation, consumer.seed_set, consumer.test]
    named += [options.data or (dataset.path if dataset else None)]
    return [where, *filter(None, named)]


def _said(configuration: Configuration, seed: int) -> str:
    size = "" if configuration["points"] is None else f", p = {configuration['points']}"
    return f"{configuration['dataset']}{size}, ε = {configuration['epsilon']:g}, seed {seed}"


def _measure(options: SelectionOptions, configuration: Configuration, seed: int) -> dict[str, Any]:
    result = simulate(_opened(options, configuration, seed), models=False)
    stated = {
        statement.neighbours: statement.epsilon
        for statement in reversed(result.privacy)
        if statement.epsilon is not None
    }
    judged = {name: getattr(result.choices, name) for name in ("run", "greedy", "uniform")}
    return {
        "points": result.p,
        "delta": result.privacy[0].delta,
        "batch": result.batch,
        "seed_weight": result.seed_weight,
        "jitter": result.jitter,
        "epsilon_owners": stated[Neighbours.ADD_REMOVE_ONE.value],
        "epsilon_consumer": stated[Neighbours.SUBSTITUTE_ONE.value],
        "choices": {
            name: {
                "plain": figures_of(judgement.plain),
                "weighted": figures_of(None if judgement.weighted is None else judgement.weighted.quality),
            }
            for name, judgement in judged.items()
        },
        "wall_seconds": result.wall_seconds,
    }


def _opened(options: SelectionOptions, configuration: Configuration, seed: int) -> Cluster:
    where, points = _where(options), configuration["points"]
    protection = _protection(configuration["mechanism"], configuration["epsilon"], seed)
    names = ("batch", "seed_weight", "jitter", "delta")
    given = {name: configuration[name] for name in names if name in configuration}
    if isinstance(where, Path):
        return open_cluster(
            where,
            data=options.data,
            sections=lambda values: _sections(where, values, protection, points, seed, given),
        )
    session = {"name": "selection", "points": points, "delta": DELTA, **given}
    table = {
        **protection,
        # Simulated noise protects nobody, and must be allowed explicitly.
        "session": {**session, "allow_nonprivate": True},
        "dataset": {"name": where, "seed": seed},
        "features": {"map": "paired", "seed": _MAP_SEED},
    }
    return made_cluster(table, of="selection", data=options.data)


def _sections(
    path: Path,
    values: Mapping[str, Any],
    protection: Mapping[str, Any],
    points: int | None,
    seed: int,
    given: Mapping[str, float],
) -> dict[str, Any]:
    """The sections that replace those of a cluster file."""
    if "roster" in values:
        raise ConfigError(
            f"{path} is a session file, which says nothing of anybody's data.",
            advice="Give a cluster file: the same sections without the roster, and every party's data "
            "(docs/configuration.md).",
        )
    count = {} if points is None else {"points": points}
    session, features, dataset = (values.get(name, {}) for name in ("session", "features", "dataset"))
    if points is not None and isinstance(session, Mapping):
        # The file's batch fits only the file's p.
        session = {key: value for key, value in session.items() if key != "batch"}
    changed = {
        **protection,
        "settlement": {},
        "session": {**session, **count, **given, "allow_nonprivate": True},
        "features": {"seed": _MAP_SEED, **features},
    }
    return changed | ({"dataset": {**dataset, "seed": seed}} if dataset else {})


def _protection(mechanism: str, epsilon: float, seed: int) -> dict[str, Any]:
    """The sections that protect the parties, for any data."""
    release = {"mechanism": mechanism, "epsilon": float(epsilon)}
    # `ask-all` buys the same points as `sealed` without sealing; owners learn the same about each other.
    return {
        "target": {**release, "neighbours": Neighbours.SUBSTITUTE_ONE.value},
        "summary": {**release, "neighbours": Neighbours.ADD_REMOVE_ONE.value},
        "acquisition": {"rule": "ask-all"},
        "noise": {"source": "simulated", "seed": seed},
    }


def _row(configuration: Configuration, measured: Sequence[Measured]) -> SelectionRow:
    first, choices = measured[0], [each["choices"] for each in measured]

    def mmd2(name: str) -> tuple[float, ...]:
        return tuple(_known(each[name]["plain"]["mmd2"]) for each in choices)

    mean = {
        name: {kind: means([each[name][kind] for each in choices]) for kind in kinds}
        for name, kinds in choices[0].items()
    }
    return SelectionRow(
        dataset=configuration["dataset"],
        mechanism=configuration["mechanism"],
        epsilon=float(configuration["epsilon"]),
        **{name: value for name, value in first.items() if name not in ("choices", "wall_seconds")},
        mmd2=fmean(mmd2("run")),
        mmd2_each=mmd2("run"),
        mmd2_greedy=fmean(mmd2("greedy")),
        mmd2_uniform=fmean(mmd2("uniform")),
        accuracy=mean["run"]["plain"]["accuracy"],
        choices=mean,
        wall_seconds=sum(each["wall_seconds"] for each in measured),
    )


def _known(value: float | None) -> float:
    """NaN for a figure that is undefined because nothing was bought."""
    return float("nan") if value is None else value


selection: Final = Experiment(
    options=SelectionOptions,
    title="Private selection: MMD² of what is bought",
    pairs=_pairs,
    measure=_measure,
    row=_row,
    said=_said,
    files=_files,
    figure=PlottedFigure("epsilon", "choices.run.plain.mmd2", ("dataset", "points")),
)
