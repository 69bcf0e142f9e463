"""An attack: a session on one of two neighbouring datasets, and one owner's view of it."""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from hushbid.consumer.machine import ConsumerMachine
from hushbid.consumer.party import consumer_party
from hushbid.curator.machine import CuratorMachine
from hushbid.curator.party import curator_party
from hushbid.evidence.audit.statistic import Observations
from hushbid.owner.machine import OwnerMachine
from hushbid.owner.party import owner_party
from hushbid.protocol.crypto.blinding import BlindKeys
from hushbid.protocol.data import Dataset
from hushbid.protocol.errors import LocalProtocolError
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.privacy.noise import SimulatedNoise
from hushbid.protocol.privacy.releases import Prior
from hushbid.protocol.runtime.driver import Numerics, Outgoing
from hushbid.protocol.session.guarantee import PrivacyStatement
from hushbid.protocol.session.points import hash_seed_set
from hushbid.protocol.session.session import Session
from hushbid.protocol.space.features import SEED_BYTES, FeatureMap
from hushbid.protocol.space.grid import weights_to_float
from hushbid.protocol.space.labels import Labels
from hushbid.protocol.wire.blind import SealedBroadcast
from hushbid.protocol.wire.codec import Direction, decode_frame, decode_message
from hushbid.protocol.wire.messages import Ask, Broadcast
from hushbid.simulation.network import SteadyNetwork
from hushbid.simulation.simulator import Crash, Simulation

__all__ = [
    "Attack",
    "ConsumerParty",
    "CuratorParty",
    "OwnerParty",
    "Points",
    "ReleaseAttack",
    "SessionAttack",
    "SessionData",
    "Stated",
    "View",
    "public_map",
    "stated_by",
]

Points: TypeAlias = npt.NDArray[np.float64]
CuratorParty: TypeAlias = tuple[CuratorMachine, Numerics]
ConsumerParty: TypeAlias = tuple[ConsumerMachine, Numerics]
OwnerParty: TypeAlias = tuple[OwnerMachine, Numerics]
Reading: TypeAlias = Callable[[Any], npt.NDArray[np.float64]]
"""The numbers that an attacker extracts from its view: shape (rounds, readings)."""


@dataclass(frozen=True, slots=True)
class Stated:
    """The claim under attack."""

    epsilon: float
    delta: float
    neighbours: str


def stated_by(statement: PrivacyStatement) -> Stated:
    """The claim in a session's statement, one of `Session.privacy`.

    Raises:
        LocalProtocolError: It states no ε.
    """
    if statement.epsilon is None:
        raise LocalProtocolError(f"The session states no ε for {statement.protects}.")
    return Stated(statement.epsilon, statement.delta, statement.neighbours)


class Attack(ABC):
    """Runs of a mechanism on two neighbouring datasets, which differ in one record.

    Attributes:
        stated: The claimed guarantee for these neighbours.
        block: Number of runs made together; their noise depends on the first one's seed.
    """

    stated: Stated
    block: int

    @abstractmethod
    def run(self, neighbour: int, seeds: Sequence[int]) -> Observations:
        """Run once for each seed of the noise on D (neighbour 0) or D' (1): what the attacker sees."""


@dataclass(frozen=True)
class ReleaseAttack(Attack):
    """One broadcast: the consumer's release of D_v, with one record replaced.

    Args:
        session: The session whose ``[target]`` is attacked.
        validation: D_v and its neighbour, raw, as D_init is.
        labels: Their labels, if the choice uses them.
    """

    stated: Stated
    session: Session
    validation: tuple[Points, Points]
    seed_set: Points
    labels: tuple[Labels, Labels] | None = None
    block: int = 500

    def run(self, neighbour: int, seeds: Sequence[int]) -> Observations:
        """Let the session's mechanism release the target, as a consumer does; the attacker sees all of it."""
        session, noise = self.session, SimulatedNoise(seeds[0], CONSUMER)
        feature_map = public_map(session)
        labels = None if self.labels is None else self.labels[neighbour]
        points = feature_map.hash(self.validation[neighbour], labels)
        public = hash_seed_set(feature_map, self.seed_set)
        prior = Prior.of_features(public, session.directions)
        total = session.target.statistic(prior).of(points).sum(axis=0)
        draws = session.target.draws(0)
        released = []
        for _ in seeds:
            stream = session.target.stream(prior=prior)
            drawn = tuple(noise.draw(draw) for draw in draws)
            released.append(stream.release(0, total, len(points), drawn))
        return Observations(np.array(released)[:, None, :], np.zeros(len(seeds), dtype=np.int64))


@dataclass(slots=True)
class View:
    """Everything that one owner receives in a session, in order.

    It excludes arrival times of frames, which no guarantee covers (DESIGN §3, `fixed_cadence`).
    """

    frames: list[tuple[str, int]] = field(default_factory=list)
    """Kind and length in bytes of each frame."""
    weights: dict[int, npt.NDArray[np.float64]] = field(default_factory=dict)
    """The broadcast weight of each round."""
    asked: set[int] = field(default_factory=set)
    """Rounds in which it was asked for its point."""
    keys: BlindKeys | None = None
    """Keys for reading broadcasts in a session with a blind curator."""

    def take(self, frame: Outgoing) -> None:
        self.frames.append((frame.kind, len(frame.data)))
        message = decode_message(Direction.CURATOR_TO_OWNER, decode_frame(frame.data).body)
        if isinstance(message, Broadcast):
            self.weights[message.round] = weights_to_float(message.weights)
        elif isinstance(message, SealedBroadcast) and self.keys is not None:
            self.weights[message.round] = weights_to_float(self.keys.decrypt(message.box, message.round))
        elif isinstance(message, Ask):
            self.asked.add(message.round)

    @property
    def shape(self) -> int:
        """A number for the kinds and lengths of the frames in order: asks, gaps, sizes."""
        return zlib.crc32(repr((self.frames, sorted(self.weights), sorted(self.asked))).encode())


