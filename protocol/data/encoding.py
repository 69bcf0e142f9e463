"""A table's columns to a schema's numbers, and back, by pyarrow; messages never quote a value."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hushbid.protocol.data.cells import (
    FALSE_WORDS,
    TRUE_WORDS,
    flags_of,
    numbers_of,
    plain_numbers,
    without_words,
)
from hushbid.protocol.data.column import LISTED, MEASURED, MOMENTS, ONE_HOT, WHOLE, Column
from hushbid.protocol.data.csv_files import ENCODING_ADVICE, NO_TEXT, Source, source_of
from hushbid.protocol.data.images import encoded_images, table_images
from hushbid.protocol.data.moments import DAY, is_moment, moments_of, table_dates, table_times
from hushbid.protocol.data.table_faults import ColumnFault, Flags
from hushbid.protocol.errors import DataError
from hushbid.protocol.names import an

__all__ = ["bucket_of", "encoded_column", "plain_types", "table_of"]


def plain_types(table: Any) -> Any:
    """The same values in types that all versions compute with: no dictionaries, views, large text, halves."""
    if source_of(table) is not None:
        return table  # whose cells have no types yet
    for index, field in enumerate(table.schema):
        kind, values = field.type, table.column(index)
        if pa.types.is_run_end_encoded(kind):
            values = pc.run_end_decode(values)
            kind = values.type
        if pa.types.is_dictionary(kind):
            codes, kind = values, kind.value_type
            values = pa.chunked_array(
                [_plain(chunk.dictionary, kind).take(chunk.indices) for chunk in codes.chunks],
                _plain_type(kind),
            )
        else:
            values = _plain(values, kind)
        table = table.set_column(index, field.name, values)
    return table


def _plain_type(kind: Any) -> Any:
    if pa.types.is_binary_view(kind):
        return pa.large_binary()
    if pa.types.is_float16(kind):  # old versions of Arrow find no NaN among halves
        return pa.float32()
    view = pa.types.is_string_view(kind) or pa.types.is_large_string(kind)
    return pa.string() if view else kind


def _plain(values: Any, kind: Any) -> Any:
    return values.cast(_plain_type(kind))


def table_of(parts: Iterable[tuple[Column, npt.NDArray[np.float64]]]) -> Any:
    """The rows that these numbers encode, as a pyarrow.Table.

    Args:
        parts: Each column with its numbers, shape (rows, width), all of which fit (`Column.holds`).
    """
    return pa.table({column.name: _decoded(column, numbers) for column, numbers in parts})


def encoded_column(
    column: Column, values: Any, source: Source | None = None, filled: dict[str, int] | None = None
) -> tuple[npt.NDArray[np.float64], list[ColumnFault]]:
    """A column's numbers, shape (rows, width), and what does not fit: such rows have no meaning.

    Args:
        source: The file, if the values are its cells: text whose type the column's kind decides.
        filled: Receives the number of gaps that the column's `missing` fills, if there are any.
    """
    faults: list[ColumnFault] = []
    wrong = np.zeros(len(values), dtype=np.bool_)

    def find(rows: Flags, what: str, advice: str) -> None:
        """Note a fault, once for each row."""
        new = rows & ~wrong
        if new.any():
            beyond = advice is _BOUNDS and column.kind in MEASURED
            faults.append(ColumnFault(column.name, what, advice, new, beyond))
            wrong[new] = True

    if source is not None and not pa.types.is_string(values.type):
        return _nothing(column, values), [ColumnFault(column.name, NO_TEXT, ENCODING_ADVICE)]
    plain = None
    if column.kind in ("number", "integer") and column.gaps is None and source is not None:
        plain = plain_numbers(values, decimal=source.dialect.decimal or ".")
    if plain is not None:
        values = pa.chunked_array([pa.array(plain)])
    elif pa.types.is_string(values.type):
        values = without_words(values, column.gap_words(typed=source is None), keep=column.categories or ())
        values = _of_text(column, values, source, find)
    gaps = flags_of(pc.is_null(values, nan_is_null=True)) & ~wrong
    _note_gaps(column, gaps, find, filled)
    if column.kind == "image":
        known = gaps if column.missing is not None else gaps | wrong
        try:
            return encoded_images(column, values, known, ""), faults
        except DataError as error:
            image = ColumnFault(column.name, error.what.strip().removesuffix("."), error.advice)
            return _nothing(column, values), [*faults, image]
    if (why := _misfit(column, values)) is not None:
        return _nothing(column, values), [
            ColumnFault(column.name, why, "Convert the column, or correct the schema.")
        ]
    if column.kind in LISTED:
        return _of_categories(column, values, gaps, find), faults
    if column.kind == "hashed":
        return _of_buckets(column, values, gaps, find), faults
    if column.kind in MOMENTS and not pa.types.is_null(values.type):
        values = _of_moments(column, values, find)
    numbers = _numbers(column, values, find)
    if gaps.any() and column.missing is not None:
        numbers[gaps] = float(column.missing)  # a number, as `_check_missing` saw to
    return column.encoded(numbers)[:, None], faults


def _note_gaps(column: Column, gaps: Flags, find: Find, filled: dict[str, int] | None) -> None:
    """Note gaps as faults, or count them if the column says what they stand for."""
    if column.missing is None:
        find(gaps, "is missing", _OWN_GAP if column.kind in ONE_HOT else _GAP)
    elif filled is not None and gaps.any():
        filled[column.name] = int(gaps.sum())


Find: TypeAlias = Callable[[Flags, str, str], None]

_HASH_TAG: Final = b"hushbid hashed text 1\0"
_GAP: Final = "Fill it in, or say by the column's `missing` what a gap stands for."
_OWN_GAP: Final = f'{_GAP[:-1]} (`missing = "own"`: a category of its own).'
_EMPTY: Final = "Make it null (None): that is a gap, and the column's `missing` says what a gap stands for."
_BOUNDS: Final = (
    "Correct it, clip it (an own file's `outside` does), or agree on other bounds, which are public."
)
_CATEGORY: Final = (
    "Correct it. If many rows are so, have the session's columns say their categories, which are public "
    "(`hushbid init … --categories`); of a few, leave the rows out (an own file's `outside` does)."
)
_ROUND: Final = "Round it, or have the schema say number."
_NUMBERS: Final = (
    "Correct it. If it stands for a gap, have the column's `gaps` name it; if commas stand before fractions, "
    'say `decimal = ","` under `columns` in your own file.'
)
_COMMAS: Final = (
    "Correct it. Other cells of the file have commas before fractions, so that a point is none: write all "
    'numbers alike, or say `decimal = "."` under `columns` in your own file. If it stands for a gap, have '
    "the column's `gaps` name it."
)
_WORDS: Final = "Correct it, or have the column's `true` and `false` name the words."
_ISO: Final = (
    "Write it as 2024-12-31, and a time as 2024-12-31 23:59:59; or have the column's `gaps` name it."
)
_EXACT: Final = "Give it with fewer digits: a number has 53 bits."


def _nothing(column: Column, values: Any) -> npt.NDArray[np.float64]:
    return np.zeros((len(values), column.width))


def _misfit(column: Column, values: Any) -> str | None:
    """Why no value of this type is one of the column; None: it may be."""
    kind, categories = values.type, column.categories or ()
    if pa.types.is_null(kind):
        return None
    whole = pa.types.is_integer(kind) or (pa.types.is_floating(kind) and _are_whole(values))
    if column.kind in MOMENTS:
        fits = is_moment(kind) or pa.types.is_string(kind)
        return None if fits else f"holds values of type {kind}, where the schema has {an(column.kind)}"
    if column.kind == "hashed":
        fits = pa.types.is_string(kind) or whole
        return None if fits else f"holds values of type {kind}, where the schema has text to hash"
    if column.kind not in LISTED:
        numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        boolean = pa.types.is_boolean(kind)
        if numeric or (boolean and column.kind == "boolean"):
            return None
        return f"holds values of type {kind}, where the schema has {an(column.kind)}"
    if not isinstance(categories[0], str):
        return None if whole else f"holds values of type {kind}, where its categories are integers"
    fits = (
        pa.types.is_string(kind)
        or (whole and any(_WHOLE_TEXT(str(each)) for each in categories))
        or (pa.types.is_boolean(kind) and len(_of_booleans(categories)) == 2)
        or (pa.types.is_date32(kind) and any(_DATE_TEXT(str(each)) for each in categories))
    )
    return None if fits else f"holds values of type {kind}, where its categories are text"


_WHOLE_TEXT: Final = re.compile(r"0|-?[1-9]\d*").fullmatch
"""Text that is how a whole number is written."""
_DATE_TEXT: Final = re.compile(r"\d{4}-\d\d-\d\d").fullmatch


def _are_whole(values: Any) -> bool:
    numbers = np.array(values.cast(pa.float64()).fill_null(0.0).to_numpy())
    with np.errstate(invalid="ignore"):
        return bool((np.isnan(numbers) | (numbers == np.floor(numbers))).all())


def _of_booleans(categories: Sequence[object]) -> dict[bool, str]:
    """The texts of true and false, where one category each is such a word."""
    words = {str(each) for each in categories}
    found = {True: words & {*TRUE_WORDS}, False: words & {*FALSE_WORDS}}
    return {value: texts.pop() for value, texts in found.items() if len(texts) == 1}


def _of_text(column: Column, values: Any, source: Source | None, find: Find) -> Any:
    """Text in the type that the column's kind has."""
    decimal = (source.dialect.decimal if source is not None else None) or "."
    text = bool(column.categories) and isinstance((column.categories or ("",))[0], str)
    if (
        text
        or column.kind in MOMENTS
        or column.kind == "hashed"
        or (source is None and not (column.true or column.false))
    ):
        return values
    truth = np.full(len(values), np.nan)
    if column.kind == "boolean":
        texts = pc.utf8_trim_whitespace(values)
        words = {1: (*TRUE_WORDS, *(column.true or ())), 0: (*FALSE_WORDS, *(column.false or ()))}
        for number, those in words.items():
            truth[flags_of(pc.is_in(texts, value_set=pa.array(those)))] = number
    found = numbers_of(values, decimal=decimal, whole=column.kind != "number")
    known = ~np.isnan(truth)
    wrong = found.wrong & ~known
    if column.kind == "boolean":
        find(wrong, "is neither true nor false", _WORDS)
    else:
        find(wrong, "is not a number", _COMMAS if decimal == "," else _NUMBERS)
    numbers = np.where(known, truth, found.values)
    empty = np.isnan(numbers)
    if column.kind in LISTED:
        with np.errstate(invalid="ignore"):
            strange = (found.inexact | (numbers != np.floor(numbers))) & ~empty
        find(strange, "is of no category", _CATEGORY)
        empty |= strange
    else:  # a fraction among whole numbers is told as such, and so are numbers beyond the bounds
        lower, upper = column.limits
        with np.errstate(invalid="ignore"):
            within = (numbers >= lower) & (numbers <= upper) & (numbers == np.floor(numbers))
        find(found.inexact & within, "is a number that would be changed", _EXACT)
    return pa.chunked_array([pa.array(np.where(empty, 0.0, numbers), mask=empty)])


