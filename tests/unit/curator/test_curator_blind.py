"""The blind curator forwards what it cannot read, orders masked scores, and awards boxes in the round."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hushbid.curator.ledger import PointFault
from hushbid.curator.machine import BLIND
from hushbid.protocol import limits
from hushbid.protocol.errors import ConfigError, ExitCode, Offence
from hushbid.protocol.machine.machine import Started
from hushbid.protocol.names import CONSUMER
from hushbid.protocol.privacy.payment import Price
from hushbid.protocol.session.sizes import sealed_weight_bytes
from hushbid.protocol.wire.blind import Account, BlindBid, Maps, SealedBroadcast
from hushbid.protocol.wire.messages import (
    BLIND_VERSION,
    NUMBERED_VERSION,
    PROTOCOL_VERSION,
    Message,
    Ready,
    Receipt,
    Refused,
    SecretMap,
)
from tests.simulation.harness import names, session_file
from tests.support.blind_parties import BlindBench, account_of, masked, signed_bid
from tests.support.curator_rounds import CORNERS, A, B, C, W, absences, told, winners


def bench_of(*, owners: int = 3, points: int = 3, **options: Any) -> BlindBench:
    bench = BlindBench(session_file(owners=names(owners), points=points, rule="blind", **options))
    assert bench.machine.table is BLIND
    return bench


def bidding(**options: Any) -> BlindBench:
    """A session in which round 1's broadcast was sent."""
    bench = bench_of(**options)
    bench.enrol()
    bench.open_round()
    return bench


# -- versions ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("peer", [A, CONSUMER])
def test_who_speaks_the_older_version_alone_is_refused_by_name(peer: str) -> None:
    """The refusal is no parse error: it names the rule and both versions, on the peer's own connection."""
    bench = bench_of()
    bench.step(Started())
    offence = bench.offend(peer, bench.hello(peer, versions=(PROTOCOL_VERSION,)))
    assert offence.offence is Offence.VERSION
    assert "blind" in offence.what
    assert str(NUMBERED_VERSION) in offence.what
    assert str(PROTOCOL_VERSION) in offence.what
    refused = bench.last(peer)
    assert isinstance(refused, Refused)
    assert (refused.code, refused.detail) == (Offence.VERSION.value, offence.what)
    bench.say(peer, bench.hello(peer, versions=(PROTOCOL_VERSION, NUMBERED_VERSION)))
    assert told(bench, peer) == ["refused", "welcome"], "who speaks both is welcomed"


def test_who_speaks_the_blind_version_alone_is_refused_under_other_rules() -> None:
    bench = BlindBench(session_file(owners=names(2), points=3, rule="sealed"))
    bench.step(Started())
    offence = bench.offend(A, bench.hello(A, versions=(BLIND_VERSION,)))
    assert offence.offence is Offence.VERSION
    assert "sealed" in offence.what


# -- maps --------------------------------------------------------------------------------------------


def greeted() -> BlindBench:
    """A session in which the consumer and all owners said hello."""
    bench = bench_of()
    bench.step(Started())
    for peer in (CONSUMER, *bench.session.owners):
        bench.say(peer, bench.hello(peer))
    return bench


def test_every_owner_is_passed_its_own_map_and_the_curator_is_sent_no_target() -> None:
    bench = greeted()
    boxes = [bytes([number]) * limits.MAP_BOX_BYTES for number in (1, 2, 3)]
    bench.say(CONSUMER, Maps(maps=b"".join(boxes)))
    for owner, box in zip((A, B, C), boxes, strict=True):
        last = bench.last(owner)
        assert isinstance(last, SecretMap)
        assert last.box == box
    assert bench.machine.target is None
    assert bench.offend(CONSUMER, bench.target()).offence is Offence.OUT_OF_TURN


@pytest.mark.parametrize("count", [1, 2, 4])
def test_maps_for_more_or_fewer_owners_are_refused(count: int) -> None:
    bench = greeted()
    offence = bench.offend(CONSUMER, Maps(maps=bytes(count * limits.MAP_BOX_BYTES)))
    assert offence.offence is Offence.MALFORMED
    assert told(bench, A) == ["welcome"]


def test_maps_that_come_twice_or_from_an_owner_are_refused() -> None:
    bench = greeted()
    assert bench.offend(A, bench.maps()).offence is Offence.OUT_OF_TURN
    bench.say(CONSUMER, bench.maps())
    assert bench.offend(CONSUMER, bench.maps()).offence is Offence.OUT_OF_TURN


# -- broadcasts --------------------------------------------------------------------------------------


