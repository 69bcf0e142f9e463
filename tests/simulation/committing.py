"""What an owner commits to, at a bench where nobody has rows."""

from __future__ import annotations

from typing import Any

from hushbid.protocol.crypto.sealing import rows_statement, sign
from hushbid.protocol.wire.messages import Commitment
from tests.simulation.harness import CuratorBench

__all__ = ["commitment_of"]


def commitment_of(bench: CuratorBench, owner: str, **changes: Any) -> Commitment:
    """An owner's commitment to rows of its own; it signed it."""
    opened, root = bench.opened, bytes([bench.machine.seats[owner].rank + 1]) * 32
    statement = rows_statement(opened.identifier, owner, opened.commitment_depth, root)
    signature = sign(statement, opened.simulated_identity(owner).signing)
    return Commitment(**({"root": root, "signature": signature} | changes))
