"""The numbers to pay owners by: the gain regardless of order, its standard error, and nothing for noise."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hushbid.protocol.privacy.noise import SimulatedNoise
from hushbid.protocol.session.prior import prior_of
from hushbid.protocol.session.session import Session, open_session
from hushbid.protocol.session.settling import HandedOver, settle
from hushbid.protocol.session.statement import Noise, gain_errors, shared_gains, target_noise
from hushbid.protocol.space.grid import features_to_float
from hushbid.protocol.wire.messages import Candidate, Target
from tests.support.session_files import load

OWNERS = ("alpha", "beta", "gamma")
PRIVATE = {"epsilon": 2.0, "neighbours": "substitute-one"}


def opened(mechanism: str, dimension: int = 8, **keys: Any) -> Session:
    target = {"mechanism": mechanism, **({} if mechanism == "exact" else PRIVATE), **keys}
    changes: dict[str, Any] = {"target": target, "features.dimension": dimension}
    if mechanism == "race":
        changes |= {"features.map": "lsh", "features.cells": 4, "features.bandwidth": 0.5}
    return open_session(load(changes))


class Setting:
    """Points of three owners, a seed set and a target of 40 points, all of one session."""

    def __init__(self, session: Session, seed: int = 0) -> None:
        assert session.public_map is not None
        generator = np.random.default_rng(seed)
        self.session, self._map = session, session.public_map
        centres = {"alpha": 0.8, "beta": 0.6, "gamma": 0.2}
        self.wins = []
        for number in range(30):
            owner = OWNERS[number % 3]
            point = np.clip(generator.normal(centres[owner], 0.05, size=(1, 3)), 0, 1)
            candidate = Candidate(point=point[0], features=self._map.hash(point)[0], attributes=b"")
            self.wins.append(HandedOver(owner, number + 1, number, 0, candidate, number + 1))
        self._wanted = self._map.hash(np.clip(generator.normal(0.8, 0.05, size=(40, 3)), 0, 1))
        seeds = self._map.hash(np.clip(generator.normal(0.2, 0.05, size=(20, 3)), 0, 1))
        self._target: dict[str, Any] = {
            "size": 40,
            "seed_total": seeds.sum(axis=0, dtype=np.int64),
            "seed_size": 20,
            "maps": b"",
            "noise": "simulated",
        }

    def target(self, noise: SimulatedNoise | None) -> Target:
        """The release of D_v, without noise if there is no source."""
        exact = Target(embedding=np.zeros(self.session.space.dimension), **self._target)
        stream = self.session.target.stream(prior=prior_of(exact))
        total = stream.statistic.of(self._wanted).sum(axis=0)
        if noise is None:
            return exact.model_copy(update={"embedding": stream.embedding(total, 40)})
        drawn = tuple(noise.draw(draw) for draw in stream.mechanism.draws(0))
        return exact.model_copy(update={"embedding": stream.release(0, total, 40, drawn)})

    def values(self, target: Target, disputed: Any = ()) -> tuple[Mapping[str, float], Any]:
        noise = target_noise(self.session, target)
        return shared_gains(self.wins, disputed, OWNERS, self.session, target, noise)


@pytest.mark.parametrize("mechanism", ["exact", "gaussian", "filtered-gaussian", "race"])
def test_values_add_up_to_the_squared_distance_that_was_gained(mechanism: str) -> None:
    setting = Setting(opened(mechanism))
    target = setting.target(None)
    values, _ = setting.values(target)
    stream = setting.session.target.stream(prior=prior_of(target))
    centre = features_to_float(stream.prior.centre)
    features = np.stack([win.candidate.features for win in setting.wins])
    bought = stream.embedding(stream.statistic.of(features).sum(axis=0), len(features))
    seeds = setting.session.file.seed_weight * target.seed_size
    mean = (len(features) * bought + seeds * centre) / (len(features) + seeds)
    wanted = target.embedding - centre
    gained = wanted @ wanted - (target.embedding - mean) @ (target.embedding - mean)
    assert sum(values.values()) == pytest.approx(gained, abs=1e-12)
    if mechanism != "race":  # whose two rows of four cells are no measure of distance
        assert values["alpha"] > values["beta"] > values["gamma"]


def test_without_noise_or_clipping_it_is_the_settlement_in_all() -> None:
    """Up to the error of rounding the seed set's mean to the grid."""
    setting = Setting(opened("exact"))
    target = setting.target(None)
    weight = setting.session.file.seed_weight
    seeds = target.seed_total, target.seed_size, weight
    settled = settle(setting.wins, (), OWNERS, target.embedding, *seeds)
    values, _ = setting.values(target)
    assert sum(values.values()) == pytest.approx(sum(settled.values()), abs=1e-4)


