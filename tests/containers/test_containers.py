"""The actual Dockerfile and docker-compose.yml in a real engine: a session that succeeds, and one refused."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.containers.belongings import (
    contents,
    encoded,
    found_in,
    found_in_stream,
    rows_of,
    secrets_of,
)
from tests.containers.compose import IMAGE, Deployment, docker
from tests.containers.ended import Session

pytestmark = pytest.mark.timeout(2400)

POINTS = 200
"""Of the demonstration."""

# -- a session from a clean clone -----------------------------------------------------------------------


@dataclass(frozen=True)
class Finished(Session):
    printed: str
    """By docker-compose."""


@pytest.fixture(scope="module")
def finished(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Finished]:
    """The demonstration as it is in the clone."""
    with Deployment(clone) as deployment:
        printed = deployment.attached()
        files = deployment.copy_out(tmp_path_factory.mktemp("finished"))
        yield Finished(deployment, files, printed)


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
    """In the volumes, and in the engine's description of a container: environment, arguments, labels."""
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
    """One container suffices, since all have the same image, and none can write to it."""
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
    """It has no program of a distribution, and only libraries to which something in the image is linked."""
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
        clone,
        owners=1,
        settings={"acquisition.rule": "sealed", "target.epsilon": 0.01, "summary.epsilon": 0.01},
    ) as deployment:
        up = deployment.compose("up", "--detach")
        assert up.returncode == 0, up.stderr[-2000:]
        assert deployment.wait(["consumer"]) == {"consumer": 4}
        log = deployment.log("consumer")
        assert log.count("A rehearsal of the session is hopeless") == 1, log
        assert deployment.inspect("consumer")["RestartCount"] == 0
        assert deployment.inspect("curator")["State"]["Running"]
