"""A golden session: a curator's messages to one owner, and the owner's answers, byte by byte.

A script plays the curator to our owner's machine and records both sides; `hushbid.interop.mock_curator`
replays it to an owner under test. Each session is a directory with the session file, the parties' keys, the
owner's data, and ``exchange.json``. Its keys are published and protect nobody.
"""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import tomli_w

from hushbid.owner.party import owner_party
from hushbid.protocol.config.loading import load_toml_text
from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.crypto.blinding import BlindKeys, broadcast_statement
from hushbid.protocol.crypto.identity import Identity
from hushbid.protocol.crypto.sealing import NONCE_BYTES, head_statement, sign
from hushbid.protocol.data import Dataset
from hushbid.protocol.errors import DataError
from hushbid.protocol.machine.machine import (
    Computation,
    Connected,
    Event,
    HeadSigned,
    Received,
    Send,
    SignHead,
)
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.privacy.noise import SimulatedNoise
from hushbid.protocol.session.secret_map import seal_map
from hushbid.protocol.session.session import Session, open_session
from hushbid.protocol.space.grid import FEATURE_UNIT, WEIGHT_BITS
from hushbid.protocol.wire.blind import SealedBroadcast
from hushbid.protocol.wire.codec import (
    HEADER_BYTES,
    Direction,
    Frame,
    decode_message,
    encode_frame,
    encode_message,
)
from hushbid.protocol.wire.messages import (
    Ask,
    Bid,
    Broadcast,
    Call,
    Close,
    Hello,
    Message,
    Next,
    SecretMap,
    Welcome,
)

__all__ = [
    "GOLDEN",
    "OWNER",
    "SEED",
    "Exchange",
    "Step",
    "exchange_files",
    "golden_session",
    "key_of",
    "read_exchange",
    "session_text",
]

OWNER: Final = "heron"
_AS_EVER: Final[Mapping[str, Any]] = {"points": 6, "seed_weight": 1.0, "jitter": 0.0, "distinct": False}
"""Sessions without batches, with the digests and frames of versions before batches."""
_BATCHES: Final[Mapping[str, Any]] = {"points": 16, "batch": 3}
"""Six rounds: one batch without padding, one with padding, then padding only. The last buys one point."""
_BLIND: Final[Mapping[str, Any]] = {**_BATCHES, "jitter": 25.0}
"""The same rounds: boxes with points only, with one empty box, and with empty boxes only."""
_BARE: Final[Mapping[str, Any]] = {"numbered": False}
"""Boxes with their own ephemeral keys, as before version 5."""
_SUBMISSION: Final[Mapping[str, Any]] = {"points": 7, "batch": 3}
"""Three messages: points only, points with padding, and padding only."""
GOLDEN: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "ask-all": ("ask-all", _AS_EVER),
    "ask-all-batch": ("ask-all", _BATCHES),
    "blind": ("blind", {**_BLIND, **_BARE}),
    "sealed": ("sealed", {**_AS_EVER, **_BARE}),
    "sealed-batch": ("sealed", {**_BATCHES, **_BARE}),
    "sealed-numbered": ("sealed", _BATCHES),
    "tender": ("tender", _SUBMISSION),
    "winner-only": ("winner-only", _AS_EVER),
}
"""The golden sessions: a rule and keys of ``[session]``. Bids have the point, a box, or neither; `tender` has
none, and in `blind` they have masked scores."""
SOFTWARE: Final = "any"
"""The software of a golden hello, so that a new version number alone changes no vector."""
_ROWS: Final = (
    (0.0, 0.25, 0.5, "a", "row-1"),
    (0.5, 1.0, 0.125, "b", "row-2, which is longer"),
    (1.0, 0.0, 0.75, "ä", "row-3"),
    (0.5, 1.0, 0.125, "c", "row-4: the point of row-2 again"),
    (0.0625, 0.5, 1.0, "d", "row-5"),
)
"""Features, label and identifier. A repeated point is a tie, which the order of rows decides."""
_SEED_ROWS: Final = ((0.0, 0.0, 1.0), (0.5, 0.5, 0.5), (1.0, 0.75, 0.25), (0.25, 1.0, 0.0))
"""The seed set of a call."""
_WANTED: Final = ((1.0, 0.875, 0.125), (1.0, 1.0, 0.25), (0.375, 0.5, 0.625), (0.375, 0.125, 1.0))
"""The points whose mean embedding a call has."""
SEED: Final = hashlib.sha256(b"hushbid vector: a secret map's seed").digest()
"""Seed of the secret map in all golden sessions."""
_HEAD: Final = hashlib.sha256(b"hushbid vector: the head of a transcript").digest()


