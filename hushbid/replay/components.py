"""Points of feature space on two axes: the principal components that they differ most along."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh

from hushbid.protocol.space.mmd import Vector

__all__ = ["Components", "components_of"]

Floats = npt.NDArray[np.float64]

_NO_SPREAD: Final = 1e-12
"""Variance of points, relative to their mean square, below which all are one."""
_DIGITS: Final = 4
"""Significant digits of the largest coordinate: a picture has some hundred pixels."""


@dataclass(frozen=True, eq=False)
class Components:
    """Two axes of feature space.

    Attributes:
        explained: Each one's part of the variance of the points that they were found by.
    """

    middle: Vector
    axes: Floats
    explained: tuple[float, float]
    decimals: int

    def places(self, points: Floats) -> Floats:
        """Where points of shape (n, d) are: shape (n, 2), rounded."""
        return np.round((points - self.middle) @ self.axes.T, self.decimals) + 0.0  # no -0.0


def components_of(points: Floats) -> Components | None:
    """The first two principal components of points, which are those of their linear kernel.

    φ is an explicit map whose inner products are close to the session's kernel (Rahimi and Recht 2008), so
    that these are close to the first two kernel principal components (Schölkopf, Smola and Müller 1998).

    Args:
        points: φ, shape (n, d), n at least 1.

    Returns:
        None if all points are one. An axis' sign is such that the point farthest along it is on its positive
        side.
    """
    middle = points.mean(axis=0)
    apart = points - middle
    spread = float((apart**2).sum())
    if spread <= _NO_SPREAD * float((points**2).sum()):
        return None
    count, width = points.shape
    wide = width > count
    square = apart @ apart.T if wide else apart.T @ apart
    most = len(square)
    values, vectors = eigh(square, subset_by_index=(max(0, most - 2), most - 1))
    values, vectors = values[::-1].clip(0.0), vectors[:, ::-1].T
    axes = np.zeros((2, width))
    for place, (value, vector) in enumerate(zip(values, vectors, strict=True)):
        if value > _NO_SPREAD * spread:
            axis = vector @ apart / math.sqrt(value) if wide else vector
            along = apart @ axis
            axes[place] = axis * np.sign(along[np.abs(along).argmax()])
    first, second = (*(value / spread for value in values.tolist()), 0.0)[:2]
    largest = float(np.abs(apart @ axes.T).max())
    return Components(middle, axes, (first, second), _DIGITS - 1 - math.floor(math.log10(largest)))
