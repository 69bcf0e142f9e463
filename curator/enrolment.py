"""Enrolment: hellos, what owners commit to, the consumer's target or maps, and who is ready."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from hushbid.curator.admission import check_commitment, check_hello, check_target
from hushbid.curator.ending import close, give_up
from hushbid.curator.peers import connect
from hushbid.curator.rounds import close_bidding_if_complete, resume, start_round
from hushbid.curator.selection.open import OpenSelection
from hushbid.curator.state import AnyCurator, CuratorState
from hushbid.protocol import limits
from hushbid.protocol.errors import ExitCode, Offence, RemoteProtocolError
from hushbid.protocol.machine.machine import Started
from hushbid.protocol.names import CONSUMER, listed
from hushbid.protocol.wire.blind import Maps
from hushbid.protocol.wire.link import Link
from hushbid.protocol.wire.messages import (
    Commitment,
    Hello,
    Ready,
    Roots,
    SecretMap,
    Target,
    Welcome,
)

__all__ = [
    "on_commitment",
    "on_enrolment_over",
    "on_entering_over",
    "on_hello",
    "on_hello_again",
    "on_late_commitment",
    "on_late_ready",
    "on_maps",
    "on_ready",
    "on_started",
    "on_target",
]

_LISTED: Final = 8
"""Most names that a message lists."""

# -- hello ----------------------------------------------------------------------------------------------


def on_started(curator: AnyCurator, event: Started) -> None:
    """Give the parties their time to come."""
    curator.set_timer("enrolment", curator.file.timeouts.enrolment)


def on_hello(curator: AnyCurator, peer: str, hello: Hello) -> None:
    """Welcome a peer, and go on if it was the last."""
    on_hello_again(curator, peer, hello)
    _gather_if_complete(curator)
    _begin_if_complete(curator)


def on_hello_again(curator: AnyCurator, peer: str, hello: Hello) -> None:
    """Welcome a peer while the session runs: one that comes back, or comes late."""
    if peer != CONSUMER and peer not in curator.seats:
        raise RemoteProtocolError(
            Offence.UNKNOWN_PEER,
            "The peer is not on the session's roster.",
            advice="Compare the session files of both sides.",
        )
    link = curator.links.get(peer)
    check_hello(peer, "consumer" if peer == CONSUMER else "owner", curator.session, hello, link)
    if link is None:
        link = curator.links[peer] = Link()
    public_map = curator.session.public_map
    welcome = Welcome(
        version=curator.session.protocol_version,
        feature_map=None if public_map is None else public_map.digest,
        sent=link.sent,
        received=link.received,
    )
    curator.greet(peer, welcome)
    curator.resend(peer, hello.received)
    curator.expected_back.pop(peer, None)
    curator.dismissed.discard(peer)
    if peer == CONSUMER:
        curator.consumer_enrolled = curator.consumer_connected = True
    else:
        if not curator.rule.sealed:
            _enrol(curator, peer)
        connect(curator, peer)
        _send_map(curator, peer)
    close(curator, peer)


# -- what owners commit to ------------------------------------------------------------------------------


def on_commitment(curator: AnyCurator, owner: str, commitment: Commitment) -> None:
    """Keep what an owner commits to, unless the consumer was told already."""
    on_late_commitment(curator, owner, commitment)
    if not curator.gathered:
        curator.seats[owner].commitment = commitment
        curator.committed += 1
        _gather_if_complete(curator)


def on_late_commitment(curator: AnyCurator, owner: str, commitment: Commitment) -> None:
    """Check a commitment; who comes after the consumer was told is late, and gets no map."""
    seat = curator.seat_of(owner)
    if not curator.session.commitment_depth or seat.committed:
        raise RemoteProtocolError(
            Offence.OUT_OF_TURN, "An owner commits to its rows once, where the session says so."
        )
    check_commitment(owner, commitment, curator.session)
    seat.committed = True


def _gather_if_complete(curator: AnyCurator) -> None:
    if not curator.gathered and curator.consumer_enrolled and curator.committed == len(curator.owners):
        _gather(curator)


def _gather(curator: AnyCurator) -> None:
    """Tell the consumer what owners committed to: the feature map is drawn after that."""
    curator.gathered = True
    curator.send(CONSUMER, Roots.told(seat.commitment for seat in curator.seats.values()))
    curator.unenrolled.difference_update(curator.uncommitted())
    # The target takes its time, and so do owners that have the map.
    curator.set_timer("enrolment", curator.file.timeouts.enrolment)


# -- what the consumer sends ----------------------------------------------------------------------------


def on_target(curator: CuratorState[OpenSelection], peer: str, target: Target) -> None:
    """Take in the consumer's target, and go on if nothing else is missing."""
    if peer != CONSUMER or curator.maps is not None:
        raise RemoteProtocolError(Offence.OUT_OF_TURN, "There is one target, and it is the consumer's.")
    _require_roots(curator)
    check_target(target, curator.session)
    curator.selection.take_target(target)
    _take_maps(curator, target.maps)


