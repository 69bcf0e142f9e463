"""A curator's machine, with a test in place of network, clock, numerics and peers.

Sessions here have as many raw columns as features, and a raw point *is* its φ (int16). So a test chooses φ
directly, and recomputing features is `np.stack`. With d = 4 the paired map's circles hold the few points of
`corners`, all of which the map admits, and whose scores tie all the time.

Under `sealed`, a box is padding and a signature is one of two constants, `SIGNED` and `FORGED`: numerics make
and check real ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hushbid.curator.events import CandidatesChecked, CheckCandidates, DestroyBoxes
from hushbid.curator.machine import CuratorMachine
from hushbid.curator.party import curator_party
from hushbid.protocol import limits
from hushbid.protocol.config.labels import LabelsSection
from hushbid.protocol.config.session import (
    FeatureSection,
    MechanismSection,
    NetworkSection,
    NoiseSection,
    RosterSection,
    RuleSection,
    SessionFile,
    SessionSection,
    SettlementSection,
    TimeoutSection,
)
from hushbid.protocol.config.wishes import WishesSection
from hushbid.protocol.crypto.sealing import SIGNATURE_BYTES, head_statement, sign
from hushbid.protocol.errors import RemoteProtocolError
from hushbid.protocol.machine.machine import (
    Charge,
    Effect,
    Event,
    Finish,
    HeadSigned,
    Lost,
    Offended,
    Received,
    Restarted,
    Returned,
    Send,
    SetTimer,
    SignHead,
    Started,
    TimerFired,
)
from hushbid.protocol.machine.weighing import (
    ComputeWeights,
    DrawNoise,
    NoiseDrawn,
    RoundNoise,
    WeightsComputed,
)
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.privacy.acquisition import RULES, Logistic
from hushbid.protocol.privacy.noise import SimulatedNoise
from hushbid.protocol.session.session import Session, open_session
from hushbid.protocol.space.features import FeatureMap, feature_map
from hushbid.protocol.space.grid import Features, Weights
from hushbid.protocol.wire.codec import Direction, decode_message
from hushbid.protocol.wire.messages import (
    CONTROL_SEQUENCE,
    Ask,
    Batch,
    Bid,
    Broadcast,
    Candidate,
    Candidates,
    Farewell,
    Hello,
    Message,
    Offer,
    Ready,
    Receipt,
    Refused,
    SealedCandidate,
    SealedCandidates,
    SecretMap,
    Submission,
    Target,
    Welcome,
    fixed,
    sizes,
)

__all__ = [
    "DIMENSION",
    "FAREWELL",
    "FORGED",
    "HEAD_SIGNED",
    "MAP",
    "RULES_FOR_FEW",
    "RULES_IN_THE_CLEAR",
    "SIGNED",
    "CuratorBench",
    "Player",
    "candidate_of",
    "corners",
    "names",
    "sealed_candidate_of",
    "session_file",
    "weights_of",
]

DIMENSION, MAP_SEED = 4, 1
RADIUS = 23170
"""2^15·√(2/4), rounded: the radius of each of the two circles."""
CONTROL = (Hello, Welcome, Refused)
RULES_FOR_FEW = tuple(sorted(RULES.keys() - {Logistic.name}))  # of sessions as small as those here
RULES_IN_THE_CLEAR = tuple(name for name in RULES_FOR_FEW if not RULES[name].blind and not RULES[name].herds)
"""Those of them whose curator scores points itself, round by round."""
SIGNED = b"\1" * SIGNATURE_BYTES
"""A signature that holds, as far as the bench is concerned."""
FORGED = bytes(SIGNATURE_BYTES)  # one that does not
HEAD_SIGNED = HeadSigned(bytes(32), SIGNED)
"""The head of a transcript that nobody keeps, signed."""
FAREWELL = Farewell(head=HEAD_SIGNED.head, signature=HEAD_SIGNED.signature)
"""What a bench that keeps no keys says at the end; `farewell_of` is what a curator takes."""


def farewell_of(session: Session, peer: str) -> Farewell:
    """A peer's farewell, with its own signature of a transcript's head that nobody keeps."""
    statement = head_statement(session.identifier, peer, HEAD_SIGNED.head)
    signature = sign(statement, session.simulated_identity(peer).signing)
    return Farewell(head=HEAD_SIGNED.head, signature=signature)


def names(count: int) -> tuple[str, ...]:
    """Roster names that sort like their numbers."""
    return tuple(f"owner-{number}" for number in range(count))


def session_file(
    *,
    owners: Sequence[str],
    points: int,
    rule: str = "ask-all",
    min_owners: int = 1,
    dimension: int = DIMENSION,
    columns: int | None = None,
    timeouts: TimeoutSection | None = None,
    summary: Mapping[str, Any] | None = None,
    target: Mapping[str, Any] | None = None,
    settlement: float | None = None,
    noise_seed: int = 0,
    fixed_cadence: float | None = None,
    batch: int = 1,
    submission: int | None = None,
    seed_weight: float = 1.0,
    jitter: float = 0.0,
    distinct: bool = False,
    numbered: bool | None = None,
    wishes: Mapping[str, Any] | None = None,
    labels: Mapping[str, Any] | None = None,
    **rule_parameters: Any,
) -> SessionFile:
    """A session on loopback, without keys, and with repeatable noise; one point a round."""
    return SessionFile.model_validate(
        {
            "session": SessionSection(
                name="test",
                points=points,
                min_owners=min_owners,
                allow_nonprivate=True,
                fixed_cadence=fixed_cadence,
                batch=None if RULES[rule].herds and batch == 1 else batch,
                submission=submission,
                seed_weight=seed_weight,
                jitter=jitter,
                distinct=distinct,
                numbered=numbered,
            ),
            "features": FeatureSection(
                dimension=dimension,
                gamma=1.0,
                seed=None if RULES[rule].sealed else MAP_SEED,
                columns=dimension if columns is None else columns,
            ),
            "target": MechanismSection.model_validate(dict(target or {"mechanism": "exact"})),
            "summary": MechanismSection.model_validate(dict(summary or {"mechanism": "exact"})),
            "acquisition": RuleSection.model_validate({"rule": rule, **rule_parameters}),
            "settlement": SettlementSection(private=settlement is not None, epsilon=settlement),
            "wishes": None if wishes is None else WishesSection.model_validate(wishes),
            "labels": None if labels is None else LabelsSection.model_validate(labels),
            "noise": NoiseSection(source="simulated", seed=noise_seed),
            "timeouts": timeouts or TimeoutSection(),
            "network": NetworkSection(address="tcp://127.0.0.1:1", insecure=True),
            "roster": RosterSection(owners=dict.fromkeys(owners, "")),
        }
    )


def _map() -> FeatureMap:
    return feature_map(
        "paired", seed=MAP_SEED, dimension=DIMENSION, gamma=1.0, lower=0.0, upper=1.0, columns=DIMENSION
    )


MAP = _map()
"""The feature map of the sessions with d = 4; where it is secret, the curator has its space only."""


def corners() -> Features:
    """The 16 points of the map's image that lie on the axes: shape (16, 4)."""
    circle = [(RADIUS, 0), (-RADIUS, 0), (0, RADIUS), (0, -RADIUS)]
    rows = [(first[0], second[0], first[1], second[1]) for first in circle for second in circle]
    grid = np.array(rows, dtype=np.int16)
    assert MAP.space.admits(grid).all()
    return grid


