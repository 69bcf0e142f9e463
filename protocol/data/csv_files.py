"""CSV files as text: the header, and every cell as it stands.

No type is guessed here (`hushbid.protocol.data.cells` reads types). Compression, encoding and separator are
found by the file's content where they are not declared. pyarrow's messages quote cells, so none is passed on:
after a failed parse the place is found again here.
"""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import json
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from hushbid.protocol.data.column import GAP_WORDS
from hushbid.protocol.data.dialect import Dialect
from hushbid.protocol.data.names import is_number, listed
from hushbid.protocol.errors import DataError

__all__ = [
    "ENCODING_ADVICE",
    "NO_TEXT",
    "UNPARSABLE",
    "Source",
    "ambiguous",
    "ambiguous_error",
    "damaged",
    "read_cells",
    "source_of",
    "unquoted",
]

Table: TypeAlias = Any
"""A pyarrow.Table: pyarrow has no types of its own to name."""

UNPARSABLE: Final = (pa.ArrowException, ValueError, EOFError)  # a UnicodeDecodeError is a ValueError

_SEPARATORS: Final = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", " ": "blanks"}
_PACKED: Final = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_ENDINGS: Final = {".gz": "gzip", ".zst": "zstd"}
_OTHERS: Final = {
    b"PAR1": "Parquet",
    b"PK\x03\x04": "an Excel workbook or another ZIP archive",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook",
    b"\x93NUMPY": "an array of NumPy",
    b"ARROW1": "an Arrow file",
}
"""What files begin with that are no CSV."""
_HEAD: Final = 256 * 1024
"""Bytes in which the separator is looked for."""
_LINES: Final = 50
"""Lines that have to agree on a separator."""
_LONGEST: Final = 2**31 - 1
"""Most bytes of a cell, and of a block of pyarrow's reader."""
NO_TEXT: Final = "has text that is not in UTF-8, but perhaps in Latin-1 or Windows-1252"
ENCODING_ADVICE: Final = (
    "Save the file in UTF-8, or name its encoding: `encoding` under `columns` in your own file "
    '(--encoding of `hushbid schema`), such as "latin-1" or "cp1252".'
)
_MARK: Final = b"hushbid.csv"
_ANNOUNCEMENT: Final = re.compile(rb'"?sep=([ -~\t])"?(?=\r?\n)')

_COMMA: Final = r"^\s*[-+]?\d*,\d+([eE][-+]?\d+)?\s*$"
_THOUSANDS: Final = r"^\s*[-+]?[1-9]\d{0,2}(,\d{3})+\s*$"


@dataclass(frozen=True)
class Source:
    """The file that a table's cells come from, and how it was read."""

    path: Path
    dialect: Dialect

    @property
    def said(self) -> str:
        """How it was read, where that is not usual; empty otherwise."""
        separator, decimal, encoding = self.dialect.separator, self.dialect.decimal, self.dialect.encoding
        said = (
            [] if separator == "," else [f"separated by {_SEPARATORS.get(separator or ',', repr(separator))}"]
        )
        said += ["a comma before fractions"] if decimal == "," else []
        said += [] if encoding == "utf-8" else [f"encoded in {encoding}"]
        return f"{self.path.name} is read as CSV, {', '.join(said)}" if said else ""

    def line(self, row: int) -> int:
        """The line on which a row ends, from 1; rows count from 0 and the header is none."""
        with _lines(content_of(self.path, self.dialect).text, self.dialect.separator or ",") as lines:
            alone = len(next((cells for cells in lines if cells), [])) == 1
            _ = next(itertools.islice((cells for cells in lines if cells or alone), row, None), None)
            return int(lines.line_num)


def source_of(table: Table) -> Source | None:
    """Where a table of `read_cells` comes from; None of a table whose columns have types."""
    marked = (table.schema.metadata or {}).get(_MARK)
    if marked is None:
        return None
    path, *dialect = json.loads(marked)
    return Source(Path(path), Dialect(*dialect))


