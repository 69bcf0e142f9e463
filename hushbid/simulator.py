"""A whole session in one process: the same machines, codec and driver, a simulated network and clock.

Frames travel with a fixed delay over a heap of (time, number), so a session's course depends on its file
and its data only. Parties can be made to crash at any step, and start again from what was durable.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from consumer.events import StorePurchases
from consumer.machine import ConsumerMachine
from consumer.party import consumer_party
from curator.machine import CuratorMachine
from curator.party import curator_party
from hushbid.simulated_boxes import SimulatedBoxes
from owner.machine import OwnerMachine
from owner.party import owner_party
from protocol import __version__
from protocol.data import Dataset
from protocol.errors import LocalProtocolError
from protocol.machine import Connected, Finish, Lost, Machine
from protocol.names import CONSUMER, CURATOR
from protocol.noise import NoiseSource, SimulatedNoise
from protocol.recorded_session import started
from protocol.runtime.driver import Driver, Numerics, Outgoing
from protocol.runtime.party import head_signer
from protocol.session import Session
from protocol.transcript.journal import JournalLike, MemoryJournal, NullJournal
from protocol.transcript.reader import TranscriptReader
from protocol.transcript.record import Header
from protocol.transcript.replay import EventReader
from protocol.wire import decode_message, said_to

_T = TypeVar("_T")

__all__ = ["UNRECORDED", "Crash", "Simulation", "SimulationOutcome"]

LATENCY: Final = 1e-3
"""Seconds that a frame travels."""
DOWN: Final = 0.05
"""Seconds from a party's crash to its next start."""
IN_MEMORY: Final = 2**62
"""Features are held in memory, however large."""
_GONE: Final = b""
"""In the place of a frame: the sender's connection has ended."""
UNRECORDED: Final = -1
"""Of a step's frames, as many have left if not even its record is durable."""


