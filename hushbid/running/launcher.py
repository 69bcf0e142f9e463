"""`hushbid run`: every party of a cluster as its own operating-system process on this machine."""

from __future__ import annotations

import json
import os
import select
import shlex
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Any, Final, NoReturn, Self, TypeAlias, TypeVar

from hushbid.cluster.data import ClusterData
from hushbid.cluster.evaluation import Baselines
from hushbid.cluster.file import Cluster
from hushbid.cluster.parties import PARTY_FILE, Party
from hushbid.consumer.learners import Training, modules_of
from hushbid.consumer.process import consumer_seed_set
from hushbid.consumer.result import ConsumerResult
from hushbid.consumer.store import DELIVERED_FILE, RESULT_FILE, keep_verdict
from hushbid.consumer.verdict import NO_VERDICT
from hushbid.curator.result import CuratorResult
from hushbid.owner.result import OwnerResult
from hushbid.plan.verdict import NOT_REHEARSING, Rehearsing
from hushbid.protocol import platform
from hushbid.protocol.config.loading import load_toml
from hushbid.protocol.config.party import ConsumerFile, OwnerFile
from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.data.formats import format_of
from hushbid.protocol.errors import HushbidError, LocalProtocolError
from hushbid.protocol.machine.progress import Progress
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.runtime.blas_threads import one_blas_thread
from hushbid.protocol.runtime.ledger.dataset_budget import charges, ledger_path
from hushbid.protocol.runtime.telemetry.status_file import Status, status_path
from hushbid.protocol.session.results import PartyResult
from hushbid.protocol.session.session import Session, open_session
from hushbid.report.sources import consumer_state_in
from hushbid.results.run import RunResult
from hushbid.running.check import check_run
from hushbid.running.directory import RunDirectory, named_files, prepare
from hushbid.running.failures import account_of, gone_for_good, party_failed, too_few_left
from hushbid.running.fork_server import ForkServer
from hushbid.running.process import PartyFailed, PartyProcess
from hushbid.running.report import import_page, with_pages
from hushbid.running.simulate import AfterRound, Follow, baselines, both
from hushbid.running.training import ForkedTraining
from hushbid.text_files import check_directory_place

__all__ = ["DEFAULT_DIRECTORY", "OF_TABLES", "Ended", "PartyFailed", "Say", "run", "run_parties"]

DEFAULT_DIRECTORY: Final = Path("runs")

Say: TypeAlias = Callable[[str], object]
"""Takes a line for people."""

OF_TABLES: Final = ("hushbid.protocol.data.tables", "pandas")
"""What parties that read tables import: pyarrow imports pandas where it is installed."""

_T = TypeVar("_T")
_LOOK_SECONDS: Final = 0.05
"""Time between two looks at the processes."""
_GRACE_SECONDS: Final = 1.0
"""Seconds for the others to end by themselves after one has failed: they may be the cause."""
_LEAVE_SECONDS: Final = 5.0
"""Seconds for owners to end by themselves after the curator and the consumer have ended well."""
_STOP_SECONDS: Final = 5.0
"""Seconds for a process to end in good order before it is killed."""
_SHOWN_LINES: Final = 15
_NEEDED: Final = (CURATOR, CONSUMER)


@dataclass(frozen=True)
class Ended:
    """Processes that have all ended.

    Attributes:
        curator, consumer: Their results.
        owners: Results of owners that ended well, by name.
        failed: How the others failed.
        identifiers: Process ids, by party.
    """

    curator: CuratorResult
    consumer: ConsumerResult
    owners: Mapping[str, OwnerResult]
    failed: Mapping[str, str]
    identifiers: Mapping[str, int]


