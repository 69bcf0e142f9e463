"""The curator's result of a session: the JSON of its process, and a part of a run's result."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hushbid.curator.machine import CuratorMachine
from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.privacy.payment import Price
from hushbid.protocol.session.wishes import bill_of

__all__ = ["curator_result"]


def curator_result(
    session: SessionFile, machine: CuratorMachine, price: Price, *, seconds: float
) -> dict[str, Any]:
    """The curator's figures after the session (docs/results.md).

    Args:
        price: The prices for the numbers of the settlement's statement.
        seconds: Duration of the rounds.
    """
    ledger = machine.ledger
    errors, paid = machine.statement(price) or ({}, None)
    absences = Counter(absence.owner for absence in ledger.absences)
    return {
        "session": session.session.name,
        "rounds": machine.round,
        "wall_seconds": seconds,
        "rounds_per_second": machine.round / seconds if seconds > 0 else None,
        "points_accessed": ledger.points_accessed,
        "points_delivered": ledger.chosen,
        "settlement": dict(machine.settlement() or {}),
        "settlement_standard_error": dict(errors),
        "bill": bill_of(session, ledger.sold()),
        "settlement_paid": None if paid is None else paid.as_json(),
        "absences": {owner: absences[owner] for owner in machine.owners if absences[owner]},
        "faults": [fault.as_json() for fault in ledger.faults],
        "disputes": [
            {"owner": dispute.owner, "round": dispute.chosen_round or None} for dispute in ledger.disputes
        ],
        "refusals": [
            {"peer": refusal.peer, "round": refusal.round, "code": refusal.offence.value}
            for refusal in ledger.refusals
        ],
    }
