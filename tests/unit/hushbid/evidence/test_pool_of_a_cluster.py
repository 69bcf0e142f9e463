"""An experiment on a Dask cluster has the same result, even if a worker is killed in it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hushbid.evidence.pool import results_of
from hushbid.lab.experiment_options import SelectionOptions
from hushbid.lab.experiments.runner import run
from hushbid.lab.experiments.selection import selection
from hushbid.protocol.errors import ConfigError

distributed = pytest.importorskip("distributed")

OPTIONS = SelectionOptions("digits", epsilons=[1.0], points=[20], seeds=6)


@pytest.fixture
def cluster() -> Iterator[Any]:
    """Two worker processes, which a nanny restarts when they die."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    ) as found:
        yield found


def test_a_scheduler_that_does_not_answer_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hushbid.evidence.pool.REACHED_WITHIN", 0.3)
    with pytest.raises(ConfigError, match=r"No Dask scheduler answers at tcp://127\.0\.0\.1:9\b"):
        list(results_of(abs, [1], jobs=1, scheduler="tcp://127.0.0.1:9"))
    assert not [thread for thread in threading.enumerate() if thread.name == "IO loop"]


@pytest.mark.parametrize("address", ["nonsense://x:1", "tcp://", ""])
def test_an_address_that_is_none_is_refused(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hushbid.evidence.pool.REACHED_WITHIN", 0.3)
    with pytest.raises(ConfigError, match="No Dask scheduler"):
        list(results_of(abs, [1], jobs=1, scheduler=address))


@pytest.mark.slow
def test_a_scheduler_without_workers_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hushbid.evidence.pool.REACHED_WITHIN", 2.0)
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=None, processes=True) as empty,
        pytest.raises(ConfigError, match="has no workers"),
    ):
        list(results_of(abs, [1], jobs=1, scheduler=empty.scheduler_address))


@pytest.mark.slow
def test_a_worker_that_is_killed_in_the_run_changes_no_figure(cluster: Any, tmp_path: Path) -> None:
    with distributed.Client(cluster, set_as_default=False) as client:
        workers = list(client.run(os.getpid).values())
    assert len(set(workers)) == 2
    handed_out: list[str] = []

    def kill_one(what: str) -> None:
        handed_out.append(what)
        if len(handed_out) == 3:
            os.kill(workers[0], signal.SIGKILL)

    by_cluster = SelectionOptions(
        "digits",
        epsilons=[1.0],
        points=[20],
        seeds=6,
        scheduler=cluster.scheduler_address,
        out=tmp_path,
        say=kill_one,
    )
    shared, alone = run(selection, by_cluster), run(selection, OPTIONS)
    assert len(handed_out) == 6
    assert not Path(f"/proc/{workers[0]}").exists(), "it was killed"
    assert [row.mmd2_each for row in shared.rows] == [row.mmd2_each for row in alone.rows]
    assert len(list((tmp_path / "cells").iterdir())) == 6
