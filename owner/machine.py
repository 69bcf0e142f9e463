"""The owner's state machine: a bid for every broadcast, a point for every ask.

Where the session says so, it first commits to its rows. If the feature map is secret, the consumer then sends
its seed, sealed. The owner reports when it has hashed its points.

A point is handed over at most once: with its bid if the rule requires that, otherwise when the curator asks
for it. It is not bid again. Where rounds buy several points, a bid is a batch of the best ones. After its
last point, an owner sends exhausted bids of the same size.

The tables are at the end: `OPEN`, and `BLIND` for a session whose curator cannot read bids.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from hushbid.owner.events import (
    NOTHING,
    BlindScored,
    BroadcastRefused,
    CommitRows,
    MapOpened,
    MapRefused,
    OpenMap,
    RowsCommitted,
    ScoreBlind,
    Scored,
    ScorePoints,
    Withdraw,
)
from hushbid.protocol import limits
from hushbid.protocol.errors import ExitCode, LocalProtocolError, Offence, RemoteProtocolError
from hushbid.protocol.machine.base import Transition, TransitionTable, happened, received
from hushbid.protocol.machine.machine import Charge, ChargedData
from hushbid.protocol.machine.participant import Participant, participant_rows
from hushbid.protocol.names import CURATOR
from hushbid.protocol.privacy.releases import Neighbours, Prior
from hushbid.protocol.privacy.releases.aim import Aim
from hushbid.protocol.session.points import check_weights
from hushbid.protocol.session.session import Session
from hushbid.protocol.wire.blind import BlindBid, SealedBroadcast
from hushbid.protocol.wire.messages import (
    Ask,
    Batch,
    Bid,
    Broadcast,
    Call,
    Candidate,
    Candidates,
    Commitment,
    Next,
    Offer,
    Ready,
    SealedCandidates,
    SecretMap,
    Submission,
    Welcome,
    fixed,
    sizes,
    unfixed,
)

__all__ = ["BLIND", "OPEN", "OwnerMachine"]

_OPEN: Final = ("greeting", "committing", "mapping", "waiting", "scoring")


class OwnerMachine(Participant):
    """One owner, by its roster name, in one session."""

    ROLE = "owner"

    def __init__(self, session: Session, *, name: str) -> None:
        super().__init__(session, OPEN if session.curator_reads else BLIND, name=name)
        self._rule = session.rule
        self._batch = session.batch
        self._rounds = session.rounds
        self._opened = session
        self.charge = Charge(
            Neighbours.ADD_REMOVE_ONE.value,
            1,
            session.owners_releases,
            session.owners_costs(),
            ChargedData.OWNERS,
        )
        """The session's cost to the owner's data."""
        self.rounds = 0
        """Number of rounds in which a broadcast arrived."""
        self.handed_over = 0
        """Number of points handed over."""
        self._call: ScorePoints | None = None
        """The last request for points."""
        self._sent = 0
        """Number of messages of the answer that were sent."""
        self._handles: dict[int, int] = {}
        self._mapped = False
        """Whether the secret map has arrived."""
        self._last_bid: tuple[int, int, Candidate] | None = None
        """Number, row and point of the last bid until it is asked for; no other point is handed over."""

    def _on_welcome(self, peer: str, welcome: Welcome) -> None:
        if not self._welcomed(welcome):
            return
        if self._opened.commitment_depth:
            self.phase = "committing"
            self.do(CommitRows())
        else:
            self.phase = "mapping" if self._rule.sealed else "waiting"

    def _on_committed(self, committed: RowsCommitted) -> None:
        self.phase = "mapping"
        self.send(CURATOR, Commitment(root=committed.root, signature=committed.signature))

    def _on_map(self, peer: str, secret_map: SecretMap) -> None:
        if self._mapped:
            raise RemoteProtocolError(Offence.OUT_OF_TURN, "A second secret map came: a session has one.")
        self._mapped = True
        self.do(OpenMap(secret_map.box))

    def _on_opened(self, event: MapOpened) -> None:
        self.phase = "waiting"
        self.send(CURATOR, Ready())

    def _on_map_refused(self, refused: MapRefused) -> None:
        self.fail(ExitCode.FAILED, refused.what, refused.advice)

    def _on_broadcast(self, peer: str, broadcast: Broadcast) -> None:
        if self._rule.herds is not isinstance(broadcast, Call):
            raise RemoteProtocolError(
                Offence.OUT_OF_TURN, f"The rule {self._rule.name} has the other kind of broadcast."
            )
        check_weights(broadcast.weights, self._opened)
        aim = self._aim_of(broadcast) if isinstance(broadcast, Call) else None
        self._enter_round(broadcast.round)
        self._call = ScorePoints(broadcast.round, broadcast.weights, len(self._handles) + 1, aim)
        self._sent = 0
        self.do(self._call)

    def _aim_of(self, call: Call) -> Aim:
        dimension = self._opened.space.dimension
        if call.embedding.shape != (dimension,) or call.seed_total.shape != (dimension,):
            raise RemoteProtocolError(Offence.MALFORMED, f"A call does not have {dimension} coordinates.")
        if float(np.abs(call.embedding).max()) > limits.MAX_EMBEDDING:
            raise RemoteProtocolError(
                Offence.MALFORMED, f"A coordinate of a call is over the limit of {limits.MAX_EMBEDDING:.0f}."
            )
        try:
            prior = Prior.of_total(call.seed_total, call.seed_size)
        except LocalProtocolError as error:
            raise RemoteProtocolError(Offence.MALFORMED, "A call's seed set is no set of points.") from error
        return self._opened.target.aim(call.embedding, prior)

    def _enter_round(self, number: int) -> None:
        if not self.round < number <= self._rounds:
            raise RemoteProtocolError(
                Offence.OUT_OF_TURN, f"A broadcast of round {number} came after round {self.round}."
            )
        if self.round == 0:
            # From here on its points enter releases, so their full cost to its data is recorded first.
            self.do(self.charge)
        self.round = number
        self.rounds += 1
        self.phase = "scoring"

    def _on_scored(self, scored: Scored) -> None:
        if scored.round != self.round:
            raise LocalProtocolError(f"Scores of round {scored.round} came in round {self.round}.")
        handles = [self._handles.setdefault(row, len(self._handles) + 1) for row in scored.rows]
        self._last_bid = None
        if isinstance(scored.handed, Candidates | SealedCandidates):
            padding = [0] * (self._batch - len(handles))
            scores = sizes([*scored.scores, *padding])
            kind = Submission if self._rule.herds else Batch
            bid: Bid | Batch = kind(
                round=scored.round, scores=scores, handles=sizes(handles + padding), candidates=scored.handed
            )
        else:
            with_point = self._rule.candidate_with_bid
            bid = Bid(
                round=scored.round,
                exhausted=not handles,
                score=fixed(scored.scores[0] if handles else 0),
                handle=fixed(handles[0] if handles else 0),
                candidate=scored.handed if with_point else None,
            )
            if handles and isinstance(scored.handed, Candidate) and not with_point:
                self._last_bid = (handles[0], scored.rows[0], scored.handed)
        if self._rule.candidate_with_bid:
            self._hand_over(scored.rows)
        self.phase = "waiting"
        self.send(CURATOR, bid)
        self._sent += 1

    @property
    def submitted(self) -> bool:
        """Whether all of a tender's submission was sent."""
        return self._rule.herds and self._call is not None and self._sent == self._opened.messages

    def _on_next(self, peer: str, message: Next) -> None:
        """Choose on from what was sent: the answer takes more messages."""
        call = self._call
        if call is None or message.round != call.round or self._sent >= self._opened.messages:
            raise RemoteProtocolError(
                Offence.OUT_OF_TURN, "More was asked for than the messages of a submission."
            )
        self.phase = "scoring"
        self.do(ScorePoints(call.round, call.weights, len(self._handles) + 1, call.aim))

    def _on_ask(self, peer: str, ask: Ask) -> None:
        if self._last_bid is None or (ask.round, unfixed(ask.handle)) != (self.round, self._last_bid[0]):
            raise RemoteProtocolError(
                Offence.OUT_OF_TURN, "The curator asked for another point than this round's bid."
            )
        _, row, candidate = self._last_bid
        self._last_bid = None
        self._hand_over((row,))
        self.send(CURATOR, Offer(round=ask.round, handle=ask.handle, candidate=candidate))

    # -- where the curator is blind --------------------------------------------------------------------

    def _on_sealed_broadcast(self, peer: str, broadcast: SealedBroadcast) -> None:
        self._enter_round(broadcast.round)
        handle = self._batch * (self.rounds - 1) + 1
        self.do(ScoreBlind(broadcast.round, broadcast.box, broadcast.signature, handle))

    def _on_blind_scored(self, scored: BlindScored) -> None:
        if scored.round != self.round:
            raise LocalProtocolError(f"Scores of round {scored.round} came in round {self.round}.")
        sold = tuple(row for row in scored.rows if row != NOTHING)
        for row in sold:
            self._handles[row] = len(self._handles) + 1
        self._hand_over(sold)
        self.phase = "waiting"
        bid = BlindBid(
            round=scored.round,
            boxes=scored.boxes,
            scores=scored.scores,
            digests=scored.digests,
            signature=scored.signature,
        )
        self.send(CURATOR, bid)

    def _on_broadcast_refused(self, refused: BroadcastRefused) -> None:
        self.fail(ExitCode.FAILED, refused.what, refused.advice)

    # -- both ------------------------------------------------------------------------------------------

    def _hand_over(self, rows: tuple[int, ...]) -> None:
        self.handed_over += len(rows)
        if rows:
            self.do(Withdraw(rows))

    def check(self) -> None:
        """A point is handed over at most once, and only after it was bid."""
        if self.handed_over > len(self._handles):
            raise LocalProtocolError("More points were handed over than were bid.")


