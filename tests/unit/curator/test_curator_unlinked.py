"""The blind curator that cannot link: it chooses places, and hands over the requested boxes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from hushbid.curator.machine import UNLINKED
from hushbid.protocol.errors import Offence, RemoteProtocolError
from hushbid.protocol.names import CONSUMER
from hushbid.protocol.session.session import Session
from hushbid.protocol.wire.blind import SealedBroadcast
from hushbid.protocol.wire.messages import unfixed
from hushbid.protocol.wire.unlinked import Choice, Picked, Picks, RoundOpening
from tests.simulation.harness import names, session_file
from tests.support.blind_parties import BlindBench

A, B = names(2)


@pytest.fixture(autouse=True)
def _unlinked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Session, "unlinked", True)


class Bench(BlindBench):
    """A curator, with a test in place of all others."""

    def opening(self, number: int, *taken: int) -> RoundOpening:
        weight = self.weight(number)
        return RoundOpening(
            round=number,
            box=weight.box,
            signature=weight.signature,
            taken=b"".join(place.to_bytes(4, "big") for place in taken),
        )

    def open(self, number: int, *taken: int) -> None:
        self.say(CONSUMER, self.opening(number, *taken))

    def pick(self, *numbers: int, number: int = 1) -> None:
        self.say(CONSUMER, self.picks(*numbers, number=number))

    def picks(self, *numbers: int, number: int = 1) -> Picks:
        return Picks(round=number, numbers=b"".join(each.to_bytes(8, "big") for each in numbers))

    @property
    def choice(self) -> list[tuple[str, int]]:
        (*_, choice) = (message for message in self.inbox[CONSUMER] if isinstance(message, Choice))
        return [(each.owner, unfixed(each.place)) for each in choice.chosen]

    @property
    def picked(self) -> list[tuple[str, int, int]]:
        (*_, picked) = (message for message in self.inbox[CONSUMER] if isinstance(message, Picked))
        return [(box.owner, unfixed(box.handle), box.bid_round) for box in picked.boxes]


def bench(points: int = 6, batch: int = 1) -> Bench:
    made = Bench(
        session_file(owners=[A, B], points=points, rule="blind", dimension=8, columns=3, batch=batch)
    )
    assert made.machine.table is UNLINKED
    made.enrol()
    return made


def in_round_two(batch: int = 1, first: Sequence[int] = (5, 9), picks: Sequence[int] = (1,)) -> Bench:
    """A session after a first round in which `B` sold, or each owner, if rounds buy two."""
    made = bench(batch=batch)
    made.open(1)
    each = [first[at : at + batch] for at in range(0, len(first), batch)]
    made.bids(owner_0=each[0], owner_1=each[1])
    made.pick(*picks)
    return made


def refused(made: Bench, peer: str, message: Any, offence: Offence, what: str) -> None:
    with pytest.raises(RemoteProtocolError, match=what) as caught:
        made.say(peer, message)
    assert caught.value.offence is offence


def test_owners_are_sent_the_weight_alone() -> None:
    made = bench()
    opening = made.opening(1)
    made.say(CONSUMER, opening)
    for owner in (A, B):
        last = made.last(owner)
        assert isinstance(last, SealedBroadcast)
        assert (last.round, last.box, last.signature) == (1, opening.box, opening.signature)
        assert "taken" not in dict(last)


def test_the_best_places_are_chosen_and_the_boxes_that_are_asked_for_are_handed_over() -> None:
    made = bench(points=6, batch=2)
    made.open(1)
    made.bids(owner_0=(7, 3), owner_1=(5, 9))
    assert made.choice == [(B, 1), (A, 0)]
    assert made.machine.phase == "weighing"
    assert not made.machine.ledger.wins
    made.pick(2, 1)
    assert made.picked == [(A, 2, 1), (B, 1, 1)], "the consumer alone knows what is behind a place"
    wins = [(win.owner, win.handle, win.chosen_round) for win in made.machine.ledger.wins]
    assert wins == [(A, 2, 1), (B, 1, 1)]


def test_places_of_what_was_bought_are_not_chosen_again() -> None:
    made = in_round_two()
    assert made.picked == [(B, 1, 1)]
    made.open(2, 1)
    made.bids(owner_0=(1, 2), owner_1=(3, 9))
    assert made.choice == [(B, 0)]
    made.pick(2, number=2)
    assert made.picked == [(B, 2, 2)]


def test_of_equal_scores_the_owner_whose_name_comes_first_is_before() -> None:
    made = bench(points=4, batch=2)
    made.open(1)
    made.bids(owner_0=(3, 5), owner_1=(5, 5))
    assert made.choice == [(A, 1), (B, 0)]


def test_a_bid_has_places_for_all_boxes_of_all_rounds_and_scores_for_those_that_it_sent() -> None:
    made = bench()
    made.open(1)
    made.bids(owner_1=4)
    made.fire("round")
    made.check()
    made.pick(1)
    made.open(2, 1)
    # A's first bid is late; in round 2 it has places for two boxes, of which it has sent one or two.
    made.say(A, made.blind_bid(A, 8, bids=0))
    bid = made.blind_bid(A, 0, 6, bids=1)
    refused(made, A, bid, Offence.MALFORMED, "A bid has 1 scores; 2 were due")
    short = made.blind_bid(A, 6, bids=1)
    refused(made, A, short, Offence.MALFORMED, "A bid has 16 bytes of scores; 32 were due")


def test_a_bid_after_a_round_that_was_missed_has_a_place_without_a_box() -> None:
    made = bench()
    made.lost(A)
    made.open(1)
    made.fire("comeback")
    made.bids(owner_1=4)
    made.pick(1)
    made.returned(A)
    made.open(2, 0)
    whole = made.blind_bid(A, 3, 6, bids=0)
    refused(made, A, whole, Offence.MALFORMED, "A bid has 2 scores; 1 were due")


@pytest.mark.parametrize(
    ("numbers", "number", "offence", "what"),
    [
        ((1, 1), 1, Offence.MALFORMED, "16 bytes; 8 were due"),
        ((), 1, Offence.MALFORMED, "0 bytes; 8 were due"),
        ((0,), 1, Offence.MALFORMED, "under no number of its owner's"),
        ((2,), 1, Offence.MALFORMED, "under no number of its owner's"),
        ((1,), 2, Offence.OUT_OF_TURN, "that are not due"),
    ],
)
def test_picks_that_no_correct_consumer_makes_are_refused(
    numbers: Sequence[int], number: int, offence: Offence, what: str
) -> None:
    made = bench()
    made.open(1)
    made.bids(owner_0=5, owner_1=9)
    refused(made, CONSUMER, made.picks(*numbers, number=number), offence, what)
    made.pick(1)
    refused(made, CONSUMER, made.picks(1), Offence.OUT_OF_TURN, "that are not due")


def test_a_box_is_handed_over_once_and_picks_are_in_order() -> None:
    made = bench(points=6, batch=2)
    made.open(1)
    made.bids(owner_0=(7, 8), owner_1=(5, 3))
    assert made.choice == [(A, 1), (A, 0)]
    refused(made, CONSUMER, made.picks(2, 1), Offence.MALFORMED, "second time")
    refused(made, CONSUMER, made.picks(1, 1), Offence.MALFORMED, "second time")
    made.pick(1, 2)
    made.open(2, 0, 2)
    made.bids(owner_0=(9, 7, 8, 6), owner_1=(1, 2, 3, 4))
    assert made.choice == [(A, 1), (A, 3)]
    refused(made, CONSUMER, made.picks(2, 3, number=2), Offence.MALFORMED, "second time")
    made.pick(3, 4, number=2)
    assert made.picked == [(A, 3, 2), (A, 4, 2)]


def test_nobody_but_the_consumer_opens_rounds_and_asks_for_boxes() -> None:
    made = bench()
    refused(made, A, made.opening(1), Offence.OUT_OF_TURN, "came after 0 of them")
    made.open(1)
    made.bids(owner_0=5, owner_1=9)
    refused(made, A, made.picks(1), Offence.OUT_OF_TURN, "that are not due")


@pytest.mark.parametrize(
    ("taken", "what"),
    [
        ((), "take 0 bytes; 4 were due"),
        ((0, 1), "take 8 bytes; 4 were due"),
        ((2,), "out of range"),
    ],
)
def test_places_of_bought_boxes_are_as_many_as_were_bought(taken: Sequence[int], what: str) -> None:
    made = in_round_two()
    refused(made, CONSUMER, made.opening(2, *taken), Offence.MALFORMED, what)
    made.open(2, 1)
    assert made.machine.phase == "bidding"


def test_places_of_one_owner_are_in_order_and_different() -> None:
    made = in_round_two(batch=2, first=(7, 8, 5, 3), picks=(1, 2))
    for taken in ((1, 0), (1, 1)):
        refused(made, CONSUMER, made.opening(2, *taken), Offence.MALFORMED, "not in order")
    made.open(2, 0, 3)


def test_a_round_is_not_opened_before_the_boxes_of_the_last_one_were_asked_for() -> None:
    made = bench()
    made.open(1)
    made.bids(owner_0=5, owner_1=9)
    refused(made, CONSUMER, made.opening(2), Offence.OUT_OF_TURN, "before the boxes of the last one")


def test_a_box_that_never_came_is_zeros_that_the_consumer_finds_void() -> None:
    made = bench()
    made.lost(A)
    made.open(1)
    made.fire("comeback")
    made.bids(owner_1=4)
    made.pick(1)
    made.returned(A)
    made.open(2, 0)
    made.say(A, made.blind_bid(A, 0, 6, bids=0))
    made.bids(owner_1=(1, 2))
    assert made.choice == [(A, 1)]
    made.pick(2, number=2)  # A has sent its first alone
    (*_, picked) = (message for message in made.inbox[CONSUMER] if isinstance(message, Picked))
    (box,) = picked.boxes
    assert (box.owner, unfixed(box.handle), box.bid_round) == (A, 2, 2)
    assert not any(box.candidate.box + box.candidate.digests + box.candidate.signature)
    assert made.machine.ledger.wins[-1].owner == A
    # The number is not used up: the box that comes later is handed over under it.
    made.open(3, 0)
    made.say(A, made.blind_bid(A, 0, 7, 9, bids=1))
    made.bids(owner_1=(1, 2, 3))
    assert made.choice == [(A, 2)]
    made.pick(2, number=3)
    assert made.picked == [(A, 2, 3)]
