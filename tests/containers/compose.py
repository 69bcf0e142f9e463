"""A session in containers: the tree's docker-compose.yml under a project name of its own.

Containers are found by compose's labels, since docker-compose 1.29 and Compose v2 name them differently.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from hushbid.protocol.names import CONSUMER, CURATOR
from tests.conftest import ROOT
from tests.support.sources import copied

__all__ = [
    "IMAGE",
    "USER",
    "VOLUMES",
    "Deployment",
    "clean_clone",
    "compose_command",
    "docker",
    "until",
    "why_no_engine",
]

IMAGE = "hushbid:test"
"""Stays when the tests are done, so that the next ones build upon it."""
USER = "10001"
VOLUMES = ("key", "data", "state", "session")
"""What is mounted below /party in a party's container."""
PATIENCE = 600.0
"""Seconds after which what has not happened will not happen, on a machine with much else to do as well."""
_LOOK_SECONDS = 0.2
_PROJECT = "com.docker.compose.project"
_SERVICE = "com.docker.compose.service"


def docker(*arguments: str, timeout: float = PATIENCE) -> str:
    """Docker's standard output."""
    done = subprocess.run(
        ["docker", *arguments], capture_output=True, text=True, timeout=timeout, check=False
    )
    assert done.returncode == 0, (arguments, done.stderr)
    return done.stdout


def compose_command() -> list[str] | None:
    """docker-compose, or Compose v2, or neither."""
    if shutil.which("docker-compose") is not None:
        return ["docker-compose"]
    plugin = subprocess.run(["docker", "compose", "version"], capture_output=True, check=False)
    return ["docker", "compose"] if plugin.returncode == 0 else None


