"""The number of points that a regression needs, from public values only."""

from __future__ import annotations

import math
from typing import Final, Literal, TypeAlias

from hushbid.protocol.privacy.releases import Neighbours
from hushbid.race.products import calibrate_products, fewest_points
from hushbid.race.reference import parameter_count
from hushbid.race.release import CHANGED, calibrate

__all__ = ["LARGEST_SHIFT", "MOST_FEATURES", "POINTS_PER_PARAMETER", "SURE", "Method", "least_points"]

Method: TypeAlias = Literal["moments", "sketch"]
"""What a model is fitted to: sums of products, or a sketch."""

MOST_FEATURES: Final = {"moments": 1000, "sketch": 64}
"""Maximum features of a regression. With 64 a sketch's reference has 2,210 parameters, and a fit takes
minutes and 2 GB; time grows with the fourth power of the number of features."""
POINTS_PER_PARAMETER: Final = 30
"""Points per parameter of a reference at ε = 1 below which the mean is as good. Of models of 2 to 8 normal
features half were worse than the mean at 30, and a sixth at 60 (`add-remove-one`, 30 models each)."""
SURE: Final = 4.0
"""Multiple of `least_points` from which a sketch gives no warning. Of ten models of 14 features, on five
kinds of data at ε = 1, eight were no better than the mean with `least_points`, three with twice as many, and
none with four times as many."""
LARGEST_SHIFT: Final = 0.25
"""Maximum shift of a column's mean by a histogram's noise, in half widths of the bounds: about a standard
deviation. With more, single models of 1 to 5 features had several times the mean's error."""


def least_points(
    features: int,
    epsilon: float,
    *,
    neighbours: Neighbours,
    marginals_share: float = 0.2,
    method: Method = "moments",
    delta: float = 0.0,
    steps: int = 33,
) -> int:
    """Number of points below which a regression is no better than the mean, from public values only.

    Of ``moments``: as many as the sums of products need (`fewest_points`), and as many as the histograms
    need: without the columns' scales, products say nothing. A histogram's noise moves the mean of a column
    within ±1 by √(steps/3) times that of a bin, over the number of points: `LARGEST_SHIFT` at most.

    A sketch has at least a row for each parameter of its reference, and noise grows with the number of rows.
    So it needs `POINTS_PER_PARAMETER` points at ε = 1 for each, or twice that if a record changes two cells;
    that is a floor and no promise (`SURE`).

    Args:
        features: The number of features.
        epsilon: ε of the regression.
        neighbours: The datasets that it compares.
        marginals_share: Share of ε for the histograms.
        method: What the model is fitted to.
        delta: δ of the regression; a sketch's number is for 0.
        steps: Bins of a histogram.

    Raises:
        ConfigError: An ε or δ out of its range, or noise that does not fit into 64 bits.
    """
    relation, left = Neighbours(neighbours), (1.0 - marginals_share) * epsilon
    if method == "sketch":
        parameters = CHANGED[relation] * parameter_count(features)
        return math.ceil(POINTS_PER_PARAMETER * parameters / left)
    histograms = calibrate(
        rows=features + 1,
        cells=steps * (features + 1),
        neighbours=relation,
        epsilon=marginals_share * epsilon,
        delta=delta / 2.0,
    )
    products = calibrate_products(features + 2, neighbours=relation, epsilon=left, delta=delta / 2.0)
    for_scales = math.sqrt(histograms.cells.variance * steps / 3.0) / LARGEST_SHIFT
    return max(math.ceil(for_scales), fewest_points(features, products))
