"""The curator as a process of its own."""

from __future__ import annotations

import json
import logging
import math
import os
import time
from collections import Counter
from typing import Any, Final

from curator.connections import Connections, Ignored
from curator.machine import CONSUMER, CuratorMachine
from curator.party import curator_party, direction
from protocol import limits
from protocol.config.party import CuratorFile
from protocol.config.session import SessionFile
from protocol.errors import LocalProtocolError, Offence, RemoteProtocolError
from protocol.machine import Finish, Lost, Returned, Started
from protocol.messages import Hello
from protocol.participant import CURATOR
from protocol.runtime.driver import Driver, Outgoing
from protocol.runtime.party import (
    StopSignals,
    ensure_done,
    one_blas_thread,
    open_journal,
    own_keys,
    spare_collections,
)
from protocol.runtime.router import Arrival, RouterEndpoint
from protocol.session import open_session
from protocol.wire import Direction, decode_frame, decode_message

__all__ = ["run_curator"]

logger = logging.getLogger("hushbid")

PROGRESS_SECONDS: Final = 0.1
"""Between two lines of progress."""


def run_curator(
    session_file: SessionFile, file: CuratorFile, *, progress: int | None = None
) -> dict[str, Any]:
    """Run a session's rounds, until it is over.

    Args:
        session_file: The session.
        file: The curator's private file.
        progress: A file descriptor for one JSON line per PROGRESS_SECONDS, or None.

    Returns:
        The curator's result: what was acquired from whom.

    Raises:
        HushbidError: As `protocol.errors` says.
    """
    one_blas_thread()
    session = open_session(session_file)
    pair = own_keys(session, file, expected=session_file.roster.curator, party=CURATOR)
    machine, numerics = curator_party(session)
    roster = {key: name for name, key in session_file.roster.owners.items()}
    roster[session_file.roster.consumer] = CONSUMER
    address = file.listen or session_file.network.address
    with RouterEndpoint(address, pair=pair, roster=roster if pair is not None else {}) as endpoint:
        logger.info("listening at %s", endpoint.address)
        journal = open_journal(
            session, role="curator", party=CURATOR, state=file.state, durability=file.durability
        )
        spare_collections()
        try:
            driver = Driver(machine, numerics, journal, session=session.identifier, direction=direction)
            hub = _Hub(session_file, machine, driver, endpoint, progress)
            try:
                finish = hub.run()
            finally:
                hub.log_what_was_not_taken()
        finally:
            journal.close()
    ensure_done(finish)
    result = _result(session_file, machine, hub.seconds, str(file.state / f"{CURATOR}.transcript"))
    return {**result, "privacy": [statement.as_json() for statement in session.privacy()]}


class _Hub:
    """The curator's loop: frames in, steps, frames out, signs of life."""

    def __init__(
        self,
        session: SessionFile,
        machine: CuratorMachine,
        driver: Driver,
        endpoint: RouterEndpoint,
        progress: int | None,
    ) -> None:
        self._session = session
        self._machine = machine
        self._driver = driver
        self._endpoint = endpoint
        self._progress = progress
        if progress is not None:
            # Who watches may stop to read; the rounds do not wait for it.
            os.set_blocking(progress, False)
        self._connections = Connections()
        self._names: dict[bytes, str] = {}
        """Who said hello on which connection: insecure sessions only."""
        self._heard: dict[str, float] = {}
        self._lost: set[str] = set()
        self._beaten = self._shown = time.monotonic()
        self._first_round: float | None = None
        self._last_round = 0.0

    @property
    def seconds(self) -> float:
        """From the first broadcast to the end of the last round."""
        return self._last_round - self._first_round if self._first_round is not None else 0.0

    def run(self) -> Finish:
        """Run until the machine is done."""
        driver = self._driver
        with StopSignals() as stop:
            driver.feed(Started(), time.monotonic())
            while driver.finished is None:
                self._turn()
                stop.raise_if_received()
            self._send_out(time.monotonic())
        if driver.finished is None:
            raise LocalProtocolError("The loop ended before the machine did.")
        return driver.finished

    def log_what_was_not_taken(self) -> None:
        """Say once how many frames and connections came to nothing, by reason alone."""
        for what, counts in (
            ("frames dropped", self._endpoint.drops),
            ("frames ignored", self._connections.ignored),
            ("connections refused", self._endpoint.refusals),
        ):
            if counts:
                told = ", ".join(f"{reason} {count}" for reason, count in sorted(counts.items()))
                logger.info("%s: %s", what, told)

    def _turn(self) -> None:
        arrivals = self._endpoint.receive(limits.MAX_EVENTS_PER_DRAIN, wait_ms=self._patience())
        now = time.monotonic()
        for arrival in arrivals:
            self._take(arrival, now)
        self._driver.fire_due(now)
        self._send_out(now)
        self._note_progress(now)
        if now - self._beaten >= self._session.timeouts.beat:
            self._beaten = now
            self._check_silence(now)
            self._give_sign_of_life(now)
            self._send_out(now)
        if not arrivals:
            self._driver.settle()

    def _patience(self) -> int:
        """Milliseconds until something is due, at least 1."""
        due = self._beaten + self._session.timeouts.beat
        if self._driver.next_due is not None:
            due = min(due, self._driver.next_due)
        return max(1, math.ceil((due - time.monotonic()) * 1000))

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
        return route is not None and self._endpoint.send(route, frame.data)

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
        logger.warning("%s is gone", peer)
        self._driver.feed(Lost(peer), now)

    def _check_silence(self, now: float) -> None:
        for peer in list(self._connections.current):
            if peer not in self._lost and now - self._heard[peer] > self._session.timeouts.silence:
                self._lost.add(peer)
                logger.warning("%s is silent", peer)
                self._driver.feed(Lost(peer), now)

    def _note_progress(self, now: float) -> None:
        machine = self._machine
        if machine.round == 0:
            return
        if self._first_round is None:
            self._first_round = now
        if machine.phase not in ("delivering", "closing", "done") or not self._last_round:
            self._last_round = now
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


def _result(session: SessionFile, machine: CuratorMachine, seconds: float, transcript: str) -> dict[str, Any]:
    ledger = machine.ledger
    absences = Counter(absence.owner for absence in ledger.absences)
    return {
        "role": "curator",
        "session": session.session.name,
        "rounds": machine.round,
        "wall_seconds": seconds,
        "rounds_per_second": machine.round / seconds if seconds > 0 else None,
        "points_accessed": ledger.points_accessed,
        "points_delivered": len(ledger.wins),
        "settlement": dict(machine.settlement()),
        "absences": {owner: absences[owner] for owner in machine.owners if absences[owner]},
        "faults": [
            {"owner": fault.owner, "round": fault.round, "what": fault.what} for fault in ledger.faults
        ],
        "refusals": [
            {"peer": refusal.peer, "round": refusal.round, "code": refusal.offence.value}
            for refusal in ledger.refusals
        ],
        "transcript": transcript,
    }
