"""The curator's loop and a peer that can no longer be sent anything."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, Final, cast

import pytest

from hushbid.curator.hub import Hub
from hushbid.protocol.machine.machine import Lost
from hushbid.protocol.runtime.driver import Outgoing
from hushbid.protocol.runtime.network.connection_limits import Cut
from hushbid.protocol.runtime.network.router import Arrival
from hushbid.protocol.wire.codec import encode_message
from hushbid.protocol.wire.messages import Beat
from tests.unit.protocol.wire.test_wire import FRAMES

ALICE: Final = "alice"
FIRST, SECOND = (number.to_bytes(5, "big") for number in (1, 2))


class Scene:
    """A hub with a scripted socket and machine: what arrives, what leaves, and in what order."""

    def __init__(self) -> None:
        self.waiting: list[Arrival] = []
        self.to_send: list[Outgoing] = []
        self.ended: set[bytes] = set()
        self.sent: list[tuple[bytes, bytes]] = []
        self.told: list[tuple[str, Any]] = []
        self.follows_a_loss: Outgoing | None = None
        self.severed: list[tuple[bytes, str | None]] = []
        self.stalled: set[bytes] = set()
        self.gaps: set[bytes] = set()
        """Frames that come after one that did not."""
        driver = SimpleNamespace(
            finished=None,
            next_due=None,
            clock=0.0,
            lacks=lambda _peer, frame: frame in self.gaps,
            receive=lambda peer, frame, _: self.told.append((peer, frame)),
            feed=self.feed,
            fire_due=lambda _: None,
            settle=lambda: None,
            unrecorded=encode_message,
            beat=lambda: encode_message(Beat()),
            release=self.release,
        )
        machine = SimpleNamespace(
            links={}, round=0, phase="round", paused=None, ledger=SimpleNamespace(refusals=[])
        )
        log = SimpleNamespace(
            decided=0,
            follow=lambda: None,
            say=lambda *_, **__: None,
            noting_late_bid=lambda _: nullcontext(),
        )
        session = SimpleNamespace(herds=False, timeouts=SimpleNamespace(beat=1.0, silence=1e9, comeback=5.0))
        vitals = SimpleNamespace(turn=lambda *_: None)
        played: Any = (session, machine, driver, self, log, vitals, None)
        self.hub = Hub(*played)

    def receive(self, limit: int, *, wait_ms: int = 0) -> list[Arrival]:
        taken, self.waiting = self.waiting, []
        return taken

    def broken(self) -> list[tuple[bytes, str | None]]:
        severed, self.severed = self.severed, []
        return severed

    def cut(self, route: bytes, why: Cut) -> bool:
        assert why is Cut.GAP, "for what else one is cut, the endpoint says itself"
        if route in self.ended:
            return False
        self.ended.add(route)
        return True

    def cut_if_stalled(self, route: bytes) -> bool:
        return route in self.stalled

    def send(self, route: bytes, data: bytes) -> bool:
        if route in self.ended:
            return False
        self.sent.append((route, data))
        return True

    def feed(self, event: Any, now: float) -> None:
        self.told.append((event.peer, type(event)))
        if self.follows_a_loss is not None:
            self.to_send.append(self.follows_a_loss)
            self.follows_a_loss = None

    def release(self) -> list[Outgoing]:
        frames, self.to_send = self.to_send, []
        return frames

    def arrives(self, frame: str, route: bytes = FIRST) -> None:
        self.waiting.append(Arrival(route, ALICE, FRAMES[frame]))

    def leaves(self, kind: str, data: bytes) -> None:
        self.to_send.append(Outgoing(ALICE, kind, 1, data))

    def turn(self) -> None:
        cast(Any, self.hub)._turn()


@pytest.fixture
def scene() -> Scene:
    """Alice has been welcomed on her first connection."""
    made = Scene()
    made.arrives("hello")
    made.leaves("welcome", b"welcome")
    made.turn()
    assert made.sent == [(FIRST, b"welcome")]
    made.told.clear()
    made.sent.clear()
    return made


def test_what_a_peer_said_before_it_went_is_heard_before_it_is_lost(scene: Scene) -> None:
    # Its farewell is in the queue, and its connection has ended: nothing can be sent on it from here on.
    scene.ended.add(FIRST)
    scene.leaves("beat", b"a beat")
    scene.turn()
    assert scene.told == []
    scene.arrives("farewell")
    scene.turn()
    assert scene.told == [(ALICE, FRAMES["farewell"])]
    scene.turn()
    assert scene.told == [(ALICE, FRAMES["farewell"]), (ALICE, Lost)]


def test_a_peer_that_speaks_on_and_reads_nothing_is_lost_after_a_beat(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.ended.add(FIRST)
    scene.leaves("broadcast", b"1")
    for second in (0.0, 0.5, 0.9, 1.0):
        assert (ALICE, Lost) not in scene.told
        monkeypatch.setattr(scene.hub, "_clock", lambda now=second: now)
        scene.turn()
        scene.arrives("bid")
    assert scene.told[-1] == (ALICE, Lost)


def test_after_a_frame_that_was_not_sent_no_other_is_sent_on_that_connection(scene: Scene) -> None:
    scene.ended.add(FIRST)
    scene.leaves("broadcast", b"1")
    scene.leaves("broadcast", b"2")
    scene.turn()
    scene.ended.clear()
    scene.leaves("broadcast", b"3")
    scene.turn()
    assert scene.sent == [], "the peer would see a gap"
    assert scene.told == [(ALICE, Lost)]


def test_a_peer_that_is_back_on_another_connection_is_not_lost(scene: Scene) -> None:
    scene.ended.add(FIRST)
    scene.leaves("broadcast", b"1")
    scene.turn()
    scene.arrives("hello", SECOND)
    scene.leaves("welcome", b"welcome")
    scene.leaves("broadcast", b"1 again")
    scene.turn()
    scene.turn()
    told_on_the_new_one = [data for route, data in scene.sent if route == SECOND]
    assert told_on_the_new_one == [b"welcome", b"1 again"]
    assert [told for told in scene.told if told[1] is Lost] == []


def test_a_peer_whose_hello_is_being_answered_is_not_lost_by_what_left_before() -> None:
    # A curator that was started again awards owners' bids, and in the same turn hears the consumer's hello.
    scene = Scene()
    scene.arrives("hello")
    scene.leaves("award", b"1")
    scene.leaves("welcome", b"welcome")
    scene.leaves("award", b"1 again")
    scene.turn()
    assert [told for told in scene.told if told[1] is Lost] == []
    assert [data for _, data in scene.sent] == [b"welcome", b"1 again"]


def test_what_a_loss_leads_to_leaves_in_the_same_turn(scene: Scene) -> None:
    scene.ended.add(FIRST)
    scene.leaves("broadcast", b"1")
    scene.turn()
    scene.follows_a_loss = Outgoing("bob", "broadcast", 1, b"the next round")
    scene.turn()
    assert scene.told == [(ALICE, Lost), ("bob", Lost)], "bob was never there"


def test_a_connection_that_zeromq_ended_is_a_loss_and_no_offence(scene: Scene) -> None:
    scene.severed = [(FIRST, ALICE)]
    scene.arrives("bid")
    scene.turn()
    scene.turn()
    assert scene.told == [(ALICE, FRAMES["bid"]), (ALICE, Lost)], "what came before is heard"


def test_the_end_of_a_connection_that_was_replaced_is_no_loss(scene: Scene) -> None:
    scene.arrives("hello", SECOND)
    scene.leaves("welcome", b"welcome")
    scene.turn()
    scene.told.clear()
    scene.severed = [(FIRST, ALICE), (SECOND, None)]
    scene.turn()
    scene.turn()
    assert scene.told == []


def test_a_silent_peer_is_asked_for_bytes_without_an_end(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scene.hub._presence, "_timeouts", SimpleNamespace(beat=1.0, silence=3.0))
    said: list[str] = []
    monkeypatch.setattr(scene.hub._log, "say", lambda event, **_: said.append(event.event))
    scene.stalled = {FIRST, SECOND}
    start = scene.hub._clock()
    for second in (2.0, 5.0):
        monkeypatch.setattr(scene.hub, "_clock", lambda now=start + second: now)
        scene.turn()
    assert said == ["peer.silent", "peer.cut"]
    assert scene.told == [(ALICE, Lost)]


def test_a_frame_after_one_that_is_missing_is_not_taken_and_costs_the_connection(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(scene.hub._log, "say", lambda event, **_: said.append(event.event))
    scene.gaps = {FRAMES["beat"]}
    for _ in range(2):
        scene.arrives("beat")
    for _ in range(3):
        scene.turn()
    assert scene.told == [(ALICE, Lost)], "no frame is handed on, and nobody has broken the protocol"
    assert said == ["peer.cut", "peer.gone"]
