"""`logistic` asks every rank as often as it states, with independent coins from every source of noise.

Seeds are fixed, except that the secure source has none: with `ALPHA` shared among all checks, a right rule
fails once in a million runs. Asking by the next rank is caught, and so is one coin for all.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from hushbid.protocol.privacy.acquisition import BidStanding, Logistic, acquisition_rule
from hushbid.protocol.privacy.noise import NoiseSource, SecureNoise, SimulatedNoise

ALPHA = 1e-6
"""Probability that a right rule fails here, of one run of this file."""
ROUNDS = 20_000
OWNERS = 200
SOURCES: dict[str, Callable[[], NoiseSource]] = {
    "secure": SecureNoise,
    "simulated": lambda: SimulatedNoise(7, "curator"),
}


def rule() -> Logistic:
    made = acquisition_rule("logistic", {"epsilon": 3.0}, owners=OWNERS, rounds=30, delta=1e-3)
    assert isinstance(made, Logistic)
    return made


def watched(logistic: Logistic) -> list[int]:
    """Ranks on all parts of the curve."""
    middle = round(logistic.middle)
    return [1, middle // 2, middle - 4, middle - 1, middle, middle + 1, middle + 4, 2 * middle, OWNERS]


def counts(logistic: Logistic, source: NoiseSource, ranks: list[int]) -> npt.NDArray[np.int64]:
    """How often each was asked, and, in the last place, the first two together."""
    standings = [BidStanding(str(place), 0, 1, position=place, rank=rank) for place, rank in enumerate(ranks)]
    found = np.zeros(len(ranks) + 1, dtype=np.int64)
    (draw,) = logistic.draws()
    for _ in range(ROUNDS):
        asked = logistic.ask(0, standings, frozenset(), (source.draw(draw),))
        for owner in asked:
            found[int(owner)] += 1
        found[-1] += {str(place) for place in (len(ranks) // 2 - 1, len(ranks) // 2)} <= set(asked)
    return found


def pvalues(found: npt.NDArray[np.int64], logistic: Logistic, ranks: list[int]) -> list[float]:
    """Exact binomial p-values, two-sided: for every rank, and for two middle ranks asked together."""
    expected = [float(logistic.probabilities[rank - 1]) for rank in ranks]
    middle = len(ranks) // 2
    expected.append(expected[middle - 1] * expected[middle])
    return [
        float(stats.binomtest(int(count), ROUNDS, probability).pvalue)
        for count, probability in zip(found, expected, strict=True)
    ]


@pytest.mark.parametrize("source", SOURCES)
def test_every_rank_is_asked_as_often_as_stated_and_independently(source: str) -> None:
    logistic = rule()
    ranks = watched(logistic)
    checks = pvalues(counts(logistic, SOURCES[source](), ranks), logistic, ranks)
    assert min(checks) > ALPHA / (len(checks) * len(SOURCES))


def test_the_check_catches_a_rule_that_is_off_by_one_rank() -> None:
    logistic = rule()
    ranks = watched(logistic)
    off = [min(rank + 1, OWNERS) for rank in ranks]
    checks = pvalues(counts(logistic, SOURCES["simulated"](), off), logistic, ranks)
    assert min(checks) < ALPHA / (len(checks) * len(SOURCES))


def test_the_check_catches_one_coin_for_all() -> None:
    class OneCoin(SimulatedNoise):
        def draw(self, request):  # type: ignore[no-untyped-def]
            return np.full(request.size, super().draw(request)[0])

    logistic = rule()
    ranks = watched(logistic)
    checks = pvalues(counts(logistic, OneCoin(7, "curator"), ranks), logistic, ranks)
    assert checks[-1] < ALPHA / (len(checks) * len(SOURCES))
