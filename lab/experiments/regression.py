"""Quality of private linear regression: noisy products and sketches, least squares, AdaSSP and the mean."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold

from hushbid.lab.experiment_options import RegressionOptions
from hushbid.lab.experiments.cells import Configuration, Measured
from hushbid.lab.experiments.results import ExperimentRow, PlottedFigure
from hushbid.lab.experiments.runner import Experiment, refuse_none
from hushbid.protocol.errors import ConfigError, DataError
from hushbid.protocol.privacy.accounting.gaussian import gaussian_mu
from hushbid.protocol.privacy.noise import SimulatedNoise
from hushbid.protocol.privacy.releases import Neighbours
from hushbid.race.regressor import RaceRegressor
from hushbid.race.release import PoorModelWarning

__all__ = ["DATASETS", "DELTA", "RegressionRow", "adassp", "regression"]

Array: TypeAlias = npt.NDArray[np.float64]
Fitted: TypeAlias = Callable[[Array], Array]

DELTA: Final = 1e-6
"""δ of AdaSSP and ``products-delta``; the other methods have none."""

FOLDS: Final = 10
LINEAR_SIZES: Final = (100_000, 10_000)
"""Number of training points of the linear dataset, and of held-out points."""
_CONFIDENCE: Final = 0.05  # AdaSSP's ϱ


@dataclass(frozen=True, kw_only=True)
class RegressionRow(ExperimentRow):
    """One method at one ε on one dataset."""

    dataset: str
    method: str
    neighbours: str | None
    epsilon: float | None
    delta: float
    points: int
    relative_error: float | None
    worst: float | None
    seeds: int


@dataclass(frozen=True, eq=False)
class _Task:
    """Features, target, their public bounds, and splits into training and held-out rows."""

    features: Array
    target: Array
    lower: Array
    upper: Array
    target_bounds: tuple[float, float]
    steps: int
    splits: tuple[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]], ...]


def _pairs(options: RegressionOptions) -> Iterator[tuple[Configuration, int]]:
    epsilons = [1.0] if options.epsilons is None else options.epsilons
    if options.dataset not in DATASETS:
        raise ConfigError(
            f"A regression on {options.dataset!r} was asked for, which there is not.",
            advice=f"Datasets are {' and '.join(DATASETS)}.",
        )
    refuse_none(an_epsilon=epsilons, a_seed=options.every_seed)
    for seed in options.every_seed:
        for setting in _settings(epsilons):
            named = dict(zip(("method", "neighbours", "epsilon"), setting, strict=True))
            yield {"dataset": options.dataset, **named}, seed


def _files(options: RegressionOptions, configuration: Configuration) -> list[Path]:
    return [options.data / "airfoil.npz"] if options.data and configuration["dataset"] == "airfoil" else []


def _said(configuration: Configuration, seed: int) -> str:
    epsilon = configuration["epsilon"]
    private = "" if epsilon is None else f", ε = {epsilon:g}, {configuration['neighbours']}"
    return f"{configuration['dataset']}, {configuration['method']}{private}, seed {seed}"


def _settings(epsilons: Sequence[float]) -> Iterator[tuple[str, str | None, float | None]]:
    yield "mean", None, None
    yield "least-squares", None, None
    for epsilon in epsilons:
        yield "adassp", Neighbours.ADD_REMOVE_ONE.value, epsilon
        yield "products-delta", Neighbours.ADD_REMOVE_ONE.value, epsilon
        for neighbours in Neighbours:
            yield "products", neighbours.value, epsilon
        for neighbours in Neighbours:
            yield "race", neighbours.value, epsilon
        yield "race-plain", Neighbours.ADD_REMOVE_ONE.value, epsilon


def _measure(options: RegressionOptions, configuration: Configuration, seed: int) -> dict[str, Any]:
    task = _task(configuration["dataset"], options.data, seed)
    method, neighbours, epsilon = (configuration[name] for name in ("method", "neighbours", "epsilon"))
    error = None
    with warnings.catch_warnings(), suppress(DataError):  # The public number of points is too small.
        warnings.simplefilter("ignore", PoorModelWarning)
        error = _error(task, method, neighbours, epsilon, seed)
    return {"points": len(task.splits[0][0]), "relative_error": error}


def _error(task: _Task, method: str, neighbours: str | None, epsilon: float | None, seed: int) -> float:
    """Held-out squared error relative to the mean's, over all folds."""
    squared = about_mean = 0.0
    for fold, (inside, outside) in enumerate(task.splits):
        features, target = task.features[inside], task.target[inside]
        number = seed * FOLDS + fold
        model = _fit(task, features, target, method, neighbours, epsilon, number)
        held_out = task.target[outside]
        squared += float(((model(task.features[outside]) - held_out) ** 2).sum())
        about_mean += float(((target.mean() - held_out) ** 2).sum())
    return squared / about_mean


