"""Rounds of a blind curator: it passes the consumer's weights on, and takes in boxes with masked scores.

Under version 4 the curator also cannot link scores with boxes (`hushbid.curator.selection.unlinked`).
"""

from __future__ import annotations

from hushbid.curator.ending import give_up
from hushbid.curator.events import BidsChecked
from hushbid.curator.rounds import (
    answered,
    begin_round,
    close_bidding_if_complete,
    resume,
    verify_or_decide,
)
from hushbid.curator.selection.blind import BlindSelection
from hushbid.curator.selection.unlinked import UnlinkedSelection
from hushbid.curator.state import CuratorState
from hushbid.protocol.errors import ExitCode
from hushbid.protocol.names import CONSUMER
from hushbid.protocol.wire.bids import PointBid
from hushbid.protocol.wire.blind import Account, BlindBid, Maps, SealedBroadcast
from hushbid.protocol.wire.unlinked import Picks, RoundOpening

__all__ = [
    "on_awaited_opening",
    "on_awaited_weight",
    "on_bid",
    "on_bids_checked",
    "on_early_opening",
    "on_early_weight",
    "on_late_bid",
    "on_moot_check",
    "on_moot_message",
    "on_moot_unlinked_message",
    "on_picks",
    "on_weight_overdue",
]

# -- the weight -----------------------------------------------------------------------------------------


def on_early_weight(curator: CuratorState[BlindSelection], peer: str, message: SealedBroadcast) -> None:
    """Keep the next round's weight until the clock, or the last check, begins the round."""
    curator.selection.take_weight(message, due=peer == CONSUMER and curator.maps is not None)


def on_awaited_weight(curator: CuratorState[BlindSelection], peer: str, message: SealedBroadcast) -> None:
    """Broadcast the weight for which the round waits."""
    on_early_weight(curator, peer, message)
    begin_round(curator)


def on_early_opening(curator: CuratorState[UnlinkedSelection], peer: str, message: RoundOpening) -> None:
    """As `on_early_weight`, with the places of boxes that were bought."""
    curator.selection.take_opening(message, due=peer == CONSUMER and curator.maps is not None)


def on_awaited_opening(curator: CuratorState[UnlinkedSelection], peer: str, message: RoundOpening) -> None:
    """As `on_awaited_weight`, with the places of boxes that were bought."""
    on_early_opening(curator, peer, message)
    begin_round(curator)


def on_weight_overdue(curator: CuratorState[BlindSelection]) -> None:
    """Give up a round for which the consumer sent no weight."""
    give_up(
        curator,
        ExitCode.TIMEOUT,
        f"In round {curator.round} the consumer sent no broadcast for longer than the pause allows.",
        "See the consumer's log, or raise timeouts.pause.",
    )


# -- bids -----------------------------------------------------------------------------------------------


def on_bid(curator: CuratorState[BlindSelection], owner: str, bid: BlindBid) -> None:
    """Take in a bid, and go on if it was the last that was waited for."""
    _take_bid(curator, owner, bid)
    if bid.round == curator.round:
        close_bidding_if_complete(curator)
    else:
        resume(curator, owner)


def on_late_bid(curator: CuratorState[BlindSelection], owner: str, bid: BlindBid) -> None:
    """Take in a bid after bidding closed; even if it is for this round, its owner is absent from it."""
    _take_bid(curator, owner, bid)
    curator.seats[owner].late = True


def _take_bid(curator: CuratorState[BlindSelection], owner: str, bid: BlindBid) -> None:
    curator.due_from(owner, bid.round)
    curator.selection.take_bid(owner, bid)
    answered(curator, owner, PointBid(bid.round, False, 0, 0, None))


def on_bids_checked(curator: CuratorState[BlindSelection], checked: BidsChecked) -> None:
    """Keep the boxes of signed bids, and decide the round."""
    curator.selection.checked(checked)
    verify_or_decide(curator)


# -- the choice -----------------------------------------------------------------------------------------


def on_picks(curator: CuratorState[UnlinkedSelection], peer: str, picks: Picks) -> None:
    """Send the consumer the boxes behind the places that were chosen."""
    curator.send(CONSUMER, curator.selection.take_picks(picks, due=peer == CONSUMER))


# -- after the end --------------------------------------------------------------------------------------


def on_moot_check(curator: CuratorState[BlindSelection], checked: BidsChecked) -> None:
    """Ignore checks that were in progress when the session was given up."""


def on_moot_message(
    curator: CuratorState[BlindSelection], peer: str, message: Maps | SealedBroadcast | Account
) -> None:
    """Ignore messages that were on their way when the session was given up."""


def on_moot_unlinked_message(
    curator: CuratorState[UnlinkedSelection], peer: str, message: Maps | RoundOpening | Picks | Account
) -> None:
    """As `on_moot_message`, where the curator cannot link."""
