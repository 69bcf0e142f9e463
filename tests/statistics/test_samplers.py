"""Every sampler of noise has its stated distribution, tail and independence.

False-positive rate. Simulated noise is seeded: its tests pass always or never. Secure noise cannot be seeded,
so its tests can fail by chance. One fails if a p-value is under `ALPHA` = 10⁻⁷. Secure samplers have
`SECURE_PVALUES` of them, and `SLOW_PVALUES` in the slow tests: a run of this file raises a false alarm with a
probability of 6·10⁻⁶, which is under 10⁻⁵ with room for the errors of the χ² and normal limits that far out.

Each kind of fault has a control, a seeded sampler that is wrong in that way only, which must fail at the same
sample size and the same `ALPHA`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pytest

from hushbid.protocol.privacy.noise import Draw, NoiseSource, SecureNoise, SimulatedNoise
from tests.statistics.goodness import Bytes, DiscreteGaussian, DiscreteLaplace, Laplace, Law, Uniform, pvalues

ALPHA: Final = 1e-7
SECURE_PVALUES: Final = 51
SLOW_PVALUES: Final = 8

BLOCK: Final = 140 * 250
"""Values of one call; a sample is of several."""

TINY: Final = DiscreteGaussian(0.4)
SMALL: Final = DiscreteGaussian(1.3)
MEDIUM: Final = DiscreteGaussian(300.7)
HUGE: Final = DiscreteGaussian(1.1 * 2.0**26)
NARROW: Final = DiscreteLaplace(0.4)
WIDE: Final = DiscreteLaplace(1.1 * 2.0**26)

LAWS: Final[dict[str, tuple[Law, int, tuple[float, ...]]]] = {
    # The law, how many blocks, and where the tail is counted, in standard deviations.
    "discrete Gaussian, tiny": (TINY, 1, (3.0, 4.0)),
    "discrete Gaussian, small": (SMALL, 2, (3.0, 4.0)),
    "discrete Gaussian, medium": (MEDIUM, 2, (3.0, 4.0)),
    # 140,000 values: 20 are expected beyond 3.8σ, so that it shows if there is none.
    "discrete Gaussian, huge": (HUGE, 4, (3.0, 3.8)),
    # 280,000 values: 18 are expected beyond 4σ.
    "discrete Gaussian, huge, farther out": (HUGE, 8, (3.0, 4.0)),
    "discrete Laplace, tiny": (NARROW, 2, (3.0, 4.0)),
    "discrete Laplace, huge": (WIDE, 4, (3.0, 4.0)),
    "uniform": (Uniform(), 2, (1.73,)),  # the support ends at √3
    "bytes": (Bytes(), 2, (1.72,)),
    "laplace": (Laplace(2.5), 4, (3.0, 4.0)),
}
SLOW: Final = ["discrete Gaussian, huge, farther out"]
"""Laws whose secure samples take seconds; the same law, up to 3.8σ, does not."""
SECURE: Final = [name for name in LAWS if name != "laplace" and name not in SLOW]


def sample(source: NoiseSource, law: Law, blocks: int) -> npt.NDArray[Any]:
    match law:
        case Bytes():
            return np.frombuffer(b"".join(source.random_bytes(BLOCK) for _ in range(blocks)), dtype=np.uint8)
        case DiscreteGaussian(sigma):
            request = Draw("discrete-gaussian", sigma, BLOCK)
        case DiscreteLaplace(scale):
            request = Draw("discrete-laplace", scale, BLOCK)
        case Laplace(scale):
            request = Draw("laplace", scale, BLOCK)
        case _:
            request = Draw("uniform", 1.0, BLOCK)
    return np.concatenate([source.draw(request) for _ in range(blocks)])


def checked(source: NoiseSource, name: str) -> dict[str, float]:
    law, blocks, tails = LAWS[name]
    return pvalues(sample(source, law, blocks), law, tails=tails)


def failures(found: dict[str, float]) -> dict[str, float]:
    return {check: value for check, value in found.items() if value < ALPHA}


@cache
def secure(name: str) -> dict[str, float]:
    return checked(SecureNoise(), name)


@pytest.mark.parametrize("name", [*SECURE, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)])
def test_secure_noise_has_its_distribution_tail_and_independence(name: str) -> None:
    assert failures(secure(name)) == {}


def test_the_false_positive_rate_is_that_of_as_many_pvalues_as_are_stated() -> None:
    assert sum(len(secure(name)) for name in SECURE) == SECURE_PVALUES
    assert len(secure("discrete Gaussian, huge")) == SLOW_PVALUES
    assert (SECURE_PVALUES + SLOW_PVALUES) * ALPHA < 1e-5


@pytest.mark.parametrize("name", LAWS)
def test_simulated_noise_has_its_distribution_tail_and_independence(name: str) -> None:
    assert failures(checked(SimulatedNoise(1, "curator"), name)) == {}


# Controls. Each is wrong in the way that its name says, and the check that is named must see it.

Control = Callable[[Law, int, np.random.Generator], npt.NDArray[Any]]
"""Of a law: so many values, from a seeded generator."""


def normal(law: Law, size: int, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    sigma = law.sigma if isinstance(law, DiscreteGaussian) else law.deviation
    return sigma * rng.standard_normal(size)


def uniform(_law: Law, size: int, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    return rng.random(size)


def octets(_law: Law, size: int, rng: np.random.Generator) -> npt.NDArray[np.uint8]:
    return rng.integers(0, 256, size).astype(np.uint8)


def laplace(law: Law, size: int, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    return rng.laplace(0.0, law.deviation / np.sqrt(2), size)


def rounded(sampler: Control) -> Control:
    """Rounded to integers; for a wide normal law that equals its discrete one."""
    return lambda law, size, rng: np.rint(sampler(law, size, rng)).astype(np.int64)


def scaled(sampler: Control, factor: float) -> Control:
    return lambda law, size, rng: factor * sampler(law, size, rng)


def cut_off(sampler: Control, deviations: float) -> Control:
    """Values farther out are drawn again."""

    def control(law: Law, size: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        drawn = sampler(law, 2 * size, rng)
        near = np.abs(drawn - law.centre) <= deviations * law.deviation
        return drawn[near][:size]

    return control


def each_twice(sampler: Control, length: int) -> Control:
    """Every vector of that length is returned twice in a row."""
    return lambda law, size, rng: np.repeat(
        sampler(law, size // 2, rng).reshape(-1, length), 2, axis=0
    ).ravel()


def one_again(sampler: Control) -> Control:
    """A single vector of 140 is returned a second time, much later."""

    def control(law: Law, size: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        drawn = sampler(law, size, rng)
        drawn[100 * 140 : 101 * 140] = drawn[:140]
        return drawn

    return control


def through(sampler: Control, dtype: type[np.floating[Any]]) -> Control:
    """Computed in that type, which has fewer bits than the sample's."""
    return lambda law, size, rng: (drawn := sampler(law, size, rng)).astype(dtype).astype(drawn.dtype)


