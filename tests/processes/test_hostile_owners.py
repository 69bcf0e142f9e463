"""Registered owners that break the protocol over real CURVE connections: the session goes on without them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import cast

import msgpack
import numpy as np
import pytest

from hushbid.protocol.limits import MAX_DIMENSION
from hushbid.protocol.runtime.network.transport import MAX_TO_CURATOR_BYTES
from hushbid.protocol.wire.codec import (
    Direction,
    Frame,
    decode_frame,
    decode_message,
    encode_frame,
    encode_message,
)
from hushbid.protocol.wire.messages import Bid, Broadcast, Candidate, Close, Message, Offer, Receipt, fixed
from tests.processes.cluster import Cluster, Ended, Puppet

ROUNDS = 6
TURN = 3
"""The round in which every rogue shows what it is."""
HONEST = "heron"

Forge = Callable[[Frame, Bid], bytes]
"""What a rogue sends in place of an honest bid's frame."""


def sent(frame: Frame, message: Message | bytes) -> bytes:
    """Another message, or its bytes, in the bid's frame."""
    return encode_frame(
        frame._replace(body=message if isinstance(message, bytes) else encode_message(message))
    )


def bid_with(bid: Bid, **changes: object) -> Bid:
    """A bid that nobody on this side checks."""
    return Bid.model_construct(**(dict(bid) | changes))


def candidate_with(bid: Bid, **changes: object) -> Bid:
    assert isinstance(bid.candidate, Candidate)
    return bid_with(bid, candidate=Candidate.model_construct(**(dict(bid.candidate) | changes)))


def with_nan(frame: Frame, bid: Bid) -> bytes:
    assert isinstance(bid.candidate, Candidate)
    point = bid.candidate.point.copy()
    point[1] = np.nan
    body = frame.body.replace(bid.candidate.point.tobytes(), point.tobytes())
    assert body != frame.body
    return sent(frame, body)


def with_doubled_key(frame: Frame, bid: Bid) -> bytes:
    # The map's length is in its first byte; the last of two equal keys would win.
    doubled = bytes([frame.body[0] + 1]) + frame.body[1:] + msgpack.packb("round") + msgpack.packb(TURN)
    assert msgpack.unpackb(doubled, ext_hook=msgpack.ExtType)["round"] == TURN
    return sent(frame, doubled)


def int32_features(frame: Frame, bid: Bid) -> bytes:
    assert isinstance(bid.candidate, Candidate)
    return sent(frame, candidate_with(bid, features=bid.candidate.features.astype(np.int32)))


def with_many_features(frame: Frame, bid: Bid) -> bytes:
    return sent(frame, candidate_with(bid, features=np.ones(MAX_DIMENSION + 1, np.int16)))


COUNTLESS = b"\xdc\x10\x00" + (b"\x91" + msgpack.packb(msgpack.ExtType(1, b"\x01\x00\x00"))) * 2**12
"""4,096 arrays of no axes: more do not fit into a frame of this session."""


def unasked_offer(frame: Frame, bid: Bid) -> bytes:
    assert isinstance(bid.candidate, Candidate)
    return sent(frame, Offer(round=bid.round, handle=bid.handle, candidate=bid.candidate))


BREACHES: dict[str, tuple[Forge, str]] = {
    "cut-header": (lambda frame, _: encode_frame(frame)[:20], "malformed"),
    "cut-body": (lambda frame, _: encode_frame(frame)[:-7], "malformed"),
    "no-hushbid": (lambda *_: b"GET / HTTP/1.1\r\nHost: curator\r\nConnection: close\r\n\r\n", "magic"),
    "new-version": (lambda frame, _: b"HBID\x63" + encode_frame(frame)[5:], "version"),
    "oversized": (with_many_features, "oversized"),
    "countless": (lambda frame, _: sent(frame, COUNTLESS), "malformed"),
    "doubled-key": (with_doubled_key, "not-canonical"),
    "wrong-dtype": (int32_features, "malformed"),
    "not-a-number": (with_nan, "malformed"),
    "not-its-kind": (lambda frame, _: sent(frame, Receipt(part=1, disputed=b"")), "malformed"),
    "early": (lambda frame, bid: sent(frame, bid_with(bid, round=TURN + 1)), "out-of-turn"),
    "unasked": (unasked_offer, "out-of-turn"),
    "elsewhere": (lambda frame, _: encode_frame(frame._replace(session=bytes(16))), "session"),
    "soothsayer": (lambda frame, _: encode_frame(frame._replace(acknowledged=2**40)), "sequence"),
}
"""Name of a rogue -> what it sends, and what it is told that it broke."""


def forged(frame: Frame, bid: Bid) -> bytes:
    assert isinstance(bid.candidate, Candidate)
    return sent(frame, candidate_with(bid, features=(bid.candidate.features * 2).astype(np.int16)))


def another_points(frame: Frame, bid: Bid) -> bytes:
    assert isinstance(bid.candidate, Candidate)
    # The point of a row that is not bid; features and score stay those of the one that is.
    return sent(frame, candidate_with(bid, point=1.0 - bid.candidate.point))


def overbid(frame: Frame, bid: Bid) -> bytes:
    return sent(frame, bid_with(bid, score=fixed(int(bid.score[0]) + 1)))


MISMATCHES: dict[str, tuple[Forge, str]] = {
    "forger": (forged, "the features are no output of the feature map"),
    "swapper": (another_points, "the features are not those of the point"),
    "overbidder": (overbid, "the bid is not the score of the features"),
}
"""Name of a rogue -> what it sends, and what the curator's ledger says of it."""

MORE = 30
"""Further breaches that follow each on the same connection: nobody listens any more."""
FLOODER = "flooder"
"""Sends more than ZeroMQ lets through, then comes back and is honest."""
ROGUES = (*BREACHES, *MISMATCHES, FLOODER)


