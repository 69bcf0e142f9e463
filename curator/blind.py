"""The curator under the rule `blind`: it orders bids that it cannot read, and passes on what it cannot open.

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
from typing import ClassVar, Final

import numpy as np
import numpy.typing as npt

from hushbid.curator.events import BidsChecked, CheckBids
from hushbid.curator.ledger import NOT_TOLD, Dispute, Fault
from hushbid.curator.machine import TRANSITIONS, CuratorMachine
from hushbid.curator.verification import UncheckedBid
from hushbid.protocol import limits
from hushbid.protocol.crypto.blinding import (
    MASK_BYTES,
    NOT_SENT,
    account_statement,
)
from hushbid.protocol.crypto.sealing import DIGEST_BYTES, verify_signature
from hushbid.protocol.errors import ExitCode, LocalProtocolError, Offence, RemoteProtocolError
from hushbid.protocol.machine.base import Transition
from hushbid.protocol.machine.machine import Event, Finish
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
    Maps,
    SealedBroadcast,
)
from hushbid.protocol.wire.messages import SealedCandidate, boxes_of, fixed

__all__ = ["BlindCurator", "Box"]

_OF_OTHERS: Final = frozenset({"received:target", "received:offer", "received:receipt"})
"""Messages that nobody sends to a blind curator."""
_OTHER_TRIGGERS: Final = {
    "received:bid": "received:blind-bid",
    "candidates-checked": "bids-checked",
}
_OTHER_HANDLERS: Final = {
    "_on_bid": "_on_blind_bid",
    "_on_late_bid": "_on_late_blind_bid",
    "_on_checked": "_on_bids_checked",
    "_on_moot": "_on_moot_check",
}
_COMPUTED: Final = frozenset({"noise-drawn", "weights-computed"})
"""Results that the consumer computes instead of the curator."""
_ON_TIME: Final = ("weighing", "bidding", "delivering")
"""The phases that can follow a round at a fixed cadence."""
_NO_FEATURES: Final = np.zeros(0, dtype=np.int16)


@dataclass(frozen=True, slots=True)
class Box:
    """A box on disk."""

    bid_round: int
    candidate: BlindCandidate


def _rows() -> tuple[Transition, ...]:
    """The curator's table, changed for a blind one: a weight may arrive before its round."""
    kept = [
        Transition(
            row.phase,
            _OTHER_TRIGGERS.get(row.trigger, row.trigger),
            _OTHER_HANDLERS.get(row.handler, row.handler),
            (
                *(phase for phase in row.to if phase != "asking"),
                *(["bidding"] if "weighing" in row.to else []),
            ),
        )
        for row in TRANSITIONS
        if row.phase != "asking"
        and row.trigger not in _OF_OTHERS | _COMPUTED
        and (row.phase, row.trigger) != ("pacing", "timer:cadence")
        and row.handler != "_close_enrolment"
    ]
    early = ("enrolling", "verifying", "pacing")
    return (
        *kept,
        Transition("enrolling", "received:maps", "_on_maps", ("enrolling", "weighing", "bidding")),
        *(Transition(phase, "received:sealed-broadcast", "_on_weight", (phase,)) for phase in early),
        Transition("weighing", "received:sealed-broadcast", "_on_weight", ("bidding",)),
        Transition("weighing", "timer:pause", "_on_pause_over", ("closing",)),
        Transition("weighing", "restarted", "_on_restarted", ("weighing",)),
        Transition("pacing", "received:account", "_on_account", ("pacing",)),  # faster than the clock
        Transition("pacing", "timer:cadence", "_on_cadence_over", (*_ON_TIME, "closing")),
        Transition("delivering", "received:account", "_on_account", ("closing",)),
        Transition("closing", "received:maps", "_on_moot_blind", ("closing",)),
        Transition("closing", "received:sealed-broadcast", "_on_moot_blind", ("closing",)),
        Transition("closing", "received:account", "_on_moot_blind", ("closing",)),
    )


