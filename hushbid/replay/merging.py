"""One session's transcripts as the facts of a replay: read once each, and put on one course of steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

from hushbid.consumer.machine import ConsumerMachine
from hushbid.curator.machine import CuratorMachine
from hushbid.protocol.errors import ConfigError, DataError, HushbidError
from hushbid.protocol.names import CONSUMER, CURATOR, an, listed
from hushbid.protocol.printable import printable
from hushbid.protocol.session.odometer import odometers
from hushbid.protocol.session.session import Session
from hushbid.protocol.transcript.reader import TranscriptReader
from hushbid.protocol.transcript.record import Header, Record
from hushbid.replay.facts import (
    ALL_OWNERS,
    NOBODY,
    ChosenPoints,
    Closeness,
    Copy,
    Facts,
    ScoreCourse,
    Steps,
    Track,
)
from hushbid.replay.knowledge import MEANINGS, knowledge_of
from hushbid.replay.ordering import Placed, ReadTranscript, on_one_course
from hushbid.replay.own import OwnFiles, own_files
from hushbid.replay.points import points_of
from hushbid.replay.reading import ENDING, Reading
from hushbid.replay.scores import scores_of
from hushbid.report.rounds import shortened
from hushbid.transcripts.replay import opened_session, replayed

__all__ = [
    "MOST_SINGLE",
    "Recording",
    "begun",
    "facts_of",
    "recording_of",
    "recording_of_told",
    "take_public",
]

MOST_SINGLE: Final = 20_000
"""Messages of rounds, about, up to which each is a step of its own."""
_MOST_OWNERS: Final = 12
"""Owners up to which each message is a step of its own."""
_NAMED: Final = 6
_ORDER: Final = {"curator": 0, "consumer": 1, "owner": 2}
_DECIMALS: Final = 6


@dataclass(frozen=True)
class Recording:
    """The transcripts of one session: the facts that they tell, and by party how each was read."""

    facts: Facts
    told: Mapping[str, ReadTranscript]

    def step_of(self, party: str, record: int) -> int:
        """The step that a record of a party's transcript is, or the last one before it."""
        told = self.told[party]
        ends = told.reading.ends
        return _step(told, ends[min(record, len(ends) - 1)]) if ends else 0


def facts_of(paths: Sequence[Path], own: Path | None = None) -> Facts:
    """The facts that the transcripts of one session tell; takes and raises what `recording_of` does."""
    return recording_of(paths, own).facts


def recording_of(paths: Sequence[Path], own: Path | None = None) -> Recording:
    """Read the transcripts of one session.

    A transcript that does not hold to its end is taken up to its last good record, and the facts say so.

    Args:
        own: The consumer's state directory, for what its own files tell; None: transcripts alone tell.

    Raises:
        ConfigError: They are of several sessions, or two are one party's.
        DataError: One is no transcript, or has no whole first record.
        TranscriptDamaged: The first record of one does not hold.
    """
    told: dict[str, ReadTranscript] = {}
    session: Session | None = None
    for path in paths:
        found, session = _read(path, next(iter(told.values()), None), session)
        other = told.setdefault(found.party, found)
        if other is not found:
            raise ConfigError(
                f"{path} and {other.path} are both of {printable(found.party)}.",
                advice="Give one transcript of each party; `hushbid transcript diff` compares two.",
            )
    assert session is not None, "the verb asks for at least one"
    return recording_of_told(session, list(told.values()), own)


def recording_of_told(session: Session, told: Sequence[ReadTranscript], own: Path | None = None) -> Recording:
    """The facts of transcripts that were read; their rows and places are written to.

    Args:
        session: As one of them has it.
        told: At least one, each of another party of the session, without places yet.
        own: As `recording_of` takes it.
    """
    ordered = sorted(told, key=lambda each: (_ORDER.get(each.reading.header.role, 3), each.party))
    return Recording(_facts(session, ordered, own), {each.party: each for each in ordered})


