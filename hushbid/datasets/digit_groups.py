"""How DPDS appendix G deals handwritten digits out to owners and to the consumer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hushbid.datasets.partition import Partition, PartitionOptions, Table, limited

__all__ = ["DIGIT_GROUPS", "WANTED_DIGITS", "deal_digits"]

DIGIT_GROUPS: Final = ((0, 1), (3, 4), (5, 6), (7, 8), (9, 2))
"""The digits of each owner."""

WANTED_DIGITS: Final = (3, 4)
"""The digits of the consumer, at a ratio of 0.7 to 0.3."""
_SHARES: Final = (0.7, 0.3)


def deal_digits(
    table: Table,
    kept: npt.NDArray[np.intp],
    held_out: npt.NDArray[np.intp],
    generator: np.random.Generator,
    options: PartitionOptions,
    *,
    validation: Callable[[npt.NDArray[Any]], npt.NDArray[np.bool_]],
    upper: float,
    suggested: dict[str, float | int | str],
) -> Partition:
    """Deal images out: owners hold the kept rows, by `DIGIT_GROUPS`, and other sets are of held-out rows.

    Images of wanted digits, at 0.7 to 0.3, are D_v and the test set; the seed set is drawn from the other
    digits.

    Args:
        table, kept, held_out: All images, and the two kinds of rows.
        generator: Draws everything random.
        options: See `PartitionOptions`.
        validation: Which of the wanted images are in D_v, from their labels.
        upper, suggested: As `Partition`.
    """
    wanted = _thin_second_digit(held_out, table.labels, generator)
    in_validation = validation(table.labels[wanted])
    others = held_out[~np.isin(table.labels[held_out], WANTED_DIGITS)]
    seed_set = table.take(limited(others, options.seed_points, generator))
    owners = {}
    for group in DIGIT_GROUPS:
        own = kept[np.isin(table.labels[kept], group)]
        name = "digits-" + "".join(map(str, group))
        owners[name] = table.take(limited(own, options.owner_points, generator))
    return Partition(
        owners=owners,
        validation=table.take(wanted[in_validation]),
        seed_set=seed_set,
        test=table.take(wanted[~in_validation]),
        columns=table.features.shape[1],
        lower=0.0,
        upper=upper,
        dtype=table.features.dtype,
        suggested=suggested,
    )


def _thin_second_digit(
    rows: npt.NDArray[np.intp], labels: npt.NDArray[Any], generator: np.random.Generator
) -> npt.NDArray[np.intp]:
    """All rows of the first wanted digit, and as many of the second as give 0.7 to 0.3; in order."""
    first = rows[labels[rows] == WANTED_DIGITS[0]]
    second = rows[labels[rows] == WANTED_DIGITS[1]]
    count = min(len(second), round(len(first) * _SHARES[1] / _SHARES[0]))
    return np.sort(np.concatenate([first, generator.choice(second, size=count, replace=False)]))
