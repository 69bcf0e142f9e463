"""A reference for regression sketches: public points whose law is fitted to the released counts.

It costs no privacy. A sketch's hyperplanes are public, and so are the shares of known points in its cells:
rows only have to estimate how the data's shares differ from these.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import hadamard
from scipy.optimize import least_squares
from scipy.special import ndtr
from scipy.stats import norm, qmc

from hushbid.protocol.space.lsh import AsymmetricFamily, Points, squared_lengths
from hushbid.race.marginals import Marginals

__all__ = ["Reference", "fit_reference", "in_ball", "parameter_count"]

POINTS: Final = 2**13
"""Reference points: their shares have an error well below the noise of counts."""

_CELLS: Final = 4  # the signs of two projections
_CONTRASTS: Final = hadamard(_CELLS)[1:] / 2.0
"""Orthonormal, and orthogonal to the known sum of a row's cells: shape (3, 4)."""
_BLOCK_VALUES: Final = 2**24
"""Cell indicators held at a time."""
_LEAST_ERROR: Final = 0.01
"""Prior standard deviation of parameters that marginals without noise give exactly, up to rounding."""
_PRIOR_NOISE: Final = 0.7
"""Standard deviation of the target given the features, in its own: features explain half of its variance."""


def parameter_count(features: int) -> int:
    """Parameters of a reference: correlations, a scale, a shift and a slope of each feature, and 2 more."""
    return features * (features - 1) // 2 + 3 * features + 2


def in_ball(points: Points) -> Points:
    """Points of the unit ball; outer ones are moved to its surface, towards the middle."""
    lengths = np.sqrt(squared_lengths(points))[:, None]
    # A length rounded down would leave a coordinate just above 1.
    return np.asarray(np.clip(points / np.maximum(lengths, 1.0), -1.0, 1.0))


@dataclass(frozen=True, eq=False)
class Reference:
    """Points that stand in for the data.

    Attributes:
        points: Features and target, each less its marginal mean and in its marginal standard deviations:
            float64 of shape (POINTS, features + 1).
        slope: Slope of the target on the features, in these units: shape (features,).
        shares: Share of the points in each cell of each row: shape (rows, 4).
    """

    points: Points
    slope: npt.NDArray[np.float64]
    shares: npt.NDArray[np.float64]


class _Parameters(NamedTuple):
    """Parts of a parameter vector; scales are logarithms."""

    triangle: npt.NDArray[np.float64]
    """The copula's triangle below its diagonal, row by row."""
    scales: npt.NDArray[np.float64]
    shifts: npt.NDArray[np.float64]
    slope: npt.NDArray[np.float64]
    target: npt.NDArray[np.float64]
    """Intercept and log noise."""


