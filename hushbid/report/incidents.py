"""Incidents of a session: connections, absences, faults, disputes, refusals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from hushbid.consumer.machine import ConsumerMachine
from hushbid.curator.ledger import NOT_TOLD, Ledger
from hushbid.protocol.names import CONSUMER
from hushbid.report.sources import TranscriptSource

__all__ = ["Incident", "Incidents", "incidents_of"]

SHOWN_INCIDENTS: Final = 1_000
"""Most incidents in the list; their total is always given."""


@dataclass(frozen=True, kw_only=True)
class Incident:
    """An incident: something that should not have happened.

    Attributes:
        what: lost or returned (a connection), restarted (a process), fault or dispute (of a point), or
            refusal (of a peer).
        told_by: The party whose transcript says so.
        round: 0: none had begun; None: not on record.
        seconds: Since that transcript's first record; None: not on record.
        party: The party concerned; None if its name was removed.
    """

    what: str
    told_by: str
    round: int | None
    seconds: float | None
    party: str | None
    detail: str


@dataclass(frozen=True, kw_only=True)
class Incidents:
    """All incidents, transcript by transcript, or the first of a larger total."""

    listed: tuple[Incident, ...]
    total: int


def incidents_of(sources: Sequence[TranscriptSource]) -> Incidents:
    """The incidents of one session, by its transcripts."""
    found: list[Incident] = []
    told_of_disputes = any(source.consumer is not None for source in sources)
    for source in sources:
        found += _connections(source)
        if source.curator is not None:
            found += _books(source.curator.ledger, with_disputes=not told_of_disputes)
        elif source.consumer is not None:
            found += _disputes(source.consumer)
    return Incidents(listed=tuple(found[:SHOWN_INCIDENTS]), total=len(found))


def _connections(source: TranscriptSource) -> Iterable[Incident]:
    name = source.header.party
    for entry in source.course.connections:
        # A consumer's transcript records no rounds, unless it weighs.
        tells = source.header.role != CONSUMER or source.session.weigher == CONSUMER
        number = entry.round if tells else None
        party = name if entry.what == "restarted" else entry.peer or None
        yield Incident(
            what=entry.what, told_by=name, round=number, seconds=entry.seconds, party=party, detail=""
        )


def _books(ledger: Ledger, *, with_disputes: bool) -> Iterable[Incident]:
    entries = [("fault", fault.bid_round, fault.owner, fault.text) for fault in ledger.faults]
    entries += [("refusal", each.round, each.peer, each.offence.said) for each in ledger.refusals]
    if with_disputes:
        entries += [("dispute", dispute.chosen_round, dispute.owner, "") for dispute in ledger.disputes]
    for what, number, party, detail in sorted(entries, key=lambda entry: entry[1]):
        known = None if what == "dispute" and number == NOT_TOLD else number
        yield Incident(what=what, told_by="curator", round=known, seconds=None, party=party, detail=detail)


def _disputes(consumer: ConsumerMachine) -> Iterable[Incident]:
    for fault in consumer.faults:
        yield Incident(
            what="dispute",
            told_by=consumer.name,
            round=fault.round,
            seconds=None,
            party=fault.owner,
            detail=fault.text,
        )