def _read(
    path: Path, first: ReadTranscript | None, session: Session | None
) -> tuple[ReadTranscript, Session]:
    with TranscriptReader(path) as reader:
        begins = next(reader, None)
    if begins is None:
        raise DataError(
            f"{path}: the transcript has no record.",
            advice="Its party stopped before it began: leave it out.",
        )
    header = reader.header
    if first is not None and header.session != first.reading.header.session:
        raise ConfigError(
            f"{path} is of another session than {first.path}.",
            advice="A replay is of one session: give its transcripts alone.",
        )
    told, own = begun(path, header, begins, session)
    if any(item.redacted for item in begins.items):
        _read_redacted(told)
    else:
        _read_whole(told)
    # A redacted copy lacks the seeds, which nothing here needs.
    return told, own if session is None else session


def begun(
    path: Path, header: Header, begins: Record, known: Session | None = None
) -> tuple[ReadTranscript, Session]:
    """A transcript of which nothing was taken in yet, and its session.

    Args:
        begins: Its first record; the session lacks the seeds if that does.
        known: As `opened_session` takes it.

    Raises:
        DataError: It has no usable session file, or its party is not of that session.
    """
    own = opened_session(path, header, begins, known)
    _check_party(path, header, own)
    return ReadTranscript(path, Reading(header, own, grouped=_grouped(own))), own


def _check_party(path: Path, header: Header, session: Session) -> None:
    roles = {CURATOR: "curator", CONSUMER: "consumer", **dict.fromkeys(session.file.owners, "owner")}
    if roles.get(header.party) != header.role:
        raise DataError(
            f"{path}: its party is not {an(header.role)} of its session.",
            advice="Name a file that a hushbid party has recorded.",
        )


def _grouped(session: Session) -> bool:
    owners = len(session.file.owners)
    return owners > _MOST_OWNERS or 2 * owners * session.rounds > MOST_SINGLE


def _read_whole(told: ReadTranscript) -> None:
    try:
        found = replayed(
            told.path,
            lambda record, _effects, machine: told.reading.take(record, machine),
            known=told.reading.session,
        )
        told.torn_bytes = found.torn_bytes
    except HushbidError as error:
        told.stopped = _without_path(error.what, told.path)


def _read_redacted(told: ReadTranscript) -> None:
    try:
        with TranscriptReader(told.path) as reader:
            take_public(told, reader)
        told.torn_bytes = reader.torn_bytes
    except HushbidError as error:
        told.stopped = _without_path(error.what, told.path)


def take_public(told: ReadTranscript, records: Iterable[Record]) -> None:
    """Take in records without private fields; one that no party makes ends it, and `told` says so."""
    reason = ""
    try:
        for record in records:
            told.reading.take(record, None)
    except (KeyError, TypeError, ValueError) as error:
        reason = type(error).__name__
    if reason:
        role = an(told.reading.header.role)
        told.stopped = f"Record {told.reading.records - 1} is not one of {role} ({reason})."


def _without_path(what: str, path: Path) -> str:
    """An error's text for the page, which names no place on the machine that it was made on."""
    return what.replace(str(path), "The transcript")


# -- one course --------------------------------------------------------------------------------------------


def _facts(session: Session, told: Sequence[ReadTranscript], state: Path | None) -> Facts:
    first = next((each for each in told if not each.reading.redacted), told[0])
    placed = on_one_course(first, told)
    parties = (CURATOR, CONSUMER, *session.file.owners)
    rounds = _rounds(session, told)
    writer = _Writer(parties, rounds)
    steps = writer.steps(placed)
    chosen = _chosen(session, told, parties)
    consumer = next((each for each in told if isinstance(each.reading.machine, ConsumerMachine)), None)
    own = _own(session, consumer, state)
    return Facts(
        name=printable(session.file.session.name),
        session=told[0].reading.header.session,
        rule=session.rule.name,
        batch=session.batch,
        points=session.file.session.points,
        parties=parties,
        grouped=_grouped(session),
        rounds=rounds,
        planned=session.rounds,
        kinds=tuple(writer.kinds),
        meanings=tuple(MEANINGS.get(kind, "") for kind in writer.kinds),
        notes=tuple(writer.notes),
        steps=steps,
        copies={each.party: _copy(each) for each in told},
        chosen=chosen,
        closeness=None if consumer is None else _closeness(consumer),
        points_drawn=points_of(session, told, chosen, own, steps.round),
        scores=_scores(session, consumer, own),
        knowledge=knowledge_of(session.rule.name),
        odometers=odometers(session, session.rounds, settled=False),
        disclaimers=tuple(_disclaimers(session, told, parties)),
    )


