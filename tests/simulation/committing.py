"""Owners' commitments, at a bench where nobody has rows."""

from __future__ import annotations

from typing import Any

from hushbid.protocol.crypto.sealing import rows_statement, sign
from hushbid.protocol.session.session import Session
from hushbid.protocol.wire.messages import Commitment
from tests.simulation.harness import CuratorBench

__all__ = ["commitment_of", "commitment_to"]


def commitment_of(bench: CuratorBench, owner: str, **changes: Any) -> Commitment:
    """An owner's signed commitment to rows of its own."""
    root = bytes([bench.machine.seats[owner].rank + 1]) * 32
    commitment = commitment_to(bench.opened, owner, root)
    return commitment.model_copy(update=changes)


def commitment_to(session: Session, owner: str, root: bytes) -> Commitment:
    """An owner's signed commitment to a root."""
    statement = rows_statement(session.identifier, owner, session.commitment_depth, root)
    return Commitment(root=root, signature=sign(statement, session.simulated_identity(owner).signing))
