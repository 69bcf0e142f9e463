"""The delivered points as a file of the consumer's own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from consumer.events import StorePurchases
from protocol.data import read_attributes
from protocol.errors import DataError

__all__ = ["PurchaseFile"]


class PurchaseFile:
    """Writes the delivered points to an ``.npz`` that the project's loaders read.

    Arrays: ``features`` (n, columns), ``labels`` and ``identifiers`` (n,) where every point has one,
    ``owners`` (n,) and ``rounds`` (n,). The file is readable by its owner only.

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
        kept = [entry for row, entry in enumerate(purchases.purchases) if row not in purchases.disputed]
        attributes = [read_attributes(entry.candidate.attributes) for entry in kept]
        arrays: dict[str, Any] = {
            "features": np.array([entry.candidate.point for entry in kept]),
            "owners": np.array([entry.owner for entry in kept], dtype=np.str_),
            "rounds": np.array([entry.round for entry in kept], dtype=np.int64),
        }
        arrays.update(_column("labels", [entry.label for entry in attributes]))
        arrays.update(_column("identifiers", [entry.identifier for entry in attributes]))
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


def _column(name: str, values: Sequence[int | float | str | None]) -> dict[str, Any]:
    """The values as an array of one type, or nothing where some point has none."""
    if not values or any(value is None for value in values):
        return {}
    if len({type(value) for value in values}) > 1:
        values = [str(value) for value in values]
    return {name: np.array(values)}
