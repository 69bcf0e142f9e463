"""A session of real processes with a plan's faults, under a supervisor that reads exit codes."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

from hushbid.protocol.errors import ExitCode, Restart
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.transcripts.replay import replayed
from hushbid.transcripts.verification.whole_session import verify_all
from tests.blackbox.plan import PRELOADED, Fault, Kind, Plan
from tests.blackbox.preload import Control, library
from tests.processes.cluster import Cluster, Ended
from tests.processes.proxy import Proxy
from tests.processes.recovery import KINDS, OWNERS, broadcasts, noise_drawn, recorded_bytes, spendings

__all__ = ["Played", "play", "summary"]

POINTS: Final = 120
"""Rounds, but of a tender: some seconds of them."""
SECONDS: Final = 400.0
"""After which a session hangs: a party waits 120 s for another."""
STARTS: Final = 12
"""Of a party, the first included: more than its faults account for."""
_LOOK: Final = 0.02
_GONE: Final = (ProcessLookupError, PermissionError, FileNotFoundError)
"""What is raised where a process has just ended."""
Later: TypeAlias = Callable[[Callable[[], None]], None]
"""Takes what ends a fault, in good time."""
_ABORTED: Final = (
    "OpenBLAS error: Memory allocation still failed",
    "cannot allocate memory for thread-local data",
)
"""What libraries say that end the process where they get no memory: OpenBLAS with 1, glibc with 127."""
_TENDER: Final[dict[str, Any]] = {
    "acquisition": {"rule": "tender", "commitment_depth": 9},
    "features.seed": None,
    "noise.source": "secure",
    "noise.seed": None,
    "summary": None,
    "target": {"mechanism": "gaussian", "epsilon": 8.0, "neighbours": "substitute-one"},
    "session.submission": 200,
    "session.points": 200,
}


@dataclass
class Played:
    """The outcome of a session.

    Attributes:
        violations: Violated rules, in words.
        starts: How often each party was started.
        skipped: Faults that this machine cannot make.
    """

    plan: Plan
    violations: list[str] = field(default_factory=list)
    starts: dict[str, int] = field(default_factory=dict)
    skipped: list[Fault] = field(default_factory=list)
    seconds: float = 0.0


def patience(seconds: float) -> dict[str, Any]:
    """Changes to a session's file: how long parties wait."""
    limits = ("enrolment", "round", "pause", "delivery", "comeback", "abandon")
    return {f"timeouts.{name}": seconds for name in limits}


def play(plan: Plan, place: Path) -> Played:
    """Run a session in an empty directory.

    Returns:
        The violations of these rules: nobody hangs, exit codes follow their table and none is 5, all points
            arrive, each dataset is charged once, no noise is drawn twice, and transcripts agree.
    """
    started = time.monotonic()
    with _Stage(plan, place) as stage:
        try:
            stage.run()
            if not stage.played.violations:
                stage.check()
        except AssertionError as error:
            stage.played.violations.append(f"{error}"[:2000])
    stage.played.seconds = time.monotonic() - started
    return stage.played


