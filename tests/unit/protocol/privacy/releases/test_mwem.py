"""MWEM in closed form, against Algorithm 2 with its distribution P written out over the whole grid."""

from __future__ import annotations

import itertools
import math
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest

from hushbid.protocol.errors import ConfigError
from hushbid.protocol.privacy.noise import SimulatedNoise
from hushbid.protocol.privacy.releases import Neighbours, ReleaseMechanism, Setting, release_mechanism
from hushbid.protocol.privacy.releases.base import largest_coordinate
from hushbid.protocol.privacy.releases.mwem import tilted_mean
from hushbid.protocol.space.grid import FEATURE_UNIT

Array: TypeAlias = npt.NDArray[np.float64]


def mwem(
    dimension: int, releases: int = 1, *, starts_public: bool = False, **parameters: Any
) -> ReleaseMechanism:
    table: dict[str, Any] = {
        "neighbours": "substitute-one",
        "calibration": "published",
        "step_epsilon": 0.2,
        "steps": 40,
        "eta": 0.5,
    }
    if "epsilon" in parameters:
        del table["step_epsilon"]
    setting = Setting(
        dimension=dimension, releases=releases, norm_bound=1.0, delta=1e-5, starts_public=starts_public
    )
    return release_mechanism("mwem", table | parameters, setting)


class WrittenOut:
    """Algorithm 2 with P as one number for each of |S|^d points, and weights as printed or corrected."""

    def __init__(self, dimension: int, eta: float) -> None:
        values = np.arange(-1.0, 1.0 + eta / 2, eta)
        self.points = np.array(list(itertools.product(values, repeat=dimension)))
        self.p = np.full(len(self.points), 1.0 / len(self.points))

    def release(
        self, sums: Array, q: int, rate: float, scale: float, noise: tuple[Array, ...]
    ) -> tuple[Array, list[int]]:
        average = np.zeros_like(self.p)
        chosen: list[int] = []
        for uniform, laplace in zip(*noise, strict=True):
            fitted = q * self.p @ self.points
            weights = np.exp(rate * np.abs(fitted - sums))
            i = int(np.searchsorted(np.cumsum(weights / weights.sum()), uniform, side="right"))
            answer = sums[i] + scale * laplace
            self.p = self.p * np.exp(self.points[:, i] * (answer - fitted[i]) / (2 * q))
            self.p /= self.p.sum()
            average += self.p / len(noise[0])
            chosen.append(i)
        return average @ self.points, chosen


@pytest.mark.parametrize("dimension", [4, 5])
@pytest.mark.parametrize(
    ("calibration", "rate", "scale"), [("published", 0.2, 5.0), ("sound", 0.2 / 2 / 4, 2.0 * 2 / 0.2)]
)
def test_every_release_is_that_of_algorithm_2_written_out(
    dimension: int, calibration: str, rate: float, scale: float
) -> None:
    """Three releases of growing sums, warm start included; noise small and large relative to the sums."""
    mechanism = mwem(dimension, 3, calibration=calibration)
    stream = mechanism.stream()
    explicit = WrittenOut(dimension, eta=0.5)
    unit = largest_coordinate(dimension)
    source = SimulatedNoise(5, "curator")
    totals = np.array([40, -25, 3, 11, 0])[:dimension] * (unit // 2)
    everything: set[int] = set()
    for index, q in enumerate((60, 61, 90)):
        noise = tuple(source.draw(draw) for draw in mechanism.draws(index))
        released = stream.release(index, totals, q, noise)
        expected, chosen = explicit.release(totals / unit, q, rate, scale, noise)
        assert released == pytest.approx(expected * unit * FEATURE_UNIT, abs=1e-12)
        everything.update(chosen)
        totals = totals + unit // 3
    assert everything == set(range(dimension)), "the case must exercise the update of every coordinate"


@pytest.mark.parametrize("points", [3, 5, 41, 2001])
@pytest.mark.parametrize("tilt", [0.0, 1e-12, -1e-3, 0.04999, 0.0501, 1.0, -30.0, 5e3, -1e8])
def test_the_tilted_mean_is_that_of_the_sum(points: int, tilt: float) -> None:
    eta = 2.0 / (points - 1)
    grid = np.linspace(-1.0, 1.0, points)
    exponents = tilt * grid
    weights = np.exp(exponents - exponents.max())
    expected = float(weights @ grid / weights.sum())
    assert tilted_mean(tilt, 1.0 + eta / 2, eta / 2) == pytest.approx(expected, abs=2e-14, rel=1e-12)


def test_the_state_is_one_number_a_coordinate_whatever_eta() -> None:
    """DESIGN §1: O(1) per step where the paper has O(d/η).

    A grid of 2·10⁹ points costs the same as one of 5.
    """
    total = np.arange(140, dtype=np.int64) * 10_000
    released = []
    for eta in (1e-9, 1e-3):
        source = SimulatedNoise(1, "curator")
        mechanism = mwem(140, 2, eta=eta, first_steps=1, steps=1000)
        first, second = (tuple(source.draw(draw) for draw in mechanism.draws(index)) for index in (0, 1))
        stream = mechanism.stream()
        released.append(stream.release(0, total, 50, first))
        assert np.isfinite(stream.release(1, total, 50, second)).all()
    assert np.count_nonzero(released[0]) == 1
    assert released[0] == pytest.approx(released[1], abs=1e-3 * largest_coordinate(140) * FEATURE_UNIT)


def test_without_noise_the_release_converges_to_the_mean_embedding() -> None:
    """A control: the same steps with the sums' sign reversed end far away."""
    mechanism = mwem(8, step_epsilon=50.0, steps=20_000, eta=0.01)
    # Uniforms select by weight, so that the worst coordinate is measured; no Laplace noise.
    noise = (SimulatedNoise(2, "curator").draw(mechanism.draws(0)[0]), np.zeros(20_000))
    unit = largest_coordinate(8)
    total = np.array([30, -50, 10, 0, 70, -5, 1, 20]) * unit
    released = mechanism.stream().release(0, total, 100, noise)
    mean = total * FEATURE_UNIT / 100
    assert np.abs(released - mean).max() < 0.01
    assert np.abs(released + mean).max() > 0.1


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 1.0, 1e6])
def test_weights_neither_overflow_nor_vanish(epsilon: float) -> None:
    """exp(ε·ψ) of sums up to q = 10⁶ would overflow; a noise of 10⁹ drives tilts to their ends."""
    mechanism = mwem(6, step_epsilon=epsilon, steps=300)
    source = SimulatedNoise(3, "curator")
    uniform, laplace = (source.draw(draw) for draw in mechanism.draws(0))
    total = np.array([1, -1, 0, 1, -1, 0]) * largest_coordinate(6) * 1_000_000
    stream = mechanism.stream()
    for scaled in (laplace, 1e9 * laplace):
        released = stream.release(0, total, 1_000_000, (uniform, scaled))
        assert np.isfinite(released).all()
        assert np.abs(released).max() <= largest_coordinate(6) * FEATURE_UNIT


