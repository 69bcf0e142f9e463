"""The game of `tests.simulation.lemma` under the rule `blind`, with all parties' machines together.

The consumer's, the curator's and the owners' machines and numerics play, with real masks and really encrypted
broadcasts. Only what costs time and decides nothing is replaced: boxes are not sealed, and a signature is one
of two constants (`cheap_keys`). Releases are fixed: the consumer's weights are the case's.
"""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import hushbid.consumer.numerics
import hushbid.curator.selection.blind
import hushbid.curator.verification
import hushbid.owner.numerics
from hushbid.consumer.blind_rounds import BLIND
from hushbid.consumer.buying.blind import BlindBuying
from hushbid.consumer.events import MakeAccount, ReleaseTarget, TargetReleased
from hushbid.consumer.machine import ConsumerMachine
from hushbid.consumer.numerics import BlindConsumerNumerics
from hushbid.curator.events import CheckBids
from hushbid.owner.events import BlindScored, MapOpened, OpenMap, ScoreBlind
from hushbid.owner.machine import OwnerMachine
from hushbid.owner.numerics import BlindOwnerNumerics, Sealer
from hushbid.protocol import limits
from hushbid.protocol.crypto.blinding import MASK_BYTES, NOT_SENT, BlindKeys, blind_digest
from hushbid.protocol.crypto.sealing import SEAL_BYTES
from hushbid.protocol.data import Dataset
from hushbid.protocol.errors import Offence, RemoteProtocolError
from hushbid.protocol.machine.base import Machine, TransitionTable
from hushbid.protocol.machine.machine import Computation, Connected, Effect, Event, Received, Send, Started
from hushbid.protocol.machine.weighing import ComputeWeights, WeightsComputed
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.privacy.noise import SimulatedNoise
from hushbid.protocol.session.session import Session
from hushbid.protocol.space.grid import Features, Totals, Weights
from hushbid.protocol.wire.blind import BlindBid, SealedBroadcast
from hushbid.protocol.wire.codec import Direction, decode_message
from hushbid.protocol.wire.messages import CONTROL_SEQUENCE, Message
from tests.simulation.harness import MAP, SIGNED, CuratorBench, session_file
from tests.simulation.lemma import Case, Table, difference

__all__ = [
    "GARBAGE",
    "BlindPlayer",
    "Checks",
    "Liar",
    "Together",
    "another_score",
    "cheap_keys",
    "consumer_numerics",
    "most_changed",
    "play_blind",
    "strategy",
]

SEED = bytes(range(32))
"""Of the map, as far as keys follow from it."""
GARBAGE = b"\xff"
"""The last byte of a box that does not open."""


def cheap_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave boxes open, make signatures constants, and let a point be its own φ."""

    def signed(_statement: bytes, signature: bytes, _key: Any) -> bool:
        return signature == SIGNED

    def opened(box: bytes, _key: Any, **_: Any) -> bytes:
        if box.endswith(GARBAGE):
            raise RemoteProtocolError(Offence.MISMATCH, "The box does not open.")
        return box[:-SEAL_BYTES]

    def sealed(content: bytes, *_: Any) -> bytes:
        return content + b"\1" * SEAL_BYTES

    monkeypatch.setattr(hushbid.owner.numerics, "seal", sealed)
    monkeypatch.setattr(
        hushbid.owner.numerics, "seal_numbered", lambda contents, *_: list(map(sealed, contents.values()))
    )
    monkeypatch.setattr(hushbid.consumer.numerics, "open_sealed", opened)
    monkeypatch.setattr(
        hushbid.consumer.numerics,
        "hash_points",
        lambda of, points, attributes, schema: np.array(points).astype(np.int16),
    )
    for module in (
        hushbid.owner.numerics,
        hushbid.consumer.numerics,
        hushbid.curator.selection.blind,
        hushbid.curator.verification,
    ):
        monkeypatch.setattr(module, "verify_signature", signed)
    for module in (hushbid.owner.numerics, hushbid.consumer.numerics):
        monkeypatch.setattr(module, "sign", lambda statement, key: SIGNED)


class _Peer:
    """A machine that talks to the curator of a bench, and its numerics.

    Args:
        bench: The curator.
        perform: Its numerics; None as outcome: the effect waits, or has none.
    """

    def __init__(
        self, bench: Together, name: str, machine: Machine, perform: Callable[[Computation], Event | None]
    ) -> None:
        self.bench, self.name, self.machine, self._perform = bench, name, machine, perform
        self._had = 0
        self.said: deque[Message] = deque()
        """What it sent, and the curator has not had."""
        self._way = Direction.CONSUMER_TO_CURATOR if name == CONSUMER else Direction.OWNER_TO_CURATOR
        self.step(Started())
        self.step(Connected())

    def step(self, event: Event) -> None:
        for effect in self.machine.step(event, self.bench.now):
            self._do(effect)

    def _do(self, effect: Effect) -> None:
        if type(effect) is Send:
            self.said.append(decode_message(self._way, effect.body))
        elif isinstance(effect, Computation):
            outcome = self._perform(effect)
            if outcome is not None:
                self.step(outcome)

    def hear(self, frame: Send) -> None:
        """Take a frame of the curator's."""
        way = Direction.CURATOR_TO_CONSUMER if self.name == CONSUMER else Direction.CURATOR_TO_OWNER
        message = decode_message(way, frame.body)
        acknowledged = 0 if frame.sequence == CONTROL_SEQUENCE else self.machine.links[CURATOR].sent
        self.step(Received(CURATOR, frame.sequence, acknowledged, b"", message))


