"""Which connection of a peer the curator listens to, and the effect of a flood."""

from __future__ import annotations

import pytest

from hushbid.curator.connections import Connections, Ignored
from hushbid.protocol import limits
from hushbid.protocol.wire.codec import encode_message
from tests.support.message_cases import CASES
from tests.unit.protocol.wire.test_wire import FRAMES

HELLO, BEAT, BID = FRAMES["hello"], FRAMES["beat"], FRAMES["bid"]
JUNK = b"x"


def route(number: int) -> bytes:
    return number.to_bytes(5, "big")


@pytest.fixture
def connections() -> Connections:
    """A peer that was welcomed on its first connection."""
    made = Connections()
    assert made.hears("alice", route(1), HELLO)
    made.accept("alice")
    return made


def test_a_connection_is_heard_from_its_hello_on() -> None:
    connections = Connections()
    assert not connections.hears("alice", route(1), BID)
    assert not connections.hears("alice", route(1), BEAT)
    assert connections.hears("alice", route(1), HELLO)
    assert "alice" not in connections.current, "it has to be welcomed"
    connections.accept("alice")
    assert connections.current == {"alice": route(1)}
    assert connections.hears("alice", route(1), BID)
    assert connections.hears("alice", route(1), BEAT)
    assert connections.ignored == {Ignored.NO_HELLO: 2}


def test_the_newest_welcomed_connection_replaces_the_others(connections: Connections) -> None:
    assert connections.hears("alice", route(2), HELLO)
    assert connections.hears("alice", route(1), BID), "until the welcome"
    assert connections.accept("alice") == route(1), "who is still there is to be told"
    assert connections.hears("alice", route(2), BID)
    assert not connections.hears("alice", route(1), BID)


@pytest.mark.parametrize("first", [7, 2**32 - 1])
def test_a_hello_that_was_held_up_on_an_older_connection_is_not_heard(first: int) -> None:
    connections = Connections()
    older, newer = route(first), route((first + 1) % 2**32)
    assert connections.hears("alice", newer, HELLO)
    connections.accept("alice")
    assert not connections.hears("alice", older, HELLO)
    assert connections.hears("alice", newer, BID)
    assert connections.hears("bob", route((first - 1) % 2**32), HELLO), "each peer has its own"
    assert connections.ignored == {Ignored.OLD_CONNECTION: 1}


def test_who_says_hello_on_an_older_connection_is_told_once(connections: Connections) -> None:
    assert connections.hears("alice", route(3), HELLO)
    for _ in range(2):
        assert not connections.hears("alice", route(2), HELLO), "the newer hello is being answered"
    assert connections.late() == [route(2)]
    connections.accept("alice")
    assert not connections.hears("alice", route(0), HELLO)
    assert not connections.hears("alice", route(2), BID), "nothing is owed to it"
    assert connections.late() == [route(0)]
    assert connections.late() == []


def test_a_hello_is_heard_if_that_of_the_newer_connection_was_refused() -> None:
    connections = Connections()
    assert connections.hears("alice", route(2), HELLO)
    connections.refuse("alice", route(2))
    assert connections.hears("alice", route(1), HELLO), "there is nobody whom it would replace"
    assert connections.late() == []


def test_hellos_on_older_connections_count(connections: Connections, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_HELLOS_PER_PEER", 3)
    assert connections.hears("alice", route(9), HELLO)
    connections.accept("alice")
    assert not connections.hears("alice", route(2), HELLO)
    assert not connections.hears("alice", route(3), HELLO)
    assert connections.late() == [route(2)]
    assert connections.ignored == {Ignored.OLD_CONNECTION: 1, Ignored.TOO_MANY_HELLOS: 1}


def test_a_connection_says_hello_once(connections: Connections) -> None:
    for _ in range(3):
        assert not connections.hears("alice", route(1), HELLO)
    assert connections.hears("alice", route(2), HELLO)
    assert not connections.hears("alice", route(2), HELLO), "not before its welcome either"
    connections.accept("alice")
    assert not connections.hears("alice", route(1), HELLO), "nor in turn with another"
    assert connections.ignored == {Ignored.SECOND_HELLO: 5}


def test_every_hello_begins_as_the_filter_expects(connections: Connections) -> None:
    from hushbid.curator.connections import _HELLO

    hellos = [case.message for case in CASES.values() if case.message.kind == "hello"]
    assert hellos
    assert all(encode_message(hello).startswith(_HELLO) for hello in hellos)


def test_a_refused_connection_is_not_heard_any_more(connections: Connections) -> None:
    connections.refuse("alice", route(1))
    assert connections.current == {}
    for frame in (JUNK, BID, BEAT, HELLO):
        assert not connections.hears("alice", route(1), frame)
    assert connections.ignored.total() == 4
    assert connections.hears("alice", route(2), HELLO), "a new one may say hello"


def test_a_refused_hello_leaves_an_earlier_connection_alone(connections: Connections) -> None:
    assert connections.hears("alice", route(2), JUNK)
    connections.refuse("alice", route(2))
    connections.accept("alice")
    assert connections.current == {"alice": route(1)}
    assert connections.hears("alice", route(1), BID)
    assert not connections.hears("alice", route(2), JUNK)


def test_each_refusal_is_told_where_it_came_from(connections: Connections) -> None:
    for number in (2, 3):
        assert connections.hears("alice", route(number), JUNK)
        connections.refuse("alice", route(number))
    connections.refuse("alice", route(1))
    told = [connections.next_to_be_told("alice") for _ in range(3)]
    assert told == [route(2), route(3), route(1)]


def test_after_its_last_refusal_no_new_connection_of_a_peer_is_heard(connections: Connections) -> None:
    for number in range(2, limits.MAX_REFUSALS_PER_PEER + 2):
        assert connections.hears("alice", route(number), JUNK)
        assert connections.refuse("alice", route(number)) is (number == limits.MAX_REFUSALS_PER_PEER + 1)
    for frame in (JUNK, HELLO):
        assert not connections.hears("alice", route(100), frame)
    assert connections.ignored == {Ignored.TOO_MANY_REFUSALS: 2}
    assert connections.hears("alice", route(1), BID), "one that is in use stays"
    assert connections.hears("bob", route(101), HELLO), "others are no part of it"


def test_connections_of_a_peer_are_counted(connections: Connections, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_HELLOS_PER_PEER", 3)
    heard = [connections.hears("alice", route(number), HELLO) for number in range(2, 6)]
    assert heard == [True, True, False, False]
    assert connections.ignored == {Ignored.TOO_MANY_HELLOS: 2}
