"""Rounds that buy several points: what the curator accepts, refuses, and counts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from hushbid.curator.ledger import PointFault
from hushbid.curator.result import Sale
from hushbid.protocol import limits
from hushbid.protocol.errors import ConfigError, LocalProtocolError, Offence
from hushbid.protocol.machine.weighing import ComputeWeights
from hushbid.protocol.names import CONSUMER
from hushbid.protocol.privacy.payment import Price
from hushbid.protocol.session.points import NOT_SIGNED
from hushbid.protocol.session.session import open_session
from hushbid.protocol.space.scoring import Best
from hushbid.protocol.wire.messages import Batch, Bid, Delivery, sizes
from tests.simulation.harness import FORGED, CuratorBench, names, session_file
from tests.support.curator_rounds import (
    BEST,
    CORNERS,
    SECOND,
    THIRD,
    A,
    B,
    C,
    W,
    bidding,
    doubled,
    halved,
    winners,
)


def batch_of(bench: CuratorBench, *rows: int, first: int = 1, round_number: int = 1) -> Batch:
    points = [(CORNERS[row], first + place) for place, row in enumerate(rows)]
    return bench.batch(round_number, points, W)


@pytest.mark.parametrize("rule", ["ask-all", "sealed"])
def test_a_round_buys_the_best_of_all_owners_and_the_last_one_what_is_left(rule: str) -> None:
    bench = bidding(rule, owners=2, points=5, batch=3)
    assert bench.opened.rounds == 2
    bench.say(A, batch_of(bench, THIRD))
    bench.say(B, batch_of(bench, BEST, SECOND, THIRD))
    bench.verify()
    assert bench.chosen == [CORNERS[row].tobytes() for row in (BEST, SECOND, THIRD)]
    assert [win.chosen_round for win in bench.machine.ledger.wins] == [1, 1, 1]
    assert winners(bench) == [B, B, A], "equal points go by their owners' names"
    bench.broadcast(W)
    bench.say(A, batch_of(bench, BEST, SECOND, THIRD, first=2, round_number=2))
    bench.say(B, batch_of(bench, round_number=2))
    bench.verify()
    assert len(bench.machine.ledger.wins) == 5
    assert bench.machine.phase == "delivering"
    bench.machine.selection.check_total()


def test_a_batch_in_which_nothing_is_left_is_no_absence() -> None:
    bench = bidding(owners=2, points=4, batch=2)
    bench.say(A, batch_of(bench))
    bench.say(B, batch_of(bench))
    assert bench.machine.round == 2
    assert not bench.machine.ledger.wins
    assert not bench.machine.ledger.absences


def test_a_pool_that_names_a_point_twice_is_our_own_fault_and_nobodys_win() -> None:
    bench = bidding(owners=1, points=4, batch=2)
    bench.say(A, batch_of(bench, BEST))
    bench.verify()
    (win,) = bench.machine.ledger.wins
    with pytest.raises(LocalProtocolError, match="Entry 0 of the pool was taken twice"):
        bench.machine.selection.take([Best(entry=0, score=win.score)], 2)
    assert bench.machine.ledger.wins == [win]


def test_weights_count_rounds_and_not_points() -> None:
    bench = bidding(owners=1, points=6, batch=2, seed_weight=0.5)
    bench.say(A, batch_of(bench, BEST))
    bench.verify()
    (effect,) = bench.jobs
    assert isinstance(effect, ComputeWeights)
    assert effect.count == 0.5 * 2 + 2  # two seed points by half, and a round of two of which one was bought
    assert np.array_equal(effect.total, CORNERS[BEST])


def twice(bench: CuratorBench) -> Batch:
    return batch_of(bench, BEST, SECOND).model_copy(update={"handles": sizes([1, 1])})


def padding_first(bench: CuratorBench) -> Batch:
    return batch_of(bench, BEST, SECOND).model_copy(update={"handles": sizes([0, 1])})


def beyond(bench: CuratorBench) -> Batch:
    return batch_of(bench, BEST, SECOND).model_copy(update={"handles": sizes([1, limits.MAX_POINTS + 1])})


def negative(bench: CuratorBench) -> Batch:
    return batch_of(bench, BEST, SECOND).model_copy(update={"handles": sizes([1, -1])})


def fewer(bench: CuratorBench) -> Batch:
    return halved(batch_of(bench, BEST))


def more(bench: CuratorBench) -> Batch:
    return doubled(batch_of(bench, BEST, SECOND))


def a_single_bid(bench: CuratorBench) -> Bid:
    return bench.bid(1, CORNERS[BEST], 1, W)


def sealed(bench: CuratorBench) -> Batch:
    other = CuratorBench(session_file(owners=names(2), points=4, batch=2, rule="sealed"))
    return batch_of(other, BEST, SECOND)


def long_attributes(bench: CuratorBench) -> Batch:
    whole = batch_of(bench, BEST, SECOND)
    attributes = bytes(2 * (limits.MAX_ATTRIBUTES + 1))
    return whole.model_copy(
        update={"candidates": whole.candidates.model_copy(update={"attributes": attributes})}
    )


def of_other_dimensions(bench: CuratorBench) -> Batch:
    whole = batch_of(bench, BEST, SECOND)
    features = np.tile(whole.candidates.features, 2)
    return whole.model_copy(update={"candidates": whole.candidates.model_copy(update={"features": features})})


@pytest.mark.parametrize(
    ("made", "what"),
    [
        (twice, "a point twice under its number"),
        (padding_first, "padding before a point"),
        (beyond, "out of range"),
        (negative, "out of range"),
        (fewer, "room for 2 points, not 1"),
        (more, "room for 2 points, not 4"),
        (a_single_bid, "room for 2 points, not 1"),
        (sealed, "the other way: sealed, or open"),
        (of_other_dimensions, "needs 4 features"),
        (long_attributes, "take over 4096 bytes"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_a_batch_that_is_none_of_this_session_is_refused_and_leaves_nothing(
    made: Callable[[CuratorBench], Batch | Bid], what: str
) -> None:
    bench = bidding(owners=2, points=4, batch=2)
    error = bench.offend(A, made(bench))
    assert error.offence is Offence.MALFORMED
    assert what in error.what
    assert bench.machine.ledger.candidates == 0
    bench.say(B, batch_of(bench, SECOND, THIRD))
    bench.verify()
    assert winners(bench) == [B, B]


def test_a_batch_where_rounds_buy_one_point_is_refused() -> None:
    other = bidding(owners=2, points=4, batch=2)
    error = bidding(owners=2).offend(A, batch_of(other, BEST, SECOND))
    assert "room for 1 points, not 2" in error.what


def test_a_number_that_was_handed_over_in_a_batch_is_not_bid_again() -> None:
    bench = bidding(owners=1, points=4, batch=2)
    bench.say(A, batch_of(bench, BEST, SECOND))
    bench.verify()
    bench.broadcast(W)
    error = bench.offend(A, batch_of(bench, THIRD, first=2, round_number=2))
    assert error.offence is Offence.OUT_OF_TURN
    assert "handed over before" in error.what


def test_one_score_that_is_wrong_makes_the_owner_faulty_and_its_other_points_are_withheld() -> None:
    bench = bidding(owners=2, points=4, batch=2)
    bid = batch_of(bench, BEST, SECOND)
    scores = bid.scores.copy()
    scores[1] += 1
    bench.say(A, bid.model_copy(update={"scores": scores}))
    bench.say(B, batch_of(bench, THIRD))
    bench.verify()
    assert winners(bench) == [B]
    assert [fault.owner for fault in bench.machine.ledger.faults] == [A]


def unsigned(whole: Batch) -> Batch:
    return whole.model_copy(update={"candidates": whole.candidates.model_copy(update={"signature": FORGED})})


def test_a_batch_that_its_owner_has_not_signed_is_one_fault_of_all_its_points() -> None:
    bench = bidding("sealed", owners=2, points=6, batch=3)
    bench.say(A, unsigned(batch_of(bench, BEST, SECOND)))  # and padding, which is no point
    bench.say(B, batch_of(bench, THIRD))
    bench.verify()
    assert winners(bench) == [B]
    assert bench.machine.ledger.faults == [PointFault(1, A, NOT_SIGNED, points=2)]
    (fault,) = Sale.of(bench.session, bench.machine, Price(), seconds=1.0).faults
    assert fault.as_json() == {"owner": A, "round": 1, "what": NOT_SIGNED, "points": 2}
    assert fault.text == "the owner's signature does not hold (2 points)"


def test_two_batches_that_are_not_signed_are_two_faults() -> None:
    bench = bidding("sealed", owners=3, points=6, batch=2)
    bench.say(A, unsigned(batch_of(bench, BEST, SECOND)))
    bench.say(B, unsigned(batch_of(bench, THIRD)))
    bench.say(C, batch_of(bench, BEST))
    bench.verify()
    assert bench.machine.ledger.faults == [PointFault(1, A, NOT_SIGNED, 2), PointFault(1, B, NOT_SIGNED, 1)]


def test_points_that_are_wrong_one_by_one_are_as_many_faults() -> None:
    bench = bidding(owners=2, points=4, batch=2)
    whole = batch_of(bench, BEST, SECOND)
    bench.say(A, whole.model_copy(update={"scores": whole.scores + 1}))
    bench.say(B, batch_of(bench, THIRD))
    bench.verify()
    what = "the bid is not the score of the features"
    assert bench.machine.ledger.faults == [PointFault(1, A, what), PointFault(1, A, what)]


def test_the_longest_attributes_of_a_batch_can_be_delivered() -> None:
    bench = bidding(owners=1, points=2, batch=2)
    whole = batch_of(bench, BEST, SECOND)
    attributes = bytes(2 * limits.MAX_ATTRIBUTES)
    candidates = whole.candidates.model_copy(update={"attributes": attributes})
    bench.say(A, whole.model_copy(update={"candidates": candidates}))
    bench.verify()
    delivery = bench.last(CONSUMER)  # which the harness has decoded as the consumer does
    assert isinstance(delivery, Delivery)
    assert len(delivery.purchases) == 2


# -- the session file ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"batch": 5}, "session.batch is 5, and 4 points are to be bought in all"),
        ({"batch": 2, "rule": "winner-only"}, "winner-only asks for one point at a time"),
        ({"batch": 2, "rule": "published"}, "published asks for one point at a time"),
        ({"points": 400, "batch": 400, "columns": 1000}, "a bid has room for"),
        ({"distinct": True, "rule": "winner-only"}, "session.distinct is true, and the rule winner-only"),
        ({"distinct": True, "settlement": 1.0}, "session.distinct is true and the settlement private"),
    ],
)
def test_a_purchase_that_cannot_be_is_refused(changes: dict[str, object], what: str) -> None:
    values: dict[str, object] = {"owners": names(2), "points": 4, **changes}
    with pytest.raises(ConfigError, match=what) as caught:
        open_session(session_file(**values))  # type: ignore[arg-type]
    assert caught.value.advice


@pytest.mark.parametrize(
    ("points", "rule", "columns", "batch", "rounds"),
    [
        (1, "sealed", 4, 1, 1),
        (50, "sealed", 4, 1, 50),
        (51, "sealed", 4, 2, 26),
        (1000, "ask-all", 4, 20, 50),
        (1000, "sealed", 784, 20, 50),
        (1000, "winner-only", 4, 1, 1000),
        (1000, "sealed", 100_000, 1, 1000),
    ],
)
def test_fifty_rounds_unless_the_rule_or_the_room_in_a_message_forbids(
    points: int, rule: str, columns: int, batch: int, rounds: int
) -> None:
    file = session_file(owners=names(2), points=points, rule=rule, columns=columns)
    left_out = file.model_copy(update={"session": file.session.model_copy(update={"batch": None})})
    assert (left_out.batch, left_out.rounds) == (batch, rounds)
