"""An owner under the rule `blind`: it decrypts what the curator cannot read, and masks its answers."""

from __future__ import annotations

from typing import ClassVar, Final

from hushbid.owner.events import (
    NOTHING,
    BlindScored,
    BroadcastRefused,
    MapOpened,
    MapRefused,
    RowsCommitted,
    ScoreBlind,
)
from hushbid.owner.machine import OwnerMachine
from hushbid.protocol.errors import ExitCode, LocalProtocolError
from hushbid.protocol.machine.base import Transition
from hushbid.protocol.machine.machine import Event
from hushbid.protocol.names import CURATOR
from hushbid.protocol.wire.blind import BlindBid, SealedBroadcast

__all__ = ["BlindOwner"]

_OTHERWISE: Final = (
    "received:broadcast",
    "received:call",
    "received:next",
    "scored",
    "received:ask",
    "_on_welcome",
)
"""Triggers that do not exist where the curator is blind, and one handler that another row replaces."""


class BlindOwner(OwnerMachine):
    """One owner in one session; its arguments are those of `OwnerMachine`."""

    OUTCOMES: ClassVar[tuple[type[Event], ...]] = (
        RowsCommitted,
        MapOpened,
        MapRefused,
        BlindScored,
        BroadcastRefused,
    )
    TRANSITIONS: ClassVar[tuple[Transition, ...]] = (
        *(row for row in OwnerMachine.TRANSITIONS if not {row.trigger, row.handler} & {*_OTHERWISE}),
        Transition("greeting", "received:welcome", "_on_welcome", ("greeting", "committing", "mapping")),
        Transition("waiting", "received:sealed-broadcast", "_on_sealed_broadcast", ("scoring",)),
        Transition("scoring", "blind-scored", "_on_blind_scored", ("waiting",)),
        Transition("scoring", "broadcast-refused", "_on_broadcast_refused", ("done",)),
    )

    def _on_sealed_broadcast(self, peer: str, broadcast: SealedBroadcast) -> None:
        self._enter_round(broadcast.round)
        handle = self._batch * (self.rounds - 1) + 1
        self._do(ScoreBlind(broadcast.round, broadcast.box, broadcast.signature, handle))

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
        self._send(CURATOR, bid)

    def _on_broadcast_refused(self, refused: BroadcastRefused) -> None:
        self._fail(ExitCode.FAILED, refused.what, refused.advice)