def weights_of(*values: int) -> Weights:
    """A read-only broadcast weight."""
    weights = np.array(values, dtype=np.int32)
    weights.flags.writeable = False
    return weights


def candidate_of(features: Features, point: Features | None = None) -> Candidate:
    """A point as it is handed over; by default its φ is itself."""
    held = np.array(features, dtype=np.int16)
    held.flags.writeable = False
    raw = held if point is None else np.array(point, dtype=np.int16)
    return Candidate.model_construct(point=raw, features=held, attributes=b"")


def sealed_candidate_of(
    features: Features, session: Session, *, signature: bytes = SIGNED
) -> SealedCandidate:
    """A sealed point as it is handed over, in a box of the right size that holds nothing."""
    held = np.array(features, dtype=np.int16)
    held.flags.writeable = False
    box = bytes(session.box_length)
    return SealedCandidate.model_construct(features=held, box=box, signature=signature)


class CuratorBench:
    """A curator's machine, and all that it talks to.

    Args:
        session: The session's file.

    Attributes:
        opened: What the file means.
        charges: What was charged to the budget, in order.
        boxes_destroyed: How often the machine had the boxes destroyed.
    """

    def __init__(self, session: SessionFile) -> None:
        self.session = session
        self.opened = open_session(session)
        self.rule = self.opened.rule
        self.machine: CuratorMachine
        self.machine, self.numerics = curator_party(self.opened, noise=SimulatedNoise(0, CURATOR))
        self.digest = session.digest()
        self.now = 0.0
        self.sent: dict[str, int] = {}
        self.had: dict[str, int] = {}
        self.inbox: dict[str, list[Message]] = {}
        self.frames: dict[str, list[tuple[int, str, bytes]]] = {}
        self.timers: dict[str, SetTimer] = {}
        self.jobs: list[Effect] = []
        self.charges: list[Charge] = []
        self.boxes_destroyed = 0
        self.finish: Finish | None = None
        self.coins = np.random.default_rng(0)
        self._decoded: dict[bytes, Message] = {}
        self._coordinates: dict[tuple[int, ...], list[int]] = {}

    # -- events -----------------------------------------------------------------------------------

    def step(self, event: Event) -> tuple[Effect, ...]:
        """One step, and a second one if it asks for a signature, which takes no time."""
        effects = self.take(event)
        return effects + self.take(HEAD_SIGNED) if SignHead() in effects else effects

    def take(self, event: Event) -> tuple[Effect, ...]:
        """One step; its frames go to inboxes, its timers and computations are kept."""
        self.now += 1e-3
        effects = self.machine.step(event, self.now)
        for effect in effects:
            if type(effect) is Send:
                self._deliver(effect)
            elif type(effect) is SetTimer:
                self.timers[effect.name] = effect
            elif type(effect) is Finish:
                self.finish = effect
            elif type(effect) is Charge:
                self.charges.append(effect)
            elif type(effect) is DestroyBoxes:
                self.boxes_destroyed += 1
            elif type(effect) is not SignHead:
                self.jobs.append(effect)
        return effects

    def _deliver(self, frame: Send) -> None:
        direction = Direction.CURATOR_TO_CONSUMER if frame.peer == CONSUMER else Direction.CURATOR_TO_OWNER
        message = self._decoded.get(frame.body)
        if message is None:
            message = self._decoded[frame.body] = decode_message(direction, frame.body)
        self.inbox.setdefault(frame.peer, []).append(message)
        self.frames.setdefault(frame.peer, []).append((frame.sequence, frame.kind, frame.body))
        self.had[frame.peer] = max(self.had.get(frame.peer, 0), frame.sequence)

    def received(self, peer: str, message: Message, **changes: Any) -> Received:
        """The next frame of a peer's."""
        control = isinstance(message, CONTROL)
        values: dict[str, Any] = {
            "peer": peer,
            "sequence": CONTROL_SEQUENCE if control else self.sent.get(peer, 0) + 1,
            "acknowledged": CONTROL_SEQUENCE if control else self.had.get(peer, 0),
            "body": b"",
            "message": message,
        }
        return Received(**(values | changes))

    def say(self, peer: str, message: Message) -> tuple[Effect, ...]:
        """Let a peer send a message; it counts as sent only if the machine accepts it."""
        event = self.received(peer, message)
        effects = self.step(event)
        self.sent[peer] = max(self.sent.get(peer, 0), event.sequence)
        return effects

    def say_farewell(self, peer: str) -> tuple[Effect, ...]:
        """Let a peer leave, with its signature."""
        return self.say(peer, farewell_of(self.opened, peer))

    def offend(self, peer: str, message: Message) -> RemoteProtocolError:
        """Let a peer send what must be refused; returns the refusal, after the driver's follow-up."""
        event = self.received(peer, message)
        try:
            self.step(event)
        except RemoteProtocolError as error:
            self.step(
                Offended(peer, event.sequence, event.acknowledged, error.offence, error.what, error.advice)
            )
            return error
        raise AssertionError(f"{message.kind} was taken")

    def hello(self, peer: str, **changes: Any) -> Hello:
        """A peer's first message on every connection."""
        values: dict[str, Any] = {
            "versions": (self.opened.protocol_version,),
            "role": "consumer" if peer == CONSUMER else "owner",
            "name": peer,
            "session": self.digest,
            "software": "test",
            "sent": self.sent.get(peer, 0),
            "received": self.had.get(peer, 0),
        }
        return Hello(**(values | changes))

    def target(self, seed_size: int = 2, **changes: Any) -> Target:
        """A target; its content matters little, since tests release the weights."""
        values: dict[str, Any] = {
            "embedding": np.zeros(DIMENSION),
            "size": 3,
            "seed_total": np.zeros(DIMENSION, dtype=np.int64),
            "seed_size": seed_size,
            "maps": bytes(limits.MAP_BOX_BYTES * len(self.session.owners)) if self.rule.sealed else b"",
            "noise": self.opened.noise_name(self.opened.target),
        }
        return Target(**(values | changes))

    def receipt(self, part: int, *disputed: int) -> Receipt:
        """The consumer's receipt of a part, which disputes the points at these places."""
        bits = np.zeros(len(self.machine.ending.parts[part - 1].purchases), dtype=np.uint8)
        bits[list(disputed)] = 1
        return Receipt(part=part, disputed=np.packbits(bits).tobytes())

    def enrol(self, peers: Iterable[str] | None = None) -> None:
        """Start, and let these (or all) arrive and be ready; the consumer sends its target first."""
        self.step(Started())
        self.say(CONSUMER, self.hello(CONSUMER))
        self.say(CONSUMER, self.target())
        for peer in self.session.owners if peers is None else peers:
            self.say(peer, self.hello(peer))
            if type(self.last(peer)) is SecretMap:
                self.say(peer, Ready())

    def lost(self, peer: str) -> None:
        self.step(Lost(peer))

    def returned(self, peer: str) -> None:
        self.step(Returned(peer))

    def gone(self, peer: str) -> None:
        """Lose a peer, which does not come back while it is waited for."""
        self.lost(peer)
        self.fire("comeback")

    def restart(self) -> None:
        """End the curator's process, and restart it from its transcript."""
        self.step(Restarted())

    def fire(self, name: str) -> None:
        """Let the timer of that name run out."""
        timer = self.timers[name]
        self.now = max(self.now, timer.due)
        self.step(TimerFired(name, timer.attempt))

    # -- computations -----------------------------------------------------------------------------

    def see_out(self) -> None:
        """Let all who were told that the session is over say farewell."""
        for peer in sorted(self.machine.ending.closed - self.machine.ending.farewells):
            assert self.finish is None, "nobody is left behind unread"
            self.say_farewell(peer)

    def job(self, kind: type[Effect]) -> Effect:
        """Take the oldest computation, which must be of that kind."""
        effect = self.jobs.pop(0)
        assert type(effect) is kind, f"{effect.KIND} is due, not {kind.KIND}"
        return effect

    def draw(self) -> None:
        """Answer a request for noise: every round's coins, if the rule needs any, and a settlement's 0."""
        effect = self.job(DrawNoise)
        assert isinstance(effect, DrawNoise)
        rounds: list[RoundNoise] = [
            ((), tuple(self.coins.random(draw.size) for draw in self.rule.draws()))
            for _ in range(effect.first, min(effect.last, self.session.rounds) + 1)
        ]
        if effect.last > self.session.rounds:
            rounds.append(((np.zeros(len(self.session.owners), dtype=np.int64),), ()))
        self.step(NoiseDrawn(effect.first, tuple(rounds)))

    def broadcast(self, weights: Weights) -> None:
        """Release a round's weight."""
        if self.jobs and type(self.jobs[0]) is DrawNoise:
            self.draw()
        effect = self.job(ComputeWeights)
        assert isinstance(effect, ComputeWeights)
        self.step(WeightsComputed(effect.round, weights))

    def verify(self) -> None:
        """Recompute the features of points handed over, or check who signed sealed ones."""
        effect = self.job(CheckCandidates)
        assert isinstance(effect, CheckCandidates)
        candidates = [parcel.brought.at(place) for parcel in effect.parcels for place in range(len(parcel))]
        points = [candidate.point for candidate in candidates if isinstance(candidate, Candidate)]
        signed = tuple(isinstance(each, Candidate) or each.signature == SIGNED for each in candidates)
        self.step(CandidatesChecked(np.stack(points) if points else None, signed))

    def verify_all(self) -> None:
        """Answer all requests to check points."""
        while self.jobs and type(self.jobs[0]) is CheckCandidates:
            self.verify()

    # -- what came of it ----------------------------------------------------------------------------

    def last(self, peer: str) -> Message:
        return self.inbox[peer][-1]

    @property
    def chosen(self) -> list[bytes]:
        """φ of the chosen points, in order."""
        return [win.candidate.features.tobytes() for win in self.machine.ledger.wins]

    def candidate(self, features: Features) -> Candidate | SealedCandidate:
        """A point as it is handed over under the session's rule."""
        return sealed_candidate_of(features, self.opened) if self.rule.sealed else candidate_of(features)

    def score(self, features: npt.NDArray[np.int16], weights: Weights) -> int:
        """A point's score under a broadcast weight, in Python's integers."""
        place = tuple(features.tolist())
        if place not in self._coordinates:
            jitter = self.opened.jitter
            self._coordinates[place] = [*place, *(jitter.of(features[None]).tolist() if jitter else ())]
        return sum(a * b for a, b in zip(self._coordinates[place], weights.tolist(), strict=True))

    def bid(
        self,
        round_number: int,
        features: npt.NDArray[np.int16],
        handle: int,
        weights: Weights,
        **changes: Any,
    ) -> Bid:
        """An honest bid for a point."""
        values: dict[str, Any] = {
            "round": round_number,
            "exhausted": False,
            "score": fixed(self.score(features, weights)),
            "handle": fixed(handle),
            "candidate": self.candidate(features) if self.rule.candidate_with_bid else None,
        }
        return Bid.model_construct(**(values | changes))

    def batch(
        self, round_number: int, points: Sequence[tuple[npt.NDArray[np.int16], int]], weights: Weights
    ) -> Batch:
        """An honest bid for several points, each with its number; padded to the session's batch."""
        missing = self.session.batch - len(points)
        blank = np.zeros(DIMENSION, dtype=np.int16)
        features = [row for row, _ in points] + [blank] * missing
        handles = [handle for _, handle in points] + [0] * missing
        handed = [self.candidate(row) for row in features]
        parts: dict[str, Any] = {"features": np.concatenate(features)}
        if self.rule.sealed:
            boxes = [one.box for one in handed if isinstance(one, SealedCandidate)]
            parts |= {"boxes": b"".join(boxes), "digests": bytes(32 * len(features)), "signature": SIGNED}
        else:
            opened = [one for one in handed if isinstance(one, Candidate)]
            parts["points"] = np.concatenate([one.point for one in opened])
            parts["attributes"] = b"".join(one.attributes for one in opened)
        kind = SealedCandidates if self.rule.sealed else Candidates
        return (Submission if self.rule.herds else Batch)(
            round=round_number,
            scores=sizes([self.score(row, weights) for row, _ in points] + [0] * missing),
            handles=sizes(handles),
            candidates=kind.model_construct(**parts),
        )

    def no_bid(self, round_number: int) -> Bid:
        """The bid of an owner that has no point left."""
        blank = self.candidate(np.zeros(DIMENSION, dtype=np.int16))
        return Bid.model_construct(
            round=round_number,
            exhausted=True,
            score=fixed(0),
            handle=fixed(0),
            candidate=blank if self.rule.candidate_with_bid else None,
        )


