"""The consumer: one release of its target, the chosen points received, disputes where they do not match."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from hushbid.consumer import machine
from hushbid.consumer.events import (
    CheckPurchases,
    Delivered,
    PurchasesChecked,
    ReleaseTarget,
    StorePurchases,
    TargetReleased,
)
from hushbid.consumer.numerics import ConsumerNumerics
from hushbid.consumer.party import consumer_machine, consumer_party
from hushbid.protocol import limits
from hushbid.protocol.crypto.commitment import ROOT_BYTES
from hushbid.protocol.crypto.sealing import SIGNATURE_BYTES
from hushbid.protocol.data import Dataset, check_dataset
from hushbid.protocol.errors import DataError, ExitCode, Offence, RemoteProtocolError
from hushbid.protocol.machine.machine import Charge, Effect, Finish, Received, Send, Started
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.privacy.accounting import Budget, PrivacyFilter, epsilon_of
from hushbid.protocol.privacy.noise import SimulatedNoise
from hushbid.protocol.session.points import NO_FEATURES, hash_points, mapped, matching, within_bounds
from hushbid.protocol.session.session import Session, open_session
from hushbid.protocol.space.features import feature_space
from hushbid.protocol.space.grid import features_to_float
from hushbid.protocol.space.mmd import mmd2
from hushbid.protocol.wire.codec import Direction, decode_message
from hushbid.protocol.wire.messages import (
    PROTOCOL_VERSION,
    Candidate,
    Delivery,
    Message,
    Purchase,
    Receipt,
    Roots,
    SubmittedCandidate,
    Target,
    Welcome,
    fixed,
)
from tests.simulation.harness import (
    DIMENSION,
    MAP,
    candidate_of,
    corners,
    names,
    sealed_candidate_of,
    session_file,
)

CORNERS = corners()
Points = npt.NDArray[np.floating[Any]]


def purchase(row: int, *, candidate: Candidate | None = None, number: int = 1) -> Purchase:
    return Purchase.model_construct(
        owner="owner-0",
        round=number,
        bid_round=1,
        handle=fixed(row + 1),
        candidate=candidate or candidate_of(CORNERS[row]),
    )


def submitted(row: int) -> Purchase:
    candidate = SubmittedCandidate.model_construct(features=candidate_of(CORNERS[row]).features)
    return purchase(row).model_copy(update={"candidate": candidate})


def delivered(made: Purchase, dispute: str = "") -> Delivered:
    assert isinstance(made.candidate, Candidate)
    return Delivered(made.owner, made.round, made.candidate, dispute)


class Bench:
    def __init__(self, points: int = 4, **options: Any) -> None:
        session = open_session(session_file(owners=names(2), points=points, **options))
        self.machine = consumer_machine(session)
        self.sequence = 0
        self.machine.step(Started(), 0.0)
        digest = None if session.public_map is None else MAP.digest
        welcome = Welcome(version=session.protocol_version, feature_map=digest, sent=0, received=0)
        self.welcomed = self.machine.step(Received(CURATOR, 0, 0, b"", welcome), 0.0)

    def release(self, maps: bytes = b"") -> tuple[Effect, ...]:
        zeros = np.zeros(DIMENSION)
        return self.machine.step(
            TargetReleased(zeros, 3, zeros.astype(np.int64), 2, b"", maps, "none", ()), 0.0
        )

    def say(self, message: Message) -> tuple[Effect, ...]:
        event = Received(CURATOR, self.sequence + 1, self.machine.links[CURATOR].sent, b"", message)
        effects = self.machine.step(event, 0.0)
        self.sequence += 1
        return effects

    def deliver(self, part: int, parts: int, *purchases: Purchase) -> tuple[Effect, ...]:
        return self.say(Delivery.model_construct(part=part, parts=parts, purchases=purchases))

    def checked(self, *outcome: Delivered, mmd2: npt.NDArray[np.float64] | None = None) -> tuple[Effect, ...]:
        return self.machine.step(PurchasesChecked(outcome, mmd2), 0.0)


def sent(effects: tuple[Effect, ...]) -> Message:
    (send,) = [effect for effect in effects if isinstance(effect, Send)]
    return decode_message(Direction.CONSUMER_TO_CURATOR, send.body)


def test_the_target_is_released_once_and_sent() -> None:
    bench = Bench()
    target = sent(bench.release())
    assert isinstance(target, Target)
    assert (target.size, target.seed_size, target.maps, target.noise) == (3, 2, b"", "none")


def test_every_part_is_checked_and_acknowledged_and_the_whole_is_stored() -> None:
    bench = Bench()
    bench.release()
    first, second = purchase(0), purchase(1, number=2)
    assert bench.deliver(1, 2, first) == (CheckPurchases((first,), last=False),)
    receipt = sent(bench.checked(delivered(first)))
    assert isinstance(receipt, Receipt)
    assert (receipt.part, receipt.disputed) == (1, b"\x00")
    assert bench.deliver(2, 2, second) == (CheckPurchases((second,), last=True),)
    assert bench.machine.mmd2 is None
    distances = np.array([0.5])
    effects = bench.checked(delivered(second, "the box does not open"), mmd2=distances)
    assert bench.machine.mmd2 is distances
    receipt = sent(effects)
    assert isinstance(receipt, Receipt)
    assert (receipt.part, receipt.disputed) == (2, b"\x80")
    whole = (delivered(first), delivered(second, "the box does not open"))
    assert StorePurchases(whole) in effects
    assert tuple(bench.machine.delivered) == whole


def test_nothing_bought_is_a_whole_delivery() -> None:
    bench = Bench()
    bench.release()
    bench.deliver(1, 1)
    effects = bench.checked()
    assert StorePurchases(()) in effects
    receipt = sent(effects)
    assert isinstance(receipt, Receipt)
    assert receipt.disputed == b""


def test_more_points_than_were_to_be_bought_are_refused_over_all_parts() -> None:
    bench = Bench(points=2)
    bench.release()
    bench.deliver(1, 2, purchase(0), purchase(1))
    bench.checked(delivered(purchase(0)), delivered(purchase(1)))
    with pytest.raises(RemoteProtocolError, match="More than the 2 points") as caught:
        bench.deliver(2, 2, purchase(2))
    assert caught.value.offence is Offence.MALFORMED


def test_points_of_an_owner_beyond_its_turns_or_its_cap_are_refused() -> None:
    bench = Bench(wishes={"caps": {"owner-0": 2}})
    bench.release()
    first, second = sorted(bench.machine._opened.turns.given["owner-0"])
    rest = min({1, 2, 3, 4} - {first, second})
    with pytest.raises(RemoteProtocolError, match="its owner has no turn") as caught:
        bench.deliver(1, 1, purchase(0, number=rest))
    assert caught.value.offence is Offence.OUT_OF_TURN
    three = [purchase(row, number=number) for row, number in enumerate((first, second, second))]
    with pytest.raises(RemoteProtocolError, match="its cap of 2") as caught:
        bench.deliver(1, 1, *three)
    assert caught.value.offence is Offence.MALFORMED
    bench.deliver(1, 1, *three[:2], three[2].model_copy(update={"owner": "owner-1"}))


def test_points_that_cost_more_than_the_budget_are_refused_over_all_parts() -> None:
    bench = Bench(rule="tender", wishes={"prices": {"owner-0": 1.0, "owner-1": 2.5}, "budget": 4.5})
    bench.release(maps=bytes(2 * limits.MAP_BOX_BYTES))
    bench.deliver(1, 2, submitted(0), submitted(1))
    bench.checked(*(Delivered("owner-0", 1, None, "the box does not open") for _row in range(2)))
    dear = submitted(2).model_copy(update={"owner": "owner-1"})
    with pytest.raises(RemoteProtocolError, match=r"for more than the budget of 4\.5") as caught:
        bench.deliver(2, 2, dear, submitted(3))
    assert caught.value.offence is Offence.MALFORMED
    bench.deliver(2, 2, dear)


@pytest.mark.parametrize("number", [-(2**63), -1, 0, limits.MAX_POINTS + 1, 2**63 - 1])
def test_a_number_of_a_submission_that_is_none_is_refused(number: int) -> None:
    """A box opens under its number: one that fits no box is not tried."""
    bench = Bench(rule="tender")
    bench.release(maps=bytes(2 * limits.MAP_BOX_BYTES))
    made = submitted(0).model_copy(update={"handle": fixed(number)})
    with pytest.raises(RemoteProtocolError, match="number is out of range"):
        bench.deliver(1, 1, made)


@pytest.mark.parametrize("number", [-1, 0, limits.MAX_POINTS + 1])
def test_a_number_that_no_box_of_an_owner_that_committed_has_is_refused(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "signs_rows", lambda *_: True)
    session = open_session(session_file(owners=names(2), points=4, rule="sealed", commitment_depth=3))
    bench = Bench(rule="sealed", commitment_depth=3)
    bench.say(Roots.model_construct(roots=b"\1" * 2 * ROOT_BYTES, signatures=b"\1" * 2 * SIGNATURE_BYTES))
    bench.release(maps=bytes(2 * limits.MAP_BOX_BYTES))
    candidate = sealed_candidate_of(candidate_of(CORNERS[0]).features, session)
    made = purchase(0).model_copy(update={"candidate": candidate, "handle": fixed(number)})
    with pytest.raises(RemoteProtocolError, match="number is out of range"):
        bench.deliver(1, 1, made)


def test_a_round_that_the_session_has_not_is_refused() -> None:
    bench = Bench()
    bench.release()
    with pytest.raises(RemoteProtocolError, match="round is not the session's"):
        bench.deliver(1, 1, purchase(0, number=5))


@pytest.mark.parametrize("parts", [1, 2])
def test_a_point_that_is_delivered_twice_under_its_number_is_refused(parts: int) -> None:
    bench = Bench()
    bench.release()
    # The same number with another point, too: the curator takes a number once.
    again = purchase(0, candidate=candidate_of(CORNERS[1]), number=2)
    before = (purchase(0),) if parts == 1 else ()
    if parts == 2:
        bench.deliver(1, 2, purchase(0))
        bench.checked(delivered(purchase(0)))
    with pytest.raises(RemoteProtocolError, match="a second time under its owner's number") as caught:
        bench.deliver(parts, parts, *before, again)
    assert caught.value.offence is Offence.OUT_OF_TURN
    bench.deliver(parts, parts, *before, again.model_copy(update={"owner": "owner-1"}))


@pytest.mark.parametrize("rule", ["ask-all", "sealed"])
def test_a_point_that_comes_the_other_way_than_the_rule_has_it_is_refused(rule: str) -> None:
    bench = Bench(rule=rule)
    bench.release()
    session = open_session(session_file(owners=names(2), points=1, rule="sealed"))
    sealed = purchase(0).model_copy(update={"candidate": sealed_candidate_of(CORNERS[0], session)})
    good, bad = (sealed, purchase(0)) if rule == "sealed" else (purchase(0), sealed)
    with pytest.raises(RemoteProtocolError, match="open where they are sealed, or sealed where") as caught:
        bench.deliver(1, 1, good, bad)
    assert caught.value.offence is Offence.MALFORMED
    bench.deliver(1, 1, good)


# -- what the release costs ---------------------------------------------------------------------------

GAUSSIAN = {"mechanism": "gaussian", "neighbours": "substitute-one", "epsilon": 1.0}


def test_the_release_is_charged_before_it_is_made() -> None:
    bench = Bench(target=GAUSSIAN)
    charge, release = bench.welcomed
    assert isinstance(charge, Charge)
    assert (charge.neighbours, charge.first, charge.last) == ("substitute-one", 1, 1)
    assert epsilon_of(charge.costs, 1e-5) == pytest.approx(1.0, rel=1e-3)
    assert release == ReleaseTarget()


def test_a_release_over_its_budget_is_not_made_and_ends_the_party_with_the_reason() -> None:
    session = open_session(session_file(owners=names(2), points=4, target=GAUSSIAN))
    machine = consumer_machine(session)
    machine._filter = PrivacyFilter(Budget(0.5, 1e-5), neighbours="substitute-one")
    machine.step(Started(), 0.0)
    welcome = Welcome(version=PROTOCOL_VERSION, feature_map=MAP.digest, sent=0, received=0)
    (finish,) = machine.step(Received(CURATOR, 0, 0, b"", welcome), 0.0)
    assert isinstance(finish, Finish)
    assert finish.code is ExitCode.FAILED
    assert "over the budget of 0.5" in finish.reason
    assert "Nothing was spent" in finish.advice


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
    assert bench.machine.delivered == []


def test_a_point_of_nobody_on_the_roster_is_refused_with_its_whole_part() -> None:
    bench = Bench()
    bench.release()
    stranger = purchase(1).model_copy(update={"owner": "owner-2"})
    with pytest.raises(RemoteProtocolError, match="roster") as caught:
        bench.deliver(1, 1, purchase(0), stranger)
    assert caught.value.offence is Offence.MALFORMED
    assert bench.machine.delivered == []


def test_the_number_of_parts_does_not_change_on_the_way() -> None:
    bench = Bench()
    bench.release()
    bench.deliver(1, 3, purchase(0))
    bench.checked(delivered(purchase(0)))
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
        identity=None,
        noise=SimulatedNoise(1, CONSUMER),
        validation=Dataset.from_arrays("v", validation),
        seed_set=Dataset.from_arrays("s", seed_set),
        store=stored.append,
    )
    released = numerics.perform(ReleaseTarget())
    assert isinstance(released, TargetReleased)
    assert session.public_map is not None
    hash_ = session.public_map.hash
    assert np.allclose(released.embedding, features_to_float(hash_(validation)).mean(axis=0), atol=1e-12)
    assert np.array_equal(released.seed_total, hash_(seed_set).sum(axis=0, dtype=np.int64))
    assert (released.size, released.seed_size, released.noise) == (7, 5, ())
    assert (released.map_seed, released.maps) == (b"", b""), "the map is public"
    store = StorePurchases(())
    assert numerics.perform(store) is None
    assert stored == [store]


def numerics_of(session: Session, validation: Points) -> ConsumerNumerics:
    _, numerics = consumer_party(
        session,
        identity=None,
        noise=SimulatedNoise(1, CONSUMER),
        validation=Dataset.from_arrays("v", validation),
        seed_set=Dataset.from_arrays("s", np.ones((2, 3))),
        store=lambda purchases: None,
    )
    return numerics


def checked_by(numerics: ConsumerNumerics, *points: Points, last: bool) -> PurchasesChecked:
    features = numerics._require_map().hash(np.stack(points)) if points else ()
    bought = [
        purchase(0, candidate=candidate_of(row).model_copy(update={"point": point}))
        for row, point in zip(features, points, strict=True)
    ]
    checked = numerics.perform(CheckPurchases(tuple(bought), last=last))
    assert isinstance(checked, PurchasesChecked)
    assert len(checked.delivered) == len(points)
    return checked


def test_the_last_part_is_checked_with_the_distance_of_all_that_was_delivered() -> None:
    """MMD² against D_v by the exact kernel, of the first 1, 2, … points, as in an evaluation."""
    session = open_session(session_file(owners=names(2), points=3, columns=3, dimension=8))
    rng = np.random.default_rng(0)
    validation, points = rng.random((7, 3)), rng.random((3, 3))
    numerics = numerics_of(session, validation)
    assert checked_by(numerics, points[0], last=False).mmd2 is None
    found = checked_by(numerics, points[1], points[2].astype(np.float32), last=True).mmd2
    assert found is not None
    assert found.shape == (3,)
    assert not found.flags.writeable
    space = session.space
    target = space.scale(validation)
    exact = [mmd2(space.scale(points[:count]), target, space.gamma) for count in (1, 2, 3)]
    assert found == pytest.approx(exact, abs=1e-6)


def test_nothing_delivered_has_no_distance() -> None:
    session = open_session(session_file(owners=names(2), points=3, columns=3, dimension=8))
    assert checked_by(numerics_of(session, np.zeros((2, 3))), last=True).mmd2 is None


def test_points_too_far_out_to_be_compared_end_nobody() -> None:
    session = open_session(session_file(owners=names(2), points=3, columns=3, dimension=8))
    numerics = numerics_of(session, np.zeros((2, 3)))
    far = candidate_of(np.zeros(8, dtype=np.int16)).model_copy(update={"point": np.full(3, 1e308)})
    bought = tuple(purchase(0, candidate=far, number=number) for number in (1, 2))
    checked = numerics.perform(CheckPurchases(bought, last=True))
    assert isinstance(checked, PurchasesChecked)
    assert checked.mmd2 is None
    assert all(entry.dispute for entry in checked.delivered)


def test_points_of_other_number_types_and_without_features_are_hashed_all_the_same() -> None:
    """An owner can send anything: no point of its may end the party that checks it."""
    points = [
        np.full(DIMENSION, 0.5),
        np.full(DIMENSION, 1e308),
        np.zeros(DIMENSION, dtype=np.uint8),
        np.full(DIMENSION, 0.5, dtype=np.float32),
    ]
    hashed = hash_points(MAP, points, [b""] * len(points), schema=None)
    assert np.array_equal(hashed[0], hashed[3])
    assert (hashed[1] == NO_FEATURES).all()
    assert np.array_equal(hashed[2], MAP.hash(np.zeros((1, DIMENSION)))[0])
    assert matching(hashed, hashed).tolist() == [True, False, True, True]
    assert hash_points(MAP, [], [], schema=None).shape == (0, DIMENSION)


@pytest.mark.parametrize("value", [1.0 + 2.0**-52, -5e-324, 1e160, -1e308, 1e308])
def test_a_point_outside_of_the_public_bounds_has_no_features_and_is_disputed(value: float) -> None:
    """A far point spoils every figure of a delivery, though its φ is what its owner says."""
    far = np.full(DIMENSION, 0.5)
    far[1] = value
    claimed = MAP.hash(far[None]) if abs(value) < 1e200 else MAP.hash(np.zeros((1, DIMENSION)))
    near = np.array([0.0, 1.0, 0.5, 1.0])
    hashed = hash_points(MAP, [near, far], [b"", b""], schema=None)
    assert mapped(hashed).tolist() == [True, False]
    assert matching(hashed, np.vstack([MAP.hash(near[None]), claimed])).tolist() == [True, False]


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "int64", "float32", "float64"])
@pytest.mark.parametrize(("lower", "upper"), [(0.1, 0.3), (-0.7, 1e-3), (3.0, 250.0), (1000.1, 1000.7)])
def test_what_an_owners_own_check_lets_through_lies_within_the_bounds(
    lower: float, upper: float, dtype: str
) -> None:
    bounds = np.array([[lower], [upper]])
    points = bounds.astype(dtype) if "float" in dtype else np.array([[4], [250]], dtype=dtype)
    space = feature_space("paired", dimension=4, gamma=1.0, lower=lower, upper=upper, columns=1)
    inside = []
    for row in range(2):
        try:
            owned = Dataset.from_arrays("points", points[row : row + 1])
            check_dataset(owned, columns=1, lower=lower, upper=upper)
            inside.append(True)
        except DataError:
            inside.append(False)
    assert within_bounds(space, points).tolist() == inside
    assert within_bounds(space, points[:0]).shape == (0,)


def test_float32_widens_the_bounds_by_its_rounding_and_no_more() -> None:
    space = feature_space("paired", dimension=4, gamma=1.0, lower=0.0, upper=0.1, columns=1)
    saved = np.array([[0.1], [0.1000001]], dtype=np.float32)
    assert float(saved[0, 0]) > 0.1
    assert within_bounds(space, saved).tolist() == [True, False]
    assert within_bounds(space, saved.astype(np.float64)).tolist() == [False, False]
