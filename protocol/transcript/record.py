"""A transcript's header and records as bytes, and the digests that chain them (docs/transcript-format.md).

Pure: bytes in, bytes out. The header's digest is SHA-256 over everything before it; the digest of record n is
SHA-256(previous digest ‖ public part of n). The public part has a commitment to every private field, so the
chain holds without values and salts.
"""

from __future__ import annotations

import hashlib
import struct
from binascii import crc32
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgpack

from hushbid.protocol import limits
from hushbid.protocol.errors import LocalProtocolError
from hushbid.protocol.wire.messages import PROTOCOL_VERSION
from hushbid.protocol.wire.values import Fields, Item, canonical_map, pack_value, unpack_value

__all__ = [
    "DIGEST_BYTES",
    "FORMAT",
    "FRAME_BYTES",
    "MAGIC",
    "PREAMBLE_BYTES",
    "SALT_BYTES",
    "Header",
    "MalformedRecord",
    "Preamble",
    "Record",
    "RecordLengths",
    "RecordedItem",
    "chain",
    "decode_frame",
    "decode_header",
    "decode_preamble",
    "decode_record",
    "encode_header",
    "encode_record",
    "header_digest",
]

MAGIC: Final = b"hushlog\n"
FORMAT: Final = (1, 1)
"""Major and minor version written. A reader refuses another major and ignores additions of a newer minor."""

DIGEST_BYTES: Final = 32
SALT_BYTES: Final = 32

_PREAMBLE: Final = struct.Struct("<8sHHI")
_LENGTHS: Final = struct.Struct("<II")
_FRAME: Final = struct.Struct("<III")
_ENTRY: Final = struct.Struct("<I")
PREAMBLE_BYTES: Final = _PREAMBLE.size
FRAME_BYTES: Final = _FRAME.size

_pack: Final[Callable[[object], bytes]] = msgpack.Packer(use_bin_type=True).pack


class MalformedRecord(ValueError):
    """Bytes that are no header or record of this format, or whose digests or commitments do not hold."""


class Header(NamedTuple):
    """A transcript's description of itself, before its first record.

    Args:
        party: The party's name on the roster.
        session: The session's identifier, hexadecimal.
        config_digest: SHA-256 of the session's public configuration.
        software: Version of hushbid that wrote it.
        environment: What floating-point results may depend on (`hushbid.protocol.transcript.environment`).
        noise: Source of the noise: secure, simulated, recorded, none.
        protocol: Version of the protocol that the party spoke, which defines the session's digest and its
            feature map; 1 in format 1.0, which does not state it.
    """

    role: str
    party: str
    session: str
    config_digest: bytes
    software: str
    environment: Fields
    noise: str
    protocol: int = PROTOCOL_VERSION


class RecordedItem(NamedTuple):
    """An item that was read back.

    Args:
        private: The private fields that are present.
        commitments: Commitment of every private field, present or not.
    """

    kind: str
    public: Fields
    private: Fields
    commitments: Mapping[str, bytes]

    @property
    def redacted(self) -> tuple[str, ...]:
        """Names of the private fields whose values were removed."""
        return tuple(name for name in self.commitments if name not in self.private)


class Record(NamedTuple):
    """One step of a machine, read back: `digest` is the chain's, up to and including it."""

    number: int
    now: float
    event: RecordedItem
    effects: tuple[RecordedItem, ...]
    digest: bytes

    @property
    def items(self) -> tuple[RecordedItem, ...]:
        return (self.event, *self.effects)


class Preamble(NamedTuple):
    """The file's first bytes, whose layout no version will change."""

    magic: bytes
    major: int
    minor: int
    header_bytes: int


class RecordLengths(NamedTuple):
    """The lengths of a record's two parts."""

    public_bytes: int
    private_bytes: int

    @property
    def remaining(self) -> int:
        """Bytes of the record that follow its frame."""
        return self.public_bytes + self.private_bytes + DIGEST_BYTES


def encode_header(header: Header) -> tuple[bytes, bytes]:
    """The first bytes of a transcript, digest included, and that digest.

    Raises:
        LocalProtocolError: The environment has a value that cannot be encoded.
    """
    body = pack_value(header._asdict())
    lead = _PREAMBLE.pack(MAGIC, *FORMAT, len(body)) + body
    digest = hashlib.sha256(lead).digest()
    return lead + digest, digest


