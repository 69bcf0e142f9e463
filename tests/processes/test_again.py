"""A session between machines that was given up, from `hushbid init` to `hushbid again`."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from hushbid.protocol.config.loading import load_toml
from hushbid.protocol.config.party import CuratorFile
from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.errors import ExitCode
from hushbid.protocol.machine.machine import Finish
from hushbid.protocol.machine.participant import ABANDONED
from hushbid.protocol.runtime.files.signed_files import read_invitation
from hushbid.protocol.runtime.taking_part import _with_the_end
from hushbid.protocol.runtime.telemetry.status_file import Status, process_start, status_path
from hushbid.protocol.session.guarantee import CONSUMERS_DATA, OWNERS_DATA
from tests.processes.forked import ran


def hushbid(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return ran("hushbid", arguments, place, seconds=240)


def told(place: Path, *arguments: str) -> dict[str, Any]:
    ended = hushbid(place, *arguments, "--json")
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert isinstance(found, dict)
    return found


def error(place: Path, *arguments: str) -> dict[str, Any]:
    ended = hushbid(place, *arguments, "--json")
    found = json.loads(ended.stdout)["error"]
    assert ended.returncode == found["exit_code"] == 4, ended.stderr
    assert isinstance(found, dict)
    return found


@pytest.fixture(scope="module")
def given_up(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The curator's directory of a session to which nobody came."""
    place = tmp_path_factory.mktemp("given-up")
    draw = np.random.default_rng(0)
    rows = pd.DataFrame({"salt": draw.random(80).round(3), "sort": draw.choice(["a", "b"], 80)})
    rows["seen"] = [f"2024-0{month}-11" for month in draw.integers(3, 9, 80)]
    rows.to_csv(place / "wanted.csv", index=False)
    arguments = ["init", "wanted.csv", "--for", "several", "--owner", "north", "--output", "sea"]
    commands = [shlex.split(each["command"]) for each in told(place, *arguments)["commands"]]
    sea = place / "sea"
    for _, verb, *rest in commands:  # each party's on its machine; here they are all in one directory
        if verb in ("curator", "owner", "consumer", "invite", "results"):
            continue
        if rest[0] == "approve":
            requests = [path.name for path in sorted(sea.glob("*.request"))]
            rest = ["approve", *requests, "--session", "session.toml", "--yes"]
        rest = [word.removeprefix("sea/") for word in rest]
        rest = ["." if word == "sea" else word for word in rest]
        assert (ended := hushbid(sea, verb, *rest)).returncode == 0, (rest, ended.stderr)
    session = sea / "session.toml"
    text = session.read_text().replace("enrolment = 3600.0", "enrolment = 1.0")
    session.write_text(text.replace("tcp://curator.example.org:5790", "tcp://127.0.0.1:*"))
    return sea


@pytest.fixture
def sea(given_up: Path, tmp_path: Path) -> Path:
    return shutil.copytree(given_up, tmp_path / "the sea")