def run(
    cluster: Cluster,
    *,
    directory: Path | None = None,
    progress: AfterRound | None = None,
    follow: Follow | None = None,
    say: Say | None = None,
    rehearsing: Rehearsing = NOT_REHEARSING,
    server: ForkServer | None = None,
    replay: bool = False,
) -> RunResult:
    """Run a cluster's session with a process per party, and compare it with baselines no party can compute.

    However this ends, no process is left. Anything a party would refuse is refused before anything is made.
    The error of a run that began has the run's directory, its purchase and its charges as notes.

    Args:
        directory: Parent of the run's directory; None: as the cluster file says, else ``runs``.
        progress: Called about ten times a second from the first round on.
        follow: Called as often from enrolment on, and while the result is compared with other choices, with
            all that is known (`hushbid.protocol.machine.progress`).
        say: Receives what failed parties wrote for people, the reason for a missing report, and a notice of
            a long comparison.
        rehearsing: How the session is rehearsed, once, with the consumer's files.
        server: Forks the parties, if it is already started.
        replay: Whether to also write a page that replays the session.

    Raises:
        Hopeless: A rehearsal is hopeless, and the session is not to go on anyway.
        PartyFailed: A party would refuse its part (`check_run`), or failed, and the run with it
            (`run_parties`).
        HushbidError: The session or the directory cannot be made.
    """
    if server is None:
        with ForkServer() as server:
            return run(
                cluster,
                directory=directory,
                progress=progress,
                follow=follow,
                say=say,
                rehearsing=rehearsing,
                server=server,
                replay=replay,
            )
    if _reads_tables(cluster):
        server.load(OF_TABLES)
    training = ForkedTraining(server, modules_of(cluster.model))
    if cluster.partition is not None:  # its rows have labels
        training.get_ready()
    importing = _Importing()
    rehearsing = replace(rehearsing, training=importing.beside(training))
    verdict = NO_VERDICT

    def check(session: SessionFile) -> None:
        nonlocal verdict
        verdict = check_run(cluster, session, rehearsing, say)

    parent = directory or cluster.file.run.directory or DEFAULT_DIRECTORY
    check_directory_place(parent)  # a rehearsal may take long
    prepared = prepare(cluster, parent, check=check)
    try:
        session = open_session(prepared.session)
        keep_verdict(_consumer_file(prepared).state, session, verdict)  # its process does not rehearse
        importing.start()  # while the parties run the session
        ended = run_parties(prepared, told := both(progress, follow), say, server)
        last = _over(session, ended.curator)
        if told is not None:
            told(last)  # the curator's last line may not have been read
        importing.join()
        with one_blas_thread():
            reference = baselines(cluster, session, _data(cluster, prepared), last, told, say, training)
        result = _result(prepared, session, ended, reference, cluster.display)
        _keep(result, prepared.path)  # result known: a report may take a while, and be interrupted
        result = with_pages(result, reference, prepared.path, say, training if replay else None)
        _keep(result, prepared.path)
    except BaseException as error:
        # Also when interrupted: the parties' records lie there. Whoever prints the error prints its notes.
        place = f"The run's directory is {prepared.path}"
        bought = _bought_lines(prepared)
        broken_off = not bought and not isinstance(error, Exception)
        going_on = _going_on_lines(prepared) if broken_off else []
        for line in (place, *bought, *going_on, *charged_lines(prepared)):
            error.add_note(line)
        raise
    return result


def _reads_tables(cluster: Cluster) -> bool:
    """Whether a party's own file is a table."""
    if cluster.partition is not None:  # whose files are arrays
        return False
    own = [
        path for party in named_files(cluster).values() for path in party.values() if isinstance(path, Path)
    ]
    return any(known.table is not None for known in map(format_of, own) if known is not None)


class _Importing:
    """Imports the drawing code of reports in a thread, while this process waits for another.

    It is joined before BLAS is limited: a search for libraries holds the linker's lock and waits for the
    interpreter, and imports need both.
    """

    def __init__(self) -> None:
        self._thread: Thread | None = None

    def start(self) -> None:
        """Start, unless it has started."""
        if self._thread is None:
            self._thread = Thread(target=import_page, daemon=True)
            self._thread.start()

    def join(self) -> None:
        if self._thread is not None:
            self._thread.join()

    def beside(self, training: Training) -> Training:
        """The same training, which imports meanwhile."""

        def train(function: Callable[[], _T], /) -> _T:
            self.start()
            return training(function)

        return train


def _over(session: Session, sold: CuratorResult) -> Progress:
    """The progress of a session whose processes have ended."""
    return Progress(
        party=CURATOR,
        phase="done",
        round=sold.rounds,
        rounds=session.file.rounds,
        points=sold.points_delivered,
        points_planned=session.file.session.points,
        points_per_second=None,
        seconds_left=None,
    )


def _consumer_file(prepared: RunDirectory) -> ConsumerFile:
    [consumer] = [party for party in prepared.parties if party.role == "consumer"]
    return load_toml(ConsumerFile, consumer.directory / PARTY_FILE).resolved(consumer.directory)


def _data(cluster: Cluster, prepared: RunDirectory) -> ClusterData:
    """Every party's data, with the seed set that the consumer drew, if it did."""
    data = cluster.load()
    if not cluster.drawing:
        return data
    file = _consumer_file(prepared)
    session = open_session(prepared.session)
    return replace(data, seed_set=consumer_seed_set(session, file, data.validation, when_missing="refuse"))


