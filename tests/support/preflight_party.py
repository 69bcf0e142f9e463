"""A party for preflight: its directory, in which all is well at first."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import tomli_w

from hushbid.cli.app import main
from hushbid.protocol.runtime.keys import new_keypair, write_secret
from tests.support.session_files import changed

__all__ = ["KEYS", "PRIVATE", "Party", "Report"]

KEYS = {name: new_keypair() for name in ("curator", "consumer", "north")}
PRIVATE: dict[str, Any] = {
    "session.allow_nonprivate": False,
    "session.points": 5,
    "features.seed": None,
    "target": {"mechanism": "filtered-gaussian", "epsilon": 1.0, "neighbours": "substitute-one"},
    "summary": {"mechanism": "filtered-gaussian", "epsilon": 1.0, "neighbours": "add-remove-one"},
    "acquisition": {"rule": "sealed"},
    "noise": {"source": "secure"},
}


class Report(NamedTuple):
    """Preflight's output and exit code."""

    code: int
    checks: dict[str, dict[str, str]]
    err: str

    @property
    def problems(self) -> list[str]:
        return [name for name, check in self.checks.items() if check["status"] == "problem"]


class Party:
    """A party's directory, in which all is well at first."""

    def __init__(self, place: Path, role: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.place, self.role = place, role
        self.name = "north" if role == "owner" else role
        self._monkeypatch = monkeypatch
        self._capture: pytest.CaptureFixture[str]
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.port = probe.getsockname()[1]
        roster: dict[str, Any] = {name: pair.public.text for name, pair in KEYS.items()}
        roster["owners"] = {"north": roster.pop("north")}
        self.session = changed(PRIVATE) | {
            "network": {"address": f"tcp://127.0.0.1:{self.port}"},
            "roster": roster,
        }
        write_secret(place / "secret.key", KEYS[self.name])
        rng = np.random.default_rng(3)
        for name in ("data", "validation", "seed"):
            np.savez(place / f"{name}.npz", features=rng.random((20, 3)))
        self.own: dict[str, Any] = {"key": "secret.key", "state": "state"}
        if role == "owner":
            self.own |= {"name": "north", "data": "data.npz", "budget": {"epsilon": 2.0}}
        elif role == "consumer":
            self.own |= {"validation": "validation.npz", "seed_set": "seed.npz"}

    def preflight(self, *options: str) -> Report:
        (self.place / "session.toml").write_text(tomli_w.dumps(self.session), encoding="utf-8")
        (self.place / "party.toml").write_text(tomli_w.dumps(self.own), encoding="utf-8")
        files = ["--session", str(self.place / "session.toml"), "--config", str(self.place / "party.toml")]
        self._monkeypatch.setattr(sys, "argv", ["hushbid", "preflight", *files, *options, "--json"])
        with pytest.raises(SystemExit) as ending:
            main()
        captured = self._capture.readouterr()
        said = json.loads(captured.out)
        assert isinstance(ending.value.code, int)
        checks = {check["check"]: check for check in said["checks"]}
        return Report(int(ending.value.code), checks, captured.err)
