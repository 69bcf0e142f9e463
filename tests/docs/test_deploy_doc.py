"""The walk-through of docs/deploy.md does what it says: its quick commands are run in order.

Each machine is a directory. Commands that take long or need the network are left out: the parties themselves,
and root's; tests/processes/test_separate_machines.py runs a whole session.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from hushbid.cli.app import main
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("## Each party on its own machine")[2]
MACHINES = ("curator", "consumer", "north", "south")
HOSTS = {
    "curator.example.org": "curator",
    "consumer.example.com": "consumer",
    "north.example.net": "north",
    "south.example.net": "south",
}
FINGERPRINT = re.compile(r"\b[A-Z2-7]{4}(?:-[A-Z2-7]{4}){3}\b")
VARYING = (
    (FINGERPRINT, "FINGERPRINT"),
    (re.compile(r"(?<=public key   )\S{40}"), "KEY"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "DIGEST"),
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "TIME"),
    (re.compile(r"[\d.]+ [MG]B are free"), "SIZE are free"),
    (re.compile(r"(?<=row )\d+"), "N"),
    (re.compile(r"Python [\d.]+, numpy [\d.]+, pyzmq [\d.]+, libzmq [\d.]+"), "VERSIONS"),
)


def commands() -> list[tuple[str, str, str]]:
    """The machine, the command, and the output shown, for every command of the walk-through."""
    found: list[tuple[str, str, str]] = []
    for block in re.findall(r"^```console\n(.*?)^```$", SECTION, re.M | re.S):
        for line in block.splitlines():
            if match := re.fullmatch(rf"({'|'.join(MACHINES)})\$ (.*)", line):
                found.append((match[1], match[2], ""))
            elif found and not block.startswith("#"):
                machine, command, printed = found[-1]
                found[-1] = (machine, command, f"{printed}{line}\n")
    return found


def stable(printed: str, place: str = "") -> str:
    """The part of a command's output that never changes."""
    printed = printed.replace(place, "/srv/hushbid") if place else printed
    for pattern, name in VARYING:
        printed = pattern.sub(name, printed)
    return printed


class Walk:
    """A reader who follows the page."""

    def __init__(self, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.place = place
        self.monkeypatch = monkeypatch
        self.fingerprints: dict[str, str] = {}
        """On the page -> here."""
        self.made: dict[str, str] = {}
        """Party -> the fingerprint of the key that it made here."""
        rng = np.random.default_rng(5)
        for machine in MACHINES:
            (place / machine).mkdir(mode=0o700)
            lines = ["customer,share,score,age,product"]
            for row in range(40):
                share, score, age = rng.random(), rng.uniform(2, 100), rng.integers(18, 100)
                lines.append(f"{machine}{row},{share:.3f},{score:.1f},{age},{'ab'[row % 2]}")
            (place / machine / "customers.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def follow(self, machine: str, command: str, printed: str) -> str | None:
        """Do what a line says; returns the output, or None if the test does not run it."""
        for party, told in re.findall(rf"\b(\w+)=({FINGERPRINT.pattern})", command):
            assert self.fingerprints.setdefault(told, self.made[party]) == self.made[party]
        words = [self._here(word) for word in shlex.split(command)]
        at = self.place / machine
        if words[0] == "scp":
            shutil.copy(at / words[1], self.place / HOSTS[words[2].rstrip(":")])
            return ""
        if words[0] == "cp":
            for source in words[1:-1]:
                shutil.copy(source.replace("/opt/hushbid", str(ROOT)), at)
            return ""
        if words[0] == "chmod":
            (at / words[2]).chmod(int(words[1], 8))
            return ""
        assert words[0] == "hushbid"
        if words[1] in ("curator", "owner", "consumer") or (
            words[1] == "preflight" and "--offline" not in words
        ):
            return None
        said = self._run(at, words)
        if words[1:3] == ["keys", "new"]:
            self.made[words[3]] = FINGERPRINT.findall(said)[0]
        if printed:
            found = zip(FINGERPRINT.findall(printed), FINGERPRINT.findall(said), strict=True)
            self.fingerprints.update(found)
        return said

    def _here(self, word: str) -> str:
        return FINGERPRINT.sub(lambda found: self.fingerprints.get(found[0], found[0]), word)

    def _run(self, at: Path, words: list[str]) -> str:
        said = io.StringIO()
        self.monkeypatch.setattr(sys, "argv", words)
        with contextlib.chdir(at), contextlib.redirect_stdout(said), pytest.raises(SystemExit):
            main()
        return said.getvalue()


def about(command: str) -> str:
    """The party that a command names."""
    return next(party for party in command.replace("--", "").split()[3:] if party in MACHINES)


def test_the_walk_through_prints_what_the_page_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a party repeats another's command, the page omits the output: it is the same with its name."""
    walk = Walk(tmp_path, monkeypatch)
    ran: list[str] = []
    shown: dict[str, tuple[str, str]] = {}
    for machine, command, printed in commands():
        said = walk.follow(machine, command, printed)
        if said is None:
            continue
        verb = " ".join(command.split()[1:3])
        if said and not printed:
            before, example = shown[verb]
            printed = example.replace(before, about(command))
        elif command.startswith(("hushbid keys new", "hushbid keys request", "hushbid invite")):
            shown[verb] = about(command), printed
        assert stable(said, str(tmp_path / machine)) == stable(printed), command
        if command.startswith("hushbid"):
            ran.append(verb)
    assert sorted(walk.fingerprints.values()) == sorted(walk.made.values()), (
        "a party has one fingerprint on the page"
    )
    assert ran.count("keys new") == 4
    assert {"keys request", "keys approve", "keys list", "keys revoke", "preflight --offline"} <= set(ran)
    assert ran.count("invite --session") == 3


def test_the_page_says_which_budgets_end_preflight_with_which_code() -> None:
    page = " ".join(PAGE.split())
    said = page.partition("The exit code is 0 if nothing is a problem")[2].partition("*warning*")[0]
    assert "1 if what is left of the budget is too little" in said
    assert re.search(r"charged to another ledger\]\(\S+#the-same-rows-elsewhere\), .* is 4 too", said)