class BlindCurator(CuratorMachine):
    """The curator of one session; its arguments are those of `CuratorState`."""

    PHASES: ClassVar[tuple[str, ...]] = tuple(phase for phase in CuratorMachine.PHASES if phase != "asking")
    TRANSITIONS: ClassVar[tuple[Transition, ...]] = _rows()
    OUTCOMES: ClassVar[tuple[type[Event], ...]] = (BidsChecked,)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._due: SealedBroadcast | None = None
        """The next round's weight, if it arrived before the clock's time."""
        self._weights_had = 0
        self._boxes: dict[str, dict[int, Box]] = {owner: {} for owner in self.owners}
        """Owner → number → box, for boxes that were not chosen."""
        self._scores: dict[str, bytes] = {}
        """Owner → the masked scores of its last bid."""
        self._bids_had = dict.fromkeys(self.owners, 0)
        self._unchecked: list[UncheckedBid] = []
        self._checking: tuple[UncheckedBid, ...] = ()
        self.account: Account | None = None
        """The consumer's account, at the end."""

    # -- what the consumer sends ------------------------------------------------------------------------

    def _on_maps(self, peer: str, maps: Maps) -> None:
        if peer != CONSUMER or self._maps is not None:
            raise RemoteProtocolError(Offence.OUT_OF_TURN, "The maps came a second time.")
        self._require_roots()
        if len(maps.maps) != limits.MAP_BOX_BYTES * len(self.owners):
            raise RemoteProtocolError(
                Offence.MALFORMED,
                f"The feature map is sealed in {len(maps.maps)} bytes; "
                f"{limits.MAP_BOX_BYTES * len(self.owners)} were due.",
            )
        self._take_maps(maps.maps)

    def _on_weight(self, peer: str, broadcast: SealedBroadcast) -> None:
        due = peer == CONSUMER and self._maps is not None and self._due is None
        if not due or broadcast.round != self._weights_had + 1:
            raise RemoteProtocolError(
                Offence.OUT_OF_TURN,
                f"A broadcast of round {broadcast.round} came after {self._weights_had} of them.",
            )
        if len(broadcast.box) != sealed_weight_bytes(self._opened):
            raise RemoteProtocolError(
                Offence.MALFORMED,
                f"A broadcast is encrypted in {len(broadcast.box)} bytes; "
                f"{sealed_weight_bytes(self._opened)} were due.",
            )
        self._weights_had = broadcast.round
        self._due = broadcast
        if self.phase == "weighing":
            self._weigh()

    def _weigh(self) -> None:
        """Open the round once the consumer's weight has arrived."""
        if self._due is None:
            self._set_timer("pause", self._session.timeouts.pause)
            return
        self._clear_timer("pause")
        message, self._due = self._due, None
        self._open_bidding(message)

    @property
    def awaits_consumer(self) -> bool:
        return self.phase == "weighing" and not self.consumer_connected

    def _on_pause_over(self) -> None:
        if self.phase != "weighing":
            super()._on_pause_over()
            return
        self._give_up(
            ExitCode.TIMEOUT,
            f"In round {self.round} the consumer sent no broadcast for longer than the pause allows.",
            "See the consumer's log, or raise timeouts.pause.",
        )

    def _timers_due(self) -> Mapping[str, tuple[str, float]]:
        return {**super()._timers_due(), "weighing": ("pause", self._session.timeouts.pause)}

    # -- bids ---------------------------------------------------------------------------------------------

    def _on_blind_bid(self, owner: str, bid: BlindBid) -> None:
        self._take_blind_bid(owner, bid)
        if bid.round == self.round:
            self._close_bidding_if_complete()
        else:
            self._resume(owner)

    def _on_late_blind_bid(self, owner: str, bid: BlindBid) -> None:
        """Take in a bid after bidding closed; even if it is for this round, its owner is absent from it."""
        self._take_blind_bid(owner, bid)
        self.seats[owner].late = True

    def _take_blind_bid(self, owner: str, bid: BlindBid) -> None:
        self._due_from(owner, bid.round)
        had = self._bids_had[owner] + 1
        for what, given, due in (
            ("boxes", len(bid.boxes), self._batch * self._opened.box_length),
            ("scores", len(bid.scores), MASK_BYTES * self._scores_due(bid, had)),
            ("digests", len(bid.digests), DIGEST_BYTES * (self._batch + 1)),
        ):
            if given != due:
                raise RemoteProtocolError(
                    Offence.MALFORMED, f"A bid has {given} bytes of {what}; {due} were due."
                )
        self._check_scores(bid, had)
        self._bids_had[owner] = had
        self._answered(owner, PointBid(bid.round, False, 0, 0, None))
        if not self._boxes_destroyed:
            self.ledger.candidates += self._batch
            self._unchecked.append(UncheckedBid(owner, bid, self._batch * (had - 1) + 1))

    def _scores_due(self, bid: BlindBid, had: int) -> int:
        """How many scores an owner's bid has, its n-th one."""
        return self._batch * had

    def _check_scores(self, bid: BlindBid, had: int) -> None:
        """Refuse a bid that leaves out a score which it must have."""
        new = bid.scores[-MASK_BYTES * self._batch :]
        if any(_score(new, place) == NOT_SENT for place in range(1, self._batch + 1)):
            raise RemoteProtocolError(Offence.MALFORMED, "A bid has no score of a new box.")

    def _verify_or_decide(self) -> None:
        self._clear_timer("round")
        if self._unchecked:
            self._checking = tuple(self._unchecked)
            self._unchecked = []
            self.phase = "verifying"
            self._do(CheckBids(self._checking))
        else:
            self._decide()

    def _on_bids_checked(self, checked: BidsChecked) -> None:
        entries, self._checking = self._checking, ()
        if len(checked.held) != len(entries):
            raise LocalProtocolError(f"{len(checked.held)} bids were checked of {len(entries)}.")
        for entry, held in zip(entries, checked.held, strict=True):
            if held:
                self._keep(entry)
            else:
                self.seats[entry.owner].faulty = True
                self.ledger.faults.append(
                    Fault(entry.bid.round, entry.owner, "the owner's signature does not hold")
                )
        self._verify_or_decide()

    def _keep(self, entry: UncheckedBid) -> None:
        bid, boxes = entry.bid, self._boxes[entry.owner]
        for handle, box in enumerate(boxes_of(bid), start=entry.first):
            candidate = BlindCandidate.model_construct(box=box, digests=bid.digests, signature=bid.signature)
            boxes[handle] = Box(bid.round, candidate)
        self._scores[entry.owner] = bid.scores

    # -- the choice -------------------------------------------------------------------------------------

    def _choose(self, present: AbstractSet[str]) -> None:
        purchases = []
        for score, owner, handle in self._best(sorted(present), self._opened.bought_in(self.round)):
            box = self._boxes[owner].pop(handle)
            self._note_win(owner, handle, box, self.round)
            purchases.append(
                BlindPurchase.model_construct(
                    owner=owner,
                    bid_round=box.bid_round,
                    handle=fixed(handle),
                    score=score,
                    candidate=box.candidate,
                )
            )
        self._send(CONSUMER, Award(round=self.round, purchases=tuple(purchases)))

    def _note_win(self, owner: str, handle: int, box: Box, number: int) -> None:
        """Record that a box was bought in a round."""
        candidate = SealedCandidate.model_construct(
            features=_NO_FEATURES, box=box.candidate.box, signature=box.candidate.signature
        )
        self.ledger.wins.append(HandedOver(owner, box.bid_round, handle, 0, candidate, number))

    def _best(self, present: list[str], count: int) -> list[tuple[bytes, str, int]]:
        """The highest masked scores among these owners' boxes, each with its owner and number.

        A box without a score ranks below its owner's b new ones, which all have one.
        """
        owners, handles, scores = [], [], []
        for owner in present:
            masked = np.frombuffer(self._scores[owner], dtype=">u8").reshape(-1, 2)
            kept = self._candidates(owner)
            kept = kept[masked[kept - 1].any(axis=1)]
            owners.append(np.full(len(kept), self.seats[owner].rank))
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
        first = [(self.owners[int(ranks[row])], int(numbers[row])) for row in order.tolist()]
        return [(_score(self._scores[owner], handle), owner, handle) for owner, handle in first]

    def _candidates(self, owner: str) -> npt.NDArray[np.intp]:
        """Which of its scores, counted from 1, are of boxes that were not bought."""
        return np.fromiter(sorted(self._boxes[owner]), dtype=np.intp)

    # -- the end ----------------------------------------------------------------------------------------

    def _deliver(self) -> None:
        self.phase = "delivering"
        if self.account is not None:
            self._complete()
        else:
            self._set_timer("delivery", self._session.timeouts.delivery)

    def _on_delivery_over(self) -> None:
        ending = Finish(
            ExitCode.TIMEOUT,
            "The consumer sent no account of the session in time.",
            "It has what it bought: have the consumer started, and start the curator again with the same "
            "state directory.",
            final=False,
        )
        self._do(ending)

    def _on_account(self, peer: str, account: Account) -> None:
        owners = len(self.owners)
        told = (account.settlement, account.errors, account.gains, account.gain_errors)
        if any(part.shape != (owners,) for part in (*told, account.sold, account.void)):
            raise RemoteProtocolError(
                Offence.MALFORMED, f"An account does not have a number for each of {owners} owners."
            )
        identity = self._opened.public_identity(CONSUMER)
        statement = account_statement(self._opened.identifier, account_content(account))
        if not verify_signature(statement, account.signature, identity.verify):
            raise RemoteProtocolError(Offence.MISMATCH, "The consumer's account is not signed by it.")
        counts = zip(self.owners, account.sold.tolist(), account.void.tolist(), strict=True)
        awarded = Counter(win.owner for win in self.ledger.wins)
        if any(min(sold, void) < 0 or sold + void > awarded[owner] for owner, sold, void in counts):
            raise RemoteProtocolError(Offence.MALFORMED, "An account has other boxes than were awarded.")
        if self.account is not None or self.round < self._opened.rounds:
            raise RemoteProtocolError(Offence.OUT_OF_TURN, "An account came before the last award, or again.")
        self.account = account
        self._note_void(account)
        if self.phase == "delivering":
            self._complete()

    def _complete(self) -> None:
        self._clear_timer("delivery")
        self._destroy_boxes()
        self._begin_closing("complete", Finish(ExitCode.DONE, "The session is complete."))

    def _note_void(self, account: Account) -> None:
        """Record how many boxes of each owner were void or empty; which ones, nobody reveals."""
        awarded = Counter(win.owner for win in self.ledger.wins)
        for owner, sold, void in zip(self.owners, account.sold.tolist(), account.void.tolist(), strict=True):
            self.ledger.disputes += [Dispute(NOT_TOLD, owner, NOT_TOLD)] * void
            self.ledger.empty[owner] = awarded[owner] - sold - void

    def _destroy_boxes(self) -> None:
        self._boxes = {owner: {} for owner in self.owners}
        self._scores = {}
        self._unchecked, self._checking = [], ()
        super()._destroy_boxes()

    def _on_moot_blind(self, peer: str, message: Maps | SealedBroadcast | Account) -> None:
        """Ignore the consumer's messages to a session that was given up."""

    def _on_moot_check(self, checked: BidsChecked) -> None:
        """Ignore checks that were in progress."""

    # -- settlement -------------------------------------------------------------------------------------

    def settlement(self) -> Mapping[str, float] | None:
        if self.account is None:
            return None
        return dict(zip(self.owners, self.account.settlement.tolist(), strict=True))

    def statement(self, price: Price) -> tuple[Errors, PaidStatement] | None:
        account, settlement = self.account, self.settlement()
        if account is None or settlement is None:
            return None
        signal = {1: True, 0: False, -1: None}[account.signal]
        errors = errors_of(self.owners, account.errors)
        if self._opened.settlement is not None:
            unit = "points by worth"
            return errors, PaidStatement.of(unit, settlement, errors, signal=signal, price=price)
        values = dict(zip(self.owners, account.gains.tolist(), strict=True))
        theirs = errors_of(self.owners, account.gain_errors)
        return errors, PaidStatement.of(GAINED, values, theirs, signal=signal, price=price)


def _score(scores: bytes, handle: int) -> bytes:
    """The masked score of a box."""
    return scores[MASK_BYTES * (handle - 1) : MASK_BYTES * handle]