def _bought_lines(prepared: RunDirectory) -> list[str]:
    """What the consumer of a run that did not end well has all the same, in lines for people."""
    state = consumer_state_in(prepared.path)
    if state is None or not (state / DELIVERED_FILE).is_file():
        return []
    try:
        if not Status.read(status_path(state, CONSUMER)).finished:
            return []  # it was killed, and would have to be started again first
    except HushbidError:
        return []
    there = "The purchase" if (state / RESULT_FILE).is_file() else "What was delivered"
    return [f"{there} is there: `hushbid results {shlex.quote(str(prepared.path))}` opens it."]


def _going_on_lines(prepared: RunDirectory) -> list[str]:
    """How a session goes on that was interrupted, in lines for people; none if a party had not taken part."""
    directories = [party.directory for party in prepared.parties]
    if not all(any(each.glob("state/*.transcript")) for each in directories):
        return []
    return [
        f"The session can go on: start every party in its directory in {directories[0].parent}, as in "
        "`hushbid owner --session session.toml --config party.toml`."
    ]


def charged_lines(prepared: RunDirectory) -> list[str]:
    """What a run charged to its parties' lifetime ledgers, in lines for people."""
    identifier = prepared.session.digest()[:16].hex()
    lines: list[str] = []
    free: list[str] = []
    for party in prepared.parties:
        if party.role == "curator":
            continue
        path = party.directory / PARTY_FILE
        try:
            kind: type[OwnerFile | ConsumerFile] = OwnerFile if party.role == "owner" else ConsumerFile
            file = load_toml(kind, path).resolved(party.directory)
            data = file.data if isinstance(file, OwnerFile) else file.validation
            charged = charges(ledger_path(file, data), identifier, party.name)
        except HushbidError as error:
            lines.append(f"What {party.name} was charged cannot be told: {error.what}")
            continue
        lines += [f"Charged to {line}" for line in charged]
        if not charged:
            free.append(party.name)
    return [*lines, *([f"Nothing was charged to {', '.join(free)}."] if free else [])]


def _keep(result: RunResult, directory: Path) -> None:
    text = json.dumps(result.as_json(), indent=2, allow_nan=False)
    path = directory / "result.json"
    path.touch(mode=platform.PRIVATE)  # it has figures of every party's private data
    path.write_text(text + "\n", encoding="utf-8")


def _result(
    prepared: RunDirectory,
    session: Session,
    ended: Ended,
    reference: Baselines,
    display: Mapping[str, str],
) -> RunResult:
    places = {party.name: party.directory for party in prepared.parties}
    results: dict[str, PartyResult] = {CURATOR: ended.curator, CONSUMER: ended.consumer, **ended.owners}
    return RunResult.told(
        session,
        reference,
        curator=ended.curator,
        consumer=ended.consumer,
        display=display,
        failed_parties=ended.failed,
        transcripts={name: places[name] / found.transcript for name, found in results.items()},
        data=places[CONSUMER] / ended.consumer.data,
        directory=prepared.path,
        processes=ended.identifiers,
    )


def run_parties(
    prepared: RunDirectory,
    follow: Follow | None = None,
    say: Say | None = None,
    server: ForkServer | None = None,
) -> Ended:
    """Run a process for each party until all have ended.

    The failure of the curator or the consumer ends the run. So does that of an owner before the curator has
    begun the first round: its file or data are at fault, and its operator should know before the time for
    enrolment is over. Later a failed owner counts as absent, as the protocol provides, until fewer are left
    than the session needs: it would wait for them in vain, as nobody starts them again. Owners that hang are
    stopped some seconds after the curator and the consumer have ended.

    Args:
        follow: Called about ten times a second.
        say: Receives the last lines that failed parties wrote for people, each with its party's name.
        server: Forks the parties, and is closed afterwards by whoever made it; None: one is made.

    Raises:
        PartyFailed: A party failed, and the run with it; the others were ended.
    """
    if server is None:
        with ForkServer() as server:
            return run_parties(prepared, follow, say, server)
    with _Processes(prepared, say, server) as processes:
        processes.watch(follow)
        return processes.ended()


