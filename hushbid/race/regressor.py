"""Linear regression from private sums of products, or from a private sketch (Wang 2018; RACE §4)."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from hushbid.estimators import PrivateEstimator, naming_columns
from hushbid.protocol.errors import ConfigError, DataError
from hushbid.protocol.privacy.accounting.validation import check_delta_of
from hushbid.protocol.privacy.noise import NoiseSource
from hushbid.protocol.privacy.releases import Neighbours
from hushbid.protocol.space.lsh import AsymmetricFamily, Points
from hushbid.race.enough import MOST_FEATURES, SURE, Method, least_points
from hushbid.race.marginals import Marginals, measure_marginals
from hushbid.race.products import Products, calibrate_products, fit_line, measure_products
from hushbid.race.reference import in_ball, parameter_count
from hushbid.race.release import CHANGED, PoorModelWarning, RaceCalibration, SketchPrivacy, calibrate
from hushbid.race.sketch import Sketch
from hushbid.race.surrogate import CELLS, fit_surrogate

__all__ = ["MOST_ROWS_PER_PARAMETER", "ROWS_PER_POINT", "RaceRegressor"]

MOST_ROWS_PER_PARAMETER: Final = 6
"""Maximum rows of a sketch per parameter of its reference, if `rows` is not set; the minimum is one."""
ROWS_PER_POINT: Final = 1.0 / 250.0
"""Rows for each point at ε = 1 between the two. A cell's share of the points then has noise of a standard
deviation of 0.006. The precision of a parameter is as 1/rows, until the rows suffice for the misfit."""

_ALTERNATIVES: Final = {
    "moments": "a delta above 0 takes far less noise",
    "sketch": 'sums of products (method="moments", after AdaSSP, Wang 2018) need far less',
}
_MEAN_UNIT: Final = 2**15
"""The target, with bounds ±1, is rounded to multiples of one over it before it is summed."""
_MEAN_SQUARE: Final = 0.5
"""Mean squared length of the hashed points; longer ones than 1 are moved to the unit ball."""


@dataclass(kw_only=True, eq=False, repr=False)
class RaceRegressor(RegressorMixin, PrivateEstimator):  # type: ignore[misc]
    """A private linear model, from sums of products or from a sketch of features and target.

    The data are released twice: a noisy histogram of each column, to standardise columns, and then what the
    model is fitted to. The rest is post-processing.

    ``moments``: the noisy sums of products of the standardised columns, and a ridge regression on them whose
    penalty follows from the known noise (`hushbid.race.products`, after AdaSSP). It needs fewer points than a
    sketch for every number of features and every ε that were tried, and a fit takes milliseconds.

    ``sketch``: counts of the standardised points z by pairs of signed random projections, after the
    asymmetric transformation (`AsymmetricFamily`, p = 2). For a slope θ the query q = (θ, -1) and its
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

    The model is the target's mean where the number of points, public or released, is below `least_points`.
    That choice is by public and released numbers alone.

    (ε, δ)-differential privacy with ε = `epsilon` and δ = `delta`, of both releases together.

    Args:
        lower, upper, epsilon, neighbours, out_of_bounds, random_state, noise: As `PrivateEstimator`. Features
            to predict for may lie anywhere; the number of points is public under ``substitute-one``.
        target_lower, target_upper: Public bounds of the target.
        delta: δ; 0 for pure differential privacy. Half of it is for the histograms.
        method: ``moments`` or ``sketch``. ``auto``: ``sketch`` if `rows` or `assisted` ask for one, else
            ``moments``.
        marginals_share: Share of ε for the histograms, in (0, 1).
        steps: Bins of a histogram, at least 3. A column should spread over a few of them; more cost
            precision, which matters with few points.
        rows: R of a sketch; None: `ROWS_PER_POINT` times the released size, between one row and
            `MOST_ROWS_PER_PARAMETER` for each parameter of a reference.
        assisted: Whether a sketch has a reference.
        threads: As `count_cells`.

    Attributes:
        model_: ``moments``, ``sketch`` or ``mean``.
        coef_: Slope, float64 of shape (features,), in the target's unit per unit of each feature.
        intercept_: In the target's unit.
        loss_: The least estimated loss: about the mean squared residual, in the target's unit squared. Noise
            can make it negative.
        trust_: c above, in [0, 1]. Near 1 the reference model does not fit the data; 1 without a reference.
        marginals_: The histograms.
        products_, sketch_: What the model is fitted to; the other one does not exist, and neither does if the
            number of points left the mean alone.
        privacy_: The guarantee for both releases together; None without noise.
        n_clipped_: Number of clipped data rows. It is private.
        n_target_clipped_: Number of those rows with a clipped target. It is private.
        n_features_in_: Features.
    """

    target_lower: float
    target_upper: float
    delta: float = 0.0
    method: Literal["auto", "moments", "sketch"] = "auto"
    marginals_share: float = 0.2
    steps: int = 33
    rows: int | None = None
    assisted: bool = True
    threads: int | None = None
    model_: Literal["moments", "sketch", "mean"] = field(init=False)
    coef_: npt.NDArray[np.float64] = field(init=False)
    intercept_: float = field(init=False)
    loss_: float = field(init=False)
    trust_: float = field(init=False)
    marginals_: Marginals = field(init=False)
    products_: Products = field(init=False)
    sketch_: Sketch = field(init=False)
    privacy_: SketchPrivacy | None = field(init=False)
    n_clipped_: int = field(init=False)
    n_target_clipped_: int = field(init=False)

    def fit(self, X: Any, y: Any) -> Self:
        """Release the data, and fit the model to the release.

        If a private number of points is released as less than `least_points`, a `PoorModelWarning` says so,
        and the second release's share of ε is spent on the target's mean. With `rows` there is always a
        sketch. A `PoorModelWarning` also says that no slope stood out from the noise of the products, which
        leaves the mean as well, and that a sketch has fewer than `SURE` times `least_points`.

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
        method = self._method()
        self._check_features(features.shape[1], method)
        if self.epsilon is not None:
            check_delta_of(self.delta, len(features), "the points")
        lower, upper = self._bounds(features.shape[1])
        middle, half = (lower + upper) / 2.0, (upper - lower) / 2.0
        scaled = self._within((np.column_stack([features, target]) - middle) / half)

        columns = len(middle)
        least = self._least_points(columns - 1, method)
        if self.neighbours == "substitute-one" and len(features) < least:
            raise DataError(
                f"A regression on {columns - 1} features has {len(features)} points. At epsilon = "
                f"{self.epsilon:g} it says no more than the mean below {least}. Nothing was released.",
                advice=f"Use more points, fewer features or a larger epsilon; {_ALTERNATIVES[method]}. "
                "Set rows to get a sketch anyway.",
            )
        source = None if self.epsilon is None else self.noise()
        for_marginals = self._calibration(columns, self.steps * columns, self.marginals_share)
        self.marginals_, spent = measure_marginals(scaled, self.steps, for_marginals, source)
        for name in ("sketch_", "products_"):
            self.__dict__.pop(name, None)
        if self.marginals_.size < least:
            self._as_mean(scaled[:, -1], least, spent, source)
        elif method == "moments":
            self._fit_products(scaled, spent, source, middle, half)
        else:
            self._fit_sketch(scaled, least, spent, source, middle, half)
        return self

    def _method(self) -> Method:
        """The release that a model is fitted to, by parameters alone; refuses those out of range."""
        if self.steps < 3 or (self.rows is not None and self.rows < 1):
            raise ConfigError(
                f"A regression was asked for with {self.steps} steps and {self.rows} rows.",
                advice="Set steps to 3 or more, and rows to None or to 1 or more.",
            )
        asked = self.rows is not None or not self.assisted
        if self.method not in ("auto", "moments", "sketch") or (self.method == "moments" and asked):
            also = ", and with what a sketch alone has" if asked else ""
            raise ConfigError(
                f"A regression was asked for by the method {self.method!r}{also}.",
                advice='Use "auto", "moments" or "sketch"; rows and assisted are for a sketch.',
            )
        return "sketch" if asked or self.method == "sketch" else "moments"

    def _check_features(self, features: int, method: Method) -> None:
        """Refuse more features than a model can be fitted to, before anything is released."""
        most = MOST_FEATURES[method]
        if features <= most or (method == "sketch" and not self.assisted):
            return
        why = ""
        if method == "sketch":
            why = (
                f" Its reference would have {parameter_count(features)} parameters, the sketch as many rows, "
                "and a fit would take far more than minutes."
            )
        raise ConfigError(
            f"A regression on {features} features was asked for.{why} {most} features are the most. "
            "Nothing was released.",
            advice=f"Use fewer features; {_ALTERNATIVES[method]}.",
        )

    def _least_points(self, features: int, method: Method) -> int:
        if self.epsilon is None or self.rows is not None or not self.assisted:
            return 0
        if self.neighbours not in tuple(Neighbours) or not (
            self.epsilon > 0.0 and 0.0 < self.marginals_share < 1.0 and 0.0 <= self.delta < 1.0
        ):
            return 0  # `_calibration` refuses these.
        return least_points(
            features,
            self.epsilon,
            neighbours=Neighbours(self.neighbours),
            marginals_share=self.marginals_share,
            method=method,
            delta=self.delta,
            steps=self.steps,
        )

    def _fit_products(
        self,
        scaled: Points,
        spent: SketchPrivacy | None,
        source: NoiseSource | None,
        middle: npt.NDArray[np.float64],
        half: npt.NDArray[np.float64],
    ) -> None:
        """Release sums of products, and fit a line to them."""
        marginals, calibration = self.marginals_, None
        # Noise can hide a column's spread: a deviation counts as at least its mean's error.
        errors = np.square(marginals.mean_errors) + np.square(marginals.deviation_errors)
        deviations = np.minimum(marginals.deviations * np.sqrt(1.0 + errors), 1.0)
        if spent is not None:
            calibration = self._products_calibration(len(middle))
        standard = (scaled - marginals.means) / deviations
        self.products_, privacy = measure_products(standard, calibration, source)
        self._set_privacy(spent, privacy)
        # The data end here.
        line = fit_line(self.products_)
        self.model_ = "moments" if line.slope.any() else "mean"
        if self.model_ == "mean":
            warnings.warn(
                "No slope of a regression stands out from its noise: the model is the target's mean.",
                PoorModelWarning,
                stacklevel=3,
            )
        self.trust_ = 1.0
        means = marginals.means + deviations * line.means
        self._set_line(line.slope, deviations * half, middle + means * half, line.loss)

    def _fit_sketch(
        self,
        scaled: Points,
        least: int,
        spent: SketchPrivacy | None,
        source: NoiseSource | None,
        middle: npt.NDArray[np.float64],
        half: npt.NDArray[np.float64],
    ) -> None:
        """Release a sketch, and minimise its surrogate of the loss."""
        marginals, columns = self.marginals_, len(middle)
        if marginals.size < SURE * least:
            warnings.warn(
                f"A sketch has about {marginals.size} points of {columns - 1} features. Below "
                f'{SURE * least:.0f} its model may be worse than the mean; method="moments" needs far fewer.',
                PoorModelWarning,
                stacklevel=3,
            )
        family = AsymmetricFamily(
            rows=self.rows or self._rows(columns - 1),
            width=CELLS,
            lower=np.full(columns, -1.0),
            upper=1.0,
            seed=self._seed(),
            power=2,
        )
        scale = math.sqrt(_MEAN_SQUARE / columns)
        points = in_ball((scaled - marginals.means) / marginals.deviations * scale)
        calibration = self._calibration(family.rows, int(family.cells.sum()), 1.0 - self.marginals_share)
        self.sketch_ = Sketch.empty(family, calibration, source).add(points, threads=self.threads)
        self._set_privacy(spent, self.sketch_.privacy)
        # The data end here.
        line = fit_surrogate(marginals, family, self.sketch_, scale=scale, assisted=self.assisted)
        self.model_, self.trust_ = "sketch", line.trust
        self._set_line(line.slope, marginals.deviations * half, middle + line.means * half, line.loss)

    def _as_mean(
        self, target: Points, least: int, spent: SketchPrivacy | None, source: NoiseSource | None
    ) -> None:
        """Set the model to the target's mean, from a noisy sum of whole numbers and the released size.

        What is summed is the target less m, if the size has noise, which then hardly matters: m is its mean
        by the histogram, shrunk by that one's noise. A record changes the sum by `_MEAN_UNIT`·(1 + |m|) at
        most; or, with a public size and m = 0, by twice `_MEAN_UNIT`: as much as that many rows
        (`calibrate`), in Laplace noise.
        """
        warnings.warn(
            f"A regression has about {self.marginals_.size} points, and says no more than the mean below "
            f"{least}: the model is the target's mean, for which the rest of epsilon is spent.",
            PoorModelWarning,
            stacklevel=3,
        )
        marginals, privacy = self.marginals_, None
        shift = 0
        if self.neighbours != "substitute-one":
            known, error = (
                float(marginals.means[-1]),
                float(marginals.mean_errors[-1] * marginals.deviations[-1]),
            )
            shift = round(known**3 / (known**2 + error**2 + 1e-12) * _MEAN_UNIT)
        calibration = self._calibration(
            _MEAN_UNIT + abs(shift), 1, 1.0 - self.marginals_share, sizes=0, delta=0.0
        )
        total = int((np.rint(target * _MEAN_UNIT).astype(np.int64) - shift).sum())
        if calibration is not None and source is not None:
            total += int(source.draw(calibration.cells)[0])
            privacy = calibration.privacy(source)
        self._set_privacy(spent, privacy)
        half = (self.target_upper - self.target_lower) / 2.0
        # A size hidden by its noise is likely larger, and would put the mean at a bound.
        hidden = 0.0 if spent is None else 2.0 * math.sqrt(spent.size_variance)
        mean = min(1.0, max(-1.0, (total / max(marginals.size, hidden) + shift) / _MEAN_UNIT))
        self.model_ = "mean"
        self.coef_ = np.zeros(len(marginals.means) - 1)
        self.intercept_ = float((self.target_lower + self.target_upper) / 2.0 + mean * half)
        self.loss_ = float(marginals.deviations[-1] * half) ** 2
        self.trust_ = 0.0

    def _set_privacy(self, spent: SketchPrivacy | None, privacy: SketchPrivacy | None) -> None:
        """Set the guarantee for both releases: a record is in both, so costs add up."""
        self.privacy_ = None
        if spent is not None and privacy is not None:
            self.privacy_ = spent.merged(privacy, "shared")

    def _set_line(
        self,
        slope: npt.NDArray[np.float64],
        deviations: npt.NDArray[np.float64],
        centre: npt.NDArray[np.float64],
        loss: float,
    ) -> None:
        """The model in the data's units: slope and loss are in `deviations`, the line is through `centre`."""
        self.coef_ = slope * deviations[-1] / deviations[:-1]
        self.intercept_ = float(centre[-1] - self.coef_ @ centre[:-1])
        self.loss_ = loss * float(deviations[-1]) ** 2

    def __sklearn_tags__(self) -> Any:
        """Tags with a poor score, as a private model needs many points."""
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
        """Rows within [-1, 1], by `out_of_bounds`; sets `n_clipped_` and `n_target_clipped_`."""
        self._check_out_of_bounds()
        # Rounding may move a bound itself beyond 1.
        outside = np.abs(scaled) > 1.0 + 1e-12
        self.n_clipped_ = int(np.count_nonzero(outside.any(axis=1)))
        self.n_target_clipped_ = int(np.count_nonzero(outside[:, -1]))
        if self.n_clipped_ and self.out_of_bounds == "refuse":
            raise _outside(outside, getattr(self, "feature_names_in_", None))
        return np.clip(scaled, -1.0, 1.0)

    def _calibration(
        self, rows: int, cells: int, share: float, sizes: int = 1, delta: float | None = None
    ) -> RaceCalibration | None:
        """Noise for a share of ε, of a sketch or of histograms, which a record changes as it changes rows."""
        relation = self._relation()
        if relation is None or self.epsilon is None:
            return None
        return calibrate(
            rows=rows,
            cells=cells,
            sizes=sizes,
            neighbours=relation,
            epsilon=share * self.epsilon,
            delta=self.delta / 2.0 if delta is None else delta,
        )

    def _products_calibration(self, columns: int) -> RaceCalibration:
        """Noise of the products of that many columns and the constant, for the ε and δ left by histograms."""
        return calibrate_products(
            columns + 1,
            neighbours=Neighbours(str(self.neighbours)),
            epsilon=(1.0 - self.marginals_share) * float(self.epsilon or 0.0),
            delta=self.delta / 2.0,
        )

    def _relation(self) -> Neighbours | None:
        """The neighbour relation; None without privacy."""
        if self.epsilon is None:
            return None
        if self.neighbours not in tuple(Neighbours) or not 0.0 < self.marginals_share < 1.0:
            raise ConfigError(
                "A private regression does not say which datasets its privacy compares, or its marginals' "
                "share of epsilon is not between 0 and 1.",
                advice='Set neighbours to "add-remove-one" or "substitute-one", and marginals_share.',
            )
        return Neighbours(self.neighbours)

    def _rows(self, features: int) -> int:
        """R, from public and released values: as noise allows, in a range by the reference's parameters."""
        least = parameter_count(features)
        most = MOST_ROWS_PER_PARAMETER * least
        if self.epsilon is None:
            return most
        changed = CHANGED[Neighbours(str(self.neighbours))]
        rows = ROWS_PER_POINT * self.marginals_.size * (1.0 - self.marginals_share) * self.epsilon / changed
        return round(min(max(rows, least), most))

    def predict(self, X: Any) -> npt.NDArray[np.float64]:
        """The predicted target, float64 of shape (m,), for X of shape (m, features)."""
        check_is_fitted(self)
        features = validate_data(self, X, dtype=np.float64, reset=False)
        return np.asarray(features @ self.coef_ + self.intercept_)


def _outside(outside: npt.NDArray[np.bool_], names: Any) -> DataError:
    """The error for rows out of bounds, which says whether features, the target or both are out of bounds.

    Args:
        outside: Which values are out of bounds, shape (n, features + 1), the target last.
        names: The features' names, or None.
    """
    rows, target = len(outside), int(np.count_nonzero(outside[:, -1]))
    features = int(np.count_nonzero(outside[:, :-1].any(axis=1)))
    where = naming_columns(outside[:, :-1].any(axis=0), names)
    of_features, of_target = "lower and upper", "target_lower and target_upper"
    if not features:
        what, which = f"The target of {target} of {rows} rows lies", of_target
    elif not target:
        what, which = f"Features of {features} of {rows} rows ({where}) lie", of_features
    else:
        what = f"Features of {features} of {rows} rows ({where}), and the target of {target}, lie"
        which = f"{of_features}, {of_target}"
    return DataError(
        f"{what} outside of the public bounds.",
        advice=f'Correct the bounds, which are public ({which}), or set out_of_bounds to "clip".',
    )
