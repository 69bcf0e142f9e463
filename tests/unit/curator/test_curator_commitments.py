"""The curator gathers owners' commitments before any owner has the map."""

from __future__ import annotations

from typing import Any

import pytest

from hushbid.protocol.crypto.commitment import ROOT_BYTES
from hushbid.protocol.errors import ExitCode, Offence
from hushbid.protocol.machine.machine import Started
from hushbid.protocol.names import CONSUMER
from hushbid.protocol.wire.messages import (
    COMMITTED_VERSION,
    PROTOCOL_VERSION,
    Broadcast,
    Close,
    Commitment,
    Ready,
    Roots,
    SecretMap,
    Welcome,
)
from tests.simulation.committing import commitment_of
from tests.simulation.harness import FORGED, CuratorBench, names, session_file, weights_of

A, B, C = names(3)


def bench_of(rule: str = "sealed", **changes: Any) -> CuratorBench:
    given: dict[str, Any] = {"owners": names(3), "points": 2, "rule": rule, "commitment_depth": 4} | changes
    bench = CuratorBench(session_file(**given))
    bench.step(Started())
    return bench


def hello(bench: CuratorBench, *peers: str) -> None:
    for peer in peers:
        bench.say(peer, bench.hello(peer))


def commit(bench: CuratorBench, *owners: str) -> None:
    for owner in owners:
        bench.say(owner, commitment_of(bench, owner))


def mapped(bench: CuratorBench) -> list[str]:
    return [
        owner for owner in (A, B, C) if any(type(each) is SecretMap for each in bench.inbox.get(owner, ()))
    ]


def roots(bench: CuratorBench) -> dict[str, Commitment] | None:
    """The roots that the consumer was told; None: nothing yet."""
    found = [each for each in bench.inbox.get(CONSUMER, ()) if isinstance(each, Roots)]
    assert len(found) < 2
    return found[0].of(names(3)) if found else None


@pytest.mark.parametrize("rule", ["sealed", "tender"])
@pytest.mark.parametrize("consumer_first", [True, False])
def test_the_consumer_is_told_once_all_have_committed_and_maps_come_after(
    rule: str, consumer_first: bool
) -> None:
    bench = bench_of(rule)
    hello(bench, *((CONSUMER, A, B, C) if consumer_first else (A, B, C)))
    commit(bench, A, B)
    assert roots(bench) is None
    commit(bench, C)
    if not consumer_first:
        assert roots(bench) is None
        hello(bench, CONSUMER)
    assert roots(bench) == {owner: commitment_of(bench, owner) for owner in (A, B, C)}
    assert mapped(bench) == []
    bench.say(CONSUMER, bench.target())
    assert mapped(bench) == [A, B, C]


def test_who_commits_too_late_has_no_map_and_holds_nobody_up() -> None:
    bench = bench_of()
    hello(bench, CONSUMER, A, B, C)
    commit(bench, A, B)
    bench.fire("enrolment")
    assert roots(bench) == {owner: commitment_of(bench, owner) for owner in (A, B)}
    commit(bench, C)
    bench.say(CONSUMER, bench.target())
    assert mapped(bench) == [A, B]
    for owner in (A, B):
        bench.say(owner, Ready())
    bench.broadcast(weights_of(1, 1, 1, 1))
    assert [owner for owner in (A, B, C) if isinstance(bench.last(owner), Broadcast)] == [A, B]
    assert isinstance(bench.last(C), Welcome), "it waits for the end, and is no offender"
    assert bench.machine.ledger.refusals == []


def test_the_time_after_the_roots_is_a_time_of_its_own() -> None:
    bench = bench_of()
    hello(bench, CONSUMER, A, B, C)
    first = bench.timers["enrolment"].due
    bench.now = first - 1.0
    commit(bench, A, B, C)
    assert bench.timers["enrolment"].due >= first + bench.session.timeouts.enrolment - 2.0
    bench.fire("enrolment")
    assert bench.machine.phase == "closing"
    assert "target" in str(bench.machine.ending.finish)


def test_too_few_commitments_end_the_session() -> None:
    bench = bench_of(min_owners=2)
    hello(bench, CONSUMER, A, B, C)
    commit(bench, B)
    bench.fire("enrolment")
    assert roots(bench) is None
    close = bench.last(A)
    assert isinstance(close, Close)
    assert close.outcome == "abandoned"
    assert bench.machine.ending.finish.code is ExitCode.TIMEOUT
    assert f"Missing: {A}, {C}" in bench.machine.ending.finish.reason


