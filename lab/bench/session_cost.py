"""The cost of a session between processes: time of its rounds, and its parties' processor time in them."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hushbid.cluster.file import open_cluster
from hushbid.consumer.events import PurchasesChecked
from hushbid.lab.bench.relay import relay
from hushbid.lab.bench.spent import ProcessorSampler, RoundCost
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.machine.machine import Send
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.printable import printable_lines
from hushbid.protocol.transcript.reader import TranscriptReader
from hushbid.protocol.wire.codec import HEADER_BYTES
from hushbid.running.directory import prepare, redirect
from hushbid.running.launcher import run_parties

__all__ = ["SessionCost", "check_python", "sent_bodies", "session_cost", "times_of"]

_BROADCASTS: Final = frozenset({"broadcast", "sealed-broadcast"})
_REPLIES: Final = frozenset({"bid", "batch", "blind-bid"})
_ELSEWHERE: Final = """
import json, sys, time
from pathlib import Path
from hushbid.cluster.file import open_cluster
from hushbid.protocol.wire.codec import HEADER_BYTES
from hushbid.running.directory import prepare
from hushbid.running.launcher import run_parties

prepared = prepare(open_cluster(Path(sys.argv[1])), Path(sys.argv[2]))
began = time.monotonic()
ended = run_parties(prepared, say=lambda line: print(line, file=sys.stderr))
places = {party.name: party.directory for party in prepared.parties}
# Results were JSON once.
results = getattr(ended, "results", None) or {
    "curator": ended.curator, "consumer": ended.consumer, **ended.owners
}
told = {name: each if isinstance(each, dict) else vars(each) for name, each in results.items()}
transcripts = {name: str(places[name] / each["transcript"]) for name, each in told.items()}
print(json.dumps({
    "began": began,
    "seconds": told["curator"]["wall_seconds"],
    "curator": transcripts.pop("curator"),
    "consumer": transcripts.pop("consumer"),
    "owner": min(transcripts.values()),
}))
"""
"""The code that another checkout's Python runs; it uses only long-standing names of hushbid."""
_SHOWN_CHARACTERS: Final = 400


@dataclass(frozen=True)
class SessionCost(RoundCost):
    """The cost of one session; times in seconds.

    Attributes:
        broadcast_bytes, reply_bytes: Size of a broadcast's frame, and of the frame with which an owner
            answers.
        whole: From the start of the parties' processes until the consumer had the last points.
    """

    broadcast_bytes: int
    reply_bytes: int
    whole: float


@dataclass(frozen=True)
class _Ended:
    """A finished session: its start, its rounds' seconds, and three parties' transcripts."""

    began: float
    seconds: float
    curator: Path
    consumer: Path
    owner: Path


def session_cost(
    file: Path,
    runs: Path,
    *,
    say: Callable[[str], None],
    python: Path | None = None,
    warm_up: int = 0,
    delay: float = 0.0,
) -> SessionCost:
    """Run a cluster's session with a process for each party, and measure its rounds.

    Transcripts give the times of rounds, as all parties' records use the machine's one clock. The processes'
    clocks give the processor time used until then, without the launcher's.

    Args:
        runs: Directory in which to create the run.
        python: The Python of another checkout to run the session with; None: this one.
        warm_up: The first rounds, which do not count.
        delay: One-way network delay in seconds; 0: no relay. Only for this checkout.

    Raises:
        ConfigError: The other checkout cannot run the session.
        PartyFailed: The session failed.
    """
    if python is None:
        with ProcessorSampler(os.getpid()) as spending:
            ended = _run_here(file, runs, delay, say)
    else:
        ended, spending = _run_elsewhere(python, file, runs)
    broadcasts = _broadcasts(ended.curator)
    starts = list(broadcasts.values())
    start, end = starts[warm_up], starts[0] + ended.seconds
    return SessionCost(
        rounds=len(starts) - warm_up,
        seconds=end - start,
        processor_seconds=spending.between(start, end),
        broadcast_bytes=HEADER_BYTES + max(map(len, broadcasts)),
        reply_bytes=HEADER_BYTES + max(len(body) for _, body in sent_bodies(ended.owner, _REPLIES)),
        whole=max(times_of(ended.consumer, PurchasesChecked.KIND)) - ended.began,
    )


