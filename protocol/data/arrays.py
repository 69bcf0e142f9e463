"""NumPy's own formats, ``.npy`` (features only, memory-mapped) and ``.npz``, and arrays in memory."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from hushbid.protocol.data.dataset import DataColumns, Dataset, no_texts
from hushbid.protocol.data.names import listed
from hushbid.protocol.data.outside import IDENTIFIERS, LABELS, fitted, kept_rows
from hushbid.protocol.errors import DataError

__all__ = ["UNREADABLE", "Arrays", "dataset_of_arrays", "load_npy", "load_npz"]

Arrays: TypeAlias = Mapping[str, npt.NDArray[Any]]
"""Arrays by name, as an ``.npz`` has them."""

UNREADABLE: Final = (
    ValueError, EOFError, SyntaxError, KeyError, NotImplementedError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
"""Exceptions of NumPy, zipfile and zlib for a damaged file, or one with Python objects."""


def load_npy(path: Path, columns: DataColumns) -> Dataset:
    """Map the array of a ``.npy`` file into memory, as features.

    Raises:
        DataError: The file cannot be parsed, holds Python objects or is no array of real numbers with two
            axes, or `columns` names anything.
    """
    if columns.features is not None or columns.label is not None or columns.identifier is not None:
        raise DataError(
            f"{path.name}: a .npy file holds features only, so no columns of it can be named.",
            advice="Save features and labels as arrays of one .npz file.",
        )
    try:
        features = np.lib.format.open_memmap(path, mode="r")  # no Python objects can be mapped
    except UNREADABLE:
        raise _damaged(path) from None
    return Dataset.from_arrays(path.name, features)


def load_npz(path: Path, columns: DataColumns) -> Dataset:
    """Read arrays of an ``.npz`` file.

    Instead of an array of features, it may have one for each of the session's columns, by name. These are
    encoded like a table's columns.

    Raises:
        DataError: The file cannot be parsed, an array that `columns` names is missing or holds Python
            objects, or the arrays do not belong together.
    """
    # Opened here, because NumPy leaves a file that is no archive open.
    with path.open("rb") as file:
        try:
            archive = np.load(file, allow_pickle=False)
        except UNREADABLE:
            raise _damaged(path) from None
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise _damaged(path)
        with archive:
            return _dataset(path.name, archive, columns)


def dataset_of_arrays(name: str, arrays: Arrays, columns: DataColumns) -> Dataset:
    """The dataset of arrays in memory, as `load_dataset` makes it of an ``.npz`` file that has them.

    Args:
        name: Whose or which they are, for errors.

    Raises:
        DataError: As `load_npz`.
    """
    return fitted(_dataset(name, arrays, columns), columns)


def _dataset(name: str, arrays: Arrays, columns: DataColumns) -> Dataset:
    names = columns.features or ("features",)
    if len(names) != 1:
        raise DataError(
            f"{name}: {len(names)} feature arrays are named, but an .npz file gives one.",
            advice="Stack the columns into one array of shape (rows, columns).",
        )
    features = _features(name, arrays, columns, names[0])
    labels = _optional(name, arrays, columns.label, "labels")
    labelled = _optional(name, arrays, None, "labelled") if labels is not None else None
    identifiers = _optional(name, arrays, columns.identifier, "identifiers")
    if columns.label_gaps and labelled is None and labels is not None and labels.dtype.kind == "f":
        labelled = ~np.isnan(labels)
    unfit: dict[str, npt.NDArray[np.bool_]] = {}
    if columns.outside == "drop":
        rows = len(features) if features.ndim else 0
        labels, unfit[columns.label or LABELS] = _usable(labels, rows, held=labelled)
        identifiers, bad = _usable(identifiers, rows)
        unfit[columns.identifier or IDENTIFIERS] = bad
        unfit = {column: flags for column, flags in unfit.items() if flags.any()}
    dataset = Dataset.from_arrays(name, features, labels, identifiers, labelled=labelled)
    return kept_rows(dataset, unfit, {}) if unfit else dataset


def _usable(
    values: npt.NDArray[Any] | None, rows: int, *, held: npt.NDArray[np.bool_] | None = None
) -> tuple[npt.NDArray[Any] | None, npt.NDArray[np.bool_]]:
    """Labels or identifiers with a good one in place of each that cannot travel, and where these are.

    Args:
        held: Which rows have one; None: all.
    """
    none: npt.NDArray[np.bool_] = np.zeros(rows, dtype=np.bool_)
    if values is None or values.shape != (rows,) or values.dtype.kind not in "fU":
        return values, none  # all can, or `Dataset.from_arrays` says what is wrong with all
    bad = ~np.isfinite(values) if values.dtype.kind == "f" else no_texts(values)
    if held is not None and held.shape == bad.shape:
        bad &= held
    if bad.all() or not bad.any():
        return values, none
    return np.where(bad, values[int((~bad).argmax())], values), bad


def _features(name: str, arrays: Arrays, columns: DataColumns, features: str) -> npt.NDArray[Any]:
    schema = columns.schema
    if features in arrays or schema is None or not any(column.name in arrays for column in schema.columns):
        return _member(name, arrays, features)
    # A party that reads no table starts without pyarrow.
    from hushbid.protocol.data.frames import as_arrow  # noqa: PLC0415

    each = {column.name: _member(name, arrays, column.name) for column in schema.columns}
    if len({len(array) if array.ndim else -1 for array in each.values()}) > 1:
        raise DataError(
            f"{name}: the arrays of the session's columns have different numbers of rows.",
            advice="Save one entry of each for each row.",
        )
    return schema.encode(as_arrow(each, name), name=name)


def _member(name: str, arrays: Arrays, member: str) -> npt.NDArray[Any]:
    if member not in arrays:
        raise DataError(
            f"{name} has no array {member!r}; it has {listed(list(arrays)) or 'none'}.",
            advice="Name one that it has under `columns` in your own file, or save it with that array.",
        )
    try:
        array: Any = arrays[member]  # of a file it is read now
    except MemoryError:
        raise DataError(
            f"{name}: the array {member!r} is larger than memory, or damaged.",
            advice="Save fewer rows, or features alone as .npy, which is not read whole.",
        ) from None
    except UNREADABLE:
        raise DataError(
            f"{name}: the array {member!r} is damaged, or holds Python objects, which are never loaded.",
            advice="Save it as an array of numbers (or of text, for labels).",
        ) from None
    if not isinstance(array, np.ndarray):  # a member that is not an .npy file comes as bytes
        raise DataError(f"{name}: {member!r} is not an array.", advice="Save the file with numpy.savez.")
    return array


def _optional(name: str, arrays: Arrays, member: str | None, default: str) -> npt.NDArray[Any] | None:
    if member is None:
        return _member(name, arrays, default) if default in arrays else None
    return _member(name, arrays, member)


def _damaged(path: Path) -> DataError:
    return DataError(
        f"{path.name} cannot be read as a NumPy file: it is damaged, not of the format that its name says,"
        " or holds Python objects, which are never loaded.",
        advice="Save it again with numpy.save or numpy.savez.",
    )
