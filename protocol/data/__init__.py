"""Reading the parties' private data: one file format per module, all behind `load_dataset`.

To add a format, write a function ``(path, columns) -> Dataset`` in a module of its own and name it in
`LOADERS`; ``tests/conformance/test_loaders.py`` then tests it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TypeAlias

from hushbid.protocol.data.arrays import load_npy, load_npz
from hushbid.protocol.data.attributes import read_attributes
from hushbid.protocol.data.dataset import DataColumns, Dataset, check_dataset, check_labels, dataset_digest
from hushbid.protocol.data.feature_file import feature_table
from hushbid.protocol.data.rows import rows_digest, shared_rows
from hushbid.protocol.errors import DataError

__all__ = [
    "LOADERS",
    "DataColumns",
    "Dataset",
    "Loader",
    "check_dataset",
    "check_labels",
    "dataset_digest",
    "feature_table",
    "load_dataset",
    "read_attributes",
    "rows_digest",
    "shared_rows",
]

Loader: TypeAlias = Callable[[Path, DataColumns], Dataset]
"""Reads one file. Raises only DataError, if the file cannot be used."""


def _load_csv(path: Path, columns: DataColumns) -> Dataset:
    # A party that reads no table starts without pyarrow, a sixth of the time that its imports take.
    from hushbid.protocol.data.tables import load_csv  # noqa: PLC0415

    return load_csv(path, columns)


def _load_parquet(path: Path, columns: DataColumns) -> Dataset:
    from hushbid.protocol.data.tables import load_parquet  # noqa: PLC0415

    return load_parquet(path, columns)


LOADERS: Final[Mapping[str, Loader]] = {
    ".npy": load_npy,
    ".npz": load_npz,
    ".csv": _load_csv,
    ".csv.gz": _load_csv,
    ".parquet": _load_parquet,
}
"""The loader of each file ending, in lower case."""


def load_dataset(path: Path, columns: DataColumns) -> Dataset:
    """Read a data file with the loader of its ending.

    Args:
        columns: The arrays (of an ``.npz``) or columns (of a table) to take.

    Returns:
        The dataset, not yet checked against the session's public bounds (`check_dataset`).

    Raises:
        DataError: The file is missing, unreadable, of unknown format, cannot be parsed, or lacks what
            `columns` asks for. The message never contains a value of the file.
    """
    name = path.name.lower()
    suffix = max((known for known in LOADERS if name.endswith(known)), key=len, default=None)
    if suffix is None:
        raise DataError(
            f"The data file {path} is of no known format.",
            advice=f"Give it as one of {', '.join(LOADERS)}.",
        )
    if not path.exists():
        raise DataError(f"The data file {path} does not exist.", advice="Correct the path of the data.")
    if not path.is_file():
        raise DataError(f"The data path {path} is not a file.", advice="Give the path of one data file.")
    if not os.access(path, os.R_OK):
        raise DataError(
            f"The data file {path} cannot be read by this user.", advice="Correct the file's permissions."
        )
    try:
        return LOADERS[suffix](path, columns)
    except OSError as error:
        # Parsers put excerpts of the file into their messages: only the system's own words go on.
        reason = os.strerror(error.errno) if error.errno else "its content is damaged or of another format"
        raise DataError(
            f"The data file {path} cannot be read: {reason}.",
            advice="Check the disk, and save the file again.",
        ) from None
    except MemoryError:
        raise DataError(
            f"The data file {path} does not fit in memory.",
            advice="Save the features as .npy, which is memory-mapped.",
        ) from None
