"""Benchmarks run by `make bench` only. They compare two things side by side; none asserts a wall time."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import shared_data

__all__ = ["shared_data"]

BENCH_TIMEOUT = 900
"""Seconds for a benchmark, rounds of calibration included."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give benchmarks, and nothing else of the same run, the time that they need."""
    here = Path(__file__).resolve().parent
    for item in items:
        if item.path.is_relative_to(here) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(BENCH_TIMEOUT))
