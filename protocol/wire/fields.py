"""The parts of messages: their base, and the types of their fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, GetPydanticSchema, StringConstraints
from pydantic_core import PydanticCustomError, core_schema

from hushbid.protocol import limits, ranges

__all__ = [
    "Array",
    "Attributes",
    "Basis",
    "Box",
    "Count",
    "Digest",
    "Digests",
    "Embedding",
    "Features",
    "FixedSize",
    "FixedSizes",
    "HeadSignature",
    "ManyBytes",
    "ManyFeatures",
    "ManyPoints",
    "MapBox",
    "Message",
    "Name",
    "OwnerCounts",
    "Part",
    "Path",
    "PerOwner",
    "Point",
    "Round",
    "Signature",
    "Text",
    "Totals",
    "Weights",
    "fixed",
    "sizes",
    "unfixed",
]

_set: Final = object.__setattr__

Array: TypeAlias = npt.NDArray[Any]
Round: TypeAlias = ranges.Points
Count: TypeAlias = Annotated[int, Field(ge=0, le=2**53)]
Name: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_.-]{0,63}$")]
Text: TypeAlias = Annotated[str, StringConstraints(max_length=limits.MAX_TEXT)]
Attributes: TypeAlias = Annotated[bytes, Field(max_length=limits.MAX_ATTRIBUTES)]
Digest: TypeAlias = Annotated[bytes, Field(min_length=32, max_length=32)]


def _array(dtypes: tuple[type[np.generic], ...], *, longest: int, length: int | None = None) -> Any:
    """An annotation for a vector of one of `dtypes` and at most `longest` (or exactly `length`) values."""
    allowed = frozenset(np.dtype(dtype) for dtype in dtypes)

    def check(value: Any) -> Array:
        if type(value) is not np.ndarray:
            raise PydanticCustomError("array_type", "an array is required here")
        if value.dtype not in allowed:
            raise PydanticCustomError("array_dtype", "an array of another number type is required here")
        if value.ndim != 1 or value.size == 0 or (length is not None and value.size != length):
            raise PydanticCustomError("array_shape", "the array's shape is not allowed here")
        if value.size > longest:
            raise PydanticCustomError("array_too_long", "the array is longer than is allowed here")
        return value

    return GetPydanticSchema(lambda _source, _handler: core_schema.no_info_plain_validator_function(check))


def _whole_nodes(path: bytes) -> bytes:
    if len(path) % 32:
        raise PydanticCustomError("path_length", "a path is a whole number of 32 bytes")
    return path


Features: TypeAlias = Annotated[Array, _array((np.int16,), longest=limits.MAX_DIMENSION)]
Weights: TypeAlias = Annotated[Array, _array((np.int32,), longest=limits.MAX_DIMENSION + 1)]
"""One more than coordinates with jitter, whose weight is last."""
Totals: TypeAlias = Annotated[Array, _array((np.int64,), longest=limits.MAX_DIMENSION)]
Embedding: TypeAlias = Annotated[Array, _array((np.float64,), longest=limits.MAX_DIMENSION)]
Basis: TypeAlias = Annotated[Array, _array((np.int16,), longest=limits.MAX_BASIS)]
Box: TypeAlias = Annotated[bytes, Field(min_length=1, max_length=limits.MAX_BOX_BYTES)]
MapBox: TypeAlias = Annotated[bytes, Field(min_length=limits.MAP_BOX_BYTES, max_length=limits.MAP_BOX_BYTES)]
Signature: TypeAlias = Annotated[bytes, Field(min_length=64, max_length=64)]
HeadSignature: TypeAlias = Annotated[bytes, Field(max_length=64)]
"""A signature of 64 bytes; empty if parties have no keys: without CURVE, with secret noise."""
FixedSize: TypeAlias = Annotated[Array, _array((np.int64,), longest=1, length=1)]
FixedSizes: TypeAlias = Annotated[Array, _array((np.int64,), longest=limits.MAX_BATCH)]
ManyFeatures: TypeAlias = Annotated[
    Array, _array((np.int16,), longest=limits.MAX_DIMENSION * limits.MAX_BATCH)
]
ManyBytes: TypeAlias = Annotated[bytes, Field(max_length=limits.MAX_MESSAGE_BYTES)]
PerOwner: TypeAlias = Annotated[Array, _array((np.float64,), longest=limits.MAX_OWNERS)]
OwnerCounts: TypeAlias = Annotated[Array, _array((np.int64,), longest=limits.MAX_OWNERS)]
Digests: TypeAlias = Annotated[bytes, Field(min_length=32, max_length=32 * limits.MAX_BATCH)]
Path: TypeAlias = Annotated[bytes, Field(max_length=32 * limits.DEEPEST_PATH), AfterValidator(_whole_nodes)]
_POINT_TYPES = (np.uint8, np.int16, np.int32, np.int64, np.float32, np.float64)
Point: TypeAlias = Annotated[Array, _array(_POINT_TYPES, longest=limits.MAX_COLUMNS)]
ManyPoints: TypeAlias = Annotated[Array, _array(_POINT_TYPES, longest=limits.MAX_MESSAGE_BYTES)]


def fixed(value: int) -> Array:
    """An integer as a field whose encoded size does not depend on it."""
    return sizes([value])


def sizes(values: Sequence[int]) -> Array:
    """Integers as one field whose encoded size depends only on their number, shape (n,)."""
    array = np.array(values, dtype=np.int64)
    array.flags.writeable = False
    return array


def unfixed(field: Array) -> int:
    """The inverse of `fixed`."""
    return int(field[0])


class Part(BaseModel):
    """The base of messages and of their parts: frozen, strict, without unknown fields."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", arbitrary_types_allowed=True)

    @classmethod
    def model_construct(cls, _fields_set: set[str] | None = None, **values: Any) -> Self:
        """As pydantic's, which takes three times as long: of all fields that have no default, unchecked."""
        fields = {name: values.get(name, field.default) for name, field in cls.__pydantic_fields__.items()}
        made = cls.__new__(cls)
        _set(made, "__dict__", fields)
        _set(made, "__pydantic_fields_set__", set(fields))
        _set(made, "__pydantic_extra__", None)
        _set(made, "__pydantic_private__", None)
        return made


class Message(Part):
    """The base of every message."""

    kind: str
