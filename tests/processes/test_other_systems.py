"""Owners and the consumer run on systems without POSIX's files, modes and locks; the curator refuses."""

from __future__ import annotations

import fcntl
from pathlib import Path

from hushbid.protocol.names import CONSUMER, CURATOR
from tests.processes.cluster import SEALED, SECURE, Cluster

PRIVATE = {
    "target": {"mechanism": "gaussian", "epsilon": 1.0, "neighbours": "substitute-one"},
    "summary": {"mechanism": "filtered-gaussian", "epsilon": 1.0, "neighbours": "add-remove-one"},
    "session.allow_nonprivate": None,
}


def start_elsewhere(cluster: Cluster, name: str) -> None:
    # What a mode of POSIX would have refused says nothing there.
    (cluster.directory(name) / "secret.key").chmod(0o644)
    options = ("--session", "session.toml", "--config", "party.toml", "--json")
    cluster.run(name, ["-m", "tests.processes.other_system", cluster.role(name), *options], {})


def test_a_session_with_parties_on_another_system_is_that_session(tmp_path: Path) -> None:
    wide = {"features.dimension": 512}
    with Cluster(
        tmp_path, ("heron", "magpie"), rows=1100, changes=SECURE | SEALED | PRIVATE | wide
    ) as cluster:
        # φ of 1,100 points is more, and goes into a file.
        cluster.change("heron", {"memory_limit": 2**20}, file="party.toml")
        cluster.start(CURATOR, "magpie")
        for name in ("heron", CONSUMER):
            start_elsewhere(cluster, name)
        ended = cluster.end()
        assert [end.code for end in ended.values()] == [0] * 4, ended
        assert ended[CONSUMER].json["points_delivered"] == 20
        for name in ("heron", CONSUMER):
            cluster.verified(name)
        with cluster.transcript_path("heron").open("ab") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            start_elsewhere(cluster, "heron")
            assert "another process records" in cluster.end("heron")["heron"].error["what"]
        assert not list(cluster.directory("heron").glob(".features-*"))


def test_there_the_curator_says_what_it_needs(tmp_path: Path) -> None:
    with Cluster(tmp_path, ("heron",)) as cluster:
        start_elsewhere(cluster, CURATOR)
        error = cluster.end(CURATOR)[CURATOR].error
        assert error["exit_code"] == 4
        assert error["what"] == "The curator needs Linux, and this is Windows."
        assert not cluster.transcript_path(CURATOR).exists()
