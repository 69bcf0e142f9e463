"""A whole session in one process: the same machines, codec and driver, a simulated network and clock.

A session's course depends on its file, its data and its network only (`hushbid.simulation.network`). Parties
can be made to crash at any step, and restart from what was durable.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from hushbid.consumer.events import StorePurchases
from hushbid.consumer.machine import ConsumerMachine
from hushbid.consumer.party import consumer_party
from hushbid.curator.machine import CuratorMachine
from hushbid.curator.party import curator_party
from hushbid.owner.machine import OwnerMachine
from hushbid.owner.party import owner_party
from hushbid.protocol import __version__
from hushbid.protocol.data import Dataset
from hushbid.protocol.errors import LocalProtocolError
from hushbid.protocol.machine.base import Machine
from hushbid.protocol.machine.machine import Event, Finish
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.privacy.noise import NoiseSource, SimulatedNoise
from hushbid.protocol.runtime.driver import Driver, Numerics, Outgoing
from hushbid.protocol.runtime.party import head_signer
from hushbid.protocol.session.session import Session
from hushbid.protocol.transcript.journal import JournalLike, MemoryJournal, NullJournal
from hushbid.protocol.transcript.reader import TranscriptReader
from hushbid.protocol.transcript.record import Header
from hushbid.protocol.transcript.replay import EventReader
from hushbid.protocol.transcript.session_file import started
from hushbid.protocol.wire.codec import decode_message, said_to
from hushbid.simulation.boxes import SimulatedBoxes
from hushbid.simulation.network import Network, SteadyNetwork

_T = TypeVar("_T")

__all__ = ["UNRECORDED", "Crash", "Simulation", "SimulationOutcome"]

DOWN: Final = 0.05
"""Seconds from a party's crash to its next start."""
IN_MEMORY: Final = 2**62
"""Features are held in memory, however large."""
UNRECORDED: Final = -1
"""Value of `Crash.left` for a step whose record is not even durable."""


class Crash(NamedTuple):
    """The death of a party's process.

    Attributes:
        step: The step of this record, counted from 0; if several steps go together, the first step from there
            that lets frames leave.
        left: Number of the step's frames that have left; `UNRECORDED`: the record is lost too.
        down: Seconds until it starts again.
    """

    party: str
    step: int
    left: int
    down: float = DOWN


@dataclass(frozen=True)
class SimulationOutcome:
    """How a simulation ended."""

    finishes: Mapping[str, Finish]
    """Per party."""
    seconds: float
    """Simulated time."""
    curator: CuratorMachine
    consumer: ConsumerMachine
    owners: Mapping[str, OwnerMachine]
    delivered: StorePurchases | None


