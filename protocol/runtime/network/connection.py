"""The loop of a party that connects to the curator: owners and the consumer."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import zmq

from hushbid.protocol.closing import Closing
from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.crypto.identity import roster_identity
from hushbid.protocol.errors import ConnectionFailed, LocalProtocolError
from hushbid.protocol.machine.machine import Finish, Lost, Started
from hushbid.protocol.machine.participant import Participant
from hushbid.protocol.machine.presence import CuratorPresence
from hushbid.protocol.machine.progress import Pace
from hushbid.protocol.names import CURATOR
from hushbid.protocol.runtime.clock import Clock
from hushbid.protocol.runtime.driver import Driver
from hushbid.protocol.runtime.keys import KeyPair
from hushbid.protocol.runtime.network.dealer import DealerEndpoint, Happening
from hushbid.protocol.runtime.network.router import Drop
from hushbid.protocol.runtime.telemetry.log_events import LogEvent
from hushbid.protocol.runtime.telemetry.logs import SessionLog, ending_event
from hushbid.protocol.runtime.telemetry.vitals import LONGEST_WAIT_SECONDS, Seen, Vitals, by_reason

__all__ = ["Connection"]

LOOK_SECONDS: Final = 0.1
"""How often a busy party checks its connection."""
MAX_FAILED_HANDSHAKES: Final = 5
"""Failed handshakes in a row, over at least `timeouts.comeback`, after which a key counts as wrong. Some also
fail with a proxy before a starting curator, and with a flooded curator.
"""


class Connection(Closing):
    """The connection to the curator. Make it before the transcript: an unusable address then leaves no file.

    Args:
        pair: The party's keys; None in insecure sessions.

    Raises:
        ConfigError: Nobody can connect to the address, or it is on another machine in an insecure session; or
            the roster's key of the curator is invalid.
        ConnectionFailed: ZeroMQ refuses the address.
    """

    def __init__(self, session: SessionFile, pair: KeyPair | None) -> None:
        self._session = session
        self._pair = pair
        self._driver: Driver  # from `run` on
        self._machine: Participant
        self._vitals: Vitals
        self._ahead: Callable[[], None]
        self._presence: CuratorPresence
        self._log = SessionLog(self._where)
        self._phase = ""
        self._taken = False
        self._server_key = roster_identity(session.roster.curator, CURATOR) if pair is not None else None
        self._endpoint = self._connect()
        self._pace = Pace()
        self._failed_handshakes = 0
        self._connections = 0
        self._dropped: Counter[str] = Counter()
        """Frames dropped by former connections."""

    def close(self) -> None:
        self._endpoint.close()

    def run(
        self,
        driver: Driver,
        machine: Participant,
        begins: Started,
        vitals: Vitals,
        *,
        ahead: Callable[[], None],
    ) -> Finish:
        """Run a driver until its machine is done, and return how it ended.

        Args:
            begins: The first event, unless the party resumes.
            vitals: Notified at every turn; its `control` may stop the run.
            ahead: Called when everything is sent and the next frame is awaited, to compute what can be.

        Raises:
            ConnectionFailed: The curator does not know our key, or has another one than the roster says.
            Stopped: It was told to stop.
        """
        self._driver, self._machine, self._vitals, self._ahead = driver, machine, vitals, ahead
        self._clock = Clock(driver.clock)
        self._beaten = self._looked = self._clock()
        self._presence = CuratorPresence(self._session.timeouts, self._beaten)
        with vitals.control as control:
            control.raise_if_stopped()
            driver.begin(begins, self._clock())
            vitals.begin(self._look_at_itself)
            while driver.finished is None:
                self._turn()
                control.raise_if_stopped()
            self._send_out()
        if driver.finished is None:
            raise LocalProtocolError("The loop ended before the machine did.")
        self._log(ending_event(driver.finished), reason=driver.finished.reason)
        return driver.finished

    def _turn(self) -> None:
        if not self._presence.connected:
            self._wait_for_change()
        # The curator sends one frame at a time, so there is nothing to drain.
        frames = self._endpoint.receive(1, wait_ms=self._patience() if self._presence.connected else 0)
        now = self._clock()
        if not frames or now - self._looked >= LOOK_SECONDS:
            self._looked = now
            for happening in self._endpoint.happenings():
                self._follow(happening, now)
        for frame in frames:
            if self._driver.lacks(CURATOR, frame):
                self._connect_anew(now)
                break
            if (returned := self._presence.heard(now)) is not None:
                self._log(LogEvent.CURATOR_BACK)
                self._driver.feed(returned, now)
            self._driver.receive(CURATOR, frame, now)
            self._lose(self._presence.taken_in(), now)
        self._driver.fire_due(now)
        self._check_silence(now)
        self._send_out()
        if self._presence.connected and now - self._beaten >= self._session.timeouts.beat:
            self._beaten = now
            self._endpoint.send(self._driver.beat())
        if self._machine.round:
            self._pace.note(now, self._machine.round - 1, 0)
        self._vitals.turn(now, self._machine.phase)
        self._note_phase()
        self._note_submission()
        if not frames:
            self._driver.settle()
        elif self._driver.finished is None:
            self._ahead()

    def _look_at_itself(self) -> Seen:
        # Frames are not counted here: how many an owner sent says how often it was asked. So do its records.
        counters: dict[str, int | dict[str, int]] = {
            "connections": self._connections,
            "frames_dropped": by_reason(Drop, self._dropped + self._endpoint.drops),
            "frames_repeated": self._driver.repeats,
        }
        if self._vitals.status.role != "owner":
            counters["transcript_records"] = self._driver.records
        return Seen(
            self._machine.phase,
            self._machine.round,
            connected=self._presence.connected,
            seconds_left=self._pace.seconds_left(self._session.rounds),
            counters=counters,
        )

    def _where(self) -> dict[str, Any]:
        phase, round_number = self._machine.phase, self._machine.round
        return {"phase": phase, "round": round_number} if round_number else {"phase": phase}

    def _note_phase(self) -> None:
        if self._machine.phase != self._phase:
            self._phase = self._machine.phase
            if self._phase != "done":
                self._log(LogEvent.PHASE_BEGUN, phase=self._phase)

    def _note_submission(self) -> None:
        """Log, once, that the curator has all that an owner submits: people wait for it to stop the party."""
        whole = self._machine.submitted and self._driver.acknowledged >= self._machine.links[CURATOR].sent
        if whole and not self._taken:
            self._log(LogEvent.SUBMISSION_TAKEN)
        self._taken = whole or self._taken

    def _patience(self) -> int:
        """Milliseconds until something is due, from 1 to the interval of signs of life."""
        now = self._clock()
        # Without a connection no sign of life is due: to wait for that of the past would be to spin.
        due = (self._beaten if self._presence.connected else now) + self._session.timeouts.beat
        if self._driver.next_due is not None:
            due = min(due, self._driver.next_due)
        longest = math.ceil(min(LONGEST_WAIT_SECONDS, self._session.timeouts.beat) * 1000)
        return min(longest, max(1, math.ceil((due - now) * 1000)))

    def _wait_for_change(self) -> None:
        """Wait for a frame, a change of the connection, or the next due time."""
        poller = zmq.Poller()
        poller.register(self._endpoint.socket, zmq.POLLIN)
        poller.register(self._endpoint.monitor, zmq.POLLIN)
        poller.poll(self._patience())

    def _follow(self, happening: Happening, now: float) -> None:
        if happening is Happening.CONNECTED:
            self._connections += 1
            self._failed_handshakes = 0
            self._log(LogEvent.CURATOR_CONNECTED, address=self._session.network.address)
            self._driver.feed(self._presence.established(now), now)
        elif happening is Happening.DISCONNECTED:
            self._lose(self._presence.ended(), now)
        elif happening is Happening.AUTHENTICATION_FAILED:
            raise ConnectionFailed(
                f"The curator at {self._session.network.address} does not know our key.",
                advice="Compare the public key with the session's roster, on both sides.",
            )
        else:
            if self._failed_handshakes == 0:
                self._failing_since = now
            self._failed_handshakes += 1
            certain = now - self._failing_since >= self._session.timeouts.comeback
            if certain and self._failed_handshakes >= MAX_FAILED_HANDSHAKES:
                raise ConnectionFailed(
                    f"The handshake with {self._session.network.address} failed "
                    f"{self._failed_handshakes} times.",
                    advice="Compare the curator's public key with the roster, and check what listens there.",
                )

    def _check_silence(self, now: float) -> None:
        """Reconnect if the curator is silent on a standing connection."""
        if self._presence.is_silent(now):
            self._connect_anew(now, LogEvent.CURATOR_SILENT)

    def _connect_anew(self, now: float, event: LogEvent = LogEvent.CURATOR_GONE) -> None:
        """Give the connection up, and make another."""
        self._lose(self._presence.ended(), now, event)
        self._endpoint.close()
        self._dropped += self._endpoint.drops
        self._endpoint = self._connect()

    def _lose(self, lost: Lost | None, now: float, event: LogEvent = LogEvent.CURATOR_GONE) -> None:
        if lost is not None and self._driver.finished is None:
            self._log(event, seconds=self._session.timeouts.abandon)
            self._driver.feed(lost, now)

    def _send_out(self) -> None:
        # What cannot be sent now is held by the link, and sent again after the next welcome.
        for frame in self._driver.release():
            self._endpoint.send(frame.data)

    def _connect(self) -> DealerEndpoint:
        return DealerEndpoint(self._session.network.address, pair=self._pair, server_key=self._server_key)
