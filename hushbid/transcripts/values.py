"""Transcript values as JSON, whole or shortened, and the contents of recorded frames.

Bytes become ``{"hex": …}``, arrays ``{"dtype", "shape", "values"}`` with their elements in C order, and
non-finite floats ``{"float": "nan"}``. No recorded map has such keys. The body of a frame encodes a message.
It becomes the message's fields in order, from which the same bytes can be made.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeGuard

import numpy as np

from hushbid.protocol.errors import DataError, LocalProtocolError
from hushbid.protocol.transcript.record import Header, RecordedItem
from hushbid.protocol.wire.values import Fields, Value, pack_value, unpack_value

__all__ = ["FRAME", "ShownFrame", "encoded", "header_fields", "shortened", "shown_frame", "whole"]

FRAME: Final = "frame"
"""The private field that holds a sent or received frame."""

_SHOWN: Final = 32
"""Maximum number of bytes or array elements shown."""
_NESTING: Final = 32
"""Depth to which nested collections are expanded: no message or computation is deeper."""


class ShownFrame(NamedTuple):
    """A frame present in a record: peer, and message's kind and fields, which are empty if unreadable."""

    peer: str
    message: str
    fields: Fields


def shown_frame(item: RecordedItem) -> ShownFrame | None:
    """The frame of an event or effect; None if it has none, or the frame was removed."""
    frame = item.private.get(FRAME)
    if not _is_frame(frame):
        return None
    return ShownFrame(str(frame["peer"]), str(frame["message"]), _message(frame["body"]) or {})


def header_fields(header: Header) -> dict[str, Any]:
    """The header of a transcript, for JSON."""
    return header._asdict() | {
        "config_digest": header.config_digest.hex(),
        "environment": whole(header.environment),
    }


def whole(value: Value) -> Any:
    """The complete value as JSON; parts nested too deeply appear as their encoding."""
    return _plain(value, None, 0)


def shortened(value: Value) -> Any:
    """The value as JSON; long bytes and arrays show their first elements, as ``first``, not ``values``."""
    return _plain(value, _SHOWN, 0)


def encoded(value: Value) -> bytes:
    """Encode a value that was read.

    Raises:
        DataError: It is nested too deeply to be written, so that no party can have recorded it.
    """
    try:
        return pack_value(value)
    except LocalProtocolError as error:
        raise DataError(
            f"A value of the transcript is nested too deeply: {error.what}",
            advice="No party records such a value: someone altered or forged the file. `transcript show` "
            "shows the rest.",
        ) from None


def _plain(value: Value, most: int | None, depth: int) -> Any:
    if isinstance(value, bytes):
        cut = most is not None and len(value) > most
        return {"hex": value[:most].hex(), "bytes": len(value)} if cut else {"hex": value.hex()}
    if isinstance(value, np.ndarray):
        shown = {"dtype": value.dtype.name, "shape": list(value.shape)}
        cut = most is not None and value.size > most
        return shown | {"first" if cut else "values": value.ravel()[:most].tolist()}
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    if not isinstance(value, Mapping | list | tuple):
        return value
    if depth > _NESTING:
        return "..." if most is not None else {"encoded": encoded(value).hex()}
    if isinstance(value, Mapping):
        fields = value | {"body": _message(value["body"]) or value["body"]} if _is_frame(value) else value
        return {key: _plain(field, most, depth + 1) for key, field in fields.items()}
    return [_plain(element, most, depth + 1) for element in value]


def _is_frame(value: Value) -> TypeGuard[dict[str, Value]]:
    return isinstance(value, dict) and {"peer", "message", "body"} <= value.keys()


def _message(body: Value) -> Fields | None:
    try:
        fields = unpack_value(body) if isinstance(body, bytes) else None
    except ValueError:
        return None
    return fields if isinstance(fields, dict) and all(type(key) is str for key in fields) else None
