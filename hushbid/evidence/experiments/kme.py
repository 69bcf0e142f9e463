"""How near KME releases come to the data they stand for, beside what the authors published.

Settings of their experiment: N = 100,000 points of a Gaussian mixture, kernel exp(-‖x - y‖²/(10⁴·D)),
δ = 10^-6, one record substituted. *leak*: the public points are M of the private ones, drawn by the seed;
*random*: M points of N(0, 500²·I), the authors' own draw (`authors_points`). Figures are RKHS distances, by
the exact kernel, between the empirical embedding of all N points and the release. What is ours is the noise:
√2/N in place of 2/N for Algorithm 1, and that of the analytic Gaussian mechanism in place of the classical
formula. Public bounds are ±1000 in each column, twice the public standard deviation of the authors.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from hushbid.kme import KernelMeanRelease, kernels
from hushbid.kme.subspace import COORDINATE_UNIT, span
from protocol.errors import ConfigError, DataError
from protocol.privacy.noise import SecureNoise, SimulatedNoise

__all__ = ["DELTA", "FEATURES", "SETTINGS", "KmeRow", "Setting", "authors_points", "kme"]

Points: TypeAlias = npt.NDArray[np.float64]
Say: TypeAlias = Callable[[str], None]

DELTA: Final = 1e-6
FEATURES: Final = 10_000
"""J of Algorithm 2."""
BOUND: Final = 1000.0
SPREAD: Final = 500.0
NORMS: Final = {1: 100.0, 2: 1.0}
"""C of each algorithm."""
TOLERANCE: Final = 1.05
LAST_DIGIT: Final = 1e-4
LONG: Final = 1000
"""Points beyond which a setting takes minutes."""
DRAWN: Final = 10_000
"""Points of the authors' draw, of which a setting takes the first M."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A row of the authors' results.

    Attributes:
        algorithm: 1 or 2.
        columns: D.
        public: ``leak``, ``random``, or ``none`` for Algorithm 2.
        points: M.
        baseline: The published distance of the public points with equal weights; None for Algorithm 2.
        noiseless: The published figure of the same row with (nearly) no noise: that of the projection, or of
            Algorithm 2 at ε = 1.
        published: Published figure by ε.
    """

    algorithm: int
    columns: int
    public: str
    points: int
    baseline: float | None
    noiseless: float
    published: dict[float, float]

    @property
    def name(self) -> str:
        """Such as ``1-2d-leak-977``."""
        public = "" if self.public == "none" else f"{self.public}-"
        return f"{self.algorithm}-{self.columns}d-{public}{self.points}"

    def limit(self, epsilon: float) -> float | None:
        """What our figure is to stay below; None where none was published.

        It is half of the published figure where noise dominates that, else 5 % or a unit of its last digit
        more than it.
        """
        published = self.published.get(epsilon)
        if published is None:
            return None
        if epsilon <= 0.1 and published > 2.0 * self.noiseless:
            return published / 2.0
        return max(TOLERANCE * published, published + LAST_DIGIT)


def _row(
    algorithm: int, columns: int, public: str, points: int, baseline: float | None, *figures: float
) -> Setting:
    return Setting(
        algorithm=algorithm,
        columns=columns,
        public=public,
        points=points,
        baseline=baseline,
        noiseless=figures[0],
        published=dict(zip((0.01, 0.1, 1.0), figures[1:], strict=True)),
    )


SETTINGS: Final = (
    _row(1, 2, "leak", 104, 0.1063, 0.0103, 0.0879, 0.0131, 0.0103),
    _row(1, 2, "leak", 977, 0.0278, 0.0001, 0.1135, 0.0127, 0.0011),
    _row(1, 2, "leak", 10_000, 0.0078, 0.0000, 0.1307, 0.0133, 0.0012),
    _row(1, 5, "leak", 977, 0.0271, 0.0004, 0.2807, 0.0285, 0.0028),
    _row(1, 5, "leak", 10_000, 0.0082, 0.0000, 0.4527, 0.0454, 0.0046),
    _row(1, 2, "random", 977, 0.4163, 0.0002, 0.2896, 0.0284, 0.0029),
    _row(1, 5, "random", 977, 0.4078, 0.3126, 0.4539, 0.3144, 0.3126),
    _row(1, 5, "random", 10_000, 0.4068, 0.2074, 1.0736, 0.2325, 0.2077),
    _row(2, 2, "none", 100, None, 0.0318, 0.1799, 0.0342, 0.0318),
    _row(2, 2, "none", 1000, None, 0.0090, 0.2424, 0.0188, 0.0090),
    _row(2, 2, "none", 10_000, None, 0.0025, 0.3210, 0.0209, 0.0025),
    _row(2, 5, "none", 100, None, 0.3337, 0.4801, 0.3372, 0.3337),
    _row(2, 5, "none", 1000, None, 0.0380, 0.8541, 0.0872, 0.0380),
    _row(2, 5, "none", 10_000, None, 0.0341, 1.0318, 0.0973, 0.0341),
)
"""The authors' published result files."""


