"""A session whose party runs twice, or comes back after the others have given it up."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from hushbid.protocol.errors import ExitCode
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.transcript.record import Record
from tests.processes.cluster import Cluster, bodies

OWNERS = ("heron", "ostrich")
PACER = "ostrich"
"""An owner on the test's side: a round lasts while it holds its bid back."""
ROUNDS = 6


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    changes = {
        "session.points": ROUNDS,
        "timeouts.delivery": 8.0,
        "timeouts.abandon": 120.0,
        "timeouts.comeback": 10.0,
    }
    with Cluster(tmp_path, OWNERS, changes=changes) as made:
        yield made


def kinds(records: Sequence[Record]) -> list[str]:
    """A party's events, with the names of timers and messages."""
    found = []
    for record in records:
        frame: Any = record.event.private.get("frame", {})
        more = record.event.public.get("name") or frame.get("message")
        found.append(f"{record.event.kind}:{more}" if more else record.event.kind)
    return found


def test_of_an_owner_that_runs_twice_the_newer_process_goes_on_and_the_older_is_told(
    cluster: Cluster,
) -> None:
    """Both have the key, and neither has anything of the session that the other lacks."""
    cluster.start(CURATOR)
    older = cluster.puppet("heron")
    cluster.until(lambda: any(message.kind == "welcome" for message in older.heard), "the older's welcome")
    cluster.start("heron")
    cluster.until(lambda: older.finish is not None, "the older's end")
    assert older.finish is not None
    assert older.finish.code is ExitCode.USAGE
    assert "(duplicate)" in older.finish.reason
    assert "stop the other process" in older.finish.advice
    cluster.start(CONSUMER, PACER)
    ended = cluster.end()
    assert {name: end.code for name, end in ended.items()} == dict.fromkeys((CURATOR, CONSUMER, *OWNERS), 0)
    assert ended[CURATOR].json["refusals"] == []
    assert kinds(cluster.records(CURATOR))[:3] == ["started", "received:hello", "received:hello"]


def test_who_says_hello_later_on_an_older_connection_is_told_and_the_newer_one_goes_on(
    cluster: Cluster,
) -> None:
    cluster.start(CURATOR)
    older = cluster.puppet("heron")
    older.hold = lambda frame: frame.kind == "hello"
    older.muted = True
    cluster.until(lambda: older.held, "the older's connection")
    cluster.start("heron")
    cluster.until(lambda: "heron is here" in cluster.log(CURATOR), "the newer's welcome")
    older.let_go()
    cluster.until(lambda: older.finish is not None, "the older's end")
    assert older.finish is not None
    assert older.finish.code is ExitCode.USAGE
    assert [message.kind for message in older.heard] == ["refused"]
    assert [refusal.code for refusal in older.refused] == ["duplicate"]
    cluster.start(CONSUMER, PACER)
    ended = cluster.end()
    assert {name: end.code for name, end in ended.items()} == dict.fromkeys((CURATOR, CONSUMER, *OWNERS), 0)
    assert ended[CURATOR].json["refusals"] == []
    assert kinds(cluster.records(CURATOR))[:2] == ["started", "received:hello"]


def test_what_was_bought_is_kept_for_a_consumer_that_comes_after_the_curator_has_given_the_wait_up(
    cluster: Cluster,
) -> None:
    pacer = cluster.puppet(PACER)
    pacer.hold_bids_from(ROUNDS)
    cluster.start(CURATOR, CONSUMER, "heron")
    cluster.until(lambda: cluster.round() == ROUNDS, "the last round")
    cluster.signal(CONSUMER, signal.SIGKILL)
    cluster.end(CONSUMER)
    pacer.let_go()
    stopped = cluster.end(CURATOR)[CURATOR]
    assert stopped.code == ExitCode.TIMEOUT
    assert "no receipt of part 1" in stopped.error["what"]
    assert "start the curator again with the same state directory" in stopped.error["advice"]
    assert kinds(cluster.records(CURATOR))[-1] == "timer:delivery"
    assert cluster.running("heron"), "the session is not over for it"
    cluster.start(CONSUMER)
    cluster.until(lambda: "session.resumed" in cluster.log(CONSUMER), "the consumer, which may start slowly")
    cluster.start(CURATOR)
    ended = cluster.end()
    assert {name: end.code for name, end in ended.items()} == {CURATOR: 0, CONSUMER: 0, "heron": 0}
    assert ended[CONSUMER].json["points_delivered"] == ROUNDS
    assert "restarted" in kinds(cluster.records(CURATOR))
    assert not any(cluster.verified(name).torn_bytes for name in (CURATOR, CONSUMER, "heron"))


def test_a_curator_that_is_started_again_while_it_delivers_sends_the_part_again(cluster: Cluster) -> None:
    cluster.change(CURATOR, {"timeouts.delivery": 120.0})
    pacer = cluster.puppet(PACER)
    pacer.hold_bids_from(ROUNDS)
    cluster.start(CURATOR, CONSUMER, "heron")
    cluster.until(lambda: cluster.round() == ROUNDS, "the last round")
    cluster.signal(CONSUMER, signal.SIGSTOP)
    pacer.let_go()
    part = (CURATOR, CONSUMER, "delivery")
    cluster.until(lambda: part in bodies(cluster.records(CURATOR), CURATOR), "the delivery")
    cluster.signal(CURATOR, signal.SIGKILL)
    cluster.end(CURATOR)
    cluster.start(CURATOR)
    cluster.until(lambda: "restarted" in kinds(cluster.records(CURATOR)), "the curator")
    cluster.signal(CONSUMER, signal.SIGCONT)
    ended = cluster.end()
    assert {name: end.code for name, end in ended.items()} == {CURATOR: 0, CONSUMER: 0, "heron": 0}
    assert ended[CONSUMER].json["points_delivered"] == ROUNDS
    assert len(set(bodies(cluster.records(CURATOR), CURATOR)[part])) == 1, "the same bytes"