CONTROLS: Final[list[tuple[str, str, str, Control]]] = [
    # What is wrong, the law, the check, the sampler.
    ("2 % wider", "discrete Gaussian, small", "spread", rounded(scaled(normal, 1.02))),
    ("2 % wider", "discrete Gaussian, medium", "spread", rounded(scaled(normal, 1.02))),
    ("2 % wider", "discrete Gaussian, huge", "spread", rounded(scaled(normal, 1.02))),
    ("2.5 % wider", "discrete Gaussian, huge", "distribution", rounded(scaled(normal, 1.025))),
    ("2 % wider", "discrete Gaussian, huge, farther out", "distribution", rounded(scaled(normal, 1.02))),
    ("2 % wider", "laplace", "spread", scaled(laplace, 1.02)),
    ("2 % wider", "discrete Laplace, huge", "spread", rounded(scaled(laplace, 1.02))),
    ("2 % narrower", "discrete Gaussian, medium", "spread", rounded(scaled(normal, 0.98))),
    ("2 % narrower", "uniform", "distribution", scaled(uniform, 0.98)),
    ("rounded, not discrete", "discrete Gaussian, tiny", "distribution", rounded(normal)),
    ("rounded, not discrete", "discrete Gaussian, small", "distribution", rounded(normal)),
    ("rounded, not discrete", "discrete Laplace, tiny", "distribution", rounded(laplace)),
    ("Gaussian instead", "discrete Laplace, tiny", "distribution", rounded(normal)),
    ("Gaussian instead", "discrete Laplace, huge", "distribution", rounded(normal)),
    ("Laplace instead", "discrete Gaussian, small", "distribution", rounded(laplace)),
    ("Laplace instead", "discrete Gaussian, medium", "tail 4", rounded(laplace)),
    ("Laplace instead", "discrete Gaussian, huge", "tail 3", rounded(laplace)),
    ("Gaussian instead", "laplace", "distribution", normal),
    ("cut off at 3σ", "discrete Gaussian, small", "tail 3", cut_off(rounded(normal), 3.0)),
    ("cut off at 3σ", "discrete Gaussian, medium", "tail 3", cut_off(rounded(normal), 3.0)),
    ("cut off at 3.8σ", "discrete Gaussian, huge", "tail 3.8", cut_off(rounded(normal), 3.8)),
    ("cut off at 4σ", "discrete Gaussian, huge, farther out", "tail 4", cut_off(rounded(normal), 4.0)),
    ("cut off at 4σ", "laplace", "tail 4", cut_off(laplace, 4.0)),
    ("cut off at 4σ", "discrete Laplace, huge", "tail 4", cut_off(rounded(laplace), 4.0)),
    ("cut off at 1.73σ", "uniform", "tail 1.73", cut_off(uniform, 1.73)),
    ("cut off at 1.72σ", "bytes", "tail 1.72", cut_off(octets, 1.72)),
    ("each value twice", "discrete Gaussian, small", "lag 1", each_twice(rounded(normal), 1)),
    ("each value twice", "uniform", "lag 1", each_twice(uniform, 1)),
    ("each value twice", "bytes", "lag 1", each_twice(octets, 1)),
    ("each vector twice", "discrete Gaussian, medium", "lag 140", each_twice(rounded(normal), 140)),
    ("each vector twice", "laplace", "lag 140", each_twice(laplace, 140)),
    ("one vector again", "discrete Gaussian, huge", "repeats", one_again(rounded(normal))),
    ("one vector again", "discrete Laplace, huge", "repeats", one_again(rounded(laplace))),
    ("one vector again", "uniform", "repeats", one_again(uniform)),
    ("one vector again", "bytes", "repeats", one_again(octets)),
    ("float32", "discrete Gaussian, huge", "low bits", through(rounded(normal), np.float32)),
    ("float32", "discrete Laplace, huge", "low bits", through(rounded(laplace), np.float32)),
    ("float32", "uniform", "low bits", through(uniform, np.float32)),
]


@pytest.mark.parametrize(
    ("name", "check", "control"),
    [pytest.param(*control, id=f"{fault}-{control[0]}-{control[1]}") for fault, *control in CONTROLS],
)
def test_a_sampler_that_is_wrong_is_found_out(name: str, check: str, control: Control) -> None:
    law, blocks, tails = LAWS[name]
    drawn = control(law, blocks * BLOCK, np.random.default_rng(1))
    assert len(drawn) == blocks * BLOCK
    assert check in failures(pvalues(drawn, law, tails=tails))


def test_every_check_has_a_control() -> None:
    checks = {check for name in LAWS for check in checked(SimulatedNoise(2, "curator"), name)}
    assert checks - {check for _, _, check, _ in CONTROLS} == set()
