"""The curator's loop: it reads connections, notices lost peers, and sends."""

from __future__ import annotations

import math
import os
from collections import Counter
from typing import Final

from hushbid.curator.connections import REPLACED, Ignored
from hushbid.curator.machine import CuratorMachine
from hushbid.curator.presence import Presence
from hushbid.curator.progress import ProgressFollower, stage_of
from hushbid.curator.session_log import CuratorLog
from hushbid.protocol import limits
from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.errors import LocalProtocolError, Offence, RemoteProtocolError
from hushbid.protocol.machine.machine import Finish
from hushbid.protocol.names import CONSUMER
from hushbid.protocol.runtime.clock import Clock
from hushbid.protocol.runtime.driver import Driver, Outgoing
from hushbid.protocol.runtime.network.authentication import Rejection
from hushbid.protocol.runtime.network.connection_limits import Cut
from hushbid.protocol.runtime.network.router import Arrival, Drop, RouterEndpoint
from hushbid.protocol.runtime.telemetry.log_events import LogEvent
from hushbid.protocol.runtime.telemetry.vitals import LONGEST_WAIT_SECONDS, Seen, Vitals, by_reason
from hushbid.protocol.transcript.session_file import started
from hushbid.protocol.wire.codec import Direction, decode_frame, decode_message
from hushbid.protocol.wire.messages import CONTROL_SEQUENCE, Hello

__all__ = ["Hub"]

PROGRESS_SECONDS: Final = 0.1
"""Seconds between two lines of progress."""


