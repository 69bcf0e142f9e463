"""Tables by pyarrow: ``.csv`` and ``.csv.gz`` with a header, and ``.parquet``.

pyarrow's messages quote cells and whole lines, so none is passed on: after a failed parse, the place is found
again here. Messages name columns as the party's configuration does, or as the file does if its names cannot
be a row of data: without a header, pyarrow takes the first row's values for names. Words for a gap (an empty
cell, ``NA``, ``NaN``) mean one in every column.
"""

from __future__ import annotations

import csv
import gzip
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from hushbid.protocol import limits
from hushbid.protocol.data.dataset import GAP_ADVICE, DataColumns, Dataset, first_empty
from hushbid.protocol.data.encoding import plain_types
from hushbid.protocol.data.names import are_header, feature_column, is_index, is_number, listed
from hushbid.protocol.data.schema import Schema
from hushbid.protocol.errors import DataError

__all__ = ["load_csv", "load_parquet", "read_csv", "read_parquet"]

_UNPARSABLE: Final = (pa.ArrowException, ValueError, EOFError)  # a UnicodeDecodeError is a ValueError

_PARSING: Final = pacsv.ParseOptions(newlines_in_values=True)
"""A quoted cell may have a line break: a label that has one is written so, and stays one cell."""
_NUMBER: Final = r"^\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*$"
_WORD: Final = ", counted from 0, is not a number)"

Table: TypeAlias = Any
Column: TypeAlias = Any
"""A pyarrow.Table and a pyarrow.ChunkedArray: pyarrow has no types of its own to name."""


def load_csv(path: Path, columns: DataColumns) -> Dataset:
    """Read a CSV file whose first line names its columns; ``.gz`` is unpacked.

    Raises:
        DataError: The file is empty, has no header, a line has another number of cells than the header, a
            named column is missing, or a feature is missing or not a number.
    """
    table = read_csv(path, columns.schema)
    if all(is_number(name) for name in table.column_names):
        raise DataError(
            f"{path.name} has numbers for column names, so its header is missing.",
            advice="Put the columns' names into the first line.",
        )
    return _from_table(path, table, columns)


def read_csv(path: Path, schema: Schema | None = None) -> Table:
    """The columns of a CSV file; an empty cell is a gap, and so are NA, null and the like.

    Args:
        schema: The schema to be applied, if any: none of its categories is a gap.

    Raises:
        DataError: As `load_csv`, about the file as a whole; or the schema has images, which text cannot hold.
        OSError: It cannot be opened.
    """
    if schema is not None and schema.images:
        raise DataError(
            f"{path.name} is CSV, which holds no images, and column {schema.images[0]!r} has some.",
            advice="Give the table as Parquet, or as .npz with an array for each column.",
        )
    try:
        with _open(path) as file:
            table = pacsv.read_csv(file, parse_options=_PARSING, convert_options=_converting(schema))
        _ = table.column_names  # text, or an error
    except _UNPARSABLE:
        # A column's type is guessed from the file's first block, and a later cell may not fit the guess.
        # Read as text then, and find each column's type from all of it.
        table = _read_as_text(path, schema)
        _ = table.column_names
    names = [name.strip() for name in table.column_names]  # "a, b" is how people write a header
    return table.rename_columns(names) if len({*names}) == len(names) else table


def _converting(schema: Schema | None, **types: Any) -> Any:
    options = pacsv.ConvertOptions(strings_can_be_null=True, column_types=types or None)
    categories = {value for column in (schema.columns if schema else ()) for value in column.categories or ()}
    options.null_values = [word for word in options.null_values if not word or word not in categories]
    return options


def _read_as_text(path: Path, schema: Schema | None) -> Any:
    try:
        with _open(path) as file, pacsv.open_csv(file, parse_options=_PARSING) as reader:
            names = reader.schema.names
        convert = _converting(schema, **dict.fromkeys(names, pa.string()))
        with _open(path) as file:
            table = pacsv.read_csv(file, parse_options=_PARSING, convert_options=convert)
    except _UNPARSABLE:
        raise _ragged(path) or _damaged(path, "CSV with a header, in UTF-8") from None
    for index, name in enumerate(names):
        for kind in (pa.int64(), pa.float64(), pa.bool_()):
            try:
                table = table.set_column(index, name, pc.cast(table.column(index), kind))
                break
            except pa.ArrowException:
                continue  # the column stays text
    return table


def _is_packed(path: Path) -> bool:
    return path.name.lower().endswith(".gz")


def _open(path: Path) -> Any:
    # pyarrow detects the compression only if the ending is in lower case.
    return pa.input_stream(str(path), compression="gzip" if _is_packed(path) else None)


def _ragged(path: Path) -> DataError | None:
    """The error about the first line with another number of cells than the header, if any.

    pyarrow can report the line too, but only on one thread, and only in UTF-8.
    """
    opened = gzip.open if _is_packed(path) else open
    try:
        with opened(path, "rt", encoding="utf-8", errors="surrogateescape", newline="") as file:
            lines = csv.reader(file)
            width = len(next(lines, []))
            for cells in lines:
                if cells and len(cells) != width:
                    return DataError(
                        f"{path.name}: line {lines.line_num} (the header is line 1) has another number of"
                        " cells than the header.",
                        advice="Correct the line; a cell that holds a comma must be quoted.",
                    )
    except (csv.Error, EOFError):
        return None
    return None


