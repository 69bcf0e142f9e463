"""The delivered points as a file of the consumer's own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import numpy as np

from consumer.columns import column
from consumer.events import StorePurchases
from protocol.data import read_attributes
from protocol.errors import DataError

__all__ = ["PurchaseFile"]

_NAMES: Final = (("labels", "labelled", "label"), ("identifiers", "identified", "identifier"))
"""Array of values, array of which of them count, and the attribute that both are of."""


class PurchaseFile:
    """Writes the delivered points, but for disputed ones, to an ``.npz`` that the project's loaders read.

    Arrays, one entry per point, in the order of the delivery:

    - ``features`` (n, columns): raw.
    - ``labels`` (n,): int64, uint64, float64 or text, whichever most owners' labels are (`column`); not
      there if no point has one.
    - ``labelled`` (n,): bool; False where the point's label is missing, of another type, or text that is
      too long. Its entry of ``labels`` is then a filler and means nothing.
    - ``identifiers`` and ``identified`` (n,): likewise.
    - ``owners`` (n,): who sold it.
    - ``rounds`` (n,): when it was chosen, from 1.

    What one owner makes of its labels costs the others' nothing. The file is readable by its owner only.

    Args:
        path: Where to write it; an earlier file is replaced as a whole.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.purchases: StorePurchases | None = None
        """What was stored."""

    def store(self, purchases: StorePurchases) -> None:
        """Write the points. One whose attributes are garbled has neither a label nor an identifier.

        Raises:
            DataError: The file cannot be written; the points are in the transcript.
        """
        self.purchases = purchases
        arrays = _arrays(purchases)
        partial = self.path.with_suffix(".partial")
        try:
            descriptor = os.open(partial, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
            with os.fdopen(descriptor, "wb") as stream:
                np.savez(stream, **arrays)
            partial.replace(self.path)
        except OSError as error:
            raise DataError(
                f"{self.path}: the delivered points cannot be written: {error.strerror}.",
                advice="They are kept in the transcript. Make room, or name another state directory.",
            ) from None


def _arrays(purchases: StorePurchases) -> dict[str, Any]:
    kept = [
        (entry.owner, entry.round, entry.candidate)
        for entry in purchases.delivered
        if entry.candidate is not None and not entry.dispute
    ]
    arrays: dict[str, Any] = {
        "features": np.array([candidate.point for _, _, candidate in kept]),
        "owners": np.array([owner for owner, _, _ in kept], dtype=np.str_),
        "rounds": np.array([round_number for _, round_number, _ in kept], dtype=np.int64),
    }
    attributes = [read_attributes(candidate.attributes) for _, _, candidate in kept]
    for values_name, mask_name, attribute in _NAMES:
        values, held = column(
            [getattr(entry, attribute) for entry in attributes], [owner for owner, _, _ in kept]
        )
        arrays[mask_name] = held
        if held.any():
            arrays[values_name] = values
    return arrays
