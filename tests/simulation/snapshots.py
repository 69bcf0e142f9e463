"""A machine's whole state as plain values, to tell whether a step that raised has left it as it was."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, Final

import numpy as np
from pydantic import BaseModel

from hushbid.protocol.machine.base import Machine

__all__ = ["arrays_in", "snapshot"]


def snapshot(machine: Machine) -> Any:
    """The state, all the way down, but for what never changes, and for a step's own clock and effects."""
    return _plain({name: value for name, value in vars(machine).items() if name not in _FIXED})


_FIXED: Final = frozenset({"_session", "_opened", "_space", "_rule", "_costs_of", "_now", "_effects"})
_PLAIN: Final = frozenset({type(None), bool, int, float, str, bytes})
_MODEL: Final = ("a model's",)
_FIELDS: Final[dict[type, tuple[str, ...]]] = {}
"""Attributes of the classes that were met: a walk takes snapshots at every step, and asking takes longer."""


def _plain(value: Any) -> Any:
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is dict:
        return {key: item if type(item) in _PLAIN else _plain(item) for key, item in value.items()}
    if kind in (list, tuple, deque):
        return [item if type(item) in _PLAIN else _plain(item) for item in value]
    if kind is np.ndarray:
        return value.dtype.str, value.shape, value.tobytes()
    names = _FIELDS.get(kind)
    if names is not None:
        inside = value.__dict__ if names is _MODEL else {name: getattr(value, name) for name in names}
        return kind.__name__, {
            key: item if type(item) in _PLAIN else _plain(item) for key, item in inside.items()
        }
    if isinstance(value, Enum):
        return value
    if isinstance(value, BaseModel):
        _FIELDS[kind] = _MODEL
        return _plain(value)
    if is_dataclass(value):
        _FIELDS[kind] = tuple(field.name for field in fields(value))
        return _plain(value)
    if isinstance(value, Mapping):
        return _plain(dict(value))
    if isinstance(value, set | frozenset):
        return sorted(map(str, value))
    if isinstance(value, list | tuple | deque):
        return _plain(list(value))
    slots = getattr(kind, "__slots__", ())
    inside = {name: getattr(value, name) for name in slots} or {
        name: item for name, item in vars(value).items() if name not in _FIXED
    }
    return kind.__name__, _plain(inside)


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
