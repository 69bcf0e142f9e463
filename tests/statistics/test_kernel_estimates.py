"""φ(x)·φ(y) estimates the RBF kernel without bias, and with the variance of independent Fourier features.

A coordinate of `cosine`, or a pair of `paired`, gives one estimate a frequency: cos(w·(x - y)), and for
`cosine` the cosine of an independent uniform angle more. Of these every moment is known, as w·(x - y) has the
law N(0, 2γ‖x - y‖²):

- ``mean``: of all estimates of many seeds, against k = exp(-γ‖x - y‖²);
- ``square``: of their squares, against (1 + k⁴)/2, and ½ more for `cosine`;
- ``seeds``: Σ over seeds of (mean of a seed - k)²/variance, which is χ² if frequencies are independent.

Everything is seeded: these tests pass always or never. With other seeds one of the `CHECKS` p-values would be
below `ALPHA` with a probability under 10⁻³. Controls with another γ, and with every frequency drawn twice,
must be below it at the same sample size.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from hushbid.protocol.space.features import FEATURE_SPACES, FeatureSpace, feature_space
from hushbid.protocol.space.features.fourier import FourierSpace
from hushbid.protocol.space.grid import features_to_float

Points = npt.NDArray[np.float64]

ALPHA: Final = 1e-7
CHECKS: Final = 32 * 6 * 3
"""32 settings, with up to 6 pairs of points and 3 p-values each."""
DIMENSION: Final = 200
SEEDS: Final = 100
MANY: Final = 5000
"""Estimates of a kernel near 1 whose mean is about normal."""
KERNELS: Final = (0.999, 0.9, 0.5, 0.1, 1e-4)
"""Of the pairs of points, where such a distance is within the bounds; and there is the longest one."""

MAPS = sorted(name for name, kind in FEATURE_SPACES.items() if issubclass(kind, FourierSpace))


class Setting(NamedTuple):
    """A space of maps, and how many of its seeds are tried: W of many columns takes long to draw.

    A map looks at the number of bits that number its columns: 513 have as many as 784, and 32,769 as 65,536.
    """

    columns: int
    gamma: float
    bounds: str
    seeds: int = SEEDS


SETTINGS = [
    Setting(1, 1e-3, "one for all"),
    Setting(1, 1.0, "one for each"),
    Setting(1, 1e4, "negative"),
    Setting(2, 1e-3, "one for each"),
    Setting(2, 1.0, "negative"),
    Setting(2, 1e4, "one for all"),
    Setting(30, 1e-3, "negative"),
    Setting(30, 1.0, "one for all"),
    Setting(30, 1e4, "one for each"),
    Setting(513, 1e-3, "one for all", seeds=50),
    Setting(513, 0.05, "one for each", seeds=50),
    Setting(513, 1e3, "negative", seeds=50),
    Setting(32_769, 1.0, "one for each", seeds=2),
    Setting(65_536, 1e-5, "negative", seeds=2),
    Setting(65_536, 1e-3, "one for all", seeds=2),
    Setting(65_536, 1.0, "one for each", seeds=2),
]


def is_slow(name: str, setting: Setting) -> bool:
    """All maps draw W by the same code, and `paired` half as much of it."""
    return setting.columns > 513 and (setting.columns, name) != (32_769, "paired")


def space_of(name: str, setting: Setting) -> FeatureSpace:
    columns = setting.columns
    places = np.arange(columns)
    lower, upper = {
        "one for all": (0.0, 1.0),
        "one for each": (10.0 * places - 3.0, 10.0 * places + 1e-3 * (1.0 + places % 7)),
        "negative": (-255.0 - places % 3, -1.0 / (1.0 + places)),
    }[setting.bounds]
    parameters: dict[str, Any] = {"lower": lower, "upper": upper, "columns": columns}
    return feature_space(name, dimension=DIMENSION, gamma=setting.gamma, **parameters)


def pairs(space: FeatureSpace) -> tuple[Points, Points]:
    """Scaled points x and y, at the distances of `KERNELS` where possible, and as far as possible."""
    generator = np.random.default_rng(1)
    x, y = [np.zeros(space.columns)], [np.ones(space.columns)]
    for kernel in KERNELS:
        distance = math.sqrt(-math.log(kernel) / space.gamma)
        # About the middle, in a random direction that is no longer than the box is wide.
        direction = generator.uniform(-1.0, 1.0, space.columns)
        half = 0.5 * distance * direction / np.linalg.norm(direction)
        if np.abs(half).max() <= 0.4:
            middle = generator.uniform(0.45, 0.55, space.columns)
            x.append(middle - half)
            y.append(middle + half)
    return np.array(x), np.array(y)


@lru_cache
def estimates(name: str, setting: Setting) -> tuple[Points, Points]:
    """One for each pair, seed and frequency: shape (pairs, seeds, frequencies); and ‖x - y‖² of each pair."""
    space = space_of(name, setting)
    scaled = pairs(space)
    x, y = (space.lower + side * space.range for side in scaled)
    found = []
    for seed in range(setting.seeds):
        phi = space.map(seed)
        products = features_to_float(phi.hash(x)) * features_to_float(phi.hash(y))
        if name == "paired":
            products = products.reshape(len(x), 2, -1).sum(axis=1)
        found.append(products * products.shape[1])
    values = np.stack(found, axis=1)
    seen = [space.scale(side) for side in (x, y)]  # as the map is handed them
    return values, np.square(seen[0] - seen[1]).sum(axis=1)


def pvalues(
    name: str, setting: Setting, *, gamma: float | None = None, twice: bool = False
) -> dict[str, float]:
    values, squares = estimates(name, setting)
    if twice:
        half = values[..., : values.shape[2] // 2]
        values = np.concatenate([half, half], axis=2)
    found = {}
    for pair, (sample, square) in enumerate(zip(values, squares, strict=True)):
        k = math.exp(-(gamma or setting.gamma) * float(square))
        # Of c = cos(w·(x - y)).
        second, fourth = (1.0 + k**4) / 2.0, 3.0 / 8.0 + k**4 / 2.0 + k**16 / 8.0
        if name == "cosine":  # c + u: E u² = 1/2, E u⁴ = 3/8
            second, fourth = second + 0.5, fourth + 6.0 * second * 0.5 + 3.0 / 8.0
        variance = second - k**2
        rounding = 2.0**-15  # of a product, at most: what is left where all of a law is at its mean
        count, frequencies = sample.size, sample.shape[1]
        deviation = math.sqrt(variance / count) + rounding
        if count < MANY and k > 0.99:
            continue  # so skewed a law is not normal yet
        found[f"{pair} mean"] = _two_sided((sample.mean() - k) / deviation)
        spread = math.sqrt(max(fourth - second**2, 0.0) / count) + 2.0 * rounding
        found[f"{pair} square"] = _two_sided((np.square(sample).mean() - second) / spread)
        if k < 0.99:  # else a seed's mean is far from normal
            chi = float(np.square(sample.mean(axis=1) - k).sum() * frequencies / variance)
            law = stats.chi2(len(sample))
            found[f"{pair} seeds"] = float(2.0 * min(law.cdf(chi), law.sf(chi)))
    return found


def _two_sided(z: float) -> float:
    return float(2.0 * stats.norm.sf(abs(z)))


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        pytest.param(name, setting, id=f"{setting}-{name}", marks=[pytest.mark.slow] * is_slow(name, setting))
        for setting in SETTINGS
        for name in MAPS
    ],
)
def test_estimates_are_unbiased_and_vary_as_independent_ones_do(name: str, setting: Setting) -> None:
    found = pvalues(name, setting)
    assert len(found) >= 2
    assert min(found.values()) > ALPHA, found


def test_there_are_no_more_checks_than_are_said() -> None:
    assert len(SETTINGS) * len(MAPS) * (len(KERNELS) + 1) * 3 <= CHECKS
    assert CHECKS * ALPHA < 1e-3


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("setting", [SETTINGS[1], SETTINGS[5], SETTINGS[10]], ids=str)
def test_another_kernel_is_told_apart(name: str, setting: Setting) -> None:
    found = pvalues(name, setting, gamma=1.25 * setting.gamma)
    assert min(value for check, value in found.items() if "mean" in check) < ALPHA


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("setting", [SETTINGS[4], SETTINGS[7]], ids=str)
def test_frequencies_that_are_drawn_twice_are_told_apart(name: str, setting: Setting) -> None:
    found = pvalues(name, setting, twice=True)
    assert min(value for check, value in found.items() if "seeds" in check) < ALPHA