def _rounds(session: Session, told: Sequence[ReadTranscript]) -> int:
    run = max(each.reading.round for each in told)
    delivered = any(
        isinstance(machine := each.reading.machine, ConsumerMachine) and machine.delivered for each in told
    )
    # All rounds are run before anything is delivered, and a consumer that does not weigh hears of none.
    return max(run, session.rounds) if delivered else run


class _Writer:
    """Makes columns of placed rows; collects kinds and notes."""

    def __init__(self, parties: Sequence[str], rounds: int) -> None:
        self.kinds: dict[str, int] = {}
        self.notes: dict[str, int] = {"": 0}
        self._parties = {name: place for place, name in enumerate(parties)}
        self._owners = len(parties) - 2
        self._rounds = rounds

    def steps(self, placed: Sequence[Placed]) -> Steps:
        some: dict[int, tuple[int, ...]] = {}
        rows = [each.row for each in placed]
        ends = [self._ends(each, some) for each in placed]
        return Steps(
            round=tuple(self._rounds + 1 if row.round == ENDING else row.round for row in rows),
            seconds=tuple(accumulate((round(row.seconds, _DECIMALS) for row in rows), max)),
            kind=tuple(self.kinds.setdefault(row.kind, len(self.kinds)) for row in rows),
            event=tuple(int(row.event) for row in rows),
            sender=tuple(sender for sender, _ in ends),
            receiver=tuple(receiver for _, receiver in ends),
            count=tuple(row.count for row in rows),
            size=tuple(row.size for row in rows),
            again=tuple(int(row.again) for row in rows),
            late=tuple(int(row.late) for row in rows),
            unarrived=tuple(int(not row.arrived and not row.event) for row in rows),
            note=tuple(self.notes.setdefault(printable(row.note), len(self.notes)) for row in rows),
            teller=tuple(self._party(each.teller) for each in placed),
            some=some,
        )

    def _party(self, name: str) -> int:
        return self._parties.get(name, NOBODY)

    def _ends(self, placed: Placed, some: dict[int, tuple[int, ...]]) -> tuple[int, int]:
        row = placed.row
        if row.event:
            if len(row.peers) <= 1:
                return self._party(row.sender), NOBODY
            return self._several(row.peers, placed.step, some), NOBODY
        if len(row.peers) <= 1:
            return self._party(row.sender), self._party(row.receiver)
        several = self._several(row.peers, placed.step, some)
        curator = self._party(CURATOR)
        return (several, curator) if row.receiver == CURATOR else (curator, several)

    def _several(self, peers: Sequence[str], step: int, some: dict[int, tuple[int, ...]]) -> int:
        places = sorted({self._party(peer) for peer in peers})
        if len(places) == 1:
            return places[0]
        if len(places) < self._owners or NOBODY in places or places[0] < 2:
            some[step] = tuple(places)
        return ALL_OWNERS


# -- what parties had --------------------------------------------------------------------------------------


def _copy(told: ReadTranscript) -> Copy:
    reading = told.reading
    return Copy(
        records=reading.records,
        stopped=None if told.stopped is None else printable(told.stopped),
        torn_bytes=told.torn_bytes,
        redacted=reading.redacted,
        received=reading.counts[False],
        sent=reading.counts[True],
        received_bytes=reading.sizes[False],
        sent_bytes=reading.sizes[True],
        tracks={name: _track(told, changes) for name, changes in reading.tracks.items()},
        finish=reading.finish if reading.finish is None else _finish(reading.finish),
    )


def _finish(finish: tuple[int, str | None]) -> tuple[int, str | None]:
    code, reason = finish
    return code, None if reason is None else printable(reason)


def _track(told: ReadTranscript, changes: Sequence[tuple[int, Any]]) -> Track:
    """Changes by step; of several in one step, the last."""
    by_step = {_step(told, row): value for row, value in changes}
    return Track(at=tuple(by_step), value=tuple(by_step.values()))


