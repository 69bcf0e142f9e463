"""The owner of a sealed session: the map first, then boxes that only the consumer opens."""

from __future__ import annotations

import numpy as np
import pytest

from hushbid.owner.events import MapOpened, MapRefused, OpenMap, Scored, ScorePoints, Withdraw
from hushbid.owner.machine import OwnerMachine
from hushbid.owner.party import owner_party
from hushbid.protocol import limits
from hushbid.protocol.crypto.sealing import (
    EPHEMERAL_BYTES,
    candidate_statement,
    unpack_content,
    verify_signature,
)
from hushbid.protocol.data import Dataset
from hushbid.protocol.errors import (
    ConfigError,
    DataError,
    ExitCode,
    LocalProtocolError,
    Offence,
    RemoteProtocolError,
)
from hushbid.protocol.machine.machine import Effect, Finish, Received, Send, Started
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.privacy.noise import SimulatedNoise
from hushbid.protocol.wire.codec import Direction, decode_message, encode_message
from hushbid.protocol.wire.messages import (
    NUMBERED_VERSION,
    Bid,
    Broadcast,
    Message,
    SealedCandidate,
    SecretMap,
    Welcome,
)
from tests.support.boxes import opened_by
from tests.support.sealed_parties import OWNERS, Consumer, W, owner_of, points_of, sealed_session

A, B = OWNERS
BOX = bytes(limits.MAP_BOX_BYTES)


class Bench:
    """An owner's machine after its welcome."""

    def __init__(self) -> None:
        self.machine = OwnerMachine(sealed_session(), name=A)
        self.sequence = 0
        self.machine.step(Started(), 0.0)
        welcome = Welcome(version=NUMBERED_VERSION, feature_map=None, sent=0, received=0)
        self.machine.step(Received(CURATOR, 0, 0, b"", welcome), 0.0)

    def say(self, message: Message) -> tuple[Effect, ...]:
        event = Received(CURATOR, self.sequence + 1, self.machine.links[CURATOR].sent, b"", message)
        effects = self.machine.step(event, 0.0)
        self.sequence += 1
        return effects


def sent(effects: tuple[Effect, ...]) -> list[str]:
    bodies = [effect.body for effect in effects if isinstance(effect, Send)]
    return [decode_message(Direction.OWNER_TO_CURATOR, body).kind for body in bodies]


# -- the map -----------------------------------------------------------------------------------------


def test_an_owner_waits_for_the_map_and_says_when_it_has_hashed_its_points() -> None:
    bench = Bench()
    assert bench.machine.phase == "mapping"
    assert bench.say(SecretMap(box=BOX)) == (OpenMap(BOX),)
    assert bench.machine.phase == "mapping", "its points are not hashed yet"
    assert sent(bench.machine.step(MapOpened(), 0.0)) == ["ready"]
    assert bench.machine.phase == "waiting"


def test_a_map_that_cannot_be_used_ends_the_owner_with_the_reason_and_code_1() -> None:
    bench = Bench()
    bench.say(SecretMap(box=BOX))
    (finish,) = bench.machine.step(MapRefused("It does not open.", "Compare the keys."), 0.0)
    assert finish == Finish(ExitCode.FAILED, "It does not open.", "Compare the keys.")
    assert int(ExitCode.FAILED) == 1
    assert bench.machine.phase == "done"


def test_a_broadcast_before_the_map_is_refused() -> None:
    bench = Bench()
    with pytest.raises(RemoteProtocolError) as caught:
        bench.say(Broadcast(round=1, weights=W, noise="none"))
    assert caught.value.offence is Offence.OUT_OF_TURN


@pytest.mark.parametrize("opened", [False, True])
def test_a_second_map_is_refused(opened: bool) -> None:
    """Two maps would let a curator see one point under both."""
    bench = Bench()
    bench.say(SecretMap(box=BOX))
    if opened:
        bench.machine.step(MapOpened(), 0.0)
    with pytest.raises(RemoteProtocolError) as caught:
        bench.say(SecretMap(box=BOX))
    assert caught.value.offence is Offence.OUT_OF_TURN


def test_a_curator_that_has_the_map_is_of_another_session() -> None:
    machine = OwnerMachine(sealed_session(), name=A)
    machine.step(Started(), 0.0)
    welcome = Welcome(version=NUMBERED_VERSION, feature_map=bytes(32), sent=0, received=0)
    (finish,) = machine.step(Received(CURATOR, 0, 0, b"", welcome), 0.0)
    assert isinstance(finish, Finish)
    assert finish.code is ExitCode.USAGE


def test_numerics_refuse_a_map_that_does_not_open_and_take_their_own() -> None:
    session = sealed_session()
    consumer = Consumer(session)
    _, numerics = owner_of(session, A)
    for box in (BOX, consumer.map_of(B)):
        refused = numerics.perform(OpenMap(box))
        assert isinstance(refused, MapRefused)
        assert "does not open" in refused.what
        assert "fingerprint" in refused.advice
    with pytest.raises(LocalProtocolError, match="before they were hashed"):
        numerics.perform(ScorePoints(1, W, 1))
    assert isinstance(numerics.perform(OpenMap(consumer.map_of(A))), MapOpened)
    assert isinstance(numerics.perform(ScorePoints(1, W, 1)), Scored)