def decode_preamble(lead: bytes) -> Preamble:
    """Read the first `PREAMBLE_BYTES` bytes without judging them."""
    return Preamble(*_PREAMBLE.unpack(lead))


def header_digest(preamble: Preamble, body: bytes) -> bytes:
    """The digest that must follow a header of this version and body.

    The magic is assumed to be right: if the digest then holds, the file is a transcript with a damaged magic.
    """
    lead = _PREAMBLE.pack(MAGIC, preamble.major, preamble.minor, preamble.header_bytes)
    return hashlib.sha256(lead + body).digest()


def decode_header(body: bytes) -> Header:
    """The header that `body` encodes. Keys that a newer minor version adds are ignored.

    Raises:
        MalformedRecord: It is no header.
    """
    try:
        fields = unpack_value(body)
    except ValueError as error:
        raise MalformedRecord(f"the header cannot be decoded: {error}") from None
    if not isinstance(fields, dict):
        raise MalformedRecord("the header is not a map")
    values: list[Any] = []
    for name, wanted in _HEADER_TYPES.items():
        value = fields.get(name, _ABSENT.get(name))
        if not isinstance(value, wanted):
            raise MalformedRecord(f"the header's field {name!r} is missing or of the wrong type")
        values.append(value)
    return Header(*values)


_HEADER_TYPES: Final[Mapping[str, type]] = {
    "role": str,
    "party": str,
    "session": str,
    "config_digest": bytes,
    "software": str,
    "environment": dict,
    "noise": str,
    "protocol": int,
}
_ABSENT: Final[Mapping[str, Any]] = {"protocol": 1}
"""Values of keys that an older minor version of the format lacks."""


def chain(previous: bytes, public: bytes | memoryview) -> bytes:
    """Digest of a record from the digest before it and its public part."""
    digest = hashlib.sha256(previous)
    digest.update(public)
    return digest.digest()


def encode_record(
    number: int,
    now: float,
    event: Item,
    effects: Sequence[Item],
    *,
    previous: bytes,
    salts: Callable[[int], bytes],
) -> tuple[bytes, bytes]:
    """One record's bytes, and its digest.

    Args:
        number: Counted from 0.
        now: Seconds of the party's clock at the step.
        previous: The digest before this record.
        salts: Called once at most, for `SALT_BYTES` bytes for each private field.

    Raises:
        LocalProtocolError: A field's value cannot be encoded, or the record is longer than
            `limits.MAX_RECORD_PART_BYTES`.
    """
    fields = len(event.private)
    for effect in effects:
        fields += len(effect.private)
    salt = salts(SALT_BYTES * fields) if fields else b""
    if len(salt) != SALT_BYTES * fields:
        raise LocalProtocolError(f"a source of salt gave {len(salt)} bytes for {fields} private fields.")
    private: list[bytes] = []
    try:
        first = _encode_item(event, salt, private)
        rest = [_encode_item(effect, salt, private) for effect in effects]
        public = _pack([number, float(now), first, rest])
    except (LocalProtocolError, TypeError, ValueError, OverflowError):
        public = b""
    if not public:  # outside the handler, so that no cause is chained: its text may quote a value
        raise _refusal(number, (event, *effects))
    lengths = len(public), sum(map(len, private))
    if max(lengths) > limits.MAX_RECORD_PART_BYTES:
        raise LocalProtocolError(
            f"record {number} ({event.kind}) would take {max(lengths)} bytes; "
            f"a part of a record has at most {limits.MAX_RECORD_PART_BYTES}."
        )
    digest = chain(previous, public)
    frame = _FRAME.pack(*lengths, crc32(_LENGTHS.pack(*lengths)))
    return b"".join((frame, public, *private, digest)), digest


def _encode_item(item: Item, salts: bytes, private: list[bytes]) -> list[Any]:
    """The public part of an item; the entries of its private fields are added to `private`."""
    kind, public, hidden = item
    commitments: dict[str, bytes] = {}
    for name in sorted(hidden):
        if type(name) is not str or name in public:
            raise TypeError
        # Three pieces an entry: this field is number len(private) / 3 of the record.
        start = len(private) // 3 * SALT_BYTES
        salt = salts[start : start + SALT_BYTES]
        value = pack_value(hidden[name])
        private += (_ENTRY.pack(SALT_BYTES + len(value)), salt, value)
        commitments[name] = chain(salt, value)
    return [kind, canonical_map(public), commitments]


