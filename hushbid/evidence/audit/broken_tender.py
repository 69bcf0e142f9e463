"""Curators for an audit of `tender` that leak something of others, or of the consumer, to an owner."""

from __future__ import annotations

import numpy as np

from hushbid.curator.machine import CuratorMachine
from hushbid.evidence.audit.attack import CuratorParty
from hushbid.evidence.audit.broken import CuratorFault
from hushbid.protocol.session.session import Session
from hushbid.protocol.wire.messages import Call, Close, Message, NestedTarget, Next

__all__ = [
    "acknowledging",
    "asking_for_enough",
    "calling_again",
    "calling_by_the_pool",
    "calling_with_the_finer_release",
    "closing_by_the_purchase",
]


class _CallsByThePool(CuratorMachine):
    """A curator whose call includes earlier submissions, as a summary of the purchase would."""

    def send(self, peer: str, message: Message, body: bytes | None = None) -> None:
        submitted = [parcel.features for parcel in self.selection.unverified]
        if submitted and isinstance(message, Call):
            total = message.seed_total + np.concatenate(submitted).sum(axis=0, dtype=np.int64)
            message, body = message.model_copy(update={"seed_total": total}), None
        super().send(peer, message, body)


class _Acknowledges(CuratorMachine):
    """A curator that calls owners again from whom it has bought."""

    _acknowledged = False

    def check(self) -> None:
        super().check()
        if self.ledger.wins and not self._acknowledged:
            self._acknowledged = True
            self._acknowledge()

    def _acknowledge(self) -> None:
        for owner in {win.owner for win in self.ledger.wins}:
            self._tell(owner)

    def _tell(self, owner: str) -> None:
        if self.current.message is not None:
            self.send(owner, self.current.message)


class _CallsAgain(_Acknowledges):
    """A curator that calls everybody again if too few points were submitted."""

    def _acknowledge(self) -> None:
        if len(self.ledger.wins) < self.file.session.points:
            for owner in self.owners:
                self._tell(owner)


class _AsksForEnough(CuratorMachine):
    """A curator that asks for the rest of a submission only while it has too few points."""

    _withheld: tuple[str, Next] | None = None

    def send(self, peer: str, message: Message, body: bytes | None = None) -> None:
        if isinstance(message, Next):
            self._withheld = peer, message  # until the received points are counted
        else:
            super().send(peer, message, body)

    def check(self) -> None:
        super().check()
        withheld, self._withheld = self._withheld, None
        submitted = sum(len(parcel) for parcel in self.selection.unverified)
        if withheld is not None and submitted < self.file.session.points:
            super().send(*withheld)


class _ClosesByThePurchase(CuratorMachine):
    """A curator that calls a session complete only if it bought as many points as wanted."""

    def send(self, peer: str, message: Message, body: bytes | None = None) -> None:
        if isinstance(message, Close) and len(self.ledger.wins) < self.file.session.points:
            message, body = message.model_copy(update={"outcome": "abandoned"}), None
        super().send(peer, message, body)


class _CallsWithTheFinerRelease(CuratorMachine):
    """A curator that uses the finer target for everybody."""

    def send(self, peer: str, message: Message, body: bytes | None = None) -> None:
        if isinstance(message, Call) and isinstance(self.target, NestedTarget):
            message, body = message.model_copy(update={"embedding": self.target.finer}), None
        super().send(peer, message, body)


def _fault(kind: type[CuratorMachine]) -> CuratorFault:
    def fault(session: Session, party: CuratorParty) -> CuratorParty:
        return kind(session), party[1]

    return fault


calling_by_the_pool = _fault(_CallsByThePool)
"""A call contains Σφ of others' earlier submissions."""
acknowledging = _fault(_Acknowledges)
"""An owner is told that one of its points was bought, once that is known."""
asking_for_enough = _fault(_AsksForEnough)
"""An owner is asked for its next message only if too few points were submitted so far."""
calling_again = _fault(_CallsAgain)
"""All owners are called again if fewer points were submitted than are to be bought."""
closing_by_the_purchase = _fault(_ClosesByThePurchase)
"""The close reveals whether as many points as wanted were bought."""
calling_with_the_finer_release = _fault(_CallsWithTheFinerRelease)
"""Owners get the curator's release."""