class Together(CuratorBench):
    """The three roles' machines. The consumer's messages arrive at once, owners' when a test wants it.

    Attributes:
        entered: How often each φ entered the total that releases are made of.
    """

    consumer_table: TransitionTable[ConsumerMachine] = BLIND
    buying_type: type[BlindBuying] = BlindBuying

    def __init__(self, case: Case) -> None:
        points = len(case.weights) * case.batch - case.short
        super().__init__(
            session_file(
                owners=tuple(case.data),
                points=points,
                rule="blind",
                batch=case.batch,
                jitter=float(len(case.jitter)),
            )
        )
        self.entered: Counter[bytes] = Counter()
        self.keys = BlindKeys(SEED, self.opened.identifier)
        self._to_consumer: deque[Send] = deque()
        self._due: ComputeWeights | None = None
        self.consumer_numerics = self._numerics()
        self.consumer = ConsumerMachine(self.opened, self.consumer_table, self.buying_type)
        assert isinstance(self.consumer.buying, BlindBuying)
        self.weighing = self.consumer.buying.weighing
        self.weighing.add = self._enter  # type: ignore[method-assign]
        self.players: dict[str, BlindPlayer] = {}
        self._peer = _Peer(self, CONSUMER, self.consumer, self._consume)

    def _numerics(self) -> BlindConsumerNumerics:
        return consumer_numerics(self.opened, self.keys, Checks)

    def _consume(self, effect: Computation) -> Event | None:
        if type(effect) is ReleaseTarget:
            maps = bytes(limits.MAP_BOX_BYTES * len(self.session.owners))
            none: Totals = np.zeros(MAP.space.dimension, dtype=np.int64)
            return TargetReleased(np.zeros(MAP.space.dimension), 3, none, 2, SEED, maps, "none", ())
        if type(effect) is ComputeWeights:
            self._due = effect
            return None
        if type(effect) is MakeAccount:
            return None
        return self.consumer_numerics.perform(effect)

    def _deliver(self, frame: Send) -> None:
        super()._deliver(frame)
        if frame.peer == CONSUMER:
            self._to_consumer.append(frame)
        elif frame.peer in self.players:
            self.players[frame.peer].hear(frame)

    def say(self, peer: str, message: Message) -> tuple[Effect, ...]:
        """Let a peer send a message, and the consumer answer the result."""
        effects = super().say(peer, message)
        self._settle()
        return effects

    def fire(self, name: str) -> None:
        """Let the timer of that name run out."""
        super().fire(name)
        self._settle()

    def verify_all(self) -> None:
        """Answer all requests to check bids."""
        while self.jobs and isinstance(self.jobs[0], CheckBids):
            outcome = self.numerics.perform(cast(CheckBids, self.jobs.pop(0)))
            assert outcome is not None
            self.step(outcome)
        self._settle()

    def enrol(self, peers: Any = None) -> None:
        """Start, and let all arrive and be ready."""
        self.step(Started())
        self._settle()
        for name in self.session.owners:
            said = self.players[name].said
            while said:
                self.say(name, said.popleft())

    def broadcast(self, weights: Weights) -> None:
        """The consumer releases a round's weight."""
        assert self._due is not None
        due, self._due = self._due, None
        self._peer.step(WeightsComputed(due.round, weights))
        self._settle()

    def _settle(self) -> None:
        """Carry the frames between curator and consumer."""
        while self._to_consumer or self._peer.said:
            if self._to_consumer:
                self._peer.hear(self._to_consumer.popleft())
            else:
                super().say(CONSUMER, self._peer.said.popleft())

    def _enter(self, features: Features) -> None:
        self.weighing.total += features.sum(axis=0, dtype=np.int64)
        self.entered.update(row.tobytes() for row in features)


def consumer_numerics(
    session: Session, keys: BlindKeys, kind: type[BlindConsumerNumerics]
) -> BlindConsumerNumerics:
    """A consumer's numerics with the game's map."""
    noise, rows = SimulatedNoise(0, CONSUMER), Dataset.from_arrays("rows", np.zeros((3, 4)))
    numerics = kind(
        session,
        noise,
        identity=session.simulated_identity(CONSUMER),
        validation=rows,
        seed_set=rows,
        store=lambda purchases: None,
        weighing=noise,
    )
    numerics._keys, numerics._map = keys, MAP
    return numerics


class Checks(BlindConsumerNumerics):
    """Compares nothing with D_v, which is not part of the game."""

    def _distances(self) -> None:
        return None

    def seed_distance(self, *, most: int = 0) -> None:  # type: ignore[override]
        return None