@dataclass(frozen=True, kw_only=True)
class KmeRow:
    """One setting and ε, over all seeds.

    Attributes:
        setting: Its name.
        epsilon: ε that was asked for; one record is substituted.
        delta: δ.
        distance: Mean RKHS distance of our releases.
        distance_each: Of each seed.
        published: The authors' figure; None for an ε that they have none for.
        limit: What ours was to stay below (`Setting.limit`).
        met: Whether it does; None without a limit.
        stated: Mean of what the releases themselves say of their distance (`Release.span_distance`): within
            the span of the public points, for Algorithm 2 of all of it.
        baseline: Mean distance of the public points with equal weights; None for Algorithm 2.
        published_baseline: The authors' figure of that; for *random* the same draw, so the same figure.
        projection: Mean distance of the noiseless projection on their span; None for Algorithm 2.
        noise: Name of its source.
        wall_seconds: Of a release, mean.
        cpu_seconds: Of all cores, mean.
        bound: Mean of the bound that releases give on the whole distance (`Release.distance`).
    """

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

    def as_json(self) -> dict[str, Any]:
        """The row under its attributes' names."""
        return asdict(self)


def kme(
    data: Path,
    *,
    settings: Sequence[str] = (),
    epsilons: Sequence[float],
    seeds: Sequence[int],
    full: bool = False,
    simulated: bool = False,
    records: int | None = None,
    say: Say | None = None,
) -> Iterator[KmeRow]:
    """Release the authors' data in their settings, with each ε and seed.

    Args:
        data: Directory with ``kme-mixture-2d.npz`` and ``kme-mixture-5d.npz``, array ``points`` each.
        settings: Names of `SETTINGS`; none: all but those with more than `LONG` points.
        epsilons: ε of each release.
        seeds: Of *leak*'s public points, feature map and optimiser; of simulated noise too.
        full: Whether those are run as well. Algorithm 2 is run with their first seed alone.
        simulated: Whether noise is simulated, which is faster and protects nobody.
        records: How many of the points are taken, the first ones; None: all. Published figures are of all.
        say: Told what is being run.

    Yields:
        A row for each setting and ε.

    Raises:
        ConfigError: Nothing to run, or an unknown setting.
        DataError: The files cannot be used.
    """
    if not (epsilons and seeds):
        raise ConfigError("An experiment needs an epsilon and a seed at least.", advice="Give one of each.")
    known = {setting.name: setting for setting in SETTINGS}
    if unknown := sorted(set(settings) - set(known)):
        raise ConfigError(
            f"There is no setting {', '.join(unknown)}.", advice=f"Settings are: {', '.join(known)}."
        )
    chosen = [known[name] for name in settings] or [
        setting for setting in SETTINGS if full or setting.points <= LONG
    ]
    loaded: dict[int, tuple[Points, float]] = {}
    for setting in chosen:
        if setting.columns not in loaded:
            points = _load(data / f"kme-mixture-{setting.columns}d.npz", setting.columns)[:records]
            loaded[setting.columns] = points, kernels.squared_norm(_scaled(points), _gamma(setting.columns))
        few = seeds[:1] if setting.points > LONG and setting.algorithm == 2 else seeds
        yield from _rows(setting, *loaded[setting.columns], epsilons, few, simulated, say)


