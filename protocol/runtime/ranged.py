"""Options of verbs whose ranges are those of their types (`hushbid.protocol.ranges`)."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Annotated, Any, get_args, get_origin

import typer

from hushbid.protocol.intervals import interval_of

__all__ = ["ranged", "without_range"]


def ranged(kind: Any, *declared: str, **settings: Any) -> Any:
    """Typer's option of a type that may state a range, which the help shows.

    Typer refuses a whole number that is out of it. A float goes to whoever reads it, as from Python and from
    files: of bounds that are excluded, and of what is no number, Typer knows nothing.

    Args:
        declared: As Typer takes them, like `settings`.
    """
    interval = interval_of(kind)
    if interval is None:
        return typer.Option(*declared, **settings)
    kinds = _within(kind)
    if int in kinds:
        least, most = interval.whole
        return typer.Option(*declared, min=least, max=most, **settings)
    shown = f"<{'list[float]' if list in kinds else 'float range'}> [{interval}]"
    return typer.Option(*declared, **{"metavar": shown} | settings)


def without_range(kind: Any) -> Any:
    """The type as Typer takes it, which knows no ranges of types within unions or lists."""
    arguments = get_args(kind)
    if interval_of(kind) is None:
        return kind
    if get_origin(kind) is Annotated:
        return arguments[0]
    if get_origin(kind) is list:
        return list[without_range(arguments[0])]  # type: ignore[misc]
    return reduce(or_, map(without_range, arguments))


def _within(kind: Any) -> set[Any]:
    """A type or its origin, and those of all types within it, for unions and lists."""
    return {get_origin(kind) or kind}.union(*map(_within, get_args(kind)))
