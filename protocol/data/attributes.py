"""The attributes of a bought point: its label and its identifier, packed to one length per dataset."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import msgpack
import numpy as np
import numpy.typing as npt

from hushbid.protocol import limits
from hushbid.protocol.errors import DataError

__all__ = [
    "Attributes",
    "pack_attributes",
    "pack_pair",
    "packed_length",
    "packed_lengths",
    "padded",
    "read_attributes",
    "unpack_attributes",
]

_pack: Final[Callable[[object], bytes]] = msgpack.Packer(use_bin_type=True).pack
"""Made once: `msgpack.packb` makes one for each value, which takes longer than to pack it."""


@dataclass(frozen=True)
class Attributes:
    """A point's label and identifier; None if its owner has none."""

    label: int | float | str | None
    identifier: int | str | None


def packed_length(value: int | float | str | None) -> int:
    """Packed size of a label or an identifier, in bytes."""
    return len(_pack(value))


def packed_lengths(values: npt.NDArray[Any] | None, rows: int) -> npt.NDArray[np.int64]:
    """Packed size of each label or identifier, in bytes, shape (rows,); None: no row has one."""
    if values is None:
        return np.full(rows, packed_length(None), dtype=np.int64)
    if values.dtype.kind == "U":
        lengths = np.strings.str_len(np.strings.encode(values, "utf-8")).astype(np.int64)
        heads = [packed_length("x" * length) - length for length in _TEXT_HEADS]
        return np.asarray(lengths + np.asarray(heads)[np.minimum(np.searchsorted(_TEXT_HEADS, lengths), 2)])
    if values.dtype.kind == "f":
        return np.full(rows, packed_length(0.0), dtype=np.int64)
    different, places = np.unique(values, return_inverse=True)
    return np.array([packed_length(int(value)) for value in different], dtype=np.int64)[places.reshape(rows)]


_TEXT_HEADS = (31, 255, 65535)
"""Most bytes of texts that msgpack writes with a head of one, two and three bytes."""


def pack_pair(label: int | float | str | None, identifier: int | str | None) -> bytes:
    """A label and an identifier as msgpack, in as many bytes as they take."""
    return _pack((label, identifier))


def pack_attributes(attributes: Attributes, length: int) -> bytes:
    """Pack a label and an identifier as msgpack, padded with zeros.

    Args:
        length: Bytes of the result, the same for every row of a dataset, so that a frame's size does not
            reveal its row.

    Raises:
        ValueError: The packed pair is longer than `length`.
    """
    return padded(pack_pair(attributes.label, attributes.identifier), length)


def padded(packed: bytes, length: int) -> bytes:
    """A packed label and identifier with zeros up to a length; raises as `pack_attributes`."""
    if len(packed) > length:
        raise ValueError(f"packed attributes take {len(packed)} bytes, more than {length}")
    return packed.ljust(length, b"\0")


def unpack_attributes(data: bytes) -> Attributes:
    """The inverse of `pack_attributes`, for bytes from another party.

    Raises:
        DataError: The bytes are too long, not msgpack, not a label and an identifier, or followed by anything
            but zeros.
    """
    if len(data) > limits.MAX_ATTRIBUTES:
        raise _refused(f"take {len(data)} bytes, more than {limits.MAX_ATTRIBUTES}")
    unpacker = msgpack.Unpacker(
        raw=False,
        max_buffer_size=limits.MAX_ATTRIBUTES,
        max_array_len=2,
        max_map_len=0,
        max_ext_len=0,
        max_bin_len=0,
    )
    try:
        unpacker.feed(data)
        value = unpacker.unpack()
        end = unpacker.tell()
    except (msgpack.UnpackException, ValueError, OverflowError):
        # The exception may quote the bytes, which are private.
        raise _refused("are not msgpack") from None
    if not isinstance(value, list) or len(value) != 2:
        raise _refused("are not a pair of label and identifier")
    if any(data[end:]):
        raise _refused("are followed by other bytes than padding")
    label, identifier = value
    if label is not None and type(label) not in (int, float, str):
        raise _refused("hold a label that is neither a number nor text")
    if isinstance(label, float) and not math.isfinite(label):
        raise _refused("hold a label that is not finite")
    if identifier is not None and type(identifier) not in (int, str):
        raise _refused("hold an identifier that is neither a whole number nor text")
    return Attributes(label, identifier)


def read_attributes(data: bytes) -> Attributes:
    """As `unpack_attributes`, with neither label nor identifier if that fails: the point is kept anyway."""
    try:
        return unpack_attributes(data)
    except DataError:
        return Attributes(None, None)


def _refused(what: str) -> DataError:
    return DataError(
        f"The attributes of a point {what}.", advice="The owner of the point should check its software."
    )