def test_a_broadcast_goes_to_every_owner_in_the_bytes_in_which_it_came() -> None:
    bench = bidding()
    for owner in (A, B, C):
        assert bench.last(owner) == bench.weight(1)
    assert not bench.jobs, "there is nothing to compute"


def test_a_broadcast_that_comes_before_all_are_ready_is_kept_until_they_are() -> None:
    bench = greeted()
    bench.say(CONSUMER, bench.maps())
    bench.open_round()
    for owner in (A, B):
        bench.say(owner, Ready())
    assert bench.machine.phase == "enrolling"
    bench.say(C, Ready())
    assert bench.machine.phase == "bidding"
    assert isinstance(bench.last(A), SealedBroadcast)


BROADCASTS: dict[str, tuple[Callable[[BlindBench], SealedBroadcast], Offence]] = {
    "another round": (lambda bench: bench.weight(2), Offence.OUT_OF_TURN),
    "one byte more": (
        lambda bench: bench.weight(1, box=bytes(sealed_weight_bytes(bench.opened) + 1)),
        Offence.MALFORMED,
    ),
    "one byte less": (
        lambda bench: bench.weight(1, box=bytes(sealed_weight_bytes(bench.opened) - 1)),
        Offence.MALFORMED,
    ),
}


@pytest.mark.parametrize("what", BROADCASTS)
def test_a_broadcast_of_another_round_or_length_ends_the_session(what: str) -> None:
    """Its length would reveal its content. It is the consumer's breach, like a target's."""
    make, offence = BROADCASTS[what]
    bench = bench_of()
    bench.enrol()
    assert bench.offend(CONSUMER, make(bench)).offence is offence
    bench.see_out()
    assert bench.finish is not None
    assert bench.finish.code is ExitCode.FAILED
    assert all("sealed-broadcast" not in told(bench, owner) for owner in (A, B, C))


def test_a_broadcast_before_the_maps_from_an_owner_or_twice_is_refused() -> None:
    bench = greeted()
    assert bench.offend(CONSUMER, bench.weight(1)).offence is Offence.OUT_OF_TURN
    bench = bench_of()
    bench.enrol()
    assert bench.offend(A, bench.weight(1)).offence is Offence.OUT_OF_TURN
    bench = bidding()
    assert bench.offend(CONSUMER, bench.weight(2)).offence is Offence.OUT_OF_TURN, "no award was made yet"


def test_a_round_waits_for_the_consumer_and_not_longer_than_the_pause() -> None:
    bench = bench_of()
    bench.enrol()
    assert (bench.machine.phase, bench.machine.round) == ("weighing", 1)
    bench.fire("pause")
    bench.see_out()
    assert bench.finish is not None
    assert bench.finish.code is ExitCode.TIMEOUT
    assert "the consumer sent no broadcast" in bench.finish.reason
    assert "timeouts.pause" in bench.finish.advice


def test_a_consumer_that_comes_back_within_the_pause_loses_nothing() -> None:
    bench = bench_of()
    bench.enrol()
    bench.lost(CONSUMER)
    assert bench.machine.paused
    bench.say(CONSUMER, bench.hello(CONSUMER))
    assert not bench.machine.paused
    bench.open_round()
    assert bench.machine.phase == "bidding"
    assert "pause" not in [name for name, timer in bench.timers.items() if timer.due <= bench.now]


# -- bids that are refused -----------------------------------------------------------------------------


def of_round_2(bench: BlindBench) -> BlindBid:
    return signed_bid(bench.opened, A, 2, masked(5, 4))


def resized(part: str, by: int) -> Callable[[BlindBench], BlindBid]:
    """An honest bid with too many or too few bytes in one of its parts."""

    def make(bench: BlindBench) -> BlindBid:
        bid = bench.blind_bid(A, 5, 4)
        held: bytes = getattr(bid, part)
        return bid.model_copy(update={part: held[:by] if by < 0 else held + held[:by]})

    return make


def unscored(bench: BlindBench) -> BlindBid:
    return bench.blind_bid(A, 5, 0)


BIDS: dict[str, tuple[Callable[[BlindBench], BlindBid], Offence, str]] = {
    "another round": (of_round_2, Offence.OUT_OF_TURN, "due was one for 1"),
    "a score too many": (resized("scores", 16), Offence.MALFORMED, "bytes of scores; 32 were due"),
    "a score too few": (resized("scores", -16), Offence.MALFORMED, "bytes of scores; 32 were due"),
    "part of a score": (resized("scores", -1), Offence.MALFORMED, "bytes of scores; 32 were due"),
    "a box too few": (resized("boxes", -336), Offence.MALFORMED, "bytes of boxes"),
    "a longer box": (resized("boxes", 1), Offence.MALFORMED, "bytes of boxes"),
    "a digest too many": (resized("digests", 32), Offence.MALFORMED, "bytes of digests; 96 were due"),
    "a digest too few": (resized("digests", -32), Offence.MALFORMED, "bytes of digests; 96 were due"),
    "a new box without a score": (unscored, Offence.MALFORMED, "no score of a new box"),
}


