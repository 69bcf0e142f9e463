"""The very Dockerfile and docker-compose.yml, in a real engine: a session from a clean clone, one in trouble.

All is in one file, so that no two workers of pytest-xdist start sessions at the same time.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.containers.belongings import (
    contents,
    encoded,
    found_in,
    found_in_stream,
    rows_of,
    secrets_of,
)
from tests.containers.compose import IMAGE, Deployment, clean_clone, docker, why_no_engine

pytestmark = pytest.mark.timeout(1100)

USER = "10001"
POINTS = 200
"""Of the demonstration."""


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clean clone on a machine that has the base image and the wheelhouse, and the image built from it."""
    reason = why_no_engine()
    if reason is not None:
        pytest.skip(reason)
    made = make("base-image")
    if made.returncode != 0:
        pytest.skip(f"no base image: {made.stderr.strip()[-300:]}")
    fetched = make("wheelhouse")
    assert fetched.returncode == 0, fetched.stderr
    clone = clean_clone(tmp_path_factory.mktemp("clone"))
    with Deployment(clone) as deployment:
        built = deployment.compose("build", "setup", timeout=600)
    assert built.returncode == 0, built.stdout[-2000:] + built.stderr[-2000:]
    shutil.rmtree(clone / "wheelhouse")  # it is large, and the image has what it needs
    return clone


def make(target: str) -> subprocess.CompletedProcess[str]:
    # `timeout` ends all that make has started, and so the pipes that are read here.
    command = ["timeout", "--kill-after=10", "240", "make", "--silent", target]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@dataclass(frozen=True)
class Session:
    """A session that is over, whose containers are still there."""

    deployment: Deployment
    files: Path
    """Copies of every party's volumes, as PARTY/VOLUME."""

    def transcript(self, party: str) -> Path:
        return self.files / party / "state" / f"{party}.transcript"

    def events(self, party: str) -> list[tuple[str, str]]:
        """Every event in a party's transcript: its kind, or what message it is, and which peer or timer."""
        return list(_events_in(self.transcript(party)))

    def verified(self) -> bool:
        """Whether all transcripts hold, and agree with each other."""
        paths = [str(self.transcript(party)) for party in self.deployment.parties]
        found = json.loads(hushbid("transcript", "verify", "--json", *paths))
        assert len(found["transcripts"]) == len(paths)
        assert {each["signature"] for each in found["transcripts"]} == {"holds"}
        return bool(found["ok"])


@cache
def _events_in(transcript: Path) -> tuple[tuple[str, str], ...]:
    shown = hushbid("transcript", "show", str(transcript), "--private", "--json")
    events = [json.loads(line).get("event") for line in shown.splitlines()]
    return tuple(_kind_and_whose(event) for event in events if event is not None)


def _kind_and_whose(event: Mapping[str, Any]) -> tuple[str, str]:
    fields = {**event["public"], **event["private"]}
    if event["kind"] == "received":
        return fields["frame"]["message"], fields["frame"]["peer"]
    return event["kind"], fields.get("peer") or fields.get("name", "")


