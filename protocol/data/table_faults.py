"""What does not fit in a table: all of it, column by column, in one message that never quotes a value."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from hushbid.protocol.data.csv_files import Source
from hushbid.protocol.data.names import found, listed
from hushbid.protocol.errors import DataError

__all__ = ["ABSENT", "NAMES_ADVICE", "ColumnFault", "Flags", "check_present", "refusal"]

Flags: TypeAlias = npt.NDArray[np.bool_]

NAMES_ADVICE: Final = "Name the columns as the schema does."
ABSENT: Final = "is not there"
_MOST: Final = 20
"""Most faults that a message has."""


@dataclass(frozen=True, eq=False)
class ColumnFault:
    """What does not fit in a column.

    Attributes:
        what: What is wrong, as the end of a sentence.
        advice: What to do.
        rows: Where, shape (rows,); None: in the column as a whole.
        beyond: Whether these are numbers that could be clipped to the column's bounds.
    """

    column: str
    what: str
    advice: str
    rows: Flags | None = None
    beyond: bool = False

    def said(self, source: Source | None = None) -> str:
        """The fault, without the table's name; `source` is the file that has the rows on lines."""
        if self.rows is None:
            return f"column {self.column!r}{self.what if self.what.startswith(':') else f' {self.what}'}"
        row, more = int(self.rows.argmax()), int(self.rows.sum()) - 1
        others = f", and those of {more} more rows" if more else ""
        line = "" if source is None else f"; line {source.line(row)} of the file"
        return f"column {self.column!r}: row {row} (counted from 0{line}) {self.what}{others}"


def check_present(wanted: Iterable[str], names: Sequence[str], name: str) -> None:
    """Check that a table has these columns, before all others are left out.

    Raises:
        DataError: It has not; the message says which columns it has.
    """
    if absent := [column for column in wanted if column not in names]:
        raise refusal([ColumnFault(column, ABSENT, NAMES_ADVICE) for column in absent], name, names)


def refusal(
    faults: Sequence[ColumnFault], name: str, names: Sequence[str], source: Source | None = None
) -> DataError:
    """One error about all faults of a table; there is at least one.

    Args:
        name: The table's, in the message.
        names: The columns that it has.
    """
    absent = [fault.column for fault in faults if fault.what == ABSENT]
    others = [fault for fault in faults if fault.what != ABSENT]
    said = [f"has no column {listed(absent)}; {found(names)}"] if absent else []
    said += [fault.said(source) for fault in others[:_MOST]]
    more = len(others) - _MOST
    said += [f"{more} more columns do not fit"] if more > 0 else []
    advice = " ".join(dict.fromkeys(fault.advice for fault in faults))
    if absent and len(names) == 1:
        advice += (
            " If a file's cells are separated otherwise, say `separator` under `columns` in your own file."
        )
    if len(said) == 1:
        return DataError(f"{name}{' ' if absent else ': '}{said[0]}.", advice=advice)
    first = f"{name} {said.pop(0)}." if absent else f"{name} does not fit."
    each = " ".join(f"({number}) {text[:1].upper()}{text[1:]}." for number, text in enumerate(said, 1))
    return DataError(f"{first} {each}", advice=advice)
