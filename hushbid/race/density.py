"""Densities, modes, anomalies and diverse samples from a RACE sketch (RACE §4)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.stats import qmc
from sklearn.base import DensityMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from hushbid.protocol.errors import ConfigError
from hushbid.protocol.space.lsh import Points, StableFamily
from hushbid.race.estimator import RaceSketch

__all__ = ["RaceDensity"]

STARTS: Final = 1024
"""Number of starting points of the search for modes."""
CLIMBS: Final = 4
"""Number of climbs for each wanted mode."""


class RaceDensity(DensityMixin, RaceSketch):  # type: ignore[misc]
    """A kernel density estimate from a private sketch. Parameters are those of `RaceSketch`.

    Everything follows from the released sketch, and costs no privacy. Other inputs, such as the points that
    `anomaly_scores` rates, stay with the caller.
    """

    def score(self, X: Any, y: Any = None) -> float:  # noqa: ARG002 scikit-learn's signature
        """Mean of `score_samples`; raises as that."""
        return float(self.score_samples(X).mean())

    def anomaly_scores(self, X: Any) -> npt.NDArray[np.float64]:
        """Minus `score_samples`, which raises: at least 0 apart from noise, larger for unusual points."""
        return -self.score_samples(X)

    def sample_diverse(
        self, X: Any, count: int, *, random_state: int | np.random.RandomState | None = None
    ) -> npt.NDArray[np.intp]:
        """Choose rows of X, each with a probability that falls with its density (Coleman et al. 2019).

        The sample is more even than the sketched data, as frequent points are thinned out.

        Args:
            X: Candidates, shape (m, columns).
            count: From 1 to m.
            random_state: Seed of the choice.

        Returns:
            Indices of different rows, in increasing order, shape (count,).

        Raises:
            ConfigError: Another count.
            DataError: As `kernel_sums`.
        """
        scores = self.score_samples(X)
        if not 1 <= count <= len(scores):
            raise ConfigError(
                f"{count} of {len(scores)} rows were to be chosen.",
                advice="Ask for at least 1, and for no more than there are.",
            )
        weights = np.exp(scores.min() - scores)
        chosen = check_random_state(random_state).choice(
            len(scores), size=count, replace=False, p=weights / weights.sum()
        )
        return np.sort(chosen)

    def modes(
        self, count: int = 1, *, starts: Any = None, apart: float | None = None
    ) -> tuple[Points, npt.NDArray[np.float64]]:
        """The densest places of the sketched points, by derivative-free optimisation (Nelder and Mead).

        The estimate is constant between hyperplanes, so that no gradient exists. Noise has modes too: a value
        that is not much above `Sketch.noise_deviation` is not a mode.

        Args:
            count: Maximum number of modes, at least 1.
            starts: Where to begin, shape (n, columns); None: `STARTS` points of a Sobol sequence within the
                public bounds, which are sparse in many columns.
            apart: Minimum distance of two modes; None: the bandwidth, or without one a tenth of the diagonal
                of the bounds.

        Returns:
            Modes, shape (k, columns) with 1 ≤ k ≤ count, and their kernel sums, the largest first.

        Raises:
            ConfigError: Another count.
            DataError: As `kernel_sums`.
        """
        check_is_fitted(self)
        if count < 1:
            raise ConfigError(f"{count} modes were asked for.", advice="Ask for 1 or more.")
        family = self.sketch_.family
        widths = family.upper - family.lower
        if starts is None:
            places = qmc.Sobol(family.columns, scramble=False).random(STARTS)
            starts = family.lower + places * widths
        else:
            starts, _, _ = self._read(starts, reset=False)
        if apart is None:
            apart = (
                family.bandwidth if isinstance(family, StableFamily) else 0.1 * float(np.linalg.norm(widths))
            )
        best_first = starts[np.argsort(-self.sketch_.kernel_sums(starts))]
        tops = [self._climb(start, apart) for start in _apart(best_first, CLIMBS * count, apart)]
        tops.sort(key=lambda top: -top[1])
        kept = _apart(np.array([place for place, _ in tops]), count, apart)
        return kept, self.sketch_.kernel_sums(kept)

    def _climb(self, start: Points, step: float) -> tuple[Points, float]:
        family = self.sketch_.family
        # Towards the middle, so that the simplex stays within the bounds.
        steps = np.where(start > (family.lower + family.upper) / 2, -step, step)
        simplex = np.clip(np.vstack([start, start + np.diag(steps)]), family.lower, family.upper)
        found = minimize(
            lambda place: -self.sketch_.kernel_sums(place[None])[0],
            start,
            method="Nelder-Mead",
            bounds=list(zip(family.lower, family.upper, strict=True)),
            options={
                "initial_simplex": np.clip(simplex, family.lower, family.upper),
                "maxfev": 200 * len(start),
            },
        )
        return found.x, -float(found.fun)


def _apart(places: Points, count: int, distance: float) -> Points:
    """The first places, at most `count`, that are farther than `distance` from all earlier chosen ones."""
    chosen: list[npt.NDArray[np.float64]] = []
    for place in places:
        if all(np.linalg.norm(place - other) > distance for other in chosen):
            chosen.append(place)
        if len(chosen) == count:
            break
    return np.array(chosen)
