"""How a message becomes bytes, and how bytes become a message or a `RemoteProtocolError`.

Frame (integers big-endian)::

    offset  size  field
         0     4  magic, b"HBID"
         4     1  frame version, 1
         5    16  session: first 16 bytes of the session digest
        21     8  sequence, u64: 0 for messages that make a link, else counted from 1 per direction
        29     8  acknowledged, u64: last sequence durably received from the other side
        37     …  body: canonical msgpack of one message

The body is canonical: a map of the model's fields in declared order, shortest integers, UTF-8 text,
arrays as extension type 1 (`hushbid.protocol.wire.arrays`). A body that does not encode to the same bytes
again is refused, which rules out duplicate keys, other key orders and padded integers.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from enum import Enum
from typing import Any, Final, NamedTuple, cast

import msgpack
import numpy as np
from pydantic import BaseModel, TypeAdapter, ValidationError

from hushbid.protocol import limits
from hushbid.protocol.errors import LocalProtocolError, Offence, RemoteProtocolError
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.wire.arrays import ARRAY_EXT, OversizedArray, pack_array, unpack_extension
from hushbid.protocol.wire.messages import (
    ConsumerToCurator,
    CuratorToConsumer,
    CuratorToOwner,
    Hello,
    Message,
    OwnerToCurator,
)

__all__ = [
    "FRAME_VERSION",
    "HEADER_BYTES",
    "Direction",
    "Frame",
    "decode_frame",
    "decode_message",
    "encode_frame",
    "encode_message",
    "read_message",
    "said_to",
    "unpack_limited",
]

MAGIC: Final = b"HBID"
FRAME_VERSION: Final = 1
SESSION_BYTES: Final = 16
_HEADER: Final = struct.Struct(">4sB16sQQ")
HEADER_BYTES: Final = _HEADER.size


class Direction(Enum):
    """Sender and receiver, which decide the allowed messages."""

    GREETING = "greeting"
    """From a peer that has not said who it is."""
    OWNER_TO_CURATOR = "owner-to-curator"
    CONSUMER_TO_CURATOR = "consumer-to-curator"
    CURATOR_TO_OWNER = "curator-to-owner"
    CURATOR_TO_CONSUMER = "curator-to-consumer"


def said_to(party: str) -> Callable[[str], Direction]:
    """What a party's peers may send to it, by the peer's name."""
    if party == CURATOR:
        return _said_to_curator
    said = Direction.CURATOR_TO_CONSUMER if party == CONSUMER else Direction.CURATOR_TO_OWNER
    return lambda _peer: said


def _said_to_curator(peer: str) -> Direction:
    return Direction.CONSUMER_TO_CURATOR if peer == CONSUMER else Direction.OWNER_TO_CURATOR


_VALIDATE: Final = {
    Direction.GREETING: TypeAdapter(Hello).validator.validate_python,
    Direction.OWNER_TO_CURATOR: TypeAdapter(OwnerToCurator).validator.validate_python,
    Direction.CONSUMER_TO_CURATOR: TypeAdapter(ConsumerToCurator).validator.validate_python,
    Direction.CURATOR_TO_OWNER: TypeAdapter(CuratorToOwner).validator.validate_python,
    Direction.CURATOR_TO_CONSUMER: TypeAdapter(CuratorToConsumer).validator.validate_python,
}


_LONGEST: Final = {
    Direction.CURATOR_TO_CONSUMER: limits.MAX_FRAME_BYTES,
    Direction.CONSUMER_TO_CURATOR: limits.MAX_TARGET_BYTES,
}
"""Limits of the directions with longer bodies than `limits.MAX_MESSAGE_BYTES`."""

_TOO_LONG: Final = frozenset({"too_long", "string_too_long", "bytes_too_long", "array_too_long"})
"""The names that pydantic and `hushbid.protocol.wire.messages` give to a field over its limit."""


class Frame(NamedTuple):
    """A frame's parts, the body still encoded."""

    session: bytes
    sequence: int
    acknowledged: int
    body: bytes


def encode_frame(frame: Frame) -> bytes:
    """The frame's bytes.

    Raises:
        LocalProtocolError: The frame is longer than peers accept.
    """
    length = HEADER_BYTES + len(frame.body)
    if length > limits.MAX_FRAME_BYTES:
        raise LocalProtocolError(
            f"A frame of {length} bytes is over the limit of {limits.MAX_FRAME_BYTES}.",
            advice="Points with fewer columns, or of a smaller number type, fit.",
        )
    return _HEADER.pack(MAGIC, FRAME_VERSION, *frame[:3]) + frame.body


