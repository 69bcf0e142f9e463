"""Which peers are here, silent or gone, by events on connections and by the time alone."""

from __future__ import annotations

import pytest

from hushbid.curator.presence import Presence
from hushbid.protocol.config.session import TimeoutSection
from hushbid.protocol.machine.machine import Lost, Returned
from tests.unit.protocol.wire.test_wire import FRAMES

ALICE, BOB = "alice", "bob"
FIRST, SECOND = (number.to_bytes(5, "big") for number in (1, 2))
TIMEOUTS = TimeoutSection(beat=0.5, silence=3.0)


def greet(presence: Presence, peer: str, route: bytes, now: float) -> bytes | None:
    """Let a peer's hello arrive, and welcome it."""
    assert presence.connections.hears(peer, route, FRAMES["hello"])
    assert presence.heard(peer, route, now) is None, "a hello is no return"
    return presence.welcomed(peer, now)


@pytest.fixture
def presence() -> Presence:
    """Alice is here, on her first connection, since 10 s."""
    made = Presence(TIMEOUTS)
    assert greet(made, ALICE, FIRST, 10.0) is None
    return made


def test_a_peer_is_silent_after_its_time_and_once(presence: Presence) -> None:
    greet(presence, BOB, SECOND, 12.0)
    assert presence.silent(13.0) == []
    assert presence.silent(13.1) == [Lost(ALICE)]
    assert presence.silent(14.9) == []
    presence.heard(ALICE, FIRST, 15.0)
    assert presence.silent(17.9) == [Lost(BOB)], "alice's time began anew"
    assert presence.silent(18.1) == [Lost(ALICE)]


def test_who_was_silent_is_back_when_it_speaks_on_its_connection_and_said_to_be_once(
    presence: Presence,
) -> None:
    presence.silent(14.0)
    assert presence.heard(ALICE, FIRST, 20.0) == Returned(ALICE)
    assert presence.heard(ALICE, FIRST, 20.1) is None


def test_what_comes_on_another_connection_brings_nobody_back(presence: Presence) -> None:
    presence.silent(14.0)
    assert presence.heard(ALICE, SECOND, 20.0) is None
    assert presence.heard(ALICE, FIRST, 20.0) == Returned(ALICE)


def test_who_is_gone_is_back_with_a_welcome_and_not_before(presence: Presence) -> None:
    assert presence.gone(ALICE) == Lost(ALICE)
    assert presence.gone(ALICE) is None
    assert not presence.connections.hears(ALICE, FIRST, FRAMES["bid"]), "its connection has ended"
    assert presence.silent(99.0) == []
    assert greet(presence, ALICE, SECOND, 100.0) is None
    assert presence.gone(ALICE) == Lost(ALICE)


def test_a_welcome_names_the_connection_in_whose_place_it_is(presence: Presence) -> None:
    assert greet(presence, ALICE, SECOND, 11.0) == FIRST
    assert presence.silent(14.0) == [], "the silence is the new one's"


def test_who_was_silent_keeps_its_connection_until_another_is_welcomed(presence: Presence) -> None:
    presence.silent(14.0)
    assert presence.gone(ALICE) is None, "it is lost already"
    assert presence.connections.current == {ALICE: FIRST}
    assert greet(presence, ALICE, SECOND, 15.0) == FIRST


def test_who_cannot_be_reached_is_heard_out_but_not_longer_than_a_beat(presence: Presence) -> None:
    assert presence.reaches(FIRST)
    presence.not_sent(ALICE, FIRST, 11.0)
    assert (presence.reaches(FIRST), presence.hears_out) == (False, True)
    assert presence.heard_out(set(), 11.0) == [], "what waits here has not been read yet"
    assert presence.heard_out({FIRST}, 11.4) == []
    assert presence.heard_out({FIRST}, 11.5) == [ALICE]
    assert (presence.reaches(FIRST), presence.hears_out) == (True, False)
    presence.not_sent(ALICE, FIRST, 12.0)
    assert presence.heard_out(set(), 12.1) == [ALICE]


def test_who_is_on_another_connection_by_then_is_not_gone(presence: Presence) -> None:
    presence.not_sent(ALICE, FIRST, 11.0)
    greet(presence, ALICE, SECOND, 11.1)
    assert presence.heard_out(set(), 11.2) == []
    assert not presence.hears_out