def test_without_the_consumer_nothing_is_gathered() -> None:
    bench = bench_of()
    hello(bench, A, B, C)
    commit(bench, A, B, C)
    bench.fire("enrolment")
    assert bench.machine.phase == "closing"
    assert "consumer did not come" in bench.machine.ending.finish.reason


def test_a_session_that_was_given_up_gathers_nothing() -> None:
    """A consumer that was told then would charge its data for nothing."""
    bench = bench_of(min_owners=2)
    hello(bench, CONSUMER, A, B, C)
    bench.fire("enrolment")
    assert bench.machine.phase == "closing"
    commit(bench, A, B, C)
    assert roots(bench) is None
    assert "enrolment" not in {effect.name for effect in bench.timers.values() if effect.due > bench.now}


def test_who_missed_the_time_is_among_those_that_are_missing() -> None:
    bench = bench_of(min_owners=2)
    hello(bench, CONSUMER, A, B, C)
    commit(bench, A, B)
    bench.fire("enrolment")
    commit(bench, C)
    bench.say(CONSUMER, bench.target())
    bench.say(A, Ready())
    bench.fire("enrolment")
    assert "Of the owners, 1 came" in bench.machine.ending.finish.reason
    assert f"Missing: {B}, {C}" in bench.machine.ending.finish.reason


def test_no_target_is_taken_before_the_roots_are_told() -> None:
    bench = bench_of()
    hello(bench, CONSUMER, A, B, C)
    commit(bench, A, B)
    assert bench.offend(CONSUMER, bench.target()).offence is Offence.OUT_OF_TURN
    assert bench.machine.target is None
    assert mapped(bench) == []


@pytest.mark.parametrize("when", ["before the map", "after the map"])
def test_a_root_comes_once(when: str) -> None:
    bench = bench_of()
    hello(bench, CONSUMER, A, B, C)
    commit(bench, A, B)
    if when == "after the map":
        commit(bench, C)
        bench.say(CONSUMER, bench.target())
    kept = bench.machine.seats[A].commitment
    other = commitment_of(bench, A, root=bytes(ROOT_BYTES))
    assert bench.offend(A, commitment_of(bench, A)).offence is Offence.OUT_OF_TURN
    assert bench.offend(A, other).offence is Offence.OUT_OF_TURN
    assert bench.machine.seats[A].commitment == kept


@pytest.mark.parametrize("changes", [{"signature": FORGED}, {"root": bytes(ROOT_BYTES)}])
def test_a_root_is_signed_by_its_owner(changes: dict[str, bytes]) -> None:
    bench = bench_of()
    hello(bench, CONSUMER, A, B, C)
    assert bench.offend(A, commitment_of(bench, A, **changes)).offence is Offence.MISMATCH
    assert bench.offend(B, commitment_of(bench, A)).offence is Offence.MISMATCH
    assert not bench.machine.seats[A].committed


def test_a_session_without_commitments_takes_none() -> None:
    bench = bench_of(commitment_depth=None)
    hello(bench, CONSUMER, A)
    commitment = Commitment(root=bytes(32), signature=bytes(64))
    assert bench.offend(A, commitment).offence is Offence.OUT_OF_TURN


def test_a_restarted_curator_goes_on_gathering() -> None:
    bench = bench_of()
    hello(bench, CONSUMER, A, B, C)
    commit(bench, A, B)
    bench.restart()
    hello(bench, CONSUMER, A, B, C)
    commit(bench, C)
    assert roots(bench) == {owner: commitment_of(bench, owner) for owner in (A, B, C)}
    bench.restart()
    hello(bench, CONSUMER, A, B, C)
    bench.say(CONSUMER, bench.target())
    assert mapped(bench) == [A, B, C]


def test_neither_side_goes_back_to_an_older_version() -> None:
    """The version follows from the session, whose digest both compare: there is nothing to negotiate."""
    bench = bench_of()
    assert bench.opened.protocol_version == COMMITTED_VERSION
    refused = bench.offend(A, bench.hello(A, versions=(PROTOCOL_VERSION,)))
    assert refused.offence is Offence.VERSION
    older = bench_of(commitment_depth=None)
    assert older.offend(A, older.hello(A, versions=(COMMITTED_VERSION,))).offence is Offence.VERSION
    assert older.offend(A, older.hello(A, session=bench.digest)).offence is Offence.CONFIGURATION
