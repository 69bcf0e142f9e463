"""Sessions of real processes: private directories, keys and data; parties started, watched and ended.

Tests wait with `Cluster.until`: for a condition, up to a deadline, with the parties' logs in the failure. A
`Puppet` is a party on the test's side: an honest machine on a real CURVE connection, whose frames a test may
hold back (and so set the pace of a session), replace, or add to.
"""

from __future__ import annotations

import copy
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import tomllib
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt
import tomli_w
import zmq

from hushbid.consumer.party import consumer_party
from hushbid.owner.party import owner_party
from hushbid.protocol.config.loading import load_toml
from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.data import DataColumns, Dataset, load_dataset
from hushbid.protocol.errors import RemoteProtocolError
from hushbid.protocol.machine.base import Machine
from hushbid.protocol.machine.machine import Connected, Finish, Lost
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.runtime.driver import Driver, Numerics, Outgoing
from hushbid.protocol.runtime.keys import KeyPair, PublicKey, new_keypair, write_secret
from hushbid.protocol.runtime.network.dealer import DealerEndpoint, Happening
from hushbid.protocol.runtime.party import head_signer, party_noise, sealing_identity
from hushbid.protocol.session.session import Session, open_session
from hushbid.protocol.transcript.journal import NullJournal
from hushbid.protocol.transcript.record import Record
from hushbid.protocol.transcript.session_file import started
from hushbid.protocol.transcript.verify import Verification, verify
from hushbid.protocol.wire.codec import Direction, decode_frame, decode_message
from hushbid.protocol.wire.messages import Message, Refused
from hushbid.running.fork_server import party_environment
from tests.processes.forked import ForkedProcess, PartyProcess
from tests.support.session_files import at
from tests.support.transcripts import read_transcript

__all__ = [
    "BLIND",
    "COLUMNS",
    "PATIENCE",
    "SEALED",
    "SECURE",
    "Cluster",
    "Ended",
    "Puppet",
    "bodies",
    "free_port",
    "silent_listener",
]

PATIENCE = 120.0
"""Seconds after which what has not happened will not happen, on a machine with ten times the work."""
COLUMNS = 3
_LOOK_MS = 20
_READ_AT_THE_START = ("BLIS_", "LD_", "MKL_", "NPY_", "OMP_", "OPENBLAS_", "PYTHON")
"""How variables begin that BLAS or Python read when they are loaded."""
_T = TypeVar("_T")

_SESSION: dict[str, Any] = {
    # Owners that miss a round come back: most of what goes wrong here is about that.
    "session": {"name": "birds", "points": 20, "batch": 1, "distinct": False, "allow_nonprivate": True},
    "features": {"gamma": 0.5, "seed": 7, "columns": COLUMNS, "dimension": 16},
    "target": {"mechanism": "exact"},
    "summary": {"mechanism": "exact"},
    "acquisition": {"rule": "ask-all"},
    "noise": {"source": "simulated", "seed": 0},
    # Nobody is given up because this machine is busy: tests that wait for a limit set it. But who is gone is
    # not waited for: tests in which a party comes back set that, too.
    "timeouts": {
        "enrolment": 120.0, "round": 120.0, "pause": 120.0, "delivery": 120.0, "silence": 120.0,
        "abandon": 120.0, "comeback": 0.3, "closing": 5.0, "beat": 0.2,
    },
}  # fmt: skip

SEALED: dict[str, Any] = {"acquisition.rule": "sealed", "features.seed": None}
"""Changes to a session file: points are sealed to the consumer, and so is the feature map to the owners."""
BLIND: dict[str, Any] = SEALED | {"acquisition.rule": "blind"}
"""The same, and the consumer weighs."""
SECURE: dict[str, Any] = {"noise.source": "secure", "noise.seed": None}
"""Changes to a session file: noise and keys are not to be repeated."""


