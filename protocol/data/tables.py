"""Tables as datasets: the features, the label and the identifier of a CSV or Parquet file.

A session's schema says what a column's cells are. Where there is none, features are the columns that hold
numbers in every row. Messages name columns as the party's configuration does, or as the file does if its
names cannot be a row of data: without a header, the first row's values are taken for names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hushbid.protocol import limits
from hushbid.protocol.data.attribute_columns import attribute, first_of, is_text, type_name
from hushbid.protocol.data.cells import attribute_of, by_values, flags_of, numbers_of, without_words
from hushbid.protocol.data.column import GAP_WORDS
from hushbid.protocol.data.csv_files import UNPARSABLE, Source, damaged, read_cells, source_of
from hushbid.protocol.data.dataset import GAP_ADVICE, DataColumns, Dataset, Filled
from hushbid.protocol.data.encoding import plain_types
from hushbid.protocol.data.names import are_header, feature_column, found, is_index, is_number, listed
from hushbid.protocol.data.outside import beyond, kept_rows, none_of, over_room, settled
from hushbid.protocol.data.schema import Schema
from hushbid.protocol.data.table_faults import Flags, check_present, refusal
from hushbid.protocol.errors import DataError

__all__ = ["dataset_of", "has_codes", "read_csv", "read_parquet", "typed_by_values"]

_NUMBER: Final = r"^\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*$"
_CODE: Final = r"^\s*[-+]?0\d"
_NO_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"
"""The folder of rows without a value."""
_WORD: Final = ", counted from 0, is not a number)"

Table: TypeAlias = Any
Column: TypeAlias = Any
"""A pyarrow.Table and a pyarrow.ChunkedArray: pyarrow has no types of its own to name."""


def read_csv(path: Path, columns: DataColumns) -> Table:
    """The cells of a CSV file whose first line names its columns.

    Raises:
        DataError: The file is empty, has no header, or a line has another number of cells than the header; or
            the schema has images, which text cannot hold.
        OSError: It cannot be opened.
    """
    schema = columns.schema
    if schema is not None and schema.images:
        raise DataError(
            f"{path.name} is CSV, which holds no images, and column {schema.images[0]!r} has some.",
            advice="Give the table as Parquet, or as .npz with an array for each column.",
        )
    numeric = None
    if schema is not None:
        numeric = {column.name for column in schema.columns if column.kind in ("number", "integer")}
    table = read_cells(path, columns.dialect, wanted=columns.used, numeric=numeric)
    there = bool(columns.used) and columns.used.issubset(table.column_names)
    if not there and all(is_number(name) for name in table.column_names):
        raise DataError(
            f"{path.name} has numbers for column names, so its header is missing.",
            advice="Put the columns' names into the first line.",
        )
    return table


def typed_by_values(table: Table, *, codes: bool = False) -> Table:
    """A table of cells with the types that all cells of a column have; any other table as it is.

    Args:
        codes: Whether columns stay text that have codes (`has_codes`).
    """
    source = source_of(table)
    if source is None:
        return table
    typed = []
    for cells in table.columns:
        if codes and has_codes(cells):
            typed.append(without_words(cells, GAP_WORDS))
        else:
            typed.append(by_values(cells, decimal=source.dialect.decimal or "."))
    return pa.Table.from_arrays(typed, names=table.column_names)


def has_codes(cells: Column) -> bool:
    """Whether a number in text has a zero before it, as codes have."""
    return pa.types.is_string(cells.type) and bool(pc.any(pc.match_substring_regex(cells, _CODE)).as_py())


def read_parquet(path: Path, columns: DataColumns) -> Table:
    """The columns of a Parquet file, or of all Parquet files of a directory, in the order of their names.

    Folders such as ``year=2024`` are columns, too, as Hive and Spark write them.

    Raises:
        DataError: It cannot be parsed; or the files differ in their columns.
        OSError: It cannot be opened.
    """
    files = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
    parts = [_partition(each.relative_to(path).parts[:-1]) if path.is_dir() else {} for each in files]
    if not files or any(each is None or [*each] != [*(parts[0] or {})] for each in parts):
        raise DataError(
            f"{path.name} is a directory "
            + (
                "whose folders are no columns, such as year=2024, all of the same names."
                if files
                else "without Parquet files."
            ),
            advice="Write the table as one Parquet file, or as several in one directory.",
        )
    wanted, tables, of_folders = columns.used, [], [*(parts[0] or {})]
    own: set[str] = set()
    for each, values in zip(files, parts, strict=True):
        try:
            file = pq.ParquetFile(each)
            there = file.schema_arrow.names
            own.update(there)
            if columns.schema is not None:
                check_present(columns.schema.names, [*there, *of_folders], each.name)
            names = [name for name in there if name in wanted] if wanted else None
            read = file.read(columns=names)
            read.validate(full=True)  # text that is none, which is only noticed where it is looked at
            table = plain_types(read)
        except (*UNPARSABLE, KeyError):
            raise damaged(each, "Parquet") from None
        for name, value in (values or {}).items():
            if name not in there and (not wanted or name in wanted):
                table = table.append_column(name, pa.array([value] * len(table), pa.string()))
        tables.append(table)
    try:
        whole = tables[0] if len(tables) == 1 else pa.concat_tables(tables)
        return _typed_folders(whole, [name for name in of_folders if name not in own], columns)
    except pa.ArrowException:
        raise DataError(
            f"{path.name}: the Parquet files of the directory have columns of different names or types.",
            advice="Write them with one schema, or as one file.",
        ) from None


def _partition(folders: Sequence[str]) -> dict[str, str | None] | None:
    """What folders say of the rows in them, by column; None: one of them says nothing."""
    found: dict[str, str | None] = {}
    for folder in folders:
        name, equals, value = folder.partition("=")
        if not (name and equals) or name in found:
            return None
        found[_unescaped(name)] = None if value == _NO_PARTITION else _unescaped(value)
    return found


def _unescaped(text: str) -> str:
    """The text with its own signs in place of ``%`` and hexadecimal digits, which folders' names have."""
    escaped = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
    return escaped.sub(lambda each: bytes.fromhex(each[0].replace("%", "")).decode(errors="replace"), text)


