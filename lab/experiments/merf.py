"""DP-MERF: synthetic points fitted to one noisy mean embedding (Harder, Adamczewski and Park 2021).

This is an independent implementation on NumPy. For each class it releases the sum of φ over its records and
their number. A record belongs to one class and ‖φ‖ = 1, so adding or removing a record changes the whole
release by √(1 + s²), where s is the unit of counts: one Gaussian mechanism releases everything (their §4).
Instead of a generator network, gradient steps move the synthetic points themselves, from a uniform draw
within the public bounds. That is post-processing.
"""

from __future__ import annotations

import math
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from hushbid.protocol.privacy.accounting.gaussian import gaussian_mu
from hushbid.protocol.space.mmd import Points

__all__ = ["COUNT_UNIT", "fitted_points", "merf", "noisy_sums"]

COUNT_UNIT: Final = 0.3
"""s, which trades the precision of counts against that of sums."""
WAVES: Final = 200
"""Number of random frequencies; φ has twice as many coordinates."""
_STEPS: Final = 200
_RATE: Final = 0.03
_MEMORY: Final = (0.9, 0.999)
"""Decay rates of Adam (Kingma and Ba 2015)."""

Vector: TypeAlias = npt.NDArray[np.float64]


def merf(
    points: Points,
    labels: npt.NDArray[Any],
    classes: npt.NDArray[Any],
    *,
    gamma: float,
    count: int,
    epsilon: float,
    delta: float,
    generator: np.random.Generator,
) -> tuple[Points, npt.NDArray[Any]]:
    """Make synthetic points with labels, (ε, δ)-private when one record is added or removed.

    Args:
        points: Scaled to [0, 1], shape (n, columns).
        labels: Shape (n,), all of them in `classes`.
        classes: All possible labels; they are public.
        gamma: γ of the kernel exp(-γ‖x - x'‖²).
        count: Number of synthetic points, divided among classes by their released sizes.
        generator: Draws frequencies, starts and the noise, which is simulated.

    Returns:
        Points within [0, 1], shape (count, columns), and their labels.
    """
    waves = generator.normal(scale=math.sqrt(2.0 * gamma), size=(points.shape[1], WAVES))
    sums, sizes = noisy_sums(points, labels, classes, waves, epsilon, delta, generator)
    exact = sizes * (count / sizes.sum())
    shares = np.floor(exact).astype(int)
    shares[np.argsort(shares - exact, kind="stable")[: count - shares.sum()]] += 1
    made = [
        fitted_points(total / size, waves, int(share), generator)
        for total, size, share in zip(sums, sizes, shares, strict=True)
    ]
    return np.concatenate(made), np.repeat(classes, shares)


def noisy_sums(
    points: Points,
    labels: npt.NDArray[Any],
    classes: npt.NDArray[Any],
    waves: Points,
    epsilon: float,
    delta: float,
    generator: np.random.Generator,
) -> tuple[Points, Vector]:
    """Each class's sum of φ, shape (classes, 2·waves), and its size, at least 1: the one release.

    Arguments are those of `merf`, and frequencies of shape (columns, waves).
    """
    features = _features(points, waves)
    sums = np.stack([features[labels == each].sum(axis=0) for each in classes])
    sizes = np.array([float(np.count_nonzero(labels == each)) for each in classes])
    sigma = math.sqrt(1.0 + COUNT_UNIT**2) / gaussian_mu(epsilon, delta)
    sums = sums + generator.normal(scale=sigma, size=sums.shape)
    sizes = sizes + generator.normal(scale=sigma, size=sizes.shape) / COUNT_UNIT
    return sums, np.maximum(sizes, 1.0)


def fitted_points(target: Vector, waves: Points, count: int, generator: np.random.Generator) -> Points:
    """Points within [0, 1] whose mean of φ is close to a target, shape (count, columns).

    The target has shape (2·waves,), the frequencies (columns, waves); `count` may be 0.
    """
    made = generator.random((count, len(waves)))
    if not count:
        return made
    first, second = np.zeros_like(made), np.zeros_like(made)
    scale = 1.0 / math.sqrt(waves.shape[1])
    for step in range(1, _STEPS + 1):
        phases = made @ waves
        cosines, sines = np.cos(phases), np.sin(phases)
        off = scale * np.concatenate([cosines.mean(axis=0), sines.mean(axis=0)]) - target
        left, right = np.split(off, 2)
        # The gradient of ‖off‖² times the number of points, so that the rate does not depend on it.
        slope = 2.0 * scale * ((cosines * right - sines * left) @ waves.T)
        first = _MEMORY[0] * first + (1.0 - _MEMORY[0]) * slope
        second = _MEMORY[1] * second + (1.0 - _MEMORY[1]) * slope**2
        ahead = first / (1.0 - _MEMORY[0] ** step)
        spread = np.sqrt(second / (1.0 - _MEMORY[1] ** step))
        made = np.clip(made - _RATE * ahead / (spread + 1e-9), 0.0, 1.0)
    return made


def _features(points: Points, waves: Points) -> Points:
    """φ: cosines and sines, ‖φ‖ = 1."""
    phases = points @ waves
    return np.concatenate([np.cos(phases), np.sin(phases)], axis=1) / math.sqrt(waves.shape[1])
