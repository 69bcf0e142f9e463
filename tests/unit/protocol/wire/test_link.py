"""A link delivers every frame once, in order and unchanged, over a network that loses and repeats."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from hushbid.protocol import limits
from hushbid.protocol.errors import LocalProtocolError, Offence, RemoteProtocolError
from hushbid.protocol.wire.link import Link


class Sent(NamedTuple):
    """A frame as it travels."""

    sequence: int
    acknowledged: int
    body: bytes


class End:
    """One side: its link, what it sent and received, and what is under way to it."""

    def __init__(self) -> None:
        self.link = Link()
        self.given: list[bytes] = []
        self.taken: list[bytes] = []
        self.inbox: deque[Sent] = deque()
        self.seen: list[Sent] = []

    def receive(self, frame: Sent) -> None:
        """As in `hushbid.protocol.machine.base`: check, drop repeated frames, accept the next one."""
        self.link.check_acknowledged(frame.acknowledged)
        if self.link.is_new(frame.sequence):
            self.taken.append(frame.body)
            self.link.accept(frame.sequence, frame.acknowledged)


class TwoEnds(RuleBasedStateMachine):
    """Both sides send; connections break and lose what is under way; frames arrive repeatedly."""

    @initialize()
    def connect(self) -> None:
        self.ends = (End(), End())
        self.up = True

    @rule(side=st.integers(0, 1), payload=st.binary(max_size=3))
    def send(self, side: int, payload: bytes) -> None:
        near, far = self.ends[side], self.ends[1 - side]
        if len(near.link.held) == limits.MAX_HELD_PER_PEER:
            with pytest.raises(LocalProtocolError):
                near.link.give_out("kind", payload)
            return
        sequence = near.link.give_out("kind", payload)
        near.given.append(payload)
        assert sequence == len(near.given)
        if self.up:
            far.inbox.append(Sent(sequence, near.link.received, payload))

    @rule(side=st.integers(0, 1), count=st.integers(1, 20))
    def deliver(self, side: int, count: int) -> None:
        end = self.ends[side]
        for _ in range(min(count, len(end.inbox))):
            frame = end.inbox.popleft()
            end.receive(frame)
            end.seen.append(frame)

    @rule(side=st.integers(0, 1), pick=st.integers(0, 2**16))
    def repeat(self, side: int, pick: int) -> None:
        end = self.ends[side]
        if end.seen:
            before = list(end.taken)
            end.receive(end.seen[pick % len(end.seen)])
            assert end.taken == before

    @rule(side=st.integers(0, 1), keep=st.integers(0, 4))
    def break_the_connection(self, side: int, keep: int) -> None:
        """Lose the last frames under way, and all that is sent until there is a new connection."""
        self.up = False
        for end, kept in ((self.ends[side], keep), (self.ends[1 - side], 0)):
            end.inbox = deque(list(end.inbox)[:kept])

    @rule()
    def connect_anew(self) -> None:
        """Hellos say what each side has; each resends what the other lacks."""
        self.up = True
        for near, far in (self.ends, self.ends[::-1]):
            far.inbox.clear()
            near.link.check_acknowledged(far.link.received)
            near.link.release(far.link.received)
            far.inbox.extend(Sent(sequence, near.link.received, body) for sequence, _, body in near.link.held)

    @rule(side=st.integers(0, 1), beyond=st.integers(1, 2**40))
    def claim_too_much(self, side: int, beyond: int) -> None:
        link = self.ends[side].link
        state = (link.sent, link.received, list(link.held))
        for forged in (
            lambda: link.check_acknowledged(link.sent + beyond),
            lambda: link.is_new(link.received + 1 + beyond),
        ):
            with pytest.raises(RemoteProtocolError) as caught:
                forged()
            assert caught.value.offence is Offence.SEQUENCE
        assert (link.sent, link.received, list(link.held)) == state

    @invariant()
    def what_was_taken_is_what_was_given(self) -> None:
        for near, far in (self.ends, self.ends[::-1]):
            assert far.taken == near.given[: len(far.taken)]
            assert far.link.received == len(far.taken)

    @invariant()
    def what_is_held_is_what_may_be_missing(self) -> None:
        for near, far in (self.ends, self.ends[::-1]):
            held = list(near.link.held)
            assert len(held) <= limits.MAX_HELD_PER_PEER
            first = near.link.sent - len(held) + 1
            assert first <= far.link.received + 1
            assert held == [(first + i, "kind", near.given[first - 1 + i]) for i in range(len(held))]

    def teardown(self) -> None:
        """After one last reconnection everything has arrived."""
        if not hasattr(self, "ends"):
            return
        self.connect_anew()
        self.deliver(0, 2**10)
        self.deliver(1, 2**10)
        assert self.ends[0].taken == self.ends[1].given
        assert self.ends[1].taken == self.ends[0].given


TestTwoEnds = TwoEnds.TestCase


def test_a_frame_is_held_until_it_is_acknowledged_and_not_longer() -> None:
    link = Link()
    for number in range(1, 5):
        assert link.give_out("bid", bytes([number])) == number
    link.accept(1, 3)
    assert list(link.held) == [(4, "bid", b"\4")]
    link.accept(2, 3)  # saying it again changes nothing
    link.accept(3, 4)
    assert not link.held
    assert link.give_out("bid", b"") == 5


def test_what_is_sent_again_are_the_stored_bytes() -> None:
    link, body = Link(), bytes(1000)
    link.give_out("broadcast", body)
    assert link.held[0][2] is body


def test_an_older_acknowledgement_takes_nothing_back() -> None:
    link = Link()
    link.give_out("bid", b"1")
    link.give_out("bid", b"2")
    link.release(2)
    link.release(1)
    assert (link.sent, list(link.held)) == (2, [])


def test_a_new_frame_is_the_next_one() -> None:
    link = Link()
    assert link.is_new(1)
    link.accept(1, 0)
    assert [link.is_new(sequence) for sequence in (1, 2)] == [False, True]
    with pytest.raises(RemoteProtocolError, match="missing"):
        link.is_new(3)


def test_more_than_the_limit_is_our_own_fault_and_changes_nothing() -> None:
    link = Link()
    for _ in range(limits.MAX_HELD_PER_PEER):
        link.give_out("bid", b"")
    with pytest.raises(LocalProtocolError):
        link.give_out("bid", b"")
    assert link.sent == len(link.held) == limits.MAX_HELD_PER_PEER
    link.release(1)
    assert link.give_out("bid", b"") == limits.MAX_HELD_PER_PEER + 1


def test_a_peer_that_never_acknowledges_is_refused_while_there_is_room() -> None:
    link = Link()
    for _ in range(limits.MAX_UNACKNOWLEDGED):
        link.give_out("broadcast", b"body")
        link.check_held(0)
    link.give_out("broadcast", b"body")
    link.check_held(1)
    with pytest.raises(RemoteProtocolError) as caught:
        link.check_held(0)
    assert caught.value.offence is Offence.SEQUENCE
    assert len(link.held) < limits.MAX_HELD_PER_PEER
