"""The reduced set of Algorithm 2, post-processing: points and weights with a given mean feature vector."""

from __future__ import annotations

import math
from typing import Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from hushbid.kme.l1_ball import L1Ball, within_norm
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.runtime.threads import Mapped, threads
from hushbid.protocol.space.features import Bound, FeatureMap, FourierMap, PairedSpace

__all__ = ["WeightRule", "reduced_set"]

Vector: TypeAlias = npt.NDArray[np.float64]
_Floats: TypeAlias = npt.NDArray[np.float32]
WeightRule: TypeAlias = Literal["optimised", "uniform"]

ITERATIONS: Final = 300
"""Maximum optimiser steps for each number of points."""
FIRST_ITERATIONS: Final = 1500
"""Maximum steps for the first points, which are random and cost little."""
SMALLEST_GAIN: Final = 1e-13
"""Minimum gain of every step but the last: squared distances are at least about 10^-6."""
GAIN_TO_NOISE: Final = 0.01
"""Minimum gain of a step relative to the noise variance of a coordinate."""
WIDTHS: Final = 3.0
"""Length of a unit of a point's variables, in kernel widths."""
JITTER: Final = 0.1
"""Distance between the parts of a split point, in kernel widths."""
CHUNK: Final = 256
"""Points whose features a thread computes at a time."""
FIRST_STAGE: Final = 256
"""Number of points placed first; the rest are split from them, which is far faster than moving all."""
GROWTH: Final = 4
"""Maximum ratio of a stage's points to those of the stage before."""
MEMORY: Final = 20
"""Pairs of steps and gradients that L-BFGS-B keeps."""


def reduced_set(
    target: Vector,
    space_map: FeatureMap,
    *,
    lower: Bound,
    upper: Bound,
    count: int,
    norm: float = 1.0,
    weights: WeightRule = "optimised",
    sigma: float = 0.0,
    seed: int,
    start: Vector | None = None,
) -> tuple[Vector, Vector]:
    """Points z and weights w that minimise ‖Σ w_m φ(z_m) - target‖ over the box and ‖w‖₁ ≤ C.

    KME Algorithm 2, line 6, and Theorem 8. The minimum is a local one: L-BFGS-B with exact gradients, from
    `start` or from points drawn over the box.

    Args:
        target: A (noisy) mean of φ, float64 of shape (d,).
        space_map: φ; its space must be `PairedSpace`.
        lower, upper: Public bounds of the points, for each column or for all.
        count: M.
        norm: C.
        weights: ``uniform``: all are C/M, and only points move.
        sigma: Standard deviation of the noise on each coordinate of `target`. The optimiser stops if the
            remaining gain is small against the noise.
        seed: Seed of the public starting points, not negative.
        start: Points to start from, shape (n, columns), n ≤ M; None: drawn.

    Returns:
        Points, float64 of shape (M, columns), within the bounds; weights, float64 of shape (M,), with
        `math.fsum` of their magnitudes at most C.

    Raises:
        ConfigError: A target of another dimension, another kind of map, or a value out of its range.
    """
    space = space_map.space
    fourier = _check(target, space_map, count, norm, seed)
    low = np.broadcast_to(np.asarray(lower, dtype=np.float64), (space.columns,))
    high = np.broadcast_to(np.asarray(upper, dtype=np.float64), (space.columns,))
    generator = np.random.default_rng(seed)
    first = min(count, FIRST_STAGE)
    if start is None:
        start = generator.uniform(low, high, (first, space.columns))
    if start.ndim != 2 or start.shape[1] != space.columns or not 1 <= len(start) <= count:
        raise ConfigError(
            f"Starting points of shape {start.shape} do not fit {count} points of {space.columns} columns.",
            advice="Give at most as many starting points as are to be released.",
        )
    fit = _Fit(target, fourier, low, high, norm, sigma)
    points, found = fit.descend(start, np.full(len(start), norm / len(start)))
    while len(points) < count:
        points, found = fit.split(points, found, min(count, GROWTH * len(points)), generator)
        points, found = fit.descend(points, found)
    if weights == "uniform":
        points, found = fit.split(points, found, count, generator)
        points, found = fit.descend(points, np.full(count, norm / count), uniform=True)
    return points, within_norm(found, norm)


