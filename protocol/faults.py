"""Pydantic's errors in terms of the values' author."""

from __future__ import annotations

import math
import re
from typing import Final, NamedTuple

from pydantic import ValidationError

__all__ = ["Fault", "faults"]

_WORDS: Final = {
    "bool_parsing": "should be true or false",
    "bool_type": "should be true or false",
    "bytes_type": "should be bytes",
    "dict_type": "should be a table",
    "extra_forbidden": "unknown key",
    "finite_number": "should be a number that is neither infinite nor nan",
    "float_parsing": "should be a number",
    "float_type": "should be a number",
    "int_from_float": "should be a whole number",
    "int_parsing": "should be a whole number",
    "int_type": "should be a whole number",
    "list_type": "should be a list",
    "missing": "is missing",
    "model_attributes_type": "should be a table",
    "model_type": "should be a table",
    "path_type": "should be a path, as text",
    "string_type": "should be text",
    "tuple_type": "should be a list",
}
"""Replacements for pydantic's messages in Python terms, by type of error."""
_PYDANTIC_S: Final = re.compile(
    r"^Value error, |^(Input|String|List|Tuple|Dictionary|Data) (?=should )| after validation"
)
"""The part of its other messages that is removed."""


class Fault(NamedTuple):
    """One fault.

    Attributes:
        kind: Pydantic's error type.
        place: The path of keys to the wrong one.
        words: The problem, as a predicate or a phrase. It does not repeat the given value, except for the tag
            of a union, which no configuration file has.
    """

    kind: str
    place: tuple[str, ...]
    words: str


def faults(error: ValidationError) -> list[Fault]:
    """The faults that a model found, at least one."""
    return [
        Fault(
            each["type"],
            # Pydantic marks a fault in a table's key, rather than in its value, by one more part.
            tuple(str(part) for part in each["loc"] if part != "[key]"),
            _words(each["type"], each["msg"], each["input"]),
        )
        for each in error.errors(include_url=False, include_context=False)
    ]


def _words(kind: str, message: str, given: object) -> str:
    # NaN is in no range: naming the bound it misses would name a wrong one.
    if isinstance(given, float) and math.isnan(given):
        return "is nan, which is no number"
    return _WORDS.get(kind) or _PYDANTIC_S.sub("", message)
