"""`hushbid run`: every party of a cluster as its own operating-system process on this machine."""

from __future__ import annotations

import json
import os
import select
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from curator.machine import CONSUMER
from hushbid.cluster import Cluster
from hushbid.party_process import PartyProcess
from hushbid.results import RunResult
from hushbid.run_directory import Party, RunDirectory, prepare
from hushbid.simulation import Progress, baselines
from protocol.errors import ExitCode, HushbidError, LocalProtocolError
from protocol.participant import CURATOR
from protocol.runtime.party import one_blas_thread
from protocol.session import open_session

__all__ = ["DEFAULT_DIRECTORY", "PartyFailed", "run", "run_parties"]

DEFAULT_DIRECTORY: Final = Path("runs")

_LOOK_SECONDS: Final = 0.05
"""Between two looks at the processes."""
_GRACE_SECONDS: Final = 1.0
"""What the others get to end by themselves when one has failed: the cause may be with them."""
_STOP_SECONDS: Final = 5.0
"""What a process gets to end in good order, before it is killed."""
_SHOWN_LINES: Final = 15
_TELLING: Final = (ExitCode.BUG, ExitCode.USAGE, ExitCode.CONNECTION, ExitCode.TIMEOUT, ExitCode.FAILED)
"""Exit codes, the most telling first: the later ones are often what others' failures lead to."""


class PartyFailed(HushbidError):
    """A party's process failed, and the run with it.

    Args:
        party: Which.
        what: What it said, or how it ended.
        advice: What it advises.
        exit_code: Its exit code, which becomes the run's.
        log: The last lines that the parties that failed wrote for people, each with its party's name.
    """

    def __init__(
        self, party: str, what: str, *, advice: str, exit_code: ExitCode, log: Sequence[str]
    ) -> None:
        super().__init__(f"{party}: {what}", advice=advice)
        self.party = party
        self.exit_code = exit_code
        self.log = tuple(log)


def run(cluster: Cluster, *, directory: Path | None = None, progress: Progress | None = None) -> RunResult:
    """Run a cluster's session with a process for each party, then compare it with what no party can compute.

    However this ends, no process is left.

    Args:
        cluster: The cluster.
        directory: Where the run's directory is made; None: as the cluster file says, else ``runs``.
        progress: Called about ten times a second.

    Raises:
        PartyFailed: A party failed.
        HushbidError: The session or the directory cannot be made.
    """
    prepared = prepare(cluster, directory or cluster.file.run.directory or DEFAULT_DIRECTORY)
    session = open_session(prepared.session)
    results, identifiers = run_parties(prepared, progress)
    one_blas_thread()
    reference = baselines(cluster, session, cluster.load())
    places = {party.name: party.directory for party in prepared.parties}
    curator, consumer = results[CURATOR], results[CONSUMER]
    result = RunResult(
        session=prepared.session.session.name,
        p=prepared.session.session.points,
        owners=len(prepared.session.owners),
        rounds=curator["rounds"],
        wall_seconds=curator["wall_seconds"],
        mmd2=consumer["mmd2"],
        mmd2_greedy=reference.mmd2_greedy,
        mmd2_uniform=reference.mmd2_uniform,
        accuracy=consumer["accuracy"],
        accuracy_greedy=reference.accuracy_greedy,
        accuracy_uniform=reference.accuracy_uniform,
        points_accessed_curator=curator["points_accessed"],
        points_delivered=consumer["points_delivered"],
        disputed=consumer["disputed"],
        m=consumer["m"],
        privacy=session.privacy(),
        settlement=curator["settlement"],
        absences=curator["absences"],
        faults=tuple(curator["faults"]),
        transcripts={name: places[name] / found["transcript"] for name, found in results.items()},
        data=places[CONSUMER] / consumer["data"],
        directory=prepared.path,
        processes=identifiers,
    )
    text = json.dumps(result.as_json(), indent=2, allow_nan=False)
    (prepared.path / "result.json").write_text(text + "\n", encoding="utf-8")
    return result


