"""RACE on its paper's data: density errors and classification accuracy, compared with the authors' code.

The authors' figures come from their public code with sound noise, Laplace(R/ε), run on the same files with
1,000 rows of 1,000 columns. Densities are estimated with R as given, and again with the R of Corollary 1
where it is smaller. Noise is simulated, with the distribution that the stated ε needs. The bounds are those
of the file, taken as public.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from hushbid.lab.experiment_options import RaceOptions
from hushbid.lab.experiments.cells import Configuration, Measured
from hushbid.lab.experiments.results import ExperimentRow, PlottedFigure
from hushbid.lab.experiments.runner import Experiment, refuse_none
from hushbid.protocol.errors import ConfigError, DataError
from hushbid.protocol.privacy.noise import SimulatedNoise
from hushbid.protocol.privacy.releases import Neighbours
from hushbid.protocol.space.lsh import HashFamily, Points
from hushbid.race import RaceClassifier, Sketch, calibrate, make_family, optimal_rows

__all__ = ["EPSILONS", "LOGISTIC", "ROWS", "TASKS", "RaceRow", "race"]

Epsilons: TypeAlias = tuple[float | None, ...]
Reals: TypeAlias = npt.NDArray[np.float64]

ROWS: Final = 1000
QUERIES: Final = 2000
EPSILONS: Final = (0.01, 0.1, 1.0, 10.0)
GRID: Final = 1000
"""Number of points at which salary densities are compared."""
_SPLIT_SEED: Final = 0
_PAIRS: Final = 2**22


class RaceSetting(NamedTuple):
    """A dataset of the paper, and the authors' result on it by ε; None means without privacy."""

    file: str
    bandwidth: float
    authors: Mapping[float | None, float]
    scaled: bool = False


_DENSITY: Final = {
    "codrna": RaceSetting(
        "codrna.npz", 0.5, {None: 0.013, 0.01: 24.7, 0.1: 0.34, 1.0: 0.032, 10.0: 0.013}, scaled=True
    ),
    "skin": RaceSetting("skin.npz", 5.0, {None: 0.071, 0.01: 316.0, 0.1: 0.110, 1.0: 0.071, 10.0: 0.071}),
}
_CLASSES: Final = {
    "occupancy": RaceSetting(
        "occupancy.npz", 0.5, {None: 0.912, 0.1: 0.762, 1.0: 0.840, 10.0: 0.910}, scaled=True
    ),
    "skin": RaceSetting("skin.npz", 5.0, {None: 0.926, 0.1: 0.906, 1.0: 0.924, 10.0: 0.926}),
}
LOGISTIC: Final[dict[str, dict[float, float]]] = {
    "skin": {0.1: 0.882, 1.0: 0.883, 10.0: 0.884},
    "occupancy": {0.1: 0.929, 1.0: 0.991, 10.0: 0.991},
    "codrna": {0.1: 0.878, 1.0: 0.927, 10.0: 0.929},
}
"""Balanced accuracy of `LogisticRegression` of diffprivlib 0.6.6, mean of seeds 0 to 9: columns scaled to
[-1, 1] by the same bounds, data_norm = √columns, and the better of C = 1 and C = 100."""
_SALARIES: Final = RaceSetting(
    file="chicago-salaries.npz",
    bandwidth=5000.0,
    scaled=False,
    authors={0.1: 0.023, 1.0: 0.0127, 10.0: 0.0117},
)


@dataclass(frozen=True, kw_only=True)
class RaceRow(ExperimentRow):
    """One setting, over all seeds: of hash functions, of noise, and of a classifier's split."""

    task: str
    dataset: str
    measure: str
    bandwidth: float | None
    epsilon: float | None
    rows: int
    by_corollary: bool
    figure: float
    figure_each: tuple[float, ...]
    authors: float | None
    build_seconds: float
    query_milliseconds: float
    balanced: float | None = None
    balanced_each: tuple[float, ...] = ()
    largest: float | None = None
    logistic: float | None = None


@dataclass(frozen=True, kw_only=True)
class _Problem:
    """Mean kernel values to estimate: the queries and the points."""

    setting: RaceSetting
    points: Points
    queries: Points
    lower: Reals
    upper: Reals

    def family(self, rows: int, seed: int) -> HashFamily:
        return make_family(
            "l2",
            rows=rows,
            width=ROWS,
            lower=self.lower,
            upper=self.upper,
            seed=seed,
            bandwidth=self.setting.bandwidth,
        )


@lru_cache(maxsize=1)
def _problem(data: Path, task: str, name: str, queries: int) -> _Problem:
    if task == "density":
        setting = _DENSITY[name]
        points, lower, upper = _load(data, setting, "features")
        order = np.random.default_rng(_SPLIT_SEED).permutation(len(points))
        held, rest = points[order[:queries]], points[order[queries:]]
        return _Problem(setting=setting, points=rest, queries=held, lower=lower, upper=upper)
    points, lower, upper = _load(data, _SALARIES, "salaries")
    grid = np.linspace(lower, upper, GRID)
    return _Problem(setting=_SALARIES, points=points, queries=grid, lower=lower, upper=upper)


