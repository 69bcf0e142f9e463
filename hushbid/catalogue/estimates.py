"""MMD² between noisy means: unbiased estimates, their standard errors, and best mixtures.

A release has noise with a known law. So its mean contribution to a squared distance is known and subtracted.
If noise exceeds the distance, the difference may be negative, and is reported so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize, nnls

from hushbid.protocol.errors import HushbidError

__all__ = ["MmdEstimate", "NoisyMean", "best_mixture", "mmd2", "point_weights"]

Vector = npt.NDArray[np.float64]

DEVIATIONS: Final = 8.0
"""Number of standard deviations that Laplace noise exceeds once in 80,000 draws."""


@dataclass(frozen=True, eq=False)
class NoisyMean:
    """A dataset's mean embedding as estimated from a release.

    Attributes:
        mean: float64 of shape (d,), in units of φ, with independent noise on its coordinates.
        variance: Variance of the noise on a coordinate; 0 without noise.
        fourth: Fourth cumulant of that noise: 0 for Gaussian noise.
        size: Number of points in the dataset, as stated by the release.
        size_variance: Variance of the relative error of `size`, which scales all of `mean` together; 0 if the
            number is exact.
    """

    mean: Vector
    variance: float
    fourth: float
    size: float
    size_variance: float

    @property
    def square(self) -> float:
        """‖mean‖² without the contribution of the noise on coordinates."""
        return float(self.mean @ self.mean) - len(self.mean) * self.variance

    def largest_square(self, norm_bound: float) -> float:
        """A bound that `square` rarely exceeds (once in thousands) for points whose φ is at most this long.

        It allows `DEVIATIONS` standard deviations for the size, whose error scales the whole mean, and for
        the noise on coordinates (`mmd2`).
        """
        longest = norm_bound * (1.0 + DEVIATIONS * math.sqrt(self.size_variance))
        width = len(self.mean)
        spread = 4.0 * self.variance * longest**2 + 2.0 * width * self.variance**2 + width * self.fourth
        return longest**2 + DEVIATIONS * math.sqrt(spread)


@dataclass(frozen=True)
class MmdEstimate:
    """MMD², and the standard deviation caused by its noise.

    Attributes:
        value: Unbiased, up to the second order of a noisy size; negative where noise hides the distance.
        standard_error: Standard error of the value over the noise of all releases in it. It does not account
            for datasets being samples.
    """

    value: float
    standard_error: float


def mmd2(target: NoisyMean, parts: Sequence[NoisyMean], weights: Sequence[float] | Vector) -> MmdEstimate:
    """MMD² between the target and a mixture, by the kernel of the features.

    With D = g̃ - Σ w_k μ_k and noise e of covariance C on it, E‖D + e‖² = ‖D‖² + tr C and, for Gaussian
    noise, Var‖D + e‖² = 4·DᵀCD + 2·tr C². Coordinates have τ² = σ_g² + Σ w_k²σ_k² each; a noisy size N̂_k, of
    relative variance r_k², adds w_k²·r_k²·μ_k μ_kᵀ; a fourth cumulant κ adds d·κ to the variance.
    """
    share = np.asarray(weights, dtype=np.float64)
    difference = target.mean - sum(
        (w * part.mean for w, part in zip(share, parts, strict=True)), 0.0 * target.mean
    )
    width = len(difference)
    variance = target.variance + math.fsum(w**2 * part.variance for w, part in zip(share, parts, strict=True))
    fourth = target.fourth + math.fsum(w**4 * part.fourth for w, part in zip(share, parts, strict=True))
    sizes = math.fsum(
        w**2 * part.size_variance * max(part.square, 0.0) for w, part in zip(share, parts, strict=True)
    )
    value = float(difference @ difference) - width * variance - sizes
    along = math.fsum(
        w**2 * part.size_variance * float(part.mean @ difference) ** 2
        for w, part in zip(share, parts, strict=True)
    )
    spread = 4.0 * (variance * max(value, 0.0) + along) + 2.0 * width * variance**2 + width * fourth
    return MmdEstimate(value, math.sqrt(spread))


def best_mixture(target: NoisyMean, parts: Sequence[NoisyMean]) -> Vector:
    """The weights, nonnegative with sum 1, of the mixture estimated to be nearest to the target.

    A quadratic programme in the debiased inner products; noise can leave their matrix with negative
    eigenvalues, which are set to 0.

    Returns:
        float64, one for each part.

    Raises:
        HushbidError: The programme was not solved.
    """
    if len(parts) == 1:
        return np.ones(1)
    means = np.stack([part.mean for part in parts])
    noise = [len(part.mean) * part.variance + part.size_variance * max(part.square, 0.0) for part in parts]
    values, vectors = np.linalg.eigh(means @ means.T - np.diag(noise))
    products = (vectors * np.maximum(values, 0.0)) @ vectors.T
    wanted = means @ target.mean
    return _on_simplex(products, wanted)


def point_weights(target: NoisyMean, features: npt.NDArray[np.float64]) -> Vector:
    """The weights, nonnegative with sum 1, of points whose mean embedding is nearest to the target.

    Kernel mean matching (Huang, Smola, Gretton, Borgwardt, Schölkopf 2007) with synthetic points instead of
    samples: divided by an owner's own weights they are a density ratio. They also fit noise, so they are
    summed over each owner before anybody sees them.

    Args:
        target: g̃, of width d.
        features: φ of each point, shape (n, d).

    Returns:
        float64 of shape (n,).
    """
    # A heavy last row keeps the sum at 1; the remaining difference is divided out.
    heavy = 1e3 * max(1.0, float(np.linalg.norm(target.mean)))
    rows = np.vstack([features.T, np.full(len(features), heavy)])
    weights, _ = nnls(rows, np.append(target.mean, heavy))
    return np.asarray(weights / weights.sum(), dtype=np.float64)


def _on_simplex(products: npt.NDArray[np.float64], wanted: Vector) -> Vector:
    """The w ≥ 0 with sum 1 that minimises wᵀGw - 2bᵀw."""
    count = len(wanted)
    scale = max(float(np.abs(products).max()), float(np.abs(wanted).max()), 1e-300)
    found = minimize(
        lambda w: (w @ products @ w - 2.0 * wanted @ w) / scale,
        np.full(count, 1.0 / count),
        jac=lambda w: 2.0 * (products @ w - wanted) / scale,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * count,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1.0, "jac": np.ones_like},
        options={"ftol": 1e-12, "maxiter": 1000},
    )
    if not found.success:
        raise HushbidError(f"The best mixture was not found: {found.message}.", advice="Screen fewer owners.")
    weights = np.maximum(found.x, 0.0)
    weights[weights < 1e-9] = 0.0
    return np.asarray(weights / weights.sum(), dtype=np.float64)
