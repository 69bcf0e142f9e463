"""Plain health checks: the same result as with Typer's parser, without it."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hushbid.cli.app import app
from hushbid.cli.health_check import run_plain
from hushbid.protocol.runtime.telemetry.status_file import status_path
from tests.unit.protocol.runtime.telemetry.test_vitals import WELL

LINES = [
    ["health", "RUN"],
    ["health", "WELL"],
    ["health", "WELL", "--json"],
    ["health", "--ready", "--state", "WELL"],
    ["health", "WELL", "-q", "--state", "OLD"],
    ["health", "OLD", "--json"],
    ["health", "nowhere"],
    ["health"],
    ["status", "--check", "WELL"],
    ["status", "RUN", "--check", "--ready", "--json"],
]
LEFT = [
    ["status", "WELL"],
    ["health", "--max-age", "5", "WELL"],
    ["health", "--help"],
    ["health", "--state=WELL"],
    ["health", "--state"],
    ["health", "--state", "WELL", "--state", "OLD"],
    ["health", "--check", "WELL"],
    ["health", "--", "WELL"],
    ["health", "--unknown"],
    ["status", "--check", "--watch", "WELL"],
]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, beat in (("WELL", 1e9), ("OLD", 1e3)):
        state = tmp_path / "RUN" / "parties" / name / "state"
        state.mkdir(parents=True)
        status = replace(
            WELL, party=name.lower(), beat=time.time() - 1e9 + beat, finished=name == "WELL", exit_code=0
        )
        status.write(status_path(state, name.lower()))
        (tmp_path / name).symlink_to(state)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("variable", ["", "WELL"])
@pytest.mark.parametrize("line", LINES, ids=" ".join)
def test_a_plain_line_ends_as_the_parser_has_it_end(
    place: Path,
    line: list[str],
    variable: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("HUSHBID_STATE", variable)
    parsed = CliRunner().invoke(app, line)
    if line == ["health"] and not variable:
        run_plain(line)  # the parser says that nothing is named
        return
    with pytest.raises(SystemExit) as ended:
        run_plain(line)
    said = capfd.readouterr()

    def stable(text: str) -> list[str]:
        return [word for word in text.split() if not word.replace(".", "").isdigit()]  # seconds go by

    assert ended.value.code == parsed.exit_code
    assert (stable(said.out), stable(said.err)) == (stable(parsed.stdout), stable(parsed.stderr))


@pytest.mark.parametrize("line", LEFT, ids=" ".join)
def test_what_is_not_plain_is_left_to_the_parser(place: Path, line: list[str]) -> None:
    run_plain(line)  # it returns