@dataclass(frozen=True)
class Session:
    cluster: Cluster
    ended: dict[str, Ended]
    rogues: dict[str, Puppet]


def misbehave(rogue: Puppet) -> None:
    (held,) = rogue.held
    rogue.held = []
    frame = decode_frame(held.data)
    bid = cast(Bid, decode_message(Direction.OWNER_TO_CURATOR, frame.body))
    if rogue.name == FLOODER:
        rogue.say(bytes(MAX_TO_CURATOR_BYTES + 1))
        rogue.hold = lambda _frame: False
        return
    forge, _ = (BREACHES | MISMATCHES)[rogue.name]
    rogue.say(forge(frame, bid))
    if rogue.name in BREACHES:
        for _ in range(MORE):
            rogue.say(b"x")
    rogue.hold = lambda _frame: False


def welcomes(rogue: Puppet) -> int:
    return [message.kind for message in rogue.heard].count("welcome")


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    place = tmp_path_factory.mktemp("hostile")
    with Cluster(place, (HONEST, *ROGUES), rows=20, changes={"session.points": ROUNDS}) as cluster:
        rogues = {name: cluster.puppet(name) for name in ROGUES}
        for rogue in rogues.values():
            rogue.hold_bids_from(TURN)
        cluster.start("curator", "consumer", HONEST)
        cluster.until(lambda: all(rogue.held for rogue in rogues.values()), f"round {TURN}")
        misbehave(rogues[FLOODER])  # first: the round is open until the others have shown themselves
        cluster.until(lambda: welcomes(rogues[FLOODER]) == 2, f"the {FLOODER}'s return")
        for name in (*BREACHES, *MISMATCHES):
            misbehave(rogues[name])
        ended = cluster.end()
        cluster.until(lambda: all(rogue.finish for rogue in rogues.values()), "the rogues to be told")
        yield Session(cluster, ended, rogues)


def test_the_others_finish(session: Session) -> None:
    assert {name: end.code for name, end in session.ended.items()} == {
        "curator": 0,
        "consumer": 0,
        HONEST: 0,
    }
    assert session.ended["curator"].json["rounds"] == ROUNDS
    assert session.ended["consumer"].json["points_delivered"] == ROUNDS
    assert session.ended["curator"].json["wall_seconds"] < 10, "nobody waits for an owner that was refused"


def test_nothing_recorded_is_lost(session: Session) -> None:
    for name in ("curator", "consumer", HONEST):
        assert not session.cluster.verified(name).torn_bytes


@pytest.mark.parametrize("name", BREACHES)
def test_a_breach_is_refused_with_its_code(session: Session, name: str) -> None:
    refusals = session.rogues[name].refused
    assert [refusal.code for refusal in refusals] == [BREACHES[name][1]]
    assert refusals[0].detail.endswith(".")


@pytest.mark.parametrize("name", MISMATCHES)
def test_who_sends_a_point_that_does_not_match_is_told_nothing(session: Session, name: str) -> None:
    heard = session.rogues[name].heard
    assert [m.round for m in heard if isinstance(m, Broadcast)] == list(range(1, ROUNDS + 1))
    assert isinstance(heard[-1], Close)
    assert heard[-1].outcome == "complete"
    assert session.rogues[name].refused == []


def test_the_curators_result_names_them(session: Session) -> None:
    result = session.ended["curator"].json
    missed = ROUNDS - TURN + 1
    for name in (*BREACHES, *MISMATCHES):
        assert result["absences"][name] == missed, name
    assert HONEST not in result["absences"]
    assert sorted(result["faults"], key=lambda fault: str(fault["owner"])) == [
        {"owner": name, "round": TURN, "what": MISMATCHES[name][1], "points": 1}
        for name in sorted(MISMATCHES)
    ]
    codes = {name: code for name, (_, code) in BREACHES.items()}
    assert len(result["refusals"]) == len(codes), "what came after each is nowhere"
    assert session.cluster.log("curator").count(" was refused: ") == len(codes)
    assert {refusal["peer"]: refusal["code"] for refusal in result["refusals"]} == codes


def test_who_was_refused_is_not_said_to_be_gone(session: Session) -> None:
    said = session.cluster.log("curator")
    for name in BREACHES:
        refused = said.index(f"{name} was refused")
        assert f"{name} is gone; waiting" not in said[:refused], name


def test_the_curators_log_ends_with_what_was_not_taken(session: Session) -> None:
    counts = re.findall(
        r"frames that were not read: (\d+) \(second-hello\)$", session.cluster.log("curator"), re.M
    )
    assert len(counts) == 1, "once"
    # Rogues leave when they hear of their refusal, with what they have not sent yet.
    assert int(counts[0]) > 0


def test_no_point_of_theirs_is_bought_from_then_on(session: Session) -> None:
    path = session.cluster.directory("consumer") / "state" / "delivered.npz"
    with np.load(path) as delivered:
        late = delivered["owners"][delivered["rounds"] >= TURN]
    assert set(late) <= {HONEST, FLOODER}


def test_who_floods_loses_its_connection_and_may_come_back(session: Session) -> None:
    rogue = session.rogues[FLOODER]
    said = session.cluster.log("curator")
    assert said.count(f"a connection of {FLOODER} was cut: framing; the peer may connect again") == 1
    assert "connections that were cut: 1 (framing)" in said
    assert rogue.refused == []
    assert FLOODER not in session.ended["curator"].json["absences"], "framing can be anybody's on the line"
    assert welcomes(rogue) == 2
    assert isinstance(rogue.heard[-1], Close)
    assert rogue.heard[-1].outcome == "complete"