def _rows(
    setting: Setting,
    data: Points,
    squared_norm: float,
    epsilons: Sequence[float],
    seeds: Sequence[int],
    simulated: bool,
    say: Say | None,
) -> Iterator[KmeRow]:
    gamma = _gamma(setting.columns)
    count = min(setting.points, len(data))
    public: list[Points] = []
    if setting.public == "leak":
        public = [_leaked(data, count, seed) for seed in seeds]
    elif setting.public == "random":
        public = [authors_points(count, setting.columns)] * len(seeds)
    different = public[:1] if setting.public == "random" else public
    floors = [_floors(points, data, gamma, squared_norm) for points in different]
    for epsilon in epsilons:
        runs = []
        for place, seed in enumerate(seeds):
            if say is not None:
                say(f"{setting.name}, ε = {epsilon:g}, seed {seed}")
            started, spent = time.perf_counter(), time.process_time()
            release = (
                KernelMeanRelease(
                    lower=-BOUND,
                    upper=BOUND,
                    epsilon=epsilon,
                    neighbours="substitute-one",
                    delta=DELTA,
                    method="subspace" if public else "features",
                    points=public[place] if public else count,
                    gamma=gamma,
                    features=FEATURES,
                    norm=NORMS[setting.algorithm],
                    random_state=seed,
                    noise=partial(SimulatedNoise, seed, setting.name) if simulated else SecureNoise,
                )
                .fit(data)
                .release_
            )
            took = time.perf_counter() - started, time.process_time() - spent
            scaled = release.scale(release.points)
            far = kernels.distance(scaled, release.weights, _scaled(data), gamma, squared_norm)
            runs.append((far, release.span_distance(), release.distance(), *took))
        distances, stated, bounds, walls, cpus = zip(*runs, strict=True)
        limit = setting.limit(epsilon)
        yield KmeRow(
            setting=setting.name,
            epsilon=epsilon,
            delta=DELTA,
            distance=fmean(distances),
            distance_each=distances,
            published=setting.published.get(epsilon),
            limit=limit,
            met=None if limit is None else fmean(distances) <= limit,
            stated=fmean(stated),
            baseline=fmean(floor[0] for floor in floors) if floors else None,
            published_baseline=setting.baseline,
            projection=fmean(floor[1] for floor in floors) if floors else None,
            noise=SimulatedNoise.name if simulated else SecureNoise.name,
            wall_seconds=fmean(walls),
            cpu_seconds=fmean(cpus),
            bound=fmean(bounds),
        )


def authors_points(count: int, columns: int) -> Points:
    """The public points of the authors' *random* settings: the first M of their one draw, by seed 0.

    Which points are drawn decides how near the span of M of them comes in five columns, so that only theirs
    compare with their figures.

    Args:
        count: M ≤ 10,000.
        columns: D.

    Returns:
        Unscaled, float64 of shape (M, D).
    """
    # The legacy generator is the authors' own; another one makes other points of this seed.
    drawn = np.random.RandomState(0).normal(0.0, SPREAD, (DRAWN, columns))
    return np.asarray(drawn[:count])


def _leaked(data: Points, count: int, seed: int) -> Points:
    return np.asarray(data[np.random.default_rng(seed).choice(len(data), count, replace=False)])


def _floors(points: Points, data: Points, gamma: float, squared_norm: float) -> tuple[float, float]:
    """Distances of the equally weighted public points, and of the projection on their span."""
    scaled, equal = _scaled(points), np.full(len(points), 1.0 / len(points))
    baseline = kernels.distance(scaled, equal, _scaled(data), gamma, squared_norm)
    totals = span(scaled, gamma, np.random.default_rng(0)).totals(_scaled(data))
    means = totals * (COORDINATE_UNIT / len(data))
    return baseline, float(np.sqrt(max(0.0, squared_norm - float(means @ means))))


def _gamma(columns: int) -> float:
    """γ on scaled points of the authors' 10^-4/D on raw ones."""
    return 1e-4 / columns * (2.0 * BOUND) ** 2


def _scaled(points: Points) -> Points:
    return (points + BOUND) / (2.0 * BOUND)


def _load(path: Path, columns: int) -> Points:
    try:
        with np.load(path) as archive:
            points = np.asarray(archive["points"], dtype=np.float64)
    except (OSError, KeyError, ValueError):
        raise DataError(
            f"{path} is no file of the KME mixture.", advice="Name the directory that holds it by --data."
        ) from None
    if points.ndim != 2 or points.shape[1] != columns:
        raise DataError(
            f"{path} has points of shape {points.shape}.", advice=f"It is to have {columns} columns."
        )
    return points
