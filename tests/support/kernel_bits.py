"""Digests of kernel values. Without pytest, as another process that has another numpy computes them too."""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from hushbid.kme.kernels import kernel

__all__ = ["GAMMA", "bits", "library_bits", "points"]

GAMMA = 3.7


def points(count: int, columns: int, seed: int = 0) -> npt.NDArray[np.float64]:
    return np.random.default_rng(seed).uniform(size=(count, columns))


def bits() -> str:
    """SHA-256 of many kernel values."""
    values = [kernel(points(700, c, 1), points(40, c, 2), g) for c in (1, 2, 5) for g in (0.1, GAMMA, 60.0)]
    return hashlib.sha256(np.array(values).astype("<f8").tobytes()).hexdigest()


def library_bits() -> str:
    """SHA-256 of many values of `np.exp`."""
    return hashlib.sha256(np.exp(-np.random.default_rng(0).uniform(size=20_000)).tobytes()).hexdigest()
