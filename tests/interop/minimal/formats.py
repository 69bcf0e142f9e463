"""The session digest, keys, frames, seals and signatures: docs/wire.md and docs/configuration.md."""

from __future__ import annotations

import hashlib
import math
import struct
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgpack
import nacl.exceptions
import nacl.public
import nacl.signing
import numpy as np
import numpy.typing as npt
from zmq.utils import z85

DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "session": {"min_owners": 1, "delta": 1e-5, "allow_nonprivate": False, "nonce": "", "seed_weight": 0.1},
    "features": {"map": "paired", "dimension": 140, "lower": 0.0, "upper": 1.0},
    "noise": {"source": "secure"},
    "timeouts": {"beat": 0.5, "enrolment": 60.0, "abandon": 60.0},
    "network": {"address": "tcp://127.0.0.1:5790", "insecure": False},
    "roster": {"curator": "", "consumer": ""},
}
WHOLE = {
    "points", "batch", "submission", "min_owners", "dimension", "seed", "columns", "box_bytes",
    "commitment_depth", "column_values", "tau", "steps", "first_steps", "directions", "caps", "classes",
    "buckets",
}  # fmt: skip
"""Keys whose values are whole numbers; all other numbers are float64."""
SEALED = ("sealed", "tender")
"""Rules whose points come in boxes."""
WITH_POINTS = ("ask-all", *SEALED)
"""Rules whose bids bring their points."""
HEADER = struct.Struct(">4sB16sQQ")
DTYPES = {1: "<u1", 2: "<i2", 3: "<i4", 4: "<i8", 5: "<f4", 6: "<f8"}
CODES = {np.dtype(name): code for code, name in DTYPES.items()}


@dataclass(frozen=True)
class Session:
    """A session file with all defaults filled in."""

    tables: Mapping[str, Any]
    digest: bytes

    @classmethod
    def read(cls, path: Path) -> Session:
        return cls.of(tomllib.loads(path.read_text(encoding="utf-8")))

    @classmethod
    def of(cls, tables: dict[str, Any]) -> Session:
        """The session of a file's tables."""
        tables = {"summary": _summary(tables["target"]), **tables}
        tables |= {name: {**known, **tables.get(name, {})} for name, known in DEFAULTS.items()}
        _settle(tables)
        meaning = {name: table for name, table in tables.items() if name not in ("network", "timeouts")}
        as_ever = {
            ("batch", 1),
            ("seed_weight", 1.0),
            ("jitter", 0),
            ("distinct", False),
            ("numbered", False),
        }
        meaning["session"] = dict(tables["session"].items() - as_ever)
        meaning["owners"] = sorted((roster := meaning.pop("roster"))["owners"])
        meaning |= {"keys": roster} if tables["noise"]["source"] == "secure" else {}
        return cls(tables, hashlib.sha256(b"hushbid session 2\0" + packed(_canonical("", meaning))).digest())

    @property
    def identifier(self) -> bytes:
        return self.digest[:16]

    @property
    def rule(self) -> str:
        return str(self.tables["acquisition"]["rule"])

    @property
    def depth(self) -> int:
        """Depth of the trees by which owners commit to their rows; 0: they do not."""
        return int(self.tables["acquisition"].get("commitment_depth", 0))

    @property
    def box_bytes(self) -> int:
        """Size of a whole box."""
        opening = 20 + 32 * self.depth if self.depth else 0
        return int(self.tables["acquisition"]["box_bytes"]) + opening + 48

    @property
    def version(self) -> int:
        if self.depth:
            return 4
        return 5 if self.tables["session"]["numbered"] else 2

    @property
    def numbered(self) -> bool:
        """Whether the boxes of a message have one ephemeral key, and each a number."""
        return self.version > 2 or self.rule == "tender"

    def verify_key(self, party: str) -> nacl.signing.VerifyKey:
        """The key that checks a party's signatures."""
        noise, roster = self.tables["noise"], self.tables["roster"]
        if noise["source"] == "simulated":
            return simulated_key(self.digest, noise["seed"], party).verify_key
        return nacl.signing.VerifyKey(z85.decode({**roster, **roster["owners"]}[party]))

    def sealing_key(self, party: str) -> nacl.public.PublicKey:
        """The key that messages to a party are sealed to."""
        return self.verify_key(party).to_curve25519_public_key()


def _summary(target: Mapping[str, Any]) -> Mapping[str, Any]:
    same = {key: value for key, value in target.items() if key != "epsilon_curator"}
    return same | ({"neighbours": "add-remove-one"} if "neighbours" in target else {})