def _refusal(number: int, items: Sequence[Item]) -> LocalProtocolError:
    """The error that names field and item, found by trying each after one has failed."""
    for item in items:
        for name, value in (*item.public.items(), *item.private.items()):
            try:
                pack_value({name: value})
            except LocalProtocolError as error:
                return LocalProtocolError(
                    f"record {number}: field {name!r} of {item.kind!r} cannot be recorded.",
                    advice=error.advice,
                )
        for name in item.private:
            if name in item.public:
                return LocalProtocolError(
                    f"record {number}: field {name!r} of {item.kind!r} is both public and private."
                )
    return LocalProtocolError(f"record {number}: the kind or the time of an item cannot be recorded.")


def decode_frame(frame: bytes) -> RecordLengths:
    """The lengths that a record begins with.

    Their checksum distinguishes a damaged length from a record that was cut short.

    Raises:
        MalformedRecord: The checksum does not hold, or a length is over its limit.
    """
    public_bytes, private_bytes, checksum = _FRAME.unpack(frame)
    if crc32(frame[: _LENGTHS.size]) != checksum:
        raise MalformedRecord("the checksum of the record's lengths does not hold")
    if max(public_bytes, private_bytes) > limits.MAX_RECORD_PART_BYTES:
        raise MalformedRecord(f"a part of the record is longer than {limits.MAX_RECORD_PART_BYTES} bytes")
    return RecordLengths(public_bytes, private_bytes)


def decode_record(frame: RecordLengths, rest: bytes, *, number: int, previous: bytes) -> Record:
    """Check and decode one record.

    Args:
        rest: The `frame.remaining` bytes after the frame.
        number: The required number.

    Raises:
        MalformedRecord: Its digest or a commitment does not hold, or it is no record.
    """
    public = rest[: frame.public_bytes]
    end = frame.public_bytes + frame.private_bytes
    digest = chain(previous, public)
    if digest != rest[end:]:
        raise MalformedRecord("the digest does not hold")
    try:
        parts: Any = unpack_value(public)
        written, now, event, effects = parts
        items = [_check_item(*item) for item in (event, *effects)]
    except (ValueError, TypeError) as error:
        raise MalformedRecord(f"the public part is no record: {error}") from None
    if written != number or type(written) is not int:
        raise MalformedRecord(f"it says that it is record {written!r}")
    if type(now) is not float:
        raise MalformedRecord("its time is not a float")
    recorded = _attach_private(items, memoryview(rest)[frame.public_bytes : end])
    return Record(number, now, recorded[0], tuple(recorded[1:]), digest)


def _check_item(kind: object, public: object, commitments: object) -> tuple[str, Fields, dict[str, bytes]]:
    if type(kind) is not str or type(public) is not dict or type(commitments) is not dict:
        raise TypeError("an item is not a kind, public fields and commitments")
    for names in (public, commitments):
        if not all(type(name) is str for name in names):
            raise TypeError("a field's name is not text")
    if not all(
        type(commitment) is bytes and len(commitment) == DIGEST_BYTES for commitment in commitments.values()
    ):
        raise TypeError(f"a commitment is not {DIGEST_BYTES} bytes")
    return kind, public, commitments


def _attach_private(
    items: Sequence[tuple[str, Fields, dict[str, bytes]]], part: memoryview
) -> list[RecordedItem]:
    recorded: list[RecordedItem] = []
    at = 0
    for kind, public, commitments in items:
        private: dict[str, Any] = {}
        for name, commitment in commitments.items():
            if len(part) - at < _ENTRY.size:
                raise MalformedRecord(f"the private part ends before field {name!r} of {kind!r}")
            (length,) = _ENTRY.unpack_from(part, at)
            at += _ENTRY.size
            if length == 0:
                continue
            entry = bytes(part[at : at + length])
            at += length
            if len(entry) != length or length <= SALT_BYTES or hashlib.sha256(entry).digest() != commitment:
                raise MalformedRecord(f"the commitment of field {name!r} of {kind!r} does not hold")
            try:
                private[name] = unpack_value(entry[SALT_BYTES:])
            except ValueError as error:
                raise MalformedRecord(f"field {name!r} of {kind!r} is {error}") from None
        recorded.append(RecordedItem(kind, public, private, commitments))
    if at != len(part):
        raise MalformedRecord("the private part is longer than its fields")
    return recorded
