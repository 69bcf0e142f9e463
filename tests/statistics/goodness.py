"""How well a sample fits its stated law: p-values, each for one way to be wrong.

A `Law` describes the sample. `pvalues` has one entry for each check; with a right sampler each is uniform on
[0, 1], or larger where the statistic is discrete.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy import special, stats

__all__ = ["Bytes", "DiscreteGaussian", "DiscreteLaplace", "Laplace", "Law", "Uniform", "pvalues"]

Sample = npt.NDArray[Any]
Reals = npt.NDArray[np.float64]

BINS = 64
LAG = 140
"""Length of the vectors that releases ask for: a generator that hands one out twice shows at this lag."""


class Law(Protocol):
    """A distribution that is symmetric around `centre`, and its own checks of samples."""

    @property
    def centre(self) -> float: ...

    @property
    def deviation(self) -> float:
        """Standard deviation."""
        ...

    @property
    def quantiles(self) -> Reals:
        """Increasing edges of bins that are all likely; the outer bins are unbounded."""
        ...

    def at_most(self, x: Reals) -> Reals:
        """P(X ≤ x), elementwise."""
        ...

    def beyond(self, deviations: float) -> float:
        """P(|X - centre| > deviations · deviation)."""
        ...

    def particular(self, sample: Sample) -> dict[str, float]:
        """p-values of this law's own checks."""
        ...


def pvalues(sample: Sample, law: Law, *, tails: tuple[float, ...] = (3.0, 4.0)) -> dict[str, float]:
    """The p-value of every check of `sample` against `law`.

    - ``distribution``: χ² of counts in bins of about equal probability;
    - ``tail N``: the count beyond N standard deviations, exactly binomial, two-sided;
    - ``lag N``: correlation of values N places apart, normal in the limit;
    - and what is particular to the law.
    """
    scaled = (sample - law.centre) / law.deviation
    found = {"distribution": distribution(sample, law)}
    for deviations in tails:
        count = int(np.count_nonzero(np.abs(scaled) > deviations))
        found[f"tail {deviations:g}"] = float(
            stats.binomtest(count, len(sample), law.beyond(deviations)).pvalue
        )
    for lag in (1, LAG):
        products = scaled[lag:] * scaled[:-lag]
        found[f"lag {lag}"] = two_sided(products.sum() / np.sqrt(len(products)))
    return found | law.particular(sample)


def distribution(sample: Sample, law: Law) -> float:
    """χ² of the counts between `law.quantiles`."""
    below = np.concatenate([[0.0], law.at_most(law.quantiles), [1.0]])
    places = np.searchsorted(law.quantiles, sample, side="left")
    counts = np.bincount(places, minlength=len(law.quantiles) + 1)
    return float(stats.chisquare(counts, np.diff(below) * len(sample)).pvalue)


def two_sided(z: float) -> float:
    """p-value of a standard normal statistic."""
    return float(2 * stats.norm.sf(abs(z)))


def even(values: Sample, kinds: int) -> float:
    """χ² of integers in 0..kinds - 1 that should all be equally likely."""
    return float(stats.chisquare(np.bincount(values, minlength=kinds)).pvalue)


