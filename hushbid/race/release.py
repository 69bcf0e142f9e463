"""The privacy of a sketch: the noise of its cells and of its size, and their costs (RACE §3).

Adding or removing a record changes one cell of each of R rows by one: an L1 sensitivity of R (Theorem 3).
Substituting one changes up to two cells of each row, 2R in all. The paper's Laplace(R/ε) is right for the
first relation only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, get_args

from hushbid.protocol import ranges
from hushbid.protocol.errors import ConfigError, LocalProtocolError
from hushbid.protocol.intervals import within
from hushbid.protocol.privacy.accounting import (
    ApproximateCost,
    Cost,
    DiscreteGaussianCost,
    epsilon_of,
    gaussian_sigma,
)
from hushbid.protocol.privacy.accounting.accountant import pure_epsilon
from hushbid.protocol.privacy.noise import Draw, NoiseSource
from hushbid.protocol.privacy.releases import Neighbours

__all__ = [
    "CHANGED",
    "PoorModelWarning",
    "RaceCalibration",
    "Records",
    "SketchPrivacy",
    "calibrate",
    "check_noise",
    "default_size_share",
    "optimal_rows",
    "stated_epsilon",
]


class PoorModelWarning(UserWarning):
    """A private model is no better than the largest class, or the mean."""


Records = Literal["disjoint", "shared"]
"""Whether one record can be in both of two datasets."""

CHANGED: Final = {Neighbours.ADD_REMOVE_ONE: 1, Neighbours.SUBSTITUTE_ONE: 2}
"""Maximum number of cells of a row that differ by one between neighbours."""


@dataclass(frozen=True, slots=True)
class SketchPrivacy:
    """The guarantee for the released counts and size of a sketch together.

    Attributes:
        neighbours: The datasets that it compares.
        epsilon, delta: The accountant's statement for `costs`, which a ledger charges.
        cells: The draws on the cells: one, or one for each merged sketch.
        sizes: The draws on the size; none if it is public.
        sources: Names of the noise sources, sorted.
        protects: Whether all noise came from protecting sources; otherwise nothing here holds.
    """

    neighbours: Neighbours
    epsilon: float
    delta: float
    costs: tuple[Cost, ...]
    cells: tuple[Draw, ...]
    sizes: tuple[Draw, ...]
    sources: tuple[str, ...]
    protects: bool

    @property
    def cell_variance(self) -> float:
        """Variance of the noise on a cell."""
        return math.fsum(draw.variance for draw in self.cells)

    @property
    def size_variance(self) -> float:
        """Variance of the noise on the size; 0 if it is public."""
        return math.fsum(draw.variance for draw in self.sizes)

    @property
    def is_laplace(self) -> bool:
        """Whether all noise on cells is Laplace noise, which a median averages better than a mean."""
        return all(draw.distribution == "discrete-laplace" for draw in self.cells)

    def merged(self, other: SketchPrivacy, records: Records) -> SketchPrivacy:
        """The guarantee for the sum of two sketches, and for both of them.

        Args:
            other: The privacy of the other sketch, with independent noise.
            records: ``disjoint``: a record is in one of the datasets only, and the larger ε holds (parallel
                composition). ``shared``: it may be in both, and costs add up.

        Raises:
            ConfigError: Different neighbour relations, or another value of `records`.
        """
        if self.neighbours != other.neighbours:
            raise ConfigError(
                f"Sketches that are private under {self.neighbours} and under {other.neighbours} were to be "
                "merged.",
                advice="Merge sketches of one neighbour relation.",
            )
        if records not in get_args(Records):
            raise ConfigError(
                f"Sketches were to be merged of records {records!r}.",
                advice='Say "disjoint" if no record is in both datasets, and "shared" if one may be.',
            )
        if records == "shared":
            costs = (*self.costs, *other.costs)
            delta = self.delta + other.delta
        elif self.costs == other.costs:
            costs, delta = self.costs, self.delta
        else:
            delta = max(self.delta, other.delta)
            costs = (ApproximateCost(epsilon=max(self.epsilon, other.epsilon), delta=delta, count=1),)
        return replace(
            self,
            epsilon=stated_epsilon(costs, delta),
            delta=delta,
            costs=costs,
            cells=self.cells + other.cells,
            sizes=self.sizes + other.sizes,
            sources=tuple(sorted({*self.sources, *other.sources})),
            protects=self.protects and other.protects,
        )


@dataclass(frozen=True, slots=True)
class RaceCalibration:
    """The noise of a sketch, which follows from public values only.

    Attributes:
        neighbours, delta: The datasets that the guarantee compares, and its δ.
        cells, sizes: Noise of all cells, and of the sizes; None if they are public.
        costs: Costs of both.
    """

    neighbours: Neighbours
    delta: float
    cells: Draw
    sizes: Draw | None
    costs: tuple[Cost, ...]

    def privacy(self, source: NoiseSource) -> SketchPrivacy:
        """The guarantee with noise from `source`."""
        return SketchPrivacy(
            neighbours=self.neighbours,
            epsilon=stated_epsilon(self.costs, self.delta),
            delta=self.delta,
            costs=self.costs,
            cells=(self.cells,),
            sizes=() if self.sizes is None else (self.sizes,),
            sources=(source.name,),
            protects=source.protects,
        )


def calibrate(
    *,
    rows: int,
    cells: int,
    sizes: int = 1,
    neighbours: Neighbours,
    epsilon: float,
    delta: float = 0.0,
    size_share: float | None = None,
) -> RaceCalibration:
    """The noise with which a sketch, or one for each of several classes, is (ε, δ)-differentially private.

    With δ = 0 a cell has discrete Laplace noise of scale R/ε (2R/ε under substitution): a count that moves by
    one is exactly randomised response of 1/scale. With δ > 0 it has that or discrete Gaussian noise for the
    L2 sensitivity √R (√(2R)), whichever has the smaller variance.

    The size of one sketch is public under substitution. Otherwise sizes are released with discrete Laplace
    noise of their own, for a share of ε: adding up all noisy cells, as the paper does, costs far more.

    Args:
        rows: R.
        cells: Cells of all rows and all classes.
        sizes: Number of classes; 1 for a single sketch. A record has one class; a substitution may change it.
            0: sizes are public or were released before, and all of ε goes to the cells.
        neighbours: The datasets that the guarantee compares.
        epsilon: Positive.
        delta: In [0, 1).
        size_share: Share of ε for the sizes, in (0, 1); None: `default_size_share`.

    Raises:
        ConfigError: A value out of its range.
    """
    if not (within(ranges.Epsilon, epsilon) and within(ranges.PureDelta, delta)):
        raise ConfigError(
            f"A sketch was to be private at epsilon = {epsilon} and delta = {delta}.",
            advice="Set epsilon to a positive number, and delta to 0 or a small one.",
        )
    epsilon, delta, neighbours = float(epsilon), float(delta), Neighbours(neighbours)
    changed = CHANGED[neighbours]
    share = 0.0
    if sizes > 1 or (sizes == 1 and neighbours is Neighbours.ADD_REMOVE_ONE):
        share = default_size_share(rows) if size_share is None else size_share
        if not 0.0 < share < 1.0:
            raise ConfigError(f"The size's share of epsilon is {share}.", advice="Set it between 0 and 1.")
    draw, cost = _cell_noise(changed * rows, cells, (1.0 - share) * epsilon, delta)
    if not share:
        return RaceCalibration(neighbours, delta, draw, None, (cost,))
    # The rest, so that the two together do not exceed ε by a rounding error.
    size_epsilon = epsilon - (1.0 - share) * epsilon
    if not size_epsilon > 0.0:
        raise ConfigError(
            f"The size's share of epsilon, {share}, leaves nothing of it for the size.",
            advice="Set a larger share.",
        )
    size_draw = Draw("discrete-laplace", _scale(changed, size_epsilon), sizes)
    size_cost = ApproximateCost(epsilon=1.0 / size_draw.scale, delta=0.0, count=changed)
    return RaceCalibration(neighbours, delta, draw, size_draw, (cost, size_cost))


def check_noise(calibration: RaceCalibration | None, source: NoiseSource | None) -> None:
    """Raise a LocalProtocolError if only one of the two is given, which would release exact counts."""
    if (calibration is None) is not (source is None):
        raise LocalProtocolError("Counts were to be released with half of what makes them private.")


def default_size_share(rows: int) -> float:
    """1/(1 + 2·R^(1/3)): the share of ε for the size.

    A density k is a kernel sum with noise of variance 2R/((1 - s)ε)² over a size with noise of variance
    2/(sε)². The relative error is least at s/(1 - s) = (k²/R)^(1/3), here for a density of about 0.35.
    """
    return 1.0 / (1.0 + 2.0 * math.cbrt(rows))


def optimal_rows(size: float, epsilon: float, *, neighbours: Neighbours) -> int:
    """R with about the smallest error of a kernel sum, at least 1 (RACE, Corollary 1).

    The mean of R rows has the variance V/R + 2s²R/ε², with V that of one row without noise and s = 1 or 2
    cells of a row that a record changes: least at R = √(V/2)·ε/s. Theorem 2 has (Σ √k)² for V, which follows
    from the data. It is public that a row's count is between 0 and N: V is at most N²/4, and N²/12 for a
    uniform count, which is assumed here: R = N·ε/(√24·s). The optimum is flat.

    Args:
        size: N, public or released.
        epsilon: ε of the cells, δ = 0.
        neighbours: The datasets that it compares.
    """
    return max(1, round(size * epsilon / (math.sqrt(24.0) * CHANGED[Neighbours(neighbours)])))


def stated_epsilon(costs: Sequence[Cost], delta: float) -> float:
    """ε of costs at δ; with δ = 0 pure ε, which is infinite if a cost has none."""
    if delta > 0.0:
        return epsilon_of(costs, delta)
    return math.fsum(cost.count * pure_epsilon(cost) for cost in costs)


def _cell_noise(changed: int, cells: int, epsilon: float, delta: float) -> tuple[Draw, Cost]:
    """Noise and cost of cells, `changed` of which change by one."""
    laplace = Draw("discrete-laplace", _scale(changed, epsilon), cells)
    if delta > 0.0:
        sigma = gaussian_sigma(epsilon, delta, math.sqrt(changed), 1, cells)
        gaussian = Draw("discrete-gaussian", sigma, cells)
        if gaussian.variance < laplace.variance:
            return gaussian, DiscreteGaussianCost(
                sensitivity=math.sqrt(changed), sigma=sigma, width=cells, count=1
            )
    return laplace, ApproximateCost(epsilon=1.0 / laplace.scale, delta=0.0, count=changed)


def _scale(changed: int, epsilon: float) -> float:
    """The least float64 scale at which `changed` changes by one cost at most ε in the accountant's sum."""
    scale = changed / epsilon
    if not math.isfinite(scale):
        raise ConfigError(f"No noise is large enough for epsilon = {epsilon}.", advice="Raise epsilon.")
    while changed * (1.0 / scale) > epsilon:
        scale = math.nextafter(scale, math.inf)
    return scale