def free_port() -> int:
    """A port below those that the system gives to outgoing connections, so that it stays free."""
    while True:
        port = 20_000 + secrets.randbelow(12_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def silent_listener() -> socket.socket:
    """A server that accepts connections and never says a word."""
    return socket.create_server(("127.0.0.1", free_port()))


@dataclass(frozen=True)
class Ended:
    """How a party's process ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The only object on stdout."""
        assert len(self.out.splitlines()) == 1, (self.out, self.err)
        found: dict[str, Any] = json.loads(self.out)
        return found

    @property
    def error(self) -> dict[str, Any]:
        """The error in that object."""
        found: dict[str, Any] = self.json["error"]
        assert set(found) == {"kind", "what", "advice", "exit_code"}
        assert found["exit_code"] == self.code
        assert found["what"] in self.err, "people are told the same"
        return found


class Cluster:
    """A session's parties, each in a directory of its own below `place`.

    Args:
        place: An empty directory.
        owners: Names of the owners.
        rows: Points of each.
        changes: Values of the session file at dotted paths; None removes a key.
        anew: Parties whose processes start a new Python; the others are forked (`ForkedProcess`).
    """

    def __init__(
        self,
        place: Path,
        owners: Sequence[str] = ("heron", "magpie", "ostrich"),
        *,
        rows: int = 40,
        changes: Mapping[str, Any] | None = None,
        anew: Collection[str] = (),
    ) -> None:
        self.place = place
        self.anew = frozenset(anew)
        self.owners = tuple(owners)
        self.names = (CURATOR, CONSUMER, *self.owners)
        self.keys: dict[str, KeyPair] = {name: new_keypair() for name in self.names}
        self.port = free_port()
        self.values = copy.deepcopy(_SESSION)
        self.values["network"] = {"address": f"tcp://127.0.0.1:{self.port}"}
        public = {name: pair.public.text for name, pair in self.keys.items()}
        owner_keys = {name: public[name] for name in self.owners}
        self.values["roster"] = {"curator": public[CURATOR], "consumer": public[CONSUMER]}
        self.values["roster"]["owners"] = owner_keys
        _change(self.values, changes or {})
        self.processes: dict[str, PartyProcess] = {}
        self.puppets: list[Puppet] = []
        self._read: dict[str, tuple[object, tuple[Record, ...]]] = {}
        (place / "said").mkdir()
        for number, name in enumerate(self.names):
            self._furnish(name, rows, np.random.default_rng([number, 2024]))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for puppet in self.puppets:
            puppet.close()
        for process in self.processes.values():
            if process.poll() is None:
                process.kill()  # also ends one that is stopped
            process.wait()

    # -- what lies where ----------------------------------------------------------------------------

    def directory(self, name: str) -> Path:
        return self.place / "parties" / name

    def transcript_path(self, name: str) -> Path:
        return self.directory(name) / "state" / f"{name}.transcript"

    def _furnish(self, name: str, rows: int, rng: np.random.Generator) -> None:
        directory = self.directory(name)
        directory.mkdir(mode=0o700, parents=True)
        write_secret(directory / "secret.key", self.keys[name])
        secure = self.values["noise"]["source"] == "secure"
        durability = "fsync" if secure else "flush"
        own: dict[str, Any] = {"key": "secret.key", "state": "state", "durability": durability}
        if name == CONSUMER:
            _save(directory / "validation.npz", name, rng.beta(2, 5, (rows, COLUMNS)), rng)
            _save(directory / "seed.npz", "public", rng.random((10, COLUMNS)), rng)
            own |= {"validation": "validation.npz", "seed_set": "seed.npz"}
        elif name != CURATOR:
            _save(directory / "data.npz", name, rng.random((rows, COLUMNS)), rng)
            own |= {"name": name, "data": "data.npz"}
        self.write(name, "party.toml", own)
        self.write(name, "session.toml", self.values)

    def write(self, name: str, file: str, values: Mapping[str, Any]) -> None:
        (self.directory(name) / file).write_text(tomli_w.dumps(values), encoding="utf-8")

    def change(self, name: str, changes: Mapping[str, Any], *, file: str = "session.toml") -> None:
        """Change a file of one party only."""
        values = tomllib.loads((self.directory(name) / file).read_text(encoding="utf-8"))
        _change(values, changes)
        self.write(name, file, values)

    def use_key(self, name: str, pair: KeyPair) -> None:
        """Put another key into a party's key file."""
        (self.directory(name) / "secret.key").unlink()
        write_secret(self.directory(name) / "secret.key", pair)

    @property
    def session(self) -> Session:
        return open_session(load_toml(SessionFile, self.directory(CURATOR) / "session.toml"))

    def dataset(self, name: str, file: str = "data.npz") -> Dataset:
        return load_dataset(self.directory(name) / file, DataColumns(None, None, None))

    # -- processes ----------------------------------------------------------------------------------

    def start(self, *names: str, **environment: str) -> None:
        """Start parties' processes, each in its own directory, as people do by hand."""
        for name in names:
            if name in self.processes:
                # Its connections end before it does: others may have missed it already.
                self.end(name)
            arguments = ["--session", "session.toml", "--config", "party.toml", "--json"]
            if name in self.anew or any(variable.startswith(_READ_AT_THE_START) for variable in environment):
                self.run(name, ["-m", self.role(name), *arguments], environment)
            else:
                self.processes[name] = self._fork(name, arguments, environment, self.directory(name), name)

    def start_in(self, directory: Path, name: str, *more: str) -> Ended:
        """The end of a party started in a directory, which may be a copy of its own."""
        arguments = ["--session", "session.toml", "--config", "party.toml", "--json", *more]
        said = f"{name}-again"
        code = self._fork(name, arguments, {}, directory, said).wait(PATIENCE)
        return Ended(code, self._said(said, "out").read_text(), self.log(said))

    def namespace(self, name: str) -> Path | None:
        """The network namespace that a party's process runs in; None: this process's."""
        return None

    def role(self, name: str) -> str:
        return name if name in (CURATOR, CONSUMER) else "owner"

    def run(self, name: str, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        """Run Python with these arguments as a party's process."""
        with self._said(name, "out").open("wb") as out, self._said(name, "err").open("wb") as err:
            self.processes[name] = subprocess.Popen(
                [sys.executable, "-P", *arguments],
                cwd=self.directory(name),
                env=party_environment(os.environ) | dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )

    def _fork(
        self, name: str, arguments: Sequence[str], environment: Mapping[str, str], directory: Path, said: str
    ) -> ForkedProcess:
        out, err = (self._said(said, stream) for stream in ("out", "err"))
        for path in (out, err):
            path.write_bytes(b"")
        return ForkedProcess(
            self.role(name),
            arguments,
            directory=directory,
            environment=party_environment(os.environ) | dict(environment),
            out=out,
            err=err,
            network=self.namespace(name),
        )

    def start_all(self, *, but: Sequence[str] = ()) -> None:
        self.start(*(name for name in self.names if name not in but))

    def puppet(self, name: str) -> Puppet:
        """A party on this side, honest until told otherwise."""
        puppet = Puppet(self, name)
        self.puppets.append(puppet)
        return puppet

    def signal(self, name: str, number: signal.Signals) -> None:
        self.processes[name].send_signal(number)

    def running(self, name: str) -> bool:
        return self.processes[name].poll() is None

    def end(self, *names: str, seconds: float = PATIENCE) -> dict[str, Ended]:
        """Wait until these (or all) processes have ended by themselves."""
        waited = names or tuple(self.processes)
        self.until(lambda: not any(map(self.running, waited)), f"{waited} to end", seconds=seconds)
        return {name: self.ended(name) for name in waited}

    def ended(self, name: str) -> Ended:
        code = self.processes[name].poll()
        assert code is not None, f"{name} still runs"
        return Ended(code, self._said(name, "out").read_text(), self.log(name))

    def log(self, name: str) -> str:
        """Its output for people so far."""
        return self._said(name, "err").read_text(encoding="utf-8")

    def records(self, name: str) -> tuple[Record, ...]:
        """Its transcript so far; empty while there is none."""
        path = self.transcript_path(name)
        try:
            seen = path.stat()
            # Tests that wait ask again and again, mostly before anything has been added.
            state = (seen.st_ino, seen.st_size, seen.st_mtime_ns)
            if self._read.get(name, (None, ()))[0] != state:
                self._read[name] = state, read_transcript(path).records
            return self._read[name][1]
        except Exception:
            if path.exists() and not self.running(name):
                raise
            return ()  # still being made

    def verified(self, name: str) -> Verification:
        """Check a transcript's every digest: raises if anything recorded is lost."""
        return verify(self.transcript_path(name))

    def round(self) -> int:
        """The last round that the curator has broadcast, by its transcript."""
        sent = [
            body
            for key, found in bodies(self.records(CURATOR), CURATOR).items()
            if key[2] == "broadcast"
            for body in found
        ]
        return max((_round_of(Direction.CURATOR_TO_OWNER, body) for body in sent), default=0)

    def until(self, condition: Callable[[], _T], what: str, *, seconds: float = PATIENCE) -> _T:
        """Wait for a condition while the puppets live.

        Raises:
            AssertionError: The time is over; it has the parties' logs.
        """
        deadline = time.monotonic() + seconds
        while not (found := condition()):
            if time.monotonic() > deadline:
                raise AssertionError(f"{what}: not within {seconds} s.\n{self._story()}")
            poller = zmq.Poller()
            for puppet in self.puppets:
                puppet.watch(poller)
            if poller.sockets:
                poller.poll(_LOOK_MS)
            else:  # of nothing, ZeroMQ does not wait at all
                time.sleep(_LOOK_MS / 1000)
            for puppet in self.puppets:
                puppet.pump()
        return found

    def _said(self, name: str, stream: str) -> Path:
        return self.place / "said" / f"{name}.{stream}"

    def _story(self) -> str:
        told = [f"{name} [{process.poll()}]\n{self.log(name)}" for name, process in self.processes.items()]
        return "\n".join([*told, *(f"{p.name} (puppet) {p.finish}" for p in self.puppets)])


class Puppet:
    """A party on the test's side.

    Attributes:
        hold: Which frames wait in `held`; the test sends them with `let_go`.
        heard: The curator's messages, in order.
        finish: How its machine ended; None while it runs.
    """

    def __init__(self, cluster: Cluster, name: str) -> None:
        session = cluster.session
        self.name = name
        self.hold: Callable[[Outgoing], bool] = lambda _frame: False
        self.held: list[Outgoing] = []
        self.heard: list[Message] = []
        self.session = session.identifier
        identity = sealing_identity(session, cluster.keys[name], name)
        noise = party_noise(session, name)
        machine: Machine
        numerics: Numerics
        if name == CONSUMER:
            machine, numerics = consumer_party(
                session,
                identity=identity,
                noise=noise,
                validation=cluster.dataset(name, "validation.npz"),
                seed_set=cluster.dataset(name, "seed.npz"),
                store=lambda _purchases: None,
            )
            self._direction = Direction.CURATOR_TO_CONSUMER
        else:
            data = cluster.dataset(name)
            machine, numerics = owner_party(
                session, name, data, identity=identity, noise=noise, scratch=None, memory_limit=2**30
            )
            self._direction = Direction.CURATOR_TO_OWNER
        self._driver = Driver(
            machine,
            numerics,
            NullJournal(),
            session=session.identifier,
            direction=lambda _peer: self._direction,
            sign=head_signer(session, name, identity),
        )
        self.endpoint = DealerEndpoint(
            session.file.network.address,
            pair=cluster.keys[name],
            server_key=PublicKey(session.file.roster.curator),
        )
        self._beat = session.file.timeouts.beat
        self._beaten = time.monotonic()
        self._closed = False
        self.muted = False
        """Whether it gives no signs of life."""
        self._driver.begin(started(session.file), time.monotonic())

    @property
    def finish(self) -> Finish | None:
        return self._driver.finished

    @property
    def refused(self) -> list[Refused]:
        return [message for message in self.heard if isinstance(message, Refused)]

    def hold_bids_from(self, round_number: int) -> None:
        """Keep its bids back from a round on: the round lasts until `let_go`."""
        self.hold = lambda frame: (
            frame.kind == "bid"
            and _round_of(Direction.OWNER_TO_CURATOR, decode_frame(frame.data).body) >= round_number
        )

    def let_go(self) -> None:
        """Send what was held, and hold nothing any more."""
        self.hold = lambda _frame: False
        held, self.held = self.held, []
        for frame in held:
            self.endpoint.send(frame.data)

    def say(self, data: bytes) -> None:
        """Send the test's own bytes, even those that the endpoint would refuse to send."""
        self.endpoint.socket.send(data)

    def watch(self, poller: zmq.Poller) -> None:
        if not self._closed:
            poller.register(self.endpoint.socket, zmq.POLLIN)
            poller.register(self.endpoint.monitor, zmq.POLLIN)

    def pump(self) -> None:
        """One turn of its loop."""
        if self._closed:
            return
        now = time.monotonic()
        for happening in self.endpoint.happenings():
            if self.finish is not None:
                continue
            if happening is Happening.CONNECTED:
                self._driver.feed(Connected(), now)
            elif happening is Happening.DISCONNECTED:
                self._driver.feed(Lost(CURATOR), now)
        for data in self.endpoint.receive(100):
            self._note(data)
            if self.finish is None:
                self._driver.receive(CURATOR, data, now)
        for frame in self._driver.release():
            # What follows a frame that is held back waits with it: frames come in order.
            if self.held or self.hold(frame):
                self.held.append(frame)
            else:
                self.endpoint.send(frame.data)
        if now - self._beaten >= self._beat and not self.muted:
            self._beaten = now
            self.endpoint.send(self._driver.beat())

    def close(self) -> None:
        """Leave without a word."""
        self._closed = True
        self.endpoint.close()

    def _note(self, data: bytes) -> None:
        try:
            message = decode_message(self._direction, decode_frame(data).body)
        except RemoteProtocolError:  # its driver judges what it is told
            return
        if message.kind != "beat":
            self.heard.append(message)


def _round_of(direction: Direction, body: bytes) -> int:
    return int(decode_message(direction, body).round)  # type: ignore[attr-defined]


def bodies(records: Sequence[Record], party: str) -> dict[tuple[str, str, str], list[bytes]]:
    """The message bodies of a transcript, in order, by (sender, receiver, kind)."""
    found: dict[tuple[str, str, str], list[bytes]] = defaultdict(list)
    for record in records:
        for item in record.items:
            frame: Any = item.private.get("frame")
            if item.kind == "send":
                found[party, frame["peer"], frame["message"]].append(frame["body"])
            elif item.kind == "received":
                found[frame["peer"], party, frame["message"]].append(frame["body"])
    return dict(found)


def _save(path: Path, name: str, features: npt.NDArray[np.float64], rng: np.random.Generator) -> None:
    rows = len(features)
    # Every row has bytes that are its own, so that it can be looked for.
    np.savez(
        path,
        features=features,
        labels=rng.integers(0, 2, rows),
        identifiers=np.array([f"{name}-{row:04d}" for row in range(rows)]),
    )


def _change(values: dict[str, Any], changes: Mapping[str, Any]) -> None:
    for path, value in changes.items():
        table, key = at(values, path)
        if value is None:
            table.pop(key, None)
        else:
            table[key] = value