def repeats(values: Sample, expected: float) -> float:
    """Poisson p-value, one-sided, of the pairs of equal values, of which `expected` come by chance.

    For laws so spread out that each value is rare.
    """
    counts = np.unique(values, return_counts=True)[1]
    pairs = int((counts * (counts - 1) // 2).sum())
    return float(stats.poisson.sf(pairs - 1, expected))


def spread(total: float, mean: float, variance: float) -> float:
    """Two-sided p-value of a sum of many positive values, by the gamma law of that mean and variance."""
    law = stats.gamma(mean**2 / variance, scale=variance / mean)
    return float(2 * min(law.cdf(total), law.sf(total)))


@dataclass(frozen=True)
class DiscreteGaussian:
    """P(x) ∝ exp(-x²/(2σ²)) on the integers.

    Up to σ = 1000 by its probabilities; above, by the continuous law between half-integers, which differs by
    less than 10⁻⁷ of a bin's probability.
    """

    sigma: float
    centre = 0.0

    @cached_property
    def _support(self) -> tuple[Reals, Reals]:
        wide = int(15 * self.sigma) + 5
        support = np.arange(-wide, wide + 1, dtype=np.float64)
        mass = np.exp(-(support**2) / (2 * self.sigma**2))
        return support, mass / mass.sum()

    @property
    def _small(self) -> bool:
        return self.sigma <= 1000

    def _moment(self, power: int) -> float:
        if self._small:
            support, mass = self._support
            return float((support**power * mass).sum())
        return float(self.sigma**power * special.factorial2(power - 1))

    @property
    def deviation(self) -> float:
        return float(np.sqrt(self._moment(2)))

    @property
    def quantiles(self) -> Reals:
        # Of a narrow law many fall on one integer. None is so far out that its bin would be nearly empty.
        inner = self.sigma * stats.norm.ppf(np.arange(1, BINS) / BINS)
        return np.unique(np.floor(inner))

    def at_most(self, x: Reals) -> Reals:
        if self._small:
            support, mass = self._support
            return np.asarray(np.cumsum(mass)[np.searchsorted(support, x)])
        return np.asarray(stats.norm.cdf((x + 0.5) / self.sigma))

    def beyond(self, deviations: float) -> float:
        last = np.floor(deviations * self.deviation)
        return float(2 * self.at_most(np.array([-last - 1.0]))[0])

    def particular(self, sample: Sample) -> dict[str, float]:
        """``spread``: Σx². For wide laws ``low bits``, which are even, and ``repeats`` of a value."""
        squares = sample.astype(np.float64) ** 2
        n, mean = len(sample), self._moment(2)
        found = {"spread": spread(squares.sum(), n * mean, n * (self._moment(4) - mean**2))}
        if not self._small:
            found["low bits"] = even(sample & (BINS - 1), BINS)
            found["repeats"] = repeats(sample, n * (n - 1) / 2 / (2 * self.sigma * np.sqrt(np.pi)))
        return found


@dataclass(frozen=True)
class DiscreteLaplace:
    """P(x) ∝ q^|x| on the integers, q = exp(-1/scale): everything in closed form, at any scale."""

    scale: float
    centre = 0.0

    @property
    def _success(self) -> float:
        """1 - q."""
        return float(-np.expm1(-1.0 / self.scale))

    @property
    def deviation(self) -> float:
        return float(np.sqrt(2.0 * (1.0 - self._success)) / self._success)

    @property
    def quantiles(self) -> Reals:
        # Of a narrow law many fall on one integer.
        return np.unique(np.floor(stats.laplace.ppf(np.arange(1, BINS) / BINS, scale=self.scale)))

    def at_most(self, x: Reals) -> Reals:
        # P(X ≤ -m) = q^m/(1 + q) for m ≥ 0, and the law is symmetric.
        outer = np.exp(-np.where(x < 0, -x, x + 1.0) / self.scale) / (2.0 - self._success)
        return np.where(x < 0, outer, 1.0 - outer)

    def beyond(self, deviations: float) -> float:
        last = np.floor(deviations * self.deviation)
        return float(2.0 * self.at_most(np.array([-last - 1.0]))[0])

    def particular(self, sample: Sample) -> dict[str, float]:
        """``spread``: Σ|x|. For wide laws ``low bits``, which are even, and ``repeats`` of a value."""
        n, success = len(sample), self._success
        q = 1.0 - success
        mean = 2.0 * q / (success * (1.0 + q))
        sizes = np.abs(sample.astype(np.float64))
        found = {"spread": spread(sizes.sum(), n * mean, n * (self.deviation**2 - mean**2))}
        if self.scale > 1e6:
            found["low bits"] = even(sample & (BINS - 1), BINS)
            # Σ P(x)² = (success/(1 + q))²·(1 + q²)/(1 - q²)
            same = success * (1.0 + q * q) / (1.0 + q) ** 3
            found["repeats"] = repeats(sample, n * (n - 1) / 2 * same)
        return found


@dataclass(frozen=True)
class Laplace:
    """Density exp(-|x|/scale)/(2·scale)."""

    scale: float
    centre = 0.0

    @property
    def deviation(self) -> float:
        return float(np.sqrt(2.0) * self.scale)

    @property
    def quantiles(self) -> Reals:
        return np.asarray(stats.laplace.ppf(np.arange(1, BINS) / BINS, scale=self.scale))

    def at_most(self, x: Reals) -> Reals:
        return np.asarray(stats.laplace.cdf(x, scale=self.scale))

    def beyond(self, deviations: float) -> float:
        return float(np.exp(-deviations * np.sqrt(2.0)))

    def particular(self, sample: Sample) -> dict[str, float]:
        """``spread``: Σ|x|, a sum of exponential values, is exactly gamma."""
        n = len(sample)
        return {"spread": spread(np.abs(sample).sum(), n * self.scale, n * self.scale**2)}


@dataclass(frozen=True)
class Uniform:
    """Multiples of 2⁻⁵³ in [0, 1), equally likely."""

    centre = 0.5
    deviation = 12**-0.5
    quantiles = np.arange(1, BINS) / BINS

    def at_most(self, x: Reals) -> Reals:
        return x

    def beyond(self, deviations: float) -> float:
        return 1.0 - 2.0 * deviations * self.deviation

    def particular(self, sample: Sample) -> dict[str, float]:
        """``low bits`` of the multiple of 2⁻⁵³, which are even, and ``repeats`` of a value."""
        integers = (sample * 2.0**53).astype(np.int64)
        n = len(sample)
        return {
            "low bits": even(integers & (BINS - 1), BINS),
            "repeats": repeats(sample, n * (n - 1) / 2 * 2.0**-53),
        }


@dataclass(frozen=True)
class Bytes:
    """Bytes for keys, uint8, each of 256 values equally likely."""

    centre = 127.5
    deviation = float(np.sqrt((256**2 - 1) / 12))
    quantiles = np.arange(255.0)

    def at_most(self, x: Reals) -> Reals:
        return (x + 1) / 256

    def beyond(self, deviations: float) -> float:
        return float(2 * (127 - np.floor(127.5 + deviations * self.deviation) + 128) / 256)

    def particular(self, sample: Sample) -> dict[str, float]:
        """``repeats`` of eight consecutive bytes."""
        words = sample.tobytes()
        n = len(words) // 8
        return {"repeats": repeats(np.frombuffer(words, dtype="<u8", count=n), n * (n - 1) / 2 * 2.0**-64)}
