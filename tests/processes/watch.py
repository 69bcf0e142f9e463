"""The machine's resources that a curator's process uses."""

from __future__ import annotations

import ctypes
import os
import time
from pathlib import Path

from tests.processes.cluster import Cluster

__all__ = ["Watch"]


class Watch:
    """Samples the curator's process."""

    def __init__(self, cluster: Cluster) -> None:
        process = cluster.processes["curator"].pid
        self._place = Path("/proc") / str(process)
        self._clock = ctypes.c_int()
        assert ctypes.CDLL(None).clock_getcpuclockid(process, ctypes.byref(self._clock)) == 0

    def memory(self) -> int:
        """Resident bytes."""
        return int((self._place / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def processor_seconds(self) -> float:
        """Processor seconds of all its threads, to the microsecond."""
        return time.clock_gettime(self._clock.value)

    def descriptors(self) -> int:
        return len(os.listdir(self._place / "fd"))
