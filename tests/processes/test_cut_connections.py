"""Connections that are cut repeatedly: frames are resent, and nothing arrives twice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tests.processes.cluster import Cluster, Ended, bodies
from tests.processes.proxy import Proxy

ROUNDS = 210
CUTS = 6
STEP = 1009
"""Bytes, times the number of the cut, that pass before it: another place of a frame each time."""
BEHIND = ("consumer", "heron")
"""Parties that reach the curator by way of the proxy."""


@dataclass(frozen=True)
class Session:
    cluster: Cluster
    ended: dict[str, Ended]
    accepted: int


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    place: Path = tmp_path_factory.mktemp("cut")
    pacer_name = "ostrich"
    # The proxy is there before the curator: handshakes fail until that has started, on a busy machine too.
    changes = {"session.points": ROUNDS, "timeouts.beat": 0.05, "timeouts.comeback": 20.0}
    with Cluster(place, ("heron", "magpie", pacer_name), rows=ROUNDS + 20, changes=changes) as cluster:
        proxy = Proxy(cluster.port)
        try:
            for name in BEHIND:
                cluster.change(name, {"network.address": f"tcp://127.0.0.1:{proxy.port}"})
            pacer = cluster.puppet(pacer_name)
            cluster.start("curator", "consumer", "heron", "magpie")
            for cut in range(1, CUTS + 1):
                stop = cut * ROUNDS // (CUTS + 1)
                back = cluster.log("curator").count("heron is here") + 1
                proxy.cut_after(STEP * cut)
                pacer.let_go()
                pacer.hold_bids_from(stop)
                cluster.until(lambda: pacer.held, f"round {stop}")
                cluster.until(lambda: not proxy.armed, "the cut")
                cluster.until(
                    lambda back=back: cluster.log("curator").count("heron is here") >= back,  # type: ignore[misc]
                    "heron's return",
                )
            pacer.let_go()
            ended = cluster.end()
        finally:
            proxy.close()
        yield Session(cluster, ended, proxy.accepted)


def test_everybody_finishes_and_all_points_are_delivered(session: Session) -> None:
    assert {name: end.code for name, end in session.ended.items()} == dict.fromkeys(
        ("curator", "consumer", "heron", "magpie"), 0
    )
    assert session.accepted >= CUTS + 2, "the connections were cut"
    assert session.ended["consumer"].json["points_delivered"] == ROUNDS
    assert session.ended["curator"].json["refusals"] == []


def test_what_one_side_says_it_sent_is_what_the_other_says_it_received(session: Session) -> None:
    of_curator = bodies(session.cluster.records("curator"), "curator")
    for name in ("consumer", "heron"):
        own = bodies(session.cluster.records(name), name)
        for key in own.keys() | of_curator.keys():
            # A farewell is not acknowledged: the last bytes of a connection may get lost with its end.
            if name in key and key[2] not in ("hello", "welcome", "farewell"):
                # Both keep what was sent again; each body came and went once but for that.
                assert list(dict.fromkeys(own[key])) == list(dict.fromkeys(of_curator[key])), key


def test_no_point_is_bought_twice(session: Session) -> None:
    path = session.cluster.directory("consumer") / "state" / "delivered.npz"
    with np.load(path) as delivered:
        identifiers = delivered["identifiers"].tolist()
        assert delivered["rounds"].tolist() == list(range(1, ROUNDS + 1))
    assert len(set(identifiers)) == ROUNDS


def test_nothing_recorded_is_lost(session: Session) -> None:
    assert not any(
        session.cluster.verified(name).torn_bytes for name in ("curator", "consumer", "heron", "magpie")
    )
