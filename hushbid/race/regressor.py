"""Linear regression from a private sketch: it estimates the loss, which is minimised (RACE §4)."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from hushbid.estimators import PrivateEstimator
from hushbid.race.marginals import Marginals, measure_marginals
from hushbid.race.reference import fit_reference, in_ball, parameter_count
from hushbid.race.release import CHANGED, Calibration, PoorModelWarning, SketchPrivacy, calibrate
from hushbid.race.sketch import Sketch
from protocol.errors import ConfigError, DataError
from protocol.privacy.noise import NoiseSource
from protocol.privacy.releases import Neighbours
from protocol.space.lsh import AsymmetricFamily, Points

__all__ = [
    "MOST_FEATURES",
    "MOST_ROWS_PER_PARAMETER",
    "POINTS_PER_PARAMETER",
    "ROWS_PER_POINT",
    "RaceRegressor",
    "least_points",
]

MOST_FEATURES: Final = 64
"""Most features of a regression with a reference. With 64 it has 2,210 parameters, and a fit takes minutes
and 2 GB; time grows with the fourth power of their number."""
POINTS_PER_PARAMETER: Final = 30
"""Points at ε = 1 for each parameter of a reference, below which the mean is as good. Of models of 2 to 8
normal features half were worse than the mean at 30, and a sixth at 60 (`add-remove-one`, 30 models each)."""

MOST_ROWS_PER_PARAMETER: Final = 6
"""Most rows of a sketch for each parameter of its reference, without `rows`; the least is one."""
ROWS_PER_POINT: Final = 1.0 / 250.0
"""Rows for each point at ε = 1 between the two. A cell's share of the points then has noise of a standard
deviation of 0.006. The precision of a parameter is as 1/rows, until the rows suffice for the misfit."""

_ALTERNATIVES: Final = (
    "where a δ is acceptable, AdaSSP (Wang 2018) and other noisy sums of squares need far less"
)
_CELLS: Final = 4  # the signs of two projections
_MEAN_UNIT: Final = 2**15
"""The target, with bounds ±1, is rounded to multiples of one over it before it is summed."""
_MEAN_SQUARE: Final = 0.5
"""Mean squared length of the hashed points; longer ones than 1 are moved to the unit ball."""
_LARGEST_SLOPE: Final = 4.0
"""Largest slope of a standardised column on another in the search."""


@dataclass(kw_only=True, eq=False, repr=False)
class RaceRegressor(RegressorMixin, PrivateEstimator):  # type: ignore[misc]
    """A linear model from a private sketch of features and target.

    The data are released twice: a noisy histogram of each column, to standardise columns, and then a sketch
    of the standardised points z by pairs of signed random projections, after the asymmetric transformation
    (`AsymmetricFamily`, p = 2). The rest is post-processing. For a slope θ the query q = (θ, -1) and its
    opposite collide with the data as often as

        f(q) + f(-q) = ½ + 2·mean(arcsin²(t))/π²,  t = q·z/‖q‖,

    so that ‖q‖²·(f(q) + f(-q) - ½)·π²/2 is the mean squared residual apart from the arcsine. It is minimised
    without derivatives (COBYQA).

    R random rows alone estimate f with an error of up to 1/(2√R), far above the signal. But their hyperplanes
    are public. With `assisted`, reference points are fitted to the released counts (`fit_reference`), and
    rows estimate only how the data differ from them:

        f̂(q) = f_ref(q) + c·mean over rows of [released share of h(q) - share of reference points there].

    With c = 1 and points fixed beforehand this is unbiased over hash functions whatever the points are, and
    varies less the better they fit. The points are fitted to the same rows, and c is the share of the rows'
    departures that noise does not explain: a small bias for most of the variance. The bias is least if
    features depend monotonically on each other (a Gaussian copula) and the target linearly on them.

    Pure differential privacy: ε = `epsilon`, δ = 0, of both releases together.

    Args:
        lower, upper, epsilon, neighbours, out_of_bounds, random_state, noise: As `PrivateEstimator`. Features
            to predict for may lie anywhere; the number of points is public under ``substitute-one``.
        target_lower, target_upper: Public bounds of the target.
        marginals_share: Share of ε for the histograms, in (0, 1).
        steps: Bins of a histogram, at least 3. A column should spread over a few of them; more cost
            precision, which matters with few points.
        rows: R; None: `ROWS_PER_POINT` times the released size, between one row and `MOST_ROWS_PER_PARAMETER`
            for each parameter of a reference.
        assisted: Whether a reference is used.
        threads: As `count_cells`.

    Attributes:
        coef_: Slope, float64 of shape (features,), in the target's unit per unit of each feature.
        intercept_: In the target's unit.
        loss_: The least loss found: about the mean squared residual, in the target's unit squared. Noise can
            make it negative.
        trust_: c above, in [0, 1]. Near 1 the reference model does not fit the data; 1 without a reference.
        marginals_, sketch_: The releases; there is no sketch if the model is the target's mean.
        privacy_: The guarantee for both together; None without noise.
        n_clipped_: How many data rows were clipped. It is private.
        n_features_in_: Features.
    """

    target_lower: float
    target_upper: float
    marginals_share: float = 0.2
    steps: int = 33
    rows: int | None = None
    assisted: bool = True
    threads: int | None = None
    coef_: npt.NDArray[np.float64] = field(init=False)
    intercept_: float = field(init=False)
    loss_: float = field(init=False)
    trust_: float = field(init=False)
    marginals_: Marginals = field(init=False)
    sketch_: Sketch = field(init=False)
    privacy_: SketchPrivacy | None = field(init=False)
    n_clipped_: int = field(init=False)

    def fit(self, X: Any, y: Any) -> Self:
        """Release the data, and fit the model to the release.

        If a private number of points is released as less than `least_points`, a `PoorModelWarning` says so,
        and the sketch's share of ε is spent on another model, the target's mean. With `rows` there is always
        a sketch.

        Args:
            X: Shape (n, features), finite, n at least 2.
            y: Shape (n,), finite.

        Raises:
            ConfigError: A parameter out of its range, or more than `MOST_FEATURES` features.
            DataError: Values out of bounds, with `out_of_bounds` "refuse", or fewer points than noise hides.
                Or a public number below `least_points`; nothing is spent then.
            ValueError: From scikit-learn.
        """
        features, target = validate_data(self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
        if self.steps < 3 or (self.rows is not None and self.rows < 1):
            raise ConfigError(
                f"A regression was asked for with {self.steps} steps and {self.rows} rows.",
                advice="Set steps to 3 or more, and rows to None or to 1 or more.",
            )
        self._check_features(features.shape[1])
        lower, upper = self._bounds(features.shape[1])
        middle, half = (lower + upper) / 2.0, (upper - lower) / 2.0
        scaled = self._within((np.column_stack([features, target]) - middle) / half)

        columns = len(middle)
        least = self._least_points(columns - 1)
        if self.neighbours == "substitute-one" and len(features) < least:
            raise DataError(
                f"A regression on {columns - 1} features has {len(features)} points. At epsilon = "
                f"{self.epsilon:g} it says no more than the mean below {least}. Nothing was released.",
                advice=f"Use more points, fewer features or a larger epsilon; {_ALTERNATIVES}. "
                "Set rows to have the sketch nonetheless.",
            )
        source = None if self.epsilon is None else self.noise()
        for_marginals = self._calibration(columns, self.steps * columns, self.marginals_share)
        self.marginals_, spent = measure_marginals(scaled, self.steps, for_marginals, source)
        if self.marginals_.size < least:
            return self._as_mean(scaled[:, -1], least, spent, source)
        family = AsymmetricFamily(
            rows=self.rows or self._rows(columns - 1),
            width=_CELLS,
            lower=np.full(columns, -1.0),
            upper=1.0,
            seed=self._seed(),
            power=2,
        )
        scale = math.sqrt(_MEAN_SQUARE / columns)
        points = in_ball((scaled - self.marginals_.means) / self.marginals_.deviations * scale)
        for_sketch = self._calibration(family.rows, int(family.cells.sum()), 1.0 - self.marginals_share)
        self.sketch_ = Sketch.empty(family, for_sketch, source).add(points, threads=self.threads)
        self.privacy_ = None
        if spent is not None and self.sketch_.privacy is not None:
            self.privacy_ = spent.merged(self.sketch_.privacy, "shared")
        # The data end here.
        slope, means = self._minimise(family, scale)
        deviations = self.marginals_.deviations * half
        self.coef_ = slope * deviations[-1] / deviations[:-1]
        centre = middle + means * half
        self.intercept_ = float(centre[-1] - self.coef_ @ centre[:-1])
        self.loss_ *= float(deviations[-1]) ** 2
        return self

    def _check_features(self, features: int) -> None:
        """Refuse more features than a reference can have, before anything is released."""
        if self.assisted and features > MOST_FEATURES:
            raise ConfigError(
                f"A regression on {features} features was asked for. Its reference would have "
                f"{parameter_count(features)} parameters, the sketch as many rows, and a fit would take far "
                f"more than minutes: {MOST_FEATURES} features are the most. Nothing was released.",
                advice=f"Use fewer features; {_ALTERNATIVES}.",
            )

    def _least_points(self, features: int) -> int:
        """`least_points` of this fit; 0 if it does not apply."""
        if self.epsilon is None or self.rows is not None or not self.assisted:
            return 0
        if self.neighbours not in tuple(Neighbours) or not (
            self.epsilon > 0.0 and 0.0 < self.marginals_share < 1.0
        ):
            return 0  # `_calibration` refuses these
        return least_points(
            features,
            self.epsilon,
            neighbours=Neighbours(self.neighbours),
            marginals_share=self.marginals_share,
        )

    def _as_mean(
        self, target: Points, least: int, spent: SketchPrivacy | None, source: NoiseSource | None
    ) -> Self:
        """Set the model to the target's mean, from a noisy sum of whole numbers and the released size.

        A record changes the sum by `_MEAN_UNIT` at most, or twice that under substitution: as much as that
        many rows (`calibrate`).
        """
        warnings.warn(
            f"A regression has about {self.marginals_.size} points, and says no more than the mean below "
            f"{least}: the model is the target's mean, for which the sketch's share of epsilon is spent.",
            PoorModelWarning,
            stacklevel=3,
        )
        marginals = self.marginals_
        calibration = self._calibration(_MEAN_UNIT, 1, 1.0 - self.marginals_share, sizes=0)
        total = int(np.rint(target * _MEAN_UNIT).astype(np.int64).sum())
        self.privacy_ = None
        if calibration is not None and source is not None and spent is not None:
            total += int(source.draw(calibration.cells)[0])
            self.privacy_ = spent.merged(calibration.privacy(source), "shared")
        if hasattr(self, "sketch_"):
            del self.sketch_
        half = (self.target_upper - self.target_lower) / 2.0
        mean = min(1.0, max(-1.0, total / (_MEAN_UNIT * marginals.size)))
        self.coef_ = np.zeros(len(marginals.means) - 1)
        self.intercept_ = float((self.target_lower + self.target_upper) / 2.0 + mean * half)
        self.loss_ = float(marginals.deviations[-1] * half) ** 2
        self.trust_ = 0.0
        return self

    def __sklearn_tags__(self) -> Any:
        """Tags with a poor score, as a sketch needs many points."""
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags

    def _bounds(self, features: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Bounds of the features and, last, of the target."""
        lower, upper = (
            np.append(np.broadcast_to(np.asarray(bound, dtype=np.float64), features), target)
            for bound, target in ((self.lower, self.target_lower), (self.upper, self.target_upper))
        )
        if not (np.isfinite(lower).all() and np.isfinite(upper).all() and (lower < upper).all()):
            raise ConfigError(
                "The bounds of a feature or of the target enclose no interval.",
                advice="Set each lower bound below its upper one; they are public, and must not follow from "
                "the data.",
            )
        return lower, upper

    def _within(self, scaled: Points) -> Points:
        """Rows within [-1, 1], by `out_of_bounds`; sets `n_clipped_`."""
        self._check_out_of_bounds()
        # Rounding may move a bound itself beyond 1.
        outside = (np.abs(scaled) > 1.0 + 1e-12).any(axis=1)
        self.n_clipped_ = int(np.count_nonzero(outside))
        if self.n_clipped_ and self.out_of_bounds == "refuse":
            raise DataError(
                f"{self.n_clipped_} of {len(scaled)} rows lie outside of the public bounds.",
                advice='Correct the bounds, which are public, or set out_of_bounds to "clip".',
            )
        return np.clip(scaled, -1.0, 1.0)

    def _calibration(self, rows: int, cells: int, share: float, sizes: int = 1) -> Calibration | None:
        """Noise for a share of ε, of a sketch or of histograms, which a record changes as it changes rows."""
        if self.epsilon is None:
            return None
        if self.neighbours not in tuple(Neighbours) or not 0.0 < share < 1.0:
            raise ConfigError(
                "A private regression does not say which datasets its privacy compares, or its marginals' "
                "share of epsilon is not between 0 and 1.",
                advice='Set neighbours to "add-remove-one" or "substitute-one", and marginals_share.',
            )
        relation = Neighbours(self.neighbours)
        return calibrate(
            rows=rows, cells=cells, sizes=sizes, neighbours=relation, epsilon=share * self.epsilon
        )

    def _rows(self, features: int) -> int:
        """R, from public and released values: as noise allows, in a range by the reference's parameters."""
        least = parameter_count(features)
        most = MOST_ROWS_PER_PARAMETER * least
        if self.epsilon is None:
            return most
        changed = CHANGED[Neighbours(str(self.neighbours))]
        rows = ROWS_PER_POINT * self.marginals_.size * (1.0 - self.marginals_share) * self.epsilon / changed
        return round(min(max(rows, least), most))

    def _minimise(
        self, family: AsymmetricFamily, scale: float
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Slope of the standardised columns, and means of the scaled ones; sets `loss_` and `trust_`."""
        marginals, sketch = self.marginals_, self.sketch_
        shares = sketch.table.reshape(family.rows, _CELLS) / sketch.points
        means, start, points = marginals.means, np.zeros(family.columns - 1), None
        self.trust_, beyond = 1.0, shares
        if self.assisted:
            # A contrast ½·(±c₁ ± c₂ ± c₃ ± c₄)/N: the noise of a cell, and a sampling error of at most ½/√N.
            noise = 0.0 if sketch.privacy is None else sketch.privacy.cell_variance
            variance = noise / sketch.points**2 + 0.25 / sketch.points
            reference = fit_reference(marginals, family, shares, scale=scale, deviation=math.sqrt(variance))
            beyond = shares - reference.shares
            # A fit absorbs one share of the noise for each parameter.
            left = 1.0 - parameter_count(family.columns - 1) / (3 * family.rows)
            agreement = beyond[:, 0] + beyond[:, -1]
            self.trust_ = max(0.0, 1.0 - max(left, 0.0) * variance / float(np.mean(agreement**2)))
            centre = reference.points.mean(axis=0)
            means = means + marginals.deviations * centre
            # About their mean: an intercept takes that part of the residuals away.
            points = in_ball((reference.points - centre) * scale)
            start = reference.slope
        loss = _Loss(family, self.trust_ * beyond, points, scale)
        found = minimize(
            loss,
            np.clip(start, -_LARGEST_SLOPE, _LARGEST_SLOPE),
            method="COBYQA",
            bounds=[(-_LARGEST_SLOPE, _LARGEST_SLOPE)] * len(start),
            options={"initial_tr_radius": 0.1, "final_tr_radius": 1e-3},
        )
        self.loss_ = float(found.fun)
        return found.x, means

    def predict(self, X: Any) -> npt.NDArray[np.float64]:
        """The predicted target, float64 of shape (m,), for X of shape (m, features)."""
        check_is_fitted(self)
        features = validate_data(self, X, dtype=np.float64, reset=False)
        return np.asarray(features @ self.coef_ + self.intercept_)


def least_points(
    features: int, epsilon: float, *, neighbours: Neighbours, marginals_share: float = 0.2
) -> int:
    """Points below which a regression is no better than the mean, from public values alone.

    A sketch has at least a row for each parameter of its reference, and noise grows with the number of rows.
    So it needs `POINTS_PER_PARAMETER` points at ε = 1 for each, or twice that if a record changes two cells.

    Args:
        features: The number of features.
        epsilon: ε of the regression.
        neighbours: The datasets that it compares.
        marginals_share: Share of ε for the histograms.
    """
    changed = CHANGED[Neighbours(neighbours)]
    return math.ceil(
        POINTS_PER_PARAMETER * changed * parameter_count(features) / ((1.0 - marginals_share) * epsilon)
    )


@dataclass(frozen=True, eq=False)
class _Loss:
    """Estimated mean squared residual of a slope, in the target's deviations.

    Attributes:
        family: The hash functions.
        table: The data's share of each cell of each row, less that of the reference points if there are any:
            shape (rows, 4).
        points: Reference points in the unit ball, or None.
        scale: Factor of the standardised columns.
    """

    family: AsymmetricFamily
    table: npt.NDArray[np.float64]
    points: Points | None
    scale: float

    def __call__(self, slope: npt.NDArray[np.float64]) -> float:
        query = np.append(slope, -1.0)
        cells = self.family.hash_queries(np.stack([query, -query]))
        collisions = self.table[np.arange(self.family.rows), cells].sum(axis=0).mean()
        length = float(np.linalg.norm(query))
        if self.points is None:
            excess = collisions - 0.5
        else:
            angles = np.arcsin(np.clip(self.points @ query / length, -1.0, 1.0))
            excess = collisions + 2.0 * float(np.mean(angles**2)) / math.pi**2
        return float(excess) * (length / self.scale) ** 2 * math.pi**2 / 2.0
