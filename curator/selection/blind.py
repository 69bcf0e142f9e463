"""The selection under the rule `blind`: the curator orders bids that it cannot read, and opens no box.

It has no numerics. The consumer sends each round's weight, encrypted, and the curator passes it on. Owners
answer with boxes and with a masked score of each box that they ever sent. The curator chooses the highest
boxes of present owners: by masked score, then by the owner's rank, then by the box's number. It sends them to
the consumer at once, which answers with the next weight.

An absent owner has no scores in the round, so no rule is needed to withhold its boxes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from hushbid.curator.events import BidsChecked, CheckBids
from hushbid.curator.ledger import NOT_TOLD, Dispute, Ledger, PointFault
from hushbid.curator.round import Round
from hushbid.curator.seat import Seat
from hushbid.curator.selection.base import Selection
from hushbid.curator.verification import UncheckedBid
from hushbid.protocol.crypto.blinding import MASK_BYTES, NOT_SENT, account_statement
from hushbid.protocol.crypto.sealing import DIGEST_BYTES, verify_signature
from hushbid.protocol.errors import LocalProtocolError, Offence, RemoteProtocolError
from hushbid.protocol.machine.machine import Computation
from hushbid.protocol.names import CONSUMER
from hushbid.protocol.privacy.payment import Errors, PaidStatement, Price
from hushbid.protocol.session.account import account_content, errors_of
from hushbid.protocol.session.session import Session
from hushbid.protocol.session.settling import HandedOver
from hushbid.protocol.session.sizes import sealed_weight_bytes
from hushbid.protocol.session.statement import GAINED
from hushbid.protocol.wire.bids import PointBid
from hushbid.protocol.wire.blind import (
    Account,
    Award,
    BlindBid,
    BlindCandidate,
    BlindPurchase,
    SealedBroadcast,
)
from hushbid.protocol.wire.messages import Delivery, SealedCandidate, boxes_of, fixed
from hushbid.protocol.wire.unlinked import Choice

__all__ = ["BlindSelection", "Box"]

_NO_FEATURES: Final = np.zeros(0, dtype=np.int16)


@dataclass(frozen=True, slots=True)
class Box:
    """A box on disk."""

    bid_round: int
    candidate: BlindCandidate


class BlindSelection(Selection):
    """Owners hand boxes over with masked scores, and the boxes with the highest scores are bought.

    Attributes:
        boxes: Owner → number → box, for boxes that were not chosen.
        scores: Owner → the masked scores of its last bid.
        bids_had: Owner → number of its bids so far.
    """

    def __init__(self, session: Session, seats: Mapping[str, Seat], ledger: Ledger) -> None:
        super().__init__(session, seats, ledger)
        self._batch = session.batch
        self._due: SealedBroadcast | None = None
        """The next round's weight, if it arrived before the clock's time."""
        self._weights_had = 0
        self.boxes: dict[str, dict[int, Box]] = {owner: {} for owner in seats}
        self.scores: dict[str, bytes] = {}
        self.bids_had = dict.fromkeys(seats, 0)
        self._unchecked: list[UncheckedBid] = []
        self._checking: tuple[UncheckedBid, ...] = ()
        self.account: Account | None = None

    # -- the weight -------------------------------------------------------------------------------------

    def begin(self, number: int) -> SealedBroadcast | None:
        message, self._due = self._due, None
        return message

    def take_weight(self, broadcast: SealedBroadcast, *, due: bool) -> None:
        """Keep the weight of the next round until the round begins; it is `due` once the maps are here."""
        if not due or self._due is not None or broadcast.round != self._weights_had + 1:
            raise RemoteProtocolError(
                Offence.OUT_OF_TURN,
                f"A broadcast of round {broadcast.round} came after {self._weights_had} of them.",
            )
        if len(broadcast.box) != sealed_weight_bytes(self._session):
            raise RemoteProtocolError(
                Offence.MALFORMED,
                f"A broadcast is encrypted in {len(broadcast.box)} bytes; "
                f"{sealed_weight_bytes(self._session)} were due.",
            )
        self._weights_had = broadcast.round
        self._due = broadcast

    # -- bids -------------------------------------------------------------------------------------------

    def take_bid(self, owner: str, bid: BlindBid) -> None:
        """Take in an owner's bid of the round that is due from it."""
        had = self.bids_had[owner] + 1
        for what, given, due in (
            ("boxes", len(bid.boxes), self._batch * self._session.box_length),
            ("scores", len(bid.scores), MASK_BYTES * self._scores_due(bid, had)),
            ("digests", len(bid.digests), DIGEST_BYTES * (self._batch + 1)),
        ):
            if given != due:
                raise RemoteProtocolError(
                    Offence.MALFORMED, f"A bid has {given} bytes of {what}; {due} were due."
                )
        self._check_scores(bid, had)
        self.bids_had[owner] = had
        if not self.boxes_destroyed:
            self._ledger.candidates += self._batch
            self._unchecked.append(UncheckedBid(owner, bid, self._batch * (had - 1) + 1))

    def _scores_due(self, bid: BlindBid, had: int) -> int:
        """How many scores an owner's bid has, its n-th one."""
        return self._batch * had

    def _check_scores(self, bid: BlindBid, had: int) -> None:
        """Refuse a bid that leaves out a score which it must have."""
        new = bid.scores[-MASK_BYTES * self._batch :]
        if any(_score(new, place) == NOT_SENT for place in range(1, self._batch + 1)):
            raise RemoteProtocolError(Offence.MALFORMED, "A bid has no score of a new box.")

    def check(self) -> Computation | None:
        if not self._unchecked:
            return None
        self._checking = tuple(self._unchecked)
        self._unchecked = []
        return CheckBids(self._checking)

    def checked(self, outcome: BidsChecked) -> None:
        """Keep the boxes of signed bids; an owner whose signature does not hold counts as absent."""
        entries, self._checking = self._checking, ()
        if len(outcome.held) != len(entries):
            raise LocalProtocolError(f"{len(outcome.held)} bids were checked of {len(entries)}.")
        for entry, held in zip(entries, outcome.held, strict=True):
            if held:
                self._keep(entry)
            else:
                self._seats[entry.owner].faulty = True
                self._ledger.faults.append(
                    PointFault(entry.bid.round, entry.owner, "the owner's signature does not hold")
                )

    def _keep(self, entry: UncheckedBid) -> None:
        bid, boxes = entry.bid, self.boxes[entry.owner]
        for handle, box in enumerate(boxes_of(bid), start=entry.first):
            candidate = BlindCandidate.model_construct(box=box, digests=bid.digests, signature=bid.signature)
            boxes[handle] = Box(bid.round, candidate)
        self.scores[entry.owner] = bid.scores

    # -- the choice -------------------------------------------------------------------------------------

    def ask(self, current: Round, bids: Mapping[str, PointBid]) -> tuple[str, ...]:
        return ()

    def choose(self, current: Round, present: AbstractSet[str]) -> Award | Choice:
        purchases = []
        for score, owner, handle in self.best(sorted(present), self._session.bought_in(current.number)):
            box = self.boxes[owner].pop(handle)
            self._note_win(owner, handle, box, current.number)
            purchases.append(
                BlindPurchase.model_construct(
                    owner=owner,
                    bid_round=box.bid_round,
                    handle=fixed(handle),
                    score=score,
                    candidate=box.candidate,
                )
            )
        return Award(round=current.number, purchases=tuple(purchases))

    def _note_win(self, owner: str, handle: int, box: Box, number: int) -> None:
        candidate = SealedCandidate.model_construct(
            features=_NO_FEATURES, box=box.candidate.box, signature=box.candidate.signature
        )
        self._ledger.wins.append(HandedOver(owner, box.bid_round, handle, 0, candidate, number))

    def best(self, present: list[str], count: int) -> list[tuple[bytes, str, int]]:
        """The highest masked scores among these owners' boxes, each with its owner and number.

        A box without a score ranks below its owner's b new ones, which all have one.
        """
        names = tuple(self._seats)
        owners, handles, scores = [], [], []
        for owner in present:
            masked = np.frombuffer(self.scores[owner], dtype=">u8").reshape(-1, 2)
            kept = self.candidates(owner)
            kept = kept[masked[kept - 1].any(axis=1)]
            owners.append(np.full(len(kept), self._seats[owner].rank))
            handles.append(kept)
            scores.append(masked[kept - 1])
        if not owners:
            return []
        ranks, numbers, masks = (np.concatenate(parts) for parts in (owners, handles, scores))
        if len(masks) > count:
            # Few are sorted of the many that are there.
            least = np.partition(masks[:, 0], len(masks) - count)[len(masks) - count]
            near = masks[:, 0] >= least
            ranks, numbers, masks = ranks[near], numbers[near], masks[near]
        order = np.lexsort((numbers, ranks, ~masks[:, 1], ~masks[:, 0]))[:count]
        first = [(names[int(ranks[row])], int(numbers[row])) for row in order.tolist()]
        return [(_score(self.scores[owner], handle), owner, handle) for owner, handle in first]

    def candidates(self, owner: str) -> npt.NDArray[np.intp]:
        """Which of its scores, counted from 1, are of boxes that were not bought."""
        return np.fromiter(sorted(self.boxes[owner]), dtype=np.intp)

    # -- the end ----------------------------------------------------------------------------------------

    def delivery(self) -> tuple[Delivery, ...]:
        return ()

    def take_account(self, account: Account, *, due: bool) -> None:
        """Take in the consumer's account, which is due once the last award was sent."""
        owners = len(self._seats)
        told = (account.settlement, account.errors, account.gains, account.gain_errors)
        if any(part.shape != (owners,) for part in (*told, account.sold, account.void)):
            raise RemoteProtocolError(
                Offence.MALFORMED, f"An account does not have a number for each of {owners} owners."
            )
        identity = self._session.public_identity(CONSUMER)
        statement = account_statement(self._session.identifier, account_content(account))
        if not verify_signature(statement, account.signature, identity.verify):
            raise RemoteProtocolError(Offence.MISMATCH, "The consumer's account is not signed by it.")
        counts = zip(self._seats, account.sold.tolist(), account.void.tolist(), strict=True)
        awarded = Counter(win.owner for win in self._ledger.wins)
        if any(min(sold, void) < 0 or sold + void > awarded[owner] for owner, sold, void in counts):
            raise RemoteProtocolError(Offence.MALFORMED, "An account has other boxes than were awarded.")
        if self.account is not None or not due:
            raise RemoteProtocolError(Offence.OUT_OF_TURN, "An account came before the last award, or again.")
        self.account = account
        self._note_void(account)

    def _note_void(self, account: Account) -> None:
        """Record how many boxes of each owner were void or empty; which ones, nobody reveals."""
        awarded = Counter(win.owner for win in self._ledger.wins)
        for owner, sold, void in zip(self._seats, account.sold.tolist(), account.void.tolist(), strict=True):
            self._ledger.disputes += [Dispute(NOT_TOLD, owner, NOT_TOLD)] * void
            self._ledger.empty[owner] = awarded[owner] - sold - void

    def destroy(self) -> None:
        self.boxes_destroyed = True
        self.boxes = {owner: {} for owner in self._seats}
        self.scores = {}
        self._unchecked, self._checking = [], ()

    def settlement(self) -> Mapping[str, float] | None:
        if self.account is None:
            return None
        return dict(zip(self._seats, self.account.settlement.tolist(), strict=True))

    def statement(self, price: Price) -> tuple[Errors, PaidStatement] | None:
        account, settlement = self.account, self.settlement()
        if account is None or settlement is None:
            return None
        signal = {1: True, 0: False, -1: None}[account.signal]
        owners = tuple(self._seats)
        errors = errors_of(owners, account.errors)
        if self._session.settlement is not None:
            unit = "points by worth"
            return errors, PaidStatement.of(unit, settlement, errors, signal=signal, price=price)
        values = dict(zip(owners, account.gains.tolist(), strict=True))
        theirs = errors_of(owners, account.gain_errors)
        return errors, PaidStatement.of(GAINED, values, theirs, signal=signal, price=price)

    # -- invariants -------------------------------------------------------------------------------------

    def most_wins(self, number: int) -> int:
        return min(number * self._batch, self._session.file.session.points)

    def ensure(self) -> None:
        pass  # what is in the boxes, the consumer alone can check


def _score(scores: bytes, handle: int) -> bytes:
    return scores[MASK_BYTES * (handle - 1) : MASK_BYTES * handle]
