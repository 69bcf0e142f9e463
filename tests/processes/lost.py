"""Sessions brought to the middle of a round, in which parties are then lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from hushbid.protocol.wire.codec import Direction, decode_message
from hushbid.protocol.wire.messages import Bid
from tests.processes.cluster import Cluster, Ended, Puppet, bodies

__all__ = [
    "MIDDLE",
    "PROCESSES",
    "QUICK",
    "ROUNDS",
    "Make",
    "all_verify",
    "bid_rounds",
    "codes",
    "make",
    "to_the_middle",
]

PACER = "ostrich"
"""An owner on the test's side: a round lasts while it holds its bid back."""
PROCESSES = ("curator", "consumer", "heron", "magpie")
ROUNDS = 12
MIDDLE = 5
QUICK: dict[str, Any] = {"timeouts__silence": 2.0, "timeouts__abandon": 4.0, "timeouts__delivery": 4.0}
"""For tests that wait until somebody is given up; a party that a busy machine keeps waiting is not."""


Make = Callable[..., Cluster]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[Cluster] = []

    def make_cluster(owners: tuple[str, ...] = ("heron", "magpie", PACER), **changes: object) -> Cluster:
        values = {"session.points": ROUNDS} | {name.replace("__", "."): v for name, v in changes.items()}
        place = tmp_path / str(len(made))
        place.mkdir()
        made.append(Cluster(place, owners, changes=values))
        return made[-1]

    yield make_cluster
    for cluster in made:
        cluster.__exit__()


def to_the_middle(cluster: Cluster) -> Puppet:
    """Start the session, and hold it in its middle round, for which all others have bid."""
    pacer = cluster.puppet(PACER)
    pacer.hold_bids_from(MIDDLE)
    cluster.start(*PROCESSES)
    cluster.until(lambda: bid_rounds(cluster, "heron")[-1:] == [MIDDLE], "heron's bid")
    cluster.until(lambda: bid_rounds(cluster, "magpie")[-1:] == [MIDDLE], "magpie's bid")
    cluster.until(lambda: pacer.held, "the pacer's bid")
    return pacer


def bid_rounds(cluster: Cluster, owner: str) -> list[int]:
    """The rounds for which the curator has an owner's bid."""
    found = bodies(cluster.records("curator"), "curator").get((owner, "curator", "bid"), [])
    return [cast(Bid, decode_message(Direction.OWNER_TO_CURATOR, body)).round for body in found]


def codes(ended: dict[str, Ended]) -> dict[str, int]:
    return {name: end.code for name, end in ended.items()}


def all_verify(cluster: Cluster) -> bool:
    return not any(cluster.verified(name).torn_bytes for name in PROCESSES)