def _fit(
    task: _Task,
    features: Array,
    target: Array,
    method: str,
    neighbours: str | None,
    epsilon: float | None,
    seed: int,
) -> Fitted:
    if method == "mean":
        mean = float(target.mean())
        return lambda points: np.full(len(points), mean)
    if epsilon is None:
        return LinearRegression().fit(features, target).predict  # type: ignore[no-any-return]
    if method == "adassp":
        middle, half = (task.lower + task.upper) / 2.0, (task.upper - task.lower) / 2.0
        centre, reach = sum(task.target_bounds) / 2.0, (task.target_bounds[1] - task.target_bounds[0]) / 2.0

        def extended(points: Array) -> Array:
            scaled = np.clip((points - middle) / half, -1.0, 1.0)
            return np.column_stack([scaled, np.ones(len(points))]) / math.sqrt(len(middle) + 1.0)

        scaled_target = np.clip((target - centre) / reach, -1.0, 1.0)
        generator = np.random.default_rng(seed)
        slope = adassp(extended(features), scaled_target, epsilon=epsilon, delta=DELTA, generator=generator)
        return lambda points: extended(points) @ slope * reach + centre
    return (
        RaceRegressor(
            lower=task.lower,
            upper=task.upper,
            target_lower=task.target_bounds[0],
            target_upper=task.target_bounds[1],
            epsilon=epsilon,
            delta=_delta(method),
            method="moments" if method.startswith("products") else "sketch",
            steps=task.steps,
            neighbours="substitute-one" if neighbours == "substitute-one" else "add-remove-one",
            assisted=method != "race-plain",
            random_state=seed,
            noise=partial(SimulatedNoise, seed, "regression"),
        )
        .fit(features, target)
        .predict
    )


def _delta(method: str) -> float:
    return DELTA if method in ("adassp", "products-delta") else 0.0


def adassp(
    features: Array, target: Array, *, epsilon: float, delta: float, generator: np.random.Generator
) -> Array:
    """Least squares from perturbed sufficient statistics, with a ridge that adapts (Wang 2018, Algorithm 2).

    Its three releases, of XᵀX, Xᵀy and the smallest eigenvalue, have an L2 sensitivity of 1 each when one
    record is added or removed. Noise is calibrated for all three together by the exact curve; the paper uses
    √log(6/δ)/(ε/3) for each.

    Args:
        features: Shape (n, d), each row of length at most 1.
        target: Shape (n,), in [-1, 1].
        epsilon: Positive.
        delta: In (0, 1).

    Returns:
        Slope, shape (d,).
    """
    columns = features.shape[1]
    sigma = math.sqrt(3.0) / gaussian_mu(epsilon, delta)
    gram = features.T @ features
    least = float(np.linalg.eigvalsh(gram)[0]) + sigma * float(generator.standard_normal())
    least = max(0.0, least - sigma * math.sqrt(math.log(6.0 / delta)))
    # The ridge compensates for an error of XᵀX that is exceeded with probability at most ϱ.
    error = sigma * math.sqrt(columns * math.log(2.0 * columns**2 / _CONFIDENCE))
    noise = np.triu(sigma * generator.standard_normal((columns, columns)))
    noise = noise + np.triu(noise, 1).T
    moment = features.T @ target + sigma * generator.standard_normal(columns)
    ridge = max(0.0, error - least) * np.eye(columns)
    return np.asarray(np.linalg.solve(gram + noise + ridge, moment))


def _airfoil(data: Path | None, seed: int) -> _Task:
    path = None if data is None else data / "airfoil.npz"
    if path is None or not path.is_file():
        raise DataError(
            "The airfoil data need a directory with airfoil.npz in it.",
            advice="Give it by --data or HUSHBID_DATA.",
        )
    with np.load(path) as file:
        features, target = file["features"].astype(np.float64), file["targets"].astype(np.float64)
    return _Task(
        features=features,
        target=target,
        # Round numbers around the ranges in the dataset's description: Hz, degrees, m, m/s, m; and dB.
        lower=np.zeros(5),
        upper=np.array([20_000.0, 25.0, 0.35, 80.0, 0.06]),
        target_bounds=(100.0, 145.0),
        steps=17,  # Fewer than by default, as there are few points.
        splits=tuple(KFold(FOLDS, shuffle=True, random_state=seed).split(features)),
    )


def _linear(data: Path | None, seed: int) -> _Task:  # noqa: ARG001 it is drawn
    inside, outside = LINEAR_SIZES
    generator = np.random.default_rng(seed)
    features = np.clip(generator.standard_normal((inside + outside, 8)), -4.0, 4.0)
    slope = generator.standard_normal(8)
    slope /= np.linalg.norm(slope)
    # The noise's variance lets least squares explain 70 %.
    target = 3.0 + features @ slope + math.sqrt(3.0 / 7.0) * generator.standard_normal(inside + outside)
    order = np.arange(inside + outside)
    return _Task(
        features=features,
        target=np.clip(target, -5.0, 11.0),
        lower=np.full(8, -4.0),
        upper=np.full(8, 4.0),
        target_bounds=(-5.0, 11.0),
        steps=33,
        splits=((order[:inside], order[inside:]),),
    )


DATASETS: Final[dict[str, Callable[[Path | None, int], _Task]]] = {"airfoil": _airfoil, "linear": _linear}
"""``airfoil``: 1,503 points of 5 features, 10-fold. ``linear``: normal features, drawn by the seed."""


@lru_cache(maxsize=1)
def _task(dataset: str, data: Path | None, seed: int) -> _Task:
    return DATASETS[dataset](data, seed)


def _row(configuration: Configuration, measured: Sequence[Measured]) -> RegressionRow:
    errors = [each["relative_error"] for each in measured]
    refused = None in errors
    return RegressionRow(
        **configuration,
        delta=_delta(configuration["method"]),
        points=measured[0]["points"],
        relative_error=None if refused else float(np.mean(errors)),
        worst=None if refused else max(errors),
        seeds=len(measured),
    )


regression: Final = Experiment(
    options=RegressionOptions,
    title="Private linear regression: held-out squared error over that of the mean",
    pairs=_pairs,
    measure=_measure,
    row=_row,
    said=_said,
    files=_files,
    figure=PlottedFigure("epsilon", "relative_error", ("method", "neighbours"), log_y=True),
)
