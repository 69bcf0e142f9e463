"""A party's signs of life: one picture of what it does, for its status file, its metrics and who runs it.

The main loop says so at every turn (`Vitals.turn`), which costs one comparison; every `STATUS_SECONDS`, and
when phase or pause change, a new picture is taken and written. Nothing else writes it, no thread in
particular: a loop that hangs must look like one. A computation that may take longer than a health check waits
is announced (`Vitals.computing`), and so is the loading of data, before the loop runs.
"""

from __future__ import annotations

import os
import time
from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import accumulate
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, Self

from protocol.config.session import SessionFile
from protocol.errors import ExitCode, HushbidError
from protocol.machine.machine import Computation, Event
from protocol.privacy.acquisition import asks
from protocol.runtime.control import PROGRESS_SECONDS, Control
from protocol.runtime.driver import Numerics
from protocol.runtime.interrupts import INTERRUPTED
from protocol.runtime.telemetry.log_events import LogEvent
from protocol.runtime.telemetry.logs import log
from protocol.runtime.telemetry.status_file import Status, process_start, status_path

__all__ = [
    "LONGEST_WAIT_SECONDS",
    "STATUS_SECONDS",
    "TELLS_OF_ASKS",
    "AnnouncedNumerics",
    "RoundTimes",
    "Seen",
    "Vitals",
    "by_reason",
]

STATUS_SECONDS: Final = 0.5
"""Between two pictures, if nothing changes."""
LONGEST_WAIT_SECONDS: Final = 1.0
"""Longest that a loop may wait for something to happen: it is alive, and has to say so."""
TELLS_OF_ASKS: Final = frozenset(
    {
        "bytes_received",
        "bytes_sent",
        "faults",
        "frames_received",
        "frames_repeated",
        "frames_resent",
        "frames_sent",
        "transcript_records",
    }
)
"""Counters that rise when an owner is asked for a point, or when its answer comes. Under a rule that asks, no
party keeps them: who scrapes them round by round would read off the asks."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a loop sees of itself."""

    phase: str
    round: int
    paused: bool = False
    connected: bool | None = None
    owners_connected: int | None = None
    points: int | None = None
    points_per_second: float | None = None
    seconds_left: float | None = None
    missing: tuple[str, ...] = ()
    counters: Mapping[str, int | Mapping[str, int]] = field(default_factory=dict)


def by_reason(reasons: type[StrEnum], counts: Mapping[str, int]) -> dict[str, int]:
    """The count of each possible reason, 0 where there was nothing.

    A counter of Prometheus must be there before it counts: `increase` does not see the first event of one
    that begins with it.

    Args:
        reasons: All of them.
        counts: Counts by some of the reasons.
    """
    return {reason.value: counts.get(reason, 0) for reason in reasons}


class RoundTimes:
    """How long rounds took, counted by upper bounds, in seconds."""

    BOUNDS: Final = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)

    def __init__(self) -> None:
        self._counts = [0] * (len(self.BOUNDS) + 1)
        self._total = 0.0

    def add(self, seconds: float) -> None:
        """Count a round."""
        self._counts[bisect_left(self.BOUNDS, seconds)] += 1
        self._total += seconds

    def cumulative(self) -> tuple[list[tuple[str, float]], float]:
        """Rounds up to each bound, as Prometheus has them, and the sum of all seconds."""
        bounds = [*(f"{bound:g}" for bound in self.BOUNDS), "+Inf"]
        return list(zip(bounds, accumulate(self._counts), strict=True)), self._total