def read_cells(
    path: Path,
    dialect: Dialect | None = None,
    *,
    wanted: Collection[str] = (),
    numeric: Collection[str] | None = None,
) -> Table:
    """The cells of a CSV file, every column as text; a column that is no text in its encoding is binary.

    Args:
        dialect: What is declared of it.
        wanted: Names that the header has to have: they decide between separators.
        numeric: Columns of numbers, which decide about the decimal comma; None: all that look like it.

    Raises:
        DataError: The file is no CSV with a header, or a line has another number of cells than the header.
        OSError: It cannot be opened.
    """
    declared = dialect or Dialect()
    content, encoding, announced = content_of(path, declared)
    separator = declared.separator or announced or _separator(path, content, wanted)
    names, blank = _header(path, content, separator)
    table = _parsed(path, content, separator, names, blank)
    stripped = [_named(name, wanted) for name in names]
    names = stripped if len({*stripped}) == len(names) else names
    columns = [_as_text(column) for column in table.columns]
    decimal = declared.decimal or _decimal(path, separator, names, columns, numeric)
    marked = json.dumps([str(path), separator, decimal, encoding])
    return pa.Table.from_arrays(columns, names=names).replace_schema_metadata({_MARK: marked})


def _named(name: str, wanted: Collection[str]) -> str:
    """A column's name without blanks around it, as people write "a, b", unless they are wanted."""
    return name if name in wanted else name.strip()


def _as_text(column: Any) -> Any:
    try:
        return pc.cast(column, pa.string())
    except pa.ArrowException:
        return column  # refused only where somebody wants it


def unquoted(table: Table, name: str, words: Collection[str]) -> Any:
    """Which cells of a column are one of these words and stand there without quotes: Arrow booleans."""
    source = source_of(table)
    assert source is not None, "only cells can be quoted"
    content = content_of(source.path, source.dialect).text
    separator = source.dialect.separator or ","
    names, blank = _header(source.path, content, separator)
    place = str(table.column_names.index(name))
    found = _parsed(source.path, content, separator, names, blank, only=place, words=words)
    return pc.is_null(found.column(0))


def _parsed(
    path: Path,
    content: Any,
    separator: str,
    names: Sequence[str],
    blank: int,
    *,
    only: str | None = None,
    words: Collection[str] = (),
) -> Table:
    """The rows, with columns named by their places; blocks hold whole rows, however long these are.

    An empty line is no row, but in a file of one column: so polars and pyarrow write a gap there.
    """
    places = [str(place) for place in range(len(names))]
    convert = pacsv.ConvertOptions(
        column_types=dict.fromkeys(places, pa.binary()),
        include_columns=[only] if only is not None else None,
        null_values=list(words),
        strings_can_be_null=bool(words),
        quoted_strings_can_be_null=False,
    )
    parsing = pacsv.ParseOptions(
        delimiter=separator, newlines_in_values=True, ignore_empty_lines=len(places) > 1
    )
    for size in (2**20, min(max(len(content), 2**20), _LONGEST)):
        reading = pacsv.ReadOptions(
            column_names=places, skip_rows=blank, skip_rows_after_names=1, block_size=size
        )
        try:
            return pacsv.read_csv(
                pa.BufferReader(content),
                read_options=reading,
                parse_options=parsing,
                convert_options=convert,
            )
        except UNPARSABLE:
            continue  # a row was longer than a block, or the file is no such table
    raise _ragged(path, content, separator) or damaged(path, "CSV with a header") from None


class Content(NamedTuple):
    """What a file holds.

    Attributes:
        text: A buffer of UTF-8, unpacked, without a byte order mark.
        encoding: The encoding that it had.
        separator: What a first line such as ``sep=;`` announces, as Excel writes and reads it; None: there is
            none. Of the text the line's end is left, so that lines are counted as they are in the file.
    """

    text: Any
    encoding: str
    separator: str | None = None


