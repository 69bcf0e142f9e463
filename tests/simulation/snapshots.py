"""A machine's whole state as plain values, to tell whether a step that raised has left it unchanged."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from operator import attrgetter
from typing import Any, Final

import numpy as np
from pydantic import BaseModel

from hushbid.protocol.machine.base import Machine

__all__ = ["arrays_in", "snapshot"]


def snapshot(machine: Machine) -> Any:
    """The whole state, except what never changes, and a step's own clock and effects."""
    return _plain({name: value for name, value in vars(machine).items() if name not in _FIXED})


_FIXED: Final = frozenset(
    {
        "_session",
        "_opened",
        "_space",
        "_rule",
        "_costs_of",
        "_effects",
        "session",
        "file",
        "rule",
        "table",
        "now",
        "_seats",  # a selection's, which the machine has too
        "_ledger",
    }
)
_PLAIN: Final = frozenset({type(None), bool, int, float, str, bytes})


def _plain(value: Any) -> Any:
    kind = type(value)
    return (_WAYS.get(kind) or _way_of(kind))(value)


def _as_it_is(value: Any) -> Any:
    return value


def _of_items(values: Iterable[Any]) -> list[Any]:
    return [item if type(item) in _PLAIN else _plain(item) for item in values]


def _of_values(values: Mapping[Any, Any]) -> dict[Any, Any]:
    return {key: item if type(item) in _PLAIN else _plain(item) for key, item in values.items()}


def _of_array(array: np.ndarray[Any, Any]) -> tuple[str, tuple[int, ...], bytes]:
    return array.dtype.str, array.shape, array.tobytes()


def _of_attributes(value: Any) -> tuple[str, dict[str, Any]]:
    return type(value).__name__, {
        name: item if type(item) in _PLAIN else _plain(item)
        for name, item in vars(value).items()
        if name not in _FIXED
    }


def _of_model(value: BaseModel) -> tuple[str, dict[Any, Any]]:
    return type(value).__name__, _of_values(value.__dict__)


def _of_names(kind: type, names: Iterable[str]) -> Callable[[Any], Any]:
    """How the attributes of these names are read."""
    read = attrgetter("__class__", *names)  # of two names at least, so that there is a tuple of values
    return lambda value: (kind.__name__, _of_items(read(value)[1:]))


_WAYS: Final[dict[type, Callable[[Any], Any]]] = {
    **dict.fromkeys(_PLAIN, _as_it_is),
    **dict.fromkeys((list, tuple, deque), _of_items),
    dict: _of_values,
    np.ndarray: _of_array,
}
"""How values of a class become plain: a walk takes snapshots at every step, and asking takes longer."""


def _way_of(kind: type) -> Callable[[Any], Any]:
    """How a class that is met for the first time is read."""
    if issubclass(kind, Enum):
        way: Callable[[Any], Any] = _as_it_is
    elif issubclass(kind, BaseModel):
        way = _of_model
    elif is_dataclass(kind):
        way = _of_names(kind, [field.name for field in fields(kind)])
    elif issubclass(kind, Mapping):
        way = _of_values
    elif issubclass(kind, set | frozenset):
        way = frozenset
    elif issubclass(kind, list | tuple | deque):
        way = _of_items
    elif slots := getattr(kind, "__slots__", ()):
        way = _of_names(kind, slots)
    else:
        way = _of_attributes
    return _WAYS.setdefault(kind, way)


def arrays_in(value: Any) -> list[np.ndarray[Any, Any]]:
    """Every array that an event or effect holds."""
    if isinstance(value, np.ndarray):
        return [value]
    if isinstance(value, BaseModel):
        return arrays_in(list(value.__dict__.values()))
    if is_dataclass(value) and not isinstance(value, type):
        return arrays_in([getattr(value, field.name) for field in fields(value)])
    if isinstance(value, list | tuple):
        return [array for item in value for array in arrays_in(item)]
    return []
