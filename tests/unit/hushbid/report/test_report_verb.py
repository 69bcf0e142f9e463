"""`hushbid report`, and the report that a run leaves, from outside."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from hushbid.cli.app import app
from hushbid.cluster.evaluation import Baselines
from hushbid.cluster.file import open_cluster
from hushbid.consumer.appraisal import Judgement
from hushbid.protocol.errors import ConfigError, HushbidError
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.privacy.settlement import SettlementTerms
from hushbid.replay import writing
from hushbid.results.run import Choices, RunResult
from hushbid.running import report as write
from hushbid.running.report import with_replay, with_report, write_report
from hushbid.running.simulate import simulate
from tests.support.report_sessions import Recorded, record
from tests.unit.hushbid.cluster.test_cluster import DIGITS

EXACT = DIGITS.with_name("exact.toml")


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return record(tmp_path_factory.mktemp("session"))


def report(*arguments: object) -> int:
    """Run the verb; its exit code."""
    with pytest.raises(SystemExit) as ending:
        app(["report", *map(str, arguments)], standalone_mode=False)
    return int(str(ending.value.code))


# -- the verb -----------------------------------------------------------------------------------------------


def test_it_writes_a_page_and_says_where(
    session: Recorded, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    assert report(session.paths[CURATOR], "--output", page) == 0
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    said = capsys.readouterr().out
    assert str(page) in said
    assert "Not in it: MMD²" in said


def test_its_json_has_the_figures_of_the_page(
    session: Recorded, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    assert report(session.paths[CURATOR], session.paths[CONSUMER], "--output", page, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["report"] == str(page)
    assert found["figures"] == session.figures(CURATOR, CONSUMER).as_json()


def test_an_older_report_is_replaced(session: Recorded, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    write_report([session.paths[CONSUMER]], page)
    first = page.read_bytes()
    write_report([session.paths[CURATOR]], page)
    assert page.read_bytes() != first
    assert list(tmp_path.iterdir()) == [page]


def test_nothing_but_a_report_is_replaced(
    session: Recorded, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "curator.transcript"
    copy.write_bytes(session.paths[CURATOR].read_bytes())
    for taken in (copy, tmp_path / "notes.html"):
        before = taken.read_bytes() if taken.exists() else b"<!DOCTYPE html>\n<p>mine"
        taken.write_bytes(before)
        assert report(copy, "--output", taken) == 4
        assert "is not a report" in capsys.readouterr().err
        assert taken.read_bytes() == before


@pytest.mark.parametrize("linked", [False, True], ids=["a pipe", "a link to a pipe"])
def test_a_pipe_is_refused_without_waiting_for_it(
    session: Recorded, tmp_path: Path, capsys: pytest.CaptureFixture[str], linked: bool
) -> None:
    pipe, output = tmp_path / "pipe", tmp_path / "page.html"
    os.mkfifo(pipe)
    (output.symlink_to if linked else pipe.rename)(pipe if linked else output)
    assert report(session.paths[CURATOR], "--output", output) == 4
    assert "is not a regular file" in capsys.readouterr().err
    assert output.is_fifo()


@pytest.mark.parametrize("output", ["missing/page.html", "."], ids=["no directory", "a directory"])
def test_a_place_that_cannot_be_written_to(session: Recorded, tmp_path: Path, output: str) -> None:
    assert report(session.paths[CURATOR], "--output", tmp_path / output) == 4


def test_bad_input_ends_with_its_exit_code(
    session: Recorded, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    image = bytearray(session.paths[CURATOR].read_bytes())
    image[-50] ^= 1
    (tmp_path / "damaged").write_bytes(image)
    page = tmp_path / "page.html"
    assert report(tmp_path / "damaged", "--output", page) == 1
    assert report(tmp_path / "nowhere", "--output", page) == 4
    assert report(session.paths[CURATOR], session.paths[CURATOR], "--output", page) == 4
    assert report(session.paths[CURATOR], "--evaluation", tmp_path / "damaged", "--output", page) == 4
    assert not page.exists()
    assert "both of curator" in capsys.readouterr().err


# -- at the end of a run ------------------------------------------------------------------------------------


def test_a_recorded_simulation_leaves_a_report(tmp_path: Path) -> None:
    result = simulate(open_cluster(EXACT, settings=["session.points=12"]), record=tmp_path / "run")
    assert result.report == tmp_path / "run" / "report.html"
    evaluation = json.loads((tmp_path / "run" / "evaluation.json").read_text())
    assert [len(evaluation[key]) for key in ("mmd2_greedy", "mmd2_uniform")] == [12, 12]
    figures = write_report(
        [result.transcripts[CURATOR], result.transcripts[CONSUMER]],
        tmp_path / "again.html",
        evaluation=tmp_path / "run" / "evaluation.json",
    )
    assert (tmp_path / "again.html").read_bytes() == result.report.read_bytes()
    assert figures.quality.session is not None
    assert figures.quality.greedy is not None
    assert figures.quality.session.last == pytest.approx(result.mmd2, abs=1e-12)
    assert figures.quality.greedy.last == pytest.approx(result.choices.greedy.plain.mmd2, abs=1e-12)
    assert dict(zip(figures.owners.name, figures.owners.settlement or (), strict=True)) == result.settlement
    assert [each.as_json() for each in figures.odometers] == [each.as_json() for each in result.odometers]
    assert figures.privacy == result.privacy
    appraisal = figures.quality.appraisal
    assert appraisal is not None
    assert appraisal.own == result.own
    assert [each.mmd2 for each in appraisal.choices[:3:2]] == [result.mmd2, result.choices.greedy.plain.mmd2]
    page = result.report.read_text()
    assert appraisal.model == result.model
    assert result.model.sentence() in page
    for learned in ("own rows and bought points", "own rows and as many at random", "no model"):
        assert f">{learned}<" in page
    assert "What the purchase is worth" in page
    assert "should be paid" in page


def test_a_report_says_that_no_greedy_choice_was_made(tmp_path: Path) -> None:
    settings = ["session.points=5", "run.greedy=false"]
    result = simulate(open_cluster(EXACT, settings=settings), record=tmp_path / "run", models=False)
    figures = write_report(
        [result.transcripts[CURATOR], result.transcripts[CONSUMER]],
        tmp_path / "again.html",
        evaluation=tmp_path / "run" / "evaluation.json",
    )
    assert figures.quality.uniform is not None
    assert figures.quality.greedy is None
    assert "MMD² of the greedy choice" in [each.what for each in figures.missing]
    assert "greedy and uniform from" not in (tmp_path / "again.html").read_text()


def test_an_unrecorded_simulation_leaves_none() -> None:
    assert simulate(open_cluster(EXACT, settings=["session.points=5"]), models=False).report is None


@pytest.mark.parametrize("error", [ConfigError("no room.", advice="Make room."), RuntimeError("a bug")])
@pytest.mark.parametrize("page", ["report", "replay"])
def test_a_result_outlives_its_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, page: str
) -> None:
    def fail(*_arguments: Any, **_keywords: Any) -> None:
        raise error

    monkeypatch.setattr(write, "write_report", fail)
    monkeypatch.setattr(writing, "write_replay", fail)
    said: list[str] = []
    if page == "report":
        result = with_report(plain_result(), Baselines(Judgement(), Judgement()), tmp_path, said.append)
    else:
        result = with_replay(plain_result(), tmp_path, said.append)
    assert result == plain_result()
    assert len(said) == 1
    assert said[0].startswith(f"WARNING: no {page} was written: ")
    assert ("no room" in said[0]) == isinstance(error, HushbidError)
    assert ("bug in hushbid" in said[0]) != isinstance(error, HushbidError)


def plain_result() -> RunResult:
    return RunResult(
        session="s", p=1, batch=1, seed_weight=0.1, rule="sealed", jitter=25.0, distinct=True,
        owners=1, rounds=1, wall_seconds=1.0,
        choices=Choices(),
        points_accessed_curator=0, points_delivered=0, disputed=0, m=1,
        privacy=(), odometers=(), settlement={}, settlement_terms=SettlementTerms.of(None, ""), absences={},
        faults=(),
    )  # fmt: skip
