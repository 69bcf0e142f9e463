"""The curator's result of a session: what its command line prints, and a part of a run's result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic.dataclasses import dataclass

from hushbid.curator.ledger import PointFault
from hushbid.curator.machine import CuratorMachine
from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.figures import Figures
from hushbid.protocol.privacy.payment import PaidStatement, Price
from hushbid.protocol.privacy.settlement import SettlementTerms
from hushbid.protocol.session.results import PartyResult
from hushbid.protocol.session.wishes import bill_of
from hushbid.protocol.space.prices import Bill

__all__ = ["CuratorResult", "DisputeOf", "RefusalOf", "Sale"]


@dataclass(frozen=True, slots=True)
class DisputeOf(Figures):
    """A chosen point that the consumer disputes: its owner, and the round of the choice if it is known."""

    owner: str
    round: int | None


@dataclass(frozen=True, slots=True)
class RefusalOf(Figures):
    """A peer that was refused for a breach of the protocol: in which round (0: before the first), and why."""

    peer: str
    round: int
    code: str


@dataclass(frozen=True, kw_only=True)
class Sale(Figures):
    """What a curator knows of a session that is over.

    Attributes:
        wall_seconds: Duration of the rounds.
        points_accessed: How many raw points it saw.
        points_delivered: How many points it chose.
        settlement: Owner → value of its points.
        settlement_standard_error: Owner → the standard error of that; None if the noise is not known.
        settlement_paid: What each owner should be paid; None if nothing was settled.
        absences: Owner → number of rounds it was absent from; owners that missed none are left out.
    """

    TOLD: ClassVar[Mapping[str, str]] = {"rounds_per_second": "rounds_per_second"}

    session: str
    rounds: int
    wall_seconds: float
    points_accessed: int
    points_delivered: int
    settlement: Mapping[str, float]
    settlement_standard_error: Mapping[str, float | None]
    bill: Bill | None
    settlement_paid: PaidStatement | None
    absences: Mapping[str, int]
    faults: tuple[PointFault, ...]
    disputes: tuple[DisputeOf, ...]
    refusals: tuple[RefusalOf, ...]

    @classmethod
    def of(cls, session: SessionFile, machine: CuratorMachine, price: Price, *, seconds: float) -> Sale:
        """What the machine of a session that is over knows.

        Args:
            price: The prices for the numbers of the settlement's statement.
            seconds: Duration of the rounds.
        """
        ledger = machine.ledger
        errors, paid = machine.statement(price) or ({}, None)
        absences = Counter(absence.owner for absence in ledger.absences)
        return Sale(
            session=session.session.name,
            rounds=machine.round,
            wall_seconds=seconds,
            points_accessed=ledger.points_accessed,
            points_delivered=ledger.chosen,
            settlement=dict(machine.settlement() or {}),
            settlement_standard_error=dict(errors),
            bill=bill_of(session, ledger.sold()),
            settlement_paid=paid,
            absences={owner: absences[owner] for owner in machine.owners if absences[owner]},
            faults=tuple(ledger.faults),
            disputes=tuple(DisputeOf(each.owner, each.chosen_round or None) for each in ledger.disputes),
            refusals=tuple(RefusalOf(each.peer, each.round, each.offence.value) for each in ledger.refusals),
        )

    @property
    def rounds_per_second(self) -> float | None:
        """None where no time was measured."""
        return self.rounds / self.wall_seconds if self.wall_seconds > 0 else None


@dataclass(frozen=True, kw_only=True)
class CuratorResult(PartyResult, Sale):
    """A curator's result of a session: the points chosen from each owner, and what they are worth.

    Attributes:
        settlement_terms: Whether owners may be told the settlement.
    """

    role: Literal["curator"] = "curator"
    settlement_terms: SettlementTerms
