"""A session in containers with a plan's faults, under a supervisor that reads exit codes.

An engine does to a container what can be done to a process from outside: it kills, stops and pauses it, cuts
its network, limits its memory, starts another one with its volumes, and restores an older copy of them.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from hushbid.protocol.config.loading import load_toml
from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.errors import ExitCode
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.session.session import Session, open_session
from hushbid.protocol.transcript.record import Record
from hushbid.transcripts.replay import replayed
from hushbid.transcripts.verification.whole_session import verify_all
from tests.blackbox.plan import Fault, Kind, Plan
from tests.blackbox.play import STARTS, Played, patience
from tests.containers.compose import IMAGE, Deployment
from tests.processes.recovery import broadcasts, noise_drawn, spendings
from tests.support.transcripts import read_transcript

__all__ = ["RULES", "play_in_containers", "settings_of"]

RULES: Final = ("sealed", "blind")
"""Those with rounds: a tender is over before an engine has done much to it."""
POINTS: Final = 300
"""Rounds; the two owners have 361 rows."""
SECONDS: Final = 600.0
"""After which a session hangs: a party waits 240 s for another."""
SLOWER: Final = 3.0
"""Factor of a plan's times: an engine takes up to a second for what a signal does at once."""
_LOOK: Final = 0.2
_ENOUGH: Final = "8g"
"""Memory of a container whose bound has passed."""
_KILLED: Final = 128 + 9
_STOPPED: Final = 128 + 15
_USAGE: Final = """
for name in ("memory.current", "memory/memory.usage_in_bytes"):
    try:
        print(open(f"/sys/fs/cgroup/{name}").read())
    except OSError:
        pass
"""
_STRANGERS: Final = """
import contextlib, socket, sys, time
draw, seconds, made = int(sys.argv[1]), float(sys.argv[2]), []
for number in range(40):
    with contextlib.suppress(OSError):
        made.append(socket.create_connection(("curator", 5790), timeout=1.0))
        made[-1].sendall((draw + number).to_bytes(8, "big") * (1 + number))
time.sleep(seconds)
"""


def settings_of(plan: Plan) -> dict[str, object]:
    """Changes to the demonstration's cluster file: long time-outs, so that nobody is given up."""
    return patience(240.0) | {"acquisition.rule": plan.rule, "session.points": POINTS, "session.batch": 1}


def play_in_containers(plan: Plan, deployment: Deployment, place: Path) -> Played:
    """Run a session in the containers of a deployment, none of which has been started.

    Args:
        deployment: With the settings of the plan (`settings_of`), and its owners.
        place: An empty directory for copies of the volumes.

    Returns:
        The violations of these rules: nobody hangs or reports a bug, all end with 0, all points arrive, each
            dataset is charged once, no noise is drawn twice, and transcripts agree.
    """
    began = time.monotonic()
    stage = _Stage(plan, deployment, place)
    try:
        stage.run()
        if not stage.played.violations:
            stage.check()
    except AssertionError as error:
        stage.played.violations.append(f"{error}"[:4000])
    stage.played.seconds = time.monotonic() - began
    return stage.played


@dataclass(frozen=True)
class _Volumes:
    """Copies of all parties' volumes, as PARTY/VOLUME."""

    place: Path
    owners: Sequence[str]

    @cached_property
    def session(self) -> Session:
        return open_session(load_toml(SessionFile, self.place / CURATOR / "session" / "session.toml"))

    def transcript(self, name: str) -> Path:
        return self.place / name / "state" / f"{name}.transcript"

    def records(self, name: str) -> Sequence[Record]:
        return read_transcript(self.transcript(name)).records