def load_parquet(path: Path, columns: DataColumns) -> Dataset:
    """Read a Parquet file.

    Raises:
        DataError: The file cannot be parsed, a named column is missing, or a feature is missing or not a
            number.
    """
    return _from_table(path, read_parquet(path), columns)


def read_parquet(path: Path) -> Table:
    """The columns of a Parquet file.

    Raises:
        DataError: It cannot be parsed.
        OSError: It cannot be opened.
    """
    try:
        return pq.ParquetFile(path).read()
    except (*_UNPARSABLE, KeyError):
        raise _damaged(path, "Parquet") from None


def _from_table(path: Path, table: Any, columns: DataColumns) -> Dataset:
    names: list[str] = table.column_names
    if len(set(names)) != len(names):
        raise DataError(
            f"{path.name} has two columns of one name.", advice="Give every column a name of its own."
        )
    if table.num_rows == 0:
        raise DataError(f"{path.name} holds no rows.", advice="Give a file with at least one row.")
    if columns.schema is not None:
        return _by_schema(path, table, columns, columns.schema)
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
                f"{path.name} has no numeric column; {_found(names)}"
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
    numbers = [
        _numbers(path, table.column(name), feature_column(index, shown)) for index, name in enumerate(chosen)
    ]
    features = np.empty((table.num_rows, len(chosen)), dtype=np.result_type(*numbers))
    for index, values in enumerate(numbers):
        features[:, index] = values
    label, labelled, identifier = _attributes(path, table, columns)
    return Dataset.from_arrays(
        path.name, features, label, identifier, feature_names=shown, left_out=left_out, labelled=labelled
    )


def _by_schema(path: Path, table: Any, columns: DataColumns, schema: Schema) -> Dataset:
    if columns.features is not None:
        raise DataError(
            f"{path.name}: feature columns are named, and the session's columns say which they are.",
            advice="Leave `features` out.",
        )
    table = plain_types(table)
    for name in (columns.label, columns.identifier):
        _check_there(path, name, table.column_names)
    label, labelled, identifier = _attributes(path, table, columns)
    encoded = schema.encode(table, name=path.name)
    return Dataset.from_arrays(path.name, encoded, label, identifier, labelled=labelled)


def _check_there(path: Path, name: str | None, names: list[str]) -> None:
    if name is not None and name not in names:
        raise DataError(
            f"{path.name} has no column {name!r}; {_found(names)}.",
            advice="Correct the column's name: in the option, or under `columns` in your own file.",
        )


def _attributes(
    path: Path, table: Any, columns: DataColumns
) -> tuple[npt.NDArray[Any] | None, npt.NDArray[np.bool_] | None, npt.NDArray[Any] | None]:
    """Labels, which rows have one (None: all), and identifiers."""
    label = labelled = None
    if columns.label is not None:
        column = table.column(columns.label)
        if columns.label_gaps:
            column, labelled = without_gaps(column)
        label = _attribute(path, column, columns.label)
    identifier = columns.identifier
    return (
        label,
        labelled,
        None if identifier is None else _attribute(path, table.column(identifier), identifier),
    )


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


def _found(names: list[str]) -> str:
    """The existing columns, for a message about a missing one."""
    if not are_header(names):
        return f"its {len(names)} columns are not listed, as numbers stand in the header or it is missing"
    if len(names) == 1:
        return f"its only column is {listed(names)}: cells must be separated by commas"
    return f"its columns are {listed(names)}"


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


def _attribute(path: Path, column: Any, name: str) -> npt.NDArray[Any]:
    """A label or identifier column without gaps, as integers, floats or text."""
    if pa.types.is_dictionary(column.type):
        column = pc.cast(column, column.type.value_type)
    kind = column.type
    gaps = pc.is_null(column, nan_is_null=True)
    if pc.any(gaps).as_py():
        raise _gap(path, _first(gaps), name)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        long = pc.greater(pc.binary_length(column), limits.MAX_ATTRIBUTES)
        if pc.any(long).as_py():
            raise DataError(
                f"{path.name}: row {_first(long)} (counted from 0) has a {name!r} of more than"
                f" {limits.MAX_ATTRIBUTES} bytes, which may not travel with a point.",
                advice="Shorten it, or do not name the column.",
            )
        texts = np.asarray(column.to_pylist(), dtype=np.str_)
        if (empty := first_empty(texts)) is not None:
            raise _gap(path, empty, name)
        return texts
    if pa.types.is_boolean(kind):
        column = pc.cast(column, pa.int8())
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise DataError(
            f"{path.name}: the column {name!r} is of {_type_name(kind)}, which cannot travel with a point.",
            advice="Convert it to integers or text, or do not name the column.",
        )
    values: npt.NDArray[Any] = column.to_numpy()
    return values


def _gap(path: Path, row: int, name: str) -> DataError:
    return DataError(
        f"{path.name}: row {row} (counted from 0), column {name!r} is missing (empty, NA or NaN).",
        advice="Fill it in, remove the row, or do not name the column.",
    )


def _type_name(kind: Any) -> str:
    # A nested type's full name lists its fields.
    return "a nested type" if pa.types.is_nested(kind) else f"type {kind}"


def _first(flags: Column) -> int:
    return int(pc.index(flags, True).as_py())


def _damaged(path: Path, kind: str) -> DataError:
    return DataError(
        f"{path.name} cannot be read as {kind}: it is empty, damaged or of another format.",
        advice="Save it again, or give it the ending of its format.",
    )
