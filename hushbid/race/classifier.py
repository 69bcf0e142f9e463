"""Classification by a RACE sketch of each class, of a given or an adaptive size (RACE §4)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from hushbid.protocol.errors import ConfigError, DataError
from hushbid.protocol.privacy.releases import Neighbours
from hushbid.protocol.space.lsh import L2Family, Points
from hushbid.race.estimator import LEAST_POINTS, Sketching
from hushbid.race.release import PoorModelWarning, SketchPrivacy
from hushbid.race.sketch import Sketch
from hushbid.race.staged import FitBudget, Reading, StagedReleases, fit_stages

__all__ = ["RaceClassifier"]

_LEAST_GAIN: Final = 0.5
"""Minimum gain of a used reading over the largest class, in standard deviations of the noise."""
_SURE_GAIN: Final = 2.0
"""Minimum gain without a warning: among three readings the one with the luckiest noise is kept."""


def _streams(estimator: RaceClassifier) -> bool:
    """Raise a ConfigError if points are added to a fit in stages, which reads its data more than once."""
    if estimator.in_stages:
        raise ConfigError(
            "A classifier that chooses its own size reads its data more than once, and has no partial_fit.",
            advice="Set rows: classifier_rows and optimal_rows say how many suit sizes that are public.",
        )
    return True


@dataclass(kw_only=True, eq=False, repr=False)
class RaceClassifier(ClassifierMixin, Sketching):  # type: ignore[misc]
    """Classification from private sketches, one for each class, with the same hash functions.

    A record has one class, and changes one cell of each row of one sketch: all sketches together cost as much
    as a single one (parallel composition). A substituted record may change its class: still 2R cells change,
    and two sizes, which are therefore not public and are released with noise under either relation.

    By default a fit has stages (`hushbid.race.staged`). It releases sizes, sketches in coordinates of its own
    choice, and the accuracy of each reading of these, and keeps the best reading. It reads the data more than
    once. With `rows` or a `bandwidth` there is one release instead, and kernel sums decide on classes, as in
    the paper; streams, and sketches that are merged later, need `rows`.

    Args:
        classes: All possible labels. They are public, and must not be taken from private labels. A private
            fit requires them.
        rule: ``likelihood``: the class with the largest likelihood, whatever its size; ``map``: the likeliest
            class. ``auto``: ``map`` for a fit in stages, or the largest class alone if that is as accurate;
            ``likelihood`` for kernel sums, as wide kernels leave ``map`` to the largest class.
        rows: R; None: chosen.
        bandwidth: In the points' unit; None: an eighth of the bounds' diagonal, or chosen.
        family: ``l2``, or another by kernel sums alone.
        power: 1, or another by kernel sums alone.
        lower, upper, epsilon, neighbours, delta, size_share, width, sampling: As `RaceSketch`; ε and δ are
            for all releases of a fit together. A fit in stages has shares and widths of its own.
        out_of_bounds, random_state, noise, threads: As `RaceSketch`.

    Attributes:
        classes_: Labels, sorted.
        sketches_: One for each class; of whitened points after a fit in stages (`hushbid.race.readings`), and
            none if that found one class only. The guarantee of each covers all of them together.
        model_: The model: ``kernel``; or ``shared``, ``own``, ``rows`` or ``largest`` after a fit in stages
            (`hushbid.race.staged.Reading`).
        accuracy_: Share of the fitted points that it classifies correctly, as released; None after one
            release.
        accuracy_error_: Standard deviation of the noise on that; None likewise.
        n_clipped_: Number of clipped data rows. It is private.
        n_features_in_: Columns.
    """

    classes: Sequence[Any] | None = None
    rule: Literal["auto", "likelihood", "map"] = "auto"
    bandwidth: float | None = None
    classes_: npt.NDArray[Any] = field(init=False)
    sketches_: tuple[Sketch, ...] = field(init=False)
    model_: Reading | Literal["kernel", "largest"] = field(init=False)
    accuracy_: float | None = field(init=False)
    accuracy_error_: float | None = field(init=False)
    n_clipped_: int = field(init=False)
    _staged: StagedReleases | None = field(init=False, default=None)
    _reading: Reading | None = field(init=False, default=None)

    def fit(self, X: Any, y: Any) -> Self:
        """Sketch the points of each class alone.

        A fit in stages that is no better than the largest class issues a `PoorModelWarning`.

        Args:
            X: Shape (n, columns), finite.
            y: Labels, shape (n,), all of them in `classes`.

        Raises:
            ConfigError: A parameter out of its range, or no classes for a private fit.
            DataError: Points out of bounds, with `out_of_bounds` "refuse", or an unknown label.
            ValueError: From scikit-learn.
        """
        return self._add(X, y, self.classes, reset=True, stream=False)

    @property
    def in_stages(self) -> bool:
        """Whether `fit` works in stages: rows, bandwidth, family and power have their defaults."""
        return (
            self.rows is None and self.bandwidth is None and self.family == L2Family.name and self.power == 1
        )

    @available_if(_streams)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any, classes: Sequence[Any] | None = None) -> Self:
        """Add points to the sketches; the first call is a `fit` of one release.

        The method does not exist if `fit` works in stages (`in_stages`). A private stream needs `rows`.

        Args:
            X, y: As `fit`, which raises.
            classes: All possible labels, for a first call if the constructor got none.
        """
        first = not hasattr(self, "sketches_") or self._staged is not None
        return self._add(X, y, self.classes if classes is None else classes, reset=first, stream=True)

    def _add(self, X: Any, y: Any, classes: Sequence[Any] | None, *, reset: bool, stream: bool) -> Self:
        if self.rule not in ("auto", "map", "likelihood"):
            raise ConfigError(
                f"Classes cannot be predicted by {self.rule!r}.", advice='Use "auto", "map" or "likelihood".'
            )
        points, clipped, labels = self._read(X, y=y, reset=reset)
        check_classification_targets(labels)
        if reset:
            if classes is None and self.epsilon is not None:
                raise ConfigError(
                    "A private classifier needs its classes.",
                    advice="Name all possible classes: derived from the labels, they would leak some.",
                )
            if classes is not None and not len(classes):
                raise ConfigError(
                    "A classifier was given no classes.", advice="Name all classes there can be."
                )
            self.classes_ = np.unique(labels if classes is None else np.asarray(classes))
        unknown = np.count_nonzero(~np.isin(labels, self.classes_))
        if unknown:
            raise DataError(
                f"{unknown} of {len(labels)} labels belong to no class.",
                advice="Name all classes there can be.",
            )
        if reset:
            self.n_clipped_ = 0
            self._staged = None
            self.model_, self.accuracy_, self.accuracy_error_ = "kernel", None, None
            if self.in_stages:
                return self._fit_stages(points, labels, clipped)
            sizes = [int(np.count_nonzero(labels == label)) for label in self.classes_]
            self.sketches_ = self._empty(len(sizes), None if stream else sizes)
        self.sketches_ = tuple(
            sketch.add(points[labels == label], threads=self.threads)
            for label, sketch in zip(self.classes_, self.sketches_, strict=True)
        )
        self.n_clipped_ += clipped
        return self

    def _fit_stages(self, points: Points, labels: Any, clipped: int) -> Self:
        lower, upper = self._box()
        source = None
        relation = Neighbours.ADD_REMOVE_ONE
        if self.epsilon is not None:
            relation, source = self._relation(), self.noise()
        staged = fit_stages(
            points,
            np.searchsorted(self.classes_, labels),
            len(self.classes_),
            lower=lower,
            upper=upper,
            budget=FitBudget(epsilon=self.epsilon, delta=self.delta, neighbours=relation, source=source),
            weighed=self.rule != "likelihood",
            sampling=self.sampling,
            seed=self._seed(),
            threads=self.threads,
        )
        self._staged, self.sketches_, self.n_clipped_ = staged, staged.sketches, clipped
        self.model_, self.accuracy_ = "largest", staged.largest_share
        self.accuracy_error_ = staged.largest_error
        self._reading = None
        best = max(staged.shares, key=staged.shares.__getitem__, default=None)
        if best is not None:
            beyond = staged.shares[best] - staged.largest_share
            poor = self.rule == "auto" and beyond <= _LEAST_GAIN * staged.share_error
            if beyond <= _SURE_GAIN * staged.share_error:
                told = "The largest class is told for every point." if poor else ""
                warnings.warn(
                    f"A classifier tells a share of {staged.shares[best]:.3f} of its points rightly, and the "
                    f"largest class alone {staged.largest_share:.3f}; noise has a standard deviation of "
                    f"{staged.share_error:.3f}. {told}".rstrip(),
                    PoorModelWarning,
                    stacklevel=3,
                )
            if not poor:
                self._reading = self.model_ = best
                self.accuracy_ = staged.shares[best]
                self.accuracy_error_ = staged.share_error
        elif len(self.classes_) > 1 and self.epsilon is not None:
            warnings.warn(
                "One class alone has more points than noise hides, and is predicted for every point.",
                PoorModelWarning,
                stacklevel=3,
            )
        return self

    @property
    def privacy_(self) -> SketchPrivacy | None:
        """The guarantee for all releases together; None without noise."""
        check_is_fitted(self)
        return self.sketches_[0].privacy if self._staged is None else self._staged.privacy

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Probabilities of the classes, by the model.

        With kernel sums: these, or mean kernel values, as shares of those of all classes. If noise makes one
        negative, the row is raised until all are at least 0.

        Args:
            X: Queries, shape (m, columns).

        Returns:
            float64 of shape (m, classes), rows sum to 1.

        Raises:
            DataError: Queries out of bounds, with `out_of_bounds` "refuse", or no class has points.
        """
        check_is_fitted(self)
        points, _, _ = self._read(X, reset=False)
        if self._staged is not None:
            return self._staged_proba(points, self._staged)
        present = [index for index, sketch in enumerate(self.sketches_) if sketch.size_estimate > 0.0]
        if not present:
            raise DataError(
                "No class has points: there are none, or fewer than the noise hides.",
                advice="Sketch more points, or raise epsilon.",
            )
        shares = np.zeros((len(points), len(self.classes_)))
        sketches = [self.sketches_[index] for index in present]
        values, least = np.stack([sketch.kernel_sums(points) for sketch in sketches], axis=1), LEAST_POINTS
        if self.rule != "map":
            values /= [sketch.points for sketch in sketches]
            least /= sum(sketch.points for sketch in sketches)
        values += least - np.minimum(values.min(axis=1, keepdims=True), 0.0)
        shares[:, present] = values / values.sum(axis=1, keepdims=True)
        return shares

    def _staged_proba(self, points: Points, staged: StagedReleases) -> npt.NDArray[np.float64]:
        shares = np.zeros((len(points), len(self.classes_)))
        if self._reading is None:
            sizes = np.maximum(staged.sizes, 0)
            sizes[int(staged.sizes.argmax())] += 1
            return np.asarray(shares + sizes / sizes.sum())
        scores = staged.scores(points, self._reading, weighed=self.rule != "likelihood")
        odds = np.exp(scores - scores.max(axis=1, keepdims=True))
        shares[:, staged.present] = odds / odds.sum(axis=1, keepdims=True)
        return shares

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The most probable label for each x of X, shape (m,); raises as `predict_proba`."""
        check_is_fitted(self)
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])