def decode_frame(data: bytes) -> Frame:
    """The parts of a frame, without decoding the body.

    Raises:
        RemoteProtocolError: `MAGIC`, `VERSION`, `OVERSIZED` or `MALFORMED`.
    """
    if len(data) > limits.MAX_FRAME_BYTES:
        raise RemoteProtocolError(
            Offence.OVERSIZED, f"A frame of {len(data)} bytes is over the limit of {limits.MAX_FRAME_BYTES}."
        )
    if data[:4] != MAGIC[: len(data)]:
        raise RemoteProtocolError(
            Offence.MAGIC, "The frame is not one of hushbid's.", advice="Check what speaks at that address."
        )
    if len(data) > 4 and data[4] != FRAME_VERSION:
        raise RemoteProtocolError(
            Offence.VERSION,
            f"The frame has version {data[4]}; this software reads {FRAME_VERSION}.",
            advice="Use the same release of hushbid on both sides.",
        )
    if len(data) < HEADER_BYTES:
        raise RemoteProtocolError(
            Offence.MALFORMED, f"The frame is cut: {len(data)} bytes, a header has {HEADER_BYTES}."
        )
    _, _, session, sequence, acknowledged = _HEADER.unpack_from(data)
    return Frame(session, sequence, acknowledged, data[HEADER_BYTES:])


def _pack_default(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return msgpack.ExtType(ARRAY_EXT, pack_array(value))
    if isinstance(value, BaseModel):
        return value.__dict__
    raise TypeError(f"{type(value).__name__} has no place in a message")


class _TooManyParts(ValueError):
    """More maps, lists and arrays than a message has."""


def _unpack_message(body: bytes) -> Any:
    """Unpack a body that is no delivery: it has few parts, or fails at the first excess one."""
    left = limits.MAX_MESSAGE_PARTS

    def count(part: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise _TooManyParts
        return part

    def count_extension(code: int, data: bytes) -> Any:
        return unpack_extension(code, count(data))

    # Room for one version too many, so that the message's own check can name the field.
    counting: dict[str, Any] = {"object_hook": count, "list_hook": count, "ext_hook": count_extension}
    return unpack_limited(body, longest=limits.MAX_VERSIONS + 1, **counting)


def unpack_limited(body: bytes, *, longest: int, **hooks: Any) -> Any:
    """Unpack values with arrays and with lists of up to `longest` elements; raises as `msgpack.unpackb`.

    The limits keep out collections whose every element would cost an error's memory in validation.
    """
    return msgpack.unpackb(
        body,
        use_list=False,
        raw=False,
        strict_map_key=True,
        max_map_len=limits.MAX_MESSAGE_FIELDS,
        max_array_len=longest,
        **({"ext_hook": unpack_extension} | hooks),
    )


def encode_message(message: Message) -> bytes:
    """The canonical body of a message.

    A model keeps its fields in declared order, and msgpack's packer writes the shortest integers, so nothing
    needs sorting.
    """
    return cast(bytes, msgpack.packb(message.__dict__, default=_pack_default, use_bin_type=True))


def decode_message(direction: Direction, body: bytes) -> Message:
    """The message in a body.

    Raises:
        RemoteProtocolError: `OVERSIZED`, `MALFORMED` or `NOT_CANONICAL`. The text names fields, never their
            values.
    """
    message = read_message(direction, body)
    if encode_message(message) != body:
        raise RemoteProtocolError(
            Offence.NOT_CANONICAL, f"The {message.kind} does not encode to the same bytes again."
        )
    return message


def read_message(direction: Direction, body: bytes) -> Message:
    """As `decode_message`, for a recorded body, which is known to be canonical."""
    delivers = direction is Direction.CURATOR_TO_CONSUMER
    longest = _LONGEST.get(direction, limits.MAX_MESSAGE_BYTES)
    if len(body) > longest:
        raise RemoteProtocolError(
            Offence.OVERSIZED, f"A body of {len(body)} bytes is over the limit of {longest}."
        )
    try:
        value = unpack_limited(body, longest=limits.MAX_PURCHASES) if delivers else _unpack_message(body)
    except OversizedArray:
        raise RemoteProtocolError(
            Offence.OVERSIZED, f"An array has more than {limits.MAX_ARRAY_DIMENSIONS} axes."
        ) from None
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException) as error:
        raise RemoteProtocolError(
            Offence.MALFORMED, f"The body is not a message's msgpack ({type(error).__name__})."
        ) from None
    try:
        return cast(Message, _VALIDATE[direction](value))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ascii(".".join(str(part) for part in first["loc"]) or "message")[1:-1][:80]
        raise RemoteProtocolError(
            Offence.OVERSIZED if first["type"] in _TOO_LONG else Offence.MALFORMED,
            f"Not a message that {direction.value} allows: {where}: {first['type']}.",
        ) from None