@pytest.mark.parametrize("what", BIDS)
def test_a_bid_of_another_shape_is_refused_and_leaves_nothing(what: str) -> None:
    make, offence, text = BIDS[what]
    bench = bidding(owners=2, points=4, batch=2)
    error = bench.offend(A, make(bench))
    assert (error.offence, text in error.what) == (offence, True)
    assert bench.machine.ledger.candidates == 0
    bench.bids(owner_1=(3, 2))
    assert (winners(bench), absences(bench)) == ([B, B], [(1, A)])


def test_a_second_bid_in_a_round_is_refused() -> None:
    bench = bidding()
    bench.say(A, bench.blind_bid(A, 5))
    assert bench.offend(A, bench.blind_bid(A, 5, 6)).offence is Offence.OUT_OF_TURN


def test_messages_of_other_rules_have_no_place() -> None:
    bench = bidding(owners=2)
    assert bench.offend(A, bench.bid(1, CORNERS[0], 1, W)).offence is Offence.OUT_OF_TURN
    bench = bidding(owners=2)
    assert bench.offend(CONSUMER, Receipt(part=1, disputed=b"")).offence is Offence.OUT_OF_TURN


@pytest.mark.parametrize("rule", ["sealed", "ask-all"])
def test_messages_of_this_rule_have_no_place_under_others(rule: str) -> None:
    blind = bidding(owners=2)
    messages: list[tuple[str, Message]] = [
        (CONSUMER, blind.maps()),
        (CONSUMER, blind.weight(1)),
        (CONSUMER, account_of(blind)),
        (A, blind.blind_bid(A, 5)),
    ]
    for peer, message in messages:
        other = BlindBench(session_file(owners=names(2), points=3, rule=rule))
        other.step(Started())
        other.say(peer, other.hello(peer))
        assert other.offend(peer, message).offence is Offence.OUT_OF_TURN


# -- faults ------------------------------------------------------------------------------------------


def forged(bench: BlindBench) -> BlindBid:
    return bench.blind_bid(A, 9, signer=B)


def other_scores(bench: BlindBench) -> BlindBid:
    return bench.blind_bid(A, 8).model_copy(update={"scores": masked(9)})


def other_boxes(bench: BlindBench) -> BlindBid:
    return bench.blind_bid(A, 9).model_copy(update={"boxes": bench.blind_bid(A, 9, tag=1).boxes})


def of_another_name(bench: BlindBench) -> BlindBid:
    return signed_bid(bench.opened, B, 1, masked(9), signer=A)


def numbered_otherwise(bench: BlindBench) -> BlindBid:
    return bench.blind_bid(A, 9, bids=1)


@pytest.mark.parametrize("make", [forged, other_scores, other_boxes, of_another_name, numbered_otherwise])
def test_a_bid_whose_signature_does_not_hold_is_a_fault_and_its_owner_absent(
    make: Callable[[BlindBench], BlindBid],
) -> None:
    bench = bidding(owners=2)
    bench.say(A, make(bench))
    bench.bids(owner_1=3)
    assert bench.machine.ledger.faults == [PointFault(1, A, "the owner's signature does not hold")]
    assert (bench.awarded, absences(bench)) == ([(B, 1, 1)], [(1, A)])
    assert told(bench, A)[-1] != "refused", "it is not told"


def test_an_owner_with_a_fault_stays_out_and_its_earlier_boxes_with_it() -> None:
    bench = bidding(owners=2)
    bench.bids(owner_0=9, owner_1=3)
    bench.open_round(2)
    bench.say(A, bench.blind_bid(A, 9, 8, signer=B))
    bench.bids(owner_1=(2, 1))
    assert bench.awarded == [(B, 1, 1)]
    bench.open_round(3)
    bench.bids(owner_0=(9, 9, 9), owner_1=(5, 4, 3))
    assert [owner for owner, _, _ in bench.awarded] == [B]
    assert absences(bench) == [(2, A), (3, A)]


