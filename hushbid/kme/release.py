"""A release and its uses: means, distances, tests, samples, models (KME §3.3)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh
from scipy.special import ndtri

from hushbid.kme.kernels import kernel, kernel_means, squared_norm
from hushbid.kme.privacy import KmeCalibration
from hushbid.kme.shrinkage import Risk, ball_weights
from hushbid.kme.subspace import RESIDUAL, span
from hushbid.protocol.errors import ConfigError, DataError

__all__ = ["Estimate", "Release", "TwoSampleTest"]

Points: TypeAlias = npt.NDArray[np.float64]
Vector: TypeAlias = npt.NDArray[np.float64]
Function: TypeAlias = Callable[[Points], npt.ArrayLike]
Model = TypeVar("Model", bound=Any)

MAX_ANCHORS: Final = 1000
"""Points at which a function is interpolated, for its norm."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimated mean over the private records, with its stated error (`Release.mean`)."""

    value: float
    error: float


@dataclass(frozen=True, slots=True)
class TwoSampleTest:
    """Whether data come from the distribution that the private records come from.

    Attributes:
        mmd: Distance between the release and the data.
        threshold: A distance that `mmd` exceeds with probability at most `level` if both distributions are
            equal.
        level: The largest probability of a false rejection.
    """

    mmd: float
    threshold: float
    level: float

    @property
    def rejected(self) -> bool:
        """Whether the test says that the distributions differ."""
        return self.mmd > self.threshold