class Simulation:
    """A session that runs in this process.

    Args:
        owners: Every owner's points, by name.
        validation: D_v.
        seed_set: D_init.
        journal: Makes a party's journal from its role and name; None: nothing is recorded.
        tap: Called for every sent frame with sender, receiver and frame.
        network: Carries the frames; None: a `SteadyNetwork`.
        curator, consumer, owner: Make a party, as `curator_party` and so on do; an audit passes broken ones,
        a rehearsal a consumer whose sets may share rows.
        noise: Makes the noise source of the named party at each of its starts; None: seeded by the session
            file.
        crashes: Processes that die, each once. Journals are then the simulation's own (`image`), even if this
            is empty. None: no crashes, and journals come from `journal`.
        salts: Returns the requested number of random bytes, for the simulation's own journals.
    """

    def __init__(
        self,
        session: Session,
        *,
        owners: Mapping[str, Dataset],
        validation: Dataset,
        seed_set: Dataset,
        journal: Callable[[str, str], JournalLike] | None = None,
        tap: Callable[[str, str, Outgoing], None] | None = None,
        network: Network | None = None,
        curator: Callable[..., tuple[CuratorMachine, Numerics]] = curator_party,
        consumer: Callable[..., tuple[ConsumerMachine, Numerics]] = consumer_party,
        owner: Callable[..., tuple[OwnerMachine, Numerics]] = owner_party,
        noise: Callable[[str], NoiseSource] | None = None,
        crashes: Iterable[Crash] | None = None,
        salts: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self._session = session
        self._started = started(session.file)  # one for all: it names every owner
        self._data = owners
        self._validation, self._seed_set = validation, seed_set
        self._tap = tap
        self._make_curator, self._make_consumer, self._make_owner = curator, consumer, owner
        self._make_noise = partial(_seeded_noise, session) if noise is None else noise
        self._salts = salts
        self._crashes = sorted(crashes or ())
        self.crashed: list[Crash] = []
        """Crashes that happened, in order."""
        self._boxes: SimulatedBoxes | None = None
        make_journal = journal or (lambda _role, _name: NullJournal())
        if crashes is not None:
            self._boxes = SimulatedBoxes()
            make_journal = self._memory_journal
        # All owners get a broadcast in the same bytes: decode it once.
        self._decode = lru_cache(maxsize=2)(decode_message)
        self._up: set[str] = set()
        self._down: dict[str, tuple[float, bytes]] = {}
        """Crashed parties: when they restart, and their durable data."""
        self._delivered: StorePurchases | None = None
        roles = {CURATOR: "curator", CONSUMER: "consumer"} | dict.fromkeys(sorted(owners), "owner")
        self.parties = tuple(roles)
        """Their names, the curator's first."""
        self._journals = {name: make_journal(role, name) for name, role in roles.items()}
        self._drivers = {name: self._driver(name) for name in roles}
        self._network = SteadyNetwork() if network is None else network
        self._network.join(self)

    @property
    def curator(self) -> CuratorMachine:
        return _of_kind(CuratorMachine, self._drivers[CURATOR].machine)

    @property
    def consumer(self) -> ConsumerMachine:
        return _of_kind(ConsumerMachine, self._drivers[CONSUMER].machine)

    @property
    def owners(self) -> dict[str, OwnerMachine]:
        return {name: _of_kind(OwnerMachine, self._drivers[name].machine) for name in sorted(self._data)}

    @property
    def finishes(self) -> dict[str, Finish]:
        """How each finished party ended."""
        return {name: driver.finished for name, driver in self._drivers.items() if driver.finished}

    def records(self, party: str) -> int:
        """Number of a party's records."""
        return self._journals[party].count

    def image(self, party: str) -> bytes:
        """A party's transcript as it would survive a crash now. Needs the simulation's own journals."""
        return _of_kind(MemoryJournal, self._journals[party]).image

    def _driver(self, name: str) -> Driver:
        machine, numerics = self._party(name)
        return Driver(
            machine,
            numerics,
            self._journals[name],
            session=self._session.identifier,
            direction=said_to(name),
            boxes=self._boxes if name == CURATOR else None,
            sign=head_signer(self._session, name, self._session.simulated_identity(name)),
            decode=self._decode,
        )

    def _party(self, name: str) -> tuple[Machine, Numerics]:
        session, noise = self._session, self._make_noise(name)
        if name == CURATOR:
            return self._make_curator(session, noise=noise)
        identity = session.simulated_identity(name)
        if name == CONSUMER:
            return self._make_consumer(
                session,
                identity=identity,
                noise=noise,
                validation=self._validation,
                seed_set=self._seed_set,
                store=self._store,
            )
        return self._make_owner(
            session,
            name,
            self._data[name],
            identity=identity,
            noise=noise,
            scratch=None,
            memory_limit=IN_MEMORY,
        )

    def _memory_journal(self, role: str, party: str) -> MemoryJournal:
        file = self._session.file
        identifier, digest = self._session.identifier.hex(), self._session.digest
        header = Header(role, party, identifier, digest, __version__, {}, file.noise.source)
        return MemoryJournal(header._replace(protocol=self._session.protocol_version), salts=self._salts)

    def run(
        self, progress: Callable[[CuratorMachine], None] | None = None, *, until: float = math.inf
    ) -> SimulationOutcome:
        """Run to the end.

        Args:
            progress: Called after every round.
            until: Simulated time at which to stop even if parties have not finished, in seconds.

        Raises:
            LocalProtocolError: A party neither finished nor waits for anything.
        """
        now = 0.0
        for name in self.parties:
            self._begin(name, now)
        shown = 0
        while now < until and (self._down or any(not driver.finished for driver in self._drivers.values())):
            now = self._advance(now)
            if self.curator.round != shown:
                shown = self.curator.round
                self._network.round_began(shown, now)
                if progress is not None:
                    progress(self.curator)
        for name in self._up:
            self._drivers[name].settle()  # A process does this when it ends.
        return SimulationOutcome(
            finishes=self.finishes,
            seconds=now,
            curator=self.curator,
            consumer=self.consumer,
            owners=self.owners,
            delivered=self._delivered,
        )

    def _begin(self, party: str, now: float) -> None:
        self._up.add(party)
        if self.records(party) == 0 or self.goes_on(party):
            self._drivers[party].begin(self._started, now)
            self.send_out(party, now)
        if self.is_up(party):
            self._network.started(party, now)

    def _advance(self, now: float) -> float:
        """Let the network act, timers fire, or a party restart; returns the new time."""
        network_due = self._network.next_due
        start_due = min((due for due, _ in self._down.values()), default=math.inf)
        event_due = min(network_due, start_due)
        timer_due = math.inf if event_due <= now else self._next_timer()
        if event_due == timer_due == math.inf:
            raise LocalProtocolError("The simulated session waits for nothing and is not over.")
        if timer_due < event_due:
            for name in self.parties:
                if self.is_up(name):
                    self._drivers[name].fire_due(timer_due)
                    self.send_out(name, timer_due)
            return timer_due
        if start_due <= network_due:
            self._start_again(min(self._down, key=lambda name: (self._down[name][0], name)), start_due)
            return start_due
        self._network.turn(network_due)
        return network_due

    def _next_timer(self) -> float:
        waiting = [self._drivers[name] for name in self.parties if self.goes_on(name)]
        return min((driver.next_due for driver in waiting if driver.next_due is not None), default=math.inf)

    # -- the network's interface (`World`) -----------------------------------------------------------------

    def is_up(self, party: str) -> bool:
        return party in self._up

    def goes_on(self, party: str) -> bool:
        return party in self._up and self._drivers[party].finished is None

    def feed(self, party: str, event: Event, now: float) -> None:
        self._drivers[party].feed(event, now)

    def lacks(self, party: str, sender: str, data: bytes) -> bool:
        return self._drivers[party].lacks(sender, data)

    def receive(self, party: str, sender: str, data: bytes, now: float) -> None:
        self._drivers[party].receive(sender, data, now)

    def send_out(self, party: str, now: float) -> None:
        if not self.is_up(party):
            return
        crash = self._crash_due(party)
        if crash is not None and crash.left == UNRECORDED:
            self._crash(crash, now)
            return
        driver = self._drivers[party]
        outgoing = driver.release()
        if crash is not None:
            if not outgoing:
                driver.settle()  # An idle loop does the same.
            outgoing = outgoing[: crash.left]
        while outgoing:
            for frame in outgoing:
                if self._network.send(party, frame, now) and self._tap is not None:
                    self._tap(party, frame.peer, frame)
            # Handle the consequences of a frame that could not leave, unless the party has finished.
            outgoing = driver.release() if crash is None else []
        if crash is not None:
            self._crash(crash, now)

    # -- crashes ------------------------------------------------------------------------------------

    def spare(self) -> None:
        self._crashes.clear()

    def _crash_due(self, party: str) -> Crash | None:
        """The crash planned for the step that a party has just taken; each crash happens once."""
        for crash in self._crashes:
            if crash.party == party and self._journals[party].count > crash.step:
                self._crashes.remove(crash)
                self.crashed.append(crash)
                return crash
        return None

    def _crash(self, crash: Crash, now: float) -> None:
        """Let a party's process die: whatever was not durable is lost."""
        party = crash.party
        self._up.discard(party)
        self._down[party] = now + crash.down, self.image(party)
        if self._boxes is not None and party == CURATOR:
            self._boxes.forget_uncommitted()
        self._network.stopped(party, now)

    def _start_again(self, party: str, now: float) -> None:
        _, image = self._down.pop(party)
        self._journals[party] = MemoryJournal.reopen(image, salts=self._salts)
        driver = self._drivers[party] = self._driver(party)
        records = TranscriptReader(Path(party), image)
        driver.resume(records, EventReader(driver.machine.table.outcomes, said_to(party), self._boxes))
        self._begin(party, now)

    def _store(self, purchases: StorePurchases) -> None:
        self._delivered = purchases


def _seeded_noise(session: Session, party: str) -> NoiseSource:
    seed = session.file.noise.seed
    if seed is None:
        raise LocalProtocolError("A simulation was made of a session whose noise has no seed.")
    return SimulatedNoise(seed, party)


def _of_kind(kind: type[_T], value: object) -> _T:
    if not isinstance(value, kind):
        raise LocalProtocolError(f"The simulation holds another thing than a {kind.__name__}.")
    return value
