"""The facts of a session that runs: its parties' transcripts, read on as they grow, without private fields.

Only what a redacted copy has of a record is taken in, so no private value reaches the facts.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from hushbid.protocol.errors import ConfigError, HushbidError
from hushbid.protocol.printable import printable
from hushbid.protocol.privacy.acquisition import asks
from hushbid.protocol.session.session import Session
from hushbid.protocol.transcript.reader import Mark, TranscriptReader
from hushbid.protocol.transcript.record import Record, RecordedItem
from hushbid.replay.facts import Facts
from hushbid.replay.merging import begun, recording_of_told, take_public
from hushbid.replay.ordering import ReadTranscript
from hushbid.report.sources import transcripts_of

__all__ = ["Follower", "left_out"]


def left_out(facts: Facts) -> list[str]:
    """What the page of a session that runs does not show, in sentences."""
    found = [
        "No private value of a transcript is here: sender, receiver, kind and size of messages, who was "
        "asked and who was chosen are left out, as in a redacted copy, and no party's machine can confirm "
        "the rest.",
        "How many records and messages there are, and when, depends on data: this page is for whoever may "
        "see the transcripts. `hushbid replay` shows the whole once the session is over.",
    ]
    if asks(facts.rule):
        found.append(
            "Owners' own transcripts are left out: under this rule the number of an owner's messages tells "
            "how often it was asked."
        )
        return found + [line for line in facts.disclaimers if not line.startswith("No transcript of")]
    return found + list(facts.disclaimers)


class Follower:
    """Reads the transcripts of one session on, again and again, and writes and locks nothing.

    Args:
        places: State directories, parties' directories, or those of runs; they need not be there yet.
    """

    def __init__(self, places: Sequence[Path]) -> None:
        self._places = places
        self._followed: dict[Path, _Followed] = {}
        self._facts: Facts | None = None

    @property
    def facts(self) -> Facts | None:
        """The facts at the last look; None: no transcript has a first record yet."""
        return self._facts

    @property
    def unread(self) -> list[tuple[Path, str]]:
        """Transcripts that are there and cannot be shown, each with why."""
        return [(path, each.why) for path, each in self._followed.items() if each.why]

    def look(self) -> bool:
        """Read what was written since the last look.

        Returns:
            Whether there are other facts than before.

        Raises:
            ConfigError: The transcripts are of several sessions, or two are one party's.
        """
        news = False
        here = list(self._transcripts())
        for path in self._followed.keys() - here:
            self._followed[path].leave()
        for path in here:
            news = self._followed.setdefault(path, _Followed(path)).read_on() or news
        if self._forget_earlier(here) or news:
            news = True
            self._facts = self._merged()
        return news

    def _forget_earlier(self, here: Sequence[Path]) -> bool:
        """Forget files that are gone, where those that are there are of another session; say whether any was.

        Otherwise what is known of them stands: their directory may be away for a moment.
        """
        sessions = {each.identifier for path, each in self._followed.items() if path in here}
        gone = [
            path
            for path, each in self._followed.items()
            if path not in here and each.identifier and sessions - {None} and each.identifier not in sessions
        ]
        for path in gone:
            del self._followed[path]
        return bool(gone)

    def _transcripts(self) -> Iterator[Path]:
        for place in self._places:
            if place.is_dir():
                try:
                    found = transcripts_of(place)
                except ConfigError:
                    continue  # no party has begun here yet
                yield from found

    def _merged(self) -> Facts | None:
        known: dict[str, _Followed] = {}
        for each in self._followed.values():
            if each.told is None or each.session is None:
                continue
            first = next(iter(known.values()), each)
            assert first.told is not None
            if each.told.reading.header.session != first.told.reading.header.session:
                raise ConfigError(
                    f"{each.path} is of another session than {first.path}.",
                    advice="A page shows one session: name the directories of its parties alone.",
                )
            other = known.setdefault(each.told.party, each)
            if other is not each:
                raise ConfigError(
                    f"{each.path} and {other.path} are both of {printable(each.told.party)}.",
                    advice="Name one state directory of each party.",
                )
        shown = [each for each in known.values() if each.is_shown]
        if not shown:
            return None
        session = shown[0].session
        assert session is not None
        return recording_of_told(session, [each.taken() for each in shown]).facts


_AWAY: Final = (-1, -1)
"""Which file has a path that leads to none."""


class _Followed:
    """One transcript, read as far as whole records go."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.told: ReadTranscript | None = None
        self.session: Session | None = None
        self.why = ""
        """Why nothing of it can be shown."""
        self._lost = False
        """Whether a record was read that no party makes: what comes after it cannot be placed."""
        self._mark: Mark | None = None
        self._seen: tuple[int, int, int] | None = None
        self._file: tuple[int, int] | None = None
        """Which file had this path at the last look."""

    @property
    def identifier(self) -> str | None:
        return None if self.told is None else self.told.reading.header.session

    @property
    def is_shown(self) -> bool:
        """Whether its facts may be seen: where a rule asks, how often an owner was asked may not."""
        assert self.told is not None
        assert self.session is not None
        return self.told.reading.header.role != "owner" or not asks(self.session.rule.name)

    def leave(self) -> None:
        """Note that no file is there: what is known of it stands, and what comes is read from its start."""
        self._file, self._seen = _AWAY, None

    def read_on(self) -> bool:
        """Take in what was appended; whether there is news. An unchanged file is not opened."""
        try:
            status = self.path.stat()
        except OSError:
            self.leave()
            return False
        file, seen = (status.st_dev, status.st_ino), (status.st_ino, status.st_size, status.st_mtime_ns)
        if seen == self._seen:
            return False
        if self._file not in (None, file):
            self._mark = self.told = self.session = None  # another file may have its name, and its number
            self._lost = False
        self._seen, self._file = seen, file
        before = self._news()
        self._read()
        return self._news() != before

    def _news(self) -> tuple[object, ...]:
        told = self.told
        return (None,) if told is None else (told.reading.records, told.stopped, told.torn_bytes)

    def _read(self) -> None:
        self.why = ""
        try:
            with TranscriptReader(self.path, after=self._mark) as reader:
                if self.told is None:
                    self._begin(reader)
                if self.told is not None:
                    self._go_on(self.told, reader)
        except HushbidError as error:
            what = error.what.replace(str(self.path), "The transcript")
            if self.told is None:
                self.why = what.removeprefix("The transcript: ").rstrip(".")
            else:
                self.told.stopped = what

    def _begin(self, reader: TranscriptReader) -> None:
        first = next(reader, None)
        if first is None:
            self.why = "has no record yet"
            return
        first = _public(first)
        self.told, self.session = begun(self.path, reader.header, first)
        take_public(self.told, [first])
        self._mark = reader.mark

    def _go_on(self, told: ReadTranscript, reader: TranscriptReader) -> None:
        if self._lost:
            return
        told.stopped = None
        try:
            take_public(told, map(_public, reader))
        finally:
            self._mark = reader.mark
        self._lost = told.stopped is not None
        # A party that runs may be writing its next record; one that has ended has not written its last.
        told.torn_bytes = 0 if told.reading.finish is None else reader.torn_bytes

    def taken(self) -> ReadTranscript:
        """A copy for the facts, whose rows may be written to."""
        assert self.told is not None
        reading = copy.copy(self.told.reading)
        reading.rows = [copy.copy(row) for row in reading.rows]
        for row in reading.rows:
            row.peers = list(row.peers)
        return ReadTranscript(self.path, reading, self.told.torn_bytes, self.told.stopped)


def _public(record: Record) -> Record:
    """A record as a redacted copy has it."""
    return record._replace(
        event=_without_private(record.event), effects=tuple(map(_without_private, record.effects))
    )


def _without_private(item: RecordedItem) -> RecordedItem:
    return item._replace(private={})
