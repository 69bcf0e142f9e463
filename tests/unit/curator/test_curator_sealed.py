"""The curator of a sealed session forwards maps, pools what it cannot read, and destroys it in the end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hushbid.curator.events import CandidatesChecked, CheckBids, CheckCandidates, DestroyBoxes
from hushbid.curator.ledger import Dispute, PointFault
from hushbid.curator.machine import CuratorMachine
from hushbid.curator.parcels import Parcel
from hushbid.curator.party import curator_party
from hushbid.protocol import limits
from hushbid.protocol.crypto.sealing import candidate_statement, sign
from hushbid.protocol.errors import ExitCode, Offence
from hushbid.protocol.machine.machine import Charge, Computation, Send, Started
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.privacy.accounting import Budget, PrivacyFilter, epsilon_of
from hushbid.protocol.privacy.noise import SimulatedNoise
from hushbid.protocol.session.session import open_session
from hushbid.protocol.wire.bids import BroughtPoints
from hushbid.protocol.wire.messages import Delivery, Ready, Receipt, SealedCandidate, SecretMap, fixed
from tests.simulation.harness import (
    FORGED,
    CuratorBench,
    candidate_of,
    names,
    sealed_candidate_of,
    session_file,
)
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

MAPS = b"".join(bytes([number]) * limits.MAP_BOX_BYTES for number in (1, 2, 3))


def enrolling(**options: Any) -> CuratorBench:
    """A sealed session whose consumer and owners said hello, before the consumer's target."""
    bench = bench_of("sealed", **options)
    bench.step(Started())
    for peer in (CONSUMER, *bench.session.owners):
        bench.say(peer, bench.hello(peer))
    return bench


# -- maps --------------------------------------------------------------------------------------------


def test_every_owner_is_passed_its_own_map_once_when_the_target_is_there() -> None:
    bench = enrolling()
    assert [told(bench, owner) for owner in (A, B, C)] == [["welcome"]] * 3
    bench.say(CONSUMER, bench.target(maps=MAPS))
    for number, owner in enumerate((A, B, C), start=1):
        last = bench.last(owner)
        assert isinstance(last, SecretMap)
        assert last.box == bytes([number]) * limits.MAP_BOX_BYTES
    bench.say(A, bench.hello(A))
    bench.lost(A)
    bench.returned(A)
    assert told(bench, A).count("secret-map") == 1


def test_an_owner_that_comes_after_the_target_is_passed_its_map_when_it_comes() -> None:
    bench = bench_of("sealed")
    bench.step(Started())
    bench.say(CONSUMER, bench.hello(CONSUMER))
    bench.say(CONSUMER, bench.target(maps=MAPS))
    bench.say(B, bench.hello(B))
    last = bench.last(B)
    assert isinstance(last, SecretMap)
    assert last.box == bytes([2]) * limits.MAP_BOX_BYTES


def test_a_map_that_was_lost_on_the_way_is_sent_again_in_the_same_bytes() -> None:
    bench = enrolling()
    bench.say(CONSUMER, bench.target(maps=MAPS))
    first = bench.frames[A][-1]
    bench.lost(A)
    bench.frames[A].clear()
    bench.say(A, bench.hello(A, received=0))
    assert [kind for _, kind, _ in bench.frames[A]] == ["welcome", "secret-map"]
    assert bench.frames[A][-1] == first


def test_an_owner_that_is_away_when_the_target_comes_has_its_map_when_it_is_back() -> None:
    bench = enrolling()
    bench.lost(A)
    bench.say(CONSUMER, bench.target(maps=MAPS))
    assert told(bench, A) == ["welcome"]
    bench.say(A, bench.hello(A))
    assert told(bench, A) == ["welcome", "welcome", "secret-map"]


@pytest.mark.parametrize("length", [0, limits.MAP_BOX_BYTES, 4 * limits.MAP_BOX_BYTES])
def test_a_target_with_maps_for_more_or_fewer_owners_is_refused(length: int) -> None:
    bench = enrolling()
    assert bench.offend(CONSUMER, bench.target(maps=bytes(length))).offence is Offence.MALFORMED
    assert bench.machine.target is None
    assert told(bench, A) == ["welcome"]


