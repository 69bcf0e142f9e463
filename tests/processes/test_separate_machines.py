"""From `keys new` to a finished session by the verbs alone, each party in a directory of its own."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w

from hushbid.cli.app import main
from hushbid.roster.changes import revoke
from hushbid.running.fork_server import party_environment
from tests.conftest import ROOT
from tests.processes.cluster import PATIENCE, Cluster, free_port
from tests.processes.forked import ForkedProcess, PartyProcess

PARTIES = ("curator", "consumer", "north", "south")


class Machines:
    """Four machines, as far as files go: nothing is shared except what somebody sends."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.port = free_port()
        self.processes: dict[str, PartyProcess] = {}
        for number, party in enumerate(PARTIES):
            (place / party).mkdir(mode=0o700)
            if party != "curator":
                self._furnish(party, np.random.default_rng([number, 7]))

    def of(self, party: str) -> Path:
        return self.place / party

    def _furnish(self, party: str, rng: np.random.Generator) -> None:
        own = {"consumer": {"validation": 120, "seed-set": 20}}.get(party, {"customers": 150})
        for name, rows in own.items():
            lines = ["customer,share,score,age,product"]
            for row in range(rows):
                share, score, age = rng.random(), 100 * rng.random(), int(rng.integers(18, 100))
                lines.append(f"{party}-{name}-{row},{share:.3f},{score:.1f},{age},{'ab'[row % 2]}")
            (self.of(party) / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def send(self, sender: str, file: str, receiver: str) -> None:
        shutil.copy(self.of(sender) / file, self.of(receiver) / file)

    def hushbid(self, party: str, *arguments: str) -> dict[str, Any]:
        """Run a verb to its end on a party's machine, as the command line does; returns its JSON."""
        said = io.StringIO()
        with (
            contextlib.chdir(self.of(party)),
            contextlib.redirect_stdout(said),
            pytest.MonkeyPatch.context() as patch,
        ):
            patch.setattr(sys, "argv", ["hushbid", *arguments, "--json"])
            with pytest.raises(SystemExit) as ending:
                main()
        assert ending.value.code == 0, said.getvalue()
        found: dict[str, Any] = json.loads(said.getvalue())
        return found

    def start(self, party: str, *arguments: str) -> None:
        """Start a party on its machine."""
        out, err = self.of(party) / "out", self.of(party) / "err"
        out.write_bytes(b"")
        err.touch()
        self.processes[party] = ForkedProcess(
            "hushbid", [*arguments, "--json"],
            directory=self.of(party), environment=party_environment(os.environ), out=out, err=err,
        )  # fmt: skip

    def log(self, party: str) -> str:
        return (self.of(party) / "err").read_text(encoding="utf-8")

    def until_said(self, party: str, text: str) -> None:
        """Wait until a party has logged something."""
        deadline = time.monotonic() + PATIENCE
        while text not in self.log(party):
            assert time.monotonic() < deadline, f"{party} did not say {text!r}:\n{self.log(party)}"
            assert self.processes[party].poll() is None, self.log(party)
            time.sleep(0.02)

    def end(self, party: str) -> dict[str, Any]:
        """Wait for a party's end; returns its JSON and its exit code."""
        code = self.processes[party].wait(PATIENCE)
        found: dict[str, Any] = json.loads((self.of(party) / "out").read_text(encoding="utf-8"))
        return found | {"code": code}

    def close(self) -> None:
        for process in self.processes.values():
            if process.poll() is None:
                process.kill()
            process.wait()

    # -- what people do, in their order ---------------------------------------------------------------

    def collect_keys(self) -> None:
        """Every party makes its key and requests a place; the curator's operator approves them all."""
        self._write_session()
        told = []
        for party in PARTIES:
            told.append(self.hushbid(party, "keys", "new", party)["fingerprint"])
            role = "owner" if party in ("north", "south") else party
            self.hushbid(party, "keys", "request", party, "--role", role)
            if party != "curator":
                self.send(party, f"{party}.request", "curator")
        requests = [f"{party}.request" for party in PARTIES]
        compared = [
            word
            for party, text in zip(PARTIES, told, strict=True)
            for word in ("--fingerprint", f"{party}={text}")
        ]
        session = ("--session", "session.toml")
        approved = self.hushbid("curator", "keys", "approve", *requests, *session, *compared)
        assert approved["problem"] is None

    def _write_session(self) -> None:
        """The example of configs/separate: shorter, and at this machine's address."""
        text = (ROOT / "configs" / "separate" / "session.toml").read_text(encoding="utf-8")
        for old, new in (
            ("points = 500 ", "points = 12  "),
            ("epsilon = 1.0", "epsilon = 5.0"),
            ("tcp://curator.example.org:5790", f"tcp://localhost:{self.port}"),
        ):
            assert old in text
            text = text.replace(old, new)
        (self.of("curator") / "session.toml").write_text(text, encoding="utf-8")
        own = {"key": "curator.key", "state": "state", "listen": f"tcp://127.0.0.1:{self.port}"}
        (self.of("curator") / "curator.toml").write_text(tomli_w.dumps(own), encoding="utf-8")
        shutil.copy(ROOT / "configs" / "separate" / "consumer.toml", self.of("consumer"))
        text = (self.of("consumer") / "consumer.toml").read_text(encoding="utf-8")
        text = text.replace('test = "test.csv"', "").replace("epsilon = 3.0", "epsilon = 10.0")
        (self.of("consumer") / "consumer.toml").write_text(text, encoding="utf-8")

    def invite(self) -> None:
        for party, who in (("north", ("--owner", "north")), ("south", ("--owner", "south"))):
            self.hushbid("curator", "invite", "--session", "session.toml", *who)
            self.send("curator", f"{party}.invitation", party)
        self.hushbid("curator", "invite", "--session", "session.toml", "--consumer")
        self.send("curator", "consumer.invitation", "consumer")

    def own(self, party: str) -> tuple[str, ...]:
        """A party's options, for its start and its preflight."""
        if party == "curator":
            return ("--session", "session.toml", "--config", "curator.toml")
        if party == "consumer":
            return ("--invitation", "consumer.invitation", "--config", "consumer.toml")
        columns = ("--label", "product", "--identifier", "customer")
        budget = ("--budget-epsilon", "10")
        return ("--invitation", f"{party}.invitation", "--data", "customers.csv", *columns, *budget)

    def role(self, party: str) -> str:
        return party if party in ("curator", "consumer") else "owner"


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    found = Machines(tmp_path)
    yield found
    found.close()


def test_from_the_first_key_to_the_delivery_by_the_verbs_alone(machines: Machines) -> None:
    machines.collect_keys()
    machines.invite()
    for party in PARTIES:
        with_its_key = [other for other in PARTIES if (machines.of(other) / f"{party}.key").exists()]
        assert with_its_key == [party], "it stays where it was made"
    checks = machines.hushbid("curator", "preflight", *machines.own("curator"))["checks"]
    assert {check["status"] for check in checks} == {"ok", "not checked"}
    machines.start("curator", "curator", *machines.own("curator"))
    machines.until_said("curator", "listening at")
    for party in ("north", "consumer"):
        checks = machines.hushbid(party, "preflight", *machines.own(party))["checks"]
        by_name = {check["check"]: check for check in checks}
        assert by_name["handshake"]["status"] == "ok"
        assert [check["check"] for check in checks if check["status"] == "not checked"] == ["fingerprints"]
    for party in PARTIES[1:]:
        machines.start(party, machines.role(party), *machines.own(party))
    ended = {party: machines.end(party) for party in PARTIES}
    assert {end["code"] for end in ended.values()} == {0}, ended
    assert ended["consumer"]["points_delivered"] == 12
    assert ended["consumer"]["disputed"] == 0
    assert ended["consumer"]["verdict"]["anyway"] is False, "it was rehearsed, and not hopeless"
    assert ended["north"]["handed_over"] + ended["south"]["handed_over"] >= 12
    state = machines.of("north") / "north-two-owners"
    assert Path(ended["north"]["transcript"]) == state / "north.transcript"
    assert Path(ended["north"]["ledger"]) == machines.of("north") / "customers.csv.ledger"


def test_a_revoked_owner_is_shut_out_and_the_session_goes_on_as_the_same_one(tmp_path: Path) -> None:
    with Cluster(tmp_path, changes={"timeouts.comeback": 2.0}) as cluster:
        pace = cluster.puppet("magpie")
        pace.hold_bids_from(5)
        cluster.start_all(but=["magpie"])
        cluster.until(lambda: cluster.round() == 5, "round 5")
        cluster.signal("curator", signal.SIGTERM)
        cluster.end("curator")
        at = cluster.directory("curator")
        before = (at / "session.toml").read_bytes()
        assert revoke("ostrich", at / "session.toml", at / "party.toml")["file"] == str(at / "party.toml")
        cluster.start("curator")
        shut_out = cluster.end("ostrich")["ostrich"]
        assert shut_out.code == 2
        assert "does not know our key" in shut_out.error["what"]
        pace.let_go()
        ended = cluster.end("curator", "consumer", "heron")
        assert {end.code for end in ended.values()} == {0}, ended
        assert ended["consumer"].json["points_delivered"] == 20
        assert ended["curator"].json["absences"]["ostrich"] >= 15
        assert (at / "session.toml").read_bytes() == before
        assert "unknown-key" in cluster.log("curator")


@pytest.mark.parametrize(
    ("changes", "what"),
    [({"revoked": ["emu"]}, "revokes emu"), ({"revoked": ["heron"], "key": None}, "without keys")],
)
def test_a_curator_refuses_to_revoke_what_it_cannot(
    tmp_path: Path, changes: dict[str, Any], what: str
) -> None:
    insecure = {"network.insecure": True} if "key" in changes else {}
    with Cluster(tmp_path, changes=insecure) as cluster:
        cluster.change("curator", changes, file="party.toml")
        cluster.start("curator")
        assert what in cluster.end("curator")["curator"].error["what"]