def _typed_folders(table: Table, folders: Sequence[str], columns: DataColumns) -> Table:
    """The table with columns of folders in the types that CSV's cells would have: folders are text, too."""
    kinds = {} if columns.schema is None else {each.name: each.kind for each in columns.schema.columns}
    for name in folders:
        place = table.column_names.index(name) if table.column_names.count(name) == 1 else -1
        if place < 0 or not pa.types.is_string(table.column(place).type):
            continue
        cells: Any = table.column(place)
        if name in (columns.label, columns.identifier):
            label = name == columns.label
            kind = columns.label_kind if label else columns.identifier_kind
            typed = attribute_of(cells, kind, label=label)
            cells = cells if isinstance(typed, tuple) else typed
        elif kinds.get(name) in (None, "number", "integer", "boolean"):
            cells = by_values(cells)
        table = table.set_column(place, name, cells)
    return table


def dataset_of(path: Path, table: Table, columns: DataColumns) -> Dataset:
    """The dataset of a table that was read from a file.

    Raises:
        DataError: There are no rows; a column is not there or several times; a feature, a label or an
            identifier is missing or of another type.
    """
    names: list[str] = table.column_names
    if table.num_rows == 0:
        raise DataError(f"{path.name} holds no rows.", advice="Give a file with at least one row.")
    if columns.schema is not None:
        return _by_schema(path, table, columns, columns.schema)
    _check_once(path, columns.features or names, names)
    source = source_of(table)
    cells, table = table, typed_by_values(table)
    left_out: tuple[str, ...] = ()
    if columns.features is None:
        aside = {columns.label, columns.identifier}
        chosen = [
            name
            for name in names
            if name not in aside and not is_index(name) and _may_be_feature(table.column(name).type)
        ]
        if are_header(names):
            left_out = tuple(
                _why_left_out(name, table.column(name)) for name in names if name not in {*aside, *chosen}
            )
        if not chosen:
            words = [each for each in left_out if each.endswith(_WORD)]
            raise DataError(
                f"{path.name} has no numeric column; {found(names)}"
                + (f". Among its numbers stands a word: {words[0]}." if words else "."),
                advice="Name the feature columns.",
            )
    else:
        chosen = list(columns.features)
        if twice := sorted({name for name in chosen if chosen.count(name) > 1}):
            raise DataError(
                f"{path.name}: feature columns are named twice: {', '.join(twice)}.",
                advice="Name each once: twice, it would count double.",
            )
    if len(chosen) > limits.MAX_COLUMNS:
        raise DataError(
            f"{path.name} has {len(chosen)} feature columns, more than {limits.MAX_COLUMNS}.",
            advice="Name the feature columns to use.",
        )
    for name in (*chosen, columns.label, columns.identifier):
        _check_there(path, name, names)
    shown = tuple(chosen) if columns.features is not None or are_header(names) else None
    unfit = {}
    if columns.outside == "drop":
        unfit = {
            feature_column(index, shown): flags
            for index, name in enumerate(chosen)
            if (flags := _no_numbers(cells.column(name), table.column(name), source)).any()
        }
    kind = np.dtype(np.float64) if source is not None and columns.fractions else None
    features = _features(path, table, cells, chosen, shown, unfit, kind)
    return _with_attributes(
        path,
        cells,
        columns,
        features,
        unfit,
        feature_names=shown,
        left_out=left_out,
        notes=(source.said,) if source is not None and source.said else (),
    )


