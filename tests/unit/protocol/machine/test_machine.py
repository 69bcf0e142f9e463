"""Links between two parties, and the common part of owners and the consumer."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushbid.consumer.machine import ConsumerMachine
from hushbid.consumer.party import consumer_machine
from hushbid.owner.machine import OwnerMachine
from hushbid.protocol import limits
from hushbid.protocol.errors import ExitCode, LocalProtocolError, Offence, RemoteProtocolError
from hushbid.protocol.machine.machine import (
    Connected,
    Effect,
    Finish,
    Lost,
    Offended,
    Received,
    Restarted,
    Returned,
    Send,
    SetTimer,
    SignHead,
    Started,
    TimerFired,
)
from hushbid.protocol.names import CURATOR
from hushbid.protocol.session.session import open_session
from hushbid.protocol.wire.codec import Direction, decode_message
from hushbid.protocol.wire.link import Link
from hushbid.protocol.wire.messages import (
    PROTOCOL_VERSION,
    Broadcast,
    Close,
    Hello,
    Message,
    Refused,
    Welcome,
)
from tests.simulation.harness import FAREWELL, HEAD_SIGNED, MAP, names, session_file, weights_of

# -- links -------------------------------------------------------------------------------------------


def test_frames_are_numbered_from_one_and_held_until_they_are_acknowledged() -> None:
    link = Link()
    assert [link.give_out("bid", bytes([number])) for number in range(3)] == [1, 2, 3]
    link.release(2)
    assert [(sequence, body) for sequence, _, body in link.held] == [(3, b"\x02")]
    link.release(1)
    assert len(link.held) == 1


def test_a_frame_is_new_once_and_a_gap_is_an_offence() -> None:
    link = Link()
    assert link.is_new(1)
    link.accept(1, 0)
    assert not link.is_new(1)
    assert link.is_new(2)
    with pytest.raises(RemoteProtocolError, match="Frame 3 came after frame 1") as caught:
        link.is_new(3)
    assert caught.value.offence is Offence.SEQUENCE


def test_what_was_never_sent_cannot_be_acknowledged() -> None:
    link = Link()
    link.give_out("bid", b"")
    link.check_acknowledged(1)
    with pytest.raises(RemoteProtocolError, match="acknowledges frame 2 of 1"):
        link.check_acknowledged(2)


def test_a_peer_that_acknowledges_nothing_fills_no_memory() -> None:
    link = Link()
    for _ in range(limits.MAX_HELD_PER_PEER):
        link.give_out("bid", b"")
    with pytest.raises(LocalProtocolError, match="unacknowledged"):
        link.give_out("bid", b"")
    assert link.sent == limits.MAX_HELD_PER_PEER


@given(st.lists(st.sampled_from(["send", "lose", "reconnect"]), max_size=40))
def test_every_frame_arrives_once_and_in_order_whatever_is_lost(moves: list[str]) -> None:
    """Two links with a lossy wire between them, repaired by resending after a reconnection."""
    sender, receiver = Link(), Link()
    arrived: list[bytes] = []
    wire_is_up = True

    def deliver(sequence: int, body: bytes) -> None:
        if receiver.is_new(sequence):
            receiver.accept(sequence, 0)
            arrived.append(body)

    given_out: list[bytes] = []
    for move in [*moves, "reconnect"]:
        if move == "send" and len(sender.held) < limits.MAX_HELD_PER_PEER:
            body = bytes([len(given_out)])
            given_out.append(body)
            sequence = sender.give_out("bid", body)
            if wire_is_up:
                deliver(sequence, body)
        elif move == "lose":
            wire_is_up = False
        elif move == "reconnect":
            wire_is_up = True
            sender.release(receiver.received)
            for sequence, _, body in list(sender.held):
                deliver(sequence, body)
    assert arrived == given_out


# -- owners and the consumer -------------------------------------------------------------------------

OPENED = open_session(session_file(owners=names(2), points=3))
SESSION = OPENED.file
Participants = OwnerMachine | ConsumerMachine


def close(outcome: Literal["complete", "abandoned"] = "complete") -> Close:
    return Close(outcome=outcome, head=bytes(32), signature=b"")


class Bench:
    """A participant's machine, with a test in place of the curator."""

    def __init__(self, role: str) -> None:
        self.role = role
        if role == "owner":
            self.machine: Participants = OwnerMachine(OPENED, name="owner-0")
        else:
            self.machine = consumer_machine(OPENED)
        self.sequence = 0
        self.now = 0.0

    def step(self, event: Any) -> tuple[Effect, ...]:
        return self.machine.step(event, self.now)

    def say(self, message: Message, sequence: int | None = None) -> tuple[Effect, ...]:
        if sequence is None:
            control = isinstance(message, Welcome | Refused)
            sequence = 0 if control else self.sequence + 1
        effects = self.step(Received(CURATOR, sequence, 0, b"", message))
        self.sequence = max(self.sequence, sequence)
        return effects

    def welcome(self, **changes: Any) -> tuple[Effect, ...]:
        values: dict[str, Any] = {
            "version": PROTOCOL_VERSION,
            "feature_map": MAP.digest,
            "sent": 0,
            "received": 0,
        }
        return self.say(Welcome(**(values | changes)))

    def started(self) -> Bench:
        self.step(Started())
        self.step(Connected())
        return self


@pytest.fixture(params=["owner", "consumer"])
def bench(request: pytest.FixtureRequest) -> Bench:
    return Bench(request.param)


def finish_of(effects: tuple[Effect, ...]) -> Finish:
    (finish,) = [effect for effect in effects if isinstance(effect, Finish)]
    return finish