def test_maps_are_refused_where_the_map_is_public() -> None:
    bench = bench_of("ask-all")
    bench.step(Started())
    bench.say(CONSUMER, bench.hello(CONSUMER))
    assert bench.offend(CONSUMER, bench.target(maps=MAPS)).offence is Offence.MALFORMED


# -- ready -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["sealed", "ask-all"])
def test_who_is_ready_without_having_been_sent_a_map_offends(rule: str) -> None:
    bench = bench_of(rule)
    bench.step(Started())
    bench.say(A, bench.hello(A))
    assert bench.offend(A, Ready()).offence is Offence.OUT_OF_TURN


def test_who_is_ready_twice_offends() -> None:
    bench = enrolling()
    bench.say(CONSUMER, bench.target())
    bench.say(A, Ready())
    assert bench.offend(A, Ready()).offence is Offence.OUT_OF_TURN


def test_the_session_begins_when_all_are_ready_and_not_when_all_are_there() -> None:
    bench = enrolling()
    bench.say(CONSUMER, bench.target())
    for owner in (A, B):
        bench.say(owner, Ready())
    assert bench.machine.phase == "enrolling"
    bench.say(C, Ready())
    assert bench.machine.phase == "weighing"


def test_an_owner_that_is_not_ready_is_sent_no_broadcast_and_may_become_ready_later() -> None:
    bench = enrolling(points=2)
    bench.say(CONSUMER, bench.target())
    for owner in (A, B):
        bench.say(owner, Ready())
    bench.fire("enrolment")
    bench.broadcast(W)
    assert told(bench, C) == ["welcome", "secret-map"]
    bid(bench, A, THIRD)
    bench.say(C, Ready())
    assert told(bench, C)[-1] == "broadcast", "bids are still taken"
    bid(bench, B, SECOND)
    bid(bench, C, BEST)
    bench.verify()
    assert (winners(bench), absences(bench)) == ([C], [])


def test_an_owner_that_is_ready_between_rounds_has_the_next_broadcast() -> None:
    bench = enrolling(points=2)
    bench.say(CONSUMER, bench.target())
    bench.say(A, Ready())
    bench.fire("enrolment")
    bench.say(B, Ready())
    assert told(bench, B)[-1] == "secret-map"
    bench.broadcast(W)
    assert told(bench, B)[-1] == "broadcast"
    assert told(bench, C)[-1] == "secret-map"


def test_too_few_owners_that_are_ready_end_the_enrolment() -> None:
    bench = enrolling(min_owners=2)
    bench.say(CONSUMER, bench.target())
    bench.say(A, Ready())
    bench.fire("enrolment")
    bench.see_out()
    assert bench.finish is not None
    assert bench.finish.code is ExitCode.TIMEOUT
    assert f"Missing: {B}, {C}" in bench.finish.reason


# -- bids --------------------------------------------------------------------------------------------


def sealed_of(bench: CuratorBench, row: int, **changes: Any) -> SealedCandidate:
    return sealed_candidate_of(CORNERS[row], bench.opened).model_copy(update=changes)


@pytest.mark.parametrize("extra", [-1, 1])
def test_a_box_of_another_length_than_the_sessions_is_refused(extra: int) -> None:
    """Its size would reveal its content."""
    bench = bidding("sealed", owners=2)
    bid(bench, B, SECOND)
    box = bytes(len(sealed_of(bench, BEST).box) + extra)
    offence = bench.offend(A, bench.bid(1, CORNERS[BEST], 1, W, candidate=sealed_of(bench, BEST, box=box)))
    assert offence.offence is Offence.MALFORMED
    assert str(len(box) - extra) in offence.what
    bench.verify()
    assert (winners(bench), absences(bench)) == ([B], [(1, A)])


@pytest.mark.parametrize("rule", ["sealed", "ask-all"])
def test_a_point_that_is_handed_over_the_other_way_is_refused(rule: str) -> None:
    bench = bidding(rule, owners=2)
    session = open_session(session_file(owners=names(2), points=1, rule="sealed"))
    other = candidate_of(CORNERS[BEST]) if rule == "sealed" else sealed_candidate_of(CORNERS[BEST], session)
    offence = bench.offend(A, bench.bid(1, CORNERS[BEST], 1, W, candidate=other))
    assert offence.offence is Offence.MALFORMED
    assert bench.machine.ledger.candidates == 0


FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "signature": ({"signature": FORGED}, "the owner's signature does not hold"),
    "features": (
        {"features": np.full(4, 2**13, dtype=np.int16)},
        "the features are no output of the feature map",
    ),
}


@pytest.mark.parametrize("what", FAULTS)
def test_a_sealed_point_that_cannot_be_vouched_for_is_a_fault_and_its_owner_absent(what: str) -> None:
    changes, fault = FAULTS[what]
    bench = bidding("sealed", owners=2, points=2)
    bid(bench, B, SECOND)
    bid(bench, A, BEST, candidate=sealed_of(bench, BEST, **changes))
    bench.verify()
    assert bench.machine.ledger.faults == [PointFault(1, A, fault)]
    assert (winners(bench), absences(bench)) == ([B], [(1, A)])
    assert told(bench, A)[-1] != "refused", "it is not told"


@pytest.mark.parametrize("off", [-1, 1])
def test_a_score_that_is_not_that_of_the_features_is_a_fault(off: int) -> None:
    bench = bidding("sealed", owners=2, points=2)
    score = int(CORNERS[BEST].astype(int) @ W) + off
    bid(bench, A, BEST, score=fixed(score))
    bid(bench, B, SECOND)
    bench.verify()
    assert bench.machine.ledger.faults == [PointFault(1, A, "the bid is not the score of the features")]
    assert winners(bench) == [B]


def test_one_forged_point_costs_no_other_of_the_same_check() -> None:
    bench = bidding("sealed")
    bid(bench, A, THIRD, candidate=sealed_of(bench, THIRD, signature=FORGED))
    bid(bench, B, BEST)
    bid(bench, C, SECOND)
    bench.verify()
    assert winners(bench) == [B]
    assert [fault.owner for fault in bench.machine.ledger.faults] == [A]


def test_the_curator_is_handed_no_raw_point() -> None:
    bench = bidding("sealed")
    for owner, row in ((A, THIRD), (B, BEST), (C, SECOND)):
        bid(bench, owner, row)
    bench.verify()
    ledger = bench.machine.ledger
    assert (ledger.points_accessed, ledger.candidates) == (0, 3)


def test_a_signature_is_checked_with_the_owners_own_key_and_over_the_place_of_the_bid() -> None:
    """By the numerics, with real keys: the machine's tests above trust them."""
    session = open_session(session_file(owners=names(2), points=3, rule="sealed"))
    _, numerics = curator_party(session, noise=SimulatedNoise(1, CURATOR))
    blank = sealed_candidate_of(CORNERS[BEST], session)
    statement = candidate_statement(session.identifier, A, 2, 7, blank.box, blank.features)

    def entry(owner: str = A, number: int = 2, handle: int = 7, signer: str = A, **changes: Any) -> Parcel:
        signature = sign(statement, session.simulated_identity(signer).signing)
        candidate = blank.model_copy(update={"signature": signature} | changes)
        return Parcel(owner, 0, number, [handle], [0], W, BroughtPoints(candidate))

    other_box = bytes([1]) + blank.box[1:]
    entries = (
        entry(),
        entry(signer=B),
        entry(owner=B),
        entry(number=1),
        entry(handle=8),
        entry(box=other_box),
        entry(features=CORNERS[SECOND]),
        entry(signature=FORGED),
    )
    checked = numerics.perform(CheckCandidates(entries))
    assert isinstance(checked, CandidatesChecked)
    assert checked.features is None, "there is nothing to recompute them from"
    assert checked.signed == (True, *[False] * 7)


# -- delivery ----------------------------------------------------------------------------------------


def test_a_purchase_says_of_which_bid_the_signature_is() -> None:
    bench = bidding("sealed", owners=1, points=2)
    bid(bench, A, SECOND, 7)
    bench.verify()
    bench.broadcast(W)
    bid(bench, A, BEST, 9)
    bench.verify()
    last = bench.last(CONSUMER)
    assert isinstance(last, Delivery)
    places = [(p.round, p.bid_round, int(p.handle[0])) for p in last.purchases]
    assert places == [(1, 1, 7), (2, 2, 9)]