def why_no_engine() -> str | None:
    """Why containers cannot run here; None if they can."""
    if shutil.which("docker") is None:
        return "docker is not installed"
    try:
        asked = subprocess.run(
            ["docker", "info"], capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        return "the Docker engine does not answer"
    if asked.returncode != 0:
        return f"no Docker engine answers: {asked.stderr.strip()}"
    return None if compose_command() is not None else "neither docker-compose nor Compose v2 is installed"


def clean_clone(destination: Path) -> Path:
    """The tree as git would take it, uncommitted changes included, and a wheelhouse."""
    copied(destination)
    shutil.copytree(ROOT / "wheelhouse", destination / "wheelhouse")
    return destination


def until(
    condition: Callable[[], object], what: str, story: Callable[[], str], *, seconds: float = PATIENCE
) -> None:
    """Wait for a condition; a failure includes the story."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}\n{story()}"
        time.sleep(_LOOK_SECONDS)


class Deployment:
    """A session of the compose file, removed with all that it made at the end of the `with`.

    Args:
        clone: The directory of the compose file.
        owners: Number of owners.
        settings: Changes to the demonstration's cluster file.
    """

    def __init__(self, clone: Path, *, owners: int = 5, settings: Mapping[str, object] | None = None) -> None:
        self.clone = clone
        self.project = f"hushbid-test-{secrets.token_hex(4)}"
        self.owners = tuple(f"owner-{number + 1}" for number in range(owners))
        self.parties = (CURATOR, CONSUMER, *self.owners)
        self._environment = os.environ | {
            "COMPOSE_PROJECT_NAME": self.project,
            "HUSHBID_IMAGE": IMAGE,
            "HUSHBID_OWNERS": str(owners),
            "HUSHBID_SET": " ".join(f"{key}={value}" for key, value in (settings or {}).items()),
        }
        self._containers: dict[str, str] = {}
        """By service, once there is one: it stays the same one, however often it is started."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.compose("down", "--volumes", "--remove-orphans", "--timeout", "1")

    def compose(self, *arguments: str, timeout: float = PATIENCE) -> subprocess.CompletedProcess[str]:
        """Run docker-compose on this session, as people type it."""
        command = compose_command()
        assert command is not None
        return subprocess.run(
            [*command, *arguments],
            cwd=self.clone,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def attached(self, *, seconds: float = PATIENCE) -> str:
        """Bring all up and print what they tell until all have ended, as people do.

        Returns:
            What was printed. Where docker-compose goes on after every party's end, it is stopped.
        """
        try:
            up = self.compose("up", "--no-color", timeout=seconds)
        except subprocess.TimeoutExpired as late:
            printed = (late.stdout or b"").decode()
            running = [
                name for name in self.parties if self._find(name) and self.inspect(name)["State"]["Running"]
            ]
            assert not running, f"{running} did not end in {seconds} s\n{self.story()}\n{printed[-3000:]}"
            return printed
        assert up.returncode == 0, up.stdout[-2000:] + up.stderr[-2000:]
        return up.stdout

    def container(self, service: str) -> str:
        """The identifier of a service's container, which may have ended."""
        if service not in self._containers:
            self._containers[service] = self._look_up(service)
        return self._containers[service]

    def _look_up(self, service: str) -> str:
        found = self._find(service)
        assert len(found) == 1, (service, found)
        return found[0]

    def _find(self, service: str) -> list[str]:
        return docker(
            "ps", "--all", "--quiet", "--no-trunc",
            "--filter", f"label={_PROJECT}={self.project}",
            "--filter", f"label={_SERVICE}={service}",
        ).split()  # fmt: skip

    def inspect(self, service: str) -> dict[str, Any]:
        """The engine's description of a service's container."""
        found: dict[str, Any] = json.loads(docker("inspect", self.container(service)))[0]
        return found

    def healthy(self, service: str) -> bool:
        """Whether the health check of a service's container says so."""
        return bool(self.inspect(service)["State"]["Health"]["Status"] == "healthy")

    def log(self, service: str) -> str:
        """Its output for people, over all of its lives."""
        done = subprocess.run(
            ["docker", "logs", self.container(service)],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=True,
        )
        return done.stdout + done.stderr

    def round(self) -> int:
        """The curator's round by its status file; 0 before there is one."""
        read = "print(open('/party/state/curator.status').read())"
        told = subprocess.run(
            ["docker", "exec", self.container(CURATOR), "python", "-c", read],
            capture_output=True, timeout=PATIENCE, check=False,
        )  # fmt: skip
        return int(json.loads(told.stdout)["round"]) if told.returncode == 0 else 0

    def inside(self, service: str, script: str) -> str:
        """The output of a Python script in a service's container, which has no shell."""
        return docker("exec", self.container(service), "python", "-c", script)

    def until(self, condition: Callable[[], object], what: str, *, seconds: float = PATIENCE) -> None:
        """Wait for a condition."""
        until(condition, what, self.story, seconds=seconds)

    def wait(self, services: Sequence[str], *, seconds: float = PATIENCE) -> dict[str, int]:
        """The exit codes of these services, once all have ended; a restarted one has not."""
        containers = [self.container(service) for service in services]
        deadline = time.monotonic() + seconds
        while True:
            try:  # one process that waits: those that look again and again keep half a core busy
                docker("wait", *containers, timeout=max(1.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                raise AssertionError(f"waited {seconds} s for {services} to end\n{self.story()}") from None
            states = [each["State"] for each in json.loads(docker("inspect", *containers))]
            if not any(state["Running"] for state in states):
                codes = [int(state["ExitCode"]) for state in states]
                return dict(zip(services, codes, strict=True))

    def story(self) -> str:
        """The state of each started service and the end of its output, for a failure's message."""
        started = [service for service in self.parties if self._find(service)]
        return "\n".join(
            f"--- {service}: {self.inspect(service)['State']}\n{self.log(service)[-1500:]}"
            for service in started
        )

    def copy_out(self, destination: Path) -> Path:
        """Copy all parties' volumes, as PARTY/VOLUME; their containers may have ended."""
        for party in self.parties:
            container = self.container(party)
            for volume in VOLUMES:
                (destination / party / volume).mkdir(parents=True)
                docker("cp", f"{container}:/party/{volume}/.", str(destination / party / volume))
        return destination
