"""What a value of noise costs beside numpy's normal in the same run, and a vector that was drawn ahead."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from hushbid.protocol.privacy.noise import Draw, NoiseSource, SecureNoise, SimulatedNoise
from hushbid.protocol.runtime.drawn_ahead import DrawnAhead

SCALE: Final = 1.1 * 2.0**22
"""σ of a release of p = 1000, in grid units, is of this size."""

SIZE: Final = 140
"""Values of one release."""

LIMITS: Final = {
    # Times numpy's normal (9 ns): three times the 1000, 2.5, 5.4 and 0.2 that were measured.
    ("secure", "discrete-gaussian"): 3000.0,
    ("secure", "uniform"): 7.5,
    ("simulated", "discrete-gaussian"): 16.0,
    ("simulated", "uniform"): 0.6,
}
AHEAD_LIMIT: Final = 0.2
"""Of the time that a vector takes from its source."""

SOURCES: Final[dict[str, Callable[[], NoiseSource]]] = {
    "secure": SecureNoise,
    "simulated": lambda: SimulatedNoise(1, "curator"),
}


def fastest(action: Callable[[], object], times: int) -> float:
    """Seconds of the fastest of so many."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        action()
        taken.append(time.perf_counter() - start)
    return min(taken)


def normal(size: int) -> float:
    """Seconds a value of numpy's normal."""
    rng = np.random.default_rng(1)
    return fastest(lambda: rng.standard_normal(size), 200) / size


@pytest.mark.parametrize("size", [SIZE, 10_000])
@pytest.mark.parametrize(("name", "distribution"), LIMITS)
def test_a_draw(benchmark: BenchmarkFixture, name: str, distribution: str, size: int) -> None:
    draw = Draw("uniform", 1.0, size) if distribution == "uniform" else Draw("discrete-gaussian", SCALE, size)
    assert len(benchmark(SOURCES[name]().draw, draw)) == size
    if benchmark.stats is not None:  # timing was asked for
        # Of a short call, the call is what would be measured: so numpy's, and what is asserted, is in bulk.
        ratio = benchmark.stats.stats.min / size / normal(10_000)
        benchmark.extra_info["times numpy's normal"] = round(ratio, 1)
        if size > SIZE:
            assert ratio < LIMITS[name, distribution]


def test_a_draw_that_was_drawn_ahead(benchmark: BenchmarkFixture) -> None:
    source, rounds = SecureNoise(), 200
    draw = Draw("discrete-gaussian", SCALE, SIZE)
    with DrawnAhead(source) as ahead:
        ahead.expect(draw, rounds)
        time.sleep(1.0 if benchmark.enabled else 0.0)  # rounds pass meanwhile
        drawn = benchmark.pedantic(ahead.draw, args=(draw,), rounds=rounds)  # type: ignore[no-untyped-call]
        assert len(drawn) == SIZE
    if benchmark.stats is not None:
        ratio = benchmark.stats.stats.median / fastest(lambda: source.draw(draw), 100)
        benchmark.extra_info["of the source's time"] = round(ratio, 4)
        assert ratio < AHEAD_LIMIT