def test_a_point_that_waited_in_the_pool_is_delivered_with_the_round_of_its_bid() -> None:
    bench = bidding("sealed", owners=2, points=2)
    bid(bench, A, BEST, 3)
    bid(bench, B, SECOND, 4)
    bench.verify()
    bench.broadcast(W)
    for owner in (A, B):
        bench.say(owner, bench.no_bid(2))
    last = bench.last(CONSUMER)
    assert isinstance(last, Delivery)
    assert [(p.owner, p.round, p.bid_round, int(p.handle[0])) for p in last.purchases] == [
        (A, 1, 1, 3),
        (B, 2, 1, 4),
    ]


def delivered(rule: str = "sealed") -> CuratorBench:
    """One point was won, two wait in the pool, and the delivery is on its way."""
    bench = bidding(rule, points=1)
    for owner, row in ((A, THIRD), (B, BEST), (C, SECOND)):
        bid(bench, owner, row)
    bench.verify()
    assert bench.machine.phase == "delivering"
    return bench


def held(machine: CuratorMachine) -> int:
    """Candidates that are still in the pool."""
    return sum(point is not None for point in machine.selection.pooled)


def test_all_boxes_are_destroyed_at_the_receipt_and_none_before() -> None:
    bench = delivered()
    assert (held(bench.machine), bench.boxes_destroyed) == (2, 0)
    assert any(seat.bid for seat in bench.machine.seats.values()), "the last bids with their boxes"
    bench.say(CONSUMER, bench.receipt(1))
    assert (held(bench.machine), bench.boxes_destroyed) == (0, 1)
    assert not any(seat.bid for seat in bench.machine.seats.values())
    bench.see_out()
    assert bench.finish is not None
    assert (bench.finish.code, bench.boxes_destroyed) == (ExitCode.DONE, 1)


def test_boxes_are_kept_until_the_receipt_of_the_last_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hushbid.protocol.limits.DELIVERY_CHUNK_BYTES", 1)
    bench = bidding("sealed", owners=2, points=2)
    bid(bench, A, BEST)
    bid(bench, B, SECOND)
    bench.verify()
    bench.broadcast(W)
    for owner in (A, B):
        bench.say(owner, bench.no_bid(2))
    bench.say(CONSUMER, bench.receipt(1))
    assert bench.boxes_destroyed == 0
    bench.say(CONSUMER, bench.receipt(2))
    assert bench.boxes_destroyed == 1


def test_disputes_are_in_the_curators_books_and_told_to_no_owner() -> None:
    bench = delivered()
    frames = {owner: len(bench.frames[owner]) for owner in (A, B, C)}
    bench.say(CONSUMER, bench.receipt(1, 0))
    (win,) = bench.machine.ledger.wins
    assert bench.machine.ledger.disputes == [Dispute(win.chosen_round, win.owner, win.handle)]
    told_since = {owner: [kind for _, kind, _ in bench.frames[owner][frames[owner] :]] for owner in frames}
    assert told_since == {owner: ["close"] for owner in (A, B, C)}


def test_nobody_is_paid_for_a_point_that_is_disputed() -> None:
    bench = delivered()
    (win,) = bench.machine.ledger.wins
    shares = bench.machine.settlement()
    assert shares is not None
    paid = shares[win.owner]
    assert paid != 0.0
    bench.say(CONSUMER, bench.receipt(1, 0))
    assert bench.machine.settlement() == dict.fromkeys((A, B, C), 0.0)


def test_a_point_that_was_handed_over_is_not_taken_again_under_its_number() -> None:
    bench = bidding("sealed", owners=2, points=2)
    for owner, row in ((A, THIRD), (B, BEST)):
        bid(bench, owner, row)
    bench.verify()
    bench.broadcast(W)
    again = bench.bid(2, CORNERS[BEST], 1, W)
    assert bench.offend(B, again).offence is Offence.OUT_OF_TURN


@pytest.mark.parametrize(
    "disputed", [b"", b"\x00\x00", b"\x40"], ids=["too short", "too long", "no such point"]
)
def test_a_receipt_that_disputes_other_points_than_were_delivered_is_refused(disputed: bytes) -> None:
    bench = delivered()
    error = bench.offend(CONSUMER, Receipt(part=1, disputed=disputed))
    assert error.offence is Offence.MALFORMED
    assert bench.machine.ledger.disputes == []


