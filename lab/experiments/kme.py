"""How close KME releases come to their data, compared with the authors' published figures.

The settings are those of the authors' experiment: N = 100,000 points of a Gaussian mixture, kernel exp(-‖x -
y‖²/(10⁴·D)), δ = 10^-6, one record substituted. *leak*: the public points are M of the private ones, drawn by
the seed; *random*: M points of N(0, 500²·I), the authors' own draw (`authors_points`). Figures are RKHS
distances, by the exact kernel, between the empirical embedding of all N points and the release. Only the
noise differs: √2/N instead of 2/N for Algorithm 1, and the analytic Gaussian mechanism instead of the
classical formula. Public bounds are ±1000 in each column, twice the authors' public standard deviation. The
seed determines *leak*'s public points, the feature map, the optimiser's start and the simulated noise.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from statistics import fmean
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from hushbid.kme import KernelMeanRelease, kernels
from hushbid.kme.subspace import COORDINATE_UNIT, span
from hushbid.lab.experiment_options import KmeOptions
from hushbid.lab.experiments.cells import Configuration, Measured
from hushbid.lab.experiments.results import ExperimentRow, PlottedFigure
from hushbid.lab.experiments.runner import Experiment, refuse_none, refuse_unknown
from hushbid.protocol.errors import DataError
from hushbid.protocol.privacy.noise import SecureNoise, SimulatedNoise

__all__ = ["DELTA", "FEATURES", "SETTINGS", "KmeRow", "KmeSetting", "authors_points", "kme"]

Points: TypeAlias = npt.NDArray[np.float64]

DELTA: Final = 1e-6
FEATURES: Final = 10_000
"""J of Algorithm 2."""
BOUND: Final = 1000.0
SPREAD: Final = 500.0
EPSILONS: Final = (0.01, 0.1, 1.0)
NORMS: Final = {1: 100.0, 2: 1.0}
"""C of each algorithm."""
TOLERANCE: Final = 1.05
LAST_DIGIT: Final = 1e-4
LONG: Final = 1000
"""Number of points beyond which a setting takes minutes."""
DRAWN: Final = 10_000
"""Number of points in the authors' draw, of which a setting takes the first M."""


class KmeSetting(NamedTuple):
    """A row of the authors' results.

    Attributes:
        algorithm: 1 or 2.
        columns: D.
        public: ``leak``, ``random``, or ``none`` for Algorithm 2.
        points: M.
        baseline: The published distance of the public points with equal weights; None for Algorithm 2.
        noiseless: The published figure with (nearly) no noise: of the projection, or of Algorithm 2 at ε = 1.
        figures: The published figures at each of `EPSILONS`.
    """

    algorithm: int
    columns: int
    public: str
    points: int
    baseline: float | None
    noiseless: float
    figures: tuple[float, float, float]

    @property
    def published(self) -> dict[float, float]:
        return dict(zip(EPSILONS, self.figures, strict=True))

    @property
    def name(self) -> str:
        """Such as ``1-2d-leak-977``."""
        public = "" if self.public == "none" else f"{self.public}-"
        return f"{self.algorithm}-{self.columns}d-{public}{self.points}"

    def limit(self, epsilon: float) -> float | None:
        """Upper limit for our figure; None if no figure was published.

        It is half of the published figure where noise dominates, else that plus 5 % or a unit of its last
        digit.
        """
        published = self.published.get(epsilon)
        if published is None:
            return None
        if epsilon <= 0.1 and published > 2.0 * self.noiseless:
            return published / 2.0
        return max(TOLERANCE * published, published + LAST_DIGIT)


