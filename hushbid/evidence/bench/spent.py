"""Processor time of processes that are running, read from outside of them.

Linux keeps a clock for each process (``clock_getcpuclockid``), in nanoseconds and with the threads that have
ended. ``/proc/PID/stat`` has hundredths of a second, which is five rounds of a session.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import numpy as np

__all__ = ["RoundCost", "Spending", "Watch", "descendants", "processor_seconds", "tree_seconds"]

_BETWEEN_READINGS: Final = 0.01
"""Seconds. A reading takes some microseconds of each process."""
_BETWEEN_LISTINGS: Final = 0.2
"""Seconds between two looks for new processes, each of which takes a hundred microseconds of each."""


@dataclass(frozen=True, slots=True)
class RoundCost:
    """What rounds took.

    Attributes:
        seconds: By the wall clock.
        processor_seconds: Of all processes that take part.
    """

    rounds: int
    seconds: float
    processor_seconds: float

    @property
    def rate(self) -> float:
        """Rounds a second."""
        return self.rounds / self.seconds


def processor_seconds(process: int) -> float | None:
    """What all threads of a process have used; None: it is gone."""
    try:
        return time.clock_gettime((~process << 3) | 2)  # Linux's number of the clock: 2 is CPUCLOCK_SCHED
    except OSError:
        return None


def descendants(process: int) -> list[int]:
    """The children of a process, and theirs, that are there."""
    found, left = [], [process]
    while left:
        children = _children(left.pop())
        found += children
        left += children
    return found


def tree_seconds(process: int) -> float:
    """What a process and its descendants have used, without those that have ended."""
    return sum(filter(None, map(processor_seconds, [process, *descendants(process)])))


def _children(process: int) -> list[int]:
    found: list[int] = []
    try:
        for task in Path(f"/proc/{process}/task").iterdir():
            found += map(int, (task / "children").read_text().split())
    except (FileNotFoundError, ProcessLookupError):  # the process, or a thread of it, has ended
        pass
    return found


class Watch(ABC):
    """A context in which a thread of its own looks at processes from time to time."""

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._ended.set()
        self._thread.join()

    @abstractmethod
    def _look(self) -> None:
        """Look until `_ended` is set."""


class Spending(Watch):
    """Reads the processor time of a process's descendants from time to time, in a thread of its own.

    So a time of the wall clock that is known only later, from a transcript, still has its processor time.

    Args:
        launcher: The process whose descendants are read. It does not count itself: it starts them and waits.
    """

    def __init__(self, launcher: int) -> None:
        super().__init__()
        self._launcher = launcher
        self._last: dict[int, float] = {}
        self._readings: list[tuple[float, float]] = []

    def __enter__(self) -> Self:
        # On a busy machine the thread's own first reading can be late.
        self._read(descendants(self._launcher))
        return super().__enter__()

    def between(self, began: float, ended: float) -> float:
        """Processor seconds between two times of `time.monotonic`, between readings in proportion.

        Raises:
            ValueError: Nothing was read before one, or after the other.
        """
        times, spent = np.array(self._readings).reshape(-1, 2).T
        if not len(times) or began < times[0] or ended > times[-1]:
            raise ValueError("nothing was read at that time")
        return float(np.interp(ended, times, spent) - np.interp(began, times, spent))

    def _look(self) -> None:
        listed = -np.inf
        processes: list[int] = []
        while not self._ended.is_set():
            if time.monotonic() - listed > _BETWEEN_LISTINGS:
                processes, listed = descendants(self._launcher), time.monotonic()
            self._read(processes)
            self._ended.wait(_BETWEEN_READINGS)
        self._read(processes)

    def _read(self, processes: Iterable[int]) -> None:
        before = time.monotonic()
        for process in processes:
            spent = processor_seconds(process)
            if spent is not None:
                self._last[process] = spent  # one that has ended keeps what it had
        self._readings.append(((before + time.monotonic()) / 2, sum(self._last.values())))