@dataclass(frozen=True, eq=False)
class Release:
    """Weighted points that represent a dataset; everything in it may be published.

    The kernel is exp(-γ‖x - y‖²) on columns scaled to [0, 1] by the public bounds.

    Attributes:
        points: float64 of shape (M, columns), unscaled like the data; float32 if requested.
        weights: float64 of shape (M,).
        gamma: γ.
        lower, upper: Public bounds, shape (columns,).
        method: ``subspace`` or ``features``: Algorithm 1 or 2.
        norm: C; `math.fsum` of the weights' magnitudes is at most that.
        size: The number of records: exact if it is public, else an estimate.
        privacy: The guarantee, the datasets that it compares, and its cost.
        source: Name of the source of noise.
        protects: Whether that source keeps the guarantee.
        risk: Estimate of the squared RKHS distance between the release and the records' embedding, from the
            release itself. For Algorithm 1 it is the distance within the span of the public points, and its
            `beside` says how far records are from the span. For Algorithm 2 it is the distance of random
            features' embeddings.
    """

    points: npt.NDArray[np.floating[Any]]
    weights: Vector
    gamma: float
    lower: Vector
    upper: Vector
    method: str
    norm: float
    size: float
    privacy: KmeCalibration
    source: str
    protects: bool
    risk: Risk

    def distance(self, confidence: float = 0.95) -> float:
        """A bound on the distance of the release to the records' embedding μ, with that confidence.

        For Algorithm 2 it is `span_distance`. For Algorithm 1 that is the distance to Pμ, the projection of μ
        on the span of the public points, and μ - Pμ is orthogonal to it. μ - Pμ is the mean of the records'
        k(x, ·) - Pk(x, ·), so that it is no longer than the mean of their lengths, which is released with
        noise (`Risk.beside`). Each of the two bounds fails with half of 1 - `confidence`; together they fail
        at most as often as that says.

        Records that are all near to the span thus have a bound that is nearly `span_distance`. It is at most

            √(1 - ‖Pμ‖²),

        up to `span_distance`, as k(x, x) = 1 and ‖μ‖ is 1 at most; ‖Pμ‖ is at least the release's own length
        less that distance.

        Raises:
            ConfigError: A confidence that is not between 0 and 1.
        """
        _check_level(1.0 - confidence)
        beside = self.risk.beside
        if beside is None:
            return self.span_distance(confidence)
        each = 0.5 * (1.0 + confidence)
        within = self.span_distance(each)
        # The release's points are in the span, up to the residual below which none is added to the basis.
        residual = math.sqrt(RESIDUAL) * math.fsum(np.abs(self.weights))
        length = math.sqrt(max(0.0, self._squared_norm - residual**2))
        seen = max(0.0, length - within)
        most = math.sqrt(max(0.0, 1.0 - seen**2))
        measured = max(0.0, beside.mean + self._quantile(each) * beside.deviation)
        return math.hypot(within, min(most, measured)) + residual

    def _quantile(self, confidence: float) -> float:
        """The quantile of the noise on a coordinate, in standard deviations."""
        normal = float(ndtri(confidence))
        if self.privacy.draw.distribution != "discrete-laplace":
            return normal
        # P(noise > t) = ½·exp(-t/scale), and the standard deviation is √2·scale.
        return max(normal, -math.log(2.0 * (1.0 - confidence)) / math.sqrt(2.0))

    def span_distance(self, confidence: float = 0.95) -> float:
        """A bound on the distance that `risk` estimates, with a confidence in (0, 1), else a ConfigError.

        For Algorithm 1 it is the distance to the projection of the records' embedding on the span of the
        public points (`distance`); for Algorithm 2 to the records' embedding, both by random features. Where
        the fit follows few features more closely than these do the kernel, as with little noise, the exact
        kernel's distance can be several times as large (docs/kme.md).
        """
        _check_level(1.0 - confidence)
        return self.risk.distance(float(ndtri(confidence)))

    def scale(self, points: npt.ArrayLike) -> Points:
        """Points scaled for the kernel, shape (n, columns).

        Raises:
            DataError: Another number of columns, no points, or values that are not finite.
        """
        raw = np.asarray(points, dtype=np.float64)
        if raw.ndim != 2 or raw.shape[1] != len(self.lower) or not len(raw) or not np.isfinite(raw).all():
            raise DataError(
                f"Points of shape {raw.shape} do not fit a release of {len(self.lower)} columns.",
                advice="Give at least one row of the same columns, all finite.",
            )
        return np.asarray((raw - self.lower) / (self.upper - self.lower))

    def mean(self, function: Function, *, confidence: float = 0.95) -> Estimate:
        """E f over the private records: Σ w_m f(z_m), for any f, with its stated error (KME eq. 4).

        Let f = g + h with g a kernel expansion on the release's points. The error for g is at most
        ‖g‖·distance within g's span, which is below ‖g‖·`span_distance(confidence)` with that confidence. For
        h it is at most Σ|w_m h(z_m)| + E|h|. The first is known. The second, over the records, is estimated
        by the leave-one-out residuals of g at the release's points. The stated error is the least sum of the
        three over many ridge penalties. It is no proved bound, but was found to hold in at least 95 of 100
        cases with a `confidence` of 0.95 (`tests/unit/hushbid/kme/test_kme_release.py`). It concerns the
        records, not the distribution that they were drawn from.

        Args:
            function: f of raw points, shape (n, columns), to shape (n,).
            confidence: Confidence of the distance.

        Raises:
            DataError: f is not finite or of another shape.
        """
        places = np.asarray(self.points, dtype=np.float64)
        values = np.asarray(function(places), dtype=np.float64)
        if values.shape != self.weights.shape or not np.isfinite(values).all():
            raise DataError(
                "A function did not give a finite number for each point of the release.",
                advice="Let it take points of shape (n, columns) and return n numbers.",
            )
        value = float(self.weights @ values)
        scaled = self.scale(places)
        anchors = np.argsort(-np.abs(self.weights), kind="stable")[:MAX_ANCHORS]
        spectrum, vectors = eigh(kernel(scaled[anchors], scaled[anchors], self.gamma))
        spectrum = np.maximum(spectrum, 0.0)
        along = vectors.T @ values[anchors]
        across = kernel(scaled, scaled[anchors], self.gamma) @ vectors
        reach, sizes = self.span_distance(confidence), np.abs(self.weights)
        shares = sizes / max(float(sizes.sum()), np.finfo(np.float64).tiny)
        errors = [float((sizes + shares) @ np.abs(values))]  # g = 0
        for penalty in np.geomspace(1e-9, 1e3, 49):
            expansion = along / (spectrum + penalty)
            length = math.sqrt(float(spectrum @ expansion**2))
            rest = np.abs(values - across @ expansion)
            unseen = rest.copy()
            # Kernel ridge regression's leave-one-out residual: the residual over 1 - S_ii.
            unseen[anchors] /= np.square(vectors) @ (penalty / (spectrum + penalty))
            errors.append(length * reach + float(sizes @ rest) + float(shares @ unseen))
        return Estimate(value, min(errors))

    def mmd(self, other: Release | npt.ArrayLike) -> float:
        """Distance to another release, or to the empirical embedding of data (KME §3.3).

        Raises:
            ConfigError: A release with another kernel.
            DataError: Points that do not fit.
        """
        mine = self.scale(self.points)
        if isinstance(other, Release):
            if (self.gamma, *self.lower, *self.upper) != (other.gamma, *other.lower, *other.upper):
                raise ConfigError(
                    "Two releases with different kernels were to be compared.",
                    advice="Compare releases of the same gamma and the same public bounds.",
                )
            theirs = self.scale(other.points)
            cross = float(self.weights @ kernel_means(mine, theirs, self.gamma, other.weights))
            within = squared_norm(theirs, self.gamma, other.weights)
        else:
            theirs = self.scale(other)
            cross = float(self.weights @ kernel_means(mine, theirs, self.gamma))
            within = squared_norm(theirs, self.gamma)
        return math.sqrt(max(0.0, math.fsum((self._squared_norm, within, -2.0 * cross))))

    def two_sample_test(self, data: npt.ArrayLike, *, level: float = 0.05) -> TwoSampleTest:
        """Test whether data and the private records are independent samples of one distribution.

        The threshold is a bound, and no asymptotic law: ‖μ̂ - μ‖ of n points exceeds (1 + √ln(1/α))/√n with
        probability α at most (McDiarmid's inequality for a kernel in [0, 1], where one point moves μ̂ by √2/n
        at most; Gretton et al. 2012, Theorem 7). Data, records and the release's `span_distance` get a third
        of the level each. For Algorithm 1, whose distance is known within the span of its points alone, the
        comparison is made there.

        Args:
            data: Raw points, shape (n, columns).
            level: Largest probability of a false rejection.

        Raises:
            ConfigError: A level that is not between 0 and 1.
            DataError: Points that do not fit.
        """
        _check_level(level)
        scaled = self.scale(data)
        reach = 1.0 + math.sqrt(math.log(3.0 / level))
        samples = 1.0 / math.sqrt(len(scaled)) + 1.0 / math.sqrt(max(self.size, 1.0))
        threshold = reach * samples + self.span_distance(1.0 - level / 3.0)
        return TwoSampleTest(self._known_mmd(scaled), threshold, level)

    def positive_weights(self) -> Vector:
        """The weights ≥ 0 of sum 1 with the embedding nearest to the release's.

        Dropping negative weights instead would move the embedding by as much as they weigh.
        """
        if not (self.weights < 0.0).any():
            return np.asarray(self.weights / self.weights.sum())
        spanned = span(self.scale(self.points), self.gamma, np.random.default_rng(0))
        coordinates = spanned.coordinates
        start = np.maximum(self.weights, 0.0)
        found = ball_weights(coordinates, self.weights @ coordinates, 1.0, start=start / start.sum())
        return np.asarray(found / found.sum())

    def sample(self, count: int, generator: np.random.Generator) -> npt.NDArray[np.floating[Any]]:
        """Unweighted points, shape (count, columns), in random order.

        Systematic resampling: a point of positive weight q occurs ⌊q·count⌋ times or once more.

        Raises:
            ConfigError: A count below 1.
        """
        if count < 1:
            raise ConfigError(f"A sample of {count} points was asked for.", advice="Ask for at least 1.")
        edges = np.cumsum(self.positive_weights())
        places = (np.arange(count) + generator.random()) * (edges[-1] / count)
        picks = np.minimum(np.searchsorted(edges, places, side="right"), len(edges) - 1)
        return self.points[generator.permutation(picks)]

    def train(self, model: Model, *, target: int, classes: Sequence[float] | None = None) -> Model:
        """Fit a scikit-learn model that takes `sample_weight` to the weighted points, and return it.

        Args:
            model: Not fitted yet.
            target: The column that it predicts from the others.
            classes: Public class labels, to which the target is rounded; None for a regression.
        """
        inputs = np.delete(self.points, target, axis=1)
        values = self.points[:, target]
        if classes is not None:
            known = np.asarray(classes)
            values = known[np.argmin(np.abs(values[:, None] - known), axis=1)]
        model.fit(inputs, values, sample_weight=self.positive_weights())
        return model

    def _known_mmd(self, scaled: Points) -> float:
        """Distance to data, within the span of the points for Algorithm 1."""
        if self.method == "features":
            return self.mmd(scaled * (self.upper - self.lower) + self.lower)
        spanned = span(self.scale(self.points), self.gamma, np.random.default_rng(0))
        pivots = spanned.points[spanned.pivots]
        theirs = spanned.basis @ kernel_means(pivots, scaled, self.gamma)
        return float(np.linalg.norm(self.weights @ spanned.coordinates - theirs))

    @cached_property
    def _squared_norm(self) -> float:
        return squared_norm(self.scale(self.points), self.gamma, self.weights)


def _check_level(level: float) -> None:
    if not 0.0 < level < 1.0:
        raise ConfigError(f"A level of {level} was given.", advice="Give one between 0 and 1.")
