"""Rounds of a curator that reads bids: it computes weights, and takes in bids and the points asked for."""

from __future__ import annotations

from hushbid.curator.ending import give_up
from hushbid.curator.events import CandidatesChecked
from hushbid.curator.rounds import (
    answered,
    close_asking_if_complete,
    close_bidding_if_complete,
    open_bidding,
    resume,
    verify_or_decide,
)
from hushbid.curator.selection.open import OpenSelection
from hushbid.curator.state import CuratorState
from hushbid.protocol.errors import BudgetExceeded, ExitCode
from hushbid.protocol.machine.weighing import NoiseDrawn, WeightsComputed
from hushbid.protocol.wire.bids import points_of
from hushbid.protocol.wire.messages import Batch, Bid, Next, Offer, Receipt, Target

__all__ = [
    "on_bid",
    "on_candidates_checked",
    "on_late_bid",
    "on_late_offer",
    "on_moot",
    "on_moot_message",
    "on_noise",
    "on_offer",
    "on_weights",
]

# -- the weight -----------------------------------------------------------------------------------------


def on_noise(curator: CuratorState[OpenSelection], drawn: NoiseDrawn) -> None:
    """Have the weights computed with the noise that was drawn."""
    curator.do(curator.selection.weighing.drawn(drawn, curator.round))


def on_weights(curator: CuratorState[OpenSelection], computed: WeightsComputed) -> None:
    """Charge the release, and broadcast the weights."""
    try:
        charges = curator.selection.weighing.computed(computed, curator.round)
    except BudgetExceeded as error:
        give_up(curator, ExitCode.FAILED, error.what, error.advice)
        return
    for charge in charges:
        curator.do(charge)
    curator.current.weights = computed.weights
    open_bidding(curator, curator.selection.broadcast(curator.round, computed.weights))


# -- bids -----------------------------------------------------------------------------------------------


def on_bid(curator: CuratorState[OpenSelection], owner: str, bid: Bid | Batch) -> None:
    """Take in a bid, and go on if it was the last that was waited for."""
    _take_bid(curator, owner, bid)
    if bid.round == curator.round:
        close_bidding_if_complete(curator)
    else:
        resume(curator, owner)


def on_late_bid(curator: CuratorState[OpenSelection], owner: str, bid: Bid | Batch) -> None:
    """Take in a bid after bidding closed; even if it is for this round, its owner is absent from it."""
    _take_bid(curator, owner, bid)
    curator.seats[owner].late = True


def _take_bid(curator: CuratorState[OpenSelection], owner: str, message: Bid | Batch) -> None:
    """Check a bid, keep it, and queue its points, if any, for verification."""
    seat = curator.due_from(owner, message.round)
    brought = points_of(message)
    bid, handles = curator.selection.read(message, brought, seat)
    seat.parts += 1
    if seat.parts == curator.session.messages:
        answered(curator, owner, bid)
    elif curator.phase == "bidding":
        curator.send(owner, Next(round=message.round))
    if brought is None:
        for handle in handles:
            seat.times[handle] = seat.times.get(handle, 0) + 1
    elif handles:
        scores = message.scores.tolist() if isinstance(message, Batch) else [bid.score]
        curator.selection.hand_over(owner, message.round, handles, scores[: len(handles)], brought)


# -- points ---------------------------------------------------------------------------------------------


def on_candidates_checked(curator: CuratorState[OpenSelection], checked: CandidatesChecked) -> None:
    """Take verified points into the pool, and go on."""
    curator.selection.checked(checked, curator.current)
    # A point that arrived meanwhile is verified before its owner counts as present.
    verify_or_decide(curator)


def on_offer(curator: CuratorState[OpenSelection], owner: str, offer: Offer) -> None:
    """Take in a point that was asked for, and go on if it was the last."""
    _take_offer(curator, owner, offer)
    close_asking_if_complete(curator)


def on_late_offer(curator: CuratorState[OpenSelection], owner: str, offer: Offer) -> None:
    """Take in a point after its time; its owner takes part again."""
    _take_offer(curator, owner, offer)
    resume(curator, owner)


def _take_offer(curator: CuratorState[OpenSelection], owner: str, offer: Offer) -> None:
    curator.seat_of(owner)
    curator.selection.take_offer(owner, offer)


# -- after the end --------------------------------------------------------------------------------------


def on_moot(
    curator: CuratorState[OpenSelection], event: NoiseDrawn | WeightsComputed | CandidatesChecked
) -> None:
    """Ignore results of work that was in progress when the session was given up."""


def on_moot_message(curator: CuratorState[OpenSelection], peer: str, message: Target | Receipt) -> None:
    """Ignore messages that were on their way when the session was given up."""
