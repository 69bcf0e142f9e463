"""A watcher of a curator's progress that stops reading does not stop the session."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

from hushbid.running.fork_server import party_environment
from tests.processes.cluster import Cluster


def test_a_full_progress_pipe_holds_nobody_up(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    try:
        size = fcntl.fcntl(writing, fcntl.F_GETPIPE_SZ)
        assert os.write(writing, bytes(size)) == size, "it is full"
        with Cluster(tmp_path, ("heron", "magpie")) as cluster:
            cluster.start("consumer", *cluster.owners)
            arguments = ["--session", "session.toml", "--config", "party.toml", "--json"]
            with (
                (tmp_path / "said" / "curator.out").open("wb") as out,
                (tmp_path / "said" / "curator.err").open("wb") as err,
            ):
                cluster.processes["curator"] = subprocess.Popen(
                    [sys.executable, "-P", "-m", "curator", *arguments, "--progress-fd", str(writing)],
                    cwd=cluster.directory("curator"),
                    env=party_environment(os.environ),
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    pass_fds=(writing,),
                )
            ended = cluster.end()
        assert {end.code for end in ended.values()} == {0}
    finally:
        os.close(reading)
        os.close(writing)