@dataclass(frozen=True)
class Step:
    """A frame and its sender, ``curator`` or ``owner``."""

    sender: str
    data: bytes

    @property
    def kind(self) -> str:
        """The kind of the frame's message."""
        direction = Direction.OWNER_TO_CURATOR if self.sender == "owner" else Direction.CURATOR_TO_OWNER
        return str(decode_message(direction, self.data[HEADER_BYTES:]).kind)


@dataclass(frozen=True)
class Exchange:
    """A golden session."""

    session: Session
    steps: tuple[Step, ...]


def key_of(party: str) -> Identity:
    """A party's published key."""
    return Identity(hashlib.sha256(f"hushbid vector: the key of {party}".encode()).digest())


def exchange_files(name: str) -> dict[str, str]:
    """The files of a golden session, by their names."""
    text = session_text(name)
    steps = [
        {"from": step.sender, "kind": step.kind, "frame": step.data.hex()}
        for step in _played(golden_session(name))
    ]
    data = ["first,second,third,label,identifier", *(f"{a},{b},{c},{d},{e!r}" for a, b, c, d, e in _ROWS)]
    files = {
        "session.toml": "# A golden session: its keys are published, and protect nobody.\n" + text,
        "exchange.json": json.dumps({"owner": OWNER, "steps": steps}, indent=1) + "\n",
        "data.csv": "\n".join(data).replace("'", '"') + "\n",
    }
    for party in (CURATOR, CONSUMER, OWNER):
        key = key_of(party)
        files[f"{party}.key.txt"] = f"hushbid-secret 1 {key.secret} {key.public}\n"
    return files


def read_exchange(place: Path) -> Exchange:
    """Read the golden session of a directory.

    Raises:
        DataError: A file is missing, or does not belong to a golden session.
        ConfigError: Its session file cannot be used.
    """
    try:
        text = (place / "session.toml").read_text(encoding="utf-8")
        told = json.loads((place / "exchange.json").read_text(encoding="utf-8"))
        steps = tuple(Step(step["from"], bytes.fromhex(step["frame"])) for step in told["steps"])
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise DataError(
            f"{place}: this is no golden session ({type(error).__name__}).",
            advice="Name one below docs/vectors/sessions, or write them with `hushbid interop vectors`.",
        ) from None
    session = open_session(load_toml_text(SessionFile, text, where=str(place / "session.toml")))
    return Exchange(session, steps)


def golden_session(name: str) -> Session:
    """A session of `session_text`."""
    return open_session(load_toml_text(SessionFile, session_text(name), where=name))


def session_text(name: str) -> str:
    """The session file of a golden session."""
    rule, keys = GOLDEN[name]
    sealed = rule in ("sealed", "blind", "tender")
    values: dict[str, Any] = {
        "session": {"name": f"golden-{name}", "allow_nonprivate": True, **keys},
        "features": {"columns": 3, "dimension": 8, "gamma": 0.5, "upper": 1},
        "target": {"mechanism": "exact"},
        "summary": {"mechanism": "exact"},
        "acquisition": {"rule": rule} | ({"box_bytes": 128} if sealed else {}),
        "timeouts": {"enrolment": 60, "abandon": 60},
        "network": {"address": "tcp://127.0.0.1:5790"},
        "roster": {
            "curator": key_of(CURATOR).public.text,
            "consumer": key_of(CONSUMER).public.text,
            "owners": {OWNER: key_of(OWNER).public.text},
        },
    }
    if not sealed:
        values["features"]["seed"] = 7
    if rule == "tender":
        values["target"] = {
            "mechanism": "filtered-gaussian",
            "epsilon": 1.0,
            "neighbours": "substitute-one",
        }
        del values["summary"]
    return tomli_w.dumps(values)


def _weights(dimension: int) -> Iterator[np.ndarray[Any, np.dtype[np.int32]]]:
    """The rounds' weights: ordinary ones, one at the limit, and zeros, with which all points are tied."""
    ramp = np.arange(1, dimension + 1) * 2 ** (WEIGHT_BITS - 4) // 3
    signs = np.where(np.arange(dimension) % 3 == 0, -1, 1)
    for weights in (ramp * signs, np.zeros(dimension), -ramp, ramp[::-1], np.zeros(dimension), ramp):
        row = weights.astype(np.int32)
        row.flags.writeable = False
        yield row


def _played(session: Session) -> Iterator[Step]:
    """The frames of both sides, in order."""
    owner = _Owner(session)
    yield owner.take(Connected())[0]
    public = session.public_map
    yield owner.says(
        Welcome(
            version=session.protocol_version,
            feature_map=None if public is None else public.digest,
            sent=0,
            received=0,
        ),
        numbered=False,
    )
    if public is None:
        yield from owner.asked(SecretMap(box=sealed_map(session)))
    if session.rule.herds:
        yield from _submitted(session, owner)
    else:
        yield from _rounds(session, owner) if session.curator_reads else _blind_rounds(session, owner)
    statement = head_statement(session.identifier, CURATOR, _HEAD)
    signature = sign(statement, key_of(CURATOR).signing)
    yield from owner.asked(Close(outcome="complete", head=_HEAD, signature=signature))


