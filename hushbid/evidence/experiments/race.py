"""RACE on the data of its paper: errors of densities and accuracies of classes, beside the authors' code.

The authors' figures are those of their public code with sound noise, Laplace(R/ε), run on the same files with
1,000 rows of 1,000 columns. Noise is simulated here: it has the distribution that the stated ε needs. Bounds
are those of the file, taken as public.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from hushbid.race import RaceClassifier, Sketch, calibrate, make_family, optimal_rows
from protocol.errors import ConfigError, DataError
from protocol.privacy.noise import SimulatedNoise
from protocol.privacy.releases import Neighbours
from protocol.space.lsh import HashFamily, Points

__all__ = ["EPSILONS", "LOGISTIC", "ROWS", "TASKS", "RaceRow", "race"]

Say: TypeAlias = Callable[[str], None]
Reals: TypeAlias = npt.NDArray[np.float64]

ROWS: Final = 1000
QUERIES: Final = 2000
EPSILONS: Final = (0.01, 0.1, 1.0, 10.0)
GRID: Final = 1000
"""Places at which the density of salaries is compared."""
_SPLIT_SEED: Final = 0
_PAIRS: Final = 2**22


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A dataset of the paper, and what the authors' code reaches on it, by ε; None is without privacy."""

    file: str
    bandwidth: float
    scaled: bool
    authors: dict[float | None, float]


_DENSITY: Final = {
    "codrna": Setting(
        file="codrna.npz",
        bandwidth=0.5,
        scaled=True,
        authors={None: 0.013, 0.01: 24.7, 0.1: 0.34, 1.0: 0.032, 10.0: 0.013},
    ),
    "skin": Setting(
        file="skin.npz",
        bandwidth=5.0,
        scaled=False,
        authors={None: 0.071, 0.01: 316.0, 0.1: 0.110, 1.0: 0.071, 10.0: 0.071},
    ),
}
_CLASSES: Final = {
    "occupancy": Setting(
        file="occupancy.npz",
        bandwidth=0.5,
        scaled=True,
        authors={None: 0.912, 0.1: 0.762, 1.0: 0.840, 10.0: 0.910},
    ),
    "skin": Setting(
        file="skin.npz",
        bandwidth=5.0,
        scaled=False,
        authors={None: 0.926, 0.1: 0.906, 1.0: 0.924, 10.0: 0.926},
    ),
}
LOGISTIC: Final[dict[str, dict[float, float]]] = {
    "skin": {0.1: 0.882, 1.0: 0.883, 10.0: 0.884},
    "occupancy": {0.1: 0.929, 1.0: 0.991, 10.0: 0.991},
    "codrna": {0.1: 0.878, 1.0: 0.927, 10.0: 0.929},
}
"""Balanced accuracy of `LogisticRegression` of diffprivlib 0.6.6, mean of seeds 0 to 9: columns scaled to
[-1, 1] by the same bounds, data_norm = √columns, and the better of C = 1 and C = 100."""
_SALARIES: Final = Setting(
    file="chicago-salaries.npz",
    bandwidth=5000.0,
    scaled=False,
    authors={0.1: 0.023, 1.0: 0.0127, 10.0: 0.0117},
)


@dataclass(frozen=True, kw_only=True)
class RaceRow:
    """One setting, over all seeds: of hash functions, of noise, and of a classifier's split.

    Attributes:
        task: ``density``, ``classification``, ``defaults`` or ``salaries``.
        dataset: Its name.
        measure: What `figure` is: ``mean relative error`` of the mean kernel value at held-out points,
            ``accuracy`` on held-out points, or ``L2 error``, the root mean square over a grid of the error of
            the mean kernel value.
        bandwidth: Of L2 hash functions, in the unit of the data, or of their bounds if scaled; None: chosen.
        epsilon: For adding or removing one record, δ = 0; None: no privacy.
        rows: R; of ``defaults`` that of the last seed, as it was chosen.
        by_corollary: Whether R is `optimal_rows`, and not given.
        figure: Mean over seeds.
        figure_each: For each seed, in the order in which they were given.
        authors: The same of the authors' code with sound noise and R = 1000; None where there is none.
        build_seconds: Of one sketch without noise, mean over seeds.
        query_milliseconds: Of one query of a batch, mean over seeds.
        balanced: Of ``defaults``, the mean over classes of the share of their held-out points that are told
            rightly, mean over seeds.
        balanced_each: For each seed.
        largest: Share of the held-out points that are of the largest class, mean over seeds.
        logistic: The same of diffprivlib's logistic regression on ten such splits (`LOGISTIC`).
    """

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

    def as_json(self) -> dict[str, Any]:
        """The row under its attributes' names."""
        return asdict(self)


