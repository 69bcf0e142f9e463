"""Whether the curator is here, by events on the connection and by the time alone."""

from __future__ import annotations

import pytest

from hushbid.protocol.config.session import TimeoutSection
from hushbid.protocol.machine.machine import Connected, Lost, Returned
from hushbid.protocol.machine.presence import CuratorPresence
from hushbid.protocol.names import CURATOR

TIMEOUTS = TimeoutSection(beat=0.5, silence=3.0)
LOST, RETURNED = Lost(CURATOR), Returned(CURATOR)


@pytest.fixture
def presence() -> CuratorPresence:
    """A curator whose connection has stood since 10 s."""
    made = CuratorPresence(TIMEOUTS, 9.0)
    assert made.established(10.0) == Connected()
    return made


def test_a_curator_that_was_never_there_is_not_silent_and_is_lost_once() -> None:
    presence = CuratorPresence(TIMEOUTS, 9.0)
    assert not presence.connected
    assert not presence.is_silent(100.0)
    assert (presence.ended(), presence.ended()) == (LOST, None)


def test_it_is_silent_after_its_time_which_every_frame_begins_anew(presence: CuratorPresence) -> None:
    assert not presence.is_silent(13.0)
    assert presence.is_silent(13.1)
    assert (presence.heard(12.0), presence.taken_in()) == (None, None)
    assert not presence.is_silent(15.0)
    assert presence.is_silent(15.1)


def test_it_is_lost_once_when_its_connection_ends(presence: CuratorPresence) -> None:
    assert (presence.ended(), presence.ended()) == (LOST, None)
    assert not presence.connected
    assert not presence.is_silent(100.0), "there is nothing to give up"


def test_it_is_back_when_it_speaks_on_another_connection_and_not_before(presence: CuratorPresence) -> None:
    presence.ended()
    assert presence.established(20.0) == Connected()
    assert presence.heard(20.1) == RETURNED
    assert presence.heard(20.2) is None
    assert presence.ended() == LOST


def test_another_connection_has_a_time_of_its_own(presence: CuratorPresence) -> None:
    presence.ended()
    presence.established(20.0)
    assert not presence.is_silent(23.0)
    assert presence.is_silent(23.1)


def test_what_is_read_of_a_connection_that_has_ended_is_no_return(presence: CuratorPresence) -> None:
    presence.ended()
    assert presence.heard(11.0) is None


def test_after_a_welcome_that_is_read_too_late_it_is_lost_once_more(presence: CuratorPresence) -> None:
    """After a welcome the machine waits for no lost curator: it is told again that there is none."""
    presence.ended()
    presence.heard(11.0)
    assert presence.taken_in() == LOST
    assert presence.ended() is None