def test_the_warm_start_stays_near_what_the_first_release_fitted() -> None:
    """Five steps after a fitted release are close to the mean; five steps from nothing are not."""
    unit = largest_coordinate(20)
    total = np.linspace(-60, 60, 20).astype(np.int64) * unit
    warm = mwem(20, 2, step_epsilon=5.0, steps=5, first_steps=4000)
    cold = mwem(20, 2, step_epsilon=5.0, steps=5).stream()
    source, stream = SimulatedNoise(4, "curator"), warm.stream()
    stream.release(0, total, 100, tuple(source.draw(draw) for draw in warm.draws(0)))
    noise = tuple(source.draw(draw) for draw in warm.draws(1))
    mean = total * FEATURE_UNIT / 100
    assert np.abs(stream.release(1, total, 100, noise) - mean).max() < 0.02
    assert np.abs(cold.release(0, total, 100, noise) - mean).max() > 0.1


def test_the_first_release_has_its_own_steps() -> None:
    mechanism = mwem(4, 3, steps=5, first_epsilon=0.05, first_steps=1656)
    assert [draw.size for draw in mechanism.draws(0)] == [1656, 1656]
    assert [draw.size for draw in mechanism.draws(1)] == [5, 5]


def test_a_first_release_of_the_seed_set_costs_the_owners_nothing_and_others_everything() -> None:
    """A summary's release 0 shows D_init alone; no such exception holds for a set of D_v's kind."""
    with_first = mwem(
        4, 101, starts_public=True, step_epsilon=1e-3, steps=5, first_epsilon=0.05, first_steps=1656
    )
    without = mwem(4, 100, step_epsilon=1e-3, steps=5)
    spent = {
        (name, neighbours): mechanism.guarantee(neighbours=neighbours, delta=1e-4).epsilon
        for name, mechanism in (("first", with_first), ("none", without))
        for neighbours in Neighbours
    }
    assert spent["first", Neighbours.ADD_REMOVE_ONE] == spent["none", Neighbours.ADD_REMOVE_ONE]
    first, none = spent["first", Neighbours.SUBSTITUTE_ONE], spent["none", Neighbours.SUBSTITUTE_ONE]
    assert first is not None
    assert none is not None
    assert first > 10 * none


