"""What computes figures has one BLAS thread: the last digits are the same on every number of cores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits

from hushbid.catalogue import screening
from hushbid.consumer.learners import learner
from hushbid.plan import rehearsal, verdict
from hushbid.preflight import checks
from hushbid.replay import writing
from hushbid.report import pictures
from hushbid.running import purchase, report, simulate
from hushbid.tables import training, valuing, weighing
from hushbid.transcripts import replay_view

GIVEN = MagicMock(session=None)
"""Options, data or a session: nothing is looked at before the work begins."""
FIRST_STEPS: dict[str, tuple[Any, str, Callable[[], object]]] = {
    "weigh": (weighing, "check_ridge", lambda: weighing.weigh(GIVEN)),
    "train": (training, "made", lambda: training.train(Path("delivered.npz"))),
    "value": (valuing, "DeliveredTables.read", lambda: valuing.value_owners(GIVEN)),
    "results": (purchase, "open_purchase", lambda: purchase.results(GIVEN)),
    "screen": (screening, "candidates", lambda: screening.screen(GIVEN, GIVEN)),
    "simulate": (simulate, "RosterSection", lambda: simulate.simulated(GIVEN, GIVEN)),
    "a verdict": (verdict, "looked_at", lambda: verdict.Rehearsing().measured(GIVEN, GIVEN)),
    "a rehearsal": (rehearsal, "why_not_rehearsed", lambda: rehearsal.rehearse(GIVEN, GIVEN, GIVEN)),
    "a rehearsal with owners": (
        rehearsal,
        "coded",
        lambda: rehearsal.play_with_owners(GIVEN, GIVEN, GIVEN, [], [], progress=print),
    ),
    "a report": (report, "page_there", lambda: report.write_report([], Path("report.html"))),
    "a replay": (writing, "page_there", lambda: writing.write_replay(GIVEN, Path("replay.html"))),
    "transcript replay": (replay_view, "_replay", lambda: replay_view.replay_all([Path()], None)),
}
"""The module of a function, what it calls first, and a call of it."""


class Begun(Exception):
    """The work began."""


def blas_threads() -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def _two_threads() -> Iterator[None]:
    with threadpool_limits(limits=2, user_api="blas"):
        yield
        assert blas_threads() == {2}, "whoever calls from Python has its threads again"


@pytest.mark.parametrize("what", FIRST_STEPS)
def test_work_begins_with_one_blas_thread(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, first, call = FIRST_STEPS[what]
    seen: list[set[int]] = []

    def begin(*_given: object, **_named: object) -> None:
        seen.append(blas_threads())
        raise Begun

    monkeypatch.setattr(f"{module.__name__}.{first}", begin)
    with pytest.raises(Begun):
        call()
    assert seen == [{1}]


def test_a_map_is_drawn_with_one_blas_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of points, by scikit-learn, which a report imports for it alone."""
    seen: list[set[int]] = []

    def begin(_self: object, _kernel: object) -> None:
        seen.append(blas_threads())
        raise Begun

    monkeypatch.setattr("sklearn.decomposition.KernelPCA.fit_transform", begin)
    space = MagicMock(gamma=1.0, scale=lambda points: points)
    rows = MagicMock(session=MagicMock(space=space), wanted=np.eye(3), bought=np.zeros((2, 3)))
    with pytest.raises(Begun):
        pictures._map(rows)
    assert seen == [{1}]


def test_a_check_before_a_session_has_one_blas_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    check = checks.Check("threads", ("consumer",), lambda _subject: str(blas_threads()))
    monkeypatch.setattr(checks, "CHECKS", (check,))
    _, finding = checks.preflight(lambda: MagicMock(role="consumer"))
    assert finding.said == "{1}"


class Counting(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A model that is the threads it was fitted with."""

    def fit(self, _points: object, labels: Any) -> Counting:
        self.classes_ = np.unique(labels)
        self.threads_ = blas_threads()
        return self

    def predict(self, points: Any) -> Any:
        assert blas_threads() == {1}
        return np.zeros(len(points), dtype=np.int64)


def test_a_model_that_is_judged_by_is_fitted_with_one_blas_thread() -> None:
    """Whatever was limited before: the import of scikit-learn loads another BLAS, with threads of its own."""
    made = learner(Counting(), seed=0, amounts=False)
    assert not isinstance(made, str)
    learned = made.learn(np.eye(4), np.arange(4))
    assert learned.model[-1].threads_ == {1}
    assert len(learned.predicted(np.eye(4))) == 4


def test_a_model_of_the_purchase_is_fitted_with_one_blas_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BLAS is there when the work begins, but for the one that comes with scikit-learn."""
    everything = ThreadpoolController()
    known = iter([everything.select(prefix="not loaded yet")])
    monkeypatch.setattr(
        "hushbid.protocol.runtime.blas_threads._libraries", lambda _imported: next(known, everything)
    )
    features, labels = np.random.default_rng(0).random((8, 2)), np.arange(8) % 2
    np.savez(tmp_path / "test.npz", features=features, labels=labels)
    delivered = {"owners": np.repeat("heron", 8), "rounds": np.arange(1, 9), "identified": np.zeros(8, bool)}
    bounds = {"gamma": np.float64(1.0), "lower": np.float64(0.0), "upper": np.float64(1.0)}
    rows = {"features": features, "labels": labels, "labelled": np.ones(8, bool)}
    arrays: dict[str, Any] = {**rows, **delivered, **bounds}
    np.savez(tmp_path / "delivered.npz", **arrays)
    found = training.train(tmp_path / "delivered.npz", Counting(), test=tmp_path / "test.npz")
    assert found.model[-1].threads_ == {1}