class Crash(NamedTuple):
    """The death of a party's process.

    Attributes:
        party: Whose.
        step: At the step of this record, counted from 0; at the first one after it that lets frames leave, if
            several steps go together.
        left: How many of the step's frames have left; `UNRECORDED`: the record is lost, too.
    """

    party: str
    step: int
    left: int


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
        session: The session.
        owners: Every owner's points, by name.
        validation: D_v.
        seed_set: D_init.
        journal: Makes a party's journal of its role and name; None: nothing is recorded.
        tap: Sees every frame that is sent: sender, receiver, frame.
        away: Names the owners that have no connection while a round is under way, 0 being enrolment. An
            owner loses it when the round begins, and with it the frames that are on their way.
        curator: Makes the curator, of session and noise: `curator_party`, or what an audit must catch.
        noise: Makes a party's source of noise, by its name; None: seeded as the session file says.
        crashes: Processes that die, each once. Journals are then the simulation's own (`image`).
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
        away: Callable[[int], Collection[str]] | None = None,
        curator: Callable[..., tuple[CuratorMachine, Numerics]] = curator_party,
        noise: Callable[[str], NoiseSource] | None = None,
        crashes: Iterable[Crash] = (),
    ) -> None:
        self._session = session
        self._data = owners
        self._validation, self._seed_set = validation, seed_set
        self._tap = tap
        self._away = away or (lambda _round: ())
        self._make_curator = curator
        self._make_noise = partial(_seeded_noise, session) if noise is None else noise
        self._crashes = sorted(crashes)
        self.crashed: list[Crash] = []
        """Crashes that came, in their order."""
        self._boxes: SimulatedBoxes | None = None
        make_journal = journal or (lambda _role, _name: NullJournal())
        if self._crashes:
            self._boxes = SimulatedBoxes()
            make_journal = self._memory_journal
        # A broadcast goes to all owners in the same bytes: decode them once.
        self._decode = lru_cache(maxsize=2)(decode_message)
        self._cut: frozenset[str] = frozenset()
        self._queue: list[tuple[float, int, str, str, bytes]] = []
        self._down: dict[str, tuple[float, bytes]] = {}
        """Parties that have crashed: when they start again, and what they have."""
        self._number = 0
        self._delivered: StorePurchases | None = None
        roles = {CURATOR: "curator", CONSUMER: "consumer"} | dict.fromkeys(sorted(owners), "owner")
        self._journals = {name: make_journal(role, name) for name, role in roles.items()}
        self._drivers = {name: self._driver(name) for name in roles}

    @property
    def curator(self) -> CuratorMachine:
        """The curator's machine."""
        return _of_kind(CuratorMachine, self._drivers[CURATOR].machine)

    @property
    def consumer(self) -> ConsumerMachine:
        """The consumer's machine."""
        return _of_kind(ConsumerMachine, self._drivers[CONSUMER].machine)

    @property
    def owners(self) -> dict[str, OwnerMachine]:
        """The owners' machines."""
        return {name: _of_kind(OwnerMachine, self._drivers[name].machine) for name in sorted(self._data)}

    def records(self, party: str) -> int:
        """How many records a party has made."""
        return self._journals[party].count

    def image(self, party: str) -> bytes:
        """A party's transcript as it would survive a crash now; where parties may crash."""
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
            return consumer_party(
                session,
                identity=identity,
                noise=noise,
                validation=self._validation,
                seed_set=self._seed_set,
                store=self._store,
            )
        return owner_party(
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
        identifier = self._session.identifier.hex()
        return MemoryJournal(
            Header(role, party, identifier, file.digest(), __version__, {}, file.noise.source)
        )

    def run(self, progress: Callable[[CuratorMachine], None] | None = None) -> SimulationOutcome:
        """Run to the end.

        Args:
            progress: Called after every round.

        Raises:
            LocalProtocolError: A party neither finished nor waits for anything.
        """
        now = 0.0
        self._cut = frozenset(self._away(0))
        for name, driver in self._drivers.items():
            driver.begin(started(self._session.file), now)
            if name != CURATOR and name not in self._cut:
                driver.feed(Connected(), now)
            self._send_from(name, now)
        shown = 0
        while self._down or not all(driver.finished for driver in self._drivers.values()):
            now = self._advance(now)
            if self.curator.round != shown:
                shown = self.curator.round
                self._reconnect(frozenset(self._away(shown)), now)
                if progress is not None:
                    progress(self.curator)
        return SimulationOutcome(
            finishes={name: driver.finished for name, driver in self._drivers.items() if driver.finished},
            seconds=now,
            curator=self.curator,
            consumer=self.consumer,
            owners=self.owners,
            delivered=self._delivered,
        )

    def _advance(self, now: float) -> float:
        """Deliver the next frame, let the next timers fire, or start a party again; returns the new time."""
        frame_due = self._queue[0][0] if self._queue else math.inf
        start_due = min((due for due, _ in self._down.values()), default=math.inf)
        event_due = min(frame_due, start_due)
        timer_due = math.inf if event_due <= now else self._next_timer()
        if event_due == timer_due == math.inf:
            raise LocalProtocolError("The simulated session waits for nothing and is not over.")
        if timer_due < event_due:
            for name in self._up():
                self._drivers[name].fire_due(timer_due)
                self._send_from(name, timer_due)
            return timer_due
        if start_due <= frame_due:
            self._start_again(min(self._down, key=lambda name: (self._down[name][0], name)), start_due)
            return start_due
        due, _, sender, receiver, data = heapq.heappop(self._queue)
        driver = self._drivers[receiver]
        if driver.finished is None:
            if data == _GONE:
                driver.feed(Lost(sender), due)
            else:
                driver.receive(sender, data, due)
            self._send_from(receiver, due)
        return due

    def _up(self) -> list[str]:
        return [name for name in self._drivers if name not in self._down]

    def _reconnect(self, away: frozenset[str], now: float) -> None:
        """Cut owners off whose connection is gone, and let those whose connection is new say hello."""
        changed, self._cut = sorted(self._cut ^ away), away
        for name in changed:
            if name not in away:
                self._drivers[name].feed(Connected(), now)
                self._send_from(name, now)
                continue
            self._drop(lambda sender, receiver, name=name: name in (sender, receiver))  # type: ignore[misc]
            for party, peer in ((CURATOR, name), (name, CURATOR)):
                self._drivers[party].feed(Lost(peer), now)
                self._send_from(party, now)

    def _drop(self, which: Callable[[str, str], bool]) -> None:
        """Lose frames that are on their way."""
        self._queue = [entry for entry in self._queue if not which(entry[2], entry[3])]
        heapq.heapify(self._queue)

    def _next_timer(self) -> float:
        waiting = [self._drivers[name] for name in self._up()]
        dues = (driver.next_due for driver in waiting if driver.finished is None)
        return min((due for due in dues if due is not None), default=math.inf)

    def _send_from(self, sender: str, now: float) -> None:
        if sender in self._down:
            return
        crash = self._crash_due(sender)
        if crash is not None and crash.left == UNRECORDED:
            self._crash(sender, now)
            return
        outgoing = self._drivers[sender].release()
        if crash is not None and not outgoing:
            self._drivers[sender].settle()  # as a loop does that has time
        for place, frame in enumerate(outgoing):
            if crash is not None and place == crash.left:
                break
            if not self._cut.isdisjoint((sender, frame.peer)) or frame.peer in self._down:
                continue  # its link holds it, and sends it again after the next hello
            if self._tap is not None:
                self._tap(sender, frame.peer, frame)
            self._post(sender, frame.peer, frame.data, now)
        if crash is not None:
            self._crash(sender, now)

    def _post(self, sender: str, receiver: str, data: bytes, now: float) -> None:
        self._number += 1
        heapq.heappush(self._queue, (now + LATENCY, self._number, sender, receiver, data))

    # -- crashes ------------------------------------------------------------------------------------

    def _crash_due(self, party: str) -> Crash | None:
        """The crash that is to come at the step that a party has just taken; it comes once."""
        for crash in self._crashes:
            if crash.party == party and self._journals[party].count > crash.step:
                self._crashes.remove(crash)
                self.crashed.append(crash)
                return crash
        return None

    def _crash(self, party: str, now: float) -> None:
        """A party's process dies: what was not durable is gone, and what was on its way to it."""
        self._down[party] = now + DOWN, self.image(party)
        if self._boxes is not None and party == CURATOR:
            self._boxes.forget_uncommitted()
        self._drop(lambda _sender, receiver: receiver == party)
        for peer in self._peers(party):
            self._post(party, peer, _GONE, now)  # after what it had sent

    def _start_again(self, party: str, now: float) -> None:
        _, image = self._down.pop(party)
        journal = self._journals[party] = MemoryJournal.reopen(image)
        driver = self._drivers[party] = self._driver(party)
        records = TranscriptReader(Path(party), image)
        driver.resume(records, EventReader(driver.machine.OUTCOMES, said_to(party), self._boxes))
        if journal.count == 0 or driver.finished is None:
            driver.begin(started(self._session.file), now)
            self._send_from(party, now)
        for peer in self._peers(party):
            participant = party if peer == CURATOR else peer
            if participant not in self._down and self._drivers[participant].finished is None:
                self._drivers[participant].feed(Connected(), now)
                self._send_from(participant, now)

    def _peers(self, party: str) -> list[str]:
        """Who has a connection to a party, or can have one."""
        if party in self._cut:
            return []
        peers = [name for name in self._drivers if name != CURATOR] if party == CURATOR else [CURATOR]
        return [peer for peer in peers if peer not in self._down and peer not in self._cut]

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
