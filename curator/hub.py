"""The curator's loop: who speaks on which connection, who is gone, what leaves."""

from __future__ import annotations

import json
import logging
import math
import os
from collections import Counter
from typing import Final

from curator.connections import Connections, Ignored
from curator.machine import CONSUMER, CuratorMachine
from protocol import limits
from protocol.config.session import SessionFile
from protocol.errors import LocalProtocolError, Offence, RemoteProtocolError
from protocol.machine import Finish, Lost, Returned
from protocol.messages import Hello
from protocol.recorded_session import started
from protocol.runtime.clock import Clock
from protocol.runtime.driver import Driver, Outgoing
from protocol.runtime.party import StopSignals
from protocol.runtime.router import Arrival, RouterEndpoint
from protocol.runtime.vitals import LONGEST_WAIT_SECONDS, Seen, Vitals
from protocol.wire import Direction, decode_frame, decode_message

__all__ = ["Hub"]

logger = logging.getLogger("hushbid")

PROGRESS_SECONDS: Final = 0.1
"""Between two lines of progress."""
_STAGES: Final = frozenset({"enrolling", "delivering", "closing", "done"})


class Hub:
    """Takes frames in, feeds the machine, sends frames out, and gives signs of life.

    Args:
        session: The session.
        machine: The curator's machine.
        driver: Runs it.
        endpoint: Bound already.
        vitals: Told of every turn.
        progress: A file descriptor for one JSON line per PROGRESS_SECONDS, or None.
    """

    def __init__(
        self,
        session: SessionFile,
        machine: CuratorMachine,
        driver: Driver,
        endpoint: RouterEndpoint,
        vitals: Vitals,
        progress: int | None,
    ) -> None:
        self._session = session
        self._machine = machine
        self._driver = driver
        self._endpoint = endpoint
        self._vitals = vitals
        self._progress = progress
        if progress is not None:
            # Who watches may stop to read; the rounds do not wait for it.
            os.set_blocking(progress, False)
        self._connections = Connections()
        self._names: dict[bytes, str] = {}
        """Who said hello on which connection: insecure sessions only."""
        self._heard: dict[str, float] = {}
        self._lost: set[str] = set()
        self._paused = False
        self._counted: Counter[str] = Counter()
        self._clock = Clock(driver.clock)
        self._beaten = self._shown = self._clock()

    def run(self) -> Finish:
        """Run until the machine is done."""
        driver = self._driver
        with StopSignals() as stop:
            driver.begin(started(self._session), self._clock())
            self._vitals.begin(self._look_at_itself)
            while driver.finished is None:
                self._turn()
                stop.raise_if_received()
            self._send_out(self._clock())
        if driver.finished is None:
            raise LocalProtocolError("The loop ended before the machine did.")
        return driver.finished

    def log_what_was_not_taken(self) -> None:
        """Say once how many frames and connections came to nothing, by reason alone."""
        for what, counts in (
            ("frames dropped", self._endpoint.drops),
            ("frames ignored", self._connections.ignored),
            ("connections refused", self._endpoint.refusals),
            ("connections cut", self._endpoint.cuts),
        ):
            if counts:
                told = ", ".join(f"{reason} {count}" for reason, count in sorted(counts.items()))
                logger.info("%s: %s", what, told)

    def _turn(self) -> None:
        arrivals = self._endpoint.receive(limits.MAX_EVENTS_PER_DRAIN, wait_ms=self._patience())
        now = self._clock()
        for arrival in arrivals:
            self._counted["frames_received"] += 1
            self._counted["bytes_received"] += len(arrival.frame)
            self._take(arrival, now)
        self._driver.fire_due(now)
        self._send_out(now)
        self._note_progress(now)
        self._note_pause()
        self._vitals.turn(now, (self._stage, self._machine.paused))
        if now - self._beaten >= self._session.timeouts.beat:
            self._beaten = now
            self._check_silence(now)
            self._give_sign_of_life(now)
            self._send_out(now)
        if not arrivals:
            self._driver.settle()

    @property
    def _stage(self) -> str:
        """The phase, but for those of a round, which change too often for anybody to follow."""
        phase = self._machine.phase
        return phase if phase in _STAGES else "rounds"

    def _look_at_itself(self) -> Seen:
        machine, ledger = self._machine, self._machine.ledger
        return Seen(
            self._stage,
            machine.round,
            paused=machine.paused,
            owners_connected=sum(seat.connected for seat in machine.seats.values()),
            counters={
                **self._counted,
                "frames_dropped": dict(self._endpoint.drops),
                "frames_ignored": dict(self._connections.ignored),
                "connections_refused": dict(self._endpoint.refusals),
                "connections_cut": dict(self._endpoint.cuts),
                "peers_refused": dict(Counter(refusal.offence.value for refusal in ledger.refusals)),
                "absences": len(ledger.absences),
            },
        )

    def _patience(self) -> int:
        """Milliseconds until something is due, at least 1."""
        due = self._beaten + self._session.timeouts.beat
        if self._driver.next_due is not None:
            due = min(due, self._driver.next_due)
        return max(1, math.ceil(min(due - self._clock(), LONGEST_WAIT_SECONDS) * 1000))

    def _take(self, arrival: Arrival, now: float) -> None:
        peer = arrival.peer if arrival.peer is not None else self._name_of(arrival)
        if peer is None:
            self._connections.ignored[Ignored.UNNAMED] += 1
            return
        if not self._connections.hears(peer, arrival.route, arrival.frame):
            return
        if self._connections.current.get(peer) == arrival.route:
            self._heard[peer] = now
            if peer in self._lost:
                self._lost.discard(peer)
                logger.info("%s is back", peer)
                self._driver.feed(Returned(peer), now)
        refusals = self._machine.ledger.refusals
        before = len(refusals)
        self._driver.receive(peer, arrival.frame, now)
        if len(refusals) > before:
            self._refuse(peer, arrival.route, refusals[-1].offence, now)

    def _refuse(self, peer: str, route: bytes, offence: Offence, now: float) -> None:
        """Listen no more to the connection that a breach came from; the peer's own ends with it."""
        logger.warning("%s was refused: %s", peer, offence.value)
        was_current = self._connections.current.get(peer) == route
        if self._connections.refuse(peer, route):
            logger.warning("%s was refused %d times: no more", peer, limits.MAX_REFUSALS_PER_PEER)
        if was_current:
            self._lose(peer, now)

    def _name_of(self, arrival: Arrival) -> str | None:
        """Who speaks, in an insecure session: whom its hello names, if the roster does."""
        known = self._names.get(arrival.route)
        if known is not None:
            return known
        try:
            hello = decode_message(Direction.GREETING, decode_frame(arrival.frame).body)
        except RemoteProtocolError:
            return None
        if not isinstance(hello, Hello) or hello.name not in (*self._session.roster.owners, CONSUMER):
            return None
        self._names[arrival.route] = hello.name
        return hello.name

    def _send_out(self, now: float) -> None:
        # Until nothing is left: what a loss leads to, such as the next round, must not wait for a frame.
        while frames := self._driver.release():
            for frame in frames:
                if not self._send(frame, now):
                    self._lose(frame.peer, now)

    def _send(self, frame: Outgoing, now: float) -> bool:
        """Send a frame; False: its peer cannot be sent anything on the connection that it had."""
        if frame.kind == "welcome":
            self._accept(frame.peer, now)
        elif frame.kind == "refused":
            self._endpoint.send(self._connections.next_to_be_told(frame.peer), frame.data)
            return True
        route = self._connections.current.get(frame.peer)
        if route is None or not self._endpoint.send(route, frame.data):
            return False
        self._counted["frames_sent"] += 1
        self._counted["bytes_sent"] += len(frame.data)
        return True

    def _accept(self, peer: str, now: float) -> None:
        """Take the connection of its hello for the peer's."""
        self._connections.accept(peer)
        self._heard[peer] = now
        self._lost.discard(peer)
        logger.info("%s is here", peer)

    def _give_sign_of_life(self, now: float) -> None:
        beat = self._driver.beat()
        for peer, route in list(self._connections.current.items()):
            if not self._endpoint.send(route, beat):
                self._lose(peer, now)

    def _lose(self, peer: str, now: float) -> None:
        """A peer is gone: it has to say hello again on a new connection, or speak again on this one."""
        if peer in self._lost or self._driver.finished is not None:
            return
        self._lost.add(peer)
        self._connections.current.pop(peer, None)
        logger.warning("%s is gone; waiting %g s for it", peer, self._session.timeouts.comeback)
        self._driver.feed(Lost(peer), now)

    def _check_silence(self, now: float) -> None:
        for peer in list(self._connections.current):
            if peer not in self._lost and now - self._heard[peer] > self._session.timeouts.silence:
                self._lost.add(peer)
                logger.warning("%s is silent; waiting %g s for it", peer, self._session.timeouts.comeback)
                self._driver.feed(Lost(peer), now)

    def _note_pause(self) -> None:
        """Say when the rounds stand still for want of owners, and when they go on."""
        if self._machine.paused == self._paused:
            return
        self._paused = self._machine.paused
        if self._paused:
            least, seconds = self._session.session.min_owners, self._session.timeouts.pause
            logger.warning("fewer than %d owners are here: paused, for %g s at most", least, seconds)
        else:
            logger.info("goes on with round %d", self._machine.round)

    def _note_progress(self, now: float) -> None:
        machine = self._machine
        if machine.round == 0:
            return
        if self._progress is None or (now - self._shown < PROGRESS_SECONDS and machine.phase != "done"):
            return
        self._shown = now
        line = {"round": machine.round, "points": len(machine.ledger.wins), "phase": machine.phase}
        try:
            os.write(self._progress, json.dumps(line).encode() + b"\n")
        except BlockingIOError:
            pass
        except OSError:
            # Nobody watches any more; the session goes on.
            self._progress = None
