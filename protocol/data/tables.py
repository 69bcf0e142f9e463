"""Tables as datasets: the features, the label and the identifier of a CSV or Parquet file.

A session's schema says what a column's cells are. Where there is none, features are the columns that hold
numbers in every row. Messages name columns as the party's configuration does, or as the file does if its
names cannot be a row of data: without a header, the first row's values are taken for names.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hushbid.protocol import limits
from hushbid.protocol.data.cells import attribute_of, by_values, flags_of, numbers_of, without_words
from hushbid.protocol.data.column import GAP_WORDS
from hushbid.protocol.data.csv_files import (
    ENCODING_ADVICE,
    NO_TEXT,
    UNPARSABLE,
    Source,
    damaged,
    read_cells,
    source_of,
    unquoted,
)
from hushbid.protocol.data.dataset import GAP_ADVICE, Changes, DataColumns, Dataset, first_empty
from hushbid.protocol.data.encoding import plain_types
from hushbid.protocol.data.names import are_header, feature_column, found, is_index, is_number, listed
from hushbid.protocol.data.outside import kept_rows, settled
from hushbid.protocol.data.schema import Schema
from hushbid.protocol.data.table_faults import check_present, refusal
from hushbid.protocol.errors import DataError

__all__ = ["attribute", "dataset_of", "read_csv", "read_parquet", "typed_by_values"]

_NUMBER: Final = r"^\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*$"
_CODE: Final = r"^\s*[-+]?0\d"
_WORD: Final = ", counted from 0, is not a number)"

Table: TypeAlias = Any
Column: TypeAlias = Any
"""A pyarrow.Table and a pyarrow.ChunkedArray: pyarrow has no types of its own to name."""

Flags: TypeAlias = npt.NDArray[np.bool_]


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
    if all(is_number(name) for name in table.column_names):
        raise DataError(
            f"{path.name} has numbers for column names, so its header is missing.",
            advice="Put the columns' names into the first line.",
        )
    return table


def typed_by_values(table: Table, *, codes: bool = False) -> Table:
    """A table of cells with the types that all cells of a column have; any other table as it is.

    Args:
        codes: Whether columns stay text in which a number has a zero before it, as codes have.
    """
    source = source_of(table)
    if source is None:
        return table
    typed = []
    for cells in table.columns:
        text = codes and pa.types.is_string(cells.type)
        if text and pc.any(pc.match_substring_regex(cells, _CODE)).as_py():
            typed.append(without_words(cells, GAP_WORDS))
        else:
            typed.append(by_values(cells, decimal=source.dialect.decimal or "."))
    return pa.Table.from_arrays(typed, names=table.column_names)


def read_parquet(path: Path, columns: DataColumns) -> Table:
    """The columns of a Parquet file, or of all Parquet files of a directory, in the order of their names.

    Raises:
        DataError: It cannot be parsed; or the files differ in their columns.
        OSError: It cannot be opened.
    """
    files = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
    if not files or any(each.parent != path for each in files[: len(files) * path.is_dir()]):
        raise DataError(
            f"{path.name} is a directory "
            + ("without Parquet files." if not files else "whose folders have Parquet files."),
            advice="Write the table as one Parquet file, or as several in one directory.",
        )
    wanted = columns.used
    tables = []
    for each in files:
        try:
            file = pq.ParquetFile(each)
            there = file.schema_arrow.names
            if columns.schema is not None:
                check_present(columns.schema.names, there, each.name)
            names = [name for name in there if name in wanted] if wanted else None
            tables.append(plain_types(file.read(columns=names)))
        except (*UNPARSABLE, KeyError):
            raise damaged(each, "Parquet") from None
    try:
        return tables[0] if len(tables) == 1 else pa.concat_tables(tables)
    except pa.ArrowException:
        raise DataError(
            f"{path.name}: the Parquet files of the directory have columns of different names or types.",
            advice="Write them with one schema, or as one file.",
        ) from None


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
    lost = np.zeros(table.num_rows, dtype=np.bool_)
    numbers = []
    for index, name in enumerate(chosen):
        column = table.column(name)
        if columns.outside == "drop":
            column = _without_faults(column, cells.column(name), source, lost)
        numbers.append(_numbers(path, column, feature_column(index, shown)))
    fractions = source is not None and columns.fractions
    kind = np.dtype(np.float64) if fractions else np.result_type(*numbers)
    features = np.empty((table.num_rows, len(chosen)), dtype=kind)
    for index, values in enumerate(numbers):
        features[:, index] = values
    label, labelled, identifier = _attributes(path, cells, columns, lost)
    dataset = Dataset.from_arrays(
        path.name,
        features,
        label,
        identifier,
        feature_names=shown,
        left_out=left_out,
        labelled=labelled,
        notes=(source.said,) if source is not None and source.said else (),
    )
    return kept_rows(dataset, ~lost, Changes({}, int(lost.sum()))) if lost.any() else dataset


def _without_faults(column: Column, cells: Column, source: Source | None, lost: Flags) -> Column:
    """A column of numbers with 0 for gaps and for words among them; their rows are marked."""
    if source is not None and pa.types.is_string(column.type):
        found = numbers_of(cells, decimal=source.dialect.decimal or ".")
        lost |= found.wrong | found.inexact
        column = pa.chunked_array([pa.array(found.values)])
    gaps = flags_of(pc.is_null(column, nan_is_null=True))
    if not gaps.any():
        return column
    lost |= gaps
    filled = pa.scalar(0).cast(pa.int8() if pa.types.is_null(column.type) else column.type)
    return pc.if_else(pa.array(gaps), filled, column)


def _by_schema(path: Path, table: Any, columns: DataColumns, schema: Schema) -> Dataset:
    if columns.features is not None:
        raise DataError(
            f"{path.name}: feature columns are named, and the session's columns say which they are.",
            advice="Leave `features` out.",
        )
    for name in (columns.label, columns.identifier):
        _check_there(path, name, table.column_names)
    lost = np.zeros(table.num_rows, dtype=np.bool_)
    label, labelled, identifier = _attributes(path, table, columns, lost)
    source = source_of(table)
    notes = (source.said,) if source is not None and source.said else ()
    encoded, faults = schema.fitted(table)
    keep, changes = np.ones(len(encoded), dtype=np.bool_), None
    if faults and columns.outside != "refuse":
        keep, faults, changes = settled(encoded, faults, schema, drop=columns.outside == "drop")
    if faults:
        raise refusal(faults, path.name, table.column_names, source)
    dataset = Dataset.from_arrays(path.name, encoded, label, identifier, labelled=labelled, notes=notes)
    if lost.any():
        keep &= ~lost
        clipped = {} if changes is None else changes.clipped
        changes = Changes(clipped, int((~keep).sum()))
    return dataset if changes is None else kept_rows(dataset, keep, changes)


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


def _attributes(
    path: Path, table: Any, columns: DataColumns, lost: Flags
) -> tuple[npt.NDArray[Any] | None, Flags | None, npt.NDArray[Any] | None]:
    """Labels, which rows have one (None: all), and identifiers; rows that are to be dropped are `lost`."""
    drop = columns.outside == "drop"
    marked = lost if drop else None
    label = labelled = None
    if columns.label is not None:
        gaps = columns.label_gaps or drop
        label, labelled = attribute(table, columns.label, path.name, columns, gaps=gaps, lost=marked)
    identifier = None
    if columns.identifier is not None:
        identifier, has = attribute(
            table, columns.identifier, path.name, columns, gaps=drop, identifier=True, lost=marked
        )
        if has is not None:
            lost |= ~has
    return label, labelled, identifier


def attribute(
    table: Table,
    name: str,
    where: str,
    columns: DataColumns,
    *,
    gaps: bool = False,
    identifier: bool = False,
    lost: Flags | None = None,
) -> tuple[npt.NDArray[Any], Flags | None]:
    """The labels or the identifiers of a table: integers, floats or text.

    Args:
        name: The column, which is there once.
        where: The table's name in messages.
        gaps: Whether rows may have none.
        identifier: Whether these are identifiers.
        lost: Rows of values that cannot travel, or are of another kind than declared, are marked here, and
            the values are gaps; None: they are refused.

    Returns:
        The values, and which rows have one; None: all. Others have any value.

    Raises:
        DataError: One is missing, or of a type that cannot travel or that the session does not declare.
    """
    column, source = table.column(name), source_of(table)
    if source is not None:
        if not pa.types.is_string(column.type):
            raise DataError(f"{where}: column {name!r} {NO_TEXT}.", advice=ENCODING_ADVICE)
        kind = None if identifier else columns.label_kind
        column = _without_label_gaps(table, name, () if identifier else columns.label_words, kind)
        decimal = source.dialect.decimal or "."
        read = partial(
            attribute_of, kind=kind, decimal=decimal, label=not identifier, fractions=columns.fractions
        )
        found = read(column)
        while isinstance(found, tuple) and lost is not None:
            lost |= found[0]
            column = pc.if_else(pa.array(found[0]), None, column)
            found = read(column)
        if isinstance(found, tuple):
            row = int(found[0].argmax())
            raise DataError(
                f"{where}: row {row} (counted from 0; line {source.line(row)} of the file), column {name!r} "
                f"{found[1]}, as the session declares its labels.",
                advice="Correct the label, or agree on another declaration.",
            )
        column = found
    labelled = None
    if lost is not None:
        column = _without_unsendable(column, lost)
    if gaps:
        column, labelled = without_gaps(column)
    return _attribute(where, column, name), labelled


def _without_unsendable(column: Column, lost: Flags) -> Column:
    """A column with null for what is too long to travel, or infinite; its rows are marked."""
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        bad = flags_of(pc.greater(pc.binary_length(column), limits.MAX_ATTRIBUTES))
    elif pa.types.is_floating(kind):
        bad = flags_of(pc.is_inf(column))
    else:
        return column
    if not bad.any():
        return column
    lost |= bad
    return pc.if_else(pa.array(bad), None, column)


def _without_label_gaps(table: Table, name: str, classes: Sequence[str], kind: str | None) -> Column:
    """Cells with null for gaps: words in quotes are none where the cells may be text."""
    cells = table.column(name)
    words = GAP_WORDS.difference(classes)
    found = without_words(cells, words)
    if kind in (None, "text") and found.null_count > without_words(cells, ("",)).null_count:
        quoted = pc.invert(unquoted(table, name, words))
        text = pc.and_(pc.not_equal(pc.utf8_trim_whitespace(cells), ""), quoted)
        found = pc.if_else(text, cells, found)
    return found


def without_gaps(column: Any) -> tuple[Any, npt.NDArray[np.bool_] | None]:
    """A column of Arrow with its gaps filled by a value that it has, and which rows had none; None: all.

    A gap is null, NaN, or text that is empty or only white space.
    """
    gaps = pc.is_null(column, nan_is_null=True)
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        texts = pc.cast(column, kind)
        gaps = pc.or_(gaps, pc.fill_null(pc.equal(pc.utf8_trim_whitespace(texts), ""), fill_value=False))
    found = np.asarray(gaps.to_numpy(zero_copy_only=False) if isinstance(gaps, pa.Array) else gaps.to_numpy())
    if not found.any():
        return column, None
    if found.all():
        return pa.chunked_array([pa.array(np.zeros(len(column), dtype=np.int8))]), ~found
    first = column[int((~found).argmax())]
    return pc.if_else(gaps, first, column), ~found


def _may_be_feature(kind: Any) -> bool:
    # A CSV column without any value has the type "null": an error to report, not a column to pass over.
    # Booleans are features, as those of an .npz file are.
    return _is_numeric(kind) or bool(pa.types.is_null(kind) or pa.types.is_boolean(kind))


def _why_left_out(name: str, column: Column) -> str:
    """Why a column that nobody excluded is no feature: it is text, or has a word among its numbers."""
    kind = column.type
    if is_index(name):
        return f"{listed([name])} (an index of pandas)"
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return f"{listed([name])} (of {_type_name(kind)})"
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
        missing = _first(pc.is_null(column))
        raise DataError(
            f"{path.name}: row {missing}, {where} (both counted from 0) is missing (empty, NA or NaN).",
            advice=GAP_ADVICE,
        )
    if pa.types.is_boolean(kind):
        column = pc.cast(column, pa.uint8())
    elif pa.types.is_decimal(kind):
        column = pc.cast(column, pa.float64())
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        bad = next((row for row, text in enumerate(column.to_pylist()) if not is_number(text)), 0)
        raise DataError(
            f"{path.name}: row {bad}, {where} (both counted from 0) is not a number.",
            advice="Correct it, or name other feature columns; categories must be encoded as numbers.",
        )
    elif not _is_numeric(kind):
        raise DataError(
            f"{path.name}: {where} is of {_type_name(kind)}, not numeric.",
            advice="Name numeric feature columns; categories and times must be encoded as numbers.",
        )
    values: npt.NDArray[Any] = column.to_numpy()
    return values


def _attribute(where: str, column: Any, name: str) -> npt.NDArray[Any]:
    """A label or identifier column without gaps, as integers, floats or text."""
    if pa.types.is_dictionary(column.type):
        column = pc.cast(column, column.type.value_type)
    kind = column.type
    gaps = pc.is_null(column, nan_is_null=True)
    if pc.any(gaps).as_py():
        raise _gap(where, _first(gaps), name)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        long = pc.greater(pc.binary_length(column), limits.MAX_ATTRIBUTES)
        if pc.any(long).as_py():
            raise DataError(
                f"{where}: row {_first(long)} (counted from 0) has a {name!r} of more than"
                f" {limits.MAX_ATTRIBUTES} bytes, which may not travel with a point.",
                advice="Shorten it, or do not name the column.",
            )
        texts = np.asarray(column.to_pylist(), dtype=np.str_)
        if (empty := first_empty(texts)) is not None:
            raise _gap(where, empty, name)
        return texts
    if pa.types.is_boolean(kind):
        column = pc.cast(column, pa.int8())
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise DataError(
            f"{where}: the column {name!r} is of {_type_name(kind)}, which cannot travel with a point.",
            advice="Convert it to integers or text, or do not name the column.",
        )
    values: npt.NDArray[Any] = column.to_numpy()
    return values


def _gap(where: str, row: int, name: str) -> DataError:
    return DataError(
        f"{where}: row {row} (counted from 0), column {name!r} is missing (empty, NA or NaN).",
        advice="Fill it in, remove the row, or do not name the column.",
    )


def _type_name(kind: Any) -> str:
    # A nested type's full name lists its fields.
    return "a nested type" if pa.types.is_nested(kind) else f"type {kind}"


def _first(flags: Column) -> int:
    return int(pc.index(flags, True).as_py())
