"""Processor time of running processes, read from outside.

Linux keeps a clock for each process (``clock_getcpuclockid``), in nanoseconds and with its ended threads.
``/proc/PID/stat`` has only hundredths of a second, the time of five rounds of a session.
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

__all__ = ["ProcessorSampler", "RoundCost", "Watch", "descendants", "processor_seconds", "tree_seconds"]

_BETWEEN_READINGS: Final = 0.01
"""Seconds between two readings, each of which takes some microseconds per process."""
_BETWEEN_LISTINGS: Final = 0.2
"""Seconds between two searches for new processes, each of which takes a hundred microseconds per process."""


@dataclass(frozen=True, slots=True)
class RoundCost:
    """The cost of rounds.

    Attributes:
        seconds: Wall-clock time.
        processor_seconds: Processor time of all participating processes.
    """

    rounds: int
    seconds: float
    processor_seconds: float

    @property
    def rate(self) -> float:
        return self.rounds / self.seconds


def processor_seconds(process: int) -> float | None:
    """Processor time of all threads of a process; None if it is gone."""
    try:
        return time.clock_gettime((~process << 3) | 2)  # Linux's clock number; 2 is CPUCLOCK_SCHED.
    except OSError:
        return None


def descendants(process: int) -> list[int]:
    """The running descendants of a process."""
    found, left = [], [process]
    while left:
        children = _children(left.pop())
        found += children
        left += children
    return found


def tree_seconds(process: int) -> float:
    """Processor time of a process and its running descendants."""
    return sum(filter(None, map(processor_seconds, [process, *descendants(process)])))


def _children(process: int) -> list[int]:
    found: list[int] = []
    try:
        for task in Path(f"/proc/{process}/task").iterdir():
            found += map(int, (task / "children").read_text().split())
    except (FileNotFoundError, ProcessLookupError):  # The process or one of its threads has ended.
        pass
    return found


class Watch(ABC):
    """A context in which a background thread samples processes."""

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
        """Sample until `_ended` is set."""


class ProcessorSampler(Watch):
    """Samples the processor time of a process's descendants in a background thread.

    So processor time can be looked up for wall-clock times that become known only later, from a transcript.

    Args:
        launcher: The process whose descendants are sampled. It does not count itself, as it only starts them
            and waits.
    """

    def __init__(self, launcher: int) -> None:
        super().__init__()
        self._launcher = launcher
        self._last: dict[int, float] = {}
        self._readings: list[tuple[float, float]] = []

    def __enter__(self) -> Self:
        # On a busy machine the thread's first reading can be late.
        self._read(descendants(self._launcher))
        return super().__enter__()

    def between(self, began: float, ended: float) -> float:
        """Processor seconds between two times of `time.monotonic`, interpolated between readings.

        Raises:
            ValueError: There is no reading before the first time, or none after the second.
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
                self._last[process] = spent  # An ended process keeps its last value.
        self._readings.append(((before + time.monotonic()) / 2, sum(self._last.values())))
