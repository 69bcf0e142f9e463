"""The course of a round, whatever selects its points: broadcast, bids, verification, asks, and the decision.

`hushbid.curator.open_rounds` and `hushbid.curator.blind_rounds` handle the messages of one kind of session.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from hushbid.curator.ending import deliver, give_up
from hushbid.curator.ledger import Absence
from hushbid.curator.round import Round
from hushbid.curator.state import AnyCurator
from hushbid.protocol.errors import ExitCode
from hushbid.protocol.machine.machine import Computation
from hushbid.protocol.names import CONSUMER
from hushbid.protocol.wire.bids import PointBid
from hushbid.protocol.wire.blind import SealedBroadcast
from hushbid.protocol.wire.codec import encode_message
from hushbid.protocol.wire.messages import Ask, Broadcast, fixed

__all__ = [
    "answered",
    "begin_round",
    "broadcast",
    "close_asking_if_complete",
    "close_bidding_if_complete",
    "on_asking_over",
    "on_pace_over",
    "on_pause_over",
    "on_round_over",
    "on_time_over",
    "on_time_over_while_asking",
    "open_bidding",
    "resume",
    "start_round",
    "verify_or_decide",
]

# -- the broadcast --------------------------------------------------------------------------------------


def start_round(curator: AnyCurator) -> None:
    """Begin the next round."""
    curator.current = Round(curator.round + 1)
    curator.phase = "weighing"
    begin_round(curator)


def begin_round(curator: AnyCurator) -> None:
    """Have the round's weight computed, or broadcast it if the consumer has sent it; else wait for that."""
    begun = curator.selection.begin(curator.round)
    if begun is None:
        curator.set_timer("pause", curator.file.timeouts.pause)
    elif isinstance(begun, Computation):
        curator.do(begun)
    else:
        curator.clear_timer("pause")
        open_bidding(curator, begun)


def open_bidding(curator: AnyCurator, message: Broadcast | SealedBroadcast) -> None:
    """Send the broadcast to the owners that can answer it."""
    curator.phase = "bidding"
    if curator.round == 1:
        curator.began = curator.now
    curator.current.message = message
    body = encode_message(message)
    for owner, seat in curator.seats.items():
        if seat.free and curator.has_turn(owner):
            broadcast(curator, owner, message, body)
    if not curator.entering:
        curator.set_timer("round", curator.half or curator.file.timeouts.round)


def broadcast(
    curator: AnyCurator, owner: str, message: Broadcast | SealedBroadcast, body: bytes | None = None
) -> None:
    """Send an owner the round's broadcast; `body`, if given, is the encoded message."""
    seat = curator.seats[owner]
    seat.broadcast, seat.parts = message.round, 0
    seat.weights = curator.current.weights
    curator.current.awaited.add(owner)
    curator.send(owner, message, body)


def resume(curator: AnyCurator, owner: str) -> None:
    """Send a returning owner the current broadcast, if bidding is still open."""
    seat = curator.seats[owner]
    takes_part = seat.free and curator.has_turn(owner)
    message = curator.current.message
    if curator.phase == "bidding" and message and takes_part and not seat.has_bid(curator.round):
        broadcast(curator, owner, message)


# -- bids -----------------------------------------------------------------------------------------------


def answered(curator: AnyCurator, owner: str, bid: PointBid) -> None:
    """Note that an owner has answered its broadcast."""
    seat = curator.seats[owner]
    seat.broadcast, seat.bid, seat.late = 0, bid, False
    curator.current.awaited.discard(owner)


def close_bidding_if_complete(curator: AnyCurator) -> None:
    """Close bidding once nobody is waited for and enough owners are present."""
    current = curator.current
    if not current.overdue and (curator.half or current.awaited or _missed(curator)):
        return
    if curator.rule.herds and not current.overdue and not _all_submitted(curator):
        return
    if len(curator.bids()) < curator.file.session.min_owners:
        if not curator.paused:
            curator.set_timer("pause", curator.file.timeouts.pause)
            current.paused = True
        return
    curator.clear_timer("pause")
    current.paused = False
    if curator.half:
        curator.set_timer("cadence", curator.half)
    verify_or_decide(curator)


