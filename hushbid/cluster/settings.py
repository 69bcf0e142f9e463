"""Values that change a cluster file's, and values of Python as a file would give them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, time
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np

from hushbid.protocol.config.loading import toml_value
from hushbid.protocol.errors import ConfigError

__all__ = ["Settings", "plain", "with_settings"]

Settings: TypeAlias = Mapping[str, Any] | Sequence[str]
"""Changes to a file, as `open_cluster` takes them."""

_FORM = 'Write it as in `--set session.points=200`, or in Python {"session.points": 200}.'


def with_settings(values: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    """The tables of a file with their settings.

    Raises:
        ConfigError: A setting is not of the form that `open_cluster` takes, or no value of a file.
    """
    changed = {name: dict(table) if isinstance(table, dict) else table for name, table in values.items()}
    for place, value in _parted(settings):
        section, dot, key = place.partition(".")
        if not (dot and section and key):
            raise ConfigError(f"The setting {place!r} is not of the form section.key=value.", advice=_FORM)
        if "." in key:
            name, _, inner = key.partition(".")
            raise ConfigError(
                f"The setting {place!r} is of a table within {section!r}.",
                advice=f"Change the file, or set that table as a whole: {section}.{name}={{{inner} = …, …}}",
            )
        table = changed.setdefault(section, {})
        if not isinstance(table, dict):
            raise ConfigError(
                f"There is no section {section!r} to set a key in.", advice=f"Correct the setting {place!r}."
            )
        table[key] = value
    return changed


def plain(value: Any, place: str = "") -> Any:
    """A value of Python or NumPy in the types that are read from a file.

    Args:
        place: Its name, for the error.

    Raises:
        TypeError: No file has such a value; the error holds the place of it.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Mapping):
        return {str(key): plain(each, f"{place}.{key}" if place else str(key)) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each, place) for each in value]
    if isinstance(value, str):
        return str.__str__(value)  # of a subclass, too
    if isinstance(value, Decimal) and value.is_nan():
        return float("nan")  # float() takes no signalling one
    if isinstance(value, float | Decimal):
        return float(value)
    if isinstance(value, bool | date | time):
        return value
    if isinstance(value, int):
        return int(value)
    raise TypeError(place)


def _parted(settings: Settings) -> Iterator[tuple[str, Any]]:
    if isinstance(settings, Mapping):
        yield from ((place, _given(value, place)) for place, value in settings.items())
        return
    for setting in settings:
        place, equals, text = setting.partition("=")
        if not equals:
            raise ConfigError(f"The setting {setting!r} is not of the form section.key=value.", advice=_FORM)
        yield place.strip(), toml_value(text.strip())


def _given(value: Any, place: str) -> Any:
    try:
        return plain(value)
    except TypeError:
        raise ConfigError(
            f"The setting {place!r} is neither a number nor text, or a list or table of such.",
            advice="Correct it.",
        ) from None
