"""The machine's resources that a curator's process uses."""

from __future__ import annotations

import os
from pathlib import Path

from tests.processes.cluster import Cluster

__all__ = ["Watch"]


class Watch:
    """Samples the curator's process."""

    def __init__(self, cluster: Cluster) -> None:
        self._place = Path("/proc") / str(cluster.processes["curator"].pid)

    def memory(self) -> int:
        """Resident bytes."""
        return int((self._place / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def processor_seconds(self) -> float:
        """Processor seconds of all its threads."""
        fields = (self._place / "stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def descriptors(self) -> int:
        return len(os.listdir(self._place / "fd"))
