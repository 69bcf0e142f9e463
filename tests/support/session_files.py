"""Session files to test with."""

from __future__ import annotations

import copy
from typing import Any

import tomli_w

from hushbid.protocol.config.loading import load_toml_text
from hushbid.protocol.config.session import SessionFile

__all__ = ["SESSION", "at", "changed", "load", "text"]

SESSION: dict[str, Any] = {
    "session": {"name": "digits", "points": 100, "allow_nonprivate": True},
    "features": {"gamma": 0.5, "seed": 7, "columns": 3, "dimension": 8},
    "target": {"mechanism": "exact"},
    "summary": {"mechanism": "exact"},
    "acquisition": {"rule": "ask-all"},
    "noise": {"source": "simulated", "seed": 0},
    "network": {"address": "tcp://127.0.0.1:5790", "insecure": True},
    "roster": {"owners": {"alpha": "", "beta": "", "gamma": ""}},
}
"""The smallest that is valid: no CURVE, no privacy."""


def at(values: dict[str, Any], path: str) -> tuple[dict[str, Any], str]:
    """The table with the key at a dotted path, and the key; missing tables are made."""
    *tables, key = path.split(".")
    for table in tables:
        values = values.setdefault(table, {})
    return values, key


def changed(changes: dict[str, Any]) -> dict[str, Any]:
    """`SESSION` with values at dotted paths; None removes the key."""
    values = copy.deepcopy(SESSION)
    for path, value in changes.items():
        table, key = at(values, path)
        if value is None:
            table.pop(key, None)
        else:
            table[key] = copy.deepcopy(value)
    return values


def text(changes: dict[str, Any]) -> str:
    """The same as TOML."""
    return tomli_w.dumps(changed(changes))


def load(changes: dict[str, Any]) -> SessionFile:
    """The same, read as a party reads its file."""
    return load_toml_text(SessionFile, text(changes), where="session.toml")
