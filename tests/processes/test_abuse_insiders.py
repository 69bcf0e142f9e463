"""An owner with a valid key that attacks: the others' rounds go on, and it learns and costs little.

In one session Mallory enrols honestly, leaves, and attacks in one way after another; magpie sets the pace, so
that rounds happen during each attack.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import zmq

from hushbid.protocol.limits import MAX_REFUSALS_PER_PEER, MAX_UNNAMED_CONNECTIONS
from hushbid.protocol.runtime.driver import Outgoing
from hushbid.protocol.runtime.network.connection_limits import UNREAD_EVENTS, Cut
from hushbid.protocol.wire.codec import (
    Direction,
    Frame,
    decode_frame,
    decode_message,
    encode_frame,
    encode_message,
)
from hushbid.protocol.wire.messages import Hello, Message
from tests.processes.cluster import Cluster, Ended, Puppet, bodies
from tests.processes.forked import ForkedProcess
from tests.processes.insiders import ATTACKS
from tests.processes.watch import Watch

SECONDS = {"signs of life": 1.5, "silent connections": 1.0}
"""Of an attack that has to come to a limit; the others come to theirs at once, or have none to come to."""
SHORT = 0.5
"""Seconds of the others."""
STEP = 6
"""Rounds that are made during an attack."""
ROUNDS = STEP * (len(ATTACKS) + 4)
MOST_BYTES = 100 * 10**6
ROOT = Path(__file__).resolve().parents[2]
MALLORY, MAGPIE, HERON = "mallory", "magpie", "heron"


@dataclass
class Story:
    cluster: Cluster
    memory: dict[str, int] = field(default_factory=dict)
    """By attack: most bytes more than before it."""
    descriptors: dict[str, int] = field(default_factory=dict)
    told: dict[str, list[Message]] = field(default_factory=dict)
    """By what mallory pretended: what it was told."""
    ended: dict[str, Ended] = field(default_factory=dict)


class Pace:
    """Runs so many rounds at a time, and keeps the frames that magpie has sent."""

    def __init__(self, cluster: Cluster, magpie: Puppet) -> None:
        self._cluster, self._magpie = cluster, magpie
        self.sent: list[bytes] = []
        self.last = 0
        self.hold_from(STEP)

    def hold_from(self, number: int) -> None:
        self._magpie.hold_bids_from(number)
        held = self._magpie.hold
        self.last = number

        def hold(frame: Outgoing) -> bool:
            self.sent.append(frame.data)
            return held(frame)

        self._magpie.hold = hold

    def step(self) -> None:
        """Run `STEP` rounds."""
        self._cluster.until(lambda: bool(self._magpie.held), f"round {self.last}")
        self._magpie.let_go()
        self.hold_from(self.last + STEP)
        self._cluster.until(lambda: bool(self._magpie.held), f"round {self.last}")


def attack(story: Story, kind: str, pace: Pace) -> None:
    cluster, watch = story.cluster, Watch(story.cluster)
    out, err = (cluster.place / "said" / f"{kind}.{stream}" for stream in ("out", "err"))
    for path in (out, err):
        path.touch()
    key, seconds = cluster.directory(MALLORY) / "secret.key", SECONDS.get(kind, SHORT)
    before = watch.memory()
    story.memory[kind] = story.descriptors[kind] = 0
    process = ForkedProcess(
        "tests.processes.insiders",
        [kind, str(cluster.port), cluster.keys["curator"].public.text, str(key), str(seconds)],
        directory=ROOT,
        environment=os.environ,
        out=out,
        err=err,
    )

    def over() -> bool:
        story.memory[kind] = max(story.memory[kind], watch.memory() - before)
        story.descriptors[kind] = max(story.descriptors[kind], watch.descriptors())
        return process.poll() is not None

    try:
        pace.step()
        cluster.until(over, f"the end of {kind}")
    finally:
        process.kill()
    assert process.wait() == 0, err.read_text()


def pretend(
    story: Story, what: str, *frames: bytes, routing_id: bytes | None = None, first_ms: int = 300
) -> None:
    """Send frames under mallory's key, and keep the replies, the first of which may come late."""
    cluster = story.cluster
    pair = cluster.keys[MALLORY]
    with zmq.Context() as context, context.socket(zmq.DEALER) as dealer:
        dealer.linger = 0
        dealer.curve_publickey, dealer.curve_secretkey = pair.curve_public, pair.curve_secret
        dealer.curve_serverkey = cluster.keys["curator"].public.curve
        if routing_id is not None:
            dealer.routing_id = routing_id
        dealer.connect(f"tcp://127.0.0.1:{cluster.port}")
        for data in frames:
            dealer.send(data)
        heard = story.told.setdefault(what, [])
        while dealer.poll(300 if heard else first_ms):
            heard.append(decode_message(Direction.CURATOR_TO_OWNER, decode_frame(dealer.recv()).body))


