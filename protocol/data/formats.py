"""The formats of tables and arrays: by which ending each is known, how it is read, and how it is written.

To add one, write a function ``(path, columns) -> pyarrow.Table`` and name it here (docs/contributing.md);
``tests/conformance/test_loaders.py`` then tests it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeAlias

from hushbid.protocol.data.arrays import load_npy, load_npz
from hushbid.protocol.data.dataset import DataColumns, Dataset

__all__ = ["ENDINGS", "LOADERS", "WRITTEN", "Format", "Loader", "format_of"]

Table: TypeAlias = Any
"""A pyarrow.Table: pyarrow has no types of its own to name."""

Loader: TypeAlias = Callable[[Path, DataColumns], Dataset]
"""Reads one file. Raises only DataError, if the file cannot be used."""


@dataclass(frozen=True)
class Format:
    """A format of files.

    Attributes:
        load: Reads a party's data.
        table: Reads the columns of a table, CSV as cells without types; None: the format has arrays.
        write: Writes a table; None: hushbid writes none.
        text: Whether it holds text alone, and no images.
    """

    load: Loader
    table: Callable[[Path, DataColumns], Table] | None = None
    write: Callable[[Table, BinaryIO], object] | None = None
    text: bool = False


# A party that reads no table starts without pyarrow, a sixth of the time that its imports take.


def _csv_table(path: Path, columns: DataColumns) -> Table:
    from hushbid.protocol.data.tables import read_csv  # noqa: PLC0415

    return read_csv(path, columns)


def _parquet_table(path: Path, columns: DataColumns) -> Table:
    from hushbid.protocol.data.tables import read_parquet  # noqa: PLC0415

    return read_parquet(path, columns)


def _loader(table: Callable[[Path, DataColumns], Table]) -> Loader:
    def load(path: Path, columns: DataColumns) -> Dataset:
        from hushbid.protocol.data.tables import dataset_of  # noqa: PLC0415

        return dataset_of(path, table(path, columns), columns)

    return load


def _write_csv(table: Table, stream: BinaryIO) -> None:
    import pyarrow.csv as pacsv  # noqa: PLC0415

    pacsv.write_csv(table, stream)


def _write_parquet(table: Table, stream: BinaryIO) -> None:
    import pyarrow.parquet as pq  # noqa: PLC0415

    pq.write_table(table, stream)


_CSV: Final = Format(_loader(_csv_table), _csv_table, None, text=True)

ENDINGS: Final[Mapping[str, Format]] = {
    ".npy": Format(load_npy),
    ".npz": Format(load_npz),
    ".csv": Format(_loader(_csv_table), _csv_table, _write_csv, text=True),
    ".csv.gz": _CSV,
    ".csv.zst": _CSV,
    ".tsv": _CSV,
    ".tsv.gz": _CSV,
    ".tsv.zst": _CSV,
    ".parquet": Format(_loader(_parquet_table), _parquet_table, _write_parquet),
}
"""The format of each file ending, in lower case."""

LOADERS: Final[Mapping[str, Loader]] = {ending: each.load for ending, each in ENDINGS.items()}
"""The loader of each file ending."""

WRITTEN: Final = tuple(ending for ending, each in ENDINGS.items() if each.write is not None)
"""Endings of the tables that hushbid writes."""


def format_of(path: Path) -> Format | None:
    """The format that a file's ending names; None: no known one."""
    name = path.name.lower()
    ending = max((known for known in ENDINGS if name.endswith(known)), key=len, default=None)
    return None if ending is None else ENDINGS[ending]
