"""Parties run from Python: the command line's bytes, tables for files, threads, interruption, events."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from threadpoolctl import threadpool_info

import hushbid
from hushbid import Consumer, Curator, Owner, Progress
from hushbid.protocol.runtime.control import Watch
from tests.processes.cluster import PATIENCE, Cluster, Ended

POINTS, BATCH = 12, 2
NAMES = ["a", "b", "c"]
STATES = {
    "loading", "enrolling", "greeting", "mapping", "rounds", "waiting", "scoring", "delivering", "delivered",
    "closing", "leaving", "done",
}  # fmt: skip
TIMES = {"wall_seconds", "rounds_per_second"}
PLACES = {"transcript", "ledger", "data"}


@dataclass
class Parties:
    """A session's parties in Python, each to be run in a thread of its own."""

    parties: dict[str, Any]
    told: dict[str, list[Progress]]

    @contextmanager
    def running(self, *but: str) -> Iterator[dict[str, Future[Any]]]:
        """All except the named ones, in threads; what is left at the end is stopped."""
        started = {name: party for name, party in self.parties.items() if name not in but}
        with ThreadPoolExecutor(len(started)) as pool:
            try:
                yield {name: pool.submit(party.run) for name, party in started.items()}
            finally:
                for party in started.values():
                    party.stop()

    def results(self) -> dict[str, Any]:
        with self.running() as futures:
            return {name: future.result(PATIENCE) for name, future in futures.items()}


def parties_of(cluster: Cluster, *, state: str, **watches: Callable[[Progress], object]) -> Parties:
    """A cluster's parties, with other state directories; heron's points and D_v are tables."""
    told: dict[str, list[Progress]] = {name: [] for name in cluster.names}

    def watch(name: str) -> Watch:
        def heard(progress: Progress) -> None:
            told[name].append(progress)
            if name in watches:
                watches[name](progress)

        return heard

    def own(name: str) -> dict[str, Any]:
        place = cluster.directory(name)
        files = {"session": place / "session.toml", "config": str(place / "party.toml")}
        return files | {"state": place / state, "progress": watch(name)}

    parties: dict[str, Any] = {}
    for name in cluster.owners:
        place = cluster.directory(name)
        tables: dict[str, Any] = {}
        if name == "heron":
            tables = {"data": frame_of(place / "data.npz"), "ledger": place / "data.npz.ledger"}
            tables |= {"features": NAMES, "label": "label", "identifier": "bird"}
        parties[name] = Owner(**own(name), **tables)
    place = cluster.directory("consumer")
    with np.load(place / "seed.npz") as seeds:
        seed_set = pa.table(dict(zip(NAMES, seeds["features"].T, strict=True)))
    parties["consumer"] = Consumer(**own("consumer"), seed_set=seed_set, rehearsal=False)
    parties["curator"] = Curator(**own("curator"))
    return Parties(parties, told)


def frame_of(path: Path) -> Any:
    """An owner's file as a DataFrame whose index is no column."""
    with np.load(path) as file:
        values = dict(zip(NAMES, file["features"].T, strict=True))
        values |= {"label": file["labels"], "bird": file["identifiers"]}
        values |= {"notes": np.array(["nobody's business"] * len(file["labels"]))}
        return pd.DataFrame(values, index=np.arange(len(file["labels"])) + 7)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    changes = {"session.points": POINTS, "session.batch": BATCH}
    with Cluster(tmp_path_factory.mktemp("python"), ("heron", "magpie"), changes=changes) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def typed(cluster: Cluster) -> dict[str, Ended]:
    """How the command line ends."""
    cluster.start_all()
    return cluster.end()


@pytest.fixture(scope="module")
def called(cluster: Cluster, typed: dict[str, Ended]) -> tuple[Parties, dict[str, Any]]:
    """The same session from Python, all parties in threads of this process."""
    parties = parties_of(cluster, state="python")
    return parties, parties.results()