class _Stage:
    """The processes, their connections and their supervisor."""

    def __init__(self, plan: Plan, place: Path) -> None:
        self.played = Played(plan)
        self._plan = plan
        patient = patience(120.0) | {"timeouts.closing": 10.0, "timeouts.silence": 1.5}
        rule = _TENDER if plan.rule == "tender" else {**KINDS[plan.rule], "session.points": POINTS}
        self.cluster = Cluster(place, OWNERS, rows=POINTS, changes={**patient, **rule})
        self._library = library(place.parent)
        self._controls: dict[str, Control] = {}
        for fault in plan.faults:
            if fault.kind in PRELOADED:
                self._controls[fault.party] = Control(place / f"{fault.party}.control")
        self._lines = {name: Proxy(self.cluster.port) for name in (CONSUMER, *OWNERS)}
        for name, line in self._lines.items():
            self.cluster.change(name, {"network.address": f"tcp://127.0.0.1:{line.port}"})
        self._strangers = contextlib.ExitStack()
        self._passing: list[tuple[float, Callable[[], None]]] = []
        self._held: set[str] = set()
        """Parties that are kept down, while somebody sees to their state."""
        self._over: dict[str, Ended] = {}

    def __enter__(self) -> _Stage:
        return self

    def __exit__(self, *_: object) -> None:
        self._strangers.close()
        for line in self._lines.values():
            line.close()
        self.cluster.__exit__()

    def run(self) -> None:
        """Run until every party has ended for good."""
        for name in self.cluster.names:
            self._start(name)
        self._until(self._begun, "the first round")
        begun, left = time.monotonic(), list(self._plan.faults)
        deadline = begun + SECONDS
        while len(self._over) < len(self.cluster.names):
            now = time.monotonic()
            if now > deadline:
                self.played.violations.append(f"not over after {SECONDS:g} s\n{self.cluster._story()}")
                return
            while left and now >= begun + left[0].after:
                fault = left.pop(0)
                if self.cluster.running(fault.party):
                    self._make(fault, now)
            for due, undo in [each for each in self._passing if each[0] <= now]:
                self._passing.remove((due, undo))
                undo()
            self._supervise()
            if self.played.violations:
                return
            time.sleep(_LOOK)

    def _begun(self) -> bool:
        self._supervise()
        if self.played.violations:
            return True
        if self._plan.rule == "tender":
            return all(recorded_bytes(self.cluster, name) > 0 for name in self.cluster.names)
        return "phase rounds begins" in self.cluster.log(CURATOR)

    def _until(self, condition: Callable[[], bool], what: str) -> None:
        self.cluster.until(condition, what)

    def _start(self, name: str) -> None:
        self.played.starts[name] = self.played.starts.get(name, 0) + 1
        environment = {"XDG_STATE_HOME": str(self.cluster.place / "known")}
        if name in self._controls and self._library is not None:
            environment |= {
                "LD_PRELOAD": str(self._library),
                "BLACKBOX_CONTROL": str(self._controls[name].path),
            }
        self.cluster.start(name, **environment)

    def _supervise(self) -> None:
        """Restart what the table of exit codes says, and what we killed or stopped."""
        for name in self.cluster.names:
            if name in self._over or name in self._held or self.cluster.running(name):
                continue
            ended = self.cluster.ended(name)
            by_signal = ended.code < 0
            told = ended.code == ExitCode.FAILED and "Stopped by SIGTERM" in ended.err
            aborted = any(text in ended.err for text in _ABORTED)
            if ended.code == 0 or not (by_signal or told or aborted or _again(ended.code)):
                self._over[name] = ended
            elif self.played.starts[name] >= STARTS:
                self.played.violations.append(f"{name} was started {STARTS} times\n{ended.err[-1500:]}")
            elif ended.code == ExitCode.BUG:
                self.played.violations.append(f"{name} calls it a bug\n{ended.err[-1500:]}")
            else:
                self._start(name)

    def _make(self, fault: Fault, now: float) -> None:
        """Begin a fault, and note when it passes."""

        def later(undo: Callable[[], None]) -> None:
            self._passing.append((now + fault.lasts, undo))

        process = self.cluster.processes[fault.party].pid
        match fault.kind:
            case Kind.CUT | Kind.GARBLE | Kind.STALL:
                self._of_line(fault, later)
            case Kind.FILES | Kind.MEMORY | Kind.ROOM:
                with contextlib.suppress(*_GONE):
                    self._of_limits(fault, process, later)
            case Kind.DISK | Kind.CLOCK:
                self._preloaded(fault, later)
            case Kind.TWIN:
                self._twin(fault.party)
            case Kind.FLOOD:
                _send_strangers(self._strangers, self.cluster.port, fault.draw)
                later(self._strangers.close)
            case Kind.RESTORED:
                self._restore(fault.party)
            case _:
                self._signal(fault, later)

    def _signal(self, fault: Fault, later: Later) -> None:
        numbers = {Kind.KILL: signal.SIGKILL, Kind.TERM: signal.SIGTERM, Kind.PAUSE: signal.SIGSTOP}
        process = self.cluster.processes[fault.party]
        process.send_signal(numbers[fault.kind])
        if fault.kind is Kind.PAUSE:
            later(lambda: process.send_signal(signal.SIGCONT))

    def _of_line(self, fault: Fault, later: Later) -> None:
        line = self._lines[fault.party]
        if fault.kind is Kind.CUT:
            line.cut_after(fault.draw % 2000)
        elif fault.kind is Kind.GARBLE:
            line.garble = _garbled(fault.draw)
        else:
            line.stalled.set()
            later(line.stalled.clear)

    def _of_limits(self, fault: Fault, process: int, later: Later) -> None:
        def again() -> None:
            with contextlib.suppress(*_GONE):
                _limit(process, resource.RLIMIT_NOFILE, 1024)

        if fault.kind is Kind.FILES:
            _limit(process, resource.RLIMIT_NOFILE, len(os.listdir(f"/proc/{process}/fd")))
            later(again)
        elif fault.kind is Kind.MEMORY:
            _limit(process, resource.RLIMIT_AS, _memory(process) + 2**20)
        else:
            size = recorded_bytes(self.cluster, fault.party) + fault.draw % 4000
            _limit(process, resource.RLIMIT_FSIZE, size)

    def _preloaded(self, fault: Fault, later: Later) -> None:
        if self._library is None:
            self.played.skipped.append(fault)
            return
        control = self._controls[fault.party]
        if fault.kind is Kind.DISK:
            control.say(failures=1 + fault.draw % 3, full=bool(fault.draw & 64))
        else:
            control.say(seconds=(-1) ** (fault.draw & 1) * (fault.draw >> 1) % 200_000)
            later(control.say)

    def _twin(self, party: str) -> None:
        again = self.cluster.start_in(self.cluster.directory(party), party)
        # With 0 it took the place of one that had just ended.
        if again.code not in (ExitCode.DONE, ExitCode.USAGE, ExitCode.FAILED, ExitCode.CONNECTION):
            self.played.violations.append(f"a twin of {party} ended with {again.code}\n{again.err[-1500:]}")

    def _restore(self, party: str) -> None:
        """Copy the state, let the session go on, kill the party, and restore the copy."""
        state = self.cluster.directory(party) / "state"
        copy = state.with_name("older")
        shutil.copytree(state, copy)

        def put_back() -> None:
            self._held.add(party)
            self.cluster.processes[party].kill()
            self.cluster.end(party)
            shutil.rmtree(state)
            copy.rename(state)
            self._held.remove(party)
            self._over.pop(party, None)
            self._start(party)

        self._passing.append((time.monotonic() + 0.3, put_back))

    def check(self) -> None:
        """The rules that must hold at the end."""
        found = self.played.violations
        restored = {fault.party for fault in self._plan.faults if fault.kind is Kind.RESTORED}
        for name, ended in self._over.items():
            allowed = {0, ExitCode.USAGE, ExitCode.TIMEOUT} if name in restored else {0}
            if ended.code not in allowed:
                found.append(f"{name} ended with {ended.code}\n{ended.err[-1500:]}")
        if not found:
            found += self._results(restored)
            found += self._records([name for name in self.cluster.names if name not in restored])
            found += self._ledgers()

    def _results(self, restored: set[str]) -> list[str]:
        found = []
        curator, consumer = self._over[CURATOR].json, self._over[CONSUMER].json
        points = self.cluster.session.file.session.points
        if consumer["points_delivered"] != points and not restored:
            found.append(f"{consumer['points_delivered']} of {points} points came")
        if consumer["disputed"] or consumer["faults"] or curator["faults"]:
            found.append(f"named as at fault: {consumer['faults']}, {curator['faults']}")
        if not restored and (curator["refusals"] or curator["absences"]):
            found.append(f"refused: {curator['refusals']}, absent: {curator['absences']}")
        return found

    def _records(self, sound: list[str]) -> list[str]:
        found = []
        for name in sound:
            again = replayed(self.cluster.transcript_path(name))
            if not again.finished or again.torn_bytes:
                found.append(f"the transcript of {name} does not replay to its end")
        agreed = verify_all([self.cluster.transcript_path(name) for name in sound])
        if not agreed["ok"]:
            found.append(f"transcripts disagree: {agreed}")
        if self._plan.rule != "tender":
            several = [number for number, shown in broadcasts(self.cluster).items() if len(shown) > 1]
            twice = [number for number, drawn in noise_drawn(self.cluster).items() if drawn > 1]
            if several or twice:
                found.append(f"rounds with two releases: {several}, with noise drawn twice: {twice}")
        return found

    def _ledgers(self) -> list[str]:
        found = []
        for name, file in (*((owner, "data") for owner in OWNERS), (CONSUMER, "validation")):
            ledger = self.cluster.directory(name) / f"{file}.npz.ledger"
            charged = len(spendings(ledger)) if ledger.exists() else 0
            if charged != 1:
                found.append(f"{name} was charged {charged} times")
        return found