def test_without_a_receipt_no_box_is_lost() -> None:
    """A consumer that never sends one may still be owed its points."""
    bench = delivered()
    bench.fire("delivery")
    bench.see_out()
    assert bench.finish is not None
    assert bench.finish.code is ExitCode.TIMEOUT
    assert (held(bench.machine), bench.boxes_destroyed) == (2, 0)


def test_open_points_have_no_boxes_to_destroy() -> None:
    bench = delivered("ask-all")
    bench.say(CONSUMER, bench.receipt(1))
    assert bench.boxes_destroyed == 0


@pytest.mark.parametrize(("rule", "before"), [("sealed", CheckCandidates(())), ("blind", CheckBids(()))])
def test_the_numerics_have_the_boxes_file_destroyed(rule: str, before: Computation) -> None:
    """On request, and in a restart after a request; not by what was done before that."""
    destroyed: list[bool] = []
    session = open_session(session_file(owners=names(2), points=3, rule=rule))
    noise = SimulatedNoise(1, CURATOR)
    _, numerics = curator_party(session, noise=noise, destroy=lambda: destroyed.append(True))
    assert numerics.perform(DestroyBoxes()) is None
    assert destroyed == [True]
    numerics.restore(before, None)
    assert destroyed == [True]
    numerics.restore(DestroyBoxes(), None)
    assert destroyed == [True, True]


# -- charges -----------------------------------------------------------------------------------------

GAUSSIAN = {"mechanism": "gaussian", "neighbours": "add-remove-one", "epsilon": 1.0}


@pytest.mark.parametrize("points", [2, 3, 70])
def test_every_release_is_charged_once_and_on_record_before_it_leaves(points: int) -> None:
    """Together they cost what the session promised; the first shows no owner's point, and costs nothing."""
    bench = bench_of("sealed", owners=1, points=points, summary=GAUSSIAN)
    log: list[tuple[str, int]] = []
    original = bench.machine.step

    def step(event: Any, now: float) -> Any:
        effects = original(event, now)
        log.extend((e.KIND, e.first) for e in effects if isinstance(e, Charge))
        log.extend(
            (e.kind, bench.machine.round) for e in effects if isinstance(e, Send) and e.kind == "broadcast"
        )
        return effects

    bench.machine.step = step  # type: ignore[method-assign]
    bench.enrol()
    for number in range(1, points + 1):
        bench.broadcast(W)
        bench.say(A, bench.no_bid(number))
    assert bench.machine.phase == "delivering"
    charged = [(kind, n) for n in range(1, points + 1) for kind in ("charge", "broadcast")]
    assert log == charged
    assert {(charge.first == charge.last, charge.neighbours) for charge in bench.charges} == {
        (True, "add-remove-one")
    }
    assert bench.charges[0].costs == ()
    spent = epsilon_of([cost for charge in bench.charges for cost in charge.costs], 1e-5)
    assert 0.999 <= spent <= 1.0


def test_a_release_over_the_budget_does_not_leave_and_ends_the_session_with_the_reason() -> None:
    bench = bench_of("ask-all", owners=1, points=100, summary=GAUSSIAN)
    bench.machine.selection.weighing.filter = PrivacyFilter(Budget(0.9, 1e-5), neighbours="add-remove-one")
    bench.enrol()
    bench.broadcast(W)
    while bench.machine.phase != "closing":
        bench.say(A, bench.no_bid(bench.machine.round))
        bench.broadcast(W)
    assert 70 < bench.machine.round < 100, "most of the rounds were within nine tenths of the budget"
    assert [charge.last for charge in bench.charges] == list(range(1, bench.machine.round))
    spent = epsilon_of([cost for charge in bench.charges for cost in charge.costs], 1e-5)
    assert 0.88 < spent <= 0.9
    bench.see_out()
    assert bench.finish is not None
    assert bench.finish.code is ExitCode.FAILED
    assert "over the budget of 0.9" in bench.finish.reason
    assert "add-remove-one" in bench.finish.reason
    assert "Nothing was spent" in bench.finish.advice
    assert told(bench, A)[-1] == "close"
    assert told(bench, A).count("broadcast") == len(bench.charges)


def test_without_noise_there_is_no_charge() -> None:
    bench = bidding("sealed")
    assert bench.charges == []
