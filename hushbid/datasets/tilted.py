"""A public table dealt out to parties whose distributions differ by a known amount, for experiments.

Rows are placed along the table's first principal component, z, of mean 0 and variance 1. A party with tilt t
has a row with a chance in proportion to exp(t·z): covariate shift, as the label of a row is what it is. The
nearer the owners' tilts are to the consumer's, the more of what is wanted they have.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import pdist

from hushbid.datasets.partition import Partition, Table
from hushbid.protocol.errors import DataError

__all__ = ["FAR", "NEAR", "tilted"]

NEAR: Final = (-0.5, 0.0, 0.5, 1.0, 1.5)
FAR: Final = (-2.0, -1.5, -1.0, -0.5, 0.0)
"""Tilts of the owners; the consumer's is `WANTED`."""
WANTED: Final = 1.5
_SEED_POINTS: Final = 150
_MOST_PAIRS: Final = 1_000


def tilted(
    table: Table,
    tilts: Sequence[float],
    *,
    validation: int,
    test: int,
    owner_points: int,
    generator: np.random.Generator,
) -> Partition:
    """Deal a table out. The seed set is of rows like the table's.

    Args:
        table: At least as many different rows as the consumer and the seed set get, and some for each owner.
        tilts: One for each owner.
        validation, test: Rows of the consumer.
        owner_points: Most rows of an owner.
        generator: Draws all of it.

    Returns:
        Columns scaled to [0, 1] by the table's own smallest and largest values, which are public, with γ by
        the median distance of the seed set's rows.

    Raises:
        DataError: There are too few different rows.
    """
    # Of rows that are alike one is kept: nobody's rows may be in the public seed set.
    _, firsts = np.unique(table.features, axis=0, return_index=True)
    table = table.take(np.sort(firsts))
    if len(table) < validation + test + _SEED_POINTS + 20 * len(tilts):
        raise DataError(
            f"{len(table)} different rows are too few to deal out.", advice="Take a larger table."
        )
    values = table.features.astype(np.float64)
    lower, upper = values.min(axis=0), values.max(axis=0)
    scaled = (values - lower) / np.where(upper > lower, upper - lower, 1.0)
    scores = _first_component(scaled)
    left = np.arange(len(table))

    def drawn(tilt: float, count: int) -> npt.NDArray[np.intp]:
        """So many of the rows that are left, without replacement, by the largest scores with Gumbel noise."""
        nonlocal left
        order = np.argsort(-(tilt * scores[left] + generator.gumbel(size=len(left))), kind="stable")
        chosen, left = left[order[:count]], np.sort(left[order[count:]])
        return chosen

    wanted = generator.permutation(drawn(WANTED, validation + test))
    seeds = drawn(0.0, _SEED_POINTS)
    # Half of what is left is nobody's: were all of it dealt out, the owners together would have it all,
    # whatever their tilts.
    each = min(owner_points, len(left) // (2 * len(tilts)))
    dealt = Table(scaled, table.labels)
    owners = {
        f"owner-{number}": dealt.take(np.sort(drawn(tilt, each)))
        for number, tilt in enumerate(tilts, start=1)
    }
    start = dealt.take(np.sort(seeds))
    return Partition(
        owners=owners,
        validation=dealt.take(wanted[:validation]),
        seed_set=start,
        test=dealt.take(wanted[validation:]),
        columns=scaled.shape[1],
        lower=0.0,
        upper=1.0,
        dtype=scaled.dtype,
        suggested={
            "gamma": 1.0 / float(np.median(pdist(start.features[:_MOST_PAIRS], "sqeuclidean"))),
            "dimension": 140,
            "model": "logistic",
        },
    )


def _first_component(scaled: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Scores of mean 0 and variance 1; of the two directions, that in which the largest column grows."""
    centred = scaled - scaled.mean(axis=0)
    spread = centred.std(axis=0)
    centred = centred / np.where(spread > 0.0, spread, 1.0)
    _, directions = np.linalg.eigh(centred.T @ centred)
    direction = directions[:, -1]
    direction = direction * np.sign(direction[np.abs(direction).argmax()])
    scores = centred @ direction
    return np.asarray(scores / (scores.std() or 1.0))