def test_where_every_bid_is_forged_nothing_is_bought_and_the_round_is_over() -> None:
    """Owners must not be able to end the session: the award has no boxes, and the consumer goes on."""
    bench = bidding(owners=2, points=2)
    bench.say(A, bench.blind_bid(A, 9, signer=B))
    bench.say(B, bench.blind_bid(B, 9, signer=A))
    bench.check()
    assert bench.awarded == []
    assert (bench.machine.round, bench.machine.phase) == (2, "weighing")


# -- the choice --------------------------------------------------------------------------------------


def test_the_highest_masked_score_is_awarded_at_once_and_goes_to_the_consumer_alone() -> None:
    bench = bidding()
    bench.bids(owner_0=5, owner_1=9, owner_2=7)
    assert bench.awarded == [(B, 1, 1)]
    (purchase,) = bench.award.purchases
    assert purchase.score == masked(9)
    assert all("award" not in told(bench, owner) for owner in (A, B, C))
    assert (bench.machine.round, bench.machine.phase) == (2, "weighing")


def test_scores_are_ordered_by_all_their_bytes() -> None:
    """By the upper eight, then by the lower ones, without sign."""
    bench = bidding()
    bench.bids(owner_0=2**127, owner_1=2**127 + 1, owner_2=2**127 - 1)
    assert bench.awarded == [(B, 1, 1)]


def test_equal_scores_go_by_the_owners_names_and_then_by_the_numbers() -> None:
    bench = bidding(points=6, batch=2)
    bench.bids(owner_2=(5, 5), owner_1=(5, 5), owner_0=(4, 5))
    assert bench.awarded == [(A, 2, 1), (B, 1, 1)]
    bench.open_round(2)
    bench.bids(owner_2=(5, 5, 5, 5), owner_1=(5, 5, 5, 5), owner_0=(1, 1, 1, 1))
    assert bench.awarded == [(B, 2, 1), (B, 3, 2)]


def test_a_box_that_waited_is_awarded_with_the_round_and_signature_of_its_own_bid() -> None:
    bench = bidding(owners=2)
    first = bench.blind_bid(A, 5)
    bench.say(A, first)
    bench.bids(owner_1=9)
    bench.open_round(2)
    bench.bids(owner_0=(8, 2), owner_1=(1, 7))
    (purchase,) = bench.award.purchases
    assert (purchase.owner, int(purchase.handle[0]), purchase.bid_round) == (A, 1, 1)
    assert purchase.score == masked(8), "as it is masked in this round"
    assert purchase.candidate.signature == first.signature
    assert purchase.candidate.digests == first.digests
    assert purchase.candidate.box == first.boxes


def test_a_box_is_awarded_once_and_one_without_a_score_not_at_all() -> None:
    bench = bidding(owners=1, points=3)
    bench.bids(owner_0=5)
    bench.open_round(2)
    bench.bids(owner_0=(9, 4))
    assert bench.awarded == [(A, 2, 2)], "number 1 is gone, whatever its owner says of it"
    bench.open_round(3)
    bench.bids(owner_0=(9, 9, 1))
    assert bench.awarded == [(A, 3, 3)]
    bench = bidding(owners=2, points=2)
    bench.bids(owner_0=5, owner_1=9)
    bench.open_round(2)
    bench.bids(owner_0=(0, 2), owner_1=(9, 1))
    assert bench.awarded == [(A, 2, 2)]


# -- absence -----------------------------------------------------------------------------------------


def test_the_boxes_of_an_absent_owner_are_withheld_and_are_there_again_when_it_is() -> None:
    bench = bidding(owners=2, points=3)
    bench.bids(owner_0=8, owner_1=9)
    bench.gone(A)
    bench.open_round(2)
    bench.bids(owner_1=(9, 2))
    assert bench.awarded == [(B, 2, 2)], "owner-0's box of round 1 has no score in this one"
    assert absences(bench) == [(2, A)]
    bench.say(A, bench.hello(A))
    bench.open_round(3)
    bench.bids(owner_0=(8, 1), owner_1=(1, 1, 3))
    assert bench.awarded == [(A, 1, 1)]


def test_a_late_bid_is_kept_and_its_owner_absent_from_the_round() -> None:
    bench = bidding(owners=2, points=3)
    late = bench.blind_bid(A, 9)
    bench.say(B, bench.blind_bid(B, 1))
    bench.fire("round")
    bench.check()
    assert (bench.awarded, absences(bench)) == ([(B, 1, 1)], [(1, A)])
    bench.say(A, late)
    bench.open_round(2)
    bench.bids(owner_0=(9, 3), owner_1=(0, 2))
    assert bench.awarded == [(A, 1, 1)]


