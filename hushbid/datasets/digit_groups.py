"""How DPDS appendix G deals handwritten digits out to owners and to the consumer."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hushbid.datasets.partition import Table, limited

__all__ = ["DIGIT_GROUPS", "WANTED_DIGITS", "deal_to_owners", "thin_second_digit"]

DIGIT_GROUPS: Final = ((0, 1), (3, 4), (5, 6), (7, 8), (9, 2))
"""The digits of each owner."""

WANTED_DIGITS: Final = (3, 4)
"""The digits of the consumer, at a ratio of 0.7 to 0.3."""
_SHARES: Final = (0.7, 0.3)


def deal_to_owners(
    table: Table,
    rows: npt.NDArray[np.intp],
    groups: tuple[tuple[int, ...], ...],
    most: int | None,
    generator: np.random.Generator,
) -> dict[str, Table]:
    """Each owner's part of the rows: those of its digits, at most `most`; owners are "digits-01" etc."""
    owners = {}
    for group in groups:
        own = rows[np.isin(table.labels[rows], group)]
        owners["digits-" + "".join(map(str, group))] = table.take(limited(own, most, generator))
    return owners


def thin_second_digit(
    rows: npt.NDArray[np.intp], labels: npt.NDArray[Any], generator: np.random.Generator
) -> npt.NDArray[np.intp]:
    """All rows of the first wanted digit, and as many of the second as make it 0.7 to 0.3; in order."""
    first = rows[labels[rows] == WANTED_DIGITS[0]]
    second = rows[labels[rows] == WANTED_DIGITS[1]]
    count = min(len(second), round(len(first) * _SHARES[1] / _SHARES[0]))
    return np.sort(np.concatenate([first, generator.choice(second, size=count, replace=False)]))