def _enrolment(*welcomed: str) -> tuple[Transition[OwnerMachine], ...]:
    """The rows before the first broadcast; `welcomed` are the phases that a welcome can lead to."""
    return (
        *participant_rows(_OPEN, OwnerMachine._on_welcome, *welcomed),
        *happened("committing", RowsCommitted, OwnerMachine._on_committed, "mapping"),
        *received("mapping", SecretMap, OwnerMachine._on_map),
        *happened("mapping", MapOpened, OwnerMachine._on_opened, "waiting"),
        *happened("mapping", MapRefused, OwnerMachine._on_map_refused, "done"),
    )


OPEN: Final[TransitionTable[OwnerMachine]] = TransitionTable(
    phases=(*_OPEN, "leaving", "done"),
    outcomes=(RowsCommitted, MapOpened, MapRefused, Scored),
    rows=(
        *_enrolment("greeting", "committing", "mapping", "waiting"),
        *received("waiting", Broadcast, OwnerMachine._on_broadcast, "scoring"),
        *received("waiting", Call, OwnerMachine._on_broadcast, "scoring"),
        *happened("scoring", Scored, OwnerMachine._on_scored, "waiting"),
        *received("waiting", Next, OwnerMachine._on_next, "scoring"),
        *received("waiting", Ask, OwnerMachine._on_ask),
    ),
)
"""The table of an owner whose curator reads bids."""

BLIND: Final[TransitionTable[OwnerMachine]] = TransitionTable(
    phases=(*_OPEN, "leaving", "done"),
    outcomes=(RowsCommitted, MapOpened, MapRefused, BlindScored, BroadcastRefused),
    rows=(
        *_enrolment("greeting", "committing", "mapping"),
        *received("waiting", SealedBroadcast, OwnerMachine._on_sealed_broadcast, "scoring"),
        *happened("scoring", BlindScored, OwnerMachine._on_blind_scored, "waiting"),
        *happened("scoring", BroadcastRefused, OwnerMachine._on_broadcast_refused, "done"),
    ),
)
"""The table of an owner whose curator is blind: it decrypts broadcasts, and masks its answers."""
