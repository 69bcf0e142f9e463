"""Reading the parties' private data: all formats (`hushbid.protocol.data.formats`) behind `load_dataset`."""

from __future__ import annotations

import os
from pathlib import Path

from hushbid.protocol.data.attributes import read_attributes
from hushbid.protocol.data.checks import check_dataset, check_labels
from hushbid.protocol.data.dataset import DataColumns, Dataset, dataset_digest
from hushbid.protocol.data.feature_file import feature_table
from hushbid.protocol.data.formats import LOADERS, Loader, format_of
from hushbid.protocol.data.outside import fitted
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
    known = format_of(path)
    if known is None:
        raise DataError(
            f"The data file {path} is of no known format.",
            advice=f"Give it as one of {', '.join(LOADERS)}.",
        )
    if not path.exists():
        raise DataError(f"The data file {path} does not exist.", advice="Correct the path of the data.")
    if not path.is_file() and not (path.is_dir() and path.name.lower().endswith(".parquet")):
        raise DataError(f"The data path {path} is not a file.", advice="Give the path of one data file.")
    if not os.access(path, os.R_OK):
        raise DataError(
            f"The data file {path} cannot be read by this user.", advice="Correct the file's permissions."
        )
    try:
        return fitted(known.load(path, columns), columns)
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
