"""Hashing a dataset chunk by chunk, into memory or into a memory-mapped file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hushbid.protocol import platform
from hushbid.protocol.data.dataset import Dataset, row_chunks
from hushbid.protocol.errors import DataError
from hushbid.protocol.space.grid import Features
from hushbid.protocol.space.labels import Labels, one_each
from hushbid.protocol.space.mapped import let_go

__all__ = ["feature_table", "room_for_features"]


def feature_table(
    dataset: Dataset,
    hash: Callable[[npt.NDArray[Any], Labels], Features],
    dimension: int,
    *,
    scratch: Path | None,
    memory_limit: int,
    progress: Callable[[int, int], object] | None = None,
) -> Features:
    """φ of every row: read-only int16 of shape (n, d).

    Args:
        dataset: Read chunk by chunk, so it may be memory-mapped.
        hash: The feature map: raw points, shape (k, c), and their labels, None where one has none, to
            features, shape (k, d).
        scratch: Directory for features that do not fit in memory. Only this user can read its file, which has
            no name once it is open, and so disappears with the process.
        memory_limit: Most bytes of features to hold in memory.
        progress: Called with the number of hashed rows and of all rows.

    Raises:
        DataError: The features fit neither in memory nor in a scratch directory.
    """
    table = room_for_features(
        dataset.name, (len(dataset), dimension), scratch=scratch, memory_limit=memory_limit
    )
    labels = dataset.known
    for start, stop in row_chunks(dataset.features):
        known = one_each(None if labels is None else labels[start:stop], stop - start)
        table[start:stop] = hash(dataset.features[start:stop], known)
        let_go(dataset.features)
        let_go(table)
        if progress is not None:
            progress(stop, len(dataset))
    table.setflags(write=False)
    return table


def room_for_features(
    name: str, shape: tuple[int, int], *, scratch: Path | None, memory_limit: int
) -> Features:
    """An int16 table of that shape to write features to, in memory or in a file of `scratch`.

    Args:
        name: What the features are of, for errors.
        scratch: As `feature_table` takes it.
        memory_limit: Likewise.

    Raises:
        DataError: The features fit neither in memory nor in a scratch directory.
    """
    size = shape[0] * shape[1] * np.dtype(np.int16).itemsize
    if size <= memory_limit:
        return np.empty(shape, dtype=np.int16)
    if scratch is None:
        raise DataError(
            f"{name}: the features take {size} bytes, more than the {memory_limit} allowed in"
            " memory, and there is no scratch directory for them.",
            advice="Allow more memory (`memory_limit`) in the party's file.",
        )
    return _unnamed_file(name, scratch, shape, size)


def _unnamed_file(name: str, scratch: Path, shape: tuple[int, int], size: int) -> Features:
    path = scratch / f".features-{os.getpid()}"
    try:
        with os.fdopen(platform.unnamed_file(path, size), "r+b") as file:
            return np.memmap(file, dtype=np.int16, mode="r+", shape=shape)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else "input/output error"
        raise DataError(
            f"{name}: the features ({size} bytes) do not go into the scratch directory {scratch}: {reason}.",
            advice="Free space there, or allow more memory (`memory_limit`) in the party's file.",
        ) from None