class Hub:
    """Takes frames in, feeds the machine, sends frames out, and gives signs of life.

    Args:
        endpoint: Already bound.
        log: Told of every step.
        vitals: Told of every turn.
        progress: A file descriptor for one JSON line per PROGRESS_SECONDS, or None.
    """

    def __init__(
        self,
        session: SessionFile,
        machine: CuratorMachine,
        driver: Driver,
        endpoint: RouterEndpoint,
        log: CuratorLog,
        vitals: Vitals,
        progress: int | None,
    ) -> None:
        self._session = session
        self._machine = machine
        self._driver = driver
        self._endpoint = endpoint
        self._log = log
        self._vitals = vitals
        self._progress = progress
        self._follower = ProgressFollower(session, machine)
        if progress is not None:
            # The reader may stop reading; the rounds do not wait for it.
            os.set_blocking(progress, False)
        self._presence = Presence(session.timeouts)
        self._connections = self._presence.connections
        self._tells_owners = session.herds
        """Whether owners look for word that all they submitted is on record."""
        self._names: dict[bytes, str] = {}
        """Connection → the party that said hello on it, in insecure sessions only."""
        self._counted: Counter[str] = Counter()
        self._known = set(machine.links)
        """Peers that were welcomed before."""
        self._sent = {peer: link.sent for peer, link in machine.links.items()}
        """Number of the last frame sent to each peer."""
        self._timed = log.decided
        self._clock = Clock(driver.clock)
        self._beaten = self._shown = self._round_began = self._clock()

    def run(self) -> Finish:
        """Run until the machine is done. Raises `Stopped` if a stop was requested."""
        driver = self._driver
        with self._vitals.control as control:
            control.raise_if_stopped()
            driver.begin(started(self._session), self._clock())
            self._vitals.begin(self._look_at_itself)
            while driver.finished is None:
                self._turn()
                control.raise_if_stopped()
            self._send_out(self._clock())
            self._log.follow()
        if driver.finished is None:
            raise LocalProtocolError("The loop ended before the machine did.")
        self._log.over(driver.finished)
        return driver.finished

    def log_what_was_not_taken(self) -> None:
        """Log once how many frames and connections were ignored, by reason only."""
        for event, counts in (
            (LogEvent.FRAMES_DROPPED, self._endpoint.drops),
            (LogEvent.FRAMES_IGNORED, self._connections.ignored),
            (LogEvent.CONNECTIONS_REFUSED, self._endpoint.refusals),
            (LogEvent.CONNECTIONS_CUT, self._endpoint.cuts),
        ):
            for reason, count in sorted(counts.items()):
                self._log.say(event, count=count, reason=str(reason))
        if self._driver.repeats:
            self._log.say(LogEvent.FRAMES_REPEATED, count=self._driver.repeats)
        self._log.say.close()

    def _turn(self) -> None:
        wait = 0 if self._presence.hears_out else self._patience()
        arrivals = self._endpoint.receive(limits.MAX_EVENTS_PER_DRAIN, wait_ms=wait)
        now = self._clock()
        for route, peer in self._endpoint.broken():
            self._note_cut(peer or self._names.get(route), route, Cut.FRAMING, now)
        for arrival in arrivals:
            self._counted["frames_received"] += 1
            self._counted["bytes_received"] += len(arrival.frame)
            self._take(arrival, now)
        self._driver.fire_due(now)
        self._log.follow()
        self._send_out(now)
        self._lose_unreachable({arrival.route for arrival in arrivals}, now)
        self._log.follow()
        self._note_progress(now)
        self._time_rounds(now)
        self._vitals.turn(now, (stage_of(self._machine.phase), self._machine.paused))
        if now - self._beaten >= self._session.timeouts.beat:
            self._beaten = now
            self._check_silence(now)
            self._give_sign_of_life(now)
            self._send_out(now)
        if not arrivals:
            self._driver.settle()

    def _time_rounds(self, now: float) -> None:
        decided = self._log.decided
        if decided > self._timed:
            self._vitals.round_times.add((now - self._round_began) / (decided - self._timed))
            self._counted["rounds"] += decided - self._timed
            self._timed = decided
        elif self._machine.round:
            return
        self._round_began = now

    def _look_at_itself(self) -> Seen:
        ledger = self._machine.ledger
        progress = self._follower.progress()
        return Seen(
            progress.phase,
            progress.round,
            paused=progress.paused,
            owners_connected=progress.owners_connected,
            points=progress.points,
            points_per_second=progress.points_per_second,
            seconds_left=progress.seconds_left,
            missing=progress.missing,
            counters={
                **self._counted,
                "frames_dropped": by_reason(Drop, self._endpoint.drops),
                "frames_ignored": by_reason(Ignored, self._connections.ignored),
                "connections_refused": by_reason(Rejection, self._endpoint.refusals),
                "connections_cut": by_reason(Cut, self._endpoint.cuts),
                "refusals": by_reason(Offence, Counter(refusal.offence.value for refusal in ledger.refusals)),
                "absences": self._log.absences,
                "faults": len(ledger.faults),
                "frames_repeated": self._driver.repeats,
                "transcript_records": self._driver.records,
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
            for route in self._connections.late():
                # Its own process may have given it up, and then nobody listens; else it is a second process.
                self._endpoint.send(route, self._driver.unrecorded(REPLACED))
            return
        if self._driver.lacks(peer, arrival.frame):
            if self._endpoint.cut(arrival.route, Cut.GAP):
                self._note_cut(peer, arrival.route, Cut.GAP, now)
            return
        returned = self._presence.heard(peer, arrival.route, now)
        if returned is not None:
            self._log.say(LogEvent.PEER_BACK, peer=peer)
            self._driver.feed(returned, now)
        refusals = self._machine.ledger.refusals
        before = len(refusals)
        with self._log.noting_late_bid(peer):
            self._driver.receive(peer, arrival.frame, now)
        self._log.follow()
        if len(refusals) > before:
            self._refuse(peer, arrival.route, refusals[-1].offence, now)

    def _note_cut(self, peer: str | None, route: bytes, why: Cut, now: float) -> None:
        """Log that a peer's connection was cut, and count it as one that takes no frame.

        It is no offence: framing is not authenticated, so anybody on the line can garble it, or take out a
        frame. The peer comes again.
        """
        if peer is not None and self._connections.current.get(peer) == route:
            self._log.say(LogEvent.PEER_CUT, peer=peer, reason=why.value)
            self._presence.not_sent(peer, route, now)

    def _refuse(self, peer: str, route: bytes, offence: Offence, now: float) -> None:
        """Ignore the connection that a breach came from; the peer's own connection ends with it."""
        self._log.say(LogEvent.PEER_REFUSED, peer=peer, offence=offence.value, said=offence.said)
        was_current = self._connections.current.get(peer) == route
        if self._connections.refuse(peer, route):
            count = limits.MAX_REFUSALS_PER_PEER
            self._log.say(LogEvent.PEER_REFUSED_FOR_GOOD, peer=peer, count=count)
        if was_current:
            self._lose(peer, now, refused=True)

    def _name_of(self, arrival: Arrival) -> str | None:
        """The speaker in an insecure session: the party that its hello names, if it is on the roster."""
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
        while frames := self._driver.release():
            for frame in frames:
                self._send(frame, now)

    def _send(self, frame: Outgoing, now: float) -> None:
        if frame.kind == "welcome":
            self._accept(frame.peer, now)
        elif frame.kind == "refused":
            self._endpoint.send(self._connections.next_to_be_told(frame.peer), frame.data)
            return
        route = self._connections.current.get(frame.peer)
        if route is None:
            # A frame from before the answer to a hello heard meanwhile is sent again with that answer. A loss
            # told now would follow the hello: the machine would take the new connection for lost.
            if not self._connections.greets(frame.peer):
                self._lose(frame.peer, now)
        elif self._reach(frame.peer, route, frame.data, now):
            self._counted["frames_sent"] += 1
            self._counted["bytes_sent"] += len(frame.data)
            self._note_repetition(frame)

    def _reach(self, peer: str, route: bytes, data: bytes, now: float) -> bool:
        """Send on a peer's connection; send nothing more on it after the first failure."""
        if not self._presence.reaches(route):
            return False
        if self._endpoint.send(route, data):
            return True
        self._presence.not_sent(peer, route, now)
        return False

    def _note_repetition(self, frame: Outgoing) -> None:
        if frame.sequence > self._sent.get(frame.peer, CONTROL_SEQUENCE):
            self._sent[frame.peer] = frame.sequence
        elif frame.sequence != CONTROL_SEQUENCE:
            self._counted["frames_resent"] += 1
            if frame.kind == "delivery":
                self._log.say(LogEvent.DELIVERY_RESENT, peer=frame.peer)

    def _accept(self, peer: str, now: float) -> None:
        """Make the connection of a peer's hello the peer's own, and end the previous one."""
        before = self._presence.welcomed(peer, now)
        if before is not None:
            # A peer that reconnected no longer listens on the old connection. If somebody does, it is a
            # second process.
            self._endpoint.send(before, self._driver.unrecorded(REPLACED))
        known = peer in self._known
        self._known.add(peer)
        self._log.say(LogEvent.PEER_RECONNECTED if known else LogEvent.PEER_HERE, peer=peer)

    def _give_sign_of_life(self, now: float) -> None:
        beat = self._driver.beat()
        if self._tells_owners:
            self._driver.settle()
        for peer, route in list(self._connections.current.items()):
            told = self._tells_owners and peer in self._machine.links
            self._reach(peer, route, self._driver.beat(peer) if told else beat, now)

    def _lose_unreachable(self, speaking: set[bytes], now: float) -> None:
        """Treat peers that cannot be sent anything as gone, once all their frames are read."""
        over = self._presence.heard_out(speaking, now)
        for peer in over:
            self._lose(peer, now)
        if over:
            # A loss may start the next round, which must not wait for another frame.
            self._send_out(now)

    def _lose(self, peer: str, now: float, *, refused: bool = False) -> None:
        """A peer's connection has ended: the peer has to say hello again on a new one.

        If the curator `refused` it, the log already says so.
        """
        lost = self._presence.gone(peer) if self._driver.finished is None else None
        if lost is None:
            return
        if not refused:
            self._log.say(LogEvent.PEER_GONE, peer=peer, seconds=self._session.timeouts.comeback)
        self._driver.feed(lost, now)

    def _check_silence(self, now: float) -> None:
        for lost in self._presence.silent(now):
            self._log.say(LogEvent.PEER_SILENT, peer=lost.peer, seconds=self._session.timeouts.comeback)
            self._driver.feed(lost, now)
        for peer, route in self._presence.unheard():
            if self._endpoint.cut_if_stalled(route):
                self._note_cut(peer, route, Cut.STALLED, now)

    def _note_progress(self, now: float) -> None:
        self._follower.note(now)
        if self._progress is None:
            return
        if now - self._shown < PROGRESS_SECONDS and self._machine.phase != "done":
            return
        self._shown = now
        try:
            os.write(self._progress, self._follower.progress().as_line())
        except BlockingIOError:
            pass
        except OSError:
            # The reader is gone; the session goes on without it.
            self._progress = None