class _Model:
    """Features of a Gaussian copula with given marginals, and a target linear in them, with Gaussian noise.

    Feature j is F_j⁻¹(Φ(e^scale_j·(L·u)_j + shift_j)) for normal u and the Cholesky factor L of a correlation
    matrix. Scales and shifts correct what noise did to the marginals. The points' u are the same whatever the
    parameters; a share of points has the derivative E[indicator·score], with the score of their density.

    Args:
        marginals: Of features and target.
        family: The hash functions.
        scale: Factor of the points before they are hashed.
    """

    def __init__(self, marginals: Marginals, family: AsymmetricFamily, scale: float) -> None:
        self.marginals, self.family, self.scale = marginals, family, scale
        features = self.features = len(marginals.means) - 1
        uniform = qmc.Sobol(features + 1, rng=np.random.default_rng(0)).random(POINTS // 2)
        half = norm.ppf(np.clip(uniform, 1.0 / POINTS**2, 1.0 - 1.0 / POINTS**2))
        self.normal = np.vstack([half, -half])
        self.below = np.tril_indices(features, -1)
        sizes = [len(self.below[0]), features, features, features, 2]
        self.ends = np.cumsum(sizes)[:-1]
        start, prior = np.zeros(sum(sizes)), np.ones(sum(sizes))
        start[-1] = math.log(_PRIOR_NOISE)
        parts = self.split(prior)
        parts.scales[:] = np.clip(marginals.deviation_errors[:-1], _LEAST_ERROR, 1.0)
        parts.shifts[:] = np.clip(marginals.mean_errors[:-1], _LEAST_ERROR, 1.0)
        parts.target[0] = np.clip(marginals.mean_errors[-1], _LEAST_ERROR, 1.0)
        self.start, self.prior = start, prior
        self._hashed: dict[bytes, tuple[Points, npt.NDArray[np.int32]]] = {}

    def split(self, parameters: npt.NDArray[np.float64]) -> _Parameters:
        return _Parameters(*np.split(parameters, self.ends))

    def triangle(
        self, parameters: npt.NDArray[np.float64]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """L, and the length that each of its rows had before it was made 1."""
        factor = np.eye(self.features)
        factor[self.below] = self.split(parameters).triangle
        lengths = np.linalg.norm(factor, axis=1, keepdims=True)
        return factor / lengths, lengths

    def points(self, parameters: npt.NDArray[np.float64]) -> Points:
        parts, (factor, _) = self.split(parameters), self.triangle(parameters)
        latent = self.normal[:, :-1] @ factor.T * np.exp(parts.scales) + parts.shifts
        values = self.marginals.quantiles(ndtr(latent))
        features = (values - self.marginals.means[:-1]) / self.marginals.deviations[:-1]
        noise = np.exp(parts.target[1]) * self.normal[:, -1]
        return np.column_stack([features, parts.target[0] + features @ parts.slope + noise])

    def scores(self, parameters: npt.NDArray[np.float64], points: Points) -> npt.NDArray[np.float32]:
        """Derivatives of each point's log density by the parameters, shape (POINTS, parameters)."""
        parts, (factor, lengths) = self.split(parameters), self.triangle(parameters)
        normal, noise = self.normal[:, :-1], self.normal[:, -1:]
        inverse = np.linalg.inv(factor)
        pulled = normal @ inverse
        # By L, entry by entry; then along each row (its scale), and across it (its rotation).
        entries = pulled[:, :, None] * normal[:, None, :] - inverse.T
        along = np.einsum("nij,ij->ni", entries, factor)
        across = (entries - along[:, :, None] * factor) / lengths
        deviation = np.exp(parts.target[1])
        return np.hstack(
            [
                across[:, self.below[0], self.below[1]],
                along,
                pulled / np.exp(parts.scales),
                points[:, :-1] * noise / deviation,
                noise / deviation,
                noise**2 - 1.0,
            ]
        ).astype(np.float32)

    def hashed(self, parameters: npt.NDArray[np.float64]) -> tuple[Points, npt.NDArray[np.int32]]:
        """Points and their cells; the last ones are kept, for both residuals and derivatives."""
        key = parameters.tobytes()
        if key not in self._hashed:
            self._hashed.clear()
            points = self.points(parameters)
            self._hashed[key] = points, self.family.hash(in_ball(points * self.scale))
        return self._hashed[key]

    def shares(self, cells: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
        """Share of the points in each cell of each row, shape (rows, 4)."""
        return np.stack([(cells == cell).mean(axis=0) for cell in range(_CELLS)], axis=1)

    def share_derivatives(self, parameters: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Derivative of `shares` by the parameters, shape (rows, 4, parameters)."""
        points, cells = self.hashed(parameters)
        scores = self.scores(parameters, points)
        block = max(1, _BLOCK_VALUES // (_CELLS * POINTS))
        parts = []
        for first in range(0, cells.shape[1], block):
            rows = cells[:, first : first + block, None] == np.arange(_CELLS)
            indicators = rows.reshape(POINTS, -1).astype(np.float32)
            parts.append((indicators.T @ scores).reshape(-1, _CELLS, scores.shape[1]))
        return np.concatenate(parts).astype(np.float64) / POINTS


def fit_reference(
    marginals: Marginals,
    family: AsymmetricFamily,
    shares: npt.NDArray[np.float64],
    *,
    scale: float,
    deviation: float,
) -> Reference:
    """Fit a reference to the shares of a sketch's cells, by least squares and a public prior.

    The prior is normal: correlations and slopes (of standardised columns) around 0 with a standard deviation
    of 1, corrections of marginals around 0 with the standard error of these. With little evidence, the target
    is its mean.

    Args:
        marginals: Of features and target.
        family: Hash functions of the sketch.
        shares: The sketch's share of each cell of each row, shape (rows, 4).
        scale: Factor of the standardised columns before they were hashed.
        deviation: Standard deviation of a contrast of a row's cells, by noise and by the data's sampling.
    """
    model = _Model(marginals, family, scale)
    found = shares @ _CONTRASTS.T

    def residuals(parameters: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        _, cells = model.hashed(parameters)
        misfit = (model.shares(cells) @ _CONTRASTS.T - found) / deviation
        return np.concatenate([misfit.ravel(), (parameters - model.start) / model.prior])

    def derivatives(parameters: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        by_cells = np.einsum("kc,rcp->rkp", _CONTRASTS, model.share_derivatives(parameters)) / deviation
        return np.vstack([by_cells.reshape(-1, len(parameters)), np.diag(1.0 / model.prior)])

    # Shares are step functions, whose steps matter below 1e-4.
    fit = least_squares(
        residuals, model.start, jac=derivatives, x_scale="jac", ftol=1e-4, xtol=1e-4, max_nfev=30
    )
    points, cells = model.hashed(fit.x)
    return Reference(points=points, slope=model.split(fit.x).slope, shares=model.shares(cells))
