"""The values of a transcript: events that entered a machine, effects that left it.

An `Item` has *public* and *private* fields. Public fields enter the record's digest as they are. A private
field enters as a salted commitment, SHA-256(salt ‖ encoding of the value) with 32 random bytes of its own
salt. So a copy without the value still verifies, and nobody can find the value by trying likely ones. An
item's kind, its fields' names and the number of effects are public.

Values have one encoding each (`pack_value`): msgpack with map keys in order, shortest integers, float64, and
arrays as in `hushbid.protocol.wire.arrays`. Two parties that recorded the same values recorded the same
bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import msgpack
import numpy as np

from hushbid.protocol.errors import LocalProtocolError
from hushbid.protocol.wire.arrays import ARRAY_EXT, Array, pack_array, unpack_extension

__all__ = ["Fields", "Item", "Value", "canonical_map", "pack_value", "unpack_value"]

Value: TypeAlias = "bool | int | float | str | bytes | Array | Sequence[Value] | Mapping[str, Value] | None"
"""The values that a field can hold. Integers from -2^63 to 2^64 - 1. Sequences (lists, tuples) come back as
tuples.
"""

Fields: TypeAlias = Mapping[str, Value]


class Item(NamedTuple):
    """An event or an effect as it enters the record."""

    kind: str
    public: Fields
    private: Fields


_ATOMS: Final = frozenset({type(None), bool, int, float, str, bytes})
"""Types that msgpack encodes canonically without help."""


def pack_value(value: Value) -> bytes:
    """The one encoding of a value.

    Raises:
        LocalProtocolError: The value, or a part of it, has a type that a transcript cannot hold.
    """
    try:
        return _pack(value if type(value) in _ATOMS else _canonical(value))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        # The cause is not chained: its text may quote the value.
        reason = type(error).__name__
    raise LocalProtocolError(
        f"a value of type {type(value).__name__} cannot be encoded ({reason}).",
        advice="Fields hold None, bool, int of 64 bits, float, str, bytes, finite arrays, lists and dicts.",
    )


def unpack_value(encoded: bytes) -> Value:
    """The inverse of `pack_value`; arrays are read-only, sequences are tuples.

    Raises:
        ValueError: The bytes are no such encoding.
    """
    try:
        # timestamp=1: msgpack's own extension, which nothing here writes, would come back as a float.
        value: Value = msgpack.unpackb(encoded, use_list=False, timestamp=1, ext_hook=unpack_extension)
    except (msgpack.UnpackException, msgpack.ExtraData, RecursionError, TypeError) as error:
        raise ValueError(f"not an encoded value ({type(error).__name__})") from None
    return value


def canonical_map(fields: Fields) -> dict[str, Any]:
    """The fields in the order and the containers of their encoding.

    Raises:
        TypeError: A key is not a str, or a value has a type that cannot be encoded.
    """
    ordered: dict[str, Any] = {}
    for key in sorted(fields):
        if type(key) is not str:
            raise TypeError("a key is not a str")
        value = fields[key]
        ordered[key] = value if type(value) in _ATOMS else _canonical(value)
    return ordered


def _canonical(value: Value) -> Any:
    # Arrays become extensions here and not in a callback of the packer: it is shared, and a callback
    # would let another thread in while it is half way through a value.
    if isinstance(value, np.ndarray):
        return msgpack.ExtType(ARRAY_EXT, pack_array(value))
    if isinstance(value, Mapping):
        return canonical_map(value)
    if isinstance(value, list | tuple):
        return [item if type(item) in _ATOMS else _canonical(item) for item in value]
    # Subclasses (IntEnum, StrEnum, numpy's float64) encode as what they stand for.
    for base in (int, float, str, bytes):
        if isinstance(value, base):
            return value
    raise TypeError(type(value).__name__)


_pack: Final[Callable[[object], bytes]] = msgpack.Packer(use_bin_type=True).pack
