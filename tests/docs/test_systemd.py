"""The units of configs/systemd say what the command line takes, and start what can be started."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w
import typer

from hushbid.cli.app import app, main
from hushbid.protocol.config.invitation import invitation
from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.errors import ExitCode, Restart
from hushbid.protocol.runtime.keys import new_keypair, write_secret
from tests.conftest import ROOT
from tests.support.session_files import changed

UNITS = sorted((ROOT / "configs" / "systemd").glob("*.service"))
INSTALLED = "/opt/hushbid/.venv/bin/hushbid"


def settings(unit: Path) -> list[tuple[str, str]]:
    """The settings of a unit, in order; one may occur several times."""
    lines = (line.strip() for line in unit.read_text(encoding="utf-8").splitlines())
    told = (line.partition("=") for line in lines if line and line[0] not in "#[")
    return [(name, value) for name, _, value in told]


def values(unit: Path, name: str) -> list[str]:
    return [value for found, value in settings(unit) if found == name]


def environment(unit: Path) -> dict[str, str]:
    told = (value.partition("=") for value in values(unit, "Environment"))
    return {name: value for name, _, value in told}


def verb(name: str) -> Any:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    assert name in commands
    return commands[name]


def test_there_is_a_unit_for_every_role() -> None:
    assert [unit.name for unit in UNITS] == [
        "hushbid-consumer.service",
        "hushbid-curator.service",
        "hushbid-owner@.service",
    ]


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_unit_runs_a_verb_that_there_is_with_what_it_takes(unit: Path) -> None:
    lines = [line.split() for name in ("ExecStartPre", "ExecStart") for line in values(unit, name)]
    assert [line[:2] for line in lines] == [
        [INSTALLED, "preflight"],
        [INSTALLED, unit.stem.removeprefix("hushbid-").rstrip("@")],
    ]
    for _, name, *options in lines:
        taken = {option for parameter in verb(name).params for option in parameter.opts}
        assert set(options) <= taken
        read = {parameter.envvar for parameter in verb(name).params}
        assert environment(unit).keys() <= read | {"XDG_STATE_HOME"}, "what is set is read"
        assert ("XDG_STATE_HOME" in environment(unit)) == ("HUSHBID_LEDGER" in environment(unit))
        required = {parameter.envvar for parameter in verb(name).params if parameter.required}
        assert required <= environment(unit).keys(), "what is needed is set"


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_unit_is_not_restarted_where_that_cannot_help(unit: Path) -> None:
    [codes] = values(unit, "RestartPreventExitStatus")
    over = {code for code in ExitCode if code.restart in (Restart.OVER, Restart.PERSON)}
    assert {int(code) for code in codes.split()} == over


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_systemd_finds_nothing_wrong_with_a_unit(tmp_path: Path, unit: Path) -> None:
    copy = tmp_path / unit.name.replace("@.", "@north.")
    copy.write_text(unit.read_text(encoding="utf-8").replace(INSTALLED, sys.executable), encoding="utf-8")
    ended = subprocess.run(
        ["systemd-analyze", "verify", str(copy)], capture_output=True, text=True, timeout=240, check=False
    )
    about_it = [line for line in ended.stderr.splitlines() if copy.name in line]
    assert (ended.returncode, about_it) == (0, []), ended.stderr


def test_an_owner_s_unit_passes_its_own_preflight(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {name: new_keypair() for name in ("curator", "consumer", "north")}
    roster = {name: pair.public.text for name, pair in keys.items()}
    network = {"address": "tcp://curator.example.org:5790"}
    own = {"acquisition.rule": "sealed", "features.seed": None, "noise": {"source": "secure"}}
    session = changed({"session.points": 5, "network": network, **own}) | {
        "roster": {"owners": {"north": roster.pop("north")}, **roster}
    }
    etc, state = tmp_path / "etc", tmp_path / "lib"
    (state / "hushbid" / "north").mkdir(parents=True)
    etc.mkdir()
    write_secret(etc / "north.key", keys["north"])
    made = invitation(SessionFile.model_validate(session), "north", keys["curator"])
    (etc / "north.invitation").write_text(tomli_w.dumps(made), encoding="utf-8")
    np.savez(tmp_path / "data.npz", features=np.random.default_rng(1).random((10, 3)))
    unit = next(unit for unit in UNITS if "owner" in unit.name)
    for name, value in environment(unit).items():
        here = value.replace("/etc/hushbid", str(etc)).replace("%S", str(state)).replace("%i", "north")
        monkeypatch.setenv(name, here)
    monkeypatch.setenv("HUSHBID_DATA", str(tmp_path / "data.npz"))
    [before] = values(unit, "ExecStartPre")
    monkeypatch.setattr(sys, "argv", ["hushbid", *before.split()[1:]])
    with pytest.raises(SystemExit) as ending:
        main()
    assert ending.value.code == 0
