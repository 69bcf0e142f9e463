"""Sources of noise: their answers, refusals and repetitions. Distributions: tests/statistics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from hushbid.protocol.errors import ConfigError, LocalProtocolError, ReplayDivergence
from hushbid.protocol.privacy.noise import (
    NOISE_SOURCES,
    Draw,
    NoiseSource,
    RecordedNoise,
    SecureNoise,
    SimulatedNoise,
)
from hushbid.protocol.privacy.noise.base import MAX_DISCRETE_SCALE

UNIFORM = Draw("uniform", 1.0, 5)
LAPLACE = Draw("laplace", 3.0, 5)
GAUSSIAN = Draw("discrete-gaussian", 1e6, 5)
DISCRETE_LAPLACE = Draw("discrete-laplace", 1e6, 5)

SOURCES: dict[str, Callable[[], NoiseSource]] = {
    "secure": SecureNoise,
    "simulated": lambda: SimulatedNoise(1, "curator"),
}


@pytest.fixture(params=SOURCES)
def source(request: pytest.FixtureRequest) -> NoiseSource:
    return SOURCES[request.param]()


def simulated(request: Draw, seed: int = 1, party: str = "curator") -> npt.NDArray[Any]:
    return SimulatedNoise(seed, party).draw(request)


# Requests


@pytest.mark.parametrize(
    ("distribution", "scale", "size"),
    [
        ("laplace", 0.0, 1),
        ("laplace", -1.0, 1),
        ("laplace", float("nan"), 1),
        ("laplace", float("inf"), 1),
        ("laplace", 1.0, 0),
        ("uniform", 2.0, 1),
    ],
)
def test_a_senseless_draw_is_refused(distribution: Any, scale: float, size: int) -> None:
    with pytest.raises(LocalProtocolError):
        Draw(distribution, scale, size)


@pytest.mark.parametrize("distribution", ["uniform", "laplace", "discrete-gaussian", "discrete-laplace"])
@pytest.mark.parametrize("scale", [1.0, 40.0])
def test_a_draw_knows_its_variance(distribution: Any, scale: float) -> None:
    draw = Draw(distribution, 1.0 if distribution == "uniform" else scale, 200_000)
    drawn = SimulatedNoise(1, "alice").draw(draw)
    # The standard deviation of a square is at most √5 times its mean: five standard errors are 2.5 %.
    assert np.var(drawn) == pytest.approx(draw.variance, rel=0.025)


def test_noise_far_narrower_than_the_grid_has_no_variance() -> None:
    assert Draw("discrete-laplace", 1e-5, 1).variance == 0.0


@pytest.mark.parametrize("distribution", ["discrete-gaussian", "discrete-laplace"])
def test_discrete_noise_that_could_leave_64_bits_is_refused_and_says_what_to_do(distribution: Any) -> None:
    Draw(distribution, MAX_DISCRETE_SCALE, 1)
    with pytest.raises(ConfigError, match=r"64 bits.*Lower the noise"):
        Draw(distribution, np.nextafter(MAX_DISCRETE_SCALE, np.inf), 1)


# Every source that draws


@pytest.mark.parametrize(
    "request_", [UNIFORM, GAUSSIAN, DISCRETE_LAPLACE], ids=lambda draw: draw.distribution
)
def test_a_draw_has_the_dtype_and_shape_of_its_distribution(source: NoiseSource, request_: Draw) -> None:
    source.check(request_)
    noise = source.draw(request_)
    assert noise.shape == (5,)
    assert noise.dtype == (np.float64 if request_ is UNIFORM else np.int64)


def test_no_two_draws_of_a_source_are_the_same(source: NoiseSource) -> None:
    wide = Draw("discrete-gaussian", 2.0**50, 5)
    drawn = np.concatenate([source.draw(request) for request in (wide, wide, UNIFORM, UNIFORM)])
    assert len(np.unique(drawn)) == len(drawn)
    assert source.random_bytes(32) != source.random_bytes(32)


def test_the_largest_gaussian_stays_far_from_the_ends_of_int64(source: NoiseSource) -> None:
    noise = source.draw(Draw("discrete-gaussian", MAX_DISCRETE_SCALE, 1000))
    assert 2.0**57 < np.abs(noise).max() < 2.0**60


def test_a_gaussian_may_be_much_narrower_than_the_grid(source: NoiseSource) -> None:
    assert not source.draw(Draw("discrete-gaussian", 1e-3, 100)).any()


@pytest.mark.parametrize("count", [1, 32, 1000])
def test_bytes_for_keys_are_as_many_as_asked_for(source: NoiseSource, count: int) -> None:
    assert len(source.random_bytes(count)) == count


@pytest.mark.parametrize("count", [0, -1])
def test_no_bytes_at_all_are_refused(source: NoiseSource, count: int) -> None:
    for each in (source, RecordedNoise([], keys=[b""], protects=False)):
        with pytest.raises(LocalProtocolError, match="random bytes"):
            each.random_bytes(count)


# Simulated noise


def test_a_seed_and_a_party_make_a_stream() -> None:
    assert np.array_equal(simulated(LAPLACE), simulated(LAPLACE))
    streams = [simulated(UNIFORM, seed, party) for seed in (1, 2, 2**200) for party in ("", "a", "b", "ab")]
    bare = np.random.Generator(np.random.PCG64(1)).random(5)
    assert len({stream.tobytes() for stream in [*streams, bare]}) == len(streams) + 1


def test_a_seed_and_a_party_make_a_stream_of_keys_which_moves_no_noise() -> None:
    with_keys, without = SimulatedNoise(1, "consumer"), SimulatedNoise(1, "consumer")
    keys = [with_keys.random_bytes(32)]
    assert np.array_equal(with_keys.draw(GAUSSIAN), without.draw(GAUSSIAN))
    keys.append(with_keys.random_bytes(32))
    assert np.array_equal(with_keys.draw(LAPLACE), without.draw(LAPLACE))
    assert keys == [without.random_bytes(32) for _ in range(2)]


def test_keys_of_no_two_parties_or_seeds_are_the_same_nor_are_they_noise() -> None:
    # A name that ends as the stream of keys is told apart is another stream all the same.
    parties = [(seed, party) for seed in (1, 2) for party in ("", "\x01", "a", "a\x01")]
    keys = {SimulatedNoise(seed, party).random_bytes(40) for seed, party in parties}
    noise = {(simulated(UNIFORM, seed, party) * 2**53).astype(np.int64).tobytes() for seed, party in parties}
    assert len(keys | noise) == 2 * len(parties)


def test_the_noise_of_a_seed_stays_what_it_is() -> None:
    """Transcripts and golden files depend on it."""
    assert simulated(DISCRETE_LAPLACE).tolist() == [519, -87870, -217095, -550036, 1016803]
    assert simulated(GAUSSIAN).tolist() == [-268665, -1251077, 151206, 403063, -301182]
    assert SimulatedNoise(1, "curator").random_bytes(8).hex() == "3d52e81f3898bbbc"


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(ConfigError, match="seed"):
        SimulatedNoise(-1, "curator")


# Secure noise


def test_secure_noise_does_not_repeat() -> None:
    first, second = SecureNoise(), SecureNoise()
    for request in (UNIFORM, GAUSSIAN, DISCRETE_LAPLACE):
        assert not np.array_equal(first.draw(request), second.draw(request))
    assert first.random_bytes(16) != second.random_bytes(16)


def test_secure_uniform_noise_is_of_multiples_of_the_smallest_step_below_one() -> None:
    noise = SecureNoise().draw(Draw("uniform", 1.0, 10_000)) * 2.0**53
    assert np.array_equal(noise, np.floor(noise))
    assert 0 <= noise.min() < noise.max() < 2.0**53
    assert (noise % 2 == 1).any()


@pytest.mark.parametrize("method", ["check", "draw"])
def test_there_is_no_secure_laplace_noise_and_the_error_says_what_to_use(method: str) -> None:
    with pytest.raises(ConfigError, match=r"low bits.*discrete noise.*simulated"):
        getattr(SecureNoise(), method)(LAPLACE)


# Recorded noise


def recording(*requests: Draw) -> list[tuple[Draw, npt.NDArray[Any]]]:
    source = SimulatedNoise(1, "curator")
    return [(request, source.draw(request)) for request in requests]


@pytest.mark.parametrize("with_requests", [True, False])
def test_recorded_noise_comes_back_in_its_order_and_cannot_be_changed(with_requests: bool) -> None:
    recorded = recording(GAUSSIAN, UNIFORM, GAUSSIAN)
    source = RecordedNoise(recorded if with_requests else [noise for _, noise in recorded], protects=True)
    for request, noise in recorded:
        source.check(request)
        drawn = source.draw(request)
        assert np.array_equal(drawn, noise)
        assert drawn.dtype == noise.dtype
        assert not drawn.flags.writeable
    source.ensure_used()
    with pytest.raises(ReplayDivergence, match=r"place 3.*no more noise was recorded.*Replay with"):
        source.draw(GAUSSIAN)


@pytest.mark.parametrize(
    "other",
    [
        Draw("laplace", 1.0, 5),
        Draw("discrete-gaussian", 1.0, 5),
        Draw("discrete-laplace", 1.0, 5),
        Draw("uniform", 1.0, 6),
    ],
    ids=str,
)
def test_a_replay_that_asks_for_other_noise_has_diverged_and_gets_none(other: Draw) -> None:
    source = RecordedNoise(recording(UNIFORM), protects=False)
    with pytest.raises(ReplayDivergence, match=f"place 0 for {other}, but recorded was {UNIFORM}"):
        source.draw(other)
    assert len(source.draw(UNIFORM)) == 5  # what was recorded is still there


def test_a_replay_that_asks_at_another_scale_has_diverged() -> None:
    source = RecordedNoise(recording(LAPLACE), protects=False)
    with pytest.raises(ReplayDivergence, match="scale 4, but recorded was 5 laplace values of scale 3"):
        source.draw(Draw("laplace", 4.0, 5))


@pytest.mark.parametrize("other", [GAUSSIAN, Draw("uniform", 1.0, 6)], ids=str)
def test_of_an_array_alone_type_and_size_have_to_fit(other: Draw) -> None:
    source = RecordedNoise([noise for _, noise in recording(UNIFORM)], protects=False)
    with pytest.raises(ReplayDivergence, match=r"recorded was float64 noise of shape \(5,\)"):
        source.draw(other)


def test_an_array_that_does_not_fit_its_request_is_refused() -> None:
    source = RecordedNoise([(UNIFORM, np.zeros(4))], protects=False)
    with pytest.raises(ReplayDivergence):
        source.draw(UNIFORM)


def test_a_divergence_shows_none_of_the_noise() -> None:
    secret = 123456789
    source = RecordedNoise([np.full(5, secret)], keys=[b"secret"], protects=True)
    with pytest.raises(ReplayDivergence) as of_noise:
        source.draw(UNIFORM)
    with pytest.raises(ReplayDivergence) as of_keys:
        source.random_bytes(5)
    assert str(secret) not in str(of_noise.value)
    assert "secret" not in str(of_keys.value)


def test_recorded_bytes_come_back_in_their_order() -> None:
    source = RecordedNoise([], keys=[b"abcd", b"efghij"], protects=True)
    assert source.random_bytes(4) == b"abcd"
    with pytest.raises(ReplayDivergence, match="4 random bytes at place 1, but recorded were 6"):
        source.random_bytes(4)
    assert source.random_bytes(6) == b"efghij"
    with pytest.raises(ReplayDivergence, match="no more were recorded"):
        source.random_bytes(6)


def test_a_replay_that_leaves_noise_or_keys_has_diverged() -> None:
    source = RecordedNoise(recording(UNIFORM), keys=[b"abcd"], protects=True)
    with pytest.raises(ReplayDivergence, match="without the noise that was recorded at place 0"):
        source.ensure_used()
    source.draw(UNIFORM)
    with pytest.raises(ReplayDivergence, match="without the random bytes"):
        source.ensure_used()
    source.random_bytes(4)
    source.ensure_used()


def test_a_recording_is_read_only_as_far_as_it_is_needed() -> None:
    def endless() -> Any:
        while True:
            yield np.zeros(5)

    assert len(RecordedNoise(endless(), protects=False).draw(UNIFORM)) == 5


# What a source says of itself


def test_every_source_is_listed_by_its_name() -> None:
    assert {
        "secure": SecureNoise,
        "simulated": SimulatedNoise,
        "recorded": RecordedNoise,
    } == NOISE_SOURCES


def test_only_secure_noise_and_recordings_of_it_protect() -> None:
    assert SecureNoise().protects
    assert not SimulatedNoise(1, "curator").protects
    for protects in (True, False):
        assert RecordedNoise([], protects=protects).protects is protects