def timer_of(effects: tuple[Effect, ...]) -> SetTimer:
    (timer,) = [effect for effect in effects if isinstance(effect, SetTimer)]
    return timer


def test_a_party_says_hello_on_every_connection(bench: Bench) -> None:
    bench.step(Started())
    for _ in range(2):
        (send,) = bench.step(Connected())
        assert isinstance(send, Send)
        hello = decode_message(Direction.GREETING, send.body)
        assert isinstance(hello, Hello)
        assert (hello.role, hello.name, hello.session) == (
            bench.role,
            bench.machine.name,
            SESSION.digest(),
        )
        assert (hello.sent, hello.received) == (0, 0)


def test_a_curator_that_never_answers_is_given_up(bench: Bench) -> None:
    timer = timer_of(bench.step(Started()))
    assert timer.due == SESSION.timeouts.enrolment
    finish = finish_of(bench.step(TimerFired("abandon", timer.attempt)))
    assert finish.code is ExitCode.TIMEOUT
    assert "never answered" in finish.reason
    assert SESSION.network.address in finish.advice


def test_a_curator_that_lives_but_never_welcomes_is_given_up_too(bench: Bench) -> None:
    bench.started()
    bench.step(Lost(CURATOR))
    timer = timer_of(bench.step(Returned(CURATOR)))
    assert finish_of(bench.step(TimerFired("abandon", timer.attempt))).code is ExitCode.TIMEOUT


def test_a_curator_that_goes_and_comes_back_is_not_given_up(bench: Bench) -> None:
    bench.started().welcome()
    timer = timer_of(bench.step(Lost(CURATOR)))
    bench.step(Returned(CURATOR))
    assert bench.step(TimerFired("abandon", timer.attempt)) == ()
    timer = timer_of(bench.step(Lost(CURATOR)))
    finish = finish_of(bench.step(TimerFired("abandon", timer.attempt)))
    assert (finish.code, "gone too long" in finish.reason) == (ExitCode.TIMEOUT, True)


@pytest.mark.parametrize(("welcomed", "timeout"), [(False, "enrolment"), (True, "abandon")])
def test_a_party_that_starts_again_gives_the_curator_its_time_anew(
    bench: Bench, welcomed: bool, timeout: str
) -> None:
    bench.started()
    if welcomed:
        bench.welcome()
    bench.now = 1000.0
    timer = timer_of(bench.step(Restarted()))
    assert timer.due == 1000.0 + getattr(SESSION.timeouts, timeout)
    (hello,) = bench.step(Connected())
    assert isinstance(hello, Send)
    assert hello.kind == "hello"
    bench.welcome()
    assert bench.step(TimerFired("abandon", timer.attempt)) == ()


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"version": PROTOCOL_VERSION + 1}, ExitCode.CONNECTION),
        ({"feature_map": bytes(32)}, ExitCode.USAGE),
        ({"feature_map": None}, ExitCode.USAGE),
        ({"received": 5}, ExitCode.FAILED),
    ],
)
def test_a_welcome_of_another_session_ends_the_party(
    bench: Bench, changes: dict[str, Any], code: ExitCode
) -> None:
    finish = finish_of(bench.started().welcome(**changes))
    assert finish.code is code
    assert finish.advice


@pytest.mark.parametrize(
    ("refusal", "code"),
    [
        ("version", ExitCode.CONNECTION),
        ("unknown-peer", ExitCode.CONNECTION),
        ("configuration", ExitCode.USAGE),
        ("state-lost", ExitCode.USAGE),
        ("malformed", ExitCode.FAILED),
        ("a-code-of-the-future", ExitCode.FAILED),
    ],
)
def test_a_refusal_ends_the_party_with_the_curators_words(bench: Bench, refusal: str, code: ExitCode) -> None:
    finish = finish_of(bench.started().say(Refused(code=refusal, detail="Because.", advice="Do this.")))
    assert (finish.code, finish.advice) == (code, "Do this.")
    assert refusal in finish.reason
    assert "Because." in finish.reason


@pytest.mark.parametrize(("outcome", "code"), [("complete", ExitCode.DONE), ("abandoned", ExitCode.FAILED)])
def test_a_close_is_answered_and_ends_the_party(bench: Bench, outcome: Any, code: ExitCode) -> None:
    bench.started().welcome()
    assert bench.say(close(outcome)) == (SignHead(),)
    send, finish = bench.step(HEAD_SIGNED)
    assert isinstance(send, Send)
    assert decode_message(Direction.OWNER_TO_CURATOR, send.body) == FAREWELL
    assert isinstance(finish, Finish)
    assert finish.code is code


def test_a_curator_that_offends_ends_the_party(bench: Bench) -> None:
    bench.started().welcome()
    finish = finish_of(bench.step(Offended(CURATOR, 1, 0, Offence.MALFORMED, "what", "advice")))
    assert (finish.code, finish.advice) == (ExitCode.FAILED, "advice")
    assert "malformed" in finish.reason


def test_a_curator_without_the_sessions_state_is_told() -> None:
    bench = Bench("owner").started()
    bench.welcome()
    bench.say(Broadcast(round=1, weights=weights_of(1, 2, 3, 4), noise="none"))
    finish = finish_of(bench.welcome(sent=0))
    assert "without the state" in finish.reason


@pytest.mark.parametrize("sequence", [0, 1])
def test_a_number_stands_where_it_has_to_and_nowhere_else(bench: Bench, sequence: int) -> None:
    bench.started()
    message: Message = close() if sequence == 0 else Refused(code="x", detail="", advice="")
    with pytest.raises(RemoteProtocolError) as caught:
        bench.say(message, sequence)
    assert caught.value.offence is Offence.SEQUENCE
