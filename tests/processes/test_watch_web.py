"""A session of processes is seen live, from before it begins until it is over: its public part alone."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hushbid.protocol.transcript.redaction import redact
from hushbid.replay.facts import Facts
from hushbid.replay.merging import facts_of
from tests.conftest import ROOT
from tests.processes.cluster import PATIENCE, Cluster


@pytest.fixture
def watch(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """`hushbid status --watch --web` of a run that does not exist yet."""
    command = [sys.executable, "-m", "hushbid", "status", "--watch", "--web", "--json"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HUSHBID_")}
    # A process whose starter ignores Ctrl-C ignores it too, as those do that a shell starts with `&`.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        process = subprocess.Popen(
            [*command, str(tmp_path)],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    finally:
        signal.signal(signal.SIGINT, before)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def line(watch: subprocess.Popen[str]) -> dict[str, Any]:
    """Its next line; if it has ended instead, why."""
    assert watch.stdout is not None
    text = watch.stdout.readline()
    assert text, watch.communicate()
    found: dict[str, Any] = json.loads(text)
    return found


def ask(address: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"{address}facts?since=0", timeout=PATIENCE) as answer:
        content = answer.read()
    # Before its first look the page has nothing newer than version 0, and no content is its answer.
    nothing: dict[str, Any] = {"awaited": [], "facts": None}
    return nothing | json.loads(gzip.decompress(content)) if content else nothing


def until(address: str, met: Callable[[dict[str, Any]], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not met(told := ask(address)):
        assert time.monotonic() < deadline, {**told, "facts": None}
        time.sleep(0.1)


def of_redacted(cluster: Cluster, place: Path) -> Facts:
    place.mkdir()
    copies = []
    for name in ("curator", "consumer", *cluster.owners):
        copies.append(place / f"{name}.transcript")
        with copies[-1].open("wb") as file:
            redact(cluster.transcript_path(name), file.write)
    return facts_of(copies)


def test_a_session_is_seen_to_its_end(tmp_path: Path, watch: subprocess.Popen[str]) -> None:
    address = line(watch)["address"]
    until(address, lambda told: bool(told["awaited"]) and told["facts"] is None)
    with Cluster(tmp_path, ("heron", "magpie")) as cluster:
        cluster.start_all()
        ended = cluster.end()
        assert {end.code for end in ended.values()} == {0}
        until(address, lambda told: bool(told["over"]))
        assert line(watch) == {"over": True}
        told = ask(address)
        assert told["over"] is True
        assert told["facts"] == json.loads(json.dumps(of_redacted(cluster, tmp_path / "copies").as_json()))
        assert [row[1] for row in told["parties"]] == ["ended"] * 4
        watch.send_signal(signal.SIGTERM)
        out, err = watch.communicate(timeout=PATIENCE)
    assert (watch.returncode, err) == (0, "")
    result = json.loads(out)
    assert result["over"] is True
    assert result["address"] == address
    assert result["steps"] == len(told["facts"]["steps"]["round"]) > 0


def test_who_does_not_wait_for_the_end_stops_it_by_ctrl_c(watch: subprocess.Popen[str]) -> None:
    assert "address" in line(watch)
    watch.send_signal(signal.SIGINT)
    out, err = watch.communicate(timeout=PATIENCE)
    assert (watch.returncode, err) == (0, "")
    assert json.loads(out)["over"] is False