def _settle(tables: Any) -> None:
    session, features, acquisition = tables["session"], tables["features"], tables["acquisition"]
    for bound in ("lower", "upper"):
        if isinstance(features[bound], list) and len(set(features[bound])) == 1:
            features[bound] = features[bound][0]
    size = 8 * features["columns"] + 4096
    if acquisition["rule"] in SEALED:
        size = 48 + acquisition.setdefault("box_bytes", -(-(8 * features["columns"] + 256) // 64) * 64)
    if acquisition["rule"] == "published":
        acquisition.setdefault("epsilon", 0.5)
        acquisition.setdefault("tau", math.ceil(len(tables["roster"]["owners"]) ** (2 / 3) - 1e-9))
    room = max(1, min(1015808 // (size + 2 * features["dimension"] + 64), 1024))
    batch = min(-(-session["points"] // 50), 100, room)
    apart = {"column_values", "fixed_cadence"} & {*session} or tables.get("settlement", {}).get("private")
    wishes, _ = tables.get("wishes", {}), tables.get("labels", {}).setdefault("similarity", 0.5)
    uneven = "caps" in wishes or len({*wishes.get("prices", {}).values()}) > 1
    jitter = 50.0 if features["columns"] <= 8 else 25.0
    if acquisition["rule"] == "tender":
        submission = session.setdefault("submission", session["points"])
        batch, jitter, uneven = -(-submission // -(-submission // room)), 0.0, False
    defaults = {"batch": (1, batch), "jitter": (0.0, jitter), "distinct": (False, not (apart or uneven))}
    here = acquisition["rule"] in WITH_POINTS
    boxed = acquisition["rule"] in {*SEALED} - {"tender"} and "commitment_depth" not in acquisition
    session["numbered"] = boxed and session.get("numbered", True)
    tables["session"] = {key: values[here] for key, values in defaults.items()} | session


def _canonical(key: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _canonical(key if key == "caps" else name, value[name]) for name in sorted(value)}
    if isinstance(value, list):
        return [_canonical(key, each) for each in value]
    if isinstance(value, int | float) and not isinstance(value, bool) and key not in WHOLE:
        return float(value) + 0.0
    return value


def key_of_file(path: Path) -> nacl.signing.SigningKey:
    """A party's key, from its secret key file."""
    lines = path.read_text(encoding="ascii").splitlines()
    (line,) = [line for line in lines if line.strip() and not line.startswith("#")]
    tag, version, seed, public = line.split()
    key = nacl.signing.SigningKey(z85.decode(seed))
    if (tag, version) != ("hushbid-secret", "1") or bytes(key.verify_key) != z85.decode(public):
        raise ValueError(f"{path} is no secret key file of version 1")
    return key


def curve_key(text: str) -> nacl.public.PublicKey:
    """The X25519 key of a key of the roster."""
    return nacl.signing.VerifyKey(z85.decode(text)).to_curve25519_public_key()


def simulated_key(digest: bytes, seed: int, party: str) -> nacl.signing.SigningKey:
    """A party's signing key where noise is simulated."""
    fields = struct.pack(">32sQI", digest, seed, len(party.encode())) + party.encode()
    return nacl.signing.SigningKey(hashlib.sha256(b"hushbid simulated identity 1\0" + fields).digest())


class Frame(NamedTuple):
    """A frame, without magic and version."""

    session: bytes
    sequence: int
    acknowledged: int
    body: bytes

    @property
    def data(self) -> bytes:
        return HEADER.pack(b"HBID", 1, *self[:3]) + self.body

    @classmethod
    def read(cls, data: bytes) -> Frame:
        if data[:5] != b"HBID\x01":
            raise ValueError("this is no frame of version 1")
        _, _, session, sequence, acknowledged = HEADER.unpack_from(data)
        return cls(session, sequence, acknowledged, data[HEADER.size :])


def packed_array(array: npt.NDArray[Any]) -> bytes:
    """An array of numbers of one axis as extension type 1 holds it."""
    little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return struct.pack("<BBI", CODES[little.dtype], 1, len(array)) + little.tobytes()


def number(*values: int) -> npt.NDArray[np.int64]:
    """An integer whose size would tell something: an array of one int64, or one for each point of a batch."""
    return np.array(values, np.int64)


def packed(value: Any) -> bytes:
    """A message, or the inside of a box; fields are in the page's order."""
    return bytes(msgpack.packb(value, use_bin_type=True, default=_extension))


def _extension(array: npt.NDArray[Any]) -> msgpack.ExtType:
    return msgpack.ExtType(1, packed_array(array))


def _array(code: int, data: bytes) -> npt.NDArray[Any]:
    kind, axes, length = struct.unpack_from("<BBI", data)
    if (code, axes) != (1, 1):
        raise ValueError("no array of one axis")
    return np.frombuffer(data, DTYPES[kind], length, 6)


def message_of(body: bytes) -> dict[str, Any]:
    message: dict[str, Any] = msgpack.unpackb(body, ext_hook=_array)
    return message


def content_of(point: npt.NDArray[Any], attributes: bytes, size: int) -> bytes:
    """A box's content."""
    pair = packed([point, attributes])
    if len(pair) + 4 > size:
        raise ValueError(f"a point takes {len(pair) + 4} bytes, and boxes hold {size}")
    return (struct.pack(">I", len(pair)) + pair).ljust(size, b"\0")


def jitter_of(session: bytes, features: npt.NDArray[np.int16]) -> int:
    """The jitter of φ in a point's score."""
    drawn = hashlib.sha256(b"hushbid jitter 1\0" + session + features.astype("<i2").tobytes()).digest()
    return 16 * (sum(drawn[:12]) - 1530)


def statement(what: str, session: bytes, owner: str, round_: int, value: int, rest: bytes) -> bytes:
    """An owner's signed statement: a number, a count or a depth, and a digest of the rest."""
    place = struct.pack(">QqB", round_, value, len(owner.encode())) + owner.encode()
    return b"hushbid " + what.encode() + b" 1\0" + session + place + rest


def candidate_statement(session: bytes, owner: str, round_: int, handle: int, hashed: bytes) -> bytes:
    """An owner's statement for a sealed point."""
    return statement("candidate", session, owner, round_, handle, hashed)


def batch_statement(session: bytes, owner: str, round_: int, digests: bytes) -> bytes:
    """An owner's statement for a batch of sealed points."""
    return statement("batch", session, owner, round_, len(digests) // 32, digests)


def submission_statement(session: bytes, owner: str, round_: int, digests: bytes) -> bytes:
    """An owner's statement for a message of its submission."""
    return statement("submission", session, owner, round_, *tree(parts(digests)))


def rows_statement(session: bytes, owner: str, depth: int, root: bytes) -> bytes:
    """An owner's statement for its rows."""
    return statement("rows", session, owner, 0, depth, root)


def head_statement(session: bytes, party: str, head: bytes) -> bytes:
    """A party's statement at the end."""
    name = party.encode()
    return b"hushbid transcript head 1\0" + session + head + struct.pack("<I", len(name)) + name


def hashed(box: bytes, features: npt.NDArray[np.int16]) -> bytes:
    """The digests of a box and φ in a statement."""
    return b"".join(hashlib.sha256(each).digest() for each in (box, packed_array(features)))


def batched_digest(handle: int, hashed: bytes) -> bytes:
    """The digest of a point of a batch in its owner's statement."""
    return hashlib.sha256(b"hushbid batched 1\0" + struct.pack(">q", handle) + hashed).digest()


def parts(whole: bytes, size: int = 32) -> list[bytes]:
    """Digests, or other parts of one size."""
    return [whole[at : at + size] for at in range(0, len(whole), size)]


def node(left: bytes, right: bytes) -> bytes:
    """The digest above two nodes of a tree."""
    return hashlib.sha256(b"hushbid node 1\0" + left + right).digest()


def tree(nodes: list[bytes]) -> tuple[int, bytes]:
    """Depth and root of the tree with these leaves."""
    depth = 0
    while len(nodes) > 1:
        nodes, depth = [*map(node, nodes[::2], [*nodes[1::2], bytes(32)])], depth + 1
    return depth, nodes[0]


def leaf(salt: bytes, point: npt.NDArray[Any], attributes: bytes) -> bytes:
    """A row's leaf in the tree by which its owner commits to it."""
    row = point.astype(point.dtype.newbyteorder("<"))
    head = b"hushbid row 1\0" + row.dtype.str.encode() + b"\0" + len(row).to_bytes(4, "big")
    return hashlib.sha256(head + salt + row.tobytes() + attributes).digest()


def box_nonce(ephemeral: bytes, consumer: nacl.public.PublicKey, number: int) -> bytes:
    """The nonce of a box that opens only under its number."""
    bound = ephemeral + bytes(consumer) + number.to_bytes(8, "big")
    return hashlib.blake2b(bound, digest_size=24).digest()


def numbered_box(
    content: bytes, number: int, consumer: nacl.public.PublicKey, ephemeral: nacl.public.PrivateKey
) -> bytes:
    """A content in such a box."""
    public = bytes(ephemeral.public_key)
    nonce = box_nonce(public, consumer, number)
    return public + nacl.public.Box(ephemeral, consumer).encrypt(content, nonce).ciphertext


def map_binding(session: bytes, consumer: nacl.public.PublicKey, owner: nacl.public.PublicKey) -> bytes:
    """The bytes before a sealed map that bind it to its session and parties."""
    keys = bytes(consumer) + bytes(owner)
    return hashlib.sha256(b"hushbid box between 1\0" + keys + b"hushbid secret map 1\0" + session).digest()


def open_map(
    box: bytes, session: bytes, consumer: nacl.public.PublicKey, key: nacl.signing.SigningKey
) -> tuple[bytes, bytes]:
    """Seed and digest of the secret map."""
    own = key.to_curve25519_private_key()
    try:
        content = nacl.public.Box(own, consumer).decrypt(box)
    except nacl.exceptions.CryptoError:
        raise ValueError("the sealed map does not open") from None
    if len(content) != 96 or content[:32] != map_binding(session, consumer, own.public_key):
        raise ValueError("the sealed map is of another session, or another party's")
    return content[32:64], content[64:]