def _of_moments(column: Column, values: Any, find: Find) -> Any:
    """Dates as days and times as microseconds: whole numbers of Arrow."""
    gaps = flags_of(pc.is_null(values))
    found = moments_of(values)
    find(found.wrong, f"is no {'date' if column.kind == 'date' else 'time'}", _ISO)
    find(found.inexact, "is finer than a microsecond", "Round it.")
    whole = found.microseconds
    if column.kind == "date":
        find(
            (whole % DAY != 0) & ~gaps, "has a time of day", "Leave it out, or have the schema say datetime."
        )
        whole = whole // DAY
    return pa.chunked_array([pa.array(whole, mask=gaps | found.wrong)])


def _numbers(column: Column, values: Any, find: Find) -> npt.NDArray[np.float64]:
    """Values of a number, an integer or a boolean; of no meaning in gaps."""
    kind = values.type
    inexact = np.zeros(len(values), dtype=np.bool_)
    if pa.types.is_decimal(kind):  # Arrow's own cast is not that of every library, to the last bit
        exact = values.to_pylist()
        rounded = [None if value is None else float(value) for value in exact]
        values = pa.chunked_array([pa.array(rounded, pa.float64())])
        different = [value != number for value, number in zip(exact, rounded, strict=True)]
        inexact = np.array(different, np.bool_) & (column.kind != "number")
    if pa.types.is_boolean(kind):
        values = pc.cast(values, pa.uint8())
    lower, upper = column.limits
    given = values
    if pa.types.is_integer(values.type):
        exact_numbers = values.fill_null(0).to_numpy()
        values = exact_numbers.astype(np.float64)
        if column.kind != "number":  # bounds are whole numbers then
            large = (exact_numbers < int(lower)) | (exact_numbers > int(upper))
            find(large & flags_of(pc.is_valid(given)), "is out of bounds", _BOUNDS)
        elif (big := np.abs(values) >= WHOLE).any():
            for row in np.flatnonzero(big):
                inexact[row] = int(exact_numbers[row]) != int(values[row])
    else:
        values = np.array(values.cast(pa.float64()).fill_null(np.nan).to_numpy())
    numbers = np.asarray(values, dtype=np.float64)
    gaps = flags_of(pc.is_null(given, nan_is_null=True))
    with np.errstate(invalid="ignore"):
        outside = ~((numbers >= lower) & (numbers <= upper)) & ~gaps
        broken = ((numbers != np.floor(numbers)) | inexact) & ~gaps & (column.kind != "number")
    find(outside, "is out of bounds", _BOUNDS)
    find(broken, "is no whole number", _ROUND)
    find(inexact & ~gaps, "is a number that would be changed", _EXACT)
    return numbers


