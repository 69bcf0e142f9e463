"""Target label shares for the weights of bought points, applied by the consumer after the delivery.

Labels play no part in the selection, as the curator sees none. Weights are computed from the consumer's own
points and labels, so a balance costs no privacy (docs/privacy.md, "Weights").
"""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from hushbid.consumer.downstream import Labels
from hushbid.protocol.errors import ConfigError, DataError

__all__ = ["BALANCES", "Group", "balanced_groups"]

BALANCES: Final = ("wanted", "equal")
"""The shares of the validation set's labels, or equal shares for all bought labels."""


class Group(NamedTuple):
    """The points of these rows, shape (n,), whose weights have this sum."""

    rows: npt.NDArray[np.intp]
    share: float


def balanced_groups(labels: Labels, balance: str, wanted: Labels | None) -> tuple[Group, ...]:
    """The groups that balance the weights, one for each label.

    Args:
        labels: Labels of the bought points; None where a point has none.
        balance: One of `BALANCES`.
        wanted: The validation set's labels, for "wanted"; every row has one.

    Returns:
        Groups that contain every point once, with shares that add up to 1. Points without a label, or with a
        label that the validation set lacks, get the share 0.

    Raises:
        ConfigError: There is no such balance.
        DataError: No point has a label, a row of the validation set has none, or some of its labels were not
            bought.
    """
    if balance not in BALANCES:
        raise ConfigError(
            f"There is no balance named {balance!r}.", advice=f"There are: {', '.join(BALANCES)}."
        )
    rows: dict[int | float | str | None, list[int]] = {}
    for row, label in enumerate(labels):
        rows.setdefault(label, []).append(row)
    bought = [label for label in rows if label is not None]
    if not bought:
        raise DataError("No point has a label that could be balanced.", advice="Leave --balance out.")
    if balance == "equal":
        shares = dict.fromkeys(bought, 1.0 / len(bought))
    else:
        shares = _shares(wanted)
        if missing := shares.keys() - set(bought):
            raise DataError(
                f"{len(missing)} of the {len(shares)} labels of the validation set were not bought: no "
                "weight gives them their share.",
                advice="Use --balance equal, leave --balance out, or see that labels are written alike.",
            )
    return tuple(
        Group(np.array(found), 0.0 if label is None else shares.get(label, 0.0))
        for label, found in rows.items()
    )


def _shares(wanted: Labels | None) -> dict[int | float | str, float]:
    known = [] if wanted is None else [label for label in wanted if label is not None]
    if wanted is None or len(known) < len(wanted) or not known:
        raise DataError(
            "The validation set has rows without a label, whose shares nobody knows.",
            advice="Name its label column (`--label`), use --balance equal, or leave --balance out.",
        )
    return {label: count / len(known) for label, count in Counter(known).items()}
