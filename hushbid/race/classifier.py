"""Classification by a RACE sketch of each class: maximum likelihood or maximum a posteriori (RACE §4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from hushbid.race.estimator import LEAST_POINTS, NeighboursName, OutOfBounds, Sketching
from hushbid.race.release import SketchPrivacy
from hushbid.race.sketch import Sketch
from protocol.errors import ConfigError, DataError
from protocol.lsh import Sampling
from protocol.noise import NoiseSource, SecureNoise

__all__ = ["RaceClassifier"]


class RaceClassifier(ClassifierMixin, Sketching):  # type: ignore[misc]
    """Kernel density classification from private sketches, one for each class, of the same hash functions.

    A record is of one class. With it, one cell of each row of one sketch changes: all sketches together cost
    what a single one does (parallel composition). A substituted record may change its class: 2R cells change
    still, and two sizes, which are therefore not public and are released with noise under either relation.

    Args:
        classes: All labels there can be. They are public, and must not be taken from private labels: without
            them there is no private fit.
        rule: ``likelihood``: the class with the largest mean kernel value; ``map``: with the largest kernel
            sum, which is that times the class's size. Wide kernels leave ``map`` to the largest class.
        lower, upper, epsilon, neighbours, delta, size_share, family, rows, width, bandwidth, power,
            sampling: As `RaceSketch`; ε and δ are for the sketches of all classes together.
        out_of_bounds, random_state, noise, threads: As `RaceSketch`.

    Attributes:
        classes_: Labels, sorted.
        sketches_: One for each class. The privacy statement of each is that of all together.
        n_clipped_: How many data rows were clipped. It is private.
        n_features_in_: Columns.
    """

    classes_: npt.NDArray[Any]
    sketches_: tuple[Sketch, ...]
    n_clipped_: int

    def __init__(
        self,
        *,
        lower: npt.ArrayLike,
        upper: npt.ArrayLike,
        epsilon: float | None,
        classes: Sequence[Any] | None = None,
        rule: Literal["likelihood", "map"] = "likelihood",
        neighbours: NeighboursName | None = None,
        delta: float = 0.0,
        size_share: float | None = None,
        family: str = "l2",
        rows: int = 1000,
        width: int = 1000,
        bandwidth: float = 1.0,
        power: int = 1,
        sampling: Sampling = "sobol",
        out_of_bounds: OutOfBounds = "refuse",
        random_state: int | np.random.RandomState | None = None,
        noise: Callable[[], NoiseSource] = SecureNoise,
        threads: int | None = None,
    ) -> None:
        super().__init__(
            lower=lower,
            upper=upper,
            epsilon=epsilon,
            neighbours=neighbours,
            delta=delta,
            size_share=size_share,
            family=family,
            rows=rows,
            width=width,
            bandwidth=bandwidth,
            power=power,
            sampling=sampling,
            out_of_bounds=out_of_bounds,
            random_state=random_state,
            noise=noise,
            threads=threads,
        )
        self.classes = classes
        self.rule = rule

    def fit(self, X: Any, y: Any) -> Self:
        """Sketch the points of each class, and nothing that was sketched before.

        Args:
            X: Shape (n, columns), finite.
            y: Labels, shape (n,), all of them in `classes`.

        Raises:
            ConfigError: A parameter outside of its range, or no classes for a private fit.
            DataError: Points out of bounds that are not to be clipped, or a label that is no class.
            ValueError: What scikit-learn refuses.
        """
        return self._add(X, y, self.classes, reset=True)

    def partial_fit(self, X: Any, y: Any, classes: Sequence[Any] | None = None) -> Self:
        """Add points to what was sketched; the first call is a `fit`.

        Args:
            X: Shape (n, columns), finite.
            y: Labels, shape (n,).
            classes: Those of the first call, where the constructor was not given them.

        Raises:
            As `fit`.
        """
        first = not hasattr(self, "sketches_")
        return self._add(X, y, self.classes if classes is None else classes, reset=first)

    def _add(self, X: Any, y: Any, classes: Sequence[Any] | None, *, reset: bool) -> Self:
        if self.rule not in ("map", "likelihood"):
            raise ConfigError(
                f"Classes were to be told by {self.rule!r}.", advice='Use "map" or "likelihood".'
            )
        points, clipped, labels = self._read(X, y=y, reset=reset)
        check_classification_targets(labels)
        if reset:
            if classes is None and self.epsilon is not None:
                raise ConfigError(
                    "A classifier was to be private, and its classes were not given.",
                    advice="Name all classes there can be: taken from the labels, they would give some away.",
                )
            if classes is not None and not len(classes):
                raise ConfigError(
                    "A classifier was given no classes.", advice="Name all classes there can be."
                )
            self.classes_ = np.unique(labels if classes is None else np.asarray(classes))
            self.sketches_ = self._empty()
            self.n_clipped_ = 0
        unknown = np.count_nonzero(~np.isin(labels, self.classes_))
        if unknown:
            raise DataError(
                f"{unknown} of {len(labels)} labels are of no class.", advice="Name all classes there can be."
            )
        self.sketches_ = tuple(
            sketch.add(points[labels == label], threads=self.threads)
            for label, sketch in zip(self.classes_, self.sketches_, strict=True)
        )
        self.n_clipped_ += clipped
        return self

    def _empty(self) -> tuple[Sketch, ...]:
        """Noise of all classes, drawn at once, or zeros."""
        family, classes = self._make_family(), len(self.classes_)
        cells = int(family.cells.sum())
        calibration = self._calibration(cells * classes, classes)
        if calibration is None:
            return (Sketch.empty(family, None, None),) * classes
        source = self.noise()
        counts = np.array(source.draw(calibration.cells), dtype=np.int64).reshape(classes, cells)
        sizes = [0] * classes if calibration.sizes is None else source.draw(calibration.sizes)
        privacy = calibration.privacy(source)
        return tuple(
            Sketch(family, part, int(size), privacy) for part, size in zip(counts, sizes, strict=True)
        )

    @property
    def privacy_(self) -> SketchPrivacy | None:
        """What holds for the sketches of all classes together; None without noise."""
        check_is_fitted(self)
        return self.sketches_[0].privacy

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Kernel sums, or mean kernel values, as shares of those of all classes.

        Where noise makes one negative, all of the row are raised until none is.

        Args:
            X: Queries, shape (m, columns).

        Returns:
            float64 of shape (m, classes), rows sum to 1.

        Raises:
            DataError: Queries out of bounds that are not to be clipped, or no class has points.
        """
        check_is_fitted(self)
        points, _, _ = self._read(X, reset=False)
        present = [index for index, sketch in enumerate(self.sketches_) if sketch.size_estimate > 0.0]
        if not present:
            raise DataError(
                "No class has points: there are none, or fewer than the noise hides.",
                advice="Sketch more points, or raise epsilon.",
            )
        shares = np.zeros((len(points), len(self.classes_)))
        values = np.empty((len(points), len(present)))
        for place, index in enumerate(present):
            sketch = self.sketches_[index]
            values[:, place] = sketch.kernel_sums(points)
            if self.rule == "likelihood":
                values[:, place] /= sketch.points
        least = LEAST_POINTS
        if self.rule == "likelihood":
            least /= sum(self.sketches_[index].points for index in present)
        values += least - np.minimum(values.min(axis=1, keepdims=True), 0.0)
        shares[:, present] = values / values.sum(axis=1, keepdims=True)
        return shares

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The class with the largest share (`predict_proba`).

        Args:
            X: Queries, shape (m, columns).

        Returns:
            Labels, shape (m,).

        Raises:
            DataError: As `predict_proba`.
        """
        check_is_fitted(self)
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])
