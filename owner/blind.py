"""An owner under the rule `blind`: it decrypts what the curator cannot read, and masks its answers."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from owner.events import MapOpened, MapRefused, Withdraw
from owner.machine import OwnerMachine
from owner.numerics import OwnerNumerics
from protocol.crypto.blinding import (
    NOT_SENT,
    BlindKeys,
    Mask,
    blind_bid_statement,
    blind_digest,
    broadcast_statement,
)
from protocol.crypto.sealing import EPHEMERAL_BYTES, pack_content, seal, sign, verify_signature
from protocol.errors import ExitCode, LocalProtocolError, Offence, RemoteProtocolError
from protocol.machine.base import Transition
from protocol.machine.machine import Computation, Event
from protocol.names import CURATOR
from protocol.session.points import check_weights
from protocol.space.grid import Weights
from protocol.space.scoring import score_bound
from protocol.wire.blind import BlindBid, SealedBroadcast

__all__ = ["BlindOwner", "BlindOwnerNumerics", "BlindScored", "BroadcastRefused", "ScoreBlind"]

_NOTHING: Final = -1
"""Stands for a row where a box is empty."""
_OTHERWISE: Final = ("received:broadcast", "scored", "received:ask", "_on_welcome")
"""Triggers that do not exist where the curator is blind, and one handler that another row replaces."""


@dataclass(frozen=True, slots=True)
class ScoreBlind(Computation):
    """Open a broadcast, seal the best remaining points, and score every point sent so far."""

    KIND: ClassVar[str] = "score-blind"
    round: int
    box: bytes
    signature: bytes
    handle: int
    """The number of the first new box."""


@dataclass(frozen=True, slots=True)
class BlindScored(Event):
    """The bid made under a broadcast."""

    KIND: ClassVar[str] = "blind-scored"
    PUBLIC: ClassVar[tuple[str, ...]] = ("round",)
    round: int
    weights: Weights
    """The content of the broadcast."""
    rows: tuple[int, ...]
    """Rows of the points in the new boxes, best first; -1 for an empty box."""
    boxes: bytes
    scores: bytes
    """Masked scores of all boxes so far."""
    digests: bytes
    signature: bytes
    ephemeral: bytes
    """The ephemeral secrets of the boxes, one per box; the transcript records them as it records noise."""


@dataclass(frozen=True, slots=True)
class BroadcastRefused(Event):
    """A broadcast is not the consumer's, or holds no weight of this session."""

    KIND: ClassVar[str] = "broadcast-refused"
    what: str
    advice: str


class BlindOwner(OwnerMachine):
    """One owner in one session; its arguments are those of `OwnerMachine`."""

    OUTCOMES: ClassVar[tuple[type[Event], ...]] = (MapOpened, MapRefused, BlindScored, BroadcastRefused)
    TRANSITIONS: ClassVar[tuple[Transition, ...]] = (
        *(row for row in OwnerMachine.TRANSITIONS if not {row.trigger, row.handler} & {*_OTHERWISE}),
        Transition("greeting", "received:welcome", "_on_welcome", ("greeting", "mapping")),
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
        for row in scored.rows:
            if row != _NOTHING:
                self._handles[row] = len(self._handles) + 1
                self._hand_over(row)
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


class BlindOwnerNumerics(OwnerNumerics):
    """Carries out the blind owner's computations; its arguments are those of `OwnerNumerics`."""

    _keys: BlindKeys | None = None
    _sent: tuple[int, ...] = ()
    """The row in each box so far, or -1."""

    def perform(self, effect: Computation) -> Event | None:
        """Return the effect's outcome as an event; None if it has none, or for an effect of another kind."""
        if type(effect) is ScoreBlind:
            try:
                return self._bid(effect)
            except RemoteProtocolError as error:
                return BroadcastRefused(error.what, error.advice)
        return super().perform(effect)

    def restore(self, effect: Computation, outcome: Event | None) -> None:
        """Restore the state computed before a restart: features, sent points, and the noise's position."""
        if isinstance(outcome, BlindScored):
            self._sent += tuple(outcome.rows)
            noise = self._require_sealer().noise
            if outcome.ephemeral and not noise.protects:
                noise.random_bytes(len(outcome.ephemeral))
        elif isinstance(outcome, MapOpened | MapRefused) or type(effect) is Withdraw:
            self.perform(effect)

    def _keep_seed(self, seed: bytes) -> None:
        self._keys = BlindKeys(seed, self._session.identifier)

    def _bid(self, effect: ScoreBlind) -> BlindScored:
        session, sealer, table = self._session, self._require_sealer(), self._points()
        if self._keys is None:
            raise LocalProtocolError("A broadcast is to be opened before the map was.")
        statement = broadcast_statement(session.identifier, effect.round, effect.box)
        if not verify_signature(statement, effect.signature, sealer.consumer.verify):
            raise RemoteProtocolError(
                Offence.MISMATCH,
                "A broadcast is not signed by the consumer.",
                advice="Compare the consumer's key with the roster's, by fingerprint.",
            )
        weights = self._keys.decrypt(effect.box, effect.round)
        check_weights(weights, session)
        mask = self._keys.mask(
            effect.round, score_bound(weights, session.space.coordinate_bound, session.jitter)
        )
        # Points of equal score are in the same order as at the curator.
        best = table.first(weights, session.batch, tie=lambda row: -mask.tie(row))
        found = [each.entry for each in best]
        missing = session.batch - len(found)
        contents = [
            pack_content(self._dataset.features[row], self._dataset.attributes(row), session.box_bytes)
            for row in found
        ]
        ephemeral = sealer.noise.random_bytes(EPHEMERAL_BYTES * len(found)) if found else b""
        boxes = [
            seal(content, sealer.consumer.sealing, ephemeral[at : at + EPHEMERAL_BYTES])
            for content, at in zip(contents, range(0, len(ephemeral), EPHEMERAL_BYTES), strict=True)
        ] + [self._blank_box] * missing
        rows = (*found, *[_NOTHING] * missing)
        self._sent += rows
        scores = self._masked(mask, weights)
        digests = [blind_digest(effect.handle + place, box) for place, box in enumerate(boxes)]
        digests.append(hashlib.sha256(scores).digest())
        signed = sign(
            blind_bid_statement(session.identifier, sealer.name, effect.round, digests),
            sealer.identity.signing,
        )
        return BlindScored(
            effect.round, weights, rows, b"".join(boxes), scores, b"".join(digests), signed, ephemeral
        )

    def _masked(self, mask: Mask, weights: Weights) -> bytes:
        """The masked scores of all boxes so far, without those below every new score."""
        session, table = self._session, self._points()
        sent = np.array(self._sent, dtype=np.intp)
        points = np.flatnonzero(sent != _NOTHING)
        scores = table.scores(sent[points], weights)
        masked = [NOT_SENT if row != _NOTHING else mask.of_nothing for row in self._sent]
        new = points >= len(sent) - session.batch
        if new.sum() == session.batch:
            # Lower scores are not among the b best, and neither are empty boxes.
            masked = [NOT_SENT] * len(sent)
            needed = scores >= scores[new].min()
            points, scores = points[needed], scores[needed]
        features = table.rows(sent[points])
        for place, score in zip(points.tolist(), mask.of(scores.tolist(), features), strict=True):
            masked[place] = score
        return b"".join(masked)
