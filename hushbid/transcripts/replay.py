"""Replay a transcript from its file alone, for `transcript replay` and for reports."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from hushbid.consumer.machine import ConsumerMachine
from hushbid.consumer.party import consumer_machine
from hushbid.curator.machine import CuratorMachine
from hushbid.owner.machine import OwnerMachine
from hushbid.protocol import __version__
from hushbid.protocol.errors import DataError, HushbidError, ReplayDivergence
from hushbid.protocol.machine.base import Machine
from hushbid.protocol.machine.machine import Effect
from hushbid.protocol.session.session import Session, open_session
from hushbid.protocol.transcript.environment import environment_differences
from hushbid.protocol.transcript.reader import TranscriptReader
from hushbid.protocol.transcript.record import Header, Record
from hushbid.protocol.transcript.replay import EventReader, Replay, Restore, filler_box
from hushbid.protocol.transcript.session_file import check_version, recorded_session
from hushbid.protocol.wire.codec import said_to
from hushbid.protocol.wire.values import Value

__all__ = ["Replayed", "opened_session", "replayed"]


@dataclass(frozen=True)
class Replayed:
    """A transcript that was replayed to its end.

    Attributes:
        machine: The party's machine at the end of the transcript.
        torn_bytes: Bytes at its end that form no whole record.
        seconds: Duration of the replay.
        recorded_seconds: Time from the first record to the last, on the party's clock.
        finished: Whether the party had finished.
    """

    header: Header
    session: Session
    machine: CuratorMachine | OwnerMachine | ConsumerMachine
    records: int
    torn_bytes: int
    seconds: float
    recorded_seconds: float
    finished: bool

    @property
    def environment(self) -> dict[str, dict[str, Value]]:
        """The differences between the recording's environment and this one, by key."""
        return environment_differences(self.header.environment)


def replayed(
    path: Path,
    each: Callable[[Record, list[Effect], Machine], None] | None = None,
    *,
    image: bytes | None = None,
    check: Callable[[Session, Header], Restore] | None = None,
    known: Session | None = None,
) -> Replayed:
    """Replay a transcript: feed the recorded events to the same machine, and compare every effect.

    Args:
        each: Called after every record, with its effects and the machine.
        image: The transcript's bytes, if already read.
        check: Makes, from session and header, the check of every computation against its recorded outcome.
        known: As `opened_session` takes it.

    Raises:
        DataError: It is not a transcript, is redacted, or does not begin with its session file.
        TranscriptDamaged: Its chain does not hold.
        ReplayDivergence: The machine deviates from the record; the error says where, and how the environments
            differ.
    """
    with TranscriptReader(path, image) as records:
        first = next(records, None)
        if first is None:
            raise DataError(
                f"{path}: the transcript has no record yet.", advice="Replay it after the party has begun."
            )
        session = _session(path, records.header, first, known)
        machine = _machine(session, records.header)
        restore = check(session, records.header) if check is not None else None
        replay = Replay(machine, _reader(session, records.header.party, machine), restore)
        started = time.perf_counter()
        last = first
        for last in chain([first], records):
            try:
                effects = replay.step(last)
            except HushbidError as error:
                raise _placed(path, records.header, last, error) from None
            if each is not None:
                each(last, effects, machine)
        seconds = time.perf_counter() - started
    return Replayed(
        records.header,
        session,
        machine,
        records.count,
        records.torn_bytes,
        seconds,
        last.now - first.now,
        replay.finished is not None,
    )


def opened_session(path: Path, header: Header, first: Record, known: Session | None = None) -> Session:
    """The session in a transcript's first record; without seeds if it is redacted.

    Args:
        known: A session that this opened before, of any transcript: taken where the record has the same file.

    Raises:
        DataError: The record has no usable session file, or has another version of the protocol.
    """
    try:
        check_version(header.protocol)
        file = recorded_session(first.event)
        return known if known is not None and known.file == file else open_session(file)
    except HushbidError as error:
        raise DataError(f"{path}: {error.what}", advice=error.advice) from None


def _session(path: Path, header: Header, first: Record, known: Session | None) -> Session:
    if first.event.redacted:
        raise DataError(
            f"{path}: the transcript is redacted, and cannot be replayed.",
            advice="Replay the file that the party itself recorded; `transcript verify` checks this one.",
        )
    return opened_session(path, header, first, known)


def _machine(session: Session, header: Header) -> CuratorMachine | OwnerMachine | ConsumerMachine:
    if header.role == "owner":
        return OwnerMachine(session, name=header.party)
    return (CuratorMachine if header.role == "curator" else consumer_machine)(session)


def _reader(session: Session, party: str, machine: Machine) -> EventReader:
    length = session.box_length
    # Digests identify the boxes; a replay needs nothing more of them.
    return EventReader(machine.table.outcomes, said_to(party), lambda digest: filler_box(digest, length))


def _placed(path: Path, header: Header, record: Record, error: HushbidError) -> HushbidError:
    """A record's error with the file's name and, for a divergence, the differences of the environments."""
    if not isinstance(error, ReplayDivergence):
        return DataError(f"{path}, record {record.number}: {error.what}", advice=error.advice)
    other = list(environment_differences(header.environment))
    if header.software != __version__:
        other.insert(0, f"hushbid ({header.software} there, {__version__} here)")
    differs = f"The environments differ in {', '.join(other)}." if other else "The environments are the same."
    return ReplayDivergence(
        f"{path}: {error.what}",
        advice=f"{differs} {error.advice}",
        record=record.number if error.record is None else error.record,
        expected=error.expected,
        actual=error.actual,
    )
