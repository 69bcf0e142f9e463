"""RACE on skin, 245,057 points, R = 1000: a private build with secure noise, and queries in a batch.

Aims on 2 cores: under 20 s, and under 0.05 ms a query. A query is timed beside the exact kernel sum and
beside scikit-learn's `KernelDensity` in the same run.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from pytest_benchmark.fixture import BenchmarkFixture
from sklearn.neighbors import KernelDensity

from hushbid.race import RaceSketch

BUILD_SECONDS = 20.0
QUERY_SECONDS = 5e-5
QUERIES = 2000
PEER_QUERIES = 40
LEAST_RATIO = 20.0
"""How much faster than an exact kernel sum a query is at least."""


def sketch() -> RaceSketch:
    return RaceSketch(
        lower=0.0,
        upper=255.0,
        epsilon=1.0,
        neighbours="add-remove-one",
        rows=1000,
        bandwidth=5.0,
        random_state=0,
    )


@pytest.fixture(scope="module")
def skin(shared_data: Callable[[str], Path]) -> npt.NDArray[np.float64]:
    with np.load(shared_data("skin.npz")) as file:
        return np.asarray(file["features"], dtype=np.float64)


def test_a_private_sketch_of_skin(benchmark: BenchmarkFixture, skin: npt.NDArray[np.float64]) -> None:
    fitted = benchmark.pedantic(lambda: sketch().fit(skin), rounds=3)  # type: ignore[no-untyped-call]
    assert fitted.privacy_.protects
    if benchmark.stats is not None:  # timing was asked for
        assert benchmark.stats.stats.min < BUILD_SECONDS


@pytest.mark.parametrize("peer", ["exact kernel sum", "KernelDensity"])
def test_a_query_of_a_batch(benchmark: BenchmarkFixture, skin: npt.NDArray[np.float64], peer: str) -> None:
    fitted = sketch().fit(skin)
    queries = skin[:: len(skin) // QUERIES][:QUERIES]
    family = fitted.sketch_.family
    trees = KernelDensity(bandwidth=5.0).fit(skin)
    ask = {
        "exact kernel sum": lambda few: family.kernel(skin, few).sum(axis=0),
        "KernelDensity": trees.score_samples,
    }[peer]
    begun = time.perf_counter()
    ask(queries[:PEER_QUERIES])
    peer_seconds = (time.perf_counter() - begun) / PEER_QUERIES
    sums = benchmark(fitted.kernel_sums, queries)
    assert sums.shape == (QUERIES,)
    if benchmark.stats is not None:
        seconds = benchmark.stats.stats.min / QUERIES
        benchmark.extra_info["peer"] = peer
        benchmark.extra_info["ratio"] = peer_seconds / seconds
        assert seconds < QUERY_SECONDS
        assert peer_seconds > LEAST_RATIO * seconds