def _by_schema(path: Path, table: Any, columns: DataColumns, schema: Schema) -> Dataset:
    if columns.features is not None:
        raise DataError(
            f"{path.name}: feature columns are named, and the session's columns say which they are.",
            advice="Leave `features` out.",
        )
    for name in (columns.label, columns.identifier):
        _check_there(path, name, table.column_names)
    source = source_of(table)
    notes = (source.said,) if source is not None and source.said else ()
    gaps: dict[str, int] = {}
    encoded, faults = schema.fitted(table, gaps)
    unfit: dict[str, Flags] = {}
    clipped: dict[str, int] = {}
    if faults and columns.outside != "refuse":
        unfit, faults, clipped = settled(encoded, faults, schema, drop=columns.outside == "drop")
    if faults:
        _ = _attributes(path, table, columns, None)  # whose error goes first
        raise refusal(faults, path.name, table.column_names, source)
    dataset = _with_attributes(path, table, columns, encoded, unfit, notes=notes)
    dataset = kept_rows(dataset, {}, clipped) if clipped else dataset
    if not gaps:
        return dataset
    values = {column.name: column.written()["missing"] for column in schema.columns if column.name in gaps}
    filled = {name: Filled(count, values[name]) for name, count in gaps.items()}
    return replace(dataset, changes=replace(dataset.changed, filled=filled))


def _with_attributes(
    path: Path,
    table: Table,
    columns: DataColumns,
    features: npt.NDArray[Any],
    unfit: dict[str, Flags],
    **about: Any,
) -> Dataset:
    """The dataset of a table with these features, without rows that are unfit.

    What a row's label says may decide in which type all others are read. So they are read again without those
    that are left out, until none is: what is kept is then what it is without them.

    Args:
        unfit: Which rows have no features, by column; rows that are left out for another reason are added.
        about: What else a dataset has.

    Raises:
        DataError: A label or an identifier cannot be used, or no row is left.
    """
    if columns.outside != "drop":
        label, labelled, identifier, _ = _attributes(path, table, columns, None)
        return Dataset.from_arrays(path.name, features, label, identifier, labelled=labelled, **about)
    over = np.zeros(len(features), dtype=np.bool_)
    while True:
        rows = none_of(unfit, len(features)) & ~over
        label, labelled, identifier, found = _attributes(path, table, columns, rows)
        dataset = Dataset.from_arrays(path.name, features, label, identifier, labelled=labelled, **about)
        more = [*found.items(), *beyond(dataset, columns).items()]
        if not any((flags & rows).any() for _, flags in more):
            if (last := over_room(rows, columns)).any():
                over |= last
                continue
            return kept_rows(dataset, unfit, {}, over=over) if unfit or over.any() else dataset
        for name, flags in more:
            if (flags & rows).any():
                unfit[name] = unfit.get(name, False) | (flags & rows)


def _attributes(
    path: Path, table: Table, columns: DataColumns, rows: Flags | None
) -> tuple[npt.NDArray[Any] | None, Flags | None, npt.NDArray[Any] | None, dict[str, Flags]]:
    """Labels, which rows have one (None: all), identifiers, and the rows that are unfit, by column."""
    label = labelled = identifier = None
    unfit: dict[str, Flags] = {}
    if columns.label is not None:
        read = attribute(table, columns.label, path.name, columns, rows=rows)
        label, labelled, unfit[columns.label] = read
    if columns.identifier is not None:
        read = attribute(table, columns.identifier, path.name, columns, identifier=True, rows=rows)
        identifier, _, bad = read
        unfit[columns.identifier] = unfit.get(columns.identifier, False) | bad
    return label, labelled, identifier, unfit


