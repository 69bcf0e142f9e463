"""A party's signs of life: pictures of its state for its status file, its metrics and its caller.

The main loop calls `Vitals.turn` at every turn, which costs one comparison. Every `STATUS_SECONDS`, and when
phase or pause change, it takes and writes a new picture. No thread writes it, as a hanging loop must look
like one. Computations that may take longer than a health check waits are announced (`Vitals.computing`), and
so is the loading of data before the loop runs.
"""

from __future__ import annotations

import os
import time
from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from itertools import accumulate
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Self

from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.errors import ExitCode, HushbidError
from hushbid.protocol.machine.machine import Computation, Event
from hushbid.protocol.privacy.acquisition import asks
from hushbid.protocol.runtime.control import PROGRESS_SECONDS, Control
from hushbid.protocol.runtime.driver import Numerics
from hushbid.protocol.runtime.interrupts import INTERRUPTED
from hushbid.protocol.runtime.telemetry.log_events import LogEvent
from hushbid.protocol.runtime.telemetry.logs import log
from hushbid.protocol.runtime.telemetry.status_file import Status, process_start, status_path
from hushbid.protocol.shortage import as_shortage, shortage_of

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
"""Interval of pictures, if nothing changes."""
LONGEST_WAIT_SECONDS: Final = 1.0
"""Longest wait of a loop, which has to show that it is alive."""
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
"""Counters that rise when an owner is asked for a point, or answers. Under a rule that asks, no party keeps
them: reading them round by round would reveal the asks.
"""


@dataclass(frozen=True, slots=True)
class Seen:
    """A loop's view of itself."""

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
    """The count of each possible reason, 0 included.

    A counter of Prometheus must exist before it counts: `increase` misses its first event otherwise.
    """
    return {reason.value: counts.get(reason, 0) for reason in reasons}


class RoundTimes:
    """Durations of rounds, counted by upper bounds, in seconds."""

    BOUNDS: Final = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)

    def __init__(self) -> None:
        self._counts = [0] * (len(self.BOUNDS) + 1)
        self._total = 0.0

    def add(self, seconds: float) -> None:
        self._counts[bisect_left(self.BOUNDS, seconds)] += 1
        self._total += seconds

    def cumulative(self) -> tuple[list[tuple[str, float]], float]:
        """Rounds up to each bound, in Prometheus's form, and the sum of all seconds."""
        bounds = [*(f"{bound:g}" for bound in self.BOUNDS), "+Inf"]
        return list(zip(bounds, accumulate(self._counts), strict=True)), self._total


class Vitals:
    """Keeps a party's status from its start to its end; a context manager.

    A failure to write a status, as on a full disk, does not affect the session: it is counted, and logged
    once.

    Args:
        state: The party's state directory; made if need be.
        control: Runs the party, and gets its progress.
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
        self.round_times = RoundTimes()
        self._path = status_path(state, party)
        self._asks = asks(session.acquisition.rule)
        self._untold = TELLS_OF_ASKS if self._asks else frozenset[str]()
        self.spent: Callable[[], Mapping[str, str | float] | None] = lambda: None
        """Returns what was spent so far, as in `Status.spent`; called for each picture."""
        self.spent_of_owners: Callable[[], Mapping[str, str | float] | None] = lambda: None
        """Likewise for `Status.spent_of_owners`."""
        self.control = control or Control()
        """Tells the loop whether to stop."""
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
            look: Returns the loop's view; called for each picture, in the loop's thread.
        """
        self._kept_out = False  # the transcript is this process's by now
        self._look = look
        self._picture()

    def turn(self, now: float, mark: Hashable) -> None:
        """The loop has turned.

        Args:
            now: On the party's clock, in seconds.
            mark: A change of it makes a picture due at once.
        """
        if now < self._due and mark == self._mark:
            return
        self._due, self._mark = now + self._every, mark
        self._picture()

    @contextmanager
    def computing(self, what: str) -> Iterator[None]:
        """Announce a possibly long computation, during which the loop stands still."""
        before = self.status.busy
        self.status = replace(self.status, busy=what, beat=time.time())
        self._write()
        self._tell()
        yield
        self.status = replace(self.status, busy=before, busy_share=None, beat=time.time())
        self._write()
        self._tell()

    def computed(self, done: int, whole: int) -> None:
        """Report the progress of a long computation, at most every `STATUS_SECONDS`.

        Args:
            whole: Number of all parts, at least one.
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
            shown: dict[str, Any] = {each.name: getattr(seen, each.name) for each in fields(seen)}
            shown |= {"missing": list(seen.missing), "counters": {**told, "status_failures": self.unwritten}}
            if self._asks:
                # A round in which an owner that was asked did not answer buys less. Such a round waits only
                # for an owner that was asked and is gone.
                missing = [] if seen.round else list(seen.missing)
                shown |= {"points": None, "points_per_second": None, "missing": missing}
            self.status = replace(
                self.status, **shown, spent=self.spent(), spent_of_owners=self.spent_of_owners()
            )

    def _is_another_s(self) -> bool:
        """Whether the status belongs to another running process: the transcript decides which one goes on."""
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
    """A machine's numerics that announce possibly long computations."""

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
    if error is None:
        return int(ExitCode.DONE)
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, HushbidError):
        return int(as_shortage(error).exit_code)
    return int(ExitCode.BUG if shortage_of(error) is None else ExitCode.SHORTAGE)