class Vitals:
    """Keeps a party's status from its start to its end; a context manager.

    A status that cannot be written, on a full disk, say, costs the session nothing: it is counted, and logged
    once.

    Args:
        state: The party's state directory; made if need be.
        party: Its name.
        control: Runs the party, and is told its progress.
    """

    def __init__(
        self,
        state: Path,
        *,
        party: str,
        role: Literal["curator", "owner", "consumer"],
        session: SessionFile,
        control: Control | None = None,
    ) -> None:
        now = time.time()
        self.status = Status(
            party=party,
            role=role,
            session=session.session.name,
            phase="loading",
            busy="loading",
            round=0,
            rounds=session.rounds,
            connected=None if role == "curator" else False,
            owners_connected=0 if role == "curator" else None,
            owners=len(session.owners) if role == "curator" else None,
            paused=False,
            beat=now,
            pid=os.getpid(),
            process_start=process_start(os.getpid()),
            started=now,
            ready=False,
            finished=False,
            exit_code=None,
            counters={},
            points_planned=session.session.points,
        )
        """The last picture; it is replaced, never changed, so that another thread may read it."""
        self._kept_out = False
        self.unwritten = 0
        """How often it could not be written."""
        self.round_times = RoundTimes()
        self._path = status_path(state, party)
        self._asks = asks(session.acquisition.rule)
        self._untold = TELLS_OF_ASKS if self._asks else frozenset[str]()
        self.spent: Callable[[], Mapping[str, str | float] | None] = lambda: None
        """Says what was spent so far, as `Status.spent` has it; called when a picture is taken."""
        self.spent_of_owners: Callable[[], Mapping[str, str | float] | None] = lambda: None
        """Likewise `Status.spent_of_owners`."""
        self.control = control or Control()
        """What its loop asks whether it is to end."""
        self._every = PROGRESS_SECONDS if self.control.watched else STATUS_SECONDS
        self._look: Callable[[], Seen] | None = None
        self._due = 0.0
        self._mark: Hashable = None

    def __enter__(self) -> Self:
        with suppress(OSError):  # who needs the directory more will say so
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._kept_out = self._is_another_s()
        self._write()
        try:
            self._tell()
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._see()
        self.status = replace(
            self.status,
            busy=None,
            busy_share=None,
            ready=False,
            finished=True,
            exit_code=_exit_code(error),
            beat=time.time(),
        )
        self._write()

    def begin(self, look: Callable[[], Seen]) -> None:
        """The loop runs from now on.

        Args:
            look: Says what the loop sees; called when a picture is taken, by the thread of the loop.
        """
        self._kept_out = False  # the transcript is this process's by now
        self._look = look
        self._picture()

    def turn(self, now: float, mark: Hashable) -> None:
        """The loop has turned.

        Args:
            now: On the party's clock, in seconds.
            mark: What makes a picture due at once when it changes.
        """
        if now < self._due and mark == self._mark:
            return
        self._due, self._mark = now + self._every, mark
        self._picture()

    @contextmanager
    def computing(self, what: str) -> Iterator[None]:
        """Announce that the loop will stand still for a computation that may take long."""
        before = self.status.busy
        self.status = replace(self.status, busy=what, beat=time.time())
        self._write()
        self._tell()
        yield
        self.status = replace(self.status, busy=before, busy_share=None, beat=time.time())
        self._write()
        self._tell()

    def computed(self, done: int, whole: int) -> None:
        """Say how far a long computation is, at most every `STATUS_SECONDS`.

        Args:
            done: Of its parts.
            whole: How many there are, at least one.
        """
        now = time.time()
        if now - self.status.beat >= self._every or done == whole:
            self.status = replace(self.status, busy_share=done / whole, beat=now)
            self._write()
            self._tell()

    def _picture(self) -> None:
        self._see()
        self.status = replace(self.status, busy=None, busy_share=None, ready=True, beat=time.time())
        self._write()
        self._tell()

    def _tell(self) -> None:
        # No more than the status file may say: where a rule asks, neither points nor names beside a round.
        if self.control.watched:  # a picture is made at every turn that changes something
            self.control.tell(self.status.progress)

    def _see(self) -> None:
        if self._look is not None:
            seen = self._look()
            told = {name: count for name, count in seen.counters.items() if name not in self._untold}
            self.status = replace(
                self.status,
                phase=seen.phase,
                round=seen.round,
                paused=seen.paused,
                connected=seen.connected,
                owners_connected=seen.owners_connected,
                # A round in which an owner that was asked did not answer buys less.
                points=None if self._asks else seen.points,
                points_per_second=None if self._asks else seen.points_per_second,
                seconds_left=seen.seconds_left,
                # Such a round waits only for an owner that was asked and is gone.
                missing=[] if self._asks and seen.round else list(seen.missing),
                spent=self.spent(),
                spent_of_owners=self.spent_of_owners(),
                counters={**told, "status_failures": self.unwritten},
            )

    def _is_another_s(self) -> bool:
        """Whether a party runs there whose status it is: which of both goes on, the transcript decides."""
        try:
            there = Status.read(self._path)
        except HushbidError:
            return False
        itself = there.process_start is None and there.pid == os.getpid()
        return not there.finished and not itself and there.is_running

    def _write(self) -> None:
        if self._kept_out:
            return
        try:
            self.status.write(self._path)
        except OSError as error:
            self.unwritten += 1
            if self.unwritten == 1:
                log(LogEvent.STATUS_UNWRITABLE, path=str(self._path), reason=error.strerror)


class AnnouncedNumerics:
    """A machine's numerics that announce the computations that may take long.

    Args:
        numerics: Carries them out.
        vitals: The party's.
    """

    def __init__(self, numerics: Numerics, vitals: Vitals) -> None:
        self._numerics = numerics
        self._vitals = vitals
        self.restore = numerics.restore

    def perform(self, effect: Computation) -> Event | None:
        if not effect.LONG:
            return self._numerics.perform(effect)
        with self._vitals.computing(effect.KIND):
            return self._numerics.perform(effect)


def _exit_code(error: BaseException | None) -> int:
    """What the process will end with."""
    if error is None:
        return int(ExitCode.DONE)
    if isinstance(error, HushbidError):
        return int(error.exit_code)
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    return int(ExitCode.BUG)