@lru_cache(maxsize=1)
def _exact(data: Path, task: str, name: str, queries: int) -> Reals:
    problem = _problem(data, task, name, queries)
    return _mean_kernel(problem.family(1, 0), problem.points, problem.queries)


def _estimates(
    data: Path, task: str, name: str, options: RaceOptions
) -> Iterator[tuple[int, bool, Epsilons]]:
    """Estimates to make: R, whether it is Corollary 1's, and ε. A smaller R of Corollary 1 is used too."""
    epsilons = _epsilons(options)
    yield options.rows, False, (None, *epsilons)
    size = len(_problem(data, task, name, QUERIES).points)
    for value in epsilons:
        best = optimal_rows(size, value, neighbours=Neighbours.ADD_REMOVE_ONE)
        if best < options.rows:
            yield best, True, (value,)


def _error(options: RaceOptions, configuration: Configuration, seed: int) -> dict[str, Any]:
    """Error of densities; sketches are built once for all consecutive ε."""
    which = options.data, configuration["task"], configuration["dataset"], QUERIES
    problem, exact = _problem(*which), _exact(*which)
    sketch, built = _sketch(*which, configuration["rows"], seed)
    released = _with_noise(sketch, configuration["epsilon"], seed)
    begun = time.perf_counter()
    off = released.kernel_sums(problem.queries) / released.points - exact
    asked = (time.perf_counter() - begun) / len(problem.queries) * 1e3
    if configuration["task"] == "density":
        figure = np.mean(np.abs(off) / exact)
    else:
        figure = np.sqrt(np.mean(off**2))
    return {"figure": float(figure), "build_seconds": built, "query_milliseconds": asked}


@lru_cache(maxsize=1)
def _sketch(data: Path, task: str, name: str, queries: int, rows: int, seed: int) -> tuple[Sketch, float]:
    problem = _problem(data, task, name, queries)
    begun = time.perf_counter()
    sketch = Sketch.empty(problem.family(rows, seed), None, None).add(problem.points)
    return sketch, time.perf_counter() - begun


def _with_noise(sketch: Sketch, epsilon: float | None, seed: int) -> Sketch:
    """The private sketch of the same points; noise can be added after the counts."""
    if epsilon is None:
        return sketch
    calibration = calibrate(
        rows=sketch.family.rows,
        cells=len(sketch.counts),
        neighbours=Neighbours.ADD_REMOVE_ONE,
        epsilon=epsilon,
    )
    noise = Sketch.empty(sketch.family, calibration, SimulatedNoise(seed, "race"))
    return replace(noise, counts=noise.counts + sketch.counts, size=noise.size + sketch.size)


