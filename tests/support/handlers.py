"""Bugs in handlers: tables hold functions, so a bug is planted in their rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Final, cast

import pytest

import hushbid.consumer.blind_rounds
import hushbid.consumer.machine
import hushbid.curator.machine
import hushbid.owner.machine
from hushbid.protocol.machine.base import TransitionTable

__all__ = ["TABLES", "handled_otherwise"]

TABLES: Final[dict[str, TransitionTable[Any]]] = {
    "owner": hushbid.owner.machine.OPEN,
    "consumer": hushbid.consumer.machine.OPEN,
    "curator": hushbid.curator.machine.OPEN,
    "blind owner": hushbid.owner.machine.BLIND,
    "blind consumer": hushbid.consumer.blind_rounds.BLIND,
    "unlinked consumer": hushbid.consumer.blind_rounds.UNLINKED,
    "blind curator": hushbid.curator.machine.BLIND,
    "unlinked curator": hushbid.curator.machine.UNLINKED,
}
"""All tables."""


def handled_otherwise(
    patch: pytest.MonkeyPatch, handler: Callable[..., None], other: Callable[..., None]
) -> None:
    """Replace a handler in every row of every table that has it."""
    rows = [
        (cast("dict[Any, Any]", table.by_trigger), key, row)
        for table in TABLES.values()
        for key, row in table.by_trigger.items()
        if row.handler is handler
    ]
    assert rows, "no table has the handler"
    for by_trigger, key, row in rows:
        patch.setitem(by_trigger, key, dataclasses.replace(row, handler=other))
