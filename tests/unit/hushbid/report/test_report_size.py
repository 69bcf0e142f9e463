"""A report of a long session: every round is in it, and it is small enough to send."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.runtime.blas_threads import keep_one_blas_thread
from hushbid.running.report import write_report
from tests.support.report_sessions import record

ROUNDS = 5_000
BYTES = 1_500_000


@pytest.mark.slow
def test_five_thousand_rounds_are_reported_on_a_page_that_can_be_sent(tmp_path: Path) -> None:
    keep_one_blas_thread()
    owners = [f"owner-{number}" for number in range(5)]
    session = record(tmp_path, owners=owners, points=ROUNDS, rows=1_200)
    # Figures as long as they get: with all their digits.
    curve = np.random.default_rng(0).random(ROUNDS).tolist()
    evaluation, page = tmp_path / "evaluation.json", tmp_path / "report.html"
    evaluation.write_text(json.dumps({"mmd2_greedy": curve, "mmd2_uniform": curve}))
    figures = write_report([session.paths[CURATOR], session.paths[CONSUMER]], page, evaluation=evaluation)
    assert figures.session.bought == len(figures.rounds.number) == ROUNDS
    assert page.stat().st_size < BYTES
