"""One direction of a connection as bytes: frames with lengths, some garbled by somebody on the line.

It mimics ZMTP and CURVE: a frame's length is not authenticated, its content is. A changed length misframes
the bytes that follow. A frame with a wrong tag, or with a used number, is invalid and ends the connection.
"""

from __future__ import annotations

import hashlib
from typing import Final

import numpy as np

from hushbid.protocol import limits

__all__ = ["Stream", "garbled"]

_LONG: Final = 0x02
"""Flag in a frame's first byte: the length has 8 bytes instead of one."""
_COMMAND: Final = b"\x07MESSAGE"
_NUMBER_BYTES: Final = 8
_TAG_BYTES: Final = 16
_ENVELOPE: Final = len(_COMMAND) + _NUMBER_BYTES + _TAG_BYTES
_HEAD: Final = 10
"""Range of a frame's length bytes, plus one byte."""
_MOST: Final = 4
"""Maximum number of bytes added or removed at once."""
_TRICKLES: Final = 2
"""Consecutive beats with bytes but no frame after which the connection counts as stalled."""


class Stream:
    """Frames as bytes at both ends: the sender calls `packed`, the reader `taken`.

    Args:
        key: A key that both ends share, and nobody on the line knows.
    """

    def __init__(self, key: bytes) -> None:
        self.broken = False
        """Whether invalid bytes arrived; nothing is read after them."""
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
        """The frames completed by these bytes."""
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
        """Whether bytes trickle in without completing a frame. Call once per beat, for silent peers only."""
        came, self._seen = self._came > self._seen, self._came
        self._trickles += came
        return self._trickles >= _TRICKLES

    def _next(self) -> bytes | None:
        """The next frame by its stated length, if it is complete."""
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
    """A frame's bytes with some added, removed or changed, often in its length, but never all removed."""
    place = int(rng.integers(_HEAD if rng.random() < 0.5 else len(data)))
    count = int(rng.integers(1, _MOST + 1))
    way = int(rng.integers(4))
    if way == 0:
        return data[:place] + rng.bytes(count) + data[place:]
    if way == 1:
        return data[:place] + data[place + count :]
    if way == 2:
        # A plausible length: what follows becomes the rest of one frame.
        place = int(rng.integers(6, 9)) if data[0] & _LONG else 1
    other = data[place] ^ int(rng.integers(1, 256))
    return data[:place] + bytes((other,)) + data[place + 1 :]