SETTINGS: Final = (
    KmeSetting(1, 2, "leak", 104, 0.1063, 0.0103, (0.0879, 0.0131, 0.0103)),
    KmeSetting(1, 2, "leak", 977, 0.0278, 0.0001, (0.1135, 0.0127, 0.0011)),
    KmeSetting(1, 2, "leak", 10_000, 0.0078, 0.0000, (0.1307, 0.0133, 0.0012)),
    KmeSetting(1, 5, "leak", 977, 0.0271, 0.0004, (0.2807, 0.0285, 0.0028)),
    KmeSetting(1, 5, "leak", 10_000, 0.0082, 0.0000, (0.4527, 0.0454, 0.0046)),
    KmeSetting(1, 2, "random", 977, 0.4163, 0.0002, (0.2896, 0.0284, 0.0029)),
    KmeSetting(1, 5, "random", 977, 0.4078, 0.3126, (0.4539, 0.3144, 0.3126)),
    KmeSetting(1, 5, "random", 10_000, 0.4068, 0.2074, (1.0736, 0.2325, 0.2077)),
    KmeSetting(2, 2, "none", 100, None, 0.0318, (0.1799, 0.0342, 0.0318)),
    KmeSetting(2, 2, "none", 1000, None, 0.0090, (0.2424, 0.0188, 0.0090)),
    KmeSetting(2, 2, "none", 10_000, None, 0.0025, (0.3210, 0.0209, 0.0025)),
    KmeSetting(2, 5, "none", 100, None, 0.3337, (0.4801, 0.3372, 0.3337)),
    KmeSetting(2, 5, "none", 1000, None, 0.0380, (0.8541, 0.0872, 0.0380)),
    KmeSetting(2, 5, "none", 10_000, None, 0.0341, (1.0318, 0.0973, 0.0341)),
)
"""The authors' published result files."""
_NAMED: Final = {setting.name: setting for setting in SETTINGS}


@dataclass(frozen=True, kw_only=True)
class KmeRow(ExperimentRow):
    """One setting and ε, over all seeds."""

    setting: str
    epsilon: float
    delta: float
    distance: float
    distance_each: tuple[float, ...]
    published: float | None
    limit: float | None
    met: bool | None
    stated: float
    baseline: float | None
    published_baseline: float | None
    projection: float | None
    noise: str
    wall_seconds: float
    cpu_seconds: float
    bound: float


def _pairs(options: KmeOptions) -> Iterator[tuple[Configuration, int]]:
    epsilons = EPSILONS if options.epsilons is None else options.epsilons
    seeds = options.every_seed
    refuse_none(an_epsilon=epsilons, a_seed=seeds)
    refuse_unknown(options.settings or (), _NAMED, "setting", "Settings")
    chosen = [_NAMED[name] for name in options.settings or ()] or [
        setting for setting in SETTINGS if options.full or setting.points <= LONG
    ]
    noise = SimulatedNoise.name if options.simulated else SecureNoise.name
    how = {"noise": noise, "records": options.records}
    for setting in chosen:
        few = seeds[:1] if setting.points > LONG and setting.algorithm == 2 else seeds
        for seed in few:
            for epsilon in epsilons:
                yield {"setting": setting.name, "epsilon": epsilon, **how}, seed


def _files(options: KmeOptions, configuration: Configuration) -> list[Path]:
    return [_file(options.data, _NAMED[configuration["setting"]].columns)]


def _file(data: Path, columns: int) -> Path:
    return data / f"kme-mixture-{columns}d.npz"


def _said(configuration: Configuration, seed: int) -> str:
    return f"{configuration['setting']}, ε = {configuration['epsilon']:g}, seed {seed}"


def _measure(options: KmeOptions, configuration: Configuration, seed: int) -> dict[str, Any]:
    setting, simulated = _NAMED[configuration["setting"]], configuration["noise"] == SimulatedNoise.name
    gamma = _gamma(setting.columns)
    data, squared_norm = _private(options.data, setting.columns, options.records)
    count = min(setting.points, len(data))
    baseline, projection = _floors(options.data, options.records, setting.name, _drawn_by(setting, seed))
    started, spent = time.perf_counter(), time.process_time()
    release = (
        KernelMeanRelease(
            lower=-BOUND,
            upper=BOUND,
            epsilon=configuration["epsilon"],
            neighbours="substitute-one",
            delta=DELTA,
            method="features" if setting.public == "none" else "subspace",
            points=count if setting.public == "none" else _public(setting, data, seed),
            gamma=gamma,
            features=FEATURES,
            norm=NORMS[setting.algorithm],
            random_state=seed,
            noise=partial(SimulatedNoise, seed, setting.name) if simulated else SecureNoise,
        )
        .fit(data)
        .release_
    )
    wall, cpu = time.perf_counter() - started, time.process_time() - spent
    scaled = release.scale(release.points)
    return {
        "distance": kernels.distance(scaled, release.weights, _scaled(data), gamma, squared_norm),
        "stated": release.span_distance(),
        "bound": release.distance(),
        "baseline": baseline,
        "projection": projection,
        "wall_seconds": wall,
        "cpu_seconds": cpu,
    }