def _score(options: RaceOptions, configuration: Configuration, seed: int) -> dict[str, Any]:
    """Score of a classifier with R rows or, for ``defaults``, with bounds, classes and ε only."""
    name, chosen_by_us = configuration["dataset"], configuration["task"] == "classification"
    points, labels, lower, upper = _labelled(options.data, configuration["task"], name)
    settings: dict[str, Any] = {}
    if chosen_by_us:
        settings = {"rows": options.rows, "width": ROWS, "bandwidth": _CLASSES[name].bandwidth}
    order = np.random.default_rng(seed).permutation(len(points))
    held, rest = np.split(order, [len(order) // 5])
    classifier = RaceClassifier(
        lower=lower,
        upper=upper,
        epsilon=configuration["epsilon"],
        classes=np.unique(labels).tolist(),
        neighbours="add-remove-one",
        random_state=seed,
        noise=partial(SimulatedNoise, seed, "race"),
        **settings,
    )
    begun = time.perf_counter()
    classifier.fit(points[rest], labels[rest])
    fitted = time.perf_counter()
    right = classifier.predict(points[held]) == labels[held]
    found: dict[str, Any] = {
        "figure": float(right.mean()),
        "build_seconds": fitted - begun,
        "query_milliseconds": (time.perf_counter() - fitted) / len(held) * 1e3,
    }
    if not chosen_by_us:
        classes = [labels[held] == label for label in classifier.classes_]
        found["rows"] = classifier.sketches_[0].family.rows if classifier.sketches_ else 0
        found["balanced"] = float(np.mean([right[members].mean() for members in classes]))
        found["largest"] = max(float(members.mean()) for members in classes)
    return found


@lru_cache(maxsize=1)
def _labelled(data: Path, task: str, name: str) -> tuple[Points, npt.NDArray[Any], Reals, Reals]:
    """Points, labels and bounds; raw columns for ``defaults``."""
    labels = _read(data / f"{name}.npz", "labels")
    if task == "classification":
        points, lower, upper = _load(data, _CLASSES[name], "features")
    else:
        points = _read(data / f"{name}.npz", "features").astype(np.float64)
        lower, upper = points.min(axis=0), points.max(axis=0)
    return points, labels, lower, upper


TASKS: Final[Mapping[str, Mapping[str, Any]]] = {
    "density": _DENSITY,
    "classification": _CLASSES,
    "defaults": LOGISTIC,
    "salaries": {"chicago-salaries": _SALARIES},
}
"""The datasets of each task, by name."""
_MEASURES: Final = {
    "density": "mean relative error",
    "salaries": "L2 error",
    "classification": "accuracy",
    "defaults": "accuracy",
}


def _epsilons(options: RaceOptions) -> tuple[float, ...]:
    return tuple(EPSILONS if options.epsilons is None else options.epsilons)


def _pairs(options: RaceOptions) -> Iterator[tuple[Configuration, int]]:
    tasks = list(TASKS) if options.tasks is None else options.tasks
    for task in tasks:
        if task not in TASKS:
            raise ConfigError(
                f"There is no experiment {task!r} on RACE.", advice=f"Name some of {', '.join(TASKS)}."
            )
    refuse_none(a_task=tasks, a_seed=options.every_seed)
    for task in tasks:
        for name in TASKS[task]:
            settings: Iterable[tuple[int | None, bool, Epsilons]]
            if task in ("density", "salaries"):
                settings = _estimates(options.data, task, name, options)
            else:
                chosen = options.rows if task == "classification" else None
                settings = [(chosen, False, (None, *_epsilons(options)))]
            for rows, by_corollary, epsilons in settings:
                for seed in options.every_seed:
                    for epsilon in epsilons:
                        yield (
                            {
                                "task": task,
                                "dataset": name,
                                "rows": rows,
                                "by_corollary": by_corollary,
                                "epsilon": epsilon,
                            },
                            seed,
                        )


def _files(options: RaceOptions, configuration: Configuration) -> list[Path]:
    return [options.data / f"{configuration['dataset']}.npz"]


def _said(configuration: Configuration, seed: int) -> str:
    task, dataset, rows = (configuration[name] for name in ("task", "dataset", "rows"))
    size = "" if rows is None else f", R = {rows}"
    return f"{task}, {dataset}{size}, ε = {configuration['epsilon']}, seed {seed}"


def _measure(options: RaceOptions, configuration: Configuration, seed: int) -> dict[str, Any]:
    measure = _error if configuration["task"] in ("density", "salaries") else _score
    return measure(options, configuration, seed)


def _row(configuration: Configuration, measured: Sequence[Measured]) -> RaceRow:
    task, name, epsilon = (configuration[key] for key in ("task", "dataset", "epsilon"))
    setting, defaults = TASKS[task][name], task == "defaults"

    def each(key: str) -> tuple[float, ...]:
        return tuple(found[key] for found in measured)

    return RaceRow(
        task=task,
        dataset=name,
        measure=_MEASURES[task],
        bandwidth=None if defaults else setting.bandwidth,
        epsilon=epsilon,
        rows=measured[-1]["rows"] if defaults else configuration["rows"],
        by_corollary=configuration["by_corollary"],
        figure=float(np.mean(each("figure"))),
        figure_each=each("figure"),
        authors=None if defaults else setting.authors.get(epsilon),
        build_seconds=float(np.mean(each("build_seconds"))),
        query_milliseconds=float(np.mean(each("query_milliseconds"))),
        balanced=float(np.mean(each("balanced"))) if defaults else None,
        balanced_each=each("balanced") if defaults else (),
        largest=float(np.mean(each("largest"))) if defaults else None,
        logistic=setting.get(epsilon) if defaults else None,
    )


race: Final = Experiment(
    options=RaceOptions,
    title="RACE on the data of its paper: errors of densities, accuracies of classes",
    pairs=_pairs,
    measure=_measure,
    row=_row,
    said=_said,
    files=_files,
    figure=PlottedFigure("epsilon", "figure", ("task", "dataset"), log_y=True),
)


def _load(data: Path, setting: RaceSetting, key: str) -> tuple[Points, Reals, Reals]:
    """Points, shape (n, columns), scaled to [0, 1] if the setting says so, and their bounds."""
    points = _read(data / setting.file, key).astype(np.float64)
    points = points.reshape(len(points), -1)
    lower, upper = points.min(axis=0), points.max(axis=0)
    if not setting.scaled:
        return points, lower, upper
    points = np.clip((points - lower) / (upper - lower), 0.0, 1.0)
    return points, np.zeros(points.shape[1]), np.ones(points.shape[1])


def _read(path: Path, key: str) -> npt.NDArray[Any]:
    if not path.is_file():
        raise DataError(f"{path} is not there.", advice="Name the directory of the data with --data.")
    with np.load(path, allow_pickle=False) as file:
        return np.asarray(file[key])


def _mean_kernel(family: HashFamily, points: Points, queries: Points) -> Reals:
    """The exact mean kernel value at each query; repeated points are computed once."""
    points, times = np.unique(points, axis=0, return_counts=True)
    length = max(1, _PAIRS // len(points))
    sums = [
        times @ family.kernel(points, queries[start : start + length])
        for start in range(0, len(queries), length)
    ]
    return np.asarray(np.concatenate(sums) / times.sum(), dtype=np.float64)
