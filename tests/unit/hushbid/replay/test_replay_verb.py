"""`hushbid replay`, from outside."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from hushbid.cli.app import app
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.replay.page import FIRST_BYTES
from tests.support.replay_sessions import counted, recorded_with


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return recorded_with(tmp_path_factory.mktemp("session"), "sealed")


def replayed(*arguments: object, code: int = 0) -> Any:
    ended = CliRunner().invoke(app, ["replay", *map(str, arguments), "--json"])
    assert ended.exit_code == code, ended.stderr
    return json.loads(ended.stdout)


def test_a_directory_of_transcripts_becomes_a_page_of_its_owner_s_alone(
    paths: dict[str, Path], tmp_path: Path
) -> None:
    output = tmp_path / "page.html"
    told = replayed(paths[CURATOR].parent, "--output", output)
    assert told["replay"] == str(output)
    assert output.read_bytes().startswith(FIRST_BYTES)
    assert output.stat().st_mode & 0o777 == 0o600
    curator = counted(paths[CURATOR])
    assert told["messages"] == (curator.sent + curator.received).total()
    assert told["rounds"] == curator.round
    assert told["bought"] == curator.bought.total()
    assert set(told["parties"]) == set(paths)
    assert told["not_told"] == []


def test_a_run_s_directory_and_html_for_output(paths: dict[str, Path], tmp_path: Path) -> None:
    for party, path in paths.items():
        state = tmp_path / "run" / "parties" / party / "state"
        state.mkdir(parents=True)
        (state / path.name).write_bytes(path.read_bytes())
    output = tmp_path / "page.html"
    assert set(replayed(tmp_path / "run", "--html", output)["parties"]) == set(paths)
    before = output.read_bytes()
    assert replayed(tmp_path / "run", "--html", output)["replay"] == str(output)
    assert output.read_bytes() == before, "the same session is replaced by the same page"


def test_what_is_not_told_is_printed(paths: dict[str, Path], tmp_path: Path) -> None:
    output = tmp_path / "page.html"
    ended = CliRunner().invoke(app, ["replay", str(paths[CONSUMER]), "--output", str(output)])
    assert ended.exit_code == 0
    assert "The curator's transcript is not here" in ended.output + ended.stderr


def test_a_damaged_end_is_printed_and_is_no_error(paths: dict[str, Path], tmp_path: Path) -> None:
    copy = tmp_path / "curator.transcript"
    image = bytearray(paths[CURATOR].read_bytes())
    image[-40] ^= 1
    copy.write_bytes(image)
    told = replayed(copy, "--output", tmp_path / "page.html")
    assert "is damaged" in told["parties"][CURATOR]["stopped"]


@pytest.mark.parametrize("content", [b"a transcript, perhaps", b""])
def test_what_is_no_replay_is_not_replaced(content: bytes, paths: dict[str, Path], tmp_path: Path) -> None:
    output = tmp_path / "page.html"
    output.write_bytes(content)
    assert "is not a replay" in replayed(paths[CURATOR], "--output", output, code=4)["error"]["what"]
    assert output.read_bytes() == content


def test_the_replay_of_another_session_is_not_replaced(paths: dict[str, Path], tmp_path: Path) -> None:
    output = tmp_path / "page.html"
    other = tmp_path / "other"
    other.mkdir()
    replayed(recorded_with(other, "ask-all")[CURATOR], "--output", output)
    before = output.read_bytes()
    assert "another session" in replayed(paths[CURATOR], "--output", output, code=4)["error"]["what"]
    assert output.read_bytes() == before


def test_a_directory_without_transcripts_is_refused(tmp_path: Path) -> None:
    assert "has no transcript" in replayed(tmp_path, code=4)["error"]["what"]