def _row_of(configuration: Configuration, measured: Sequence[Measured]) -> KmeRow:
    setting, epsilon = _NAMED[configuration["setting"]], configuration["epsilon"]
    limit = setting.limit(epsilon)

    def mean(name: str) -> float:
        return fmean(each[name] for each in measured)

    return KmeRow(
        setting=setting.name,
        epsilon=epsilon,
        delta=DELTA,
        distance=mean("distance"),
        distance_each=tuple(each["distance"] for each in measured),
        published=setting.published.get(epsilon),
        limit=limit,
        met=None if limit is None else mean("distance") <= limit,
        stated=mean("stated"),
        baseline=None if setting.public == "none" else mean("baseline"),
        published_baseline=setting.baseline,
        projection=None if setting.public == "none" else mean("projection"),
        noise=configuration["noise"],
        wall_seconds=mean("wall_seconds"),
        cpu_seconds=mean("cpu_seconds"),
        bound=mean("bound"),
    )


kme: Final = Experiment(
    options=KmeOptions,
    title="Kernel mean releases: RKHS distance to the data they stand for",
    pairs=_pairs,
    measure=_measure,
    row=_row_of,
    said=_said,
    files=_files,
    figure=PlottedFigure("epsilon", "distance", ("setting",), log_y=True),
)


def authors_points(count: int, columns: int) -> Points:
    """The public points of the authors' *random* settings: the first M ≤ 10,000 of their one draw, by seed 0.

    In five columns the draw decides how close the span of M points comes, so that only the authors' points
    compare with their figures. Unscaled, float64 of shape (M, D).
    """
    # The authors used the legacy generator; another one makes other points from this seed.
    drawn = np.random.RandomState(0).normal(0.0, SPREAD, (DRAWN, columns))
    return np.asarray(drawn[:count])


def _drawn_by(setting: KmeSetting, seed: int) -> int:
    """The seed of the public points; those of *random* do not depend on it."""
    return seed if setting.public == "leak" else 0


def _public(setting: KmeSetting, data: Points, seed: int) -> Points:
    count = min(setting.points, len(data))
    if setting.public == "random":
        return authors_points(count, setting.columns)
    return np.asarray(data[np.random.default_rng(seed).choice(len(data), count, replace=False)])


@lru_cache(maxsize=1)
def _floors(directory: Path, records: int | None, name: str, seed: int) -> tuple[float | None, float | None]:
    """Distances of the equally weighted public points, and of the projection onto their span."""
    setting = _NAMED[name]
    if setting.public == "none":
        return None, None
    gamma = _gamma(setting.columns)
    data, squared_norm = _private(directory, setting.columns, records)
    scaled = _scaled(_public(setting, data, seed))
    equal = np.full(len(scaled), 1.0 / len(scaled))
    baseline = kernels.distance(scaled, equal, _scaled(data), gamma, squared_norm)
    totals = span(scaled, gamma, np.random.default_rng(0)).totals(_scaled(data))
    means = totals * (COORDINATE_UNIT / len(data))
    return baseline, float(np.sqrt(max(0.0, squared_norm - float(means @ means))))


@lru_cache(maxsize=1)
def _private(directory: Path, columns: int, records: int | None) -> tuple[Points, float]:
    """The data, and the squared norm of their embedding."""
    points = _load(_file(directory, columns), columns)[:records]
    return points, kernels.squared_norm(_scaled(points), _gamma(columns))


def _gamma(columns: int) -> float:
    """γ on scaled points that corresponds to the authors' 10^-4/D on raw ones."""
    return 1e-4 / columns * (2.0 * BOUND) ** 2


def _scaled(points: Points) -> Points:
    return (points + BOUND) / (2.0 * BOUND)


def _load(path: Path, columns: int) -> Points:
    try:
        with np.load(path) as archive:
            points = np.asarray(archive["points"], dtype=np.float64)
    except (OSError, KeyError, ValueError):
        raise DataError(
            f"{path} is not a file of the KME mixture.", advice="Name the directory that holds it by --data."
        ) from None
    if points.ndim != 2 or points.shape[1] != columns:
        raise DataError(
            f"{path} has points of shape {points.shape}.", advice=f"It must have {columns} columns."
        )
    return points
