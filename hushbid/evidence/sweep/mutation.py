"""An owner that breaks the protocol: how it changes the frames that its machine would send.

It has its own key and connections, so its frames count as its own. It may know other parties' frames, byte
for byte.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import numpy as np

from hushbid.protocol import limits
from hushbid.protocol.runtime.driver import Outgoing
from hushbid.protocol.space.grid import Features
from hushbid.protocol.wire.codec import (
    Direction,
    Frame,
    decode_frame,
    decode_message,
    encode_frame,
    encode_message,
)
from hushbid.protocol.wire.messages import (
    Batch,
    Bid,
    BlindBid,
    Candidate,
    Candidates,
    Hello,
    Message,
    Offer,
    Ready,
    SealedCandidate,
    fixed,
    unfixed,
)

__all__ = ["MUTATIONS", "OF_ANY_FRAME", "Mutation", "Mutator", "edited"]

KEPT: Final = 32
"""Frames of each kind that an owner keeps in order to send them again."""
_ENDLESS: Final = b"\xdd\xff\xff\xff\xff"
"""The head of a msgpack array of 2^32 - 1 elements."""


class Mutator:
    """Replaces a share of the frames of an owner's machine, by one of the mutations each."""

    def __init__(
        self,
        rng: np.random.Generator,
        rate: float,
        mutations: Mapping[str, Mutation] | None = None,
    ) -> None:
        self.rng = rng
        self._rate = rate
        self._mutations = MUTATIONS if mutations is None else mutations
        self.own: deque[bytes] = deque(maxlen=KEPT)
        """Original frames of its machine."""
        self.captured: deque[bytes] = deque(maxlen=KEPT)
        """Frames of other parties."""

    def overhear(self, data: bytes) -> None:
        self.captured.append(data)

    def is_deaf(self) -> bool:
        """Whether it ignores refusals."""
        return bool(self.rng.random() < 0.5)

    def sent(self, frame: Outgoing, counts: Counter[str]) -> list[bytes]:
        """The frames sent instead of a frame."""
        found: list[bytes] | None = None
        if self.rng.random() < self._rate:
            name = tuple(self._mutations)[int(self.rng.integers(len(self._mutations)))]
            found = self._mutations[name](self, frame.data)
            counts[f"mutation: {name}"] += found is not None
        self.own.append(frame.data)
        return [frame.data] if found is None else found

    def below(self, count: int) -> int:
        return int(self.rng.integers(count))


Mutation: TypeAlias = Callable[[Mutator, bytes], list[bytes] | None]
"""Turns a frame into others; None if it does not apply to the frame."""


def _bits(mutator: Mutator, data: bytes) -> list[bytes]:
    changed = bytearray(data)
    for _ in range(1 + mutator.below(3)):
        changed[mutator.below(len(changed))] ^= 1 << mutator.below(8)
    return [bytes(changed)]


def _cut(mutator: Mutator, data: bytes) -> list[bytes]:
    return [data[: mutator.below(len(data))]]


def _withheld(_mutator: Mutator, _data: bytes) -> list[bytes]:
    return []


def _replayed(mutator: Mutator, data: bytes) -> list[bytes] | None:
    return [data, mutator.own[mutator.below(len(mutator.own))]] if mutator.own else None


def _captured(mutator: Mutator, data: bytes) -> list[bytes] | None:
    return [mutator.captured[mutator.below(len(mutator.captured))], data] if mutator.captured else None


def _captured_body(mutator: Mutator, data: bytes) -> list[bytes] | None:
    if not mutator.captured:
        return None
    other = decode_frame(mutator.captured[mutator.below(len(mutator.captured))])
    return [encode_frame(decode_frame(data)._replace(body=other.body))]


def _sequence(mutator: Mutator, data: bytes) -> list[bytes]:
    frame = decode_frame(data)
    others = (0, 1, frame.sequence + 1, max(frame.sequence - 1, 0), 2**63)
    return [encode_frame(frame._replace(sequence=others[mutator.below(len(others))]))]


def _acknowledged(mutator: Mutator, data: bytes) -> list[bytes]:
    frame = decode_frame(data)
    others = (0, frame.acknowledged + 1, 2**64 - 1)
    return [encode_frame(frame._replace(acknowledged=others[mutator.below(len(others))]))]


def _session(mutator: Mutator, data: bytes) -> list[bytes]:
    return [encode_frame(decode_frame(data)._replace(session=mutator.rng.bytes(16)))]


def _said_twice(_mutator: Mutator, data: bytes) -> list[bytes]:
    """The same message again under the next number."""
    frame = decode_frame(data)
    return [data, encode_frame(frame._replace(sequence=frame.sequence + 1))]


def _ready_again(_mutator: Mutator, data: bytes) -> list[bytes]:
    frame = decode_frame(data)
    return [data, encode_frame(frame._replace(sequence=frame.sequence + 1, body=encode_message(Ready())))]


