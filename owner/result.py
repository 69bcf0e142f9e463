"""An owner's result of a session: what its command line prints, and what Python gets."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic.dataclasses import dataclass

from hushbid.protocol.data.dataset import Changes
from hushbid.protocol.session.results import PartyResult

__all__ = ["OwnerResult"]


@dataclass(frozen=True, kw_only=True)
class OwnerResult(PartyResult):
    """An owner's result of a session. It does not say which points were bought: owners are not told.

    Attributes:
        owner: Its name.
        points: Its rows.
        root: What it committed to its rows by; None: it did not.
        unlabelled: How many of them have no label.
        unidentified: How many of them have no identifier.
        outside: What was changed of its rows.
        handed_over: How many points it handed over.
        rounds: How many rounds it took part in.
        ledger: The data's lifetime ledger.
    """

    role: Literal["owner"] = "owner"
    owner: str
    points: int
    root: str | None
    unlabelled: int
    unidentified: int = 0
    outside: Changes
    handed_over: int
    rounds: int
    ledger: Path