def content_of(path: Path, dialect: Dialect) -> Content:
    """The text of a CSV file.

    Raises:
        DataError: It is something else than text, or not in the declared encoding.
        OSError: It cannot be read.
    """
    head = _head_of(path)
    packed = next((kind for magic, kind in _PACKED.items() if head.startswith(magic)), None)
    said = next((kind for ending, kind in _ENDINGS.items() if path.name.lower().endswith(ending)), None)
    if not head or (said is not None and said != packed):
        raise damaged(path, f"CSV packed by {said}" if said else "CSV with a header")
    if packed is None:
        content = pa.memory_map(str(path)).read_buffer()
    else:
        content = pa.input_stream(str(path), compression=packed).read_buffer()
    start = bytes(content[:4096])
    for magic, kind in _OTHERS.items():
        if start.startswith(magic):
            raise DataError(
                f"{path.name} is no CSV: by its content it is {kind}.",
                advice="Give it the ending of its format, or export the table as CSV or Parquet.",
            )
    encoding = _encoding(start, dialect.encoding)
    if start.startswith(codecs.BOM_UTF8):
        return _announced(content[len(codecs.BOM_UTF8) :], "utf-8")
    if encoding == "utf-8":
        return _announced(content, encoding)
    try:
        text = codecs.decode(memoryview(content), encoding)
    except (ValueError, LookupError):
        raise DataError(
            f"{path.name} is not encoded in {encoding}.", advice="Correct `encoding`, or save it in UTF-8."
        ) from None
    return _announced(pa.py_buffer(text.lstrip("\ufeff").encode()), encoding)


def _announced(content: Any, encoding: str) -> Content:
    found = _ANNOUNCEMENT.match(bytes(content[:16]))
    if found is None:
        return Content(content, encoding)
    return Content(content[found.end() :], encoding, found[1].decode("ascii"))