def _swapped(_mutator: Mutator, data: bytes) -> list[bytes] | None:
    def swap(message: Message) -> dict[str, Any] | None:
        if isinstance(message, Bid):
            return {"score": message.handle, "handle": message.score}
        if isinstance(message, Batch):
            return {"scores": message.handles, "handles": message.scores}
        if isinstance(message, Hello):
            return {"sent": message.received, "received": message.sent}
        if isinstance(message, Offer):
            return {"round": max(1, unfixed(message.handle)), "handle": fixed(message.round)}
        return None

    return edited(data, swap)


def _other_round(mutator: Mutator, data: bytes) -> list[bytes] | None:
    return edited(
        data,
        lambda message: (
            {"round": 1 + mutator.below(9)} if isinstance(message, Bid | Batch | BlindBid | Offer) else None
        ),
    )


def _oversized(mutator: Mutator, data: bytes) -> list[bytes] | None:
    if mutator.below(2):
        frame = decode_frame(data)
        return [encode_frame(frame._replace(body=frame.body[:8] + _ENDLESS))]

    def enlarge(message: Message) -> dict[str, Any] | None:
        if isinstance(message, Bid):
            return {"handle": fixed(limits.MAX_POINTS + 1)}
        if isinstance(message, Batch):
            if isinstance(message.candidates, Candidates) and mutator.below(2):
                attributes = bytes((limits.MAX_ATTRIBUTES + 1) * len(message.handles))
                return {"candidates": message.candidates.model_copy(update={"attributes": attributes})}
            return {"handles": message.handles + limits.MAX_POINTS}
        if isinstance(message, Hello):
            return {"sent": 2**53, "received": 2**53}
        return None

    return edited(data, enlarge)


def _higher_bid(mutator: Mutator, data: bytes) -> list[bytes] | None:
    def raise_it(message: Message) -> dict[str, Any] | None:
        more = 1 + mutator.below(2**40)
        if isinstance(message, Bid):
            return {"score": message.score + more}
        if isinstance(message, Batch):
            return {"scores": message.scores + more}
        return None

    return edited(data, raise_it)


def _same_number(_mutator: Mutator, data: bytes) -> list[bytes] | None:
    """All points of a batch under the number of its first."""

    def repeat(message: Message) -> dict[str, Any] | None:
        if not isinstance(message, Batch):
            return None
        return {"handles": np.full_like(message.handles, message.handles[0])}

    return edited(data, repeat)


def _shorter_batch(_mutator: Mutator, data: bytes) -> list[bytes] | None:
    """A batch with its first point only."""

    def shorten(message: Message) -> dict[str, Any] | None:
        if not isinstance(message, Batch):
            return None
        rows = len(message.handles)
        kept = {
            name: part if name == "signature" else part[: len(part) // rows]
            for name, part in message.candidates
        }
        return {
            "scores": message.scores[:1],
            "handles": message.handles[:1],
            "candidates": message.candidates.model_copy(update=kept),
        }

    return edited(data, shorten)


def _forged_point(mutator: Mutator, data: bytes) -> list[bytes] | None:
    def forge(message: Message) -> dict[str, Any] | None:
        if isinstance(message, Batch):
            changed = _flipped(mutator, message.candidates.features)
            return {"candidates": message.candidates.model_copy(update={"features": changed})}
        candidate = message.candidate if isinstance(message, Bid | Offer) else None
        if not isinstance(candidate, Candidate | SealedCandidate):
            return None
        changed = _flipped(mutator, candidate.features)
        return {"candidate": candidate.model_copy(update={"features": changed})}

    return edited(data, forge)


def _flipped(mutator: Mutator, features: Features) -> Features:
    changed = features.copy()
    changed[mutator.below(len(changed))] ^= 1 << mutator.below(14)
    return changed


def edited(data: bytes, edit: Callable[[Message], dict[str, Any] | None]) -> list[bytes] | None:
    """A frame with edited fields in its message; None if `edit` has nothing to change."""
    frame: Frame = decode_frame(data)
    message = decode_message(Direction.OWNER_TO_CURATOR, frame.body)
    changes = edit(message)
    if changes is None:
        return None
    body = encode_message(message.model_copy(update=changes))
    return [encode_frame(frame._replace(body=body))]


OF_ANY_FRAME: Final[Mapping[str, Mutation]] = {
    "bits flipped": _bits,
    "cut short": _cut,
    "withheld": _withheld,
    "an old frame again": _replayed,
    "another's frame": _captured,
    "another's message": _captured_body,
    "wrong number": _sequence,
    "wrong acknowledgement": _acknowledged,
    "another session": _session,
    "said twice": _said_twice,
    "ready again": _ready_again,
    "fields swapped": _swapped,
    "another round": _other_round,
    "oversized": _oversized,
}
"""Mutations of any frame, by name."""

MUTATIONS: Final[Mapping[str, Mutation]] = {
    **OF_ANY_FRAME,
    "a higher bid": _higher_bid,
    "a forged point": _forged_point,
    "one number for all": _same_number,
    "a shorter batch": _shorter_batch,
}
"""Mutations of any frame, and of bids that the curator can read, by name."""
