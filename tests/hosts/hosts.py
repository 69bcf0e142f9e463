"""A session whose parties each run on a host of their own, as `tests.hosts.network` makes them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from hushbid.protocol.names import CURATOR
from tests.hosts.network import NAMESPACES, Network
from tests.processes.cluster import Cluster

__all__ = ["OWNERS", "HostsCluster", "exact_session"]

OWNERS: Final = ("heron", "magpie", "ostrich")
_IPV6: Final = OWNERS[:2]
"""Owners that know the curator by its IPv6 address only."""


class HostsCluster(Cluster):
    """A `Cluster` whose parties each run on a host of a network, with CURVE.

    Args:
        place: An empty directory.
        network: Where the hosts are.
        rows: Points of each owner.
        changes: Values of the session file at dotted paths.
    """

    def __init__(self, place: Path, network: Network, *, rows: int, changes: Mapping[str, Any]) -> None:
        super().__init__(place, OWNERS, rows=rows, changes=changes)
        self.network = network
        curator = network.host(CURATOR)
        for name in self.names:
            address = f"[{curator.v6}]" if name in _IPV6 else curator.v4
            self.change(name, {"network.address": f"tcp://{address}:{self.port}"})
            self.change(name, {"durability": "fsync"}, file="party.toml")  # as deployed sessions need
        self.change(CURATOR, {"listen": f"tcp://*:{self.port}"}, file="party.toml")

    def namespace(self, name: str) -> Path:
        return NAMESPACES / self.network.host(name).namespace


def exact_session(points: int) -> dict[str, Any]:
    """A session that draws no noise, so that two runs of it can be compared to the last byte.

    Deployed sessions refuse simulated noise, and no two with secure noise are alike.
    """
    return {
        "session.points": points,
        "session.allow_nonprivate": True,
        "target": {"mechanism": "exact"},
        "summary": {"mechanism": "exact"},
        "acquisition.rule": "ask-all",
    }
