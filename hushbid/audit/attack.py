"""What is run: a session on one of two neighbouring datasets, and what one owner sees of it."""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from curator.machine import CuratorMachine
from curator.party import curator_party
from hushbid.audit.statistic import Evidence
from hushbid.simulated_network import SteadyNetwork
from hushbid.simulator import Simulation
from protocol.config.session import NoiseSection
from protocol.data import Dataset
from protocol.errors import LocalProtocolError
from protocol.features import SEED_BYTES, FeatureMap
from protocol.grid import weights_to_float
from protocol.messages import Ask, Broadcast
from protocol.names import CONSUMER
from protocol.noise import NoiseSource, SimulatedNoise
from protocol.releases import Prior
from protocol.runtime.driver import Numerics, Outgoing
from protocol.session import PrivacyStatement, Session
from protocol.wire import Direction, decode_frame, decode_message

__all__ = [
    "Attack",
    "Points",
    "ReleaseAttack",
    "SessionAttack",
    "SessionData",
    "Stated",
    "View",
    "public_map",
    "stated_by",
]

Points = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Stated:
    """What is claimed, and attacked."""

    epsilon: float
    delta: float
    neighbours: str


def stated_by(statement: PrivacyStatement) -> Stated:
    """A session's own statement, one of `Session.privacy`.

    Raises:
        LocalProtocolError: It states no ε.
    """
    if statement.epsilon is None:
        raise LocalProtocolError(f"The session states no ε for {statement.protects}.")
    return Stated(statement.epsilon, statement.delta, statement.neighbours)


class Attack(ABC):
    """Runs of a mechanism on two neighbouring datasets, which differ in one record.

    Attributes:
        stated: What the mechanism is claimed to guarantee for these neighbours.
        block: How many runs are made together; their noise depends on the first one's seed.
    """

    stated: Stated
    block: int

    @abstractmethod
    def run(self, neighbour: int, seeds: Sequence[int]) -> Evidence:
        """Run once for each seed.

        Args:
            neighbour: 0 for D, 1 for D'.
            seeds: Of the noise.

        Returns:
            What the attacker saw.
        """


def _curator(session: Session, noise: NoiseSource) -> tuple[CuratorMachine, Numerics]:
    return curator_party(session, noise=noise)


@dataclass(frozen=True)
class ReleaseAttack(Attack):
    """One broadcast: the consumer's release of D_v, of which one record is another.

    Args:
        stated: What is claimed.
        session: The session whose ``[target]`` is attacked.
        validation: D_v and its neighbour, raw.
        seed_set: D_init, raw.
    """

    stated: Stated
    session: Session
    validation: tuple[Points, Points]
    seed_set: Points
    block: int = 500

    def run(self, neighbour: int, seeds: Sequence[int]) -> Evidence:
        """Let the session's mechanism release the target, as a consumer does; the attacker sees it all."""
        session, noise = self.session, SimulatedNoise(seeds[0], CONSUMER)
        feature_map = public_map(session)
        points, public = feature_map.hash(self.validation[neighbour]), feature_map.hash(self.seed_set)
        fresh = session.target(Prior.of_features(public, session.directions))
        total = fresh.statistic().of(points).sum(axis=0)
        draws = fresh.draws(0)
        released = []
        for _ in seeds:
            mechanism = deepcopy(fresh)  # its state goes from release to release, and this is the only one
            drawn = tuple(noise.draw(draw) for draw in draws)
            released.append(mechanism.release(0, total, len(points), drawn))
        return Evidence(np.array(released), np.zeros(len(seeds), dtype=np.int64))


