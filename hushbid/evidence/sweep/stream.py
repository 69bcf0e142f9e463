"""The bytes of a connection, one way: frames with their lengths, of which somebody on the line garbles some.

It does what ZMTP and CURVE do: what says where a frame ends is not authenticated, and what is in it is. A
length that was changed makes other bytes of what follows; a frame that does not lead to its tag, or comes
under a number that was used, is none, and the connection ends.
"""

from __future__ import annotations

import hashlib
from typing import Final

import numpy as np

from hushbid.protocol import limits

__all__ = ["Stream", "garbled"]

_LONG: Final = 0x02
"""In the first byte of a frame: its length has 8 bytes in place of one."""
_COMMAND: Final = b"\x07MESSAGE"
_NUMBER_BYTES: Final = 8
_TAG_BYTES: Final = 16
_ENVELOPE: Final = len(_COMMAND) + _NUMBER_BYTES + _TAG_BYTES
_HEAD: Final = 10
"""Where the bytes are that say how long a frame is, and one more."""
_MOST: Final = 4
"""Most bytes that are added or taken out at once."""
_TRICKLES: Final = 2
"""Beats in a row in which bytes came, and no frame: the connection has stalled."""


class Stream:
    """Frames as bytes, at both of their ends: `packed` by who sends, `taken` by who reads.

    Args:
        key: What both ends have, and nobody on the line.
    """

    def __init__(self, key: bytes) -> None:
        self.broken = False
        """Whether something came that is no frame: nothing is read after it."""
        self._key = key
        self._sent = self._received = 0
        self._waiting = b""
        self._came = self._seen = self._trickles = 0

    def packed(self, frame: bytes) -> bytes:
        """The bytes of a frame on the line."""
        self._sent += 1
        number = self._sent.to_bytes(_NUMBER_BYTES)
        body = _COMMAND + number + self._tag(number, frame) + frame
        if len(body) < 256:
            return bytes((0, len(body))) + body
        return bytes((_LONG,)) + len(body).to_bytes(8) + body

    def taken(self, data: bytes) -> list[bytes]:
        """The frames that end with these bytes."""
        self._came += len(data)
        self._waiting += data
        found: list[bytes] = []
        while not self.broken and (body := self._next()) is not None:
            number, frame = body[len(_COMMAND) :][:_NUMBER_BYTES], body[_ENVELOPE:]
            whole = len(body) >= _ENVELOPE and body.startswith(_COMMAND)
            if not (
                whole
                and int.from_bytes(number) > self._received
                and body[_ENVELOPE - _TAG_BYTES : _ENVELOPE] == self._tag(number, frame)
            ):
                self.broken = True
                break
            self._received = int.from_bytes(number)
            found.append(frame)
        if found:
            self._seen, self._trickles = self._came, 0
        return found

    def stalls(self) -> bool:
        """Whether bytes trickle in, and no frame does. Ask once per beat, and of silent peers only."""
        came, self._seen = self._came > self._seen, self._came
        self._trickles += came
        return self._trickles >= _TRICKLES

    def _next(self) -> bytes | None:
        """What the first length that waits says is a frame, if all of it is here."""
        head = 9 if self._waiting[:1] and self._waiting[0] & _LONG else 2
        if len(self._waiting) < head:
            return None
        length = int.from_bytes(self._waiting[1:head])
        if length > limits.MAX_FRAME_BYTES:
            self.broken = True
            return None
        if len(self._waiting) < head + length:
            return None
        body, self._waiting = self._waiting[head : head + length], self._waiting[head + length :]
        return body

    def _tag(self, number: bytes, frame: bytes) -> bytes:
        return hashlib.blake2b(number + frame, digest_size=_TAG_BYTES, key=self._key).digest()


def garbled(data: bytes, rng: np.random.Generator) -> bytes:
    """The bytes of a frame with some more, some fewer or another one among them, often where its length is.

    It never takes out a whole frame.
    """
    place = int(rng.integers(_HEAD if rng.random() < 0.5 else len(data)))
    count = int(rng.integers(1, _MOST + 1))
    way = int(rng.integers(4))
    if way == 0:
        return data[:place] + rng.bytes(count) + data[place:]
    if way == 1:
        return data[:place] + data[place + count :]
    if way == 2:
        # A length that may be one: what follows becomes the rest of one frame.
        place = int(rng.integers(6, 9)) if data[0] & _LONG else 1
    other = data[place] ^ int(rng.integers(1, 256))
    return data[:place] + bytes((other,)) + data[place + 1 :]
