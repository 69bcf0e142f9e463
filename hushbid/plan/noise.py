"""The distance of a release from the truth: its noise, and the filtered mean embedding's error."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import islice, repeat
from typing import ClassVar, Final

import numpy as np
from pydantic.dataclasses import dataclass as figures

from hushbid.plan.setting import PlanSetting, plain_prior
from hushbid.protocol.figures import Figures
from hushbid.protocol.privacy.noise import Draw, SimulatedNoise
from hushbid.protocol.privacy.releases import Neighbours, ReleaseMechanism, ReleaseStream
from hushbid.protocol.privacy.releases.base import largest_coordinate
from hushbid.protocol.privacy.releases.mwem import MwemRelease
from hushbid.protocol.session.session import Session
from hushbid.protocol.space.grid import FEATURE_UNIT, Totals

__all__ = [
    "MwemCalibration",
    "ReleaseError",
    "drowning_errors",
    "noise_values",
    "owners_error",
    "release_errors",
]

UNIT: Final = round(1.0 / FEATURE_UNIT)
DROWNED: Final = 1000.0
"""Squared noise per coordinate of D_v's release from which on no session needs to be played. In the direction
of a point it deviates by more than 30, and a mean of φ by 1 at most. Played, it may pass: with one kind of
stand-in owners a choice by noise is no worse than one at random.
"""
SETTLED: Final = 1e-9
SIMULATED_STEPS: Final = 100_000
"""Noise values per error simulation: one second."""

AVERAGED: Final = 10
"""Number of last releases whose simulated errors are averaged."""


@figures(frozen=True, slots=True)
class MwemCalibration(Figures):
    """``mwem`` by one calibration, at the last release's ε per step.

    Attributes:
        laplace_scale: Scale of the noise on a coordinate sum to which each point adds at most 1.
        epsilon, claimed_epsilon: Of all releases together.
    """

    laplace_scale: float
    epsilon: float | None
    claimed_epsilon: float | None


@figures(frozen=True, kw_only=True, slots=True)
class ReleaseError(Figures):
    """The errors of a release, in φ's units; errors are root mean squares of L2 norms.

    Attributes:
        count: Number of points in the last release's mean.
        sigma: Standard deviation of the noise on each coordinate of Σφ, of one release; None: not Gaussian.
        noise: Norm of the noise on Σφ.
        error: Error of the mean embedding in the last release, after the mechanism's filter.
        width: Number of coordinates with noise.
        calibrations: Both calibrations of ``mwem``; None for all other mechanisms.
    """

    TOLD: ClassVar[Mapping[str, str]] = {
        "relative_noise": "relative_noise",
        "error_unfiltered": "relative_noise",
        "error_is_simulated": "is_simulated",
    }

    mechanism: str
    releases: int
    count: int | float
    sigma: float | None
    noise: float
    error: float
    width: int
    calibrations: Mapping[str, MwemCalibration] | None = None

    @property
    def is_simulated(self) -> bool:
        """Whether errors were simulated on an assumed path rather than derived."""
        return self.sigma is None

    @property
    def relative_noise(self) -> float:
        """`noise` over `count`: the error of one release alone. The sum of φ is no longer than `count`."""
        return self.noise / self.count


def release_errors(setting: PlanSetting) -> tuple[ReleaseError, ReleaseError]:
    """The release of D_v (the curator's finer one, if any), and the curator's last release of S."""
    session = setting.session()
    return _target_error(session, setting), _summary_error(session, setting)


def drowning_errors(setting: PlanSetting) -> tuple[ReleaseError, ReleaseError] | None:
    """`release_errors` if D_v's release has more noise than points can differ by (`DROWNED`), else None."""
    session = setting.session()
    if session.charged_target.sigma is None:
        return None  # it releases nothing that is longer than a mean can be
    target = _target_error(session, setting)
    if target.error**2 / target.width < DROWNED:
        return None
    return target, _summary_error(session, setting)


def owners_error(setting: PlanSetting) -> ReleaseError | None:
    """The release of D_v that owners choose by, if the curator has a finer one (`release_errors`)."""
    session = setting.session()
    if session.nested is None:
        return None
    return _error(session.target, session, setting, setting.m, Neighbours.SUBSTITUTE_ONE)


def noise_values(setting: PlanSetting) -> dict[str, int]:
    """Values that all parties draw in a session, by distribution, without the keys of boxes."""
    session = setting.session()
    values: Counter[str] = Counter()
    last = setting.rounds - 1
    summary = session.summary
    batches: list[tuple[tuple[Draw, ...], int]] = [
        (session.target_draws, 1),
        (summary.draws(0), 1),
        (summary.draws(last), last),
        (() if setting.refusal else session.rule.draws(), setting.rounds),
        (() if session.settlement is None else (session.settlement.draw,), 1),
    ]
    for draws, times in batches:
        for draw in draws if times else ():
            values[draw.distribution] += draw.size * times
    return dict(values)


def _target_error(session: Session, setting: PlanSetting) -> ReleaseError:
    return _error(session.charged_target, session, setting, setting.m, Neighbours.SUBSTITUTE_ONE)


def _summary_error(session: Session, setting: PlanSetting) -> ReleaseError:
    return _error(session.summary, session, setting, setting.count, Neighbours.ADD_REMOVE_ONE)


def _error(
    mechanism: ReleaseMechanism, session: Session, setting: PlanSetting, count: float, neighbours: Neighbours
) -> ReleaseError:
    sigma, width, calibrations = mechanism.sigma, mechanism.width, None
    if sigma is None:
        noise, error = _simulated(mechanism, setting, count)
        width = mechanism.dimension
        if isinstance(mechanism, MwemRelease):
            calibrations = _calibrations(mechanism, neighbours)
    else:
        # Linear in totals and noise: with the origin as centre and spread 1 it returns Σy unchanged.
        prior = plain_prior(session, size=setting.seed_points, spread=UNIT)
        if mechanism.statistic(prior).centre is not None:
            sigma *= setting.spread
        walk = mechanism.walk(prior)
        noisy = mechanism.setting.charged if sigma else 0
        variance, lag = _filtered(repeat(1.0) if walk is None else walk.gains(), noisy)
        noise = sigma * math.sqrt(mechanism.noise_directions)
        # The filter's lag continues in the direction of what is wanted.
        behind = setting.spread * setting.drift * lag * mechanism.setting.batch
        error = math.hypot(noise * math.sqrt(variance), behind) / count
    return ReleaseError(
        mechanism=mechanism.name,
        releases=mechanism.releases,
        count=count,
        sigma=sigma,
        noise=noise,
        error=error,
        width=width,
        calibrations=calibrations,
    )


def _filtered(gains: Iterable[float], releases: int) -> tuple[float, float]:
    """A linear filter's noise variance over σ², and its lag in rounds, after this many noisy releases.

    x_l = x_{l-1} + k_l·(o_l - x_{l-1}), with gains k_l.
    """
    variance = lag = 0.0
    for gain in islice(gains, releases):
        before = variance, lag
        variance = (1.0 - gain) ** 2 * variance + gain**2
        lag = (1.0 - gain) * (lag + 1.0)
        if abs(variance - before[0]) <= SETTLED * variance and abs(lag - before[1]) <= SETTLED:
            break
    return variance, lag


def _simulated(mechanism: ReleaseMechanism, setting: PlanSetting, count: float) -> tuple[float, float]:
    """`noise` and `error` of a nonlinear mechanism, if every point adds the same vector to Σφ.

    Its length is that of the mean embedding of points `spread` apart from their mean. Of many releases only
    the last ones are simulated, starting from a stream's initial state.
    """
    generator = np.random.default_rng(0)
    direction = generator.standard_normal(mechanism.dimension)
    length = math.sqrt(max(0.0, 1.0 - setting.spread**2))
    mean = direction * (length / np.linalg.norm(direction))
    source = SimulatedNoise(0, "plan")

    def square(stream: ReleaseStream, index: int) -> float:
        size = max(1.0, count - mechanism.setting.batch * (mechanism.releases - 1 - index))
        total: Totals = np.rint(mean * size / FEATURE_UNIT).astype(np.int64)
        noise = tuple(source.draw(draw) for draw in mechanism.draws(index))
        return float(np.sum((stream.release(index, total, size, noise) - mean) ** 2))

    last = mechanism.releases - 1
    per_release = max(1, sum(draw.size for draw in mechanism.draws(last)))
    first = max(0, mechanism.releases - max(AVERAGED, SIMULATED_STEPS // per_release))
    stream = mechanism.stream()
    errors = [square(stream, index) for index in range(first, mechanism.releases)]
    error = math.sqrt(np.mean(errors[-AVERAGED:]))
    if isinstance(mechanism, MwemRelease):
        # √2 for the Laplace distribution; a point adds at most `largest` to a coordinate sum.
        largest = largest_coordinate(mechanism.dimension) * FEATURE_UNIT
        scale = mechanism.noise_scale(mechanism.schedule(last)[0])
        return math.sqrt(2.0 * mechanism.dimension) * scale * largest, error
    # Of the last release, as if there were no other.
    return math.sqrt(square(mechanism.stream(), last)) * count, error


def _calibrations(mechanism: MwemRelease, neighbours: Neighbours) -> dict[str, MwemCalibration]:
    step = mechanism.schedule(mechanism.releases - 1)[0]
    rows: dict[str, MwemCalibration] = {}
    for name in ("published", "sound"):
        given = {"calibration": name, "step_epsilon": step, "epsilon": None}
        other = replace(mechanism, parameters=mechanism.parameters.model_copy(update=given))
        stated = other.guarantee(neighbours=neighbours, delta=mechanism.setting.delta)
        rows[name] = MwemCalibration(other.noise_scale(step), stated.epsilon, stated.claimed_epsilon)
    return rows
