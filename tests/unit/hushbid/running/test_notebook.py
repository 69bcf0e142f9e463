"""The view in a notebook: a bar that ends full, and short forms of a cell's result."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import hushbid
from hushbid.cluster import evaluation
from hushbid.procuring import _SEED_SET
from hushbid.protocol.machine.progress import COMPARING, Progress
from hushbid.results.terminal import as_text
from hushbid.running.notebook import notebook_bar
from tests.unit.hushbid.cluster.test_cluster import files_cluster

ROUNDS = {
    "session.points": 20,
    "session.batch": 6,
    "acquisition.rule": "sealed",
    "summary.mechanism": "filtered-gaussian",
    "summary.epsilon": 1.0,
    "summary.neighbours": "add-remove-one",
}
FEATURES = {"gamma": 1.0, "columns": 2, "dimension": 8}


class Shell:
    """A notebook's display: what was shown, and its replacements."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    def display(self, page: str, *, display_id: bool) -> Shell:
        assert display_id, "else it cannot be replaced"
        self.shown.append(page)
        return self

    def update(self, page: str) -> None:
        self.shown.append(page)


def notebook(monkeypatch: pytest.MonkeyPatch, name: str) -> Shell:
    shell, kind = Shell(), type(name, (), {})
    display = SimpleNamespace(HTML=str, display=shell.display)
    module: Any = SimpleNamespace(get_ipython=kind, display=display)
    monkeypatch.setitem(sys.modules, "IPython", module)
    return shell


@pytest.fixture(scope="module")
def cluster() -> hushbid.Cluster:
    return hushbid.open_cluster("digits", settings=ROUNDS)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> hushbid.Cluster:
    """Two owners' few rows; no model is tried, as the validation set has no labels."""
    path = files_cluster(tmp_path_factory.mktemp("small"), features=FEATURES)
    return hushbid.open_cluster(path, settings=ROUNDS)


@pytest.fixture(scope="module")
def progressed(cluster: hushbid.Cluster) -> tuple[hushbid.RunResult, list[tuple[int, int]]]:
    """A result, and the progress that was told meanwhile."""
    told: list[tuple[int, int]] = []
    return hushbid.simulate(cluster, progress=lambda *step: told.append(step)), told


def test_a_notebook_shows_a_bar_that_ends_full(
    cluster: hushbid.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell = notebook(monkeypatch, "ZMQInteractiveShell")
    result = hushbid.simulate(cluster, models=False)
    comparing = [page for page in shell.shown if "comparing with" in page]
    assert len(shell.shown) == result.rounds + 1 + len(comparing) + 1
    assert comparing[0] == "<progress></progress> comparing with as many at random"
    assert comparing[-1] == '<progress value="0.95"></progress> comparing with the greedy choice'
    assert shell.shown[-1].startswith('<progress value="4" max="4">')
    assert f"{result.points_delivered} of 20 points" in shell.shown[-1]


def test_a_terminal_and_a_script_show_none(monkeypatch: pytest.MonkeyPatch) -> None:
    notebook(monkeypatch, "TerminalInteractiveShell")
    assert notebook_bar() is None
    monkeypatch.delitem(sys.modules, "IPython")
    assert notebook_bar() is None


def test_progress_tells_rounds_that_are_over_once_each_and_ends_at_p(
    progressed: tuple[hushbid.RunResult, list[tuple[int, int]]],
) -> None:
    result, told = progressed
    assert [number for number, _ in told] == [1, 2, 3, 4]
    assert told[-1] == (result.rounds, result.p)


def test_what_follows_a_session_is_told_and_then_its_end_again(small: hushbid.Cluster) -> None:
    told: list[Progress] = []
    hushbid.simulate(small, follow=told.append)
    comparing = [each for each in told if each.phase == COMPARING]
    shares = [each.busy_share for each in comparing if each.busy_share is not None]
    assert shares == sorted(shares)
    assert len(shares) == 20
    end = [each for each in told if each.phase != COMPARING][-1]
    assert told[-1] == end
    assert end.points == 20
    assert all(replace(each, phase=end.phase, busy=None, busy_share=None) == end for each in comparing)


def test_a_greedy_choice_that_is_not_wanted_is_said_to_be_left_out(tmp_path: Path) -> None:
    settings = {**ROUNDS, "run.greedy": False}
    result = hushbid.simulate(
        hushbid.open_cluster(files_cluster(tmp_path, features=FEATURES), settings=settings)
    )
    found = result.as_json()
    assert found["not_computed"] == [{"figure": "greedy", "why": "`run.greedy` is false"}]
    assert found["mmd2_greedy"] is None
    assert found["mmd2_uniform"] is not None
    assert "The greedy choice was not made: `run.greedy` is false." in as_text(result)


def test_a_greedy_choice_that_takes_long_and_is_wanted_is_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation, "MOST_READ", 0)
    settings = {**ROUNDS, "run.greedy": True}
    said: list[str] = []
    digits = hushbid.open_cluster("digits", settings=settings)
    result = hushbid.simulate(digits, say=said.append, models=False)
    assert said[-1].startswith("The greedy choice is made: among 896 rows it takes about a minute of a core")
    assert result.not_computed == ()
    assert result.choices.greedy.plain.mmd2 is not None


def test_what_a_cell_returns_is_short_and_has_html(
    cluster: hushbid.Cluster,
    progressed: tuple[hushbid.RunResult, list[tuple[int, int]]],
) -> None:
    result, _ = progressed
    assert repr(result).startswith("<RunResult of 'digits': 20 of 20 points of 5 owners, accuracy ")
    assert all(each.split()[0] in result._repr_html_() for each in result.sentences)
    assert repr(cluster) == "<Cluster 'digits': 20 points of 5 owners, rule sealed, from cluster.toml>"
    assert "<li>rule sealed</li>" in cluster._repr_html_()
    columns = [{"name": f"<{place}>", "kind": "number", "lower": 0, "upper": 1} for place in range(8)]
    schema = hushbid.Schema.of(columns)
    assert repr(schema).endswith("<5> number and 2 more>")
    assert "<td>&lt;7&gt;</td><td>number</td><td>lower 0.0, upper 1.0</td>" in schema._repr_html_()
    born = {"name": "born", "kind": "date", "lower": "1900-01-01", "upper": "2020-12-31"}
    assert "lower 1900-01-01, upper 2020-12-31" in hushbid.Schema.of([born])._repr_html_()


def test_a_drawn_seed_set_has_a_stream_of_its_own() -> None:
    schema = hushbid.Schema.of([{"name": "a", "kind": "number", "lower": 0, "upper": 1}])
    theirs = schema.drawn(50, np.random.default_rng(0))
    ours = schema.drawn(50, np.random.default_rng([0, *_SEED_SET]))
    assert not set(theirs.ravel()) & set(ours.ravel())