def race(
    tasks: Sequence[str],
    data: Path,
    *,
    epsilons: Sequence[float] = EPSILONS,
    seeds: Sequence[int],
    rows: int = ROWS,
    say: Say | None = None,
) -> list[RaceRow]:
    """Work out tables of errors and accuracies.

    Densities are asked for with R as given, and once more with that of Corollary 1 where it is smaller.

    Args:
        tasks: Some of `TASKS`.
        data: Directory of the data files.
        epsilons: ε of each private setting; each table has a row without privacy besides.
        seeds: Of each setting.
        rows: R.
        say: Told what is being run.

    Raises:
        ConfigError: Nothing to run, or no such task.
        DataError: A data file is missing.
    """
    unknown = [task for task in tasks if task not in TASKS]
    if unknown or not (tasks and seeds):
        raise ConfigError(
            f"There is no experiment {unknown[0]!r} on RACE." if unknown else "There is nothing to run.",
            advice=f"Name some of {', '.join(TASKS)}, and a seed at least.",
        )
    found: list[RaceRow] = []
    for task in tasks:
        for row in TASKS[task](data, tuple(epsilons), tuple(seeds), rows):
            found.append(row)
            if say is not None:
                say(f"{row.task}, {row.dataset}, R = {row.rows}, ε = {row.epsilon}: {row.figure:.4f}")
    return found


@dataclass(frozen=True, kw_only=True)
class _Problem:
    """Mean kernel values to estimate: where, of which points, and how the error is measured."""

    task: str
    dataset: str
    setting: Setting
    points: Points
    queries: Points
    lower: Reals
    upper: Reals
    measure: str
    error: Callable[[Reals, Reals], float]

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


def _density(data: Path, epsilons: tuple[float, ...], seeds: tuple[int, ...], rows: int) -> Iterator[RaceRow]:
    for name, setting in _DENSITY.items():
        points, lower, upper = _load(data, setting, "features")
        order = np.random.default_rng(_SPLIT_SEED).permutation(len(points))
        problem = _Problem(
            task="density",
            dataset=name,
            setting=setting,
            points=points[order[QUERIES:]],
            queries=points[order[:QUERIES]],
            lower=lower,
            upper=upper,
            measure="mean relative error",
            error=lambda found, exact: float(np.mean(np.abs(found - exact) / exact)),
        )
        yield from _errors(problem, epsilons, seeds, rows)


def _salaries(
    data: Path, epsilons: tuple[float, ...], seeds: tuple[int, ...], rows: int
) -> Iterator[RaceRow]:
    points, lower, upper = _load(data, _SALARIES, "salaries")
    problem = _Problem(
        task="salaries",
        dataset="chicago-salaries",
        setting=_SALARIES,
        points=points,
        queries=np.linspace(lower, upper, GRID),
        lower=lower,
        upper=upper,
        measure="L2 error",
        error=lambda found, exact: float(np.sqrt(np.mean((found - exact) ** 2))),
    )
    yield from _errors(problem, epsilons, seeds, rows)


def _errors(
    problem: _Problem, epsilons: tuple[float, ...], seeds: tuple[int, ...], rows: int
) -> Iterator[RaceRow]:
    """A row for each ε and R: sketches are built once for each seed, and noise is added for each ε."""
    queries = problem.queries
    exact = _mean_kernel(problem.family(1, 0), problem.points, queries)
    settings: list[tuple[int, bool, tuple[float | None, ...]]] = [(rows, False, (None, *epsilons))]
    for value in epsilons:
        best = optimal_rows(len(problem.points), value, neighbours=Neighbours.ADD_REMOVE_ONE)
        if best < rows:
            settings.append((best, True, (value,)))
    for count, by_corollary, wanted in settings:
        figures: dict[float | None, list[float]] = {epsilon: [] for epsilon in wanted}
        asked: dict[float | None, list[float]] = {epsilon: [] for epsilon in wanted}
        built = []
        for seed in seeds:
            begun = time.perf_counter()
            sketch = Sketch.empty(problem.family(count, seed), None, None).add(problem.points)
            built.append(time.perf_counter() - begun)
            for epsilon in wanted:
                released = _with_noise(sketch, epsilon, seed)
                begun = time.perf_counter()
                found = released.kernel_sums(queries) / released.points
                asked[epsilon].append((time.perf_counter() - begun) / len(queries) * 1e3)
                figures[epsilon].append(problem.error(found, exact))
        for epsilon in wanted:
            yield RaceRow(
                task=problem.task,
                dataset=problem.dataset,
                measure=problem.measure,
                bandwidth=problem.setting.bandwidth,
                epsilon=epsilon,
                rows=count,
                by_corollary=by_corollary,
                figure=float(np.mean(figures[epsilon])),
                figure_each=tuple(figures[epsilon]),
                authors=problem.setting.authors.get(epsilon),
                build_seconds=float(np.mean(built)),
                query_milliseconds=float(np.mean(asked[epsilon])),
            )


