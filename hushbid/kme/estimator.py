"""`KernelMeanRelease`: a dataset in, weighted points out, as a scikit-learn estimator."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, Final, Literal, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import validate_data

from hushbid.estimators import PoorReleaseWarning, PrivateEstimator
from hushbid.kme.mechanisms import FeatureMechanism, Mechanism, SubspaceMechanism
from hushbid.kme.privacy import KmeCalibration, WantedGuarantee
from hushbid.kme.reduced_set import WeightRule
from hushbid.kme.release import Release
from hushbid.protocol.errors import ConfigError, DataError
from hushbid.protocol.privacy.accounting.validation import check_delta_of
from hushbid.protocol.privacy.releases import Neighbours
from hushbid.protocol.space.grid import FEATURE_UNIT

__all__ = ["KernelMeanRelease", "Method"]

Method: TypeAlias = Literal["subspace", "features"]
Points: TypeAlias = npt.NDArray[np.float64]

POOR_NOISE: Final = 6.0
"""Noise length on an embedding times columns from which Algorithm 2 does no better than random points. An
embedding has length at most 1; points with few columns are found even in much noise."""


@dataclass(kw_only=True, eq=False, repr=False)
class KernelMeanRelease(PrivateEstimator):
    """A dataset's kernel mean embedding, released as weighted points (Balog, Tolstikhin, Schölkopf 2018).

    The kernel is exp(-γ‖x - y‖²) on columns scaled to [0, 1] by the public bounds. Each `fit` is a release
    with noise of its own: fitting twice costs twice. Publish `release_`, not the estimator:
    `n_out_of_bounds_` is private.

    Args:
        lower, upper, epsilon, neighbours, out_of_bounds, random_state, noise: As `PrivateEstimator`. Under
            ``add-remove-one`` the number of records is released with noise, within the same ε; under
            ``substitute-one`` it is public. The seed is that of map, points and the optimiser's start.
        delta: δ; 0 for pure differential privacy, by far more (Laplace) noise.
        method: ``subspace``, Algorithm 1: weights of public points; good if points like the data are public,
            or the domain is small. ``features``, Algorithm 2: points and weights are optimised.
        points: M; or for ``subspace`` the public points themselves, shape (M, columns), else drawn uniformly
            within the bounds.
        gamma: γ on scaled points.
        features: J of ``features``, even.
        norm: C, the bound of ‖w‖₁ (Theorem 8). None: 1 for ``features``; no bound for ``subspace``, as in
            Algorithm 1.
        weights: ``uniform``, for ``features`` alone: equal weights C/M.
        dtype: Number type of the released points, ``float64`` or ``float32``.

    Attributes:
        release_: The `Release`.
        n_out_of_bounds_: Number of clipped rows. It is private, and not part of the release.
        n_features_in_: Columns.
    """

    epsilon: float
    delta: float = 0.0
    method: Method = "features"
    points: int | npt.ArrayLike = 100
    gamma: float = 10.0
    features: int = 1000
    norm: float | None = None
    weights: WeightRule = "optimised"
    dtype: Literal["float64", "float32"] = "float64"
    release_: Release = field(init=False)
    n_out_of_bounds_: int = field(init=False)

    def calibration(self, columns: int) -> KmeCalibration:
        """The cost of a fit on data with this many columns, for a ledger to charge first.

        It depends on public values only. For ``subspace`` these include the points: if they are drawn,
        `random_state` must be a number.

        Raises:
            ConfigError: A parameter out of its range.
        """
        return self._mechanism(*self._bounds(columns), self._seed()).calibration

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002 scikit-learn's signature
        """Release X, and set `release_`.

        Args:
            X: Private records, shape (n, columns), finite.
            y: Ignored: a label is a column of X (`Release.train`).

        Raises:
            ConfigError: A parameter out of its range.
            DataError: Rows out of bounds, with `out_of_bounds` "refuse", or too many rows.
            ValueError: From scikit-learn.

        Warns with `hushbid.estimators.PoorReleaseWarning`, before noise is drawn, if public numbers and the
        number of records show that Algorithm 2 gains nothing. If that warning is made an error, nothing is
        spent.
        """
        records = validate_data(self, X, dtype=np.float64, order="C")
        check_delta_of(self.delta, len(records), "the records")
        lower, upper = self._bounds(records.shape[1])
        mechanism = self._mechanism(lower, upper, self._seed())
        calibration = mechanism.calibration
        scaled, self.n_out_of_bounds_ = self._within(records, lower, upper)
        self._say_if_poor(calibration, len(scaled), records.shape[1])
        source = self.noise()
        noise = source.draw(calibration.draw)
        totals = mechanism.totals(scaled)
        size = float(len(scaled))
        if calibration.count_unit:
            count = len(scaled) * calibration.count_unit + int(noise[-1])
            size = max(1.0, count / calibration.count_unit)
        scale = mechanism.unit / size
        noisy = (totals + noise[: len(totals)]) * scale
        places, weights, risk = mechanism.finish(noisy, calibration.sigma * scale)
        raw = np.clip(lower + places * (upper - lower), lower, upper) if self._drawn else self._given()
        self.release_ = Release(
            points=self._rounded(raw, lower, upper),
            weights=weights,
            gamma=self.gamma,
            lower=lower,
            upper=upper,
            method=self.method,
            norm=self._norm(),
            size=size,
            privacy=calibration,
            source=source.name,
            protects=source.protects,
            risk=risk,
        )
        return self

    def _say_if_poor(self, calibration: KmeCalibration, size: int, columns: int) -> None:
        """Warn, before noise is drawn, if Algorithm 2 would likely do no better than its own first points.

        These are public: drawn uniformly, with equal weights. On four kinds of data of 1 to 10 columns with ε
        from 0.03 to 3, releases were no better than they from about `POOR_NOISE` on (docs/kme.md).
        """
        if self.method != "features":
            return
        noise = calibration.sigma * FEATURE_UNIT / size * math.sqrt(self.features) * columns
        if noise > POOR_NOISE:
            warnings.warn(
                f"With {size} records of {columns} columns at epsilon = {self.epsilon:g}, the release is "
                "likely no nearer to the data than as many points drawn within the bounds, which are public "
                "and cost nothing. Nothing has been spent yet: this warning comes before noise is drawn.",
                PoorReleaseWarning,
                stacklevel=3,
            )

    @property
    def _drawn(self) -> bool:
        return isinstance(self.points, Integral)

    def _given(self) -> Points:
        return np.asarray(self.points, dtype=self.dtype).astype(np.float64)

    def _norm(self) -> float:
        if self.norm is None:
            return 1.0 if self.method == "features" else math.inf
        return float(self.norm)

    def _mechanism(self, lower: Points, upper: Points, seed: int) -> Mechanism:
        self._check()
        columns, norm = len(lower), self._norm()
        guarantee = WantedGuarantee(
            neighbours=Neighbours(str(self.neighbours)), epsilon=self.epsilon, delta=self.delta
        )
        if self.method == "features":
            return FeatureMechanism(
                columns,
                gamma=self.gamma,
                dimension=self.features,
                count=int(self.points),  # type: ignore[arg-type]
                norm=norm,
                weights=self.weights,
                seed=seed,
                **guarantee,
            )
        points: npt.NDArray[np.floating[Any]] = self._given()
        if self._drawn:
            drawn = np.random.default_rng(seed).uniform(size=(int(self.points), columns))  # type: ignore[arg-type]
            points = self._rounded(lower + drawn * (upper - lower), lower, upper)
        scaled = np.asarray((points - lower) / (upper - lower), dtype=np.float64)
        return SubspaceMechanism(scaled, gamma=self.gamma, norm=norm, seed=seed, **guarantee)

    def _check(self) -> None:
        self._check_out_of_bounds()
        method, weights, drawn = self.method, self.weights, self._drawn
        given = np.zeros((1, 1)) if drawn else self._given()
        matrix = given.ndim == 2 and bool(np.isfinite(given).all())
        fits = weights in (("optimised", "uniform") if method == "features" else ("optimised",))
        related = self.neighbours in tuple(Neighbours)

        def need(holds: bool, what: str, advice: str) -> None:
            if not holds:
                raise ConfigError(f"A kernel mean release was asked for with {what}.", advice=advice)

        need(method in ("subspace", "features"), f"method {method!r}", "Use subspace or features.")
        need(related, f"neighbours {self.neighbours!r}", "Set add-remove-one or substitute-one.")
        advice = "Use optimised ones, or uniform ones with features."
        need(fits, f"{weights!r} weights with method {method!r}", advice)
        points = "public points for method 'features'"
        need(drawn or method == "subspace", points, "Give how many points it is to find.")
        need(matrix, "public points that are no finite matrix", "Give shape (M, columns).")
        need(not drawn or int(self.points) >= 1, "no points", "Set points to at least 1.")  # type: ignore[arg-type]
        need(math.isfinite(self.gamma) and self.gamma > 0.0, f"gamma {self.gamma}", "Set it above 0.")
        need(self._norm() > 0.0, f"norm {self.norm}", "Set it above 0.")
        need(self.dtype in ("float64", "float32"), f"dtype {self.dtype!r}", "Use float64 or float32.")

    def _bounds(self, columns: int) -> tuple[Points, Points]:
        try:
            lower, upper = (
                np.array(np.broadcast_to(np.asarray(bound, dtype=np.float64), (columns,)))
                for bound in (self.lower, self.upper)
            )
        except ValueError:
            raise ConfigError(
                f"The public bounds do not fit {columns} columns.",
                advice="Give one number for all columns, or one for each.",
            ) from None
        if not (np.isfinite(lower) & np.isfinite(upper) & (lower < upper) & np.isfinite(upper - lower)).all():
            raise ConfigError(
                "The public bounds enclose no interval in some column.",
                advice="Give finite bounds, upper above lower.",
            )
        return lower, upper

    def _within(self, records: Points, lower: Points, upper: Points) -> tuple[Points, int]:
        """Records scaled to [0, 1], and the number of records out of bounds."""
        outside = int(np.count_nonzero(((records < lower) | (records > upper)).any(axis=1)))
        if outside and self.out_of_bounds == "refuse":
            raise DataError(
                f"{outside} of {len(records)} rows lie outside of the public bounds.",
                advice="Correct the bounds, from what is publicly known, or set out_of_bounds to clip.",
            )
        scaled = (np.clip(records, lower, upper) - lower) / (upper - lower)
        return np.clip(scaled, 0.0, 1.0), outside

    def _rounded(self, points: Points, lower: Points, upper: Points) -> npt.NDArray[np.floating[Any]]:
        """Points in the released number type; drawn or optimised points stay within the bounds."""
        if self.dtype == "float64":
            return points
        narrow = points.astype(np.float32)
        if not self._drawn:
            return narrow
        narrow = np.where(narrow > upper, np.nextafter(narrow, np.float32(-np.inf)), narrow)
        return np.where(narrow < lower, np.nextafter(narrow, np.float32(np.inf)), narrow)
