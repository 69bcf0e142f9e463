"""The image as a cluster would run it: the pods of configs/kubernetes, with a kubelet's mounts."""

from __future__ import annotations

import json
import secrets
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.runtime.keys import new_keypair
from tests.containers.compose import IMAGE, PATIENCE, docker, until
from tests.support.pods import MANIFESTS, Pod, session_of, write_belongings

pytestmark = pytest.mark.timeout(2400)

OWNERS = ("north", "south")
NAMES = (CURATOR, *OWNERS, CONSUMER)
POINTS = 60
CADENCE = 0.25
"""Seconds of a round: the session is not over before a pod of it was lost."""
SETTINGS = {
    "session.points": POINTS,
    "session.batch": 1,
    "session.fixed_cadence": CADENCE,
    "acquisition.rule": "sealed",
    "summary": {"mechanism": "filtered-gaussian", "epsilon": 1.0, "neighbours": "add-remove-one"},
    "timeouts.enrolment": 600.0,
    "timeouts.round": 60.0,
    "timeouts.comeback": 60.0,
    "timeouts.abandon": 600.0,
}

PROJECT = """
import os, pathlib, shutil
group = {group}
for volume in ("session", "key", "data", "state"):
    place, given = pathlib.Path("/volumes", volume), pathlib.Path("/given", volume)
    if volume in ("session", "key"):        # projected: links into a directory of its own
        inner = place / "..2026_11_27"
        shutil.copytree(given, inner)
        (place / "..data").symlink_to(inner.name)
        for file in given.iterdir():
            (place / file.name).symlink_to(f"..data/{{file.name}}")
    elif given.is_dir():
        shutil.copytree(given, place, dirs_exist_ok=True)
    for at, _, files in os.walk(place):
        os.chown(at, 0, group)
        os.chmod(at, 0o2775)
        for file in files:
            path = os.path.join(at, file)
            if not os.path.islink(path):
                os.chown(path, 0, group)
                os.chmod(path, 0o440 if volume == "key" else 0o644)
"""
"""A kubelet's work, by root: Secrets, ConfigMaps and a new volume are root's and of `fsGroup`."""


@dataclass
class Cluster:
    """Containers, volumes and a network with names of their own."""

    name: str

    def volume(self, party: str, volume: str) -> str:
        return f"{self.name}-{party}-{volume}"

    def mount(self, party: str, given: Path) -> None:
        """Put a party's files where its pod finds them."""
        volumes = [
            each
            for volume in ("session", "key", "data", "state")
            for each in ("--volume", f"{self.volume(party, volume)}:/volumes/{volume}:nocopy")
        ]
        group = pod(party).spec["securityContext"]["fsGroup"]
        docker(
            "run", "--rm", "--user", "0", "--network", "none", "--volume", f"{given}:/given:ro", *volumes,
            "--entrypoint", "python", IMAGE, "-c", PROJECT.format(group=group),
        )  # fmt: skip

    def options(self, party: str, container: dict[str, Any]) -> list[str]:
        """`docker run` as the pod specifies it."""
        spec = pod(party).spec
        context, own = spec["securityContext"], container["securityContext"]
        said = ["--user", f"{context['runAsUser']}:{context['runAsGroup']}"]
        said += ["--group-add", str(context["fsGroup"])]
        said += ["--read-only"] if own["readOnlyRootFilesystem"] else []
        said += [] if own["allowPrivilegeEscalation"] else ["--security-opt", "no-new-privileges"]
        said += [each for name in own["capabilities"]["drop"] for each in ("--cap-drop", name)]
        said += ["--memory", container["resources"]["limits"]["memory"].removesuffix("i")]
        for name, value in Pod.environment(container).items():
            said += ["--env", f"{name}={value}"]
        for name, mount in Pod.mounts(container).items():
            if "emptyDir" in pod(party).volumes[name]:
                said += ["--tmpfs", f"{mount['mountPath']}:size=64m"]
            else:
                ending = ":ro" if mount.get("readOnly") else ""
                said += ["--volume", f"{self.volume(party, name)}:{mount['mountPath']}{ending}"]
        return said

    def looked(self, party: str) -> tuple[int, str]:
        """The exit code and the output of the container that looks first."""
        looks = pod(party).containers[0]
        done = subprocess.run(
            ["docker", "run", "--rm", "--network", self.name, *self.options(party, looks), IMAGE]
            + looks["args"],
            capture_output=True, text=True, timeout=PATIENCE, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout + done.stderr

    def start(self, party: str, *, attempt: int = 1) -> str:
        """Start a pod's party, the Job's n-th attempt; returns the container's name."""
        runs, name = pod(party).containers[1], f"{self.name}-{party}-{attempt}"
        service = ["--network-alias", "hushbid-curator"] if party == CURATOR else []
        options = self.options(party, runs)
        docker(
            "run",
            "--detach",
            "--name",
            name,
            "--network",
            self.name,
            *service,
            *options,
            IMAGE,
            *runs["args"],
        )
        return name

    def end(self) -> None:
        for what, remove in (("ps", "rm"), ("volume", "volume"), ("network", "network")):
            listed = ["ps", "--all"] if what == "ps" else [what, "ls"]
            mine = docker(*listed, "--quiet", "--filter", f"name={self.name}").split()
            removal = ["rm", "--force"] if what == "ps" else [remove, "rm"]
            if mine:
                docker(*removal, *mine)


def pod(party: str) -> Pod:
    [manifest] = [each for each in MANIFESTS if each.stem == ("owner" if party in OWNERS else party)]
    return Pod.of(manifest, name=party)


def log(container: str) -> str:
    done = subprocess.run(
        ["docker", "logs", container], capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    return done.stdout + done.stderr


@pytest.fixture
def cluster(clone: Path) -> Iterator[Cluster]:
    assert clone.is_dir()  # and the image is there
    made = Cluster(f"hushbid-pods-{secrets.token_hex(4)}")
    docker("network", "create", "--internal", made.name)
    try:
        yield made
    finally:
        made.end()


def test_a_session_of_pods_of_which_one_is_lost_ends_well(cluster: Cluster) -> None:
    """Secrets are root's with mode 0440, roots are read-only, and a lost pod's next attempt resumes."""
    keys = {name: new_keypair() for name in NAMES}
    session = session_of(keys, SETTINGS)
    with tempfile.TemporaryDirectory() as given:
        for party in NAMES:
            directory = Path(given) / party
            write_belongings(directory, party, keys, session, mounted=Path("/party"))
            cluster.mount(party, directory)
    for party in NAMES:
        code, said = cluster.looked(party)
        assert (code, "ok           key" in said) == (0, True), said
    started = {party: cluster.start(party) for party in NAMES}
    until(lambda: "phase rounds begins" in log(started[CURATOR]), "the rounds", partial(story, started))
    docker("kill", started["north"])
    until(lambda: "north is gone" in log(started[CURATOR]), "north to be missed", partial(story, started))
    lost, started["north"] = started["north"], cluster.start("north", attempt=2)
    ended = docker("wait", *started.values(), lost).split()
    assert ended == ["0"] * len(started) + ["137"], story(started)
    assert f"{POINTS} of {POINTS}, 0 disputed" in log(started[CONSUMER])
    assert "goes on after record" in log(started["north"])
    [ready] = json.loads(docker("inspect", started[CURATOR]))
    assert ready["HostConfig"]["ReadonlyRootfs"] is True


def story(started: dict[str, str]) -> str:
    return "\n".join(f"--- {party}\n{log(name)[-1500:]}" for party, name in started.items())