# -- points ------------------------------------------------------------------------------------------


def test_a_point_is_sealed_to_the_consumer_and_signed_with_its_place() -> None:
    session = sealed_session()
    consumer = Consumer(session)
    _, numerics = owner_of(session, A)
    numerics.perform(OpenMap(consumer.map_of(A)))
    scored = numerics.perform(ScorePoints(4, W, 9))
    assert isinstance(scored, Scored)
    candidate = scored.handed
    assert isinstance(candidate, SealedCandidate)
    data = points_of(A)
    content = opened_by(session, CONSUMER, candidate.box, 9)
    point, attributes = unpack_content(content)
    assert np.array_equal(point, data.features[scored.rows[0]])
    assert attributes == data.attributes(scored.rows[0])
    assert len(candidate.box) == session.box_length
    with pytest.raises(RemoteProtocolError):
        opened_by(session, A, candidate.box, 9)
    key = session.public_identity(A).verify
    for place, holds in (((4, 9), True), ((5, 9), False), ((4, 8), False)):
        statement = candidate_statement(session.identifier, A, *place, candidate.box, candidate.features)
        assert verify_signature(statement, candidate.signature, key) is holds


def test_neither_bid_nor_public_record_shows_the_point_or_its_label() -> None:
    session = sealed_session()
    consumer = Consumer(session)
    data = Dataset.from_arrays(A, points_of(A).features, np.array(["a very private label"] * 6))
    _, numerics = owner_of(session, A, data)
    numerics.perform(OpenMap(consumer.map_of(A)))
    scored = numerics.perform(ScorePoints(1, W, 1))
    assert isinstance(scored, Scored)
    assert isinstance(scored.handed, SealedCandidate)
    row = data.features[scored.rows[0]].tobytes()
    assert row not in scored.handed.box
    assert b"a very private label" not in scored.handed.box
    assert set(scored.item().public) == {"round"}


def test_every_box_has_an_ephemeral_key_of_its_own_on_record() -> None:
    session = sealed_session()
    consumer = Consumer(session)
    _, numerics = owner_of(session, A)
    numerics.perform(OpenMap(consumer.map_of(A)))
    keys = set()
    for handle in range(1, 7):
        scored = numerics.perform(ScorePoints(handle, W, handle))
        assert isinstance(scored, Scored)
        assert len(scored.ephemeral) == EPHEMERAL_BYTES
        assert scored.item().private["ephemeral"] == scored.ephemeral
        keys.add(scored.ephemeral)
        numerics.perform(Withdraw(scored.rows[:1]))
    assert len(keys) == 6


def test_an_exhausted_bid_has_the_size_of_any_other_whatever_the_label() -> None:
    session = sealed_session()
    consumer = Consumer(session)
    data = Dataset.from_arrays(A, points_of(A, 2).features, np.array(["a", "much longer than the other"]))
    machine, numerics = owner_of(session, A, data)
    numerics.perform(OpenMap(consumer.map_of(A)))
    machine.phase = "waiting"
    sizes = set()
    for number in range(1, 4):
        machine.step(Received(CURATOR, number, 0, b"", Broadcast(round=number, weights=W, noise="none")), 0.0)
        scored = numerics.perform(ScorePoints(number, W, number))
        assert isinstance(scored, Scored)
        assert (not scored.rows) == (number == 3)
        for effect in machine.step(scored, 0.0):
            if isinstance(effect, Send):
                bid = decode_message(Direction.OWNER_TO_CURATOR, effect.body)
                assert isinstance(bid, Bid)
                sizes.add(len(encode_message(bid)))
            elif isinstance(effect, Withdraw):
                numerics.perform(effect)
    assert len(sizes) == 1


# -- the party ---------------------------------------------------------------------------------------


def test_without_a_key_there_is_no_owner() -> None:
    with pytest.raises(ConfigError, match="every owner needs a key, and owner-0 has none") as caught:
        owner_party(
            sealed_session(),
            A,
            points_of(A),
            identity=None,
            noise=SimulatedNoise(1, A),
            scratch=None,
            memory_limit=2**40,
        )
    assert "hushbid keys new" in caught.value.advice


def test_points_that_do_not_fit_the_sessions_boxes_are_refused_before_it_begins() -> None:
    session = sealed_session(box_bytes=64)
    data = Dataset.from_arrays("points.npz", points_of(A).features, np.array(["x" * 100] * 6))
    with pytest.raises(DataError, match=r"points\.npz: a point with its label takes") as caught:
        owner_of(session, A, data)
    assert "boxes hold 64" in caught.value.what
    needed = int(caught.value.advice.split("raised to ")[1].split(",")[0])
    for size, fits in ((needed - 1, False), (needed, True)):
        if fits:
            owner_of(sealed_session(box_bytes=size), A, data)
        else:
            with pytest.raises(DataError):
                owner_of(sealed_session(box_bytes=size), A, data)