def _all_submitted(curator: AnyCurator) -> bool:
    """Whether nothing more can come; else whoever is away may come back, as long as there is time.

    An owner that has the map came in time, and may still be at its rows.
    """
    coming = (seat for seat in curator.seats.values() if seat.mapped or curator.entering)
    return all(seat.has_bid(curator.round) or seat.out for seat in coming)


def _missed(curator: AnyCurator) -> list[str]:
    """Owners that were lost a short while ago and owe only this round's bid."""
    return [
        owner
        for owner in curator.expected_back
        if (seat := curator.seats.get(owner)) is not None  # the consumer has none
        and curator.has_turn(owner)
        and seat.enrolled
        and not seat.out
        and not seat.has_bid(curator.round)
        and not seat.asked
        and seat.broadcast in (0, curator.round)
    ]


def on_round_over(curator: AnyCurator) -> None:
    """Wait for no bid any more."""
    curator.current.overdue = True
    close_bidding_if_complete(curator)


def on_pause_over(curator: AnyCurator) -> None:
    """Give up a session that has had too few owners for too long."""
    give_up(
        curator,
        ExitCode.TIMEOUT,
        f"In round {curator.round} only {len(curator.bids())} owners were present for longer than the "
        f"pause allows; the session needs {curator.file.session.min_owners}.",
    )


# -- verification, and asks -----------------------------------------------------------------------------


def verify_or_decide(curator: AnyCurator) -> None:
    """Verify what was handed over; once all is verified, ask owners for points, or decide the round."""
    curator.clear_timer("round")
    check = curator.selection.check()
    if check is not None:
        curator.phase = "verifying"
        curator.do(check)
    else:
        _ask_or_decide(curator)


def _ask_or_decide(curator: AnyCurator) -> None:
    current, bids = curator.current, curator.bids()
    asked = () if current.time_over else curator.selection.ask(current, bids)
    if not asked:
        _decide(curator, bids.keys())
        return
    curator.phase = "asking"
    current.asked = asked
    for owner in asked:
        handle = curator.seats[owner].asked = bids[owner].handle
        curator.send(owner, Ask(round=curator.round, handle=fixed(handle)))
    if not curator.half:
        curator.set_timer("round", curator.file.timeouts.round)


def close_asking_if_complete(curator: AnyCurator) -> None:
    """Go on once nobody is waited for that was asked."""
    # An owner that missed the time of an earlier stage is not waited for a second time.
    here = (owner for owner in curator.current.asked if curator.seats[owner].asked)
    if not any(curator.seats[owner].connected or owner in curator.expected_back for owner in here):
        verify_or_decide(curator)


def on_asking_over(curator: AnyCurator) -> None:
    """Wait no longer for points that were asked for."""
    verify_or_decide(curator)


# -- the decision ---------------------------------------------------------------------------------------


def _decide(curator: AnyCurator, present: AbstractSet[str]) -> None:
    """Choose the best points of the present owners, and continue when it is time."""
    told = curator.selection.choose(curator.current, present)
    if told is not None:
        curator.send(CONSUMER, told)
    for owner in curator.owners:
        if owner not in present and curator.has_turn(owner):
            curator.ledger.absences.append(Absence(curator.round, owner))
            # An owner whose point does not match must not learn it, not even by silence: only being in
            # time counts.
            seat = curator.seats[owner]
            seat.out |= curator.leave_for_good and not seat.has_bid(curator.round)
    curator.decided = curator.now
    if curator.half and not curator.current.time_over:
        curator.phase = "pacing"
    else:
        _go_on(curator)


def _go_on(curator: AnyCurator) -> None:
    if curator.rounds_over:
        deliver(curator)
    else:
        start_round(curator)


def on_time_over(curator: AnyCurator) -> None:
    """End a round's time while its points are verified: nobody is asked any more."""
    curator.current.time_over = True


def on_time_over_while_asking(curator: AnyCurator) -> None:
    """End a round's time while points are asked for: missing ones are not waited for."""
    curator.current.time_over = True
    verify_or_decide(curator)


def on_pace_over(curator: AnyCurator) -> None:
    """Go on from a round that was decided before its time was over."""
    curator.current.time_over = True
    _go_on(curator)
