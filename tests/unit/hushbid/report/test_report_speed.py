"""A report of a long session: made while one waits, on a busy machine too, and small enough to send."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pytest

from hushbid.running.report import write_report
from protocol.names import CONSUMER, CURATOR
from protocol.runtime.blas_threads import keep_one_blas_thread
from tests.support.report_sessions import record

ROUNDS = 5_000
SECONDS = 20.0
BYTES = 6_000_000


@pytest.mark.slow
def test_five_thousand_rounds_are_reported_in_twenty_seconds(tmp_path: Path) -> None:
    keep_one_blas_thread()
    owners = [f"owner-{number}" for number in range(5)]
    session = record(tmp_path, owners=owners, points=ROUNDS, rows=1_200)
    # Figures as long as they get: with all their digits.
    curve = np.random.default_rng(0).random(ROUNDS).tolist()
    evaluation, page = tmp_path / "evaluation.json", tmp_path / "report.html"
    evaluation.write_text(json.dumps({"mmd2_greedy": curve, "mmd2_uniform": curve}))
    started = time.process_time()
    figures = write_report([session.paths[CURATOR], session.paths[CONSUMER]], page, evaluation=evaluation)
    seconds = time.process_time() - started
    print(f"{ROUNDS} rounds: {seconds:.1f} s, {page.stat().st_size} bytes")
    assert figures.session.bought == len(figures.rounds.number) == ROUNDS
    assert seconds < SECONDS
    assert page.stat().st_size < BYTES
