"""The noise of a release and its cost: one noisy vector, with the number of records if that is private."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, TypedDict

from hushbid.protocol import ranges
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.intervals import within
from hushbid.protocol.privacy.accounting import (
    ApproximateCost,
    Cost,
    DiscreteGaussianCost,
    epsilon_of,
    gaussian_sigma,
)
from hushbid.protocol.privacy.noise import Draw
from hushbid.protocol.privacy.releases import Neighbours

__all__ = ["COUNT_SHARE", "KmeCalibration", "WantedGuarantee", "calibrate"]

COUNT_SHARE: Final = 0.05
"""Share of the squared sensitivity for a noisy number of records: it raises the noise on the embedding by
2.6 %."""


class WantedGuarantee(TypedDict):
    """A wanted guarantee, as arguments of `calibrate`."""

    neighbours: Neighbours
    epsilon: float
    delta: float


@dataclass(frozen=True, slots=True)
class KmeCalibration:
    """The noise of a release.

    Attributes:
        neighbours: The datasets that the guarantee compares.
        epsilon: ε stated by the accountant for `costs`; at most the wanted one.
        delta: δ.
        draw: Noise of the coordinates, and of the number of records if it is private.
        count_unit: A record's weight in the number's coordinate; 0 if the number is public.
        costs: The costs that a ledger charges.
    """

    neighbours: Neighbours
    epsilon: float
    delta: float
    draw: Draw
    count_unit: int
    costs: tuple[Cost, ...]

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise on a coordinate, in grid units."""
        return math.sqrt(self.draw.variance)


def calibrate(
    *,
    record_norm: float,
    distance: float,
    width: int,
    neighbours: Neighbours,
    epsilon: float,
    delta: float,
) -> KmeCalibration:
    """The least noise with which a sum of vectors of whole numbers is (ε, δ)-differentially private.

    Under ``substitute-one`` the sum changes by the `distance` of two records' vectors at most, and the number
    of records is public. Under ``add-remove-one`` it changes by one record's vector, `record_norm` long; the
    number of records is one more coordinate, in which each counts `count_unit`, so that the whole vector is
    √(record_norm² + count_unit²) long.

    δ > 0: discrete Gaussian noise for that L2 sensitivity, by the analytic profile and the additional cost of
    discrete noise (`hushbid.protocol.privacy.accounting.gaussian_sigma`). KME's classical 8·ln(1.25/δ)/(Nε)²
    is larger, and proved for ε < 1 only. δ = 0: discrete Laplace noise for an L1 sensitivity of √width times
    the L2 one (KME, Remark 4), which is ε-DP on whole numbers.

    Args:
        record_norm: Largest L2 norm of a record's vector, in grid units.
        distance: Largest L2 distance between two records' vectors.
        width: The number of coordinates.
        neighbours: The datasets that the guarantee compares.
        epsilon: Positive.
        delta: In [0, 1).

    Raises:
        ConfigError: A value out of its range, or noise that does not fit into 64 bits.
    """
    if not (within(ranges.Epsilon, epsilon) and within(ranges.PureDelta, delta)):
        raise ConfigError(
            f"A release was to be private at epsilon = {epsilon} and delta = {delta}.",
            advice="Set epsilon to a positive number, and delta to 0 or a small one.",
        )
    neighbours = Neighbours(neighbours)
    unit = 0
    sensitivity = distance
    if neighbours is Neighbours.ADD_REMOVE_ONE:
        unit = max(1, round(record_norm * math.sqrt(COUNT_SHARE / (1.0 - COUNT_SHARE))))
        sensitivity = math.hypot(record_norm, unit)
    values = width + (unit > 0)
    if delta > 0.0:
        sigma = gaussian_sigma(epsilon, delta, sensitivity, 1, values)
        cost: Cost = DiscreteGaussianCost(sensitivity=sensitivity, sigma=sigma, width=values, count=1)
        draw = Draw("discrete-gaussian", sigma, values)
        return KmeCalibration(neighbours, epsilon_of([cost], delta), delta, draw, unit, (cost,))
    changed = math.sqrt(values) * sensitivity * (1.0 + 2.0**-40)
    scale = changed / epsilon
    while changed / scale > epsilon:
        scale = math.nextafter(scale, math.inf)
    pure = ApproximateCost(epsilon=changed / scale, delta=0.0, count=1)
    return KmeCalibration(
        neighbours, pure.epsilon, 0.0, Draw("discrete-laplace", scale, values), unit, (pure,)
    )