def test_the_order_in_which_points_were_bought_does_not_matter() -> None:
    setting = Setting(opened("filtered-gaussian"))
    target = setting.target(SimulatedNoise(3, "consumer"))
    values, errors = setting.values(target)
    setting.wins.reverse()
    again, errors_again = setting.values(target)
    assert again == pytest.approx(dict(values))
    assert errors_again == pytest.approx(dict(errors))


def test_an_owner_under_two_names_has_in_both_what_it_had_in_one() -> None:
    setting = Setting(opened("filtered-gaussian"))
    target = setting.target(SimulatedNoise(3, "consumer"))
    values, _ = setting.values(target)
    setting.wins = [
        replace(win, owner="gamma") if win.owner == "alpha" and win.chosen_round % 2 else win
        for win in setting.wins
        if win.owner != "gamma"
    ]
    setting.wins += [
        replace(win, owner="beta") for win in Setting(setting.session).wins if win.owner == "gamma"
    ]
    renamed, _ = setting.values(target)
    assert renamed["alpha"] + renamed["gamma"] == pytest.approx(values["alpha"])
    assert renamed["beta"] == pytest.approx(values["beta"] + values["gamma"])


@pytest.mark.parametrize("mechanism", ["gaussian", "filtered-gaussian", "race"])
def test_standard_errors_are_those_of_targets_with_other_noise(mechanism: str) -> None:
    """400 draws: a standard deviation is known to 3.5 %, and six owners' numbers are within four of these."""
    setting = Setting(opened(mechanism))
    noise, weight = SimulatedNoise(11, "consumer"), 0.1
    targets = [setting.target(noise) for _ in range(400)]
    shared = [setting.values(target)[0] for target in targets]
    settled = [
        settle(setting.wins, (), OWNERS, each.embedding, each.seed_total, each.seed_size, weight)
        for each in targets
    ]
    known = target_noise(setting.session, targets[0])
    stated = (
        setting.values(targets[0])[1],
        gain_errors(setting.wins, (), OWNERS, targets[0], known, weight),
    )
    for found, errors in zip((shared, settled), stated, strict=True):
        for owner in OWNERS:
            error = errors[owner]
            assert error is not None
            assert 0.86 < np.std([each[owner] for each in found]) / error < 1.14


def test_where_noise_has_fewer_directions_it_has_more_of_it_in_each() -> None:
    assert Noise(0.5, 3, 0.0, 2.0).error(np.array([3.0, 4.0])) == 2.5


def test_a_signal_is_what_noise_alone_hardly_ever_makes() -> None:
    """0.99 of χ² of 140 directions is below 181.84. Of 6,000 draws 60 are above, give or take 8."""

    def signal(square: float, deviation: float | None = 0.1) -> bool | None:
        return Noise(deviation, 140, square, 2.0).signal

    assert signal(1.81) is False
    assert signal(1.83) is True
    assert signal(1e-9, 0.0) is True
    assert signal(1.0, None) is None
    squares = np.random.default_rng(5).chisquare(140, size=6000) / 100
    assert 20 < sum(bool(signal(square)) for square in squares) < 100


def test_a_target_farther_out_than_any_point_is_noise() -> None:
    assert Noise(0.01, 140, 3.9, 2.0).signal is True
    assert Noise(0.01, 140, 4.1, 2.0).signal is False


def test_without_a_known_noise_no_error_is_stated() -> None:
    session = opened("mwem", steps=4, calibration="sound", eta=0.25)
    setting = Setting(session)
    target = setting.target(None)
    values, errors = setting.values(target)
    assert target_noise(session, target).signal is None
    assert set(errors.values()) == {None}
    assert math.isfinite(sum(values.values()))


def test_a_disputed_point_stands_in_the_summary_and_is_not_paid() -> None:
    setting = Setting(opened("filtered-gaussian"))
    target = setting.target(None)
    disputed = {(win.chosen_round, win.owner, win.handle) for win in setting.wins if win.owner == "alpha"}
    values, errors = setting.values(target, disputed)
    before, _ = setting.values(target)
    assert values == {**before, "alpha": 0.0}
    assert errors["alpha"] == 0.0


def test_nothing_was_bought() -> None:
    setting = Setting(opened("filtered-gaussian"))
    setting.wins = []
    values, errors = setting.values(setting.target(SimulatedNoise(1, "consumer")))
    assert set(values.values()) == set(errors.values()) == {0.0}