def test_who_gives_a_session_up_says_how_another_begins(sea: Path) -> None:
    assert "has not begun" in error(sea, "again", "session.toml")["what"]
    for _ in range(2):  # another start changes nothing, and says so
        ended = hushbid(sea, "curator", "--session", "session.toml", "--config", "curator.toml")
        assert ended.returncode == ExitCode.TIMEOUT
        assert "The session is over" in ended.stderr
        assert "`hushbid again SESSION`" in ended.stderr
        assert "Start it" not in ended.stderr

    session = sea / "session.toml"
    session.write_text(session.read_text().replace("127.0.0.1:*", "127.0.0.1:25790"))
    before = {path: path.read_bytes() for path in sea.iterdir() if path.is_file()}
    place = sea.parent
    found = told(place, "again", "the sea/session.toml", "--enrolment", "2", "--min-owners", "1")
    assert {path: path.read_bytes() for path in before} == before, "files of before stay"
    assert found["outcome"] == "given up"
    assert found["charges"] == {OWNERS_DATA: 0.0, CONSUMERS_DATA: pytest.approx(3.0)}
    [owner] = [shlex.split(each["command"]) for each in found["commands"] if each["where"] == "north"]
    assert (sea / owner[owner.index("--config") + 1]).is_file(), "the name that init gave it"
    old, new = (load_toml(SessionFile, path) for path in (session, place / found["session_file"]))
    assert new.roster == old.roster
    assert new.session.nonce == found["nonce"] != old.session.nonce
    assert (new.timeouts.enrolment, new.session.min_owners) == (2.0, 1)
    assert new.digest() != old.digest()
    curators = [load_toml(CuratorFile, path) for path in (sea / "curator.toml", place / found["config_file"])]
    assert len({file.state for file in curators}) == 2
    assert len({file.key for file in curators}) == 1
    assert set(found["invitations"]) == {"consumer", "north"}
    for path in found["invitations"].values():
        assert read_invitation(place / path).configuration.digest() == new.digest()
        assert "# lower 2024-01-01, upper 2025-01-01" in (place / path).read_text()
    other = error(place, "again", found["session_file"], "--config", "the sea/curator.toml")
    assert "is of another session" in other["what"]
    assert "curator-2.toml" in other["advice"]
    command = next(each["command"] for each in found["commands"] if each["where"] == "curator")
    ended = hushbid(place, *shlex.split(command)[1:])
    assert ended.returncode == ExitCode.TIMEOUT, "it is a session that begins, and nobody came to it"
    again = told(place, "again", found["session_file"], "--config", found["config_file"])
    assert again["session_file"] == "the sea/session-3.toml"
    ended_well = status_path(sea / "curator-state", "curator")
    replace(Status.read(ended_well), phase="done", finished=True, exit_code=0).write(ended_well)
    said = hushbid(sea, "again", "session.toml").stdout
    assert said.startswith("The session is complete: this begins another, and everybody is charged anew.")
    assert re.search(f"^charged to {CONSUMERS_DATA} +ε = 3$", said, re.M)


def test_a_session_that_runs_or_was_stopped_is_not_begun_again(sea: Path) -> None:
    assert hushbid(sea, "curator", "--session", "session.toml", "--config", "curator.toml").returncode == 3
    place = status_path(sea / "curator-state", "curator")
    running = replace(
        Status.read(place),
        finished=False,
        exit_code=None,
        pid=os.getpid(),
        process_start=process_start(os.getpid()),
    )
    running.write(place)
    assert "hushbid status --watch" in error(sea, "again", "session.toml")["advice"]


@pytest.mark.parametrize(
    ("name", "text", "advice"),
    [
        ("cluster.toml", "[owners.a]\ndata = 'a.csv'\n[session]\nname = 'a'\n", "hushbid run"),
        ("nothing.toml", None, ""),
    ],
)
def test_what_is_no_session_file_is_told_what_to_do(
    tmp_path: Path, name: str, text: str | None, advice: str
) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    assert advice in error(tmp_path, "again", name)["advice"]
    assert "hushbid run" in error(tmp_path, "again", ".")["advice"]


@pytest.mark.parametrize(
    ("code", "reason", "phase", "said"),
    [
        (ExitCode.TIMEOUT, "The curator never answered.", "greeting", "If it was given up before"),
        (ExitCode.TIMEOUT, "The curator has been gone too long.", "rounds", "may be over by now"),
        (ExitCode.FAILED, ABANDONED, "done", "The session is over"),
    ],
)
def test_who_waits_for_a_curator_is_told_how_another_session_begins(
    code: ExitCode, reason: str, phase: str, said: str
) -> None:
    ended = _with_the_end(Finish(code, reason, "Its log says why."), phase, forgotten=False)
    assert ended.advice.startswith("Its log says why. ")
    assert said in ended.advice
    assert "`hushbid again`" in ended.advice
    well = Finish(ExitCode.DONE, "The session is complete.")
    assert _with_the_end(well, "done", forgotten=False) is well
