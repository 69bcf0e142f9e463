"""A machine's whole state as plain values, to tell whether a step that raised has left it as it was."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, Final

import numpy as np
from pydantic import BaseModel

from protocol.machine import Machine

__all__ = ["arrays_in", "snapshot"]


def snapshot(machine: Machine) -> Any:
    """The state, all the way down, but for what never changes, and for a step's own clock and effects."""
    state = dict(vars(machine))
    for fixed in ("_session", "_opened", "_space", "_rule", "_costs_of", "_now", "_effects"):
        state.pop(fixed, None)
    return _plain(state)


_PLAIN: Final = frozenset({type(None), bool, int, float, str, bytes})


def _plain(value: Any) -> Any:
    if type(value) in _PLAIN or isinstance(value, Enum):
        return value
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, BaseModel):
        return type(value).__name__, _plain(dict(value.__dict__))
    if is_dataclass(value) and not isinstance(value, type):
        return type(value).__name__, {
            field.name: _plain(getattr(value, field.name)) for field in fields(value)
        }
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(map(str, value))
    if isinstance(value, list | tuple | deque):
        return [_plain(item) for item in value]
    slots = getattr(type(value), "__slots__", ())
    inside = {name: getattr(value, name) for name in slots} or vars(value)
    return type(value).__name__, _plain(inside)


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