class _Processes:
    """The processes of a run. Whatever happens, none outlives the ``with``."""

    def __init__(self, prepared: RunDirectory, say: Say | None, server: ForkServer) -> None:
        self._say, self._parties, self._server = say, prepared.parties, server
        self._session = prepared.session
        self._stack = ExitStack()
        self._life = ExitStack()
        self._processes: list[PartyProcess] = []
        self._progress = -1
        self._unread = b""
        self._begun = False
        """Whether the curator has begun the first round."""
        self._seen: Progress | None = None
        """The curator's last line of progress."""
        self._told: set[str] = set()
        """Parties whose failure was passed to `say`."""

    def __enter__(self) -> Self:
        try:
            self._progress, writing = os.pipe()
            self._stack.callback(os.close, self._progress)
            launcher, ours = os.pipe()  # never written to: holding its end open says that we are alive
            self._life.callback(os.close, ours)
            try:
                for party in self._parties:
                    self._start(party, launcher, writing if party.role == "curator" else None)
            finally:
                os.close(writing)
                os.close(launcher)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._end()

    def _start(self, party: Party, launcher: int, progress: int | None) -> None:
        try:
            started = PartyProcess(party, server=self._server, launcher=launcher, progress=progress)
            self._processes.append(started)
        except OSError as error:
            raise HushbidError(
                f"The process of {party.name} cannot be started: {error.strerror}.",
                advice="Check this machine's limits on processes and open files.",
            ) from None

    def watch(self, follow: Follow | None) -> None:
        """Wait until all have ended, or the required ones have ended well and the others had their time.

        Raises:
            PartyFailed: One of them failed, and the run with it.
        """
        needed = [process for process in self._processes if process.party.name in _NEEDED]
        failing: float | None = None
        leaving: float | None = None
        gone: list[PartyProcess] = []
        while any(process.running for process in self._processes):
            self._read_progress(follow)
            now = time.monotonic()
            gone = self._gone()
            if self._fatal() or gone:
                failing = failing or now + _GRACE_SECONDS
                if now >= failing:
                    break
                continue
            failing = None
            for process in self._processes:
                if process.failed:
                    self._tell(process)
            if not any(process.running for process in needed):
                leaving = leaving or now + _LEAVE_SECONDS
                if now >= leaving:
                    break
        if fatal := self._fatal():
            self._end_with(*party_failed(fatal))
        if gone and any(process.running for process in needed):
            self._end_with(*too_few_left(gone, self._session))

    def _end_with(self, error: PartyFailed, said: Collection[str]) -> NoReturn:
        for process in self._processes:
            if process.failed:
                self._tell(process, without=said)
        raise error

    def _fatal(self) -> list[PartyProcess]:
        """The failed parties that end the run."""
        failed = [process for process in self._processes if process.failed]
        needed = [process for process in self._processes if process.party.name in _NEEDED]
        # A short session can be over before its progress has been read.
        over = not any(process.running or process.failed for process in needed)
        if self._begun or over:
            return [process for process in failed if process in needed]
        return failed

    def _gone(self) -> list[PartyProcess]:
        """The failed owners, if the curator waits for them in vain; empty as long as it goes on without."""
        failed = {
            process.party.name: process
            for process in self._processes
            if process.failed and process.party.name not in _NEEDED
        }
        if not failed or self._seen is None:
            return []
        return [failed[name] for name in gone_for_good(self._session, self._seen, failed)]

    def _tell(self, process: PartyProcess, without: Collection[str] = ()) -> None:
        if self._say is None or process.party.name in self._told:
            return
        self._told.add(process.party.name)
        for line in process.log_tail(_SHOWN_LINES):
            if line.removeprefix("hushbid:").strip() not in without:
                self._say(f"{process.party.name} | {line}")

    def ended(self) -> Ended:
        """The processes' results; those that still run are stopped.

        Raises:
            LocalProtocolError: One ended well without a result.
        """
        printed: dict[str, dict[str, Any]] = {}
        failed: dict[str, str] = {}
        for process in self._processes:
            name = process.party.name
            if process.running:
                failed[name] = f"it had not ended {_LEAVE_SECONDS:g} s after the session, and was stopped."
                self._tell(process)
            elif process.failed:
                failed[name], _ = account_of(process)
                self._tell(process)
            elif (result := process.result()) is not None:
                printed[name] = result
            else:
                raise LocalProtocolError(f"{name} ended well, but printed no result.")
        identifiers = {process.party.name: process.identifier for process in self._processes}
        return Ended(
            CuratorResult.from_json(printed.pop(CURATOR)),
            ConsumerResult.from_json(printed.pop(CONSUMER)),
            {name: OwnerResult.from_json(values) for name, values in printed.items()},
            failed,
            identifiers,
        )

    def _read_progress(self, follow: Follow | None) -> None:
        """Wait briefly for a line of progress."""
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
        if not lines:
            return
        found = Progress.from_line(lines[-1])
        self._begun, self._seen = self._begun or found.round > 0, found
        if follow is not None:
            follow(found)

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
            self._life.close()
