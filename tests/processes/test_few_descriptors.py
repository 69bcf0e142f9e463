"""A curator that may open few files, and strangers who take all that they can get."""

from __future__ import annotations

import contextlib
import errno
import os
import selectors
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.processes.cluster import SEALED, Cluster
from tests.processes.watch import Watch

MOST_FILES = 128
"""Half of the connections that strangers have where files are not short."""
HELD = 500
_PAUSE = 0.0005
"""Seconds between two connections: many more than the curator has descriptors, in each second."""
_LIMITED = (
    "import resource, runpy, sys\n"
    "most = int(sys.argv.pop(1))\n"
    "resource.setrlimit(resource.RLIMIT_NOFILE, (most // 2, most))\n"
    "runpy.run_module('curator', run_name='__main__', alter_sys=True)\n"
)


def start_curator(cluster: Cluster, most_files: int) -> None:
    own = ["--session", "session.toml", "--config", "party.toml", "--json"]
    cluster.run("curator", ["-c", _LIMITED, str(most_files), *own], {})


@contextlib.contextmanager
def crowd(port: int) -> Iterator[list[int]]:
    """Strangers that hold all connections, and replace each one that is cut. Yields their number."""
    over = threading.Event()
    made = [0]

    def connect() -> None:
        # Not from where the owners are: who floods from their address has them wait with it.
        where, source = ("127.0.0.1", port), ("127.0.0.2", 0)
        with selectors.DefaultSelector() as selector:
            while not over.wait(_PAUSE):
                if len(selector.get_map()) < HELD:
                    with contextlib.suppress(OSError):
                        connection = socket.create_connection(where, timeout=1.0, source_address=source)
                        selector.register(connection, selectors.EVENT_READ)
                        made[0] += 1
                for key, _ in selector.select(0):
                    assert isinstance(key.fileobj, socket.socket)
                    with contextlib.suppress(OSError):
                        if key.fileobj.recv(1_000):  # a greeting
                            continue
                    selector.unregister(key.fileobj)
                    key.fileobj.close()
            for key in list(selector.get_map().values()):
                selector.unregister(key.fileobj)
                assert isinstance(key.fileobj, socket.socket)
                key.fileobj.close()

    thread = threading.Thread(target=connect)
    thread.start()
    try:
        yield made
    finally:
        over.set()
        thread.join()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(tmp_path, ("heron", "magpie"), changes=SEALED) as cluster:
        yield cluster


def test_strangers_who_connect_and_say_nothing_keep_no_party_out_and_no_file_closed(cluster: Cluster) -> None:
    start_curator(cluster, MOST_FILES)
    cluster.until(lambda: "curator.listening" in cluster.log("curator"), "a curator")
    watch = Watch(cluster)
    with crowd(cluster.port) as made:
        cluster.until(lambda: made[0] > 4 * MOST_FILES, "a crowd")
        cluster.start("consumer", "heron", "magpie")
        most = 0

        def all_have_ended() -> bool:
            nonlocal most
            if cluster.running("curator"):
                with contextlib.suppress(OSError):
                    most = max(most, watch.descriptors())
            return not any(map(cluster.running, cluster.names))

        cluster.until(all_have_ended, "the end of the session")
    assert {name: ended.code for name, ended in cluster.end().items()} == dict.fromkeys(cluster.names, 0)
    assert most > MOST_FILES // 2, "the crowd had what there was"
    log = cluster.log("curator")
    assert "(crowd)" in log, "connections were cut"
    assert "unwritable" not in log
    assert os.strerror(errno.EMFILE) not in log


def test_a_curator_that_may_open_too_few_files_says_so_before_it_listens(cluster: Cluster) -> None:
    start_curator(cluster, 64)
    ended = cluster.end("curator")["curator"]
    assert ended.code == 4
    assert ended.error["kind"] == "ConfigError"
    assert "lets this process open 64 files, and a curator of 3 other parties needs" in ended.error["what"]
    assert "ulimit -n" in ended.error["advice"]
    assert "curator.listening" not in ended.err
