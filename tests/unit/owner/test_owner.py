"""The owner: a bid for every broadcast, a point for every ask, each point handed over once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hushbid.owner.events import Scored, ScorePoints, Withdraw
from hushbid.owner.machine import OwnerMachine
from hushbid.owner.numerics import OwnerNumerics
from hushbid.owner.party import owner_party
from hushbid.protocol.crypto.identity import Identity
from hushbid.protocol.data import Dataset
from hushbid.protocol.errors import DataError, LocalProtocolError, Offence, RemoteProtocolError
from hushbid.protocol.machine.machine import Charge, Effect, Received, Send, Started
from hushbid.protocol.names import CURATOR
from hushbid.protocol.privacy.accounting import epsilon_of
from hushbid.protocol.privacy.noise import SimulatedNoise
from hushbid.protocol.session.session import Session, open_session
from hushbid.protocol.wire.codec import Direction, decode_message
from hushbid.protocol.wire.messages import (
    PROTOCOL_VERSION,
    Ask,
    Bid,
    Broadcast,
    Candidate,
    Message,
    Offer,
    Welcome,
    fixed,
)
from tests.simulation.harness import (
    MAP,
    candidate_of,
    corners,
    names,
    sealed_candidate_of,
    session_file,
    weights_of,
)

CORNERS = corners()
W = weights_of(9, 4, 2, 1)


class Bench:
    def __init__(self, rule: str, session: Session | None = None) -> None:
        self.session = session or open_session(session_file(owners=names(2), points=3, rule=rule))
        self.machine = OwnerMachine(self.session, name="owner-0")
        self.sequence = 0
        self.machine.step(Started(), 0.0)
        digest = None if self.session.public_map is None else MAP.digest
        welcome = Welcome(version=PROTOCOL_VERSION, feature_map=digest, sent=0, received=0)
        self.machine.step(Received(CURATOR, 0, 0, b"", welcome), 0.0)

    def say(self, message: Message) -> tuple[Effect, ...]:
        event = Received(CURATOR, self.sequence + 1, self.machine.links[CURATOR].sent, b"", message)
        effects = self.machine.step(event, 0.0)
        self.sequence += 1
        return effects

    def broadcast(self, number: int) -> tuple[Effect, ...]:
        return self.say(Broadcast(round=number, weights=W, noise="none"))

    def scored(self, number: int, row: int, score: int = 5) -> tuple[Effect, ...]:
        features = CORNERS[max(row, 0)]
        sealed = self.session.rule.sealed
        candidate = sealed_candidate_of(features, self.session) if sealed else candidate_of(features)
        rows, scores = ((row,), (score,)) if row >= 0 else ((), ())
        return self.machine.step(Scored(number, rows, scores, candidate, b""), 0.0)


def sent(effects: tuple[Effect, ...]) -> Message:
    (send,) = [effect for effect in effects if isinstance(effect, Send)]
    return decode_message(Direction.OWNER_TO_CURATOR, send.body)


def test_with_ask_all_a_bid_carries_its_point_which_is_withdrawn() -> None:
    bench = Bench("ask-all")
    assert bench.broadcast(1)[-1] == ScorePoints(1, W, 1)
    effects = bench.scored(1, 7)
    bid = sent(effects)
    assert isinstance(bid, Bid)
    assert bid.candidate is not None
    assert np.array_equal(bid.candidate.features, CORNERS[7])
    assert Withdraw((7,)) in effects
    assert bench.machine.handed_over == 1


def test_what_a_session_costs_the_owners_data_is_charged_once_before_its_points_enter_any_release() -> None:
    gaussian = {"mechanism": "gaussian", "epsilon": 1.0, "neighbours": "add-remove-one"}
    session = open_session(session_file(owners=names(2), points=3, summary=gaussian))
    bench = Bench("ask-all", session)
    first = bench.broadcast(1)
    assert [effect.KIND for effect in first] == ["charge", "score-points"]
    charge = first[0]
    assert isinstance(charge, Charge)
    assert (charge.neighbours, charge.first, charge.last) == ("add-remove-one", 1, 3)
    assert epsilon_of(charge.costs, session.file.session.delta) == pytest.approx(1.0, rel=1e-3)
    bench.scored(1, 7)
    assert [effect.KIND for effect in bench.broadcast(2)] == ["score-points"]


def test_with_winner_only_a_point_is_handed_over_when_it_is_asked_for() -> None:
    bench = Bench("winner-only")
    bench.broadcast(1)
    bid = sent(bench.scored(1, 7))
    assert isinstance(bid, Bid)
    assert bid.candidate is None
    assert bench.machine.handed_over == 0
    effects = bench.say(Ask(round=1, handle=bid.handle))
    offer = sent(effects)
    assert isinstance(offer, Offer)
    assert np.array_equal(offer.candidate.features, CORNERS[7])
    assert Withdraw((7,)) in effects


def test_a_point_keeps_its_number_from_round_to_round() -> None:
    bench = Bench("winner-only")
    handles = []
    for number, row in ((1, 7), (2, 3), (3, 7)):
        bench.broadcast(number)
        bid = sent(bench.scored(number, row))
        assert isinstance(bid, Bid)
        handles.append(int(bid.handle[0]))
    assert handles == [1, 2, 1]


@pytest.mark.parametrize("rule", ["ask-all", "winner-only"])
def test_an_exhausted_bid_has_the_size_of_any_other(rule: str) -> None:
    bench = Bench(rule)
    bench.broadcast(1)
    first = bench.scored(1, 2, score=-(2**50))
    bench.broadcast(2)
    last = bench.scored(2, -1, score=0)
    sizes = {len(effect.body) for effect in (*first, *last) if isinstance(effect, Send)}
    assert len(sizes) == 1
    bid = sent(last)
    assert isinstance(bid, Bid)
    assert bid.exhausted
    assert bench.machine.handed_over == (rule == "ask-all")


@pytest.mark.parametrize(
    ("message", "offence"),
    [
        (Broadcast(round=1, weights=W, noise="none"), Offence.OUT_OF_TURN),
        (Broadcast(round=4, weights=W, noise="none"), Offence.OUT_OF_TURN),
        (Broadcast(round=2, weights=weights_of(1, 2), noise="none"), Offence.MALFORMED),
        (Ask(round=1, handle=fixed(2)), Offence.OUT_OF_TURN),
        (Ask(round=2, handle=fixed(1)), Offence.OUT_OF_TURN),
    ],
)
def test_a_curator_out_of_turn_is_refused(message: Message, offence: Offence) -> None:
    bench = Bench("winner-only")
    bench.broadcast(1)
    bench.scored(1, 7)
    with pytest.raises(RemoteProtocolError) as caught:
        bench.say(message)
    assert caught.value.offence is offence


def test_a_point_is_asked_for_once() -> None:
    bench = Bench("winner-only")
    bench.broadcast(1)
    bench.scored(1, 7)
    ask = Ask(round=1, handle=fixed(1))
    bench.say(ask)
    with pytest.raises(RemoteProtocolError, match="another point"):
        bench.say(ask)


def test_no_point_but_that_of_the_rounds_bid_is_handed_over() -> None:
    bench = Bench("winner-only")
    bench.broadcast(1)
    bench.scored(1, 7)
    bench.broadcast(2)
    bench.scored(2, 8)
    with pytest.raises(RemoteProtocolError, match="another point"):
        bench.say(Ask(round=2, handle=fixed(1)))
    assert bench.machine.handed_over == 0


def test_a_weight_beyond_the_limit_is_refused() -> None:
    bench = Bench("winner-only")
    weights = np.zeros(bench.machine._session.features.dimension, dtype=np.int32)
    weights[0] = -(2**31)
    with pytest.raises(RemoteProtocolError, match="over the limit") as caught:
        bench.say(Broadcast(round=1, weights=weights, noise="none"))
    assert caught.value.offence is Offence.OVERSIZED


def test_scores_of_another_round_are_a_bug() -> None:
    bench = Bench("ask-all")
    bench.broadcast(1)
    with pytest.raises(LocalProtocolError, match="Scores of round 2 came in round 1"):
        bench.scored(2, 0)


# -- numerics and the whole party ----------------------------------------------------------------------


def test_numerics_find_the_best_point_until_none_is_left() -> None:
    points = np.arange(12, dtype=np.uint8).reshape(3, 4)
    dataset = Dataset.from_arrays("d", points, np.array(["a", "bb", "c"]))
    session = open_session(session_file(owners=names(2), points=3))
    numerics = OwnerNumerics(session, dataset, lambda _map: CORNERS[:3], sealer=None)
    order = sorted(range(3), key=lambda row: -int(CORNERS[row].astype(int) @ W))
    sizes = set()
    for row in [*order, -1]:
        scored = numerics.perform(ScorePoints(1, W, 1))
        assert isinstance(scored, Scored)
        assert scored.rows == ((row,) if row >= 0 else ())
        candidate = scored.handed
        assert isinstance(candidate, Candidate)
        assert scored.ephemeral == b""
        if row >= 0:
            assert np.array_equal(candidate.point, points[row])
            assert scored.scores[0] == int(CORNERS[row].astype(int) @ W)
            assert numerics.perform(Withdraw((row,))) is None
        sizes.add((candidate.point.dtype, candidate.point.size, len(candidate.attributes)))
    assert len(sizes) == 1, "a blank is of the same type and size"


def party_of(
    session: Session, data: Dataset, identity: Identity | None = None
) -> tuple[OwnerMachine, OwnerNumerics]:
    return owner_party(
        session,
        "owner-0",
        data,
        identity=identity,
        noise=SimulatedNoise(1, "owner-0"),
        scratch=None,
        memory_limit=2**40,
    )


def test_a_party_is_made_of_data_within_the_public_bounds() -> None:
    session = open_session(session_file(owners=names(2), points=3, columns=3))
    good = Dataset.from_arrays("good.npy", np.full((5, 3), 0.5))
    machine, _ = party_of(session, good)
    assert machine.name == "owner-0"
    bad: list[Any] = [np.full((5, 3), 2.0), np.full((5, 2), 0.5), np.full((5, 3), np.nan), np.zeros((0, 3))]
    for rows in bad:
        data = Dataset.from_arrays("bad.npy", rows)
        with pytest.raises(DataError, match=r"bad\.npy"):
            party_of(session, data)
