"""Every message of a session: one frozen pydantic model each, one discriminated union per direction.

A model declares its fields in the order in which they are encoded (`protocol.wire`). Numbers whose size
on the wire must not tell anything (a score, a candidate's number) are one-element int64 arrays, since
msgpack integers grow with their value.

`SECRECY` says how much of a message a transcript may show after redaction.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, FailFast, Field, GetPydanticSchema, StringConstraints
from pydantic_core import PydanticCustomError, core_schema

from protocol import limits

__all__ = [
    "CONTROL_SEQUENCE",
    "PROTOCOL_VERSION",
    "Array",
    "Ask",
    "Beat",
    "Bid",
    "Broadcast",
    "Candidate",
    "Close",
    "ConsumerToCurator",
    "CuratorToConsumer",
    "CuratorToOwner",
    "Delivery",
    "Farewell",
    "Hello",
    "Message",
    "Offer",
    "OwnerToCurator",
    "Purchase",
    "Receipt",
    "Refused",
    "Secrecy",
    "Target",
    "Welcome",
    "fixed",
    "unfixed",
]

PROTOCOL_VERSION = 1
"""The version of the messages' meaning, negotiated at Hello; the frame's own version is `wire`'s."""

CONTROL_SEQUENCE = 0
"""Sequence number of the messages that make a link rather than travel on it."""

Array: TypeAlias = npt.NDArray[Any]
Round: TypeAlias = Annotated[int, Field(ge=1, le=limits.MAX_POINTS)]
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


Features: TypeAlias = Annotated[Array, _array((np.int16,), longest=limits.MAX_DIMENSION)]
Weights: TypeAlias = Annotated[Array, _array((np.int32,), longest=limits.MAX_DIMENSION)]
Totals: TypeAlias = Annotated[Array, _array((np.int64,), longest=limits.MAX_DIMENSION)]
Embedding: TypeAlias = Annotated[Array, _array((np.float64,), longest=limits.MAX_DIMENSION)]
FixedSize: TypeAlias = Annotated[Array, _array((np.int64,), longest=1, length=1)]
Point: TypeAlias = Annotated[
    Array,
    _array(
        (np.uint8, np.int16, np.int32, np.int64, np.float32, np.float64),
        longest=limits.MAX_COLUMNS,
    ),
]


def fixed(value: int) -> Array:
    """An integer as a field whose encoded size does not depend on it."""
    array = np.array([value], dtype=np.int64)
    array.flags.writeable = False
    return array


def unfixed(field: Array) -> int:
    """The integer that `fixed` made a field of."""
    return int(field[0])


class Secrecy(IntEnum):
    """What a redacted transcript hides of a message."""

    PUBLIC = 0
    """Nothing: it is a release, or says only what the session file says."""
    BODY = 1
    """What it says; that it was sent is no secret, since every round has one."""
    EXISTENCE = 2
    """That it was sent at all: it depends on data."""


class Message(BaseModel):
    """What every message is: frozen, strict, without unknown fields."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", arbitrary_types_allowed=True)
    SECRECY: ClassVar[Secrecy] = Secrecy.PUBLIC

    kind: str


class Hello(Message):
    """A peer's first words on every connection; binds the connection to a roster name."""

    kind: Literal["hello"] = "hello"
    versions: Annotated[
        tuple[Annotated[int, Field(ge=1, le=2**16)], ...],
        Field(min_length=1, max_length=limits.MAX_VERSIONS),
        FailFast(),
    ]
    role: Literal["owner", "consumer"]
    name: Name
    session: Digest
    """SHA-256 of the session file's canonical form (`protocol.config.session`)."""
    software: Text
    sent: Count
    """Sequence of the last frame that the peer has sent in this session."""
    received: Count
    """Sequence of the last frame that the peer has durably received in this session."""


class Welcome(Message):
    """The curator's answer to a Hello that it accepts."""

    kind: Literal["welcome"] = "welcome"
    version: Annotated[int, Field(ge=1, le=2**16)]
    feature_map: Digest
    """SHA-256 of the feature map's W and b, to compare with one's own."""
    sent: Count
    received: Count


