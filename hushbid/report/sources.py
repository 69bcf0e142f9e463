"""The transcripts that a report is made from: read, checked, and replayed unless they are redacted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hushbid.consumer.machine import ConsumerMachine
from hushbid.consumer.store import RESULT_FILE
from hushbid.curator.machine import CuratorMachine
from hushbid.owner.machine import OwnerMachine
from hushbid.protocol.errors import ConfigError, DataError
from hushbid.protocol.machine.base import Machine
from hushbid.protocol.names import CONSUMER, an
from hushbid.protocol.runtime.party import transcript_path
from hushbid.protocol.session.session import Session
from hushbid.protocol.transcript.reader import TranscriptReader
from hushbid.protocol.transcript.record import Header
from hushbid.report.course import Course
from hushbid.transcripts.replay import opened_session, replayed

__all__ = [
    "EVALUATION",
    "TranscriptSource",
    "consumer_state_in",
    "evaluation_in",
    "open_sources",
    "transcripts_of",
]

EVALUATION: Final = "evaluation.json"
"""Name of a run's file with the figures that no party can compute."""
_ORDER: Final = {"curator": 0, "consumer": 1, "owner": 2}


@dataclass(frozen=True)
class TranscriptSource:
    """One party's transcript. Its chain holds, and replaying it, where possible, found no difference.

    Attributes:
        session: The session that it records. If it is redacted, its seeds are no longer known.
        machine: The party's machine after the last record; None if private fields were removed.
        torn_bytes: Bytes at its end that are no whole record.
    """

    path: Path
    header: Header
    session: Session
    machine: Machine | None
    course: Course
    torn_bytes: int

    @property
    def curator(self) -> CuratorMachine | None:
        return self.machine if isinstance(self.machine, CuratorMachine) else None

    @property
    def consumer(self) -> ConsumerMachine | None:
        return self.machine if isinstance(self.machine, ConsumerMachine) else None

    @property
    def owner(self) -> OwnerMachine | None:
        return self.machine if isinstance(self.machine, OwnerMachine) else None


def transcripts_of(*given: Path) -> list[Path]:
    """The transcripts in state directories, or in those of parties or of runs; for a file, itself.

    Raises:
        ConfigError: A directory has none.
    """
    return [path for each in given for path in _transcripts_in(each)]


def _transcripts_in(given: Path) -> list[Path]:
    if not given.is_dir():
        return [given]
    for pattern in ("*.transcript", "state/*.transcript", "parties/*/state/*.transcript"):
        if found := sorted(given.glob(pattern)):
            return found
    raise ConfigError(
        f"{given} has no transcript.",
        advice="Name the `state` of a party's private file, the directory of a run, or transcripts.",
    )


def consumer_state_in(given: Path) -> Path | None:
    """The consumer's state directory: this one, or that in a party's or a run's; None: there is none."""
    for place in (given, given / "state", given / "parties" / CONSUMER / "state"):
        if transcript_path(place, CONSUMER).is_file():
            return place
    return None


def evaluation_in(given: Path) -> Path | None:
    """The judgement of the purchase in a run's directory, or the consumer's, beside transcripts."""
    for place in (given, given / "state"):
        if (place / f"{CONSUMER}.transcript").is_file() and (place / RESULT_FILE).is_file():
            return place / RESULT_FILE
    kept = given / EVALUATION
    return kept if kept.is_file() else None


def open_sources(paths: Sequence[Path]) -> tuple[TranscriptSource, ...]:
    """Read the transcripts of one session: the curator's first, then the consumer's, then owners' by name.

    Raises:
        ConfigError: They are of several sessions, or two are one party's.
        DataError: One is no transcript, or its first record is not whole.
        TranscriptDamaged: The chain of one is broken.
        ReplayDivergence: One differs from what its party's machine does.
    """
    sources: dict[str, TranscriptSource] = {}
    first: TranscriptSource | None = None
    for path in paths:
        source = _open(path, None if first is None else first.session)
        first = source if first is None else first
        if source.header.session != first.header.session:
            raise ConfigError(
                f"{path} is of another session than {first.path}.",
                advice="A report covers one session: give only its transcripts.",
            )
        other = sources.setdefault(source.header.party, source)
        if other is not source:
            raise ConfigError(
                f"{path} and {other.path} are both of {source.header.party}.",
                advice="Give one transcript of each party; `hushbid transcript diff` compares two.",
            )
    return tuple(
        sorted(sources.values(), key=lambda each: (_ORDER.get(each.header.role, 3), each.header.party))
    )


def _open(path: Path, known: Session | None) -> TranscriptSource:
    with TranscriptReader(path) as reader:
        first = next(reader, None)
    if first is None:
        raise DataError(
            f"{path}: the transcript has no record.",
            advice="Its party stopped before it began: leave it out.",
        )
    session = opened_session(path, reader.header, first, known)
    course = Course(reader.header, points_in_bids=session.rule.candidate_with_bid)
    if any(item.redacted for item in first.items):
        return _open_redacted(path, session, course)
    found = replayed(path, lambda record, _effects, _machine: course.take(record), known=session)
    return TranscriptSource(path, found.header, found.session, found.machine, course, found.torn_bytes)


def _open_redacted(path: Path, session: Session, course: Course) -> TranscriptSource:
    """Read the public fields. The chain holds, but no machine vouches for what the records say."""
    with TranscriptReader(path) as reader:
        try:
            for record in reader:
                course.take(record)
            if not 0 <= course.rounds <= session.rounds:
                raise TypeError("more rounds than the session has")
        except (KeyError, TypeError) as error:
            reason = type(error).__name__
        else:
            return TranscriptSource(path, reader.header, session, None, course, reader.torn_bytes)
    raise DataError(
        f"{path}: its records are not those of {an(reader.header.role)} ({reason}).",
        advice="Read it with the version of hushbid that recorded it.",
    )