class _Fit:
    """‖Σ w_m φ(z_m) - target‖² and its gradient, for L-BFGS-B.

    Cosines and sines are in float32, several times as fast and with an error of some 10^-7 of a feature.
    Chunks of points are summed in order, so that the number of threads changes no bit.
    """

    def __init__(
        self, target: Vector, space_map: FourierMap, low: Vector, high: Vector, norm: float, sigma: float
    ) -> None:
        space = space_map.space
        self._norm = norm
        self._low, self._high = low, high
        self._gain = max(SMALLEST_GAIN, GAIN_TO_NOISE * sigma**2)
        # z = centre + unit·y: the optimiser's variables y are of the order of 1, like its shares.
        self._width = space.range / math.sqrt(2.0 * space.gamma)
        self._unit = WIDTHS * self._width
        self._centre = 0.5 * (low + high)
        frequencies, phases = (space_map.frequencies / space.range).T, space_map.phases
        self._phases = (phases + (self._centre - space.lower) @ frequencies).astype(np.float32)
        self._frequencies = (self._unit[:, None] * frequencies).astype(np.float32)
        self._target = target
        self._scale = math.sqrt(2.0 / space.dimension)

    def descend(self, points: Vector, weights: Vector, *, uniform: bool = False) -> tuple[Vector, Vector]:
        """A local minimum near points of shape (n, columns) and weights of shape (n,), which may be kept."""
        ball = L1Ball(len(points), self._norm)
        cut = points.size
        start = [((points - self._centre) / self._unit).ravel()]
        box = np.stack([self._low - self._centre, self._high - self._centre], axis=1) / self._unit[:, None]
        bounds = [(float(low), float(high)) for low, high in box] * len(points)
        if not uniform:
            start.append(ball.shares(weights))
            bounds += [(0.0, math.inf)] * ball.size

        def objective(variables: Vector) -> tuple[float, Vector]:
            current = weights if uniform else ball.weights(variables[cut:])
            value, by_place, by_weight = self._gradient(
                variables[:cut].reshape(points.shape), current, mapped
            )
            by_variable = [by_place.ravel()]
            if not uniform:
                by_variable.append(ball.pull_back(variables[cut:], by_weight))
            return value, np.concatenate(by_variable)

        with threads() as mapped:
            found = minimize(
                objective,
                np.concatenate(start),
                jac=True,
                method="L-BFGS-B",
                bounds=bounds,
                options={
                    "maxiter": FIRST_ITERATIONS if len(points) <= FIRST_STAGE else ITERATIONS,
                    "maxcor": MEMORY,
                    "ftol": self._gain,
                    "gtol": 0.0,
                },
            ).x
        places = self._centre + self._unit * found[:cut].reshape(points.shape)
        return np.clip(places, self._low, self._high), weights if uniform else ball.weights(found[cut:])

    def split(
        self, points: Vector, weights: Vector, count: int, generator: np.random.Generator
    ) -> tuple[Vector, Vector]:
        """`count` points from fewer, resampled systematically: ⌊q·count⌋ or one more for q of ‖w‖₁."""
        sizes = np.abs(weights)
        edges = np.cumsum(sizes)
        picks = np.searchsorted(edges, (np.arange(count) + generator.random()) * (edges[-1] / count))
        parents = np.minimum(picks, len(points) - 1)
        parts = np.bincount(parents, minlength=len(points))
        thrown = points[parents] + JITTER * self._width * generator.standard_normal((count, points.shape[1]))
        return np.clip(thrown, self._low, self._high), weights[parents] / parts[parents]

    def _gradient(self, places: Vector, weights: Vector, mapped: Mapped) -> tuple[float, Vector, Vector]:
        """The objective, its gradient by places y, shape (n, columns), and by weights, shape (n,)."""
        y, w = places.astype(np.float32), weights.astype(np.float32)

        def embed(start: int) -> tuple[_Floats, _Floats]:
            angles = y[start : start + CHUNK] @ self._frequencies
            angles += self._phases
            return np.cos(angles), np.sin(angles, out=angles)

        starts = range(0, len(y), CHUNK)
        waves = mapped(embed, starts)
        mean = np.zeros((2, self._frequencies.shape[1]))
        for start, (cosines, sines) in zip(starts, waves, strict=True):
            mean[0] += w[start : start + CHUNK] @ cosines
            mean[1] += w[start : start + CHUNK] @ sines
        rest = self._scale * mean - self._target.reshape(2, -1)
        # Both gradients are linear in cosines and sines: by the weight, rᵀφ(z), and by the place,
        # w·Σ_f (-r_cos·sin + r_sin·cos)·W_f.
        cosine, sine = rest.astype(np.float32)
        by_cosine = np.vstack([cosine, sine * self._frequencies]).T
        by_sine = np.vstack([sine, -cosine * self._frequencies]).T

        def project(wave: tuple[_Floats, _Floats]) -> Vector:
            return np.asarray(wave[0] @ by_cosine + wave[1] @ by_sine, dtype=np.float64)

        gradient = (2.0 * self._scale) * np.concatenate(mapped(project, waves))
        return float(np.vdot(rest, rest)), weights[:, None] * gradient[:, 1:], gradient[:, 0]


def _check(target: Vector, space_map: FeatureMap, count: int, norm: float, seed: int) -> FourierMap:
    if not (
        isinstance(space_map, FourierMap)
        and isinstance(space_map.space, PairedSpace)
        and target.shape == (space_map.space.dimension,)
    ):
        raise ConfigError(
            f"A target of shape {target.shape} is no mean of the features of this map.",
            advice="Use a `paired` map, and the release that was made with it.",
        )
    for holds, what in (
        (count >= 1, f"{count} points"),
        (math.isfinite(norm) and norm > 0.0, f"a norm of {norm}"),
        (seed >= 0, f"the seed {seed}"),
    ):
        if not holds:
            raise ConfigError(
                f"A reduced set with {what} was asked for.", advice="Give a positive number of each."
            )
    return space_map
