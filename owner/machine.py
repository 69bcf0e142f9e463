"""The owner's state machine: a bid for every broadcast, a point for every ask.

A point is handed over at most once: with its bid where the rule wants that, else when it is asked for.
From then on it is bid no more. After an owner's last point, its bids are exhausted but of the same size.
"""

from __future__ import annotations

from typing import ClassVar, Final, cast

import numpy as np

from owner.events import Scored, ScorePoints, Withdraw
from protocol import limits
from protocol.acquisition import AcquisitionRule
from protocol.config.session import SessionFile
from protocol.errors import LocalProtocolError, Offence, RemoteProtocolError
from protocol.grid import WEIGHT_BITS
from protocol.machine import Event, Received, Transition
from protocol.messages import Ask, Bid, Broadcast, Candidate, Offer, fixed, unfixed
from protocol.participant import CURATOR, Participant, participant_transitions

__all__ = ["OwnerMachine"]

_OPEN: Final = ("greeting", "waiting", "scoring")


class OwnerMachine(Participant):
    """One owner in one session.

    Args:
        session: The session file.
        name: The owner's roster name.
        feature_map: SHA-256 of its own feature map.
        rule: The acquisition rule.
    """

    ROLE = "owner"
    PHASES: ClassVar[tuple[str, ...]] = (*_OPEN, "done")
    TRANSITIONS: ClassVar[tuple[Transition, ...]] = (
        *participant_transitions(
            _OPEN, Transition("greeting", "received:welcome", "_on_welcome", ("waiting", "done"))
        ),
        Transition("waiting", "received:broadcast", "_on_broadcast", ("scoring",)),
        Transition("scoring", "scored", "_on_scored", ("waiting",)),
        Transition("waiting", "received:ask", "_on_ask", ("waiting",)),
    )

    def __init__(self, session: SessionFile, *, name: str, feature_map: bytes, rule: AcquisitionRule) -> None:
        super().__init__(session, name=name, feature_map=feature_map)
        self._rule = rule
        self.round = 0
        """The round of the last broadcast."""
        self.handed_over = 0
        """How many points have been handed over."""
        self._handles: dict[int, int] = {}
        self._last_bid: tuple[int, int, Candidate] | None = None
        """Number, row and point of the last bid, while it has not been asked for: no other is handed over."""

    def _on_welcome(self, event: Event) -> None:
        if self._welcomed(event):
            self.phase = "waiting"

    def _on_broadcast(self, event: Event) -> None:
        broadcast = cast(Broadcast, cast(Received, event).message)
        dimension = self._session.features.dimension
        if broadcast.weights.shape != (dimension,):
            raise RemoteProtocolError(
                Offence.MALFORMED, f"The broadcast's weights do not have {dimension} coordinates."
            )
        if int(np.abs(broadcast.weights.astype(np.int64)).max()) > limits.MAX_WEIGHT * 2**WEIGHT_BITS:
            raise RemoteProtocolError(
                Offence.OVERSIZED, f"A broadcast weight is over the limit of {limits.MAX_WEIGHT:.0f}."
            )
        if not self.round < broadcast.round <= self._session.session.points:
            raise RemoteProtocolError(
                Offence.OUT_OF_TURN, f"A broadcast of round {broadcast.round} came after round {self.round}."
            )
        self.round = broadcast.round
        self.phase = "scoring"
        self._do(ScorePoints(broadcast.round, broadcast.weights))

    def _on_scored(self, event: Event) -> None:
        scored = cast(Scored, event)
        if scored.round != self.round:
            raise LocalProtocolError(f"Scores of round {scored.round} came in round {self.round}.")
        exhausted = scored.row < 0
        handle = 0 if exhausted else self._handles.setdefault(scored.row, len(self._handles) + 1)
        with_point = self._rule.candidate_with_bid
        bid = Bid(
            round=scored.round,
            exhausted=exhausted,
            score=fixed(scored.score),
            handle=fixed(handle),
            candidate=scored.candidate if with_point else None,
        )
        self._last_bid = None
        if not exhausted:
            if with_point:
                self._hand_over(scored.row)
            else:
                self._last_bid = (handle, scored.row, scored.candidate)
        self.phase = "waiting"
        self._send(CURATOR, bid)

    def _on_ask(self, event: Event) -> None:
        ask = cast(Ask, cast(Received, event).message)
        if self._last_bid is None or (ask.round, unfixed(ask.handle)) != (self.round, self._last_bid[0]):
            raise RemoteProtocolError(
                Offence.OUT_OF_TURN, "The curator asked for another point than this round's bid."
            )
        _, row, candidate = self._last_bid
        self._last_bid = None
        self._hand_over(row)
        self._send(CURATOR, Offer(round=ask.round, handle=ask.handle, candidate=candidate))

    def _hand_over(self, row: int) -> None:
        self.handed_over += 1
        self._do(Withdraw(row))

    def check(self) -> None:
        """A point is handed over at most once, and only after it was bid."""
        if self.handed_over > len(self._handles):
            raise LocalProtocolError("More points were handed over than were bid.")
