"""Dates and times as whole numbers, and back: days and microseconds since 1970-01-01, in UTC.

No clock is read here. Text is ISO 8601: ``2024-12-31``, ``2024-12-31 23:59``, ``2024-12-31T23:59+02:00``. A
time without a zone counts as UTC.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hushbid.protocol.data.cells import flags_of

__all__ = ["DAY", "Moments", "is_moment", "moments_of", "table_dates", "table_times"]

Flags = npt.NDArray[np.bool_]

DAY: Final = 86_400_000_000
"""Microseconds of a day."""
_UNITS: Final = {"s": 1_000_000, "ms": 1_000, "us": 1, "ns": 0}
_TEXT: Final = r"^\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,9})?)?)?"
_ZONE: Final = r" ?(Z|[+-]\d\d:?\d\d)$"


class Moments(NamedTuple):
    """Moments as numbers; `wrong` and `inexact` ones are of no meaning.

    Attributes:
        microseconds: Shape (n,), int64, since 1970-01-01 in UTC; 0 in gaps.
        wrong: Which values are no moment.
        inexact: Which have a part of a microsecond.
    """

    microseconds: npt.NDArray[np.int64]
    wrong: Flags
    inexact: Flags


def is_moment(kind: Any) -> bool:
    """Whether a type of Arrow is that of dates or of times of a day."""
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def moments_of(values: Any) -> Moments:
    """The values of a column of text, dates or timestamps.

    Args:
        values: A pyarrow.ChunkedArray of such a type.
    """
    gaps = flags_of(pc.is_null(values))
    if pa.types.is_string(values.type):
        return _of_text(values, gaps)
    kind = values.type
    if pa.types.is_date32(kind):
        values, unit = values.cast(pa.int32()), DAY
    else:
        unit = _UNITS["ms" if pa.types.is_date64(kind) else kind.unit]
    whole = np.asarray(values.cast(pa.int64()).fill_null(0).to_numpy(), np.int64)
    if unit == 0:  # of a nanosecond
        return Moments(whole // 1000, np.zeros_like(gaps), (whole % 1000 != 0) & ~gaps)
    beyond = np.abs(whole.astype(np.float64)) * unit >= 2.0**63
    return Moments(np.where(beyond, 0, whole) * unit, beyond & ~gaps, np.zeros_like(gaps))


def _of_text(values: Any, gaps: Flags) -> Moments:
    texts = pc.utf8_trim_whitespace(values)
    zoned = flags_of(pc.match_substring_regex(texts, f"{_TEXT}{_ZONE}"))
    plain = flags_of(pc.match_substring_regex(texts, f"{_TEXT}$"))
    found = np.zeros(len(values), dtype=np.int64)
    wrong, inexact = ~(zoned | plain) & ~gaps, np.zeros(len(values), dtype=np.bool_)
    for rows, zone in ((plain, None), (zoned, "UTC")):
        places = np.flatnonzero(rows)
        if not len(places):
            continue
        part = pc.replace_substring_regex(texts.take(pa.array(places)), " ([Z+-])", r"\1")
        # What is finer than a microsecond does not parse as one, and is told from what is no moment.
        part = pc.replace_substring_regex(part, r"(\.\d{6})0+", r"\1")
        fine = flags_of(pc.match_substring_regex(part, r"\.\d{7}"))
        inexact[places[fine]] = True
        coarse = pc.replace_substring_regex(part, r"(\.\d{6})\d+", r"\1")
        numbers, bad = _parsed(coarse, pa.timestamp("us", zone))
        found[places], wrong[places[bad]] = numbers, True
    return Moments(found, wrong, inexact & ~wrong)


def _parsed(texts: Any, kind: Any) -> tuple[npt.NDArray[np.int64], Flags]:
    """Microseconds, and which texts name no moment of the calendar, such as a 30th of February."""
    try:
        whole = texts.cast(kind).cast(pa.int64()).to_numpy()
        return np.asarray(whole, np.int64), np.zeros(len(texts), dtype=np.bool_)
    except pa.ArrowException:
        found, bad = np.zeros(len(texts), dtype=np.int64), np.zeros(len(texts), dtype=np.bool_)
        for row, text in enumerate(texts):
            try:
                found[row] = text.cast(kind).cast(pa.int64()).as_py()
            except pa.ArrowException:
                bad[row] = True
        return found, bad


def table_dates(days: npt.NDArray[np.int64]) -> Any:
    """Days since 1970-01-01 as Arrow dates."""
    return pa.array(days.astype(np.int32)).cast(pa.date32())


def table_times(microseconds: npt.NDArray[np.int64]) -> Any:
    """Microseconds since 1970-01-01 as Arrow timestamps without a zone, in UTC."""
    return pa.array(microseconds).cast(pa.timestamp("us"))
