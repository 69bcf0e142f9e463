"""An owner that breaks the protocol under the rule `blind`: how it changes its bids.

It has its own key, so it can sign what it invents: void boxes, others' scores, points that it sells twice.
The curator finds unsigned changes in every bid; the consumer finds the rest once it has bought them.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from hushbid.evidence.sweep.mutation import OF_ANY_FRAME, Mutation, Mutator
from hushbid.protocol.crypto.blinding import MASK_BYTES, NOT_SENT, blind_bid_statement, blind_digest
from hushbid.protocol.crypto.sealing import EPHEMERAL_BYTES, SEAL_BYTES, pack_content, seal, sign
from hushbid.protocol.names import CONSUMER
from hushbid.protocol.session.session import Session
from hushbid.protocol.wire.blind import BlindBid
from hushbid.protocol.wire.codec import Direction, decode_frame, decode_message, encode_frame, encode_message
from hushbid.protocol.wire.messages import boxes_of

__all__ = ["blind_mutations"]

KEPT: Final = 32
"""Boxes that an owner keeps in order to sell them again."""
_Change = Callable[[Mutator, list[bytes], list[bytes]], None]
"""Changes the new boxes of a bid, and the scores of all boxes so far, in place."""


def blind_mutations(session: Session, owner: str) -> Mapping[str, Mutation]:
    """The possible changes to an owner's frames, by name; its key in a simulated session signs."""
    lies = _Lies(session, owner)
    return {
        **OF_ANY_FRAME,
        **{f"signed: {name}": lies.signed(change) for name, change in lies.changes.items()},
        **{f"not signed: {name}": lies.unsigned(change) for name, change in lies.changes.items()},
        "signed: another round": lies.of_another_round,
    }