def test_old_scores_are_never_used_under_a_new_broadcast() -> None:
    bench = bidding(owners=2, points=2)
    bench.bids(owner_0=2**100, owner_1=3)
    bench.open_round(2)
    bench.say(B, bench.blind_bid(B, 2, 1))
    bench.fire("round")
    bench.check()
    assert bench.awarded == [(B, 1, 1)]


# -- the account -------------------------------------------------------------------------------------


def sold(**options: Any) -> BlindBench:
    """A session of one point, which was awarded; the account is due."""
    bench = bidding(owners=2, points=1, **options)
    bench.bids(owner_0=5, owner_1=9)
    assert bench.machine.phase == "delivering"
    return bench


def test_the_account_ends_the_session_settles_it_and_destroys_all_boxes() -> None:
    bench = sold()
    assert (bench.machine.settlement(), bench.machine.statement(Price()), bench.boxes_destroyed) == (
        None,
        None,
        0,
    )
    bench.say(CONSUMER, account_of(bench))
    assert bench.boxes_destroyed == 1
    bench.see_out()
    assert bench.finish is not None
    assert bench.finish.code is ExitCode.DONE
    assert bench.machine.settlement() == {A: 0.5, B: 1.5}
    statement = bench.machine.statement(Price())
    assert statement is not None
    assert statement[0] == {A: None, B: None}


@pytest.mark.parametrize("part", ["sold", "void"])
@pytest.mark.parametrize("count", [-1, 99])
def test_an_account_of_other_boxes_than_were_awarded_is_refused(part: str, count: int) -> None:
    bench = sold()
    offence = bench.offend(CONSUMER, account_of(bench, **{part: np.array([count, 0], dtype=np.int64)}))
    assert offence.offence is Offence.MALFORMED
    assert bench.machine.settlement() is None


SHAPES = ("settlement", "errors", "gains", "gain_errors", "sold", "void")


@pytest.mark.parametrize("part", SHAPES)
@pytest.mark.parametrize("length", [1, 3])
def test_an_account_of_another_number_of_owners_is_refused(part: str, length: int) -> None:
    bench = sold()
    dtype = np.int64 if part in ("sold", "void") else np.float64
    offence = bench.offend(CONSUMER, account_of(bench, **{part: np.zeros(length, dtype=dtype)}))
    assert offence.offence is Offence.MALFORMED
    assert bench.machine.settlement() is None


UNSIGNED: dict[str, Callable[[BlindBench], Account]] = {
    "signed by an owner": lambda bench: account_of(bench, A),
    "another settlement": lambda bench: account_of(bench).model_copy(
        update={"settlement": np.array([9.0, 9.0])}
    ),
    "another signal": lambda bench: account_of(bench).model_copy(update={"signal": 1}),
}


@pytest.mark.parametrize("what", UNSIGNED)
def test_an_account_that_the_consumer_did_not_sign_is_refused(what: str) -> None:
    bench = sold()
    assert bench.offend(CONSUMER, UNSIGNED[what](bench)).offence is Offence.MISMATCH
    assert bench.machine.settlement() is None


def test_an_account_before_the_last_award_is_refused() -> None:
    bench = bidding(owners=2)
    assert bench.offend(CONSUMER, account_of(bench)).offence is Offence.OUT_OF_TURN


def test_an_account_that_does_not_come_ends_the_curator_and_not_the_session() -> None:
    bench = sold()
    bench.fire("delivery")
    assert bench.finish is not None
    assert (bench.finish.code, bench.finish.final) == (ExitCode.TIMEOUT, False)
    assert "no account" in bench.finish.reason
    assert bench.boxes_destroyed == 0


# -- sessions that are refused -------------------------------------------------------------------------


def test_copies_cannot_be_told_apart_and_distinct_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"session\.distinct is true.* the rule blind") as caught:
        bench_of(distinct=True)
    assert "distinct = false" in caught.value.advice


def test_uneven_prices_are_refused() -> None:
    with pytest.raises(ConfigError, match="blind") as caught:
        bench_of(wishes={"prices": {A: 1.0, B: 2.0, C: 1.0}})
    assert "cannot divide by prices" in caught.value.what


@pytest.mark.parametrize(("points", "refused"), [(63_000, False), (66_000, True), (limits.MAX_POINTS, True)])
def test_more_points_than_a_bid_has_room_for_scores_are_refused(points: int, refused: bool) -> None:
    """A bid has 16 bytes for each box so far, and a message at most 1 MiB."""
    if not refused:
        bench_of(points=points)
        return
    with pytest.raises(ConfigError, match=rf"session\.points is {points}: under the rule blind") as caught:
        bench_of(points=points)
    assert "Buy fewer points" in caught.value.advice
