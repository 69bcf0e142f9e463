"""Each owner's sales, hand-overs and payment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hushbid.protocol.privacy.payment import Price
from hushbid.protocol.session.wishes import bill_of
from hushbid.report.rounds import wins_of
from hushbid.report.sources import TranscriptSource

__all__ = ["OwnerFigures", "owners_of"]


@dataclass(frozen=True, kw_only=True)
class OwnerFigures:
    """Columns with an entry for each owner of the roster; those that the transcripts lack are None.

    An entry of `standard_error` and `paid` is None if a release does not reveal its noise; of `asked`, `raw`
    and `sealed`, for an owner on which there is no transcript.
    """

    name: tuple[str, ...]
    won: tuple[int, ...] | None
    disputed: tuple[int, ...] | None
    settlement: tuple[float, ...] | None
    standard_error: tuple[float | None, ...] | None
    paid: tuple[float | None, ...] | None
    paid_for: str | None
    price: tuple[float, ...] | None
    amount: tuple[float, ...] | None
    absent: tuple[int, ...] | None
    asked: tuple[int | None, ...] | None
    raw: tuple[int | None, ...] | None
    sealed: tuple[int | None, ...] | None


def owners_of(sources: Sequence[TranscriptSource]) -> OwnerFigures:
    """The owners' columns, by the transcripts of one session."""
    names = sources[0].session.file.owners
    wins = wins_of(sources)
    curator = next((source for source in sources if source.curator is not None), None)
    machine = None if curator is None else curator.curator
    telling = [curator] if curator is not None else [each for each in sources if each.owner is not None]

    def column(counts: Mapping[str, int] | None) -> tuple[int, ...] | None:
        return None if counts is None else tuple(counts.get(name, 0) for name in names)

    def handed(kind: str) -> tuple[int | None, ...] | None:
        if not telling:
            return None
        counts = Counter(
            owner for each in telling for owners in getattr(each.course, kind).values() for owner in owners
        )
        known = names if curator is not None else [each.header.party for each in telling]
        return tuple(counts[name] if name in known else None for name in names)

    won = None if wins is None else Counter(owner for _, owner in wins)
    disputed = _disputed(sources)
    bill = None
    if won is not None:
        sold = Counter(won)
        sold.subtract(disputed or {})
        bill = bill_of(sources[0].session.file, sold)
    settlement = None if machine is None else machine.settlement()
    statement = None if machine is None else machine.statement(Price())
    errors, paid = (None, None) if statement is None else statement
    return OwnerFigures(
        name=names,
        won=column(won),
        disputed=column(disputed),
        settlement=None if settlement is None else tuple(settlement[name] for name in names),
        standard_error=None if errors is None else tuple(errors[name] for name in names),
        paid=None if paid is None else tuple(paid.owners[name].paid for name in names),
        paid_for=None if paid is None else paid.sentence(),
        price=None if bill is None else tuple(bill.owners[name].price for name in names),
        amount=None if bill is None else tuple(bill.owners[name].amount for name in names),
        absent=column(
            None if machine is None else Counter(absence.owner for absence in machine.ledger.absences)
        ),
        asked=handed("asked"),
        raw=handed("raw"),
        sealed=handed("sealed"),
    )


def _disputed(sources: Sequence[TranscriptSource]) -> Mapping[str, int] | None:
    for source in sources if sources[0].session.curator_reads else sources[::-1]:
        if source.curator is not None:
            return Counter(dispute.owner for dispute in source.curator.ledger.disputes)
        if source.consumer is not None and source.consumer.delivered:
            return Counter(entry.owner for entry in source.consumer.delivered if entry.dispute)
    return None