class BlindPlayer(_Peer):
    """An honest owner.

    Args:
        bench: The others.
        name: Its roster name.
        features: Its points' φ, shape (n, 4).
    """

    numerics_type: type[BlindOwnerNumerics] = BlindOwnerNumerics

    def __init__(self, bench: Together, name: str, features: Features) -> None:
        session = bench.opened
        data: Any = SimpleNamespace(
            features=features.astype(np.float64),
            attributes_of=lambda rows: [b""] * len(rows),
            attribute_length=0,
        )
        identity = session.simulated_identity(name)
        consumer = session.public_identity(CONSUMER)
        sealer = Sealer(name, identity, consumer, SimulatedNoise(0, name))
        self.numerics = self.numerics_type(session, data, lambda _map: features, sealer=sealer)
        super().__init__(bench, name, OwnerMachine(session, name=name), self._work)

    def _work(self, effect: Computation) -> Event | None:
        if type(effect) is OpenMap:
            self.numerics._keep_seed(SEED)
            self.numerics._hash(MAP)
            return MapOpened()
        return self.numerics.perform(effect)

    def answer(self, broadcast: SealedBroadcast) -> BlindBid:
        (bid,) = self.said
        self.said.clear()
        assert isinstance(bid, BlindBid)
        assert bid.round == broadcast.round
        return bid


class _Lies(BlindOwnerNumerics):
    """A `Liar`'s bids in place of its points' boxes and scores."""

    def _bid(self, effect: ScoreBlind) -> BlindScored:
        honest = super()._bid(effect)
        rng = strategy(honest.weights, effect.round, self._require_sealer().name)
        size = self._session.box_length
        boxes = [honest.boxes[at : at + size] for at in range(0, len(honest.boxes), size)]
        scores = [honest.scores[at : at + MASK_BYTES] for at in range(0, len(honest.scores), MASK_BYTES)]
        for place in range(len(boxes)):
            if rng.random() < 0.3:
                boxes[place] = boxes[place][:-1] + GARBAGE
        for place in range(len(scores)):
            if rng.random() < 0.4:
                scores[place] = self._other(int.from_bytes(scores[place], "big"), rng)
            if scores[place] == NOT_SENT and place >= len(scores) - len(boxes):
                scores[place] = b"\1".rjust(MASK_BYTES, b"\0")
        joined = b"".join(scores)
        digests = [blind_digest(effect.handle + place, box) for place, box in enumerate(boxes)]
        digests.append(hashlib.sha256(joined).digest())
        return replace(honest, boxes=b"".join(boxes), scores=joined, digests=b"".join(digests))

    def _other(self, score: int, rng: np.random.Generator) -> bytes:
        return another_score(score, rng)


def another_score(score: int, rng: np.random.Generator) -> bytes:
    """Higher or lower than it should be, by little or by all, or none at all."""
    top = 2 ** (8 * MASK_BYTES) - 1
    others = (score + 1, score - 1, score + 2**80, score - 2**80, top, 1, 0)
    told: int = min(max(others[int(rng.integers(len(others)))], 0), top)
    return told.to_bytes(MASK_BYTES, "big")


class Liar(BlindPlayer):
    """An attacker that sends void boxes and wrong scores, based on what it is shown and its points alone."""

    numerics_type = _Lies


def strategy(weights: Weights, number: int, name: str) -> np.random.Generator:
    known = hashlib.sha256(weights.tobytes() + bytes([number]) + name.encode()).digest()
    return np.random.default_rng(int.from_bytes(known[:8], "big"))


def play_blind(
    case: Case,
    *,
    with_extra: bool,
    attacker: type[BlindPlayer] = BlindPlayer,
    honest: type[BlindPlayer] = BlindPlayer,
    bench: type[Together] = Together,
) -> list[Counter[bytes]]:
    """Play a case.

    Args:
        case: The fixed part.
        with_extra: Whether x is there.
        attacker: The type of all owners except x's.
        honest: The type of x's owner.
        bench: Curator and consumer.

    Returns:
        For every release after a round, and for the last round: how often each φ is in its sum.
    """
    played = bench(case)
    for owner_name, features in case.data.items():
        if with_extra and owner_name == case.extra_owner:
            features = np.concatenate([features, case.extra[None]])
        kind = honest if owner_name == case.extra_owner else attacker
        played.players[owner_name] = kind(played, owner_name, features)
    played.enrol()
    table = Table(played, played.players, case)
    found = []
    for number in range(1, len(case.weights) + 1):
        table.play_round(number)
        found.append(played.entered.copy())
    assert played.machine.phase == "delivering"
    assert played.consumer.phase == "accounting"
    total: Totals = np.zeros(MAP.space.dimension, dtype=np.int64)
    for phi, count in played.entered.items():
        total += count * np.frombuffer(phi, dtype=np.int16).astype(np.int64)
    assert np.array_equal(total, played.weighing.total)
    return found


def most_changed(case: Case, **more: Any) -> int:
    """The most points by which a release's sum differs with and without x; `more` goes to `play_blind`."""
    without, including = (play_blind(case, with_extra=there, **more) for there in (False, True))
    return max(map(difference, without, including))