def on_maps(curator: AnyCurator, peer: str, maps: Maps) -> None:
    """Take in what a blind curator gets in place of the target."""
    if peer != CONSUMER or curator.maps is not None:
        raise RemoteProtocolError(Offence.OUT_OF_TURN, "The maps came a second time.")
    _require_roots(curator)
    if len(maps.maps) != limits.MAP_BOX_BYTES * len(curator.owners):
        raise RemoteProtocolError(
            Offence.MALFORMED,
            f"The feature map is sealed in {len(maps.maps)} bytes; "
            f"{limits.MAP_BOX_BYTES * len(curator.owners)} were due.",
        )
    _take_maps(curator, maps.maps)


def _require_roots(curator: AnyCurator) -> None:
    """Refuse a map that was drawn before the consumer was told what owners committed to."""
    if not curator.gathered:
        raise RemoteProtocolError(
            Offence.OUT_OF_TURN, "A feature map came before the consumer was told of the owners' rows."
        )


def _take_maps(curator: AnyCurator, maps: bytes) -> None:
    curator.maps = maps
    for owner in curator.owners:
        _send_map(curator, owner)
    _begin_if_complete(curator)


def _send_map(curator: AnyCurator, owner: str) -> None:
    """Pass the consumer's secret map on to an owner, once: an owner that has it can bid."""
    seat, maps = curator.seats[owner], curator.maps
    if not curator.rule.sealed or maps is None or seat.mapped or not seat.connected:
        return
    if curator.session.commitment_depth and seat.commitment is None:
        return
    if curator.rule.herds and curator.phase != "enrolling" and not curator.entering:
        return  # it came too late, whether others still have time or not
    seat.mapped = True
    start = seat.rank * limits.MAP_BOX_BYTES
    curator.send(owner, SecretMap(box=maps[start : start + limits.MAP_BOX_BYTES]))


# -- who is ready ---------------------------------------------------------------------------------------


def on_ready(curator: AnyCurator, owner: str, ready: Ready) -> None:
    """Enrol an owner that has hashed its points, and go on if it was the last."""
    _take_ready(curator, owner)
    _begin_if_complete(curator)


def on_late_ready(curator: AnyCurator, owner: str, ready: Ready) -> None:
    """Enrol an owner after the rounds have begun."""
    _take_ready(curator, owner)
    resume(curator, owner)
    if not curator.unenrolled:
        on_entering_over(curator)


def _take_ready(curator: AnyCurator, owner: str) -> None:
    seat = curator.seats.get(owner)
    if seat is None or not seat.mapped or seat.enrolled:
        raise RemoteProtocolError(Offence.OUT_OF_TURN, "A peer is ready that was not sent the map.")
    _enrol(curator, owner)


def _enrol(curator: AnyCurator, owner: str) -> None:
    curator.seats[owner].enrolled = True
    curator.unenrolled.discard(owner)


def _begin_if_complete(curator: AnyCurator) -> None:
    if curator.maps is not None and (curator.rule.herds or not curator.unenrolled):
        _begin(curator)


# -- the end of enrolment -------------------------------------------------------------------------------


def on_enrolment_over(curator: AnyCurator) -> None:
    """Go on with who is here, if they are enough."""
    least = curator.file.session.min_owners
    if not curator.gathered and curator.consumer_enrolled:
        missing = curator.uncommitted()
        if len(curator.owners) - len(missing) < least:
            _give_up_for_few(curator, missing)
        else:
            _gather(curator)
        return
    enrolled = sum(seat.enrolled for seat in curator.seats.values())
    if curator.maps is None:
        what = "did not send its target" if curator.consumer_enrolled else "did not come"
        give_up(
            curator,
            ExitCode.TIMEOUT,
            f"The consumer {what} within the enrolment time.",
            "Start it, see its log, or raise timeouts.enrolment.",
        )
    elif enrolled < least:
        late = curator.uncommitted() if curator.session.commitment_depth else ()
        _give_up_for_few(curator, curator.unenrolled.union(late))
    else:
        _begin(curator)


def _give_up_for_few(curator: AnyCurator, missing: Collection[str]) -> None:
    give_up(
        curator,
        ExitCode.TIMEOUT,
        f"Of the owners, {len(curator.owners) - len(missing)} came within the enrolment time; the session "
        f"needs {curator.file.session.min_owners}. Missing: {listed(sorted(missing), _LISTED)}.",
        "Start them, or raise timeouts.enrolment, or lower session.min_owners.",
    )


def _begin(curator: AnyCurator) -> None:
    if not (curator.entering and curator.unenrolled):
        curator.clear_timer("enrolment")
        curator.entering = False
    start_round(curator)


def on_entering_over(curator: AnyCurator) -> None:
    """Let owners have their time for an answer from now on; who comes later is too late."""
    if curator.entering:
        curator.entering = False
        curator.clear_timer("enrolment")
        missing = [owner for owner, seat in curator.seats.items() if not seat.mapped]
        if len(curator.owners) - len(missing) < curator.file.session.min_owners:
            _give_up_for_few(curator, missing)
        elif curator.phase == "bidding":
            curator.set_timer("round", curator.half or curator.file.timeouts.round)
            close_bidding_if_complete(curator)