def bucket_of(text: str, buckets: int) -> int:
    """The bucket of a text: the first 8 bytes of a SHA-256, as a big-endian number, modulo their number.

    Nothing secret is in it: whoever guesses a text knows its bucket.
    """
    digest = hashlib.sha256(_HASH_TAG + text.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") % buckets


def _of_buckets(column: Column, values: Any, gaps: Flags, find: Find) -> npt.NDArray[np.float64]:
    buckets = column.buckets or 1
    texts = values if pa.types.is_string(values.type) else _as_texts(values, ())
    find(flags_of(pc.equal(texts, "")), "is empty text, which is no gap and no text to hash", _EMPTY)
    different = pc.unique(texts).to_pylist()
    of = {text: bucket_of(text, buckets) for text in different if text is not None}
    places = np.array([of.get(text, 0) for text in texts.to_pylist()], dtype=np.int64)
    places[gaps] = buckets if column.own_gap else 0
    return np.asarray(np.eye(column.width)[places], dtype=np.float64)


def _of_categories(column: Column, values: Any, gaps: Flags, find: Find) -> npt.NDArray[np.float64]:
    categories = list(column.categories or ())
    text = isinstance(categories[0], str)
    known = pa.array(categories, pa.string() if text else pa.float64())
    kind = values.type
    if pa.types.is_null(kind):
        values = pa.chunked_array([pa.nulls(len(values), known.type)])
    elif text:
        values = _as_texts(values, categories)
    else:
        if pa.types.is_integer(kind):
            exact = values.fill_null(0).to_numpy()
            find((exact > WHOLE) | (exact < -WHOLE), "is out of bounds", _BOUNDS)
        values = pa.chunked_array([pa.array(np.asarray(values.fill_null(0).to_numpy(), dtype=np.float64))])
    places = pc.index_in(values, value_set=known)
    found = np.array(places.fill_null(-1).to_numpy(), dtype=np.int64)
    found[gaps] = -1
    strange = (found < 0) & ~gaps
    if text:  # as pyarrow reads an empty field of CSV in a column of text
        empty = strange & flags_of(pc.equal(values, ""))
        find(empty, "is empty text, which is no gap and of no category", _EMPTY)
    find(strange, "is of no category", _CATEGORY)
    if gaps.any() and column.missing is not None:
        found[gaps] = len(categories) if column.own_gap else categories.index(column.missing)
    if column.kind == "ordinal":
        return np.asarray(found[:, None], dtype=np.float64)
    return np.asarray(found[:, None] == np.arange(column.width), dtype=np.float64)


def _as_texts(values: Any, categories: Sequence[object]) -> Any:
    """Values of any type that `_misfit` lets pass, as the text of a category."""
    kind = values.type
    if pa.types.is_boolean(kind):
        words = _of_booleans(categories)
        return pc.if_else(values, words[True], words[False])
    if pa.types.is_floating(kind):
        whole = [None if value is None or value != value else str(int(value)) for value in values.to_pylist()]
        return pa.chunked_array([pa.array(whole, pa.string())])
    return values.cast(pa.string())


def _decoded(column: Column, numbers: npt.NDArray[np.float64]) -> Any:
    if column.kind == "number":
        return pa.array(column.decoded(numbers[:, 0]))
    if column.kind == "image":
        return table_images(numbers)
    places = numbers.argmax(axis=1) if column.kind in ONE_HOT else numbers[:, 0].astype(np.int64)
    if column.kind == "hashed":  # the texts do not come back
        return pa.array(places, mask=places == column.buckets)
    if column.kind == "integer":
        return pa.array(places)
    if column.kind in MOMENTS:
        return table_dates(places) if column.kind == "date" else table_times(places)
    listed: list[Any] = [False, True] if column.kind == "boolean" else list(column.categories or ())
    listed += [None] if column.own_gap else []
    return pa.array(listed).take(pa.array(places))
