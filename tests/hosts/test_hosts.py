"""Owners on hosts of their own, on a network that delays and loses, that is cut, and whose hosts fail."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hushbid.protocol.names import CURATOR
from hushbid.transcripts.verification.whole_session import verify_all
from tests.hosts.hosts import OWNERS, HostsCluster, exact_session
from tests.hosts.network import Network, why_no_network
from tests.processes.cluster import PATIENCE, SEALED, SECURE, Cluster, Ended, bodies
from tests.processes.recovery import delivery, differences

DELAY, LOSS = 0.05, 0.02
POINTS = 20
POINTS_OF_CUT = 150
"""Rounds that last longer than TCP takes to notice that it may go on."""
PATIENT: dict[str, Any] = {
    f"timeouts.{name}": 60.0
    for name in ("enrolment", "round", "pause", "delivery", "comeback", "abandon", "silence")
}
"""Nobody is given up because packets are lost."""

_why_not = why_no_network()
pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(_why_not is not None, reason=_why_not or ""),
]


def all_well(cluster: Cluster) -> dict[str, Ended]:
    ended = cluster.end(seconds=PATIENCE)
    assert {name: how.code for name, how in ended.items()} == dict.fromkeys(cluster.names, 0)
    return ended


def verify(cluster: Cluster) -> None:
    """Verify all transcripts together."""
    assert verify_all([cluster.transcript_path(name) for name in cluster.names])["ok"]


def exchanged(cluster: Cluster) -> dict[tuple[str, str, str], list[bytes]]:
    """All messages in the curator's transcript, except those with a transcript's head."""
    found = bodies(cluster.records(CURATOR), CURATOR)
    return {key: sent for key, sent in found.items() if key[2] not in ("close", "farewell")}


@pytest.fixture(scope="module")
def on_loopback(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The session to compare sessions on hosts with."""
    changes = PATIENT | exact_session(POINTS)
    with Cluster(tmp_path_factory.mktemp("loopback"), OWNERS, changes=changes) as cluster:
        cluster.start_all()
        all_well(cluster)
        yield cluster


def check_same_selection(cluster: Cluster, expected: Cluster) -> None:
    """Check for the same points of the same owners in the same rounds, and agreeing transcripts."""
    assert not differences(delivery(cluster), delivery(expected))
    verify(cluster)


def test_delay_and_loss_do_not_change_the_selection(tmp_path: Path, on_loopback: Cluster) -> None:
    changes = PATIENT | exact_session(POINTS)
    with Network(delay=DELAY, loss=LOSS) as network:
        with HostsCluster(tmp_path, network, rows=40, changes=changes) as cluster:
            cluster.start_all()
            ended = all_well(cluster)
            check_same_selection(cluster, on_loopback)
            assert exchanged(cluster) == exchanged(on_loopback)
        assert network.lost > 0
        seconds = ended[CURATOR].json["wall_seconds"]
        assert seconds > POINTS * 2 * DELAY, "every round goes there and back"


def test_a_sealed_session_with_secure_noise_ends_well(tmp_path: Path) -> None:
    changes = PATIENT | SEALED | SECURE | {"session.points": POINTS}
    with (
        Network(delay=DELAY, loss=LOSS) as network,
        HostsCluster(tmp_path, network, rows=40, changes=changes) as cluster,
    ):
        cluster.start_all()
        ended = all_well(cluster)
        assert ended["consumer"].json["points_delivered"] == POINTS
        assert ended[CURATOR].json["absences"] == {}
        verify(cluster)


def test_a_curators_host_that_fails_and_comes_back(tmp_path: Path, on_loopback: Cluster) -> None:
    changes = PATIENT | exact_session(POINTS) | {"timeouts.silence": 2.0}
    with (
        Network(delay=DELAY / 5, loss=LOSS) as network,
        HostsCluster(tmp_path, network, rows=40, changes=changes) as cluster,
    ):
        cluster.start_all()
        cluster.until(lambda: cluster.round() >= POINTS // 3, "some rounds")
        network.cut(CURATOR)  # so that nobody hears of its end
        cluster.signal(CURATOR, signal.SIGKILL)
        cluster.end(CURATOR)
        network.replace(CURATOR)
        network.heal(CURATOR)
        cluster.start(CURATOR)
        all_well(cluster)
        check_same_selection(cluster, on_loopback)


def test_who_is_cut_off_past_the_deadline_is_absent_and_comes_back(tmp_path: Path) -> None:
    limits = {"timeouts.round": 30.0, "timeouts.comeback": 0.5, "timeouts.silence": 5.0, "timeouts.beat": 0.2}
    changes = PATIENT | exact_session(POINTS_OF_CUT) | limits
    cut_off, cut_one_way, _ = OWNERS
    with (
        Network(delay=DELAY / 2, loss=0.0) as network,
        HostsCluster(tmp_path, network, rows=POINTS_OF_CUT, changes=changes) as cluster,
    ):
        cluster.start_all()
        cluster.until(lambda: cluster.round() >= 5, "some rounds")
        network.cut(cut_off)
        network.cut(cut_one_way, sends=False)  # the curator hears it, and it does not hear the curator
        cut_in = cluster.round()
        cluster.until(lambda: cluster.round() >= cut_in + 4, "rounds without them")
        for name in (cut_off, cut_one_way):
            network.heal(name)
        ended = all_well(cluster)
        absences = ended[CURATOR].json["absences"]
        assert set(absences) == {cut_off, cut_one_way}
        for name, missed in absences.items():
            assert 2 <= missed < POINTS_OF_CUT - cut_in - 10, f"{name} came back while there were rounds"
        assert ended[CURATOR].json["points_delivered"] == POINTS_OF_CUT
        verify(cluster)