class Refused(Message):
    """The curator has nothing more to say to this peer, and why."""

    kind: Literal["refused"] = "refused"
    code: Name
    detail: Annotated[str, StringConstraints(max_length=limits.MAX_ERROR_DETAIL)]
    advice: Annotated[str, StringConstraints(max_length=limits.MAX_ERROR_DETAIL)]


class Beat(Message):
    """A sign of life from a party's main loop; not sequenced and not recorded."""

    kind: Literal["beat"] = "beat"


class Candidate(BaseModel):
    """A point as it is handed over: raw columns, features on the grid, packed label and identifier."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", arbitrary_types_allowed=True)

    point: Point
    features: Features
    attributes: Attributes


class Target(Message):
    """The consumer's release of D_v's mean embedding, and what the summary starts from."""

    kind: Literal["target"] = "target"
    SECRECY = Secrecy.BODY
    embedding: Embedding
    """The released mean embedding g̃, shape (d,)."""
    size: Annotated[int, Field(ge=1, le=2**53)]
    """m = |D_v|."""
    seed_total: Totals
    """Σφ over the public seed set D_init, in units of 2^-15, shape (d,)."""
    seed_size: Annotated[int, Field(ge=1, le=2**53)]
    noise: Name
    """The noise source's name, "none" for a release without noise."""


class Broadcast(Message):
    """The weight that owners score their points by in one round (DESIGN §1, corrected bid)."""

    kind: Literal["broadcast"] = "broadcast"
    round: Round
    weights: Weights
    """w = g̃ - q/(q+1)·g in units of 2^-22, shape (d,)."""
    noise: Name


class Bid(Message):
    """An owner's best available point under a broadcast; rules that ask everybody add the point."""

    kind: Literal["bid"] = "bid"
    SECRECY = Secrecy.BODY
    round: Round
    exhausted: bool
    """No point is left; the other fields are zeros of their usual size."""
    score: FixedSize
    """wᵀφ in units of 2^-37."""
    handle: FixedSize
    """The candidate's number, counted by its owner from 1 in the order of first bids."""
    candidate: Candidate | None


class Ask(Message):
    """The curator wants the point behind a bid."""

    kind: Literal["ask"] = "ask"
    SECRECY = Secrecy.EXISTENCE
    round: Round
    handle: FixedSize


class Offer(Message):
    """The point that was asked for."""

    kind: Literal["offer"] = "offer"
    SECRECY = Secrecy.EXISTENCE
    round: Round
    handle: FixedSize
    candidate: Candidate


class Purchase(BaseModel):
    """A point that was chosen, on its way to the consumer."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", arbitrary_types_allowed=True)

    owner: Name
    round: Round
    candidate: Candidate


class Delivery(Message):
    """One part of the chosen points; the next follows the receipt."""

    kind: Literal["delivery"] = "delivery"
    SECRECY = Secrecy.BODY
    part: Annotated[int, Field(ge=1, le=2**31)]
    parts: Annotated[int, Field(ge=1, le=2**31)]
    purchases: Annotated[tuple[Purchase, ...], Field(max_length=limits.MAX_PURCHASES), FailFast()]


class Receipt(Message):
    """A part of the delivery is durable at the consumer."""

    kind: Literal["receipt"] = "receipt"
    part: Annotated[int, Field(ge=1, le=2**31)]


class Close(Message):
    """The session is over. Constant: it says nothing about who won (DESIGN §3, "No feedback")."""

    kind: Literal["close"] = "close"
    outcome: Literal["complete", "abandoned"]


class Farewell(Message):
    """The peer has durably received the Close and leaves."""

    kind: Literal["farewell"] = "farewell"


OwnerToCurator: TypeAlias = Annotated[Hello | Beat | Bid | Offer | Farewell, Field(discriminator="kind")]
ConsumerToCurator: TypeAlias = Annotated[
    Hello | Beat | Target | Receipt | Farewell, Field(discriminator="kind")
]
CuratorToOwner: TypeAlias = Annotated[
    Welcome | Refused | Beat | Broadcast | Ask | Close, Field(discriminator="kind")
]
CuratorToConsumer: TypeAlias = Annotated[
    Welcome | Refused | Beat | Delivery | Close, Field(discriminator="kind")
]