def hushbid(*arguments: str) -> str:
    """What a verb prints that ends well."""
    done = subprocess.run(
        [sys.executable, "-m", "hushbid", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{arguments}: {done.stderr}\n{done.stdout}"
    return done.stdout


# -- a session from a clean clone -----------------------------------------------------------------------


@dataclass(frozen=True)
class Finished(Session):
    printed: str
    """By docker-compose."""


@pytest.fixture(scope="module")
def finished(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Finished]:
    """The demonstration as it is in the clone."""
    with Deployment(clone) as deployment:
        up = deployment.compose("up", "--no-color", timeout=300)
        assert up.returncode == 0, up.stdout[-2000:] + up.stderr[-2000:]
        files = deployment.copy_out(tmp_path_factory.mktemp("finished"))
        yield Finished(deployment, files, up.stdout)


def test_up_from_a_clean_clone_ends_well_and_prints_the_result(finished: Finished) -> None:
    services = ("setup", *finished.deployment.parties)
    assert finished.deployment.wait(services) == dict.fromkeys(services, 0), finished.printed
    for line in (
        rf"consumer\S* +\| +points delivered +{POINTS} of {POINTS}, 0 disputed",
        r"consumer\S* +\| +MMD² to the validation set +0\.\d+",
        r"consumer\S* +\| +accuracy +[01]\.\d+",
    ):
        assert re.search(line, finished.printed), finished.printed
    settled = re.findall(r"curator\S* +\| Settlement of (owner-\d+): [+-]\d", finished.printed)
    assert settled == list(finished.deployment.owners)
    assert finished.verified()


def test_a_container_is_given_its_own_volumes_and_those_only(finished: Finished) -> None:
    for party in finished.deployment.parties:
        mounts = {mount["Name"]: mount["RW"] for mount in finished.deployment.inspect(party)["Mounts"]}
        assert mounts == {
            f"{finished.deployment.project}_session": False,
            f"{finished.deployment.project}_{party}-key": False,
            f"{finished.deployment.project}_{party}-data": True,
            f"{finished.deployment.project}_{party}-state": True,
        }


def test_nobody_has_what_is_anothers(finished: Finished) -> None:
    """In the volumes, and in all that the engine tells of a container: environment, arguments, labels."""
    parties = finished.deployment.parties
    secrets = {party: secrets_of(finished.files / party) for party in parties}
    rows = {party: rows_of((finished.files / party / "data").glob("*.npz")) for party in parties}
    bought = set(rows_of([finished.files / "consumer" / "state" / "delivered.npz"]))
    for holder in parties:
        held = contents(finished.files / holder) + json.dumps(finished.deployment.inspect(holder)).encode()
        others = [party for party in parties if party != holder]
        not_its_own = {f"secret key of {party}": secrets[party] for party in others} | {
            f"records of {party}": encoded(
                row for row in rows[party] if holder != "consumer" or row not in bought
            )
            for party in others
        }
        assert found_in(held, not_its_own) == {}
        # The search finds what is there: a party's own things, and with the consumer all that it bought.
        its_own = {"key": secrets[holder], "records": encoded(rows[holder])}
        assert found_in(held, its_own).get("key", 0) >= 1
        assert found_in(held, its_own).get("records", 0) >= len(rows[holder])
        if holder == "consumer":
            assert found_in(held, {"bought": encoded(bought)})["bought"] >= POINTS


def test_the_file_system_that_all_have_holds_nothing_of_anybody(finished: Finished) -> None:
    """Of one container, since all have the same image, and none can write to it."""
    services = ("setup", *finished.deployment.parties)
    inspected = [finished.deployment.inspect(service) for service in services]
    assert len({each["Image"] for each in inspected}) == 1
    assert all(each["HostConfig"]["ReadonlyRootfs"] for each in inspected)
    needles = {"source": [(finished.deployment.clone / "hushbid" / "report" / "page.js").read_bytes()]}
    for party in finished.deployment.parties:
        needles[f"secret key of {party}"] = secrets_of(finished.files / party)
        rows = rows_of((finished.files / party / "data").glob("*.npz"))
        needles[f"records of {party}"] = encoded(rows[:1])
    export = ["docker", "export", finished.deployment.container("curator")]
    with subprocess.Popen(export, stdout=subprocess.PIPE) as exported:
        assert exported.stdout is not None
        assert found_in_stream(exported.stdout, needles) == {"source"}
    assert exported.returncode == 0


def test_the_image_has_an_interpreter_and_what_it_loads_and_no_distribution(finished: Finished) -> None:
    """No program of a distribution's, and of its libraries those that something in the image is linked to."""
    listing = docker("run", "--rm", "--network", "none", "--entrypoint", "python", IMAGE, "-c", LISTING)
    found: dict[str, Any] = json.loads(listing)
    of_packages = ("/opt/hushbid/", "/usr/lib/python3", "/usr/local/lib/python3")
    elsewhere = {path for path in found["programs"] if not path.startswith(of_packages)}
    names = {Path(path).name for path in elsewhere}
    assert {name for name in names if ".so" not in name} == {"python3.11"}, elsewhere
    assert any(name.startswith("libc.so") for name in names)
    assert not {name for name in names if name.startswith(("libkrb5", "libreadline", "libapt", "libdb"))}
    assert found["directories"] == []
    assert found["broken"] == []


LISTING = """
import importlib, json, os
programs = []
for place, directories, files in os.walk("/"):
    if place == "/":
        directories[:] = [name for name in directories if name not in ("proc", "sys", "dev")]
    for name in files:
        path = os.path.join(place, name)
        if not os.path.islink(path) and os.access(path, os.R_OK):
            with open(path, "rb") as file:
                if file.read(4) == b"\\x7fELF":
                    programs.append(path)
there = ("/var/lib/dpkg", "/usr/share", "/etc/apt", "/sbin", "/usr/sbin", "/bin/sh", "/usr/bin/env")
broken = []
for path in programs:
    if "/lib-dynload/" in path:
        try:
            importlib.import_module(os.path.basename(path).partition(".")[0])
        except ImportError as error:
            broken.append(str(error))
found = [path for path in there if os.path.exists(path)]
print(json.dumps({"programs": programs, "broken": broken, "directories": found}))
"""
"""What the image has: files of machine code, modules that do not load, and what is of a distribution."""


# -- a session that is refused --------------------------------------------------------------------------


def test_a_consumer_whose_session_is_hopeless_is_started_once_and_ends_with_4(clone: Path) -> None:
    with Deployment(
        clone, owners=1, settings={"target.epsilon": 0.01, "summary.epsilon": 0.01}
    ) as deployment:
        up = deployment.compose("up", "--detach", timeout=300)
        assert up.returncode == 0, up.stderr[-2000:]
        assert deployment.wait(["consumer"]) == {"consumer": 4}
        log = deployment.log("consumer")
        assert log.count("A rehearsal of the session is hopeless") == 1, log
        assert deployment.inspect("consumer")["RestartCount"] == 0
        assert deployment.inspect("curator")["State"]["Running"]


# -- a session in trouble -------------------------------------------------------------------------------

UNTOUCHED, KILLED, PAUSED, CUT_OFF = "owner-1", "owner-2", "owner-3", "owner-4"
ROUNDS = 300
CADENCE = 0.25
"""Seconds of a round: the session is not over before it was in trouble four times."""
LOOK = """
import os, pathlib, pwd
print(os.getuid(), pwd.getpwuid(os.getuid()).pw_name)
status = pathlib.Path("/proc/1/status").read_text().splitlines()
print(*(line for line in status if line.startswith(("CapEff", "NoNewPrivs"))), sep="\\n")
try:
    pathlib.Path("/opt/hushbid/new").touch()
except OSError as error:
    print(error.strerror)
key = os.stat("/party/key/secret.key")
print(key.st_uid, oct(key.st_mode & 0o777))
print(*pathlib.Path("/tmp").rglob("*"))
"""
LOCKED_DOWN = f"""{USER} hushbid
CapEff:\t0000000000000000
NoNewPrivs:\t1
Read-only file system
{USER} 0o600

"""


@dataclass(frozen=True)
class Troubled(Session):
    exit_codes: Mapping[str, int]
    seen_inside: Mapping[str, str]
    """By party, what a look around in its container printed in the middle of the session."""


@pytest.fixture(scope="module")
def troubled(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Troubled]:
    """Four owners, of which one is killed, one paused and one cut off; and the curator is restarted."""
    pace = {"session.points": ROUNDS, "session.batch": 1, "session.fixed_cadence": CADENCE}
    with Deployment(clone, owners=4, settings=pace) as deployment:
        up = deployment.compose("up", "--detach", timeout=300)
        assert up.returncode == 0, up.stderr[-2000:]
        deployment.until(lambda: deployment.healthy(deployment.parties), "all to be healthy")
        deployment.until(lambda: deployment.round() > 1, "the second round")
        seen_inside = {party: deployment.inside(party, LOOK) for party in deployment.parties}
        make_trouble(deployment)
        exit_codes = deployment.wait(deployment.parties, seconds=2 * ROUNDS * CADENCE)
        files = deployment.copy_out(tmp_path_factory.mktemp("troubled"))
        yield Troubled(deployment, files, exit_codes, seen_inside)


def make_trouble(deployment: Deployment) -> None:
    """One thing after another, each as soon as the curator has seen the end of the last."""
    network = f"{deployment.project}_session"
    for owner, trouble, cure in (
        (KILLED, ["kill"], ["start"]),
        (PAUSED, ["pause"], ["unpause"]),
        (CUT_OFF, ["network", "disconnect", network], ["network", "connect", network]),
    ):
        deployment.until(partial(done, *trouble, deployment.container(owner)), f"{owner}'s {trouble[0]}")
        deployment.until(partial(told, deployment, rf"{owner} is (gone|silent)", 1), f"{owner} to be missed")
        docker(*cure, deployment.container(owner))
        deployment.until(partial(told, deployment, rf"{owner} is (here|back)", 2), f"{owner} to be back")
    last = deployment.round()
    docker("restart", "--time", "20", deployment.container("curator"))
    deployment.until(lambda: deployment.round() > last + 1, "the rounds to go on")


def done(*arguments: str) -> bool:
    """Whether docker did it: runc gives up a pause after 0.2 s if a process waits for its disk just then."""
    try:
        docker(*arguments)
    except AssertionError:
        return False
    return True


def told(deployment: Deployment, what: str, times: int) -> bool:
    """Whether the curator's log has something that often."""
    return len(re.findall(what, deployment.log("curator"))) >= times


def test_a_session_survives_them_all(troubled: Troubled) -> None:
    parties = troubled.deployment.parties
    assert troubled.exit_codes == dict.fromkeys(parties, 0), troubled.deployment.story()
    assert f"{ROUNDS} of {ROUNDS}, 0 disputed" in troubled.deployment.log("consumer")
    assert troubled.verified()


@pytest.mark.parametrize("owner", [KILLED, PAUSED, CUT_OFF])
def test_rounds_go_on_without_an_owner_until_it_is_back(troubled: Troubled, owner: str) -> None:
    events = troubled.events("curator")
    lost = events.index(("lost", owner))
    bids = [place for place, event in enumerate(events) if event == ("bid", owner)]
    last = max(place for place in bids if place < lost)
    next_one = min((place for place in bids if place > lost), default=None)
    assert next_one is not None, "it takes part again"
    away = events[last:next_one]
    assert away.count(("timer", "round")) > 1, "it is absent when a round's time for bids is over"
    assert {("hello", owner), ("returned", owner)} & set(away)


def test_an_owner_that_was_killed_goes_on_from_its_transcript(troubled: Troubled) -> None:
    assert ("restarted", "") in troubled.events(KILLED)
    assert "goes on after record" in troubled.deployment.log(KILLED)


def test_an_owner_that_was_paused_goes_on_as_the_process_that_it_was(troubled: Troubled) -> None:
    assert ("restarted", "") not in troubled.events(PAUSED)
    assert "goes on after record" not in troubled.deployment.log(PAUSED)


def test_an_owner_that_was_cut_off_connects_again(troubled: Troubled) -> None:
    events = troubled.events(CUT_OFF)
    assert ("restarted", "") not in events
    assert ("connected", "") in events[events.index(("lost", "curator")) :]


def test_a_curator_that_is_told_to_stop_goes_on_when_it_is_started_again(troubled: Troubled) -> None:
    log = troubled.deployment.log("curator")
    assert "Stopped by SIGTERM; what was recorded is kept." in log
    assert "goes on after record" in log
    assert troubled.events("curator").count(("restarted", "")) == 1
    for party in (UNTOUCHED, "consumer"):
        events = troubled.events(party)
        assert ("connected", "") in events[events.index(("lost", "curator")) :]


def test_a_container_can_do_no_more_than_it_must(troubled: Troubled) -> None:
    assert troubled.seen_inside == dict.fromkeys(troubled.deployment.parties, LOCKED_DOWN)