def _rounds(session: Session, owner: _Owner) -> Iterator[Step]:
    """Broadcasts, bids and asks."""
    for number, weights in enumerate(_weights(session.weight_coordinates), start=1):
        yield from owner.asked(Broadcast(round=number, weights=weights, noise="none"))
        bid = owner.last
        # Every other bid wins: a losing point is bid again under its number.
        if not session.rule.candidate_with_bid and isinstance(bid, Bid) and number % 2 and not bid.exhausted:
            yield from owner.asked(Ask(round=number, handle=bid.handle))


def _blind_rounds(session: Session, owner: _Owner) -> Iterator[Step]:
    """The consumer's broadcasts, as the curator passes them on, and bids."""
    keys = BlindKeys(SEED, session.identifier)
    for number, weights in enumerate(_weights(session.weight_coordinates), start=1):
        box = keys.encrypt(weights, number)
        statement = broadcast_statement(session.identifier, number, box)
        signature = sign(statement, key_of(CONSUMER).signing)
        yield from owner.asked(SealedBroadcast(round=number, box=box, signature=signature))


def _submitted(session: Session, owner: _Owner) -> Iterator[Step]:
    """A call, and the requests for further messages of the submission."""
    yield from owner.asked(_call(session))
    for _ in range(session.messages - 1):
        yield from owner.asked(Next(round=1))


def _call(session: Session) -> Call:
    """A call under which the jointly best points differ from the individually best ones."""
    made = session.space.map(SEED)
    wanted = made.hash(np.array(_WANTED)).astype(np.float64)
    return Call(
        round=1,
        weights=next(_weights(session.weight_coordinates)),
        noise=session.noise_name(session.target),
        embedding=wanted.mean(axis=0) * FEATURE_UNIT,
        seed_total=made.hash(np.array(_SEED_ROWS)).sum(axis=0, dtype=np.int64),
        seed_size=len(_SEED_ROWS),
    )


def sealed_map(session: Session) -> bytes:
    """The secret map of the golden session, sealed to its owner."""
    digest, nonce = session.space.map(SEED).digest, bytes(range(NONCE_BYTES))
    return seal_map(SEED, digest, session, key_of(OWNER).public, key_of(CONSUMER), nonce)


class _Owner:
    """Our owner, with the frames of both sides."""

    def __init__(self, session: Session) -> None:
        self._session = session
        columns = (np.array([row[part] for row in _ROWS]) for part in (slice(3), 3, 4))
        self._machine, self._numerics = owner_party(
            session,
            OWNER,
            Dataset.from_arrays("data.csv", *columns),
            identity=key_of(OWNER),
            noise=SimulatedNoise(0, OWNER),
            scratch=None,
            memory_limit=2**30,
        )
        self._said = self._had = 0
        self.last: Message | None = None
        """The owner's last message."""

    def says(self, message: Message, *, numbered: bool = True) -> Step:
        """A frame of the curator, before any answer."""
        self._said += numbered
        sequence, acknowledged = (self._said, self._had) if numbered else (0, 0)
        body = encode_message(message)
        self.take(Received(CURATOR, sequence, acknowledged, body, message))
        return Step(CURATOR, encode_frame(Frame(self._session.identifier, sequence, acknowledged, body)))

    def asked(self, message: Message) -> Iterator[Step]:
        """A frame of the curator, and the owner's answers."""
        yield self.says(message)
        yield from self._answers

    def take(self, event: Event) -> list[Step]:
        """The owner's frames on an event, after its computations."""
        sent = []
        pending = deque(self._machine.step(event, 0.0))
        while pending:
            effect = pending.popleft()
            if isinstance(effect, Send):
                self._had += effect.sequence > 0
                self.last = decode_message(Direction.OWNER_TO_CURATOR, effect.body)
                if isinstance(self.last, Hello):
                    self.last = self.last.model_copy(update={"software": SOFTWARE})
                body = encode_message(self.last)
                frame = Frame(self._session.identifier, effect.sequence, effect.acknowledged, body)
                sent.append(Step("owner", encode_frame(frame)))
            elif isinstance(effect, SignHead):
                signature = sign(
                    head_statement(self._session.identifier, OWNER, _HEAD), key_of(OWNER).signing
                )
                pending.extend(self._machine.step(HeadSigned(_HEAD, signature), 0.0))
            elif isinstance(effect, Computation):
                outcome = self._numerics.perform(effect)
                pending.extend(self._machine.step(outcome, 0.0) if outcome is not None else ())
        self._answers = sent
        return sent