def check_python(python: Path) -> None:
    """Refuse a Python without hushbid, before anything is measured.

    Raises:
        ConfigError: It does not run, or cannot import what a session needs.
    """
    command = [_command(python), "-P", "-c", "import hushbid.running.launcher"]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except subprocess.CalledProcessError as error:
        raise _refused(python, error.stderr.strip()[-_SHOWN_CHARACTERS:]) from None
    except OSError as error:
        raise _refused(python, str(error)) from None


def _command(python: Path) -> str:
    """What starts it: a file here, or else a program on the search path."""
    return str(python.absolute() if python.is_file() else python)


def _refused(python: Path, why: str) -> ConfigError:
    return ConfigError(
        f"{python} could not run a session: {printable_lines(why) or 'it said nothing'}.",
        advice="Name the Python of another checkout's environment, such as ../before/.venv/bin/python.",
    )


def _run_elsewhere(python: Path, file: Path, runs: Path) -> tuple[_Ended, ProcessorSampler]:
    """Run a session with another checkout's Python, and read its parties' clocks."""
    with (
        subprocess.Popen(
            [_command(python), "-P", "-c", _ELSEWHERE, str(file), str(runs)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process,
        ProcessorSampler(process.pid) as spending,
    ):
        out, err = process.communicate()
    if process.returncode:
        raise _refused(python, err.strip()[-_SHOWN_CHARACTERS:])
    try:
        told = json.loads(out.splitlines()[-1])
        transcripts = {party: Path(told[party]) for party in ("curator", "consumer", "owner")}
        return _Ended(told["began"], told["seconds"], **transcripts), spending
    except (IndexError, ValueError, LookupError, TypeError):
        raise _refused(python, out[-_SHOWN_CHARACTERS:]) from None


def _run_here(file: Path, runs: Path, delay: float, say: Callable[[str], None]) -> _Ended:
    prepared = prepare(open_cluster(file), runs)
    with contextlib.ExitStack() as stack:
        if delay:
            redirect(prepared, stack.enter_context(relay(prepared.session.network.address, delay=delay)))
        began = time.monotonic()
        ended = run_parties(prepared, say=say)
    places = {party.name: party.directory for party in prepared.parties}
    return _Ended(
        began=began,
        seconds=ended.curator.wall_seconds,
        curator=places[CURATOR] / ended.curator.transcript,
        consumer=places[CONSUMER] / ended.consumer.transcript,
        owner=next(places[name] / owner.transcript for name, owner in ended.owners.items()),
    )


def _broadcasts(curator: Path) -> Mapping[bytes, float]:
    """The time at which each round's broadcast was first sent, from the curator's transcript."""
    starts: dict[bytes, float] = {}
    for now, body in sent_bodies(curator, _BROADCASTS):
        starts.setdefault(body, now)  # A resent broadcast has the same bytes.
    return starts


def sent_bodies(transcript: Path, messages: Collection[str]) -> Iterator[tuple[float, bytes]]:
    """When a party sent messages of these kinds, and their bodies."""
    with TranscriptReader(transcript) as records:
        for record in records:
            for item in record.effects:
                frame = item.private.get("frame")
                if item.kind == Send.KIND and isinstance(frame, dict) and frame["message"] in messages:
                    yield record.now, frame["body"]


def times_of(transcript: Path, kind: str) -> list[float]:
    """Times of a party's records that contain an item of this kind, by the machine's one clock."""
    with TranscriptReader(transcript) as records:
        return [record.now for record in records if any(item.kind == kind for item in record.items)]