class _Lies:
    def __init__(self, session: Session, owner: str) -> None:
        self._session, self._owner = session, owner
        self._key = session.simulated_identity(owner).signing
        self._sold: deque[bytes] = deque(maxlen=KEPT)
        self.changes: Mapping[str, _Change] = {
            "a void box": self._void,
            "a box of something else": self._no_point,
            "a point out of bounds": self._out_of_bounds,
            "a point of other columns": self._other_columns,
            "a box of nothing, scored": self._nothing,
            "an old box again": self._old,
            "another score": self._other_score,
            "highest scores": self._highest,
            "no scores of old boxes": self._no_old_scores,
            "no score of a new box": self._no_new_score,
            "a score too many": self._more_scores,
            "a score too few": self._fewer_scores,
            "a box too few": self._fewer_boxes,
        }

    def signed(self, change: _Change) -> Mutation:
        """A mutation that signs its result."""
        return lambda mutator, data: self._changed(mutator, data, change, signed=True)

    def unsigned(self, change: _Change) -> Mutation:
        """A mutation that leaves digests and signature unchanged."""
        return lambda mutator, data: self._changed(mutator, data, change, signed=False)

    def of_another_round(self, mutator: Mutator, data: bytes) -> list[bytes] | None:
        """The bid as one for another round, with a matching signature."""
        bid = _bid_in(data)
        if bid is None:
            return None
        bid = bid.model_copy(update={"round": 1 + mutator.below(9)})
        return [self._framed(data, bid, boxes_of(bid), signed=True)]

    def _changed(self, mutator: Mutator, data: bytes, change: _Change, *, signed: bool) -> list[bytes] | None:
        bid = _bid_in(data)
        if bid is None:
            return None
        boxes = list(boxes_of(bid))
        scores = [bid.scores[at : at + MASK_BYTES] for at in range(0, len(bid.scores), MASK_BYTES)]
        change(mutator, boxes, scores)
        self._sold.extend(box for box in boxes if any(box))
        changed = bid.model_copy(update={"boxes": b"".join(boxes), "scores": b"".join(scores)})
        return [self._framed(data, changed, boxes, signed=signed)]

    def _framed(self, data: bytes, bid: BlindBid, boxes: Sequence[bytes], *, signed: bool) -> bytes:
        if signed:
            first = len(bid.scores) // MASK_BYTES - len(boxes) + 1
            digests = [blind_digest(number, box) for number, box in enumerate(boxes, start=first)]
            digests.append(hashlib.sha256(bid.scores).digest())
            statement = blind_bid_statement(self._session.identifier, self._owner, bid.round, digests)
            bid = bid.model_copy(
                update={"digests": b"".join(digests), "signature": sign(statement, self._key)}
            )
        return encode_frame(decode_frame(data)._replace(body=encode_message(bid)))

    # -- boxes ------------------------------------------------------------------------------------------

    def _void(self, mutator: Mutator, boxes: list[bytes], _scores: list[bytes]) -> None:
        place = mutator.below(len(boxes))
        boxes[place] = mutator.rng.bytes(len(boxes[place]))

    def _no_point(self, mutator: Mutator, boxes: list[bytes], _scores: list[bytes]) -> None:
        self._seal(mutator, boxes, mutator.rng.bytes(len(boxes[0]) - SEAL_BYTES))

    def _out_of_bounds(self, mutator: Mutator, boxes: list[bytes], _scores: list[bytes]) -> None:
        self._seal_point(mutator, boxes, np.full(self._session.space.columns, 1.5))

    def _other_columns(self, mutator: Mutator, boxes: list[bytes], _scores: list[bytes]) -> None:
        self._seal_point(mutator, boxes, np.full(self._session.space.columns + 1, 0.5))

    def _seal_point(self, mutator: Mutator, boxes: list[bytes], point: np.ndarray) -> None:
        point.flags.writeable = False
        self._seal(mutator, boxes, pack_content(point, b"", len(boxes[0]) - SEAL_BYTES))

    def _seal(self, mutator: Mutator, boxes: list[bytes], content: bytes) -> None:
        consumer = self._session.public_identity(CONSUMER).sealing
        boxes[mutator.below(len(boxes))] = seal(content, consumer, mutator.rng.bytes(EPHEMERAL_BYTES))

    def _nothing(self, mutator: Mutator, boxes: list[bytes], _scores: list[bytes]) -> None:
        place = mutator.below(len(boxes))
        boxes[place] = bytes(len(boxes[place]))

    def _old(self, mutator: Mutator, boxes: list[bytes], _scores: list[bytes]) -> None:
        if self._sold:
            boxes[mutator.below(len(boxes))] = self._sold[mutator.below(len(self._sold))]

    def _fewer_boxes(self, _mutator: Mutator, boxes: list[bytes], _scores: list[bytes]) -> None:
        if len(boxes) > 1:
            boxes.pop()

    # -- scores -----------------------------------------------------------------------------------------

    def _other_score(self, mutator: Mutator, _boxes: list[bytes], scores: list[bytes]) -> None:
        place = mutator.below(len(scores))
        told = int.from_bytes(scores[place], "big")
        others = (told + 1, told - 1, told + 2**80, told - 2**80, 1)
        other = min(max(others[mutator.below(len(others))], 1), 2 ** (8 * MASK_BYTES) - 1)
        scores[place] = other.to_bytes(MASK_BYTES, "big")

    def _highest(self, _mutator: Mutator, _boxes: list[bytes], scores: list[bytes]) -> None:
        scores[:] = [b"\xff" * MASK_BYTES] * len(scores)

    def _no_old_scores(self, _mutator: Mutator, boxes: list[bytes], scores: list[bytes]) -> None:
        scores[: -len(boxes)] = [NOT_SENT] * (len(scores) - len(boxes))

    def _no_new_score(self, _mutator: Mutator, _boxes: list[bytes], scores: list[bytes]) -> None:
        scores[-1] = NOT_SENT

    def _more_scores(self, _mutator: Mutator, _boxes: list[bytes], scores: list[bytes]) -> None:
        scores.append(scores[-1])

    def _fewer_scores(self, _mutator: Mutator, _boxes: list[bytes], scores: list[bytes]) -> None:
        if len(scores) > 1:
            scores.pop()


def _bid_in(data: bytes) -> BlindBid | None:
    message = decode_message(Direction.OWNER_TO_CURATOR, decode_frame(data).body)
    return message if isinstance(message, BlindBid) else None