def test_without_a_public_start_the_first_release_costs_owners_too() -> None:
    first = mwem(4, 2, step_epsilon=1e-3, steps=5, first_epsilon=0.05, first_steps=1656)
    assert len(first.cost(0, neighbours=Neighbours.ADD_REMOVE_ONE)) == 2
    public = mwem(4, 2, starts_public=True, step_epsilon=1e-3, steps=5, first_epsilon=0.05, first_steps=1656)
    assert public.cost(0, neighbours=Neighbours.ADD_REMOVE_ONE) == ()
    assert public.cost(1, neighbours=Neighbours.ADD_REMOVE_ONE) == first.cost(
        1, neighbours=Neighbours.ADD_REMOVE_ONE
    )


@pytest.mark.parametrize("starts_public", [True, False])
def test_an_epsilon_of_all_releases_is_shared_by_the_steps_that_show_private_points(
    starts_public: bool,
) -> None:
    """More steps in a first release that costs nothing do not change the others' share."""
    neighbours = Neighbours.ADD_REMOVE_ONE
    costs = [
        mwem(4, 5, starts_public=starts_public, calibration="sound", epsilon=1.0, steps=3, **first).cost(
            1, neighbours=neighbours
        )
        for first in ({}, {"first_steps": 500})
    ]
    assert (costs[0] == costs[1]) is starts_public


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"calibration": "published", "epsilon": 1.0}, "the published one has `step_epsilon`"),
        (
            {"calibration": "sound", "epsilon": 1.0, "step_epsilon": 0.1},
            "one of `step_epsilon` and `epsilon`",
        ),
        ({"calibration": "sound", "epsilon": 1.0, "first_epsilon": 0.1}, "leave `first_epsilon` out"),
        ({"first_epsilon": 0.1}, "'first_epsilon' or 'first_steps': there is one release only"),
        ({"eta": 0.3}, "2/eta must be a whole number"),
    ],
)
def test_keys_that_do_not_go_together_are_refused(parameters: dict[str, Any], reason: str) -> None:
    releases = 1 if parameters == {"first_epsilon": 0.1} else 5
    with pytest.raises(ConfigError) as caught:
        mwem(4, releases, **parameters)
    assert reason in caught.value.what
    assert caught.value.advice


def test_public_points_enter_the_sums_that_are_fitted_as_private_ones_do() -> None:
    total, offset = np.array([5, -3, 1, 0]) * 20_000, np.array([-2, 4, 0, 7]) * 10_000
    plain = mwem(4, steps=20)
    source = SimulatedNoise(6, "curator")
    noise = tuple(source.draw(draw) for draw in plain.draws(0))
    released = plain.stream(offset).release(0, total, 30, noise)
    assert np.array_equal(released, plain.stream().release(0, total + offset, 30, noise))
    assert not np.array_equal(released, plain.stream().release(0, total, 30, noise))


def test_a_sound_step_costs_its_epsilon_and_a_published_one_six() -> None:
    """One step at δ → 0: the sum of the pure guarantees of its two halves."""
    for calibration, factor in (("sound", 1.0), ("published", 6.0)):
        mechanism = mwem(4, calibration=calibration, step_epsilon=0.3, steps=1)
        epsilon = mechanism.guarantee(neighbours=Neighbours.SUBSTITUTE_ONE, delta=1e-13).epsilon
        assert epsilon == pytest.approx(0.3 * factor, rel=1e-3)


@pytest.mark.parametrize("calibration", ["published", "sound"])
def test_selection_and_measurement_keep_the_stated_ratio_on_substituted_points(calibration: str) -> None:
    """Exact probabilities of the first step on the worst pair of neighbours: one point from -1 to 1."""
    mechanism = mwem(4, calibration=calibration, step_epsilon=0.3, steps=1)
    q, unit = 10, largest_coordinate(4)
    grid = np.linspace(0.0, 1.0, 20_001)[:-1]
    shares = []
    for last in (-1, 1):
        total = np.array([5 * last, -5 * last, 0, 0]) + np.array([last, -last, last, -last])
        rate = 0.3 if calibration == "published" else 0.3 / 2 / 4
        weights = np.exp(rate * np.abs(total))
        shares.append(weights / weights.sum())
        released = _first_choices(mechanism, total * unit, q, grid)
        assert released == pytest.approx(shares[-1], abs=1e-3)
    worst = float(np.abs(np.log(shares[0] / shares[1])).max())
    assert worst <= (4 * 0.3 if calibration == "published" else 0.15) + 1e-12


def _first_choices(mechanism: ReleaseMechanism, total: Any, q: int, grid: Array) -> Array:
    """How often each coordinate is chosen first, over a grid of uniforms: it is the one that moves."""
    counts = np.zeros(4)
    for uniform in grid[::20]:
        released = mechanism.stream().release(0, total, q, (np.array([uniform]), np.array([1e-3 + math.pi])))
        counts[int(np.argmax(released != 0))] += 1
    return np.asarray(counts / counts.sum())