def hello(cluster: Cluster, name: str) -> bytes:
    message = Hello(
        versions=(1,),
        role="owner",
        name=name,
        session=cluster.session.file.digest(),
        software="0",
        sent=0,
        received=0,
    )
    return encode_frame(Frame(cluster.session.identifier, 0, 0, encode_message(message)))


def pretend_all(story: Story, pace: Pace) -> None:
    bids = [data for data in pace.sent if decode_frame(data).sequence > 0]
    assert len(bids) >= STEP
    pretend(story, "another's name", hello(story.cluster, HERON), first_ms=30_000)
    pretend(story, "another's frames", *bids)
    pretend(story, "another's frames, after a hello", hello(story.cluster, MALLORY), *bids)
    for number in range(10):
        pretend(story, "another's routing id", *bids[:3], routing_id=b"\0" + number.to_bytes(4, "big"))


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    place = tmp_path_factory.mktemp("insiders")
    changes = {"session.points": ROUNDS, "timeouts.round": 60.0, "timeouts.silence": 60.0}
    with Cluster(place, (HERON, MAGPIE, MALLORY), rows=ROUNDS, changes=changes) as cluster:
        story = Story(cluster)
        magpie, mallory = cluster.puppet(MAGPIE), cluster.puppet(MALLORY)
        pace = Pace(cluster, magpie)
        cluster.start("curator", "consumer", HERON)
        cluster.until(lambda: bool(magpie.held), "some rounds")
        mallory.close()
        cluster.puppets.remove(mallory)
        pretend_all(story, pace)
        for kind in ATTACKS:
            attack(story, kind, pace)
        magpie.let_go()
        story.ended = cluster.end()
        cluster.until(lambda: magpie.finish is not None, "magpie's end")
        yield story


def test_the_others_finish(story: Story) -> None:
    assert {name: how.code for name, how in story.ended.items()} == dict.fromkeys(story.ended, 0)
    result = story.ended["curator"].json
    assert result["rounds"] == result["points_delivered"] == ROUNDS
    assert set(result["absences"]) == {MALLORY}
    assert result["faults"] == result["disputes"] == []


def test_only_the_attacker_is_refused_and_not_for_ever(story: Story) -> None:
    refusals = story.ended["curator"].json["refusals"]
    assert {refusal["peer"] for refusal in refusals} == {MALLORY}
    assert len(refusals) <= MAX_REFUSALS_PER_PEER
    assert len(story.cluster.log("curator")) < 50_000


def test_what_the_others_sent_and_received_is_what_the_curator_has(story: Story) -> None:
    of_curator = bodies(story.cluster.records("curator"), "curator")
    for name in (HERON, "consumer"):
        own = bodies(story.cluster.records(name), name)
        # A farewell is waited for a few seconds only: on a busy machine the curator may have left by then.
        late = {key for key in own.keys() - of_curator.keys() if key[2] == "farewell"}
        own = {key: sent for key, sent in own.items() if key not in late}
        assert own == {key: sent for key, sent in of_curator.items() if name in key[:2]}
        assert not story.cluster.verified(name).torn_bytes


def test_nobody_is_told_what_is_anothers(story: Story) -> None:
    assert [message.kind for message in story.told["another's name"]] == ["refused"]
    assert story.told["another's name"][0].code == "unknown-peer"  # type: ignore[attr-defined]
    assert {message.kind for message in story.told["another's frames, after a hello"]} <= {"refused", "beat"}
    assert story.told["another's frames"] == []
    assert story.told["another's routing id"] == []


# A frame over the limit is one of test_hostile_owners', one without an end of test_connection_limits', and a
# missing one of test_garbled_lines'.
@pytest.mark.parametrize("why", [why for why in Cut if why not in (Cut.FRAMING, Cut.STALLED, Cut.GAP)])
def test_connections_over_a_limit_are_cut_and_counted(story: Story, why: Cut) -> None:
    assert re.search(rf"connections\.cut .*\b{why}\b", story.cluster.log("curator"))


@pytest.mark.parametrize("kind", ATTACKS)
def test_an_attack_costs_less_than_100_mb(story: Story, kind: str) -> None:
    print(kind, story.memory[kind] / 1e6, story.descriptors[kind])
    assert story.memory[kind] < MOST_BYTES


@pytest.mark.parametrize("kind", ATTACKS)
def test_connections_are_bounded(story: Story, kind: str) -> None:
    assert story.descriptors[kind] < MAX_UNNAMED_CONNECTIONS + UNREAD_EVENTS
