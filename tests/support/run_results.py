"""The results of a verb run in this process, as records."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from hushbid.consumer.result import PurchaseResult
from hushbid.results.run import RunResult

__all__ = ["run_results"]


@contextmanager
def run_results() -> Iterator[list[tuple[RunResult, PurchaseResult]]]:
    """Results of runs made within it, each with that of its consumer."""
    seen: list[tuple[RunResult, PurchaseResult]] = []
    told: Any = RunResult.__dict__["told"].__func__

    def telling(kind: type[RunResult], /, *given: Any, consumer: Any, **named: Any) -> RunResult:
        result: RunResult = told(kind, *given, consumer=consumer, **named)
        seen.append((result, consumer))
        return result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunResult, "told", classmethod(telling))
        yield seen
