"""A curator's session around its rounds: enrolment, refusals, delivery and closing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hushbid.protocol.errors import ExitCode, Offence, RemoteProtocolError
from hushbid.protocol.machine.machine import Lost, Offended, Received, Send, Started
from hushbid.protocol.names import CONSUMER
from hushbid.protocol.wire.messages import (
    PROTOCOL_VERSION,
    Bid,
    Close,
    Delivery,
    Receipt,
    Refused,
    Welcome,
    fixed,
)
from tests.simulation.harness import FAREWELL, CuratorBench, candidate_of, farewell_of, names
from tests.support.curator_rounds import (
    BEST,
    CORNERS,
    SECOND,
    THIRD,
    A,
    B,
    C,
    W,
    absences,
    bench_of,
    bid,
    bidding,
    told,
    winners,
)

# -- hellos that are refused -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "offence"),
    [
        ({"versions": (PROTOCOL_VERSION + 1,)}, Offence.VERSION),
        ({"session": bytes(32)}, Offence.CONFIGURATION),
        ({"role": "consumer"}, Offence.UNKNOWN_PEER),
        ({"name": B}, Offence.UNKNOWN_PEER),
        ({"sent": 0, "received": 0}, Offence.STATE_LOST),
        ({"sent": 9, "received": 9}, Offence.STATE_LOST),
    ],
)
def test_a_refused_hello_ends_its_own_connection_only(changes: dict[str, Any], offence: Offence) -> None:
    bench = bidding()
    bid(bench, A, BEST)
    before = {peer: len(messages) for peer, messages in bench.inbox.items()}
    refusal = bench.offend(A, bench.hello(A, **changes))
    assert refusal.offence is offence
    assert refusal.advice
    last = bench.last(A)
    assert isinstance(last, Refused)
    assert last.code == offence.value
    assert {peer: len(m) for peer, m in bench.inbox.items() if peer != A} == {
        peer: count for peer, count in before.items() if peer != A
    }
    assert bench.machine.seats[A].has_bid(1), "an earlier connection of the same party may be in use"
    bid(bench, B, SECOND)
    bid(bench, C, THIRD)
    bench.verify()
    assert winners(bench) == [A]


def test_a_peer_that_is_not_on_the_roster_is_refused() -> None:
    bench = bench_of()
    bench.step(Started())
    assert bench.offend("mallory", bench.hello("mallory")).offence is Offence.UNKNOWN_PEER


def test_a_frame_before_any_hello_is_refused() -> None:
    bench = bench_of()
    bench.step(Started())
    assert bench.offend(CONSUMER, bench.target()).offence is Offence.OUT_OF_TURN
    assert bench.machine.target is None


def test_a_target_without_a_number_is_refused() -> None:
    bench = bench_of()
    bench.step(Started())
    event = bench.received(CONSUMER, bench.target(), sequence=0)
    with pytest.raises(RemoteProtocolError) as caught:
        bench.step(event)
    assert caught.value.offence is Offence.SEQUENCE


# -- enrolment ---------------------------------------------------------------------------------------


def test_the_session_begins_when_everybody_is_there() -> None:
    bench = bench_of()
    bench.enrol([A, B])
    assert bench.machine.phase == "enrolling"
    bench.say(C, bench.hello(C))
    assert bench.machine.phase == "weighing"


def test_after_the_enrolment_time_it_begins_with_those_that_came() -> None:
    bench = bench_of(min_owners=2)
    bench.enrol([A, B])
    bench.fire("enrolment")
    bench.broadcast(W)
    bid(bench, A, BEST)
    bid(bench, B, SECOND)
    bench.verify()
    assert absences(bench) == [(1, C)]


def test_too_few_owners_end_the_enrolment() -> None:
    bench = bench_of(min_owners=2)
    bench.enrol([A])
    bench.fire("enrolment")
    bench.see_out()
    assert bench.finish is not None
    assert bench.finish.code is ExitCode.TIMEOUT
    assert "Of the owners, 1 came" in bench.finish.reason
    assert isinstance(bench.last(A), Close)
    assert isinstance(bench.last(CONSUMER), Close)


@pytest.mark.parametrize(("comes", "what"), [(False, "did not come"), (True, "did not send its target")])
def test_a_missing_consumer_or_target_ends_the_enrolment(comes: bool, what: str) -> None:
    bench = bench_of()
    bench.step(Started())
    for owner in names(3):
        bench.say(owner, bench.hello(owner))
    if comes:
        bench.say(CONSUMER, bench.hello(CONSUMER))
    bench.fire("enrolment")
    bench.see_out()
    assert bench.finish is not None
    assert bench.finish.code is ExitCode.TIMEOUT
    assert what in bench.finish.reason


@pytest.mark.parametrize(
    "changes",
    [
        {"embedding": np.zeros(6)},
        {"seed_total": np.zeros(6, dtype=np.int64)},
        {"seed_total": np.full(4, 3 * 2**15, dtype=np.int64)},
        {"seed_total": np.array([0, 0, 0, -(2**63)], dtype=np.int64)},
        {"seed_total": np.full(4, 2**54, dtype=np.int64), "seed_size": 2**53},
        {"noise": "foo"},
        {"noise": "secure"},  # of a release without noise
    ],
)
def test_a_target_that_cannot_be_one_is_refused(changes: dict[str, Any]) -> None:
    bench = bench_of()
    bench.step(Started())
    bench.say(CONSUMER, bench.hello(CONSUMER))
    assert bench.offend(CONSUMER, bench.target(**changes)).offence is Offence.MALFORMED
    assert bench.machine.target is None


def test_a_second_target_ends_the_session() -> None:
    bench = bench_of()
    bench.enrol([A])
    bench.offend(CONSUMER, bench.target())
    bench.see_out()
    assert bench.finish is not None
    assert bench.finish.code is ExitCode.FAILED
    assert isinstance(bench.last(A), Close)


# -- owners that offend ------------------------------------------------------------------------------


def _bad_bids(bench: CuratorBench) -> dict[str, Bid]:
    good = bench.bid(1, CORNERS[BEST], 1, W)
    return {
        "another round": good.model_copy(update={"round": 2}),
        "no point": good.model_copy(update={"candidate": None}),
        "wide point": good.model_copy(update={"candidate": candidate_of(np.zeros(6, dtype=np.int16))}),
        "handle": good.model_copy(update={"handle": fixed(0)}),
    }


@pytest.mark.parametrize("what", ["another round", "no point", "wide point", "handle"])
def test_an_owner_that_offends_is_refused_and_the_others_go_on(what: str) -> None:
    bench = bidding(owners=2)
    bid(bench, B, SECOND)
    bench.offend(A, _bad_bids(bench)[what])
    assert told(bench, A)[-1] == "refused"
    assert bench.machine.phase == "verifying", "A is not waited for"
    bench.verify()
    assert (winners(bench), absences(bench)) == ([B], [(1, A)])


def test_a_frame_that_cannot_be_read_is_answered_with_the_reason() -> None:
    bench = bidding(owners=2)
    bench.step(Offended(A, 0, 0, Offence.MAGIC, "x" * 1000, "y" * 1000))
    last = bench.last(A)
    assert isinstance(last, Refused)
    assert (last.code, len(last.detail), len(last.advice)) == ("magic", 400, 400)


@pytest.mark.parametrize("phase", ["bidding", "delivering"])
def test_a_consumer_that_offends_ends_the_session(phase: str) -> None:
    bench = bidding(owners=1, points=1)
    if phase == "delivering":
        bid(bench, A, BEST)
        bench.verify()
    assert bench.machine.phase == phase
    bench.offend(CONSUMER, Receipt(part=9, disputed=b""))
    bench.see_out()
    assert bench.finish is not None
    assert bench.finish.code is ExitCode.FAILED
    assert "out-of-turn" in bench.finish.reason
    assert told(bench, CONSUMER)[-1] == "refused"
    assert told(bench, A)[-1] == "close"


# -- delivery and closing ----------------------------------------------------------------------------


def delivered(**options: Any) -> CuratorBench:
    """A session of one round that is over except for the delivery."""
    bench = bidding(owners=2, points=1, **options)
    bid(bench, A, BEST)
    bid(bench, B, SECOND)
    bench.verify()
    assert bench.machine.phase == "delivering"
    return bench


def test_the_delivery_waits_for_a_consumer_that_is_gone() -> None:
    bench = bidding(owners=2, points=1)
    bench.lost(CONSUMER)
    bid(bench, A, BEST)
    bid(bench, B, SECOND)
    bench.verify()
    bench.frames[CONSUMER].clear()
    bench.say(CONSUMER, bench.hello(CONSUMER, received=0))
    assert [kind for _, kind, _ in bench.frames[CONSUMER]] == ["welcome", "delivery"]
    bench.say(CONSUMER, bench.receipt(1))
    assert bench.machine.phase == "closing"


def test_a_consumer_that_is_heard_again_is_told_the_end() -> None:
    bench = delivered()
    bench.lost(CONSUMER)
    bench.returned(CONSUMER)
    bench.say(CONSUMER, bench.receipt(1))
    assert bench.machine.phase == "closing"
    assert told(bench, CONSUMER)[-1] == "close"


def test_a_delivery_without_a_receipt_ends_the_process_and_is_kept() -> None:
    bench = delivered()
    bench.fire("delivery")
    assert bench.finish is not None
    assert bench.finish.code is ExitCode.TIMEOUT
    assert not bench.finish.final
    assert "start the curator again" in bench.finish.advice
    assert bench.machine.phase == "delivering"
    assert "close" not in told(bench, A), "nobody is told that it is over: it is not"
    bench.restart()
    bench.frames[CONSUMER].clear()
    bench.say(CONSUMER, bench.hello(CONSUMER, received=0))
    assert [kind for _, kind, _ in bench.frames[CONSUMER]] == ["welcome", "delivery"]
    bench.say(CONSUMER, bench.receipt(1))
    assert told(bench, CONSUMER)[-1] == "close"


def test_the_parts_of_a_delivery_go_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hushbid.protocol.limits.DELIVERY_CHUNK_BYTES", 1)
    bench = bidding(owners=1, points=2)
    for number in (1, 2):
        if number == 2:
            bench.broadcast(W)
        bid(bench, A, number, number)
        bench.verify()
    parts = []
    for _ in range(2):
        last = bench.last(CONSUMER)
        assert isinstance(last, Delivery)
        parts.append((last.part, last.parts, [purchase.round for purchase in last.purchases]))
        bench.say(CONSUMER, bench.receipt(last.part))
    assert parts == [(1, 2, [1]), (2, 2, [2])]
    assert bench.machine.phase == "closing"


def test_nothing_bought_is_delivered_too() -> None:
    bench = bidding(owners=1, points=1)
    bench.say(A, bench.no_bid(1))
    last = bench.last(CONSUMER)
    assert isinstance(last, Delivery)
    assert (last.parts, last.purchases) == (1, ())


def test_the_session_ends_when_all_have_said_farewell() -> None:
    bench = delivered()
    bench.say(CONSUMER, bench.receipt(1))
    for peer in (A, CONSUMER):
        bench.say_farewell(peer)
        assert bench.finish is None
    bench.say_farewell(B)
    assert bench.finish is not None
    assert bench.finish.code is ExitCode.DONE


def test_a_farewell_that_its_sender_did_not_sign_is_refused_and_the_others_are_waited_for() -> None:
    """Otherwise it would spoil the curator's transcript by another party's fault."""
    bench = delivered()
    bench.say(CONSUMER, bench.receipt(1))
    for forged in (FAREWELL, farewell_of(bench.opened, B), FAREWELL.model_copy(update={"signature": b""})):
        assert bench.offend(A, forged).offence is Offence.MISMATCH
    for peer in (CONSUMER, B):
        assert bench.finish is None
        bench.say_farewell(peer)
    assert A not in bench.machine.ending.farewells


def test_the_session_ends_without_a_farewell_that_does_not_come() -> None:
    bench = delivered()
    bench.say(CONSUMER, bench.receipt(1))
    bench.fire("closing")
    assert bench.finish is not None
    assert bench.finish.code is ExitCode.DONE


@pytest.mark.parametrize("how", ["returns", "reconnects"])
def test_a_peer_that_comes_back_during_closing_is_told_that_it_is_over(how: str) -> None:
    bench = delivered()
    bench.lost(A)
    bench.say(CONSUMER, bench.receipt(1))
    assert told(bench, A)[-1] == "broadcast"
    if how == "returns":
        bench.returned(A)
    else:
        bench.say(A, bench.hello(A))
    assert told(bench, A)[-1] == "close"
    bench.lost(B)
    bench.returned(B)
    assert told(bench, B).count("close") == 1


# -- links and effects -------------------------------------------------------------------------------


def test_a_frame_that_comes_twice_counts_once() -> None:
    bench = bidding()
    event = bench.received(A, bench.bid(1, CORNERS[BEST], 1, W))
    bench.step(event)
    accessed = bench.machine.ledger.points_accessed
    assert bench.step(event) == ()
    assert bench.machine.ledger.points_accessed == accessed == 1


def test_a_broadcast_is_the_same_bytes_for_every_owner() -> None:
    bench = bidding()
    bodies = {bench.frames[owner][-1] for owner in names(3)}
    assert len(bodies) == 1


def test_effects_name_what_the_peer_has_acknowledged() -> None:
    bench = bench_of(owners=1)
    bench.step(Started())
    effects = bench.say(A, bench.hello(A))
    (send,) = [effect for effect in effects if isinstance(effect, Send)]
    assert (send.sequence, send.acknowledged, send.kind) == (0, 0, "welcome")
    assert isinstance(bench.last(A), Welcome)


def test_settlement_is_zero_before_there_is_a_target() -> None:
    assert bench_of().machine.settlement() == dict.fromkeys(names(3), 0.0)


def test_settlement_pays_every_owner_the_gains_of_its_points() -> None:
    bench = bidding(owners=2, points=1)
    bid(bench, A, BEST)
    bid(bench, B, SECOND)
    bench.verify()
    shares = bench.machine.settlement()
    assert shares is not None
    # g̃ = 0 and two seed points at 0: J is -‖μ‖², and the third point makes it -1/9.
    assert shares[A] == pytest.approx(-1 / 9, rel=1e-3)
    assert shares[B] == 0.0


def test_a_lost_consumer_pauses_nothing() -> None:
    bench = bidding(owners=1)
    bench.step(Lost(CONSUMER))
    bid(bench, A, BEST)
    bench.verify()
    assert winners(bench) == [A]


def test_an_event_is_a_frame_of_a_peer() -> None:
    event = bidding().received(A, FAREWELL)
    assert isinstance(event, Received)
