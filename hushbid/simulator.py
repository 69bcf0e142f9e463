"""A whole session in one process: the same machines, codec and driver, a simulated network and clock.

Frames travel with a fixed delay over a heap of (time, number), so a session's course depends on its file
and its data only.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from consumer.events import StorePurchases
from consumer.machine import ConsumerMachine
from consumer.party import NAME as CONSUMER
from consumer.party import consumer_party
from curator.machine import CuratorMachine
from curator.party import curator_party
from curator.party import direction as to_curator
from owner.machine import OwnerMachine
from owner.party import owner_party
from protocol.data import Dataset
from protocol.errors import LocalProtocolError
from protocol.machine import Connected, Finish, Started
from protocol.participant import CURATOR
from protocol.runtime.driver import Driver, Outgoing
from protocol.session import Session
from protocol.transcript.journal import JournalLike, NullJournal
from protocol.wire import Direction, decode_message

__all__ = ["Simulation", "SimulationOutcome"]

LATENCY = 1e-3
"""Seconds that a frame travels."""
IN_MEMORY = 2**62
"""Features are held in memory, however large."""


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
        tap: Sees every frame: sender, receiver, frame.
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
    ) -> None:
        make_journal = journal or (lambda _role, _name: NullJournal())
        # A broadcast goes to all owners in the same bytes: decode them once.
        decode = lru_cache(maxsize=2)(decode_message)
        self._tap = tap
        self._queue: list[tuple[float, int, str, str, bytes]] = []
        self._number = 0
        self._delivered: StorePurchases | None = None
        curator, curator_numerics = curator_party(session)
        consumer, consumer_numerics = consumer_party(
            session, validation=validation, seed_set=seed_set, store=self._store
        )
        parties = {
            name: owner_party(session, name, data, scratch=None, memory_limit=IN_MEMORY)
            for name, data in sorted(owners.items())
        }
        self.curator, self.consumer = curator, consumer
        self.owners = {name: machine for name, (machine, _) in parties.items()}
        self._drivers = {
            CURATOR: Driver(
                curator,
                curator_numerics,
                make_journal("curator", CURATOR),
                session=session.identifier,
                direction=to_curator,
            ),
            CONSUMER: Driver(
                consumer,
                consumer_numerics,
                make_journal("consumer", CONSUMER),
                session=session.identifier,
                direction=lambda _peer: Direction.CURATOR_TO_CONSUMER,
            ),
        }
        for name, (machine, numerics) in parties.items():
            self._drivers[name] = Driver(
                machine,
                numerics,
                make_journal("owner", name),
                session=session.identifier,
                direction=lambda _peer: Direction.CURATOR_TO_OWNER,
                decode=decode,
            )

    def run(self, progress: Callable[[CuratorMachine], None] | None = None) -> SimulationOutcome:
        """Run to the end.

        Args:
            progress: Called after every round.

        Raises:
            LocalProtocolError: A party neither finished nor waits for anything.
        """
        now = 0.0
        for name, driver in self._drivers.items():
            driver.feed(Started(), now)
            if name != CURATOR:
                driver.feed(Connected(), now)
            self._send_from(name, now)
        shown = 0
        while not all(driver.finished for driver in self._drivers.values()):
            now = self._advance(now)
            if progress is not None and self.curator.round != shown:
                shown = self.curator.round
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
        """Deliver the next frame, or let the next timers fire; returns the new time."""
        frame_due = self._queue[0][0] if self._queue else math.inf
        if frame_due < math.inf:
            timer_due = math.inf if frame_due <= now else self._next_timer()
        else:
            timer_due = self._next_timer()
        if frame_due == timer_due == math.inf:
            raise LocalProtocolError("The simulated session waits for nothing and is not over.")
        if timer_due < frame_due:
            for name, driver in self._drivers.items():
                driver.fire_due(timer_due)
                self._send_from(name, timer_due)
            return timer_due
        due, _, sender, receiver, data = heapq.heappop(self._queue)
        driver = self._drivers[receiver]
        if driver.finished is None:
            driver.receive(sender, data, due)
            self._send_from(receiver, due)
        return due

    def _next_timer(self) -> float:
        waiting = (driver.next_due for driver in self._drivers.values() if driver.finished is None)
        return min((due for due in waiting if due is not None), default=math.inf)

    def _send_from(self, sender: str, now: float) -> None:
        for frame in self._drivers[sender].release():
            if self._tap is not None:
                self._tap(sender, frame.peer, frame)
            self._number += 1
            heapq.heappush(self._queue, (now + LATENCY, self._number, sender, frame.peer, frame.data))

    def _store(self, purchases: StorePurchases) -> None:
        self._delivered = purchases