def run_parties(
    prepared: RunDirectory, progress: Progress | None = None
) -> tuple[dict[str, dict[str, Any]], dict[str, int]]:
    """Run a process for each party until all have ended.

    Returns:
        Party → what it printed, and party → process id.

    Raises:
        PartyFailed: A party failed; the others were ended.
    """
    with _Processes(prepared) as processes:
        processes.watch(progress)
        return processes.results(), processes.identifiers()


class _Processes:
    """The processes of a run. Whatever happens, none outlives the ``with``."""

    def __init__(self, prepared: RunDirectory) -> None:
        self._stack = ExitStack()
        self._processes: list[PartyProcess] = []
        self._progress = -1
        self._unread = b""
        self._parties = prepared.parties

    def __enter__(self) -> Self:
        try:
            self._progress, writing = os.pipe()
            self._stack.callback(os.close, self._progress)
            try:
                for party in self._parties:
                    self._start(party, writing if party.role == "curator" else None)
            finally:
                os.close(writing)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._end()

    def _start(self, party: Party, progress: int | None) -> None:
        try:
            self._processes.append(PartyProcess(party, progress=progress))
        except OSError as error:
            raise HushbidError(
                f"The process of {party.name} cannot be started: {error.strerror}.",
                advice="Check this machine's limits on processes and open files.",
            ) from None

    def watch(self, progress: Progress | None) -> None:
        """Wait until all have ended.

        Raises:
            PartyFailed: One of them failed; the others were ended.
        """
        deadline: float | None = None
        while any(process.running for process in self._processes):
            self._read_progress(progress)
            if deadline is None and any(process.failed for process in self._processes):
                deadline = time.monotonic() + _GRACE_SECONDS
            if deadline is not None and time.monotonic() >= deadline:
                break
        failed = [process for process in self._processes if process.failed]
        if failed:
            raise _failure(failed)

    def results(self) -> dict[str, dict[str, Any]]:
        """What each party printed.

        Raises:
            LocalProtocolError: One ended well without a result.
        """
        results = {}
        for process in self._processes:
            result = process.result()
            if result is None:
                raise LocalProtocolError(f"{process.party.name} ended well, but printed no result.")
            results[process.party.name] = result
        return results

    def identifiers(self) -> dict[str, int]:
        """Party → process id."""
        return {process.party.name: process.identifier for process in self._processes}

    def _read_progress(self, progress: Progress | None) -> None:
        """Wait for a line of progress, but not long."""
        if self._progress < 0:
            time.sleep(_LOOK_SECONDS)
            return
        if not select.select([self._progress], [], [], _LOOK_SECONDS)[0]:
            return
        read = os.read(self._progress, 65536)
        if not read:
            self._stack.close()
            self._progress = -1
            return
        *lines, self._unread = (self._unread + read).split(b"\n")
        if lines and progress is not None:
            line = json.loads(lines[-1])
            progress(line["round"], line["points"])

    def _end(self) -> None:
        try:
            for process in self._processes:
                process.stop()
            deadline = time.monotonic() + _STOP_SECONDS
            for process in self._processes:
                process.wait(max(0.0, deadline - time.monotonic()))
        finally:
            # Also when a second Ctrl-C cuts the waiting short.
            for process in self._processes:
                process.kill()
            for process in self._processes:
                process.wait(_STOP_SECONDS)
            self._stack.close()


def _failure(failed: Sequence[PartyProcess]) -> PartyFailed:
    """The error of the party whose failure tells most."""

    def rank(process: PartyProcess) -> int:
        # Who was killed from outside did not fail because of another.
        return -1 if process.signal is not None else _TELLING.index(process.exit_code)

    log = [f"{process.party.name} | {line}" for process in failed for line in process.log_tail(_SHOWN_LINES)]
    first = min(failed, key=rank)
    if first.signal is not None:
        return PartyFailed(
            first.party.name,
            f"its process was ended by {first.signal.name}.",
            advice="If nobody did that, see whether the machine ran out of memory.",
            exit_code=first.exit_code,
            log=log,
        )
    said = (first.result() or {}).get("error", {})
    what = said.get("what", f"its process ended with code {first.exit_code.value} and did not say why.")
    advice = said.get("advice", f"See {first.party.directory}.")
    return PartyFailed(first.party.name, what, advice=advice, exit_code=first.exit_code, log=log)
