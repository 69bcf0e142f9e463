"""The interval that a type states for its numbers (`hushbid.protocol.ranges`), for all readers but pydantic.

It imports neither pydantic nor annotated_types: the list of verbs is printed with it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, get_args

__all__ = ["Interval", "interval_of", "stated", "within"]


class Interval(NamedTuple):
    """What a number has to be compared with; None: nothing. The names are those of annotated_types."""

    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None

    def fault(self, value: float) -> str | None:
        """What is wrong with a finite number, as in "is below 1"; None if nothing is."""
        least = self.ge if self.ge is not None else self.gt
        most = self.le if self.le is not None else self.lt
        if least is not None and value < least:
            return f"is below {_shown(least)}"
        if most is not None and value > most:
            return f"is above {_shown(most)}"
        if value == self.gt:
            return f"is not above {_shown(value)}"
        return f"is not below {_shown(value)}" if value == self.lt else None

    @property
    def whole(self) -> tuple[int | None, int | None]:
        """The least and the largest whole number in it."""
        least, most = self.ge if self.gt is None else self.gt + 1, self.le if self.lt is None else self.lt - 1
        return None if least is None else int(least), None if most is None else int(most)

    def __str__(self) -> str:
        """The range as help shows it: "x>=1", "0<x<=1"."""
        below = f"{self.ge}<=x" if self.ge is not None else f"{self.gt}<x" if self.gt is not None else ""
        above = f"x<={self.le}" if self.le is not None else f"x<{self.lt}" if self.lt is not None else ""
        if below and above:
            return below + above[1:]
        return above or (f"x>={self.ge}" if self.ge is not None else f"x>{self.gt}")


def interval_of(kind: Any) -> Interval | None:
    """The interval that a type states, or a type within its list or union; None if none does."""
    found = {
        name: value
        for part in getattr(kind, "__metadata__", ())
        for name in Interval._fields
        if (value := getattr(part, name, None)) is not None
    }
    return Interval(**found) if found else next(filter(None, map(interval_of, get_args(kind))), None)


def stated(kind: Any) -> Interval:
    """The interval of a type that states one."""
    interval = interval_of(kind)
    assert interval is not None, "it states none"
    return interval


def within(kind: Any, value: float) -> bool:
    """Whether a number is finite, and in the interval that a type states."""
    if not (isinstance(value, int) and _is_whole(kind)):
        try:
            if not math.isfinite(value):
                return False
        except OverflowError:  # a whole number that is larger than any float
            return False
    return stated(kind).fault(value) is None


def _is_whole(kind: Any) -> bool:
    return kind is int or any(map(_is_whole, get_args(kind)))


def _shown(bound: float) -> str:
    """A bound with all its digits, if it is a whole number."""
    return f"{int(bound)}" if bound == int(bound) else f"{bound:g}"
