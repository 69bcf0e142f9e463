"""The cryptography of `sealed` acquisition: sealed boxes, contents of equal size, signed statements.

Nothing here draws randomness. Ephemeral keys and nonces are arguments, as noise is, so that they can be
recorded and the same inputs give the same bytes.

A *content* is a point with its attributes, padded to the session's content size (`acquisition.box_bytes`)::

    u32  length of the msgpack, big-endian
    ...  msgpack of [point as extension type 1 (`hushbid.protocol.wire.arrays`), attributes as bytes]
    ...  zeros

A *box* is a content sealed to the consumer, `SEAL_BYTES` longer, in libsodium's sealed-box format::

    32 bytes  ephemeral X25519 public key
    ...       crypto_box of the content; nonce = BLAKE2b-192(ephemeral key || recipient's key)

It hides the content from everybody but the recipient, and does not show who sealed it: the owner's signature
over `candidate_statement` does.

The boxes of a submission (rule `tender`), and of one message of an owner that commits to its rows, have one
ephemeral key together, and each a nonce of its own:
BLAKE2b-192(ephemeral key || recipient's key || the point's number as u64, big-endian).
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgpack
import nacl.bindings
import nacl.exceptions
import nacl.public
import nacl.signing
import numpy as np
import numpy.typing as npt

from hushbid.protocol import limits
from hushbid.protocol.errors import ConfigError, DataError, LocalProtocolError, Offence, RemoteProtocolError
from hushbid.protocol.wire.arrays import ARRAY_EXT, Array, ArrayError, pack_array, unpack_extension

__all__ = [
    "BETWEEN_BYTES",
    "DIGEST_BYTES",
    "EPHEMERAL_BYTES",
    "NONCE_BYTES",
    "SEAL_BYTES",
    "SIGNATURE_BYTES",
    "batch_statement",
    "batched_digest",
    "batched_digests",
    "candidate_statement",
    "content_bytes",
    "default_content_size",
    "head_statement",
    "open_between",
    "open_sealed",
    "pack_content",
    "pack_contents",
    "rows_statement",
    "seal",
    "seal_between",
    "seal_numbered",
    "sign",
    "submission_statement",
    "unpack_content",
    "verify_signature",
]

EPHEMERAL_BYTES: Final = nacl.bindings.crypto_box_SECRETKEYBYTES
"""Bytes of the ephemeral secret of a sealed box."""
SEAL_BYTES: Final = nacl.bindings.crypto_box_SEALBYTES
"""Bytes by which a sealed box is longer than its content."""
NONCE_BYTES: Final = nacl.bindings.crypto_box_NONCEBYTES
"""Bytes of the nonce of a box between two parties."""
SIGNATURE_BYTES: Final = nacl.bindings.crypto_sign_BYTES
"""Bytes of an Ed25519 signature."""

_DIGEST: Final = hashlib.sha256
DIGEST_BYTES: Final = 32
"""Bytes of the digest of one point of a batch."""
_BINDING_BYTES: Final = _DIGEST().digest_size
_MAC_BYTES: Final = nacl.bindings.crypto_box_BOXZEROBYTES
BETWEEN_BYTES: Final = NONCE_BYTES + _MAC_BYTES + _BINDING_BYTES
"""Bytes by which a box between two parties is longer than its content."""

_BETWEEN: Final = b"hushbid box between 1\0"
_CANDIDATE: Final = b"hushbid candidate 1\0"
_BATCHED: Final = b"hushbid batched 1\0"
_BATCH: Final = b"hushbid batch 1\0"
_SUBMISSION: Final = b"hushbid submission 1\0"
_ROWS: Final = b"hushbid rows 1\0"
_HEAD: Final = b"hushbid transcript head 1\0"
_SESSION_BYTES: Final = 16
_LENGTH: Final = struct.Struct(">I")
_PLACE: Final = struct.Struct(">QqB")
_NUMBER: Final = struct.Struct(">Q")
_HANDLE: Final = struct.Struct(">q")
_pack_attributes: Final[Callable[[object], bytes]] = msgpack.Packer(use_bin_type=True).pack
_SIZE_STEP: Final = 64
_SIZE_SPARE: Final = 256
"""Bytes in a default content for attributes and framing."""


def seal(plaintext: bytes, recipient: nacl.public.PublicKey, ephemeral: bytes) -> bytes:
    """Seal bytes to a key, as libsodium's ``crypto_box_seal`` does with this ephemeral secret.

    Args:
        recipient: The X25519 key that is to open it.
        ephemeral: `EPHEMERAL_BYTES` secret random bytes, used for this box only: they suffice to open it.

    Returns:
        `SEAL_BYTES` more than the plaintext.

    Raises:
        ConfigError: The recipient's key has low order, so that anybody could open the box.
        LocalProtocolError: The ephemeral secret has another length.
    """
    if len(ephemeral) != EPHEMERAL_BYTES:
        raise LocalProtocolError(f"An ephemeral key of {len(ephemeral)} bytes, not {EPHEMERAL_BYTES}.")
    key = bytes(recipient)
    public = nacl.bindings.crypto_scalarmult_base(ephemeral)
    nonce = hashlib.blake2b(public + key, digest_size=NONCE_BYTES).digest()
    return public + _box(plaintext, nonce, key, ephemeral)


def seal_numbered(
    plaintexts: Mapping[int, bytes], recipient: nacl.public.PublicKey, ephemeral: bytes
) -> list[bytes]:
    """Seal several plaintexts with one ephemeral secret, each under a number of its own.

    They have one key in common, so that a key agreement serves all of them; a number that came twice would
    repeat a nonce.

    Args:
        plaintexts: By number, each from 0 to 2^64 - 1.
        recipient: As `seal` takes it.
        ephemeral: `EPHEMERAL_BYTES` secret random bytes, used in this call only.

    Returns:
        Boxes in the order of the plaintexts, each `SEAL_BYTES` longer.

    Raises:
        ConfigError: The recipient's key has low order.
        LocalProtocolError: The ephemeral secret has another length.
    """
    if len(ephemeral) != EPHEMERAL_BYTES:
        raise LocalProtocolError(f"An ephemeral key of {len(ephemeral)} bytes, not {EPHEMERAL_BYTES}.")
    key = bytes(recipient)
    public = nacl.bindings.crypto_scalarmult_base(ephemeral)
    try:
        shared = nacl.bindings.crypto_box_beforenm(key, ephemeral)
    except nacl.exceptions.CryptoError:
        raise _low_order() from None
    box = nacl.bindings.crypto_box_easy_afternm
    return [
        public + box(plaintext, _numbered_nonce(public, key, number), shared)
        for number, plaintext in plaintexts.items()
    ]


def open_sealed(
    box: bytes,
    secret: nacl.public.PrivateKey,
    *,
    number: int | None = None,
    agreed: dict[bytes, bytes] | None = None,
) -> bytes:
    """Open a box that was sealed to a key.

    Args:
        number: The box's number, if it was sealed under one (`seal_numbered`).
        agreed: Gets the key that a numbered box has in common with others of its message, by their ephemeral
            public key, and gives it for the next of them: a key agreement is most of the work.

    Raises:
        RemoteProtocolError: `MISMATCH`: the box is for another key or number, or was changed.
    """
    try:
        if number is None:
            return nacl.public.SealedBox(secret).decrypt(box)
        public, key = box[: nacl.bindings.crypto_box_PUBLICKEYBYTES], bytes(secret.public_key)
        shared = None if agreed is None else agreed.get(public)
        if shared is None:
            shared = nacl.bindings.crypto_box_beforenm(public, bytes(secret))
            if agreed is not None:
                agreed[public] = shared
        content, nonce = box[len(public) :], _numbered_nonce(public, key, number)
        return nacl.bindings.crypto_box_open_easy_afternm(content, nonce, shared)
    except (nacl.exceptions.CryptoError, nacl.exceptions.ValueError):
        raise RemoteProtocolError(
            Offence.MISMATCH,
            "A sealed box does not open with our key.",
            advice="Its sender should compare our key in its roster with ours, by fingerprint.",
        ) from None


def seal_between(
    plaintext: bytes,
    recipient: nacl.public.PublicKey,
    sender: nacl.public.PrivateKey,
    nonce: bytes,
    *,
    context: bytes,
) -> bytes:
    """Encrypt bytes for a party so that it can authenticate the sender (libsodium's ``crypto_box``).

    The recipient could have made the box itself, so it can prove nothing to others. Sender, recipient and
    context are bound to it: a bare box of one direction or session would open in another.

    Args:
        recipient: The X25519 key that is to open it.
        sender: Our secret key.
        nonce: `NONCE_BYTES` bytes that no other box between the two parties uses; random ones suffice.
        context: The box's purpose and the session's identifier.

    Returns:
        `BETWEEN_BYTES` more than the plaintext: the nonce, then the box of a digest of the bound values and
        of the plaintext.

    Raises:
        ConfigError: The recipient's key has low order.
        LocalProtocolError: The nonce has another length.
    """
    if len(nonce) != NONCE_BYTES:
        raise LocalProtocolError(f"A nonce of {len(nonce)} bytes, not {NONCE_BYTES}.")
    bound = _binding(bytes(sender.public_key), bytes(recipient), context)
    return nonce + _box(bound + plaintext, nonce, bytes(recipient), bytes(sender))


def open_between(
    box: bytes, sender: nacl.public.PublicKey, secret: nacl.public.PrivateKey, *, context: bytes
) -> bytes:
    """Decrypt the result of `seal_between`, with the context that was given to it.

    Args:
        sender: The expected sender's X25519 key.
        secret: Our key.

    Raises:
        RemoteProtocolError: `MISMATCH`: the box is not the sender's, not for us, has another context, or was
            changed.
    """
    try:
        opened = nacl.public.Box(secret, sender).decrypt(box)
    except nacl.exceptions.CryptoError:
        opened = b""
    bound = _binding(bytes(sender), bytes(secret.public_key), context)
    if opened[:_BINDING_BYTES] != bound:
        raise RemoteProtocolError(
            Offence.MISMATCH,
            "A box between two parties does not open: not the sender's, or not for us and this session.",
            advice="Compare both keys with both rosters, by fingerprint.",
        )
    return opened[_BINDING_BYTES:]


def pack_content(point: Array, attributes: bytes, size: int) -> bytes:
    """Pack a point and its attributes into `size` bytes, the session's size of a content.

    Args:
        point: Raw columns, shape (columns,); a dtype of `hushbid.protocol.wire.arrays`.
        attributes: The packed label and identifier (`hushbid.protocol.data.attributes`).

    Raises:
        DataError: They need more; the message says how many and which key of the session file to raise.
        LocalProtocolError: They are not from a dataset.
    """
    return _padded(_packed(point, attributes), size)


def _padded(packed: bytes, size: int) -> bytes:
    needed = _LENGTH.size + len(packed)
    if needed > size:
        raise DataError(
            f"A point with its label takes {needed} bytes, and the session's boxes hold {size}.",
            advice=f"Raise `acquisition.box_bytes` in the session file to {needed} or more, for all parties, "
            "or store the points in a smaller number type.",
        )
    return (_LENGTH.pack(len(packed)) + packed).ljust(size, b"\0")


def pack_contents(points: Array, attributes: Sequence[bytes], size: int) -> list[bytes]:
    """`pack_content` of many points at once.

    Args:
        points: Raw, shape (n, columns).
        attributes: Those of each point, n of them.

    Returns:
        n contents.

    Raises:
        DataError, LocalProtocolError: As `pack_content`.
    """
    if not len(points):
        return []
    first = _packed(points[0], attributes[0])
    try:
        whole = memoryview(pack_array(points))
    except ArrayError as error:
        raise LocalProtocolError(f"A point cannot be packed: {error}.") from None
    _check_content(points[0], max(attributes, key=len))
    # All but its columns and attributes is the same of every point.
    width, data = points[0].nbytes, whole[len(whole) - points.nbytes :]
    head = first[: len(first) - width - len(_pack_attributes(attributes[0]))]
    return [
        _padded(b"".join((head, data[row * width : (row + 1) * width], _pack_attributes(own))), size)
        for row, own in enumerate(attributes)
    ]


def unpack_content(content: bytes) -> tuple[Array, bytes]:
    """The point and the attributes of a content that another party wrote.

    Returns:
        The point, shape (columns,), read-only, with the dtype it was packed with; and the packed attributes,
        unchecked.

    Raises:
        RemoteProtocolError: `MALFORMED`: `pack_content` returns these bytes for no point.
    """
    if len(content) < _LENGTH.size:
        raise _malformed("is too short")
    end = _LENGTH.size + int(_LENGTH.unpack_from(content)[0])
    if end > len(content):
        raise _malformed("is shorter than it says")
    if content.count(0, end) != len(content) - end:
        raise _malformed("is followed by other bytes than padding")
    packed = content[_LENGTH.size : end]
    try:
        value = msgpack.unpackb(
            packed,
            ext_hook=unpack_extension,
            use_list=False,
            max_array_len=2,
            max_map_len=0,
            max_str_len=0,
        )
    except (ValueError, TypeError, OverflowError, RecursionError, msgpack.UnpackException):
        # The exception may quote the bytes, which are private.
        raise _malformed("is not msgpack") from None
    if not isinstance(value, tuple) or len(value) != 2:
        raise _malformed("is not a pair")
    point, attributes = value
    if not isinstance(point, np.ndarray) or not isinstance(attributes, bytes):
        raise _malformed("is not a point and its attributes")
    if (fault := _fault(point, attributes)) is not None:
        raise _malformed(fault)
    if _packed(point, attributes) != packed:
        raise _malformed("does not encode to the same bytes again")
    return point, attributes


def content_bytes(columns: int, dtype: npt.DTypeLike, attribute_length: int) -> int:
    """The smallest possible content size of such a point, in bytes.

    Args:
        dtype: The columns' type, one of `hushbid.protocol.wire.arrays`.
        attribute_length: Bytes of the packed attributes.
    """
    return _LENGTH.size + len(_packed(np.zeros(columns, dtype), bytes(attribute_length)))


def default_content_size(columns: int) -> int:
    """A size with room for float64 columns and for a label and an identifier of about 230 bytes."""
    return -(-(columns * 8 + _SIZE_SPARE) // _SIZE_STEP) * _SIZE_STEP


def candidate_statement(
    session: bytes, owner: str, round: int, handle: int, box: bytes, features: Array
) -> bytes:
    """An owner's statement for a candidate, so that a dispute about it can be attributed.

    Args:
        session: The session's identifier, 16 bytes; `LocalProtocolError` for another length.
        round: The round of the bid, 0 to 2^64 - 1.
        handle: The owner's number of the candidate, an int64.
        features: φ on the grid.

    Returns:
        A unique tag; session, round, handle, length of the name and the name; SHA-256 of the box; SHA-256 of
        the features as `hushbid.protocol.wire.arrays` encodes them, including dtype and shape.
    """
    return b"".join(
        (
            _CANDIDATE,
            _placed(session, round, handle, owner),
            _DIGEST(box).digest(),
            _DIGEST(pack_array(features)).digest(),
        )
    )


def batched_digest(handle: int, box: bytes, features: Array) -> bytes:
    """The digest of one point of a batch that its owner signs; its number (`handle`) is 0 for padding.

    Returns:
        SHA-256, 32 bytes, of a tag, the handle, SHA-256 of the box, and SHA-256 of the features as
        `hushbid.protocol.wire.arrays` encodes them.
    """
    parts = (_DIGEST(box).digest(), _DIGEST(pack_array(features)).digest())
    return _DIGEST(b"".join((_BATCHED, handle.to_bytes(8, "big", signed=True), *parts))).digest()


def batched_digests(
    handles: Sequence[int], boxes: Sequence[bytes | memoryview], features: Array
) -> list[bytes]:
    """`batched_digest` of many points at once.

    Args:
        handles: n numbers.
        boxes: At least n boxes.
        features: φ on the grid, shape (at least n, d).

    Returns:
        n digests.
    """
    if not (count := len(handles)):
        return []
    rows = np.ascontiguousarray(features[:count])
    # One row as `pack_array` writes it, its values apart.
    head = pack_array(rows[0])[: -rows[0].nbytes]
    of_rows = struct.iter_unpack(f"{rows.nbytes // count}s", rows.data)
    digest, number = _DIGEST, _HANDLE.pack
    return [
        digest(_BATCHED + number(handle) + digest(box).digest() + digest(head + phi).digest()).digest()
        for handle, box, (phi,) in zip(handles, boxes, of_rows, strict=False)
    ]


def batch_statement(session: bytes, owner: str, round: int, digests: bytes) -> bytes:
    """An owner's statement for all points of a batch, in the terms of `candidate_statement`.

    Args:
        digests: Digests of its points (`batched_digest`), in order, padding included.

    Returns:
        A unique tag; session, round, number of points, length of the name and the name; the digests.
    """
    return b"".join((_BATCH, _placed(session, round, len(digests) // DIGEST_BYTES, owner), digests))


def submission_statement(session: bytes, owner: str, round: int, depth: int, root: bytes) -> bytes:
    """An owner's statement for the points of a submission, in the terms of `candidate_statement`.

    Args:
        depth: Number of nodes in a path of the tree (`hushbid.protocol.wire.merkle`).
        root: The root over the digests of its points (`batched_digest`), in order, padding included.

    Returns:
        A unique tag; session, round, depth, length of the name and the name; the root.
    """
    return b"".join((_SUBMISSION, _placed(session, round, depth, owner), root))


def rows_statement(session: bytes, owner: str, depth: int, root: bytes) -> bytes:
    """An owner's statement of the rows that it can sell, in the terms of `candidate_statement`.

    Args:
        depth: The session's depth of trees of rows (`hushbid.protocol.crypto.commitment`).
        root: The root of the owner's.

    Returns:
        A unique tag; session, 0 for the round, depth, length of the name and the name; the root.
    """
    return b"".join((_ROWS, _placed(session, 0, depth, owner), root))


def _placed(session: bytes, round: int, number: int, owner: str) -> bytes:
    if len(session) != _SESSION_BYTES:
        raise LocalProtocolError(f"A session identifier of {len(session)} bytes, not {_SESSION_BYTES}.")
    name = owner.encode("utf-8")
    return session + _PLACE.pack(round, number, len(name)) + name


def head_statement(session: bytes, party: str, head: bytes) -> bytes:
    """A party's statement about its final transcript, so that it cannot show another one later.

    Args:
        session: The session's identifier, 16 bytes; `LocalProtocolError` for another length.
        party: "curator", "consumer", or an owner's name.
        head: Digest of the transcript's chain, 32 bytes.

    Returns:
        A unique tag; session, head, length of the name (u32, little-endian), the name.
    """
    if len(session) != _SESSION_BYTES:
        raise LocalProtocolError(f"A session identifier of {len(session)} bytes, not {_SESSION_BYTES}.")
    name = party.encode("utf-8")
    return b"".join((_HEAD, session, head, len(name).to_bytes(4, "little"), name))


def sign(statement: bytes, key: nacl.signing.SigningKey) -> bytes:
    """The Ed25519 signature of a statement, `SIGNATURE_BYTES` long. It is deterministic (RFC 8032)."""
    return key.sign(statement).signature


def verify_signature(statement: bytes, signature: bytes, key: nacl.signing.VerifyKey) -> bool:
    """Whether the key signed this statement; False also for bytes that are not a signature."""
    try:
        key.verify(statement, signature)
    except nacl.exceptions.CryptoError:
        return False
    return True


def _box(plaintext: bytes, nonce: bytes, recipient: bytes, secret: bytes) -> bytes:
    try:
        return nacl.bindings.crypto_box_easy(plaintext, nonce, recipient, secret)
    except nacl.exceptions.CryptoError:
        # All lengths are right, so the shared point must be zero.
        raise _low_order() from None


def _low_order() -> ConfigError:
    return ConfigError(
        "The key that something is to be sealed to is of low order: anybody could open it.",
        advice="Have the roster corrected: a key that `hushbid keys new` made is of full order.",
    )


def _numbered_nonce(public: bytes, key: bytes, number: int) -> bytes:
    return hashlib.blake2b(public + key + _NUMBER.pack(number), digest_size=NONCE_BYTES).digest()


def _binding(sender: bytes, recipient: bytes, context: bytes) -> bytes:
    return _DIGEST(_BETWEEN + sender + recipient + context).digest()


def _packed(point: Array, attributes: bytes) -> bytes:
    _check_content(point, attributes)
    try:
        array = pack_array(point)
    except ArrayError as error:
        raise LocalProtocolError(f"A point cannot be packed: {error}.") from None
    packed: bytes = msgpack.packb((msgpack.ExtType(ARRAY_EXT, array), attributes), use_bin_type=True)
    return packed


def _check_content(point: Array, attributes: bytes) -> None:
    if (fault := _fault(point, attributes)) is not None:
        raise LocalProtocolError(f"A content that we pack {fault}.")


def _fault(point: Array, attributes: bytes) -> str | None:
    """Why a point and its attributes cannot be a content."""
    if point.ndim != 1:
        return f"holds a point of {point.ndim} axes, not 1"
    if not 1 <= len(point) <= limits.MAX_COLUMNS:
        return f"holds a point of {len(point)} columns; 1 to {limits.MAX_COLUMNS} are allowed"
    if len(attributes) > limits.MAX_ATTRIBUTES:
        return f"holds attributes of {len(attributes)} bytes, over the limit of {limits.MAX_ATTRIBUTES}"
    return None


def _malformed(what: str) -> RemoteProtocolError:
    return RemoteProtocolError(
        Offence.MALFORMED,
        f"What a sealed box holds {what}.",
        advice="The owner of the point should check its software.",
    )