def _again(code: int) -> bool:
    return code in set(ExitCode) and ExitCode(code).restart is Restart.AGAIN


def _limit(process: int, which: int, most: int) -> None:
    """Set a running process's soft limit."""
    _, hard = resource.prlimit(process, which)
    resource.prlimit(process, which, (most if hard < 0 else min(most, hard), hard))


def _memory(process: int) -> int:
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[0])
    return pages * resource.getpagesize()


def _garbled(draw: int) -> Callable[[bytes, bool], bytes | None]:
    inward, way, byte = bool(draw & 1), (draw >> 1) % 3, draw >> 8 & 0xFF

    def garble(data: bytes, to_curator: bool) -> bytes | None:
        if to_curator is not inward:
            return None
        at = (draw >> 16) % len(data)
        middle = (bytes([byte]) + data[at : at + 1], bytes([data[at] ^ (byte | 1)]), b"")[way]
        return data[:at] + middle + data[at + 1 :]

    return garble


def _send_strangers(kept: contextlib.ExitStack, port: int, draw: int) -> None:
    """Connect, send nonsense, and stay until `kept` is closed."""
    for number in range(40):
        with contextlib.suppress(OSError):
            stranger = kept.enter_context(socket.create_connection(("127.0.0.1", port), timeout=1.0))
            stranger.sendall((draw + number).to_bytes(8, "big") * (1 + number))


def summary(played: Mapping[int, Played]) -> str:
    """A table for people: sessions, faults of each kind, starts, and violations by seed."""
    kinds: dict[Kind, int] = {}
    for each in played.values():
        for fault in each.plan.faults:
            if fault not in each.skipped:
                kinds[fault.kind] = kinds.get(fault.kind, 0) + 1
    starts = sum(sum(each.starts.values()) - len(each.starts) for each in played.values())
    wrong = {seed: each.violations for seed, each in played.items() if each.violations}
    lines = [
        f"{len(played)} sessions, {sum(kinds.values())} faults, {starts} restarts, {len(wrong)} violated"
    ]
    lines += [f"  {kinds.get(kind, 0):5d}  {kind.value}" for kind in Kind]
    lines += [f"seed {seed}: {what}" for seed, violations in wrong.items() for what in violations]
    return "\n".join(lines)