def _no_numbers(cells: Column, typed: Column, source: Source | None) -> Flags:
    """Rows whose feature is a gap or no number."""
    if source is not None and pa.types.is_string(typed.type):
        found = numbers_of(without_words(cells, GAP_WORDS), decimal=source.dialect.decimal or ".")
        return np.isnan(found.values) | found.inexact
    return flags_of(pc.is_null(typed, nan_is_null=True))


def _features(
    path: Path,
    table: Table,
    cells: Table,
    chosen: Sequence[str],
    shown: Sequence[str] | None,
    unfit: Mapping[str, Flags],
    dtype: np.dtype[Any] | None,
) -> npt.NDArray[Any]:
    """The feature columns as numbers, shape (rows, columns); zero in rows that are unfit.

    Args:
        dtype: The features' type; None: the one that all of them have.
    """
    rows = none_of(unfit, table.num_rows)
    if not rows.any():  # what it comes to is that none is left
        return np.zeros((len(rows), len(chosen)), dtype=dtype or np.float64)
    if unfit:  # read again, so that the type is that of the rows that are kept
        kept = pa.array(rows)
        table = typed_by_values(
            cells.select([cells.column_names.index(name) for name in chosen]).filter(kept)
        )
    numbers = [
        _numbers(path, table.column(name), feature_column(index, shown)) for index, name in enumerate(chosen)
    ]
    features = np.zeros((len(rows), len(chosen)), dtype=dtype or np.result_type(*numbers))
    for index, values in enumerate(numbers):
        features[rows, index] = values
    return features


def _check_once(path: Path, wanted: Sequence[str], names: list[str]) -> None:
    if any(names.count(name) > 1 for name in {*wanted}):
        raise DataError(
            f"{path.name} has two columns of one name.", advice="Give every column a name of its own."
        )


def _check_there(path: Path, name: str | None, names: list[str]) -> None:
    if name is None:
        return
    _check_once(path, (name,), names)
    if name not in names:
        raise DataError(
            f"{path.name} has no column {name!r}; {found(names)}.",
            advice="Correct the column's name: in the option, or under `columns` in your own file.",
        )


def _may_be_feature(kind: Any) -> bool:
    # A CSV column without any value has the type "null": an error to report, not a column to pass over.
    # Booleans are features, as those of an .npz file are.
    return _is_numeric(kind) or bool(pa.types.is_null(kind) or pa.types.is_boolean(kind))


def _why_left_out(name: str, column: Column) -> str:
    """Why a column that nobody excluded is no feature: it is text, or has a word among its numbers."""
    kind = column.type
    if is_index(name):
        return f"{listed([name])} (an index of pandas)"
    if not is_text(kind):
        return f"{listed([name])} (of {type_name(kind)})"
    numbers = pc.match_substring_regex(column, _NUMBER)
    if not pc.any(numbers).as_py():
        return f"{listed([name])} (text)"
    return f"{listed([name])} (row {int(pc.index(numbers, value=False).as_py())}{_WORD}"


def _is_numeric(kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _numbers(path: Path, column: Column, where: str) -> npt.NDArray[Any]:
    """A feature column without gaps, as numbers; `where` is its name in messages."""
    kind = column.type
    if column.null_count:
        missing = first_of(pc.is_null(column))
        raise DataError(
            f"{path.name}: row {missing}, {where} (both counted from 0) is missing (empty, NA or NaN).",
            advice=GAP_ADVICE,
        )
    if pa.types.is_boolean(kind):
        column = pc.cast(column, pa.uint8())
    elif pa.types.is_decimal(kind):
        column = pc.cast(column, pa.float64())
    elif is_text(kind):
        bad = next((row for row, text in enumerate(column.to_pylist()) if not is_number(text)), 0)
        raise DataError(
            f"{path.name}: row {bad}, {where} (both counted from 0) is not a number.",
            advice="Correct it, or name other feature columns; categories must be encoded as numbers.",
        )
    elif not _is_numeric(kind):
        raise DataError(
            f"{path.name}: {where} is of {type_name(kind)}, not numeric.",
            advice="Name numeric feature columns; categories and times must be encoded as numbers.",
        )
    values: npt.NDArray[Any] = column.to_numpy()
    return values