def _step(told: ReadTranscript, row: int) -> int:
    """The step of the last of so many rows."""
    if not told.places:
        return 0
    return told.places[min(max(row, 1), len(told.places)) - 1]


def _chosen(session: Session, told: Sequence[ReadTranscript], parties: Sequence[str]) -> ChosenPoints | None:
    """The chosen points by the record that has most: a damaged one ends before the session did.

    Of two as long, by the curator's; where it is blind, by the consumer's.
    """
    places = {name: place for place, name in enumerate(parties)}
    most: ChosenPoints | None = None
    for each in told if session.curator_reads else reversed(told):
        machine = each.reading.machine
        if isinstance(machine, CuratorMachine):
            found = [(win.chosen_round, win.owner) for win in machine.ledger.wins]
        elif isinstance(machine, ConsumerMachine) and machine.delivered:
            found = [(entry.chosen_round, entry.owner) for entry in machine.delivered]
        else:
            continue
        if most is not None and len(found) <= len(most.round):
            continue
        most = ChosenPoints(
            teller=places[each.party],
            round=tuple(number for number, _ in found),
            owner=tuple(places[owner] for _, owner in found),
            at=tuple(_step(each, row) for row in each.reading.chosen_at[: len(found)]),
            delivered=_delivered(told, len(found)),
        )
    return most


def _delivered(told: Sequence[ReadTranscript], chosen: int) -> tuple[int, ...]:
    """The step from which the consumer has each, by its own record; of what that lacks, by its receipts."""
    steps: list[int] = []
    for each in sorted(told, key=lambda one: one.party != CONSUMER):
        steps += [_step(each, row) for row in each.reading.delivered_at[len(steps) : chosen]]
    return tuple(steps)


def _closeness(consumer: ReadTranscript) -> Closeness | None:
    machine = consumer.reading.machine
    assert isinstance(machine, ConsumerMachine)
    if machine.mmd2 is None or not len(machine.mmd2):
        return None
    readable = [entry.chosen_round for entry in machine.delivered if entry.candidate is not None]
    return Closeness(
        mmd2=tuple(shortened(float(value)) for value in machine.mmd2),
        round=tuple(readable[: len(machine.mmd2)]),
    )


def _own(session: Session, consumer: ReadTranscript | None, state: Path | None) -> OwnFiles | str:
    """The consumer's own files; or why they are not known, in a clause."""
    if consumer is None:
        return "the consumer’s transcript is not here, or is redacted"
    if state is None:
        return "transcripts alone were given"
    machine = consumer.reading.machine
    assert isinstance(machine, ConsumerMachine)
    return own_files(state, session, consumer.reading.data, machine.delivered)


def _scores(session: Session, consumer: ReadTranscript | None, own: OwnFiles | str) -> ScoreCourse | str:
    if consumer is not None and isinstance(own, OwnFiles):
        machine = consumer.reading.machine
        assert isinstance(machine, ConsumerMachine)
        found = scores_of(session, machine.delivered, own)
    else:
        found = own if isinstance(own, str) else ""
    if isinstance(found, ScoreCourse):
        return found
    return (
        f"No transcript has the score, and it cannot be worked out: {found}. A replay of a run’s directory, "
        "or of the consumer’s state directory, trains the model: it needs labels of bought points, and of "
        "test rows or of own ones."
    )


def _disclaimers(session: Session, told: Sequence[ReadTranscript], parties: Sequence[str]) -> list[str]:
    here = {each.party for each in told}
    found = []
    if CURATOR not in here:
        found.append(
            "The curator's transcript is not here: what passed between it and parties whose transcripts are "
            "not here either, who was absent, and what was chosen when is not known."
        )
    if CONSUMER not in here:
        found.append(
            "The consumer's transcript is not here: how close the points came to its validation set (MMD²), "
            "and what it found wrong with points, is not known."
        )
    if missing := [name for name in parties[2:] if name not in here]:
        found.append(
            f"No transcript of {listed(missing, _NAMED, rest='owner')}: what they had, and what did not "
            "arrive there, is not known."
        )
    if CURATOR not in here and CONSUMER in here and session.weigher == CURATOR and len(here) == 1:
        found.append("A consumer that does not weigh hears of no round: it tells them with its delivery.")
    return found
