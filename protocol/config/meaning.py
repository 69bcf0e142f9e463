"""The meaning of a session file regardless of how it is written: the map whose digest names the session.

Two files that differ only in ``1`` for ``1.0``, or in whether a default is written out, are the same session.
So every table enters with its effective values: the model of the mechanism, rule or feature map that it names
reads it and fills in defaults. docs/wire.md, "The session digest", is the specification.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from hushbid.protocol.errors import ConfigError
from hushbid.protocol.privacy.acquisition import RULES
from hushbid.protocol.privacy.releases import RELEASES
from hushbid.protocol.space.features import FEATURE_SPACES
from hushbid.protocol.wire.values import pack_value

__all__ = ["BEFORE_THERE_WERE_KEYS", "digest_of", "encoded_meaning", "in_force", "version_1_digest"]

_TAG: Final = b"hushbid session 2\0"
_OUTSIDE: Final = ("network", "timeouts", "roster")
"""Tables that do not affect any computation. The roster's names and the keys that protect are added back."""


BEFORE_THERE_WERE_KEYS: Final[Mapping[str, Any]] = {
    "batch": 1,
    "seed_weight": 1.0,
    "jitter": 0.0,
    "distinct": False,
    "numbered": False,
}
"""The settings of sessions from before ``[session]`` had keys for them."""


def digest_of(values: Mapping[str, Any], owners: tuple[str, ...]) -> bytes:
    """SHA-256 of what defines a session, 32 bytes; `encoded_meaning` describes the arguments."""
    return hashlib.sha256(_TAG + encoded_meaning(values, owners)).digest()


def encoded_meaning(values: Mapping[str, Any], owners: tuple[str, ...]) -> bytes:
    """The bytes that define a session.

    Args:
        values: All tables of a parsed session file by name, without keys that have no value.
        owners: The owners' names, sorted.
    """
    meaning = {name: table for name, table in values.items() if name not in _OUTSIDE}
    # Sessions with the original settings keep the digest that they had.
    meaning["session"] = {
        key: value
        for key, value in values["session"].items()
        if key not in BEFORE_THERE_WERE_KEYS or value != BEFORE_THERE_WERE_KEYS[key]
    }
    meaning["features"] = _features(values["features"])
    for name in ("target", "summary"):
        meaning[name] = in_force(name, values[name], values["features"]["columns"], len(owners))
    meaning["acquisition"] = in_force(
        "acquisition", values["acquisition"], values["features"]["columns"], len(owners)
    )
    meaning["owners"] = owners
    if values["noise"]["source"] == "secure":
        meaning["keys"] = values["roster"]
    return pack_value(meaning)


def in_force(name: str, table: Mapping[str, Any], columns: int, owners: int) -> Mapping[str, Any]:
    """The effective values of a table that names a mechanism or a rule.

    Args:
        name: Name of the table: ``target``, ``summary`` or ``acquisition``.

    Returns:
        All keys with defaults filled in; the table unchanged if nothing of that name accepts its keys, in
        which case no session has it.
    """
    chosen, registry = ("rule", RULES) if name == "acquisition" else ("mechanism", RELEASES)
    given = {key: value for key, value in table.items() if key != chosen}
    try:
        known = registry.chosen(table.get(chosen, ""), given)[1].in_force(columns=columns, owners=owners)
    except ConfigError:
        return table
    return {chosen: table[chosen], **known.model_dump(mode="json", exclude_none=True)}


def _features(table: Mapping[str, Any]) -> dict[str, Any]:
    known = dict(table)
    for bound in ("lower", "upper"):
        known[bound] = _one_if_all_are(table[bound])
    space = FEATURE_SPACES.get(table["map"])
    if space is None or not space.options:
        return known
    ranges = {key: table[key] for key in ("dimension", "gamma", "columns")}
    given = {key: table[key] for key in space.options if key in table}
    try:
        # The defaults of the options do not depend on the bounds.
        opened = space(**ranges, lower=0.0, upper=1.0, **given)
    except ConfigError:
        return known
    return known | {key: getattr(opened, key) for key in space.options}


def _one_if_all_are(bound: float | list[float]) -> float | list[float]:
    """A single bound if all columns share it, with 0.0 for -0.0."""
    if not isinstance(bound, list):
        return bound + 0.0
    positive = [value + 0.0 for value in bound]
    return positive[0] if len(set(positive)) == 1 else positive


def version_1_digest(values: Mapping[str, Any]) -> bytes:
    """The digest that protocol version 1 gave to a session, from its recorded file, with seeds.

    Raises:
        KeyError, TypeError: The values are not a session file's.
    """
    meaning = {name: table for name, table in values.items() if name not in _OUTSIDE}
    meaning["owners"] = sorted(values["roster"]["owners"])
    if values["noise"]["source"] == "secure":
        meaning["keys"] = values["roster"]
    text = json.dumps(meaning, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).digest()