@dataclass(slots=True)
class View:
    """What one owner receives in a session, in order: all that it can learn from.

    The times at which frames come are not in it: no guarantee covers them (DESIGN §3, `fixed_cadence`).
    """

    frames: list[tuple[str, int]] = field(default_factory=list)
    """Kind and length in bytes of each frame."""
    weights: dict[int, npt.NDArray[np.float64]] = field(default_factory=dict)
    """Per round, the broadcast weight."""
    asked: set[int] = field(default_factory=set)
    """Rounds in which it was asked for its point."""

    def take(self, frame: Outgoing) -> None:
        """Add a frame."""
        self.frames.append((frame.kind, len(frame.data)))
        message = decode_message(Direction.CURATOR_TO_OWNER, decode_frame(frame.data).body)
        if isinstance(message, Broadcast):
            self.weights[message.round] = weights_to_float(message.weights)
        elif isinstance(message, Ask):
            self.asked.add(message.round)

    @property
    def shape(self) -> int:
        """A number for the kinds and lengths of the frames, in their order: asks, gaps, sizes."""
        return zlib.crc32(repr((self.frames, sorted(self.weights), sorted(self.asked))).encode())


@dataclass(frozen=True, slots=True)
class SessionData:
    """All parties' data, raw.

    Attributes:
        owners: Every owner's points, in D and in D'.
        validation: D_v.
        seed_set: D_init.
    """

    owners: tuple[Mapping[str, Points], Mapping[str, Points]]
    validation: Points
    seed_set: Points


@dataclass(frozen=True)
class SessionAttack(Attack):
    """A whole session: an owner's view of it, where one record of another owner is there or not.

    Args:
        stated: What is claimed.
        session: The session.
        data: Makes all data for a feature map: what is guaranteed holds for every map, a secret one's too.
        watcher: The owner that attacks.
        read: The numbers that it reads off its view.
        away: As `SteadyNetwork` has it.
        curator: Makes the curator, of session and noise.
    """

    stated: Stated
    session: Session
    data: Callable[[FeatureMap], SessionData]
    watcher: str
    read: Callable[[View], Sequence[float]]
    away: Callable[[int], Collection[str]] | None = None
    curator: Callable[[Session, NoiseSource], tuple[CuratorMachine, Numerics]] = _curator
    block: int = 25

    def run(self, neighbour: int, seeds: Sequence[int]) -> Evidence:
        """Run the session through the real codec, drivers and machines."""
        views = [self.view(neighbour, seed) for seed in seeds]
        values = np.array([self.read(view) for view in views], dtype=np.float64)
        return Evidence(
            values.reshape(len(views), -1), np.array([view.shape for view in views], dtype=np.int64)
        )

    def view(self, neighbour: int, seed: int) -> View:
        """The watcher's view of one run."""
        view = View()

        def tap(_sender: str, receiver: str, frame: Outgoing) -> None:
            if receiver == self.watcher:
                view.take(frame)

        self.simulation(neighbour, seed, tap=tap).run()
        return view

    def simulation(
        self, neighbour: int, seed: int, tap: Callable[[str, str, Outgoing], None] | None = None
    ) -> Simulation:
        """One run, not started yet."""
        session = _seeded(self.session, seed)
        data = self._public_data if session.public_map is not None else self.data(_secret_map(session, seed))
        return Simulation(
            session,
            owners={
                name: Dataset.from_arrays(name, points) for name, points in data.owners[neighbour].items()
            },
            validation=Dataset.from_arrays("validation", data.validation),
            seed_set=Dataset.from_arrays("seed-set", data.seed_set),
            tap=tap,
            network=SteadyNetwork(self.away),
            curator=lambda session, *, noise: self.curator(session, noise),
        )

    @cached_property
    def _public_data(self) -> SessionData:
        return self.data(public_map(self.session))


def public_map(session: Session) -> FeatureMap:
    """The feature map of a session that has a public one."""
    if session.public_map is None:
        raise LocalProtocolError("The session's feature map is secret.")
    return session.public_map


def _seeded(session: Session, seed: int) -> Session:
    """The session with other noise. Simulated noise has the distribution that secure noise has."""
    noise = NoiseSection(source="simulated", seed=seed)
    return replace(session, file=session.file.model_copy(update={"noise": noise}))


def _secret_map(session: Session, seed: int) -> FeatureMap:
    """The map that the consumer will draw with this seed: the owners get it, so the attacker has it."""
    return session.space.map(SimulatedNoise(seed, CONSUMER).random_bytes(SEED_BYTES))