class _Stage:
    """The containers and their supervisor."""

    def __init__(self, plan: Plan, deployment: Deployment, place: Path) -> None:
        self.played = Played(plan, starts=dict.fromkeys(deployment.parties, 1))
        self._plan, self._deployment, self._place = plan, deployment, place
        self._network = f"{deployment.project}_session"
        self._passing: list[tuple[float, Callable[[], object]]] = []
        self._over: dict[str, int] = {}
        """Exit codes of those that have ended for good."""

    def run(self) -> None:
        """Run until every party has ended for good."""
        up = self._deployment.compose("up", "--detach")
        assert up.returncode == 0, up.stderr[-2000:]
        self._deployment.until(lambda: self._deployment.round() > 0, "the first round")
        begun, left = time.monotonic(), list(self._plan.faults)
        while len(self._over) < len(self._deployment.parties):
            now = time.monotonic()
            if now > begun + SECONDS:
                self.played.violations.append(f"not over after {SECONDS:g} s\n{self._deployment.story()}")
                return
            while left and now >= begun + SLOWER * left[0].after:
                fault = left.pop(0)
                if fault.party not in self._over:
                    self._make(fault)
            for due, undo in [each for each in self._passing if each[0] <= now]:
                self._passing.remove((due, undo))
                undo()
            self._supervise()
            if self.played.violations:
                return
            time.sleep(_LOOK)

    def _engine(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """The engine's output; it refuses a command for a party that has just ended."""
        return subprocess.run(
            ["docker", *arguments], capture_output=True, text=True, timeout=SECONDS, check=False
        )

    def _did(self, *arguments: str) -> bool:
        return self._engine(*arguments).returncode == 0

    def _supervise(self) -> None:
        """Restart containers that the engine ended; a container's own program does the rest."""
        names = [name for name in self._deployment.parties if name not in self._over]
        told = self._engine("inspect", *map(self._deployment.container, names))
        for name, found in zip(names, json.loads(told.stdout), strict=True):
            code = int(found["State"]["ExitCode"])
            if found["State"]["Running"]:
                continue
            stopped = code == ExitCode.FAILED and "Stopped by SIGTERM" in self._deployment.log(name)[-400:]
            if not (stopped or code in (_KILLED, _STOPPED)):
                self._over[name] = code
            elif self.played.starts[name] >= STARTS:
                self.played.violations.append(
                    f"{name} was started {STARTS} times\n{self._deployment.story()}"
                )
            else:
                self.played.starts[name] += 1
                self._did("start", self._deployment.container(name))

    def _make(self, fault: Fault) -> None:
        """Begin a fault, and note when it passes."""
        container = self._deployment.container(fault.party)
        if not self._begins(fault, container):
            self.played.skipped.append(fault)
            return
        undo = {
            Kind.PAUSE: ("unpause",),
            Kind.STALL: ("network", "connect", self._network),
            Kind.MEMORY: ("update", "--memory", _ENOUGH, "--memory-swap", _ENOUGH),
        }.get(fault.kind)
        if undo is not None:
            due = time.monotonic() + SLOWER * fault.lasts
            self._passing.append((due, lambda: self._did(*undo, container)))

    def _begins(self, fault: Fault, container: str) -> bool:
        """Whether the engine could begin the fault."""
        match fault.kind:
            case Kind.KILL:
                return self._did("kill", container)
            case Kind.TERM:
                return self._did("stop", "--time", "20", container)
            case Kind.PAUSE:
                return self._did("pause", container)
            case Kind.CUT:
                cut = self._did("network", "disconnect", self._network, container)
                return cut and self._did("network", "connect", self._network, container)
            case Kind.STALL:
                return self._did("network", "disconnect", self._network, container)
            case Kind.MEMORY:
                # The kernel kills it for more than it has, or it goes on with what it has.
                used = self._engine("exec", container, "python", "-c", _USAGE).stdout.split()
                return bool(used) and self._did(
                    "update", "--memory", used[0], "--memory-swap", used[0], container
                )
            case Kind.TWIN:
                return self._twin(fault.party, container)
            case Kind.FLOOD:
                strangers = ("python", "-c", _STRANGERS, str(fault.draw), f"{SLOWER * fault.lasts}")
                return self._did("exec", "--detach", container, *strangers)
            case Kind.RESTORED:
                return self._restore(fault.party, container)
            case _:
                raise AssertionError(f"an engine makes no fault of the kind {fault.kind}")

    def _twin(self, party: str, container: str) -> bool:
        role = party if party in (CURATOR, CONSUMER) else "owner"
        beside = ("--rm", "--volumes-from", container, "--network", self._network)
        listen = ("--env", "HUSHBID_LISTEN=tcp://0.0.0.0:5790") if role == CURATOR else ()
        again = self._engine("run", *beside, *listen, IMAGE, role)
        # With 0 it took the place of one that had just ended.
        if again.returncode not in (ExitCode.DONE, ExitCode.USAGE, ExitCode.FAILED, ExitCode.CONNECTION):
            self.played.violations.append(
                f"a twin of {party} ended with {again.returncode}\n{again.stderr[-1500:]}"
            )
        return again.returncode == ExitCode.USAGE

    def _restore(self, party: str, container: str) -> bool:
        """Copy a volume, let the session go on, kill the party, and restore the copy."""
        copy = self._place.with_name("older")
        copy.mkdir()
        if not self._did("pause", container):
            return False
        self._did("cp", "--archive", f"{container}:/party/state/.", str(copy))
        self._did("unpause", container)

        def put_back() -> None:
            self._did("kill", container)
            self._did("cp", "--archive", f"{copy}/.", f"{container}:/party/state")

        self._passing.append((time.monotonic() + SLOWER * 0.3, put_back))
        return True

    def check(self) -> None:
        """The rules that must hold at the end."""
        found = self.played.violations
        restored = {fault.party for fault in self._plan.faults if fault.kind is Kind.RESTORED}
        for name, code in self._over.items():
            if code not in ({0, ExitCode.USAGE, ExitCode.TIMEOUT} if name in restored else {0}):
                found.append(f"{name} ended with {code}\n{self._deployment.log(name)[-1500:]}")
            if "This is a bug" in self._deployment.log(name):
                found.append(f"{name} calls it a bug\n{self._deployment.log(name)[-1500:]}")
        if not found:
            volumes = _Volumes(self._deployment.copy_out(self._place), self._deployment.owners)
            found += self._result(volumes, whole=not restored)
            found += self._records(volumes, [name for name in self._over if name not in restored])
            found += self._ledgers(volumes)

    def _result(self, volumes: _Volumes, *, whole: bool) -> list[str]:
        path = volumes.place / CONSUMER / "state" / "result.json"
        result: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        found = []
        if whole and result["points_delivered"] != POINTS:
            found.append(f"{result['points_delivered']} of {POINTS} points came")
        if result["disputed"] or result["faults"]:
            found.append(f"named as at fault: {result['faults']}, {result['disputed']} disputed")
        return found

    def _records(self, volumes: _Volumes, sound: list[str]) -> list[str]:
        found = []
        for name in sound:
            again = replayed(volumes.transcript(name))
            if not again.finished or again.torn_bytes:
                found.append(f"the transcript of {name} does not replay to its end")
        agreed = verify_all([volumes.transcript(name) for name in sound])
        if not agreed["ok"]:
            found.append(f"transcripts disagree: {agreed}")
        several = [number for number, shown in broadcasts(volumes).items() if len(shown) > 1]
        twice = [number for number, drawn in noise_drawn(volumes).items() if drawn > 1]
        if several or twice:
            found.append(f"rounds with two releases: {several}, with noise drawn twice: {twice}")
        return found

    def _ledgers(self, volumes: _Volumes) -> list[str]:
        found = []
        for name in (CONSUMER, *volumes.owners):
            charged = [len(spendings(ledger)) for ledger in (volumes.place / name / "data").glob("*.ledger")]
            if charged != [1]:
                found.append(f"{name} was charged {charged} times")
        return found
