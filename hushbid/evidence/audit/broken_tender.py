"""Curators for an audit of `tender` that leak something of others, or of the consumer, to an owner.

Each is the real party except for one part, as in `broken`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from hushbid.curator.machine import CuratorMachine
from hushbid.evidence.audit.attack import CuratorParty
from hushbid.evidence.audit.broken import CuratorFault
from hushbid.protocol.errors import ExitCode
from hushbid.protocol.machine.machine import Finish
from hushbid.protocol.session.session import Session
from hushbid.protocol.space.scoring import Best
from hushbid.protocol.wire.messages import (
    Batch,
    Bid,
    Broadcast,
    Call,
    Message,
    NestedTarget,
    Next,
    SealedBroadcast,
)

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

    def _broadcast(self, owner: str, message: Broadcast | SealedBroadcast, body: bytes | None = None) -> None:
        submitted = [parcel.features for parcel in self._unverified]
        if submitted and isinstance(message, Call):
            total = message.seed_total + np.concatenate(submitted).sum(axis=0, dtype=np.int64)
            message, body = message.model_copy(update={"seed_total": total}), None
        super()._broadcast(owner, message, body)


class _Acknowledges(CuratorMachine):
    """A curator that calls owners again from whom it has bought."""

    def _take(self, found: Sequence[Best]) -> None:
        super()._take(found)
        for owner in {win.owner for win in self.ledger.wins}:
            self._tell(owner)

    def _tell(self, owner: str) -> None:
        if self._round.message is not None:
            self._send(owner, self._round.message)


class _CallsAgain(_Acknowledges):
    """A curator that calls everybody again if too few points were submitted."""

    def _take(self, found: Sequence[Best]) -> None:
        CuratorMachine._take(self, found)
        if len(found) < self._session.session.points:
            for owner in self.owners:
                self._tell(owner)


class _AsksForEnough(CuratorMachine):
    """A curator that asks for the rest of a submission only while it has too few points."""

    _withheld: Next | None = None

    def _send(self, peer: str, message: Message, body: bytes | None = None) -> None:
        if isinstance(message, Next):
            self._withheld = message  # until the received points are counted
        else:
            super()._send(peer, message, body)

    def _take_bid(self, owner: str, message: Bid | Batch) -> None:
        super()._take_bid(owner, message)
        more, self._withheld = self._withheld, None
        submitted = sum(map(len, self._unverified))
        if more is not None and submitted < self._session.session.points:
            super()._send(owner, more)


class _ClosesByThePurchase(CuratorMachine):
    """A curator that calls a session complete only if it bought as many points as wanted."""

    def _begin_closing(self, outcome: Literal["complete", "abandoned"], ending: Finish) -> None:
        if len(self.ledger.wins) < self._session.session.points:
            outcome, ending = "abandoned", Finish(ExitCode.FAILED, "Too few points were bought.")
        super()._begin_closing(outcome, ending)


class _CallsWithTheFinerRelease(CuratorMachine):
    """A curator that uses the finer target for everybody."""

    def _call(self, broadcast: Broadcast) -> Call:
        target, call = self.target, super()._call(broadcast)
        finer = target.finer if isinstance(target, NestedTarget) else call.embedding
        return call.model_copy(update={"embedding": finer})


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
