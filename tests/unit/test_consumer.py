"""The consumer: one release of its target out, the chosen points in, disputes where they do not match."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from consumer.events import CheckPurchases, PurchasesHashed, ReleaseTarget, StorePurchases, TargetReleased
from consumer.machine import ConsumerMachine
from consumer.party import consumer_party
from protocol.data import Dataset, check_dataset
from protocol.errors import DataError, Offence, RemoteProtocolError
from protocol.features import feature_map
from protocol.grid import features_to_float
from protocol.machine import Effect, Received, Send, Started
from protocol.messages import (
    PROTOCOL_VERSION,
    Candidate,
    Delivery,
    Message,
    Purchase,
    Receipt,
    Target,
    Welcome,
)
from protocol.participant import CURATOR
from protocol.session import open_session
from protocol.verification import NO_FEATURES, hash_points, mapped, matching, within_bounds
from protocol.wire import Direction, decode_message
from tests.simulation.harness import DIMENSION, MAP, candidate_of, corners, names, session_file

CORNERS = corners()


def purchase(row: int, *, candidate: Candidate | None = None, number: int = 1) -> Purchase:
    return Purchase.model_construct(
        owner="owner-0", round=number, candidate=candidate or candidate_of(CORNERS[row])
    )


class Bench:
    def __init__(self, points: int = 4) -> None:
        session = session_file(owners=names(2), points=points)
        self.machine = ConsumerMachine(session, name="consumer", feature_map=MAP.digest)
        self.sequence = 0
        self.machine.step(Started(), 0.0)
        welcome = Welcome(version=PROTOCOL_VERSION, feature_map=MAP.digest, sent=0, received=0)
        effects = self.machine.step(Received(CURATOR, 0, 0, b"", welcome), 0.0)
        assert effects == (ReleaseTarget(),)

    def release(self) -> tuple[Effect, ...]:
        zeros = np.zeros(DIMENSION)
        return self.machine.step(TargetReleased(zeros, 3, zeros.astype(np.int64), 2, "none", ()), 0.0)

    def say(self, message: Message) -> tuple[Effect, ...]:
        event = Received(CURATOR, self.sequence + 1, self.machine.links[CURATOR].sent, b"", message)
        effects = self.machine.step(event, 0.0)
        self.sequence += 1
        return effects

    def deliver(self, part: int, parts: int, *purchases: Purchase) -> tuple[Effect, ...]:
        return self.say(Delivery.model_construct(part=part, parts=parts, purchases=purchases))

    def hashed(self, *rows: np.ndarray[Any, np.dtype[np.int16]]) -> tuple[Effect, ...]:
        features = np.array(rows, dtype=np.int16).reshape(-1, DIMENSION)
        return self.machine.step(PurchasesHashed(features), 0.0)


def sent(effects: tuple[Effect, ...]) -> Message:
    (send,) = [effect for effect in effects if isinstance(effect, Send)]
    return decode_message(Direction.CONSUMER_TO_CURATOR, send.body)


def test_the_target_is_released_once_and_sent() -> None:
    bench = Bench()
    target = sent(bench.release())
    assert isinstance(target, Target)
    assert (target.size, target.seed_size, target.noise) == (3, 2, "none")


def test_every_part_is_checked_and_acknowledged_and_the_whole_is_stored() -> None:
    bench = Bench()
    bench.release()
    first, second = purchase(0), purchase(1, number=2)
    assert bench.deliver(1, 2, first) == (CheckPurchases((first,)),)
    receipt = sent(bench.hashed(CORNERS[0]))
    assert isinstance(receipt, Receipt)
    assert receipt.part == 1
    bench.deliver(2, 2, second)
    effects = bench.hashed(CORNERS[1])
    assert StorePurchases((first, second), ()) in effects


def test_points_that_are_not_their_features_are_disputed() -> None:
    bench = Bench()
    bench.release()
    bench.deliver(1, 2, purchase(0), purchase(1))
    bench.hashed(CORNERS[0], CORNERS[1] + np.int16(1))
    bench.deliver(2, 2, purchase(2), purchase(3))
    effects = bench.hashed(CORNERS[2] - np.int16(2), CORNERS[3])
    (store,) = [effect for effect in effects if isinstance(effect, StorePurchases)]
    assert store.disputed == (2,)


def test_nothing_bought_is_a_whole_delivery() -> None:
    bench = Bench()
    bench.release()
    bench.deliver(1, 1)
    assert StorePurchases((), ()) in bench.hashed()


@pytest.mark.parametrize(
    ("part", "parts", "count", "width", "offence"),
    [
        (2, 2, 1, DIMENSION, Offence.OUT_OF_TURN),
        (1, 1, 5, DIMENSION, Offence.MALFORMED),
        (1, 1, 1, DIMENSION + 2, Offence.MALFORMED),
    ],
)
def test_a_delivery_that_cannot_be_is_refused(
    part: int, parts: int, count: int, width: int, offence: Offence
) -> None:
    bench = Bench()
    bench.release()
    made = purchase(0, candidate=candidate_of(np.zeros(width, dtype=np.int16)))
    with pytest.raises(RemoteProtocolError) as caught:
        bench.deliver(part, parts, *([made] * count))
    assert caught.value.offence is offence
    assert bench.machine.purchases == []


def test_a_point_of_nobody_on_the_roster_is_refused_with_its_whole_part() -> None:
    bench = Bench()
    bench.release()
    stranger = purchase(1).model_copy(update={"owner": "owner-2"})
    with pytest.raises(RemoteProtocolError, match="roster") as caught:
        bench.deliver(1, 1, purchase(0), stranger)
    assert caught.value.offence is Offence.MALFORMED
    assert bench.machine.purchases == []


def test_the_number_of_parts_does_not_change_on_the_way() -> None:
    bench = Bench()
    bench.release()
    bench.deliver(1, 3, purchase(0))
    bench.hashed(CORNERS[0])
    with pytest.raises(RemoteProtocolError):
        bench.deliver(2, 2, purchase(1))


# -- numerics -----------------------------------------------------------------------------------------


def test_numerics_release_the_mean_embedding_and_the_seed_sets_total() -> None:
    session = open_session(session_file(owners=names(2), points=3, columns=3, dimension=8))
    rng = np.random.default_rng(0)
    validation, seed_set = rng.random((7, 3)), rng.random((5, 3))
    stored: list[StorePurchases] = []
    _, numerics = consumer_party(
        session,
        validation=Dataset.from_arrays("v", validation),
        seed_set=Dataset.from_arrays("s", seed_set),
        store=stored.append,
    )
    released = numerics.perform(ReleaseTarget())
    assert isinstance(released, TargetReleased)
    hash_ = session.feature_map.hash
    assert np.allclose(released.embedding, features_to_float(hash_(validation)).mean(axis=0), atol=1e-12)
    assert np.array_equal(released.seed_total, hash_(seed_set).sum(axis=0, dtype=np.int64))
    assert (released.size, released.seed_size, released.noise) == (7, 5, ())
    store = StorePurchases((), ())
    assert numerics.perform(store) is None
    assert stored == [store]


def test_points_of_other_number_types_and_without_features_are_hashed_all_the_same() -> None:
    """What an owner sends is its own choice: no point of its may end the party that checks it."""
    points = [
        np.full(DIMENSION, 0.5),
        np.full(DIMENSION, 1e308),
        np.zeros(DIMENSION, dtype=np.uint8),
        np.full(DIMENSION, 0.5, dtype=np.float32),
    ]
    hashed = hash_points(MAP, points)
    assert np.array_equal(hashed[0], hashed[3])
    assert (hashed[1] == NO_FEATURES).all()
    assert np.array_equal(hashed[2], MAP.hash(np.zeros((1, DIMENSION)))[0])
    assert matching(hashed, hashed).tolist() == [True, False, True, True]
    assert hash_points(MAP, []).shape == (0, DIMENSION)


@pytest.mark.parametrize("value", [1.0 + 2.0**-52, -5e-324, 1e160, -1e308, 1e308])
def test_a_point_outside_of_the_public_bounds_has_no_features_and_is_disputed(value: float) -> None:
    """One far away makes every figure of a delivery meaningless, though its φ is what its owner says."""
    far = np.full(DIMENSION, 0.5)
    far[1] = value
    claimed = MAP.hash(far[None]) if abs(value) < 1e200 else MAP.hash(np.zeros((1, DIMENSION)))
    near = np.array([0.0, 1.0, 0.5, 1.0])
    hashed = hash_points(MAP, [near, far])
    assert mapped(hashed).tolist() == [True, False]
    assert matching(hashed, np.vstack([MAP.hash(near[None]), claimed])).tolist() == [True, False]


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "int64", "float32", "float64"])
@pytest.mark.parametrize(("lower", "upper"), [(0.1, 0.3), (-0.7, 1e-3), (3.0, 250.0), (1000.1, 1000.7)])
def test_what_an_owners_own_check_lets_through_lies_within_the_bounds(
    lower: float, upper: float, dtype: str
) -> None:
    bounds = np.array([[lower], [upper]])
    points = bounds.astype(dtype) if "float" in dtype else np.array([[4], [250]], dtype=dtype)
    phi = feature_map("paired", seed=1, dimension=4, gamma=1.0, lower=lower, upper=upper, columns=1)
    inside = []
    for row in range(2):
        try:
            owned = Dataset.from_arrays("points", points[row : row + 1])
            check_dataset(owned, columns=1, lower=lower, upper=upper)
            inside.append(True)
        except DataError:
            inside.append(False)
    assert within_bounds(phi, points).tolist() == inside
    assert within_bounds(phi, points[:0]).shape == (0,)


def test_float32_widens_the_bounds_by_its_rounding_and_no_more() -> None:
    phi = feature_map("paired", seed=1, dimension=4, gamma=1.0, lower=0.0, upper=0.1, columns=1)
    saved = np.array([[0.1], [0.1000001]], dtype=np.float32)
    assert float(saved[0, 0]) > 0.1
    assert within_bounds(phi, saved).tolist() == [True, False]
    assert within_bounds(phi, saved.astype(np.float64)).tolist() == [False, False]