@dataclass(frozen=True, slots=True)
class SessionData:
    """All parties' raw data.

    Attributes:
        owners: Every owner's points, in D and in D'.
        other_validation: D_v in D', if the consumer's records are attacked; None: the same.
    """

    owners: tuple[Mapping[str, Points], Mapping[str, Points]]
    validation: Points
    seed_set: Points
    other_validation: Points | None = None

    @classmethod
    def one_more(
        cls, others: Mapping[str, Points], victims: Points, extra: Points, **public: Points
    ) -> SessionData:
        """The victim has one record more in D', its last one: `extra`, shape (1, columns).

        `others` are the other owners' points, `public` has `validation` and `seed_set`.
        """
        more = np.concatenate([victims, extra])
        return cls(({**others, "victim": victims}, {**others, "victim": more}), **public)


_Datasets: TypeAlias = tuple[Mapping[str, Dataset], Dataset, Dataset]
"""The owners' data, D_v and D_init."""


@dataclass(frozen=True)
class SessionAttack(Attack):
    """A whole session: an owner's view of it, with or without one record of another owner.

    Args:
        data: Makes all data for a feature map; the guarantee holds for every map, including a secret one.
        read: Extracts numbers from the attacking owner's view.
        watcher: The attacking owner.
        away: As in `SteadyNetwork`.
        curator, consumer, owner: Make a party, with the arguments of `curator_party` and so on.
        crashes: Processes that die and restart; None: no process does, and nothing is recorded.
    """

    stated: Stated
    session: Session
    data: Callable[[FeatureMap], SessionData]
    read: Reading
    watcher: str = "watcher"
    away: Callable[[int], Collection[str]] | None = None
    curator: Callable[..., CuratorParty] = curator_party
    consumer: Callable[..., ConsumerParty] = consumer_party
    owner: Callable[..., OwnerParty] = owner_party
    crashes: Sequence[Crash] | None = None
    block: int = 25

    def run(self, neighbour: int, seeds: Sequence[int]) -> Observations:
        """Run the session through the real codec, drivers and machines."""
        views = [self.view(neighbour, seed) for seed in seeds]
        values = np.array([self.read(view) for view in views], dtype=np.float64)
        return Observations(values, np.array([view.shape for view in views], dtype=np.int64))

    def view(self, neighbour: int, seed: int) -> Any:
        """The attacker's view of one run, which `read` takes and which has a `shape`; here a `View`."""
        view = View(keys=self._keys(seed))

        def tap(_sender: str, receiver: str, frame: Outgoing) -> None:
            if receiver == self.watcher:
                view.take(frame)

        self.simulation(neighbour, seed, tap=tap).run()
        return view

    def simulation(
        self, neighbour: int, seed: int, tap: Callable[[str, str, Outgoing], None] | None = None
    ) -> Simulation:
        def noise(party: str) -> SimulatedNoise:
            # As if the session file had this seed: simulated noise is distributed like secure noise.
            return SimulatedNoise(seed, party)

        def consumer(session: Session, **given: Any) -> ConsumerParty:
            # Otherwise the consumer's noise for weights would have the file's seed, and be the same in every
            # run.
            more = {"weighing": noise(CURATOR)} if session.weigher == CONSUMER else {}
            return self.consumer(session, **given, **more)

        session = self.session
        if session.public_map is None:
            secret = session.space.map(self._map_seed(seed))
            owners, validation, seed_set = _datasets(self.data(secret), neighbour)
        else:
            owners, validation, seed_set = self._public_data[neighbour]
        return Simulation(
            session,
            owners=owners,
            validation=validation,
            seed_set=seed_set,
            tap=tap,
            network=SteadyNetwork(self.away),
            curator=self.curator,
            consumer=consumer,
            owner=self.owner,
            noise=noise,
            crashes=self.crashes,
        )

    def _map_seed(self, seed: int) -> bytes:
        """Seed of a run's secret map, the first that its consumer draws."""
        return SimulatedNoise(seed, CONSUMER).random_bytes(SEED_BYTES)

    def _keys(self, seed: int) -> BlindKeys | None:
        """The owners' keys for reading broadcasts in a run; None if these are not encrypted."""
        session = self.session
        return None if session.curator_reads else BlindKeys(self._map_seed(seed), session.identifier)

    @cached_property
    def _public_data(self) -> tuple[_Datasets, _Datasets]:
        data = self.data(public_map(self.session))
        return _datasets(data, 0), _datasets(data, 1)


def _datasets(data: SessionData, neighbour: int) -> _Datasets:
    owners = {name: Dataset.from_arrays(name, points) for name, points in data.owners[neighbour].items()}
    validation = data.validation
    if neighbour and data.other_validation is not None:
        validation = data.other_validation
    return (
        owners,
        Dataset.from_arrays("validation", validation),
        Dataset.from_arrays("seed-set", data.seed_set),
    )


def public_map(session: Session) -> FeatureMap:
    """The feature map of a session that has a public one."""
    if session.public_map is None:
        raise LocalProtocolError("The session's feature map is secret.")
    return session.public_map
