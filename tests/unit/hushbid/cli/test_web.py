"""The news for the page of a running session: who is awaited, what parties do, when it is over."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from hushbid.cli.app import app
from hushbid.cli.watch import TITLES
from hushbid.cli.web import LiveState, pause_after, served
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.runtime.telemetry.status_file import process_start
from tests.support.replay_sessions import recorded_with
from tests.unit.hushbid.cli.test_watch import CURATOR as CURATORS
from tests.unit.hushbid.cli.test_watch import HERON, NOW, write


def told(course: LiveState) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(course.served.news)
    without = json.loads(course.served.without_facts)
    assert {**found, "facts": None} == without
    return found


def test_before_anybody_has_started_the_page_waits(tmp_path: Path) -> None:
    course = LiveState([tmp_path / "run"])
    assert course.served.version == 0
    assert course.go_on(NOW)
    assert told(course)["awaited"] == [[str(tmp_path / "run"), "is not there yet"]]
    assert told(course)["begun"] is False
    assert told(course)["facts"] is None
    assert "Waiting" in course.served.page()
    assert "connect-src &#x27;self&#x27;" in course.served.page()
    assert not course.go_on(NOW + 1), "nothing is new"


def test_the_page_follows_statuses_and_transcripts_until_all_have_ended(tmp_path: Path) -> None:
    course = LiveState([tmp_path])
    write(tmp_path, CURATORS)
    write(tmp_path, HERON)
    assert course.go_on(NOW)
    first = told(course)
    assert first["begun"] is True
    rows = [dict(zip(TITLES, row, strict=True)) for row in first["parties"]]
    assert [row["party"] for row in rows] == ["curator", "heron (owner)"]
    assert rows[0]["round"] == "12 of 50"
    assert rows[0]["missing"] == "magpie"
    write(tmp_path, replace(HERON, beat=NOW + 0.5))
    assert not course.go_on(NOW + 0.6), "that its loop turned is no news"
    for party, path in recorded_with(tmp_path, "sealed").items():
        if party in (CURATOR, CONSUMER):
            path.rename(tmp_path / "parties" / "curator" / "state" / path.name)
        else:
            path.unlink()
    assert course.go_on(NOW + 1)
    found = told(course)
    assert found["version"] == course.served.facts_version == 2
    assert found["facts"]["copies"].keys() == {CURATOR, CONSUMER}
    assert found["facts"]["chosen"] is None
    (left_out,) = found["notices"]
    assert "No private value" in left_out["lines"][0]
    assert any("No transcript of owner-0, owner-1" in line for line in left_out["lines"])
    page = course.served.page()
    assert "A running session" in page
    assert "connect-src &#x27;self&#x27;" in page
    for status in (CURATORS, HERON):
        write(tmp_path, replace(status, finished=True, exit_code=0, beat=NOW + 1))
    assert course.go_on(NOW + 2)
    assert course.ended
    assert told(course)["over"] is True
    assert course.served.facts_version == 2, "the facts are those of before"


def test_a_session_that_was_over_goes_on_where_a_party_starts_again(tmp_path: Path) -> None:
    course = LiveState([tmp_path])
    stopped = replace(CURATORS, finished=True, exit_code=1)
    write(tmp_path, stopped)
    assert course.go_on(NOW)
    assert course.ended
    assert told(course)["over"] is True
    assert not course.go_on(NOW + 1), "nothing is new while it is over"
    write(tmp_path, replace(CURATORS, beat=NOW + 2))
    assert course.go_on(NOW + 2)
    assert not course.ended
    assert told(course)["over"] is False


def test_it_is_looked_at_until_ctrl_c_and_each_end_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = iter([True, True, False, True])

    def sleep(_seconds: float) -> None:
        finished = next(ended, None)
        if finished is None:
            raise KeyboardInterrupt
        code = 1 if finished else None
        write(tmp_path, replace(CURATORS, beat=time.time(), finished=finished, exit_code=code))

    monkeypatch.setattr("hushbid.cli.web.time.sleep", sleep)
    result = served([tmp_path], port=None, as_json=True)
    said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert said == [{"address": result["address"]}, {"over": True}, {"over": False}, {"over": True}]
    assert result["over"] is True


def test_who_is_gone_and_what_is_damaged_is_said(tmp_path: Path) -> None:
    state = write(tmp_path, replace(CURATORS, finished=True, exit_code=0)).parent
    # A process that has this number and began at another time.
    write(tmp_path, replace(HERON, pid=os.getpid(), process_start=(process_start(os.getpid()) or 0) + 7))
    (tmp_path / "recorded").mkdir()
    image = recorded_with(tmp_path / "recorded", "sealed")[CURATOR].read_bytes()
    (state / "curator.transcript").write_bytes(image[:-50] + b"\x01" + image[-49:])
    course = LiveState([tmp_path])
    assert course.go_on(NOW + 60)
    assert course.ended
    titles = {each["title"]: each["lines"] for each in told(course)["notices"]}
    assert titles["Gone without having ended:"] == ["heron"]
    (why,) = titles["A transcript is broken: the page shows its records before that place."]
    assert "is damaged" in why
    assert str(tmp_path) not in why


def test_a_slow_reading_is_followed_by_a_long_rest() -> None:
    assert [pause_after(seconds) for seconds in (0.0, 0.25, 1.0, 5.0)] == [1.0, 1.0, 4.0, 20.0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("status", "--web", "."), "--web belongs to --watch"),
        (("status", "--watch", "--port", "9", "."), "--port belongs to --web"),
        (("watch", "--port", "9", "."), "--port belongs to --web"),
        (("watch", "--web", "--once", "."), "--web goes on, and --once looks once"),
        (("watch", "--web", __file__), "is no directory"),
        (("status", "--watch", "--web", __file__), "is no directory"),
    ],
)
def test_what_does_not_go_together_is_refused(arguments: tuple[str, ...], said: str) -> None:
    ended = CliRunner().invoke(app, [*arguments, "--json"])
    assert ended.exit_code == 4
    assert said in json.loads(ended.stdout)["error"]["what"]