def test_python_and_the_command_line_buy_the_same_bytes(
    cluster: Cluster, typed: dict[str, Ended], called: tuple[Parties, dict[str, Any]]
) -> None:
    _, results = called
    by_hand = cluster.directory("consumer") / "state" / "delivered.npz"
    assert results["consumer"].data != by_hand
    assert results["consumer"].data.read_bytes() == by_hand.read_bytes()


def test_python_and_the_command_line_have_the_same_results_but_for_times_and_places(
    typed: dict[str, Ended], called: tuple[Parties, dict[str, Any]]
) -> None:
    _, results = called
    # `python -m consumer` does not rehearse, and says otherwise why than one that is told not to.
    aside = TIMES | PLACES | {"verdict_why"}
    for name, ended in typed.items():
        assert ended.code == 0, ended.err
        figures = json.loads(json.dumps(results[name].as_json()))
        assert list(figures) == list(ended.json), "in the same order, too"
        assert {each: figures[each] for each in figures if each not in aside} == {
            each: ended.json[each] for each in figures if each not in aside
        }


def test_results_are_typed(cluster: Cluster, called: tuple[Parties, dict[str, Any]]) -> None:
    _, results = called
    heron, consumer, curator = results["heron"], results["consumer"], results["curator"]
    assert (heron.owner, heron.points, heron.rounds) == ("heron", 40, POINTS // BATCH)
    assert isinstance(heron, hushbid.OwnerResult)
    assert isinstance(consumer, hushbid.ConsumerResult)
    assert isinstance(curator, hushbid.CuratorResult)
    assert (consumer.points_delivered, curator.points_delivered) == (POINTS, POINTS)
    assert (consumer.disputed, consumer.table) == (0, None)
    assert consumer.mmd2 == consumer.figures["weighted"]["mmd2"]
    assert [statement.as_json() for statement in curator.privacy] == curator.figures["privacy"]
    assert hushbid.Transcript(heron.transcript).party == "heron"
    found = hushbid.verify_transcripts([result.transcript for result in results.values()])
    assert found["ok"]
    assert found["missing"] == []


def test_a_table_is_kept_without_what_the_session_does_not_use(
    cluster: Cluster, called: tuple[Parties, dict[str, Any]]
) -> None:
    kept = cluster.directory("heron") / "python" / "data.parquet"
    assert pq.read_table(kept).column_names == [*NAMES, "label", "bird"]
    assert kept.stat().st_mode & 0o777 == 0o600


def test_events_hold_names_and_public_numbers_alone(
    cluster: Cluster, called: tuple[Parties, dict[str, Any]]
) -> None:
    """Points follow from the round: a round buys a batch, whatever the data are."""
    told = called[0].told
    assert {each.name for each in dataclasses.fields(Progress)} == {
        "party", "phase", "round", "rounds", "points", "points_planned", "points_per_second", "seconds_left",
        "paused", "owners_connected", "owners", "busy", "busy_share", "missing",
    }  # fmt: skip
    for name, events in told.items():
        assert events[0].phase == "loading"
        assert events[-1].phase == "done"
        assert [event.round for event in events] == sorted(event.round for event in events)
        for event in events:
            assert (event.party, event.rounds) == (name, POINTS // BATCH)
            assert event.phase in STATES
            if name == "curator" and event.points is not None:
                assert event.points in {BATCH * max(event.round - 1, 0), BATCH * event.round}
                assert set(event.missing) <= set(cluster.owners)
            else:
                assert event.points is None
                assert event.missing == ()
    assert {event.missing for event in told["curator"]} >= {("heron", "magpie"), ()}
    assert any(event.busy == "appraise" for event in told["consumer"])


def test_a_party_that_ends_gives_python_its_threads_and_handlers_back(
    cluster: Cluster, called: tuple[Parties, dict[str, Any]]
) -> None:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    threads = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    def interrupt(progress: Progress) -> None:
        if progress.phase == "greeting":
            os.kill(os.getpid(), signal.SIGINT)

    alone = parties_of(cluster, state="interrupted", heron=interrupt).parties["heron"]
    with pytest.raises(hushbid.Stopped, match=r"Stopped by SIGINT; what was recorded is kept\.") as stopped:
        alone.run()
    assert "goes on where it was" in stopped.value.advice
    assert {number: signal.getsignal(number) for number in before} == before
    assert [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"] == threads


def test_one_that_is_stopped_goes_on_where_it_was(cluster: Cluster, typed: dict[str, Ended]) -> None:
    """Another thread stops it in the middle of a session, whose bytes stay what they were."""
    reached, stopped = threading.Event(), threading.Event()

    def at_the_third(progress: Progress) -> None:
        if progress.round >= 3:
            reached.set()
            stopped.wait(PATIENCE)  # the other rounds take milliseconds

    parties = parties_of(cluster, state="stopped", curator=at_the_third)
    with parties.running() as futures:
        assert reached.wait(PATIENCE)
        parties.parties["curator"].stop()
        stopped.set()
        with pytest.raises(hushbid.Stopped, match=r"Stopped by stop\(\)"):
            futures["curator"].result(PATIENCE)
        result = parties.parties["curator"].run()
        assert result.points_delivered == POINTS
        bought = futures["consumer"].result(PATIENCE)
    by_hand = cluster.directory("consumer") / "state" / "delivered.npz"
    assert bought.data.read_bytes() == by_hand.read_bytes()


def test_a_stop_before_the_start_counts(cluster: Cluster) -> None:
    party = parties_of(cluster, state="early").parties["magpie"]
    party.stop()
    with pytest.raises(hushbid.Stopped):
        party.run()
    transcript = cluster.directory("magpie") / "early" / "magpie.transcript"
    assert next(hushbid.Transcript(transcript).show())["type"] == "header"
    assert [part["type"] for part in hushbid.Transcript(transcript).show()] == ["header", "end"]


def test_what_a_callback_raises_ends_the_run(cluster: Cluster) -> None:
    class Enough(Exception):
        pass

    def enough(progress: Progress) -> None:
        if progress.phase == "greeting":
            raise Enough

    party = parties_of(cluster, state="raised", magpie=enough).parties["magpie"]
    with pytest.raises(Enough):
        party.run()


def test_a_table_needs_a_ledger_and_is_refused_without_a_value_of_it(cluster: Cluster) -> None:
    place = cluster.directory("heron")
    files: dict[str, Any] = {"session": place / "session.toml", "config": place / "party.toml"}
    files |= {"state": place / "refused"}
    table = frame_of(place / "data.npz")
    with pytest.raises(hushbid.ConfigError, match=r"`data` is a table, .* lifetime ledger") as refused:
        Owner(**files, data=table).run()
    assert "ledger" in refused.value.advice
    mixed = {"a": ["secret", 17, None]}
    with pytest.raises(
        hushbid.DataError, match="data: column 'a' has values of mixed or unknown types"
    ) as mistyped:
        Owner(**files, data=mixed, ledger=place / "other.ledger").run()
    assert "secret" not in str(mistyped.value)
    kept = place / "refused" / "data.parquet"
    assert not kept.exists()
    with pytest.raises(hushbid.DataError):  # a column too many: the label is no feature
        Owner(**files, data=table, ledger=place / "other.ledger").run()
    consumer = files | {"config": cluster.directory("consumer") / "party.toml"}
    with pytest.raises(hushbid.ConfigError, match="`validation` is a table"):
        Consumer(**consumer, validation=table).run()
    shown = repr(Owner(**files, data=table)) + repr(Consumer(**consumer, validation=table, seed_set=table))
    assert "heron-0" not in shown
    assert "data=" not in shown


def test_files_that_cannot_be_are_refused_by_the_errors_of_the_command_line(cluster: Cluster) -> None:
    place = cluster.directory("curator")
    with pytest.raises(hushbid.ConfigError) as refused:
        Curator(place / "nowhere.toml", place / "party.toml").run()
    assert "nowhere.toml" in refused.value.what
    assert refused.value.exit_code == 4
    with pytest.raises(hushbid.ConfigError, match="--session or --invitation"):
        Owner().run()
    missing = place.parent / "magpie"
    with pytest.raises(hushbid.KeyFileError):
        Owner(session=missing / "session.toml", config=missing / "party.toml", key=missing / "none").run()
