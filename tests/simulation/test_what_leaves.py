"""Whatever leaves a party follows from its stated inputs alone, and each release has noise of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hushbid.consumer.events import ReleaseTarget, TargetReleased
from hushbid.consumer.party import consumer_party
from hushbid.curator.machine import CuratorMachine
from hushbid.curator.party import curator_party
from hushbid.protocol.data import Dataset
from hushbid.protocol.machine.weighing import ComputeWeights
from hushbid.protocol.privacy.noise import SecureNoise, SimulatedNoise
from hushbid.protocol.privacy.noise.base import Draw
from hushbid.protocol.privacy.releases import Prior
from hushbid.protocol.privacy.releases.base import ReleaseMechanism
from hushbid.protocol.session.points import hash_seed_set
from hushbid.protocol.session.session import Session, open_session
from hushbid.protocol.wire.codec import Direction, decode_frame, decode_message
from hushbid.protocol.wire.messages import Broadcast
from hushbid.simulation.simulator import Simulation
from tests.simulation.harness import names, session_file
from tests.simulation.tender_market import COLUMNS, DATA, SEED_SET, VALIDATION, dataset

MECHANISMS: dict[str, dict[str, Any]] = {
    "gaussian": {},
    "filtered-gaussian": {},
    "subspace": {"directions": 4},
    "race": {},
    "mwem": {"calibration": "sound", "steps": 3, "eta": 0.1},
}
OTHER = dataset("validation", 50, 0.9, 77)
"""Another D_v: of another size, and far from the first."""


def private(mechanism: str, **changes: Any) -> Session:
    keys = {"mechanism": mechanism, "epsilon": 3.0, **MECHANISMS[mechanism]}
    given: dict[str, Any] = {
        "rule": "ask-all",
        "points": 12,
        "dimension": 16,
        "columns": COLUMNS,
        "target": keys | {"neighbours": "substitute-one"},
        "summary": keys | {"neighbours": "add-remove-one"},
    }
    return open_session(session_file(owners=names(3), **(given | changes)))


# -- the prior: of the seed set alone --------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", ["gaussian", "filtered-gaussian", "subspace", "mwem"])
def test_centre_radius_and_basis_of_a_release_are_of_the_seed_set_alone(
    monkeypatch: pytest.MonkeyPatch, mechanism: str
) -> None:
    """A dependence on D_v would reveal it without any noise."""
    opened = private(mechanism)
    used: list[Prior] = []
    kind = type(opened.target)
    stream = kind.stream

    def spied(self: ReleaseMechanism, offset: Any = None, prior: Prior | None = None) -> Any:
        assert prior is not None
        used.append(prior)
        return stream(self, offset, prior)

    monkeypatch.setattr(kind, "stream", spied)
    sent: list[TargetReleased] = []
    for validation in (VALIDATION, OTHER):
        noise = SimulatedNoise(1, "consumer")
        _, numerics = consumer_party(
            opened,
            identity=None,
            validation=validation,
            seed_set=SEED_SET,
            noise=noise,
            store=lambda _points: None,
        )
        released = numerics.perform(ReleaseTarget())
        assert isinstance(released, TargetReleased)
        sent.append(released)
    feature_map = opened.public_map
    assert feature_map is not None
    seeds = hash_seed_set(feature_map, SEED_SET.features)
    expected = Prior.of_features(seeds, opened.directions)
    for prior in used:
        assert (prior.size, prior.spread) == (expected.size, expected.spread)
        assert np.array_equal(prior.centre, expected.centre)
        assert (prior.basis is None) == (expected.basis is None)
        assert prior.basis is None or np.array_equal(prior.basis, expected.basis)  # type: ignore[arg-type]
    for each in sent:
        assert each.seed_total.tobytes() == seeds.sum(axis=0, dtype=np.int64).tobytes()
        assert each.seed_size == len(seeds)
        assert each.basis is None or each.basis.tobytes() == expected.basis.tobytes()  # type: ignore[union-attr]
    assert not np.array_equal(sent[0].embedding, sent[1].embedding)


# -- jitter's weight: of the session alone ---------------------------------------------------------------


def broadcasts_of(opened: Session, data: dict[str, Dataset]) -> list[Broadcast]:
    found: dict[int, Broadcast] = {}

    def tap(sender: str, _receiver: str, frame: Any) -> None:
        if sender == "curator" and frame.kind == "broadcast":
            message = decode_message(Direction.CURATOR_TO_OWNER, decode_frame(frame.data).body)
            assert isinstance(message, Broadcast)
            found[message.round] = message

    Simulation(opened, owners=data, validation=VALIDATION, seed_set=SEED_SET, tap=tap).run()
    return [found[number] for number in sorted(found)]


def test_jitter_weighs_the_same_whatever_owners_hold() -> None:
    """A weight that followed from the purchase's exact total would reveal it without noise."""
    opened = private("filtered-gaussian", jitter=25.0)
    others = {name: dataset(name, 40, 0.8 - 0.2 * number, 50 + number) for number, name in enumerate(DATA)}
    first, second = (broadcasts_of(opened, data) for data in (DATA, others))
    assert len(first) == len(second) == opened.rounds
    assert [each.weights[-1] for each in first] == [each.weights[-1] for each in second]
    assert any(not np.array_equal(a.weights, b.weights) for a, b in zip(first, second, strict=True))


# -- noise: once for each release ------------------------------------------------------------------------


def test_the_noise_of_two_hundred_rounds_is_never_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = private("filtered-gaussian", points=200)
    used: list[bytes] = []

    def spied(opened: Session, **given: Any) -> tuple[CuratorMachine, Any]:
        machine, numerics = curator_party(opened, **given)
        perform = numerics.perform

        def performed(effect: Any) -> Any:
            if isinstance(effect, ComputeWeights):
                used.extend(np.ascontiguousarray(part).tobytes() for part in effect.noise)
            return perform(effect)

        monkeypatch.setattr(numerics, "perform", performed)
        return machine, numerics

    owners = {name: dataset(name, 100, 0.5, 5 + number) for number, name in enumerate(DATA)}
    Simulation(opened, owners=owners, validation=VALIDATION, seed_set=SEED_SET, curator=spied).run()
    assert opened.rounds == 200
    assert len(used) == len(set(used)) == opened.rounds - 1  # before the first, nothing is bought


@pytest.mark.parametrize("source", ["secure", "simulated"])
def test_a_source_never_hands_out_the_same_twice(source: str) -> None:
    noise = SecureNoise() if source == "secure" else SimulatedNoise(3, "curator")
    for draw in (Draw("discrete-gaussian", 1000.0, 16), Draw("discrete-laplace", 1000.0, 16)):
        found = [noise.draw(draw).tobytes() for _ in range(300)]
        assert len(set(found)) == len(found)
    keys = [noise.random_bytes(32) for _ in range(300)]
    assert len(set(keys)) == len(keys)