def _with_noise(sketch: Sketch, epsilon: float | None, seed: int) -> Sketch:
    """The private sketch of the same points: noise and counts add up in either order."""
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


def _classification(
    data: Path, epsilons: tuple[float, ...], seeds: tuple[int, ...], rows: int
) -> Iterator[RaceRow]:
    for name, setting in _CLASSES.items():
        points, lower, upper = _load(data, setting, "features")
        labels = _read(data / setting.file, "labels")
        for epsilon in (None, *epsilons):
            figures, built, asked = [], [], []
            for seed in seeds:
                order = np.random.default_rng(seed).permutation(len(points))
                held, rest = np.split(order, [len(order) // 5])
                classifier = RaceClassifier(
                    lower=lower,
                    upper=upper,
                    epsilon=epsilon,
                    classes=np.unique(labels).tolist(),
                    neighbours="add-remove-one",
                    rows=rows,
                    width=ROWS,
                    bandwidth=setting.bandwidth,
                    random_state=seed,
                    noise=partial(SimulatedNoise, seed, "race"),
                )
                begun = time.perf_counter()
                classifier.fit(points[rest], labels[rest])
                fitted = time.perf_counter()
                figures.append(float(classifier.score(points[held], labels[held])))
                built.append(fitted - begun)
                asked.append((time.perf_counter() - fitted) / len(held) * 1e3)
            yield RaceRow(
                task="classification",
                dataset=name,
                measure="accuracy",
                bandwidth=setting.bandwidth,
                epsilon=epsilon,
                rows=rows,
                by_corollary=False,
                figure=float(np.mean(figures)),
                figure_each=tuple(figures),
                authors=setting.authors.get(epsilon),
                build_seconds=float(np.mean(built)),
                query_milliseconds=float(np.mean(asked)),
            )


def _defaults(
    data: Path,
    epsilons: tuple[float, ...],
    seeds: tuple[int, ...],
    rows: int,  # noqa: ARG001 it is chosen
) -> Iterator[RaceRow]:
    """Classification of raw columns by a classifier that is told nothing but bounds, classes and ε."""
    for name, logistic in LOGISTIC.items():
        path = data / f"{name}.npz"
        points, labels = _read(path, "features").astype(np.float64), _read(path, "labels")
        for epsilon in (None, *epsilons):
            figures, balanced, largest, built, asked, chosen = [], [], [], [], [], 0
            for seed in seeds:
                order = np.random.default_rng(seed).permutation(len(points))
                held, rest = np.split(order, [len(order) // 5])
                classifier = RaceClassifier(
                    lower=points.min(axis=0),
                    upper=points.max(axis=0),
                    epsilon=epsilon,
                    classes=np.unique(labels).tolist(),
                    neighbours="add-remove-one",
                    random_state=seed,
                    noise=partial(SimulatedNoise, seed, "race"),
                )
                begun = time.perf_counter()
                classifier.fit(points[rest], labels[rest])
                fitted = time.perf_counter()
                right = classifier.predict(points[held]) == labels[held]
                asked.append((time.perf_counter() - fitted) / len(held) * 1e3)
                built.append(fitted - begun)
                chosen = classifier.sketches_[0].family.rows if classifier.sketches_ else 0
                classes = [labels[held] == label for label in classifier.classes_]
                figures.append(float(right.mean()))
                balanced.append(float(np.mean([right[members].mean() for members in classes])))
                largest.append(max(float(members.mean()) for members in classes))
            yield RaceRow(
                task="defaults",
                dataset=name,
                measure="accuracy",
                bandwidth=None,
                epsilon=epsilon,
                rows=chosen,
                by_corollary=False,
                figure=float(np.mean(figures)),
                figure_each=tuple(figures),
                authors=None,
                build_seconds=float(np.mean(built)),
                query_milliseconds=float(np.mean(asked)),
                balanced=float(np.mean(balanced)),
                balanced_each=tuple(balanced),
                largest=float(np.mean(largest)),
                logistic=None if epsilon is None else logistic.get(epsilon),
            )


TASKS: Final = {
    "density": _density,
    "classification": _classification,
    "defaults": _defaults,
    "salaries": _salaries,
}
"""Each experiment, by its name."""


def _load(data: Path, setting: Setting, key: str) -> tuple[Points, Reals, Reals]:
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
        raise DataError(f"{path} is not there.", advice="Say with --data in which directory the data lie.")
    with np.load(path, allow_pickle=False) as file:
        return np.asarray(file[key])


def _mean_kernel(family: HashFamily, points: Points, queries: Points) -> Reals:
    """The exact mean kernel value at each query; points that occur often are worked out once."""
    points, times = np.unique(points, axis=0, return_counts=True)
    length = max(1, _PAIRS // len(points))
    sums = [
        times @ family.kernel(points, queries[start : start + length])
        for start in range(0, len(queries), length)
    ]
    return np.asarray(np.concatenate(sums) / times.sum(), dtype=np.float64)
