"""Jitter: each point's own, public, nearly normal; and its weight."""

from __future__ import annotations

import hashlib
import math

import numpy as np
import pytest

from hushbid.protocol.errors import ConfigError
from hushbid.protocol.privacy.noise import SimulatedNoise
from hushbid.protocol.privacy.releases import Setting, release_mechanism
from hushbid.protocol.privacy.releases.filtered_gaussian import ClippedStream
from hushbid.protocol.privacy.releases.prior import Prior
from hushbid.protocol.session.session import open_session
from hushbid.protocol.space.grid import FEATURE_UNIT
from hushbid.protocol.space.jitter import JITTER_DEVIATION, Jitter, jitter_weight, scores_of
from tests.simulation.harness import names, session_file

SESSION = bytes(range(16))


def rows(count: int, dimension: int = 8, seed: int = 0) -> np.ndarray[tuple[int, int], np.dtype[np.int16]]:
    return np.random.default_rng(seed).integers(-(2**14), 2**14, (count, dimension)).astype(np.int16)


def test_it_is_the_sum_of_twelve_bytes_of_a_digest() -> None:
    features = rows(5)
    expected = []
    for row in features.tolist():
        said = (
            b"hushbid jitter 1\0"
            + SESSION
            + b"".join(value.to_bytes(2, "little", signed=True) for value in row)
        )
        expected.append(16 * (sum(hashlib.sha256(said).digest()[:12]) - 1530))
    assert Jitter(SESSION).of(features).tolist() == expected
    assert Jitter(SESSION).of(features[::-1]).tolist() == expected[::-1]
    assert Jitter(SESSION).of(np.asfortranarray(features)).tolist() == expected
    assert Jitter(SESSION).of(features[:0]).tolist() == []


def test_equal_points_have_the_same_and_others_another_in_every_session() -> None:
    features = rows(3)
    features[2] = features[0]
    here, there = Jitter(SESSION).of(features), Jitter(SESSION[::-1]).of(features)
    assert here[0] == here[2] != here[1]
    assert (here != there).all()


def test_it_has_the_deviation_that_it_is_said_to_have() -> None:
    drawn = Jitter(SESSION).of(rows(40_000, 2)) * FEATURE_UNIT
    assert drawn.std() == pytest.approx(JITTER_DEVIATION, rel=0.02)
    assert abs(drawn.mean()) < 5 * JITTER_DEVIATION / math.sqrt(len(drawn))
    share = float((np.abs(drawn) > 2 * JITTER_DEVIATION).mean())
    assert share == pytest.approx(0.0455, abs=0.006), "as of a normal number"


@pytest.mark.parametrize(("deviation", "spread"), [(0.0, 0.0), (0.01, 50 * 0.01**2), (0.3, 2 * 0.3)])
def test_it_spreads_scores_as_noise_is_large(deviation: float, spread: float) -> None:
    assert jitter_weight(50.0, deviation) * JITTER_DEVIATION == pytest.approx(spread)


def test_scores_are_those_of_whole_numbers() -> None:
    features, jitter = rows(20), Jitter(SESSION)
    weights = np.array([3, -5, 0, 7, 2**20, -(2**22), 1, 1, 12345], dtype=np.int32)
    expected = [
        sum(a * b for a, b in zip([*row, own], weights.tolist(), strict=True))
        for row, own in zip(features.tolist(), jitter.of(features).tolist(), strict=True)
    ]
    assert scores_of(features, weights, jitter).tolist() == expected
    weights[-1] = 0
    assert scores_of(features, weights, jitter).tolist() == scores_of(features, weights[:-1], None).tolist()


# -- what noise leaves, by which jitter is weighed -----------------------------------------------------


@pytest.mark.parametrize(
    ("name", "more"),
    [("gaussian", {}), ("filtered-gaussian", {}), ("subspace", {"directions": 20}), ("race", {})],
)
def test_the_deviation_is_that_of_what_is_released(name: str, more: dict[str, int]) -> None:
    """For totals that follow the filter's model, a release's error has the stated deviation."""
    dimension, rounds, batch = 64, 30, 4
    generator = np.random.default_rng(1)
    unit = round(2**15 / math.sqrt(dimension // 4)) if name == "race" else 1
    seeds = np.rint(generator.normal(size=(80, dimension)) * 2**15 / math.sqrt(dimension)).astype(np.int16)
    prior = Prior.of_features(seeds, 20)
    offset = seeds.sum(axis=0, dtype=np.int64)
    setting = Setting(
        dimension=dimension, releases=rounds, norm_bound=1.0, delta=1e-5, starts_public=True, batch=batch,
        rows=dimension // 4 if name == "race" else 0,
    )  # fmt: skip
    errors, told = [], 0.0
    for seed in range(40):
        mechanism = release_mechanism(name, {"epsilon": 1.0, "neighbours": "add-remove-one", **more}, setting)
        made = mechanism.stream(offset, prior)
        source, width = SimulatedNoise(seed, "curator"), mechanism.width
        total, walk = np.zeros(width, dtype=np.int64), np.random.default_rng(seed)
        scale = 0.0 if name in ("gaussian", "race") else math.sqrt(500 * batch / width) * 2**15
        for index in range(rounds):
            noise = tuple(map(source.draw, mechanism.draws(index)))
            count = len(seeds) + batch * index
            clean = release_mechanism("exact", {}, setting).stream(offset, prior)
            released = made.release(index, total, count, noise)
            if index == 0:
                assert made.deviation == 0.0, "public points alone"
            if index == rounds - 1:
                told = made.deviation
                if name == "gaussian":
                    without = clean.release(index, total, count, ())
                    errors.append((released - without) * count)
                elif isinstance(made, ClippedStream):
                    moved = (
                        made._in_features(np.asarray(total * FEATURE_UNIT, np.float64))
                        * prior.spread
                        * FEATURE_UNIT
                    )
                    base = (prior.centre * batch * index + offset) * FEATURE_UNIT
                    errors.append(released * count - base - moved)
            total = total + np.rint(walk.normal(size=width) * scale).astype(np.int64) * unit
    assert told > 0.0
    if errors:
        assert np.std(np.stack(errors)) == pytest.approx(told, rel=0.05)


# -- sessions -------------------------------------------------------------------------------------------


def test_it_is_there_by_default_where_bids_bring_their_points() -> None:
    file = session_file(owners=names(2), points=4, rule="ask-all").model_dump(mode="json", exclude_none=True)
    del file["session"]["jitter"]
    opened = open_session(type(session_file(owners=names(2), points=4)).model_validate(file, strict=False))
    assert opened.file.jitter == 50.0
    many = file | {"features": file["features"] | {"columns": 9}}
    assert type(opened.file).model_validate(many, strict=False).jitter == 25.0
    assert opened.weight_coordinates == opened.space.dimension + 1
    without = open_session(session_file(owners=names(2), points=4, jitter=0.0))
    assert without.jitter is None
    assert without.weight_coordinates == without.space.dimension


@pytest.mark.parametrize("rule", ["winner-only", "published"])
def test_rules_that_ask_refuse_it(rule: str) -> None:
    with pytest.raises(ConfigError, match=r"session\.jitter is 3, and the rule .* asks for points"):
        open_session(session_file(owners=names(2), points=4, rule=rule, jitter=3.0))