def _head_of(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(4)


def _encoding(start: bytes, declared: str | None) -> str:
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if declared is not None:
        return codecs.lookup(declared).name
    odd, even = start[1::2].count(0), start[::2].count(0)
    half = len(start) // 2
    if half and max(odd, even) > 0.6 * half and min(odd, even) < 0.1 * half:
        return "utf-16-le" if odd > even else "utf-16-be"
    return "utf-8"


class _lines:
    """The lines of a CSV, as lists of cells; bytes that are no UTF-8 become half surrogates."""

    def __init__(self, content: Any, separator: str) -> None:
        self._text = io.TextIOWrapper(
            pa.BufferReader(content), encoding="utf-8", errors="surrogateescape", newline=""
        )
        csv.field_size_limit(_LONGEST)
        self._reader = csv.reader(self._text, delimiter=separator)

    def __enter__(self) -> Any:
        return self._reader

    def __exit__(self, *_: object) -> None:
        self._text.detach()


def _head_lines(content: Any, separator: str) -> Iterator[list[str]]:
    """The first whole lines that have cells; the last one of a cut head is left out."""
    cut = len(content) > _HEAD
    with _lines(content[:_HEAD] if cut else content, separator) as lines:
        try:
            found = [cells for cells in itertools.islice(lines, _LINES + 1) if cells]
        except csv.Error:
            return
    yield from found[:-1] if cut and 1 < len(found) <= _LINES else found


def _separator(path: Path, content: Any, wanted: Collection[str]) -> str:
    """The separator: under which the wanted columns are there, or all lines have equally many cells.

    Blanks are between words, too: they separate cells where nothing else does and numbers stand between.
    """
    usual = "\t" if path.name.lower().endswith((".tsv", ".tsv.gz", ".tsv.zst")) else ","
    best, most = usual, (False, False, False, 1)
    for separator in (usual, *(each for each in _SEPARATORS if each != usual)):
        lines = [*_head_lines(content, separator)]
        if not lines:
            continue
        names = {_named(name, wanted) for name in lines[0]}
        there = bool(wanted) and names.issuperset(wanted)
        even = len({len(cells) for cells in lines}) == 1
        if not there and (len(lines[0]) < 2 or (separator == " " and (most[3] > 1 or not even))):
            continue
        if separator == " " and not there and not _has_numbers(lines):
            continue
        found = (there, even, separator == usual, len(lines[0]))
        if found > most:
            best, most = separator, found
    return best


def _has_numbers(lines: Sequence[Sequence[str]]) -> bool:
    """Whether a column is numbers below its name: blanks separate words, too."""
    return any(all(map(is_number, column)) for column in zip(*lines[1:], strict=True))


def _header(path: Path, content: Any, separator: str) -> tuple[list[str], int]:
    """The names in the header, and the number of blank lines before it."""
    with _lines(content, separator) as lines:
        try:
            blank, cells = next((each for each in enumerate(lines) if each[1]), (0, []))
        except csv.Error:
            cells, blank = [], 0
    if not cells:
        raise damaged(path, "CSV with a header")
    if any("\udc80" <= sign <= "\udcff" or sign == "\0" for name in cells for sign in name):
        raise DataError(f"{path.name}: the header {NO_TEXT}.", advice=ENCODING_ADVICE)
    return cells, blank


def _decimal(
    path: Path, separator: str, names: Sequence[str], columns: Sequence[Any], numeric: Collection[str] | None
) -> str:
    """What stands before fractions: a comma where cells of numbers have one and commas separate no cells."""
    if separator == ",":
        return "."
    doubtful: list[str] = []
    for name, column in zip(names, columns, strict=True):
        if (numeric is not None and name not in numeric) or not pa.types.is_string(column.type):
            continue
        commas = pc.match_substring_regex(column, _COMMA)
        if not pc.any(commas).as_py():
            continue
        thousands = pc.match_substring_regex(column, _THOUSANDS)
        if pc.any(pc.and_not(commas, thousands)).as_py():
            return ","
        doubtful.append(name)
    if doubtful and numeric is not None:
        raise ambiguous_error(path, doubtful)
    return "."


def ambiguous(column: Any) -> bool:
    """Whether a column is numbers whose commas may stand before fractions or between thousands.

    Args:
        column: Cells of a file whose separator is no comma.
    """
    texts = pc.utf8_trim_whitespace(column)
    commas = pc.match_substring_regex(texts, _THOUSANDS)
    others = pc.is_in(texts, value_set=pa.array(sorted(GAP_WORDS)))
    plain = pc.match_substring_regex(texts, r"^[-+]?\d+$")
    known = pc.or_(pc.or_(commas, others), plain)
    return bool(pc.any(commas).as_py() and pc.all(known).as_py())


def ambiguous_error(path: Path, names: Sequence[str]) -> DataError:
    """The error about columns whose commas have two meanings (`ambiguous`)."""
    return DataError(
        f"{path.name}: column {listed(names[:1])} has numbers with commas, which may stand before "
        "fractions or between thousands.",
        advice='Say which: `decimal = ","` under `columns` in your own file (--decimal of `hushbid schema`); '
        "or save the numbers without separators of thousands.",
    )


def _ragged(path: Path, content: Any, separator: str) -> DataError | None:
    """The error about the first line with another number of cells than the header, if any."""
    with _lines(content, separator) as lines:
        try:
            width = len(next((cells for cells in lines if cells), []))
            for cells in lines:
                if cells and len(cells) != width:
                    sign = _SEPARATORS.get(separator, "separators").removesuffix("s")
                    return DataError(
                        f"{path.name}: line {lines.line_num} (the header is line 1) has another number of"
                        " cells than the header.",
                        advice=f"Correct the line; a cell that holds a {sign} must be quoted.",
                    )
        except csv.Error:
            return None
    return None


def damaged(path: Path, kind: str) -> DataError:
    """The error about a file that is not of a format."""
    return DataError(
        f"{path.name} cannot be read as {kind}: it is empty, damaged or of another format.",
        advice="Save it again, or give it the ending of its format.",
    )