class Player:
    """An honest owner, written a second time: plain integers and Python's `min`.

    Args:
        bench: The curator that it plays with.
        name: Its roster name.
        features: Its points' φ, shape (n, 4).
    """

    def __init__(self, bench: CuratorBench, name: str, features: Features) -> None:
        self.bench = bench
        self.name = name
        self.rows = [tuple(int(value) for value in row) for row in features]
        self.bytes = [row.tobytes() for row in np.asarray(features, dtype=np.int16)]
        self.features = features
        self.left = list(range(len(features)))
        self.handles: dict[int, int] = {}
        self.last_bid = 0
        """The row that it bid last: the one that it can be asked for."""

    def number(self, row: int) -> int:
        """Its number of a point."""
        return self.handles.setdefault(row, len(self.handles) + 1)

    def best(self, weights: Weights) -> int | None:
        """Its first remaining point in the total order."""
        return next(iter(self.first(weights, 1)), None)

    def first(self, weights: Weights, count: int) -> list[int]:
        """Its first remaining points in the total order."""

        def place(row: int) -> tuple[int, bytes, int]:
            return -self.bench.score(self.features[row], weights), self.bytes[row], row

        return sorted(self.left, key=place)[:count]

    def answer(self, broadcast: Broadcast) -> Bid | Batch:
        if self.bench.session.batch > 1 or self.bench.rule.herds:
            return self.answer_with(broadcast, self.bench.session.batch)
        row = self.best(broadcast.weights)
        if row is None:
            return self.bench.no_bid(broadcast.round)
        self.last_bid = row
        if self.bench.rule.candidate_with_bid:
            self.left.remove(row)
        return self.bench.bid(broadcast.round, self.features[row], self.number(row), broadcast.weights)

    def answer_with(self, broadcast: Broadcast, count: int) -> Batch:
        """Its batch of at most so many points."""
        rows = self.first(broadcast.weights, count)
        for row in rows:
            self.left.remove(row)
        points = [(self.features[row], self.number(row)) for row in rows]
        return self.bench.batch(broadcast.round, points, broadcast.weights)

    def offer(self, ask: Ask) -> Offer:
        """The requested point."""
        row = self.last_bid
        assert self.number(row) == int(ask.handle[0])
        self.left.remove(row)
        return Offer.model_construct(
            round=ask.round, handle=ask.handle, candidate=candidate_of(self.features[row])
        )
