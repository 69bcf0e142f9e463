"""The rounds one by one: winners, gains, asks and durations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from hushbid.consumer.buying.blind import BlindBuying
from hushbid.protocol.session.session import Session
from hushbid.protocol.space.grid import Features, features_to_float
from hushbid.protocol.space.mmd import embedding_objective
from hushbid.protocol.wire.messages import Target
from hushbid.report.course import Course
from hushbid.report.sources import TranscriptSource

__all__ = [
    "SHOWN_ROUNDS",
    "ConsumerSeries",
    "CuratorSeries",
    "RoundFigures",
    "RoundMap",
    "rounds_of",
    "shortened",
    "shown",
    "thinned",
    "wins_of",
]

SHOWN_ROUNDS: Final = 5_000
"""Most entries of a series (`thinned`)."""
MAP_OWNERS: Final = 12
"""Most owners with a row in the map: those that won most points."""

_DECIMALS: Final = 6
"""Decimals of seconds: clocks are no more accurate."""

Numbers: TypeAlias = tuple[int, ...]
Win: TypeAlias = tuple[int, str]
"""A round, and the owner whose point was chosen in it."""


@dataclass(frozen=True, kw_only=True)
class WeighedSeries:
    """J in the released target, with an entry for each round that is shown (`shortened`).

    Attributes:
        objective_before: J of the seed set alone; None if there was no target, or the curator is blind.
        objective: J after the round; empty in the same cases.
        gain: Increase of J by the round's points; None: none was chosen.
    """

    objective_before: float | None
    objective: tuple[float, ...]
    gain: tuple[float | None, ...]


@dataclass(frozen=True, kw_only=True)
class CuratorSeries(WeighedSeries):
    """Counts that only the curator's transcript has: owners asked and absent, and points handed over."""

    asked: Numbers
    raw: Numbers
    sealed: Numbers
    absent: Numbers
    raw_owners: Numbers
    sealed_owners: Numbers


@dataclass(frozen=True, kw_only=True)
class ConsumerSeries(WeighedSeries):
    """Figures of the consumer's transcript if the curator is blind and the consumer weighs.

    `void` counts boxes that did not hold what their owner said.
    """

    void: Numbers


@dataclass(frozen=True, kw_only=True)
class RoundMap:
    """The actions of some owners in each round that is shown; `left_out` others have no row.

    `states` has a text for each owner, a letter a round: W its point was chosen, a absent, r it handed a raw
    point over, s a sealed one, q it was asked and no point came, - nothing of these.
    """

    owners: tuple[str, ...]
    states: tuple[str, ...]
    left_out: int


@dataclass(frozen=True, kw_only=True)
class RoundFigures:
    """The session round by round. Figures that the transcripts lack are None.

    Attributes:
        run: Rounds that were begun.
        number: The rounds that all series have an entry for.
        seconds: From the start of a round to the start of the next, by the clock of `timed_by`.
        winner: Owner of the best point, by its place among all owners; None: there was no point.
    """

    run: int
    number: Numbers
    seconds: tuple[float | None, ...] | None
    timed_by: str | None
    winner: tuple[int | None, ...] | None
    curator: CuratorSeries | None
    map: RoundMap | None
    consumer: ConsumerSeries | None = None

    @property
    def weighed(self) -> WeighedSeries | None:
        """The series of the party that weighs, if its transcript is given."""
        return self.consumer or self.curator


def shown(count: int) -> tuple[int, ...]:
    """Which of the numbers 1 … `count` a series shows."""
    return thinned(count, SHOWN_ROUNDS)


def thinned(count: int, most: int) -> tuple[int, ...]:
    """The numbers 1 … `count`; at most `most` of them, evenly spaced, with the first and the last."""
    return tuple(np.unique(np.linspace(1, count, min(count, most)).astype(np.int64)).tolist())


def shortened(value: float) -> float:
    """A figure of a series to nine digits: nobody reads more, and a page's size is limited."""
    return float(f"{value:.9g}")


def wins_of(sources: Sequence[TranscriptSource]) -> list[Win] | None:
    """The chosen points, in order: as the curator chose them, or else as the consumer got them.

    A blind curator does not know which of its boxes are empty: there the consumer's transcript comes first.
    """
    for source in sources if sources[0].session.curator_reads else sources[::-1]:
        if source.curator is not None:
            return [(win.chosen_round, win.owner) for win in source.curator.ledger.wins]
        if source.consumer is not None and source.consumer.delivered:
            return [(entry.chosen_round, entry.owner) for entry in source.consumer.delivered]
    return None


def rounds_of(sources: Sequence[TranscriptSource]) -> RoundFigures:
    """The rounds of one session, by its transcripts."""
    owners, wins = sources[0].session.file.owners, wins_of(sources)
    run = _run(sources)
    numbers = shown(run)
    places = {owner: place for place, owner in enumerate(owners)}
    # If a round bought several points, the best point's owner.
    winners = {number: places[owner] for number, owner in reversed(wins or ())}
    timed = next((source for source in sources if source.course.started), None)
    curator = next((source for source in sources if source.curator is not None), None)
    return RoundFigures(
        run=run,
        number=numbers,
        seconds=None if timed is None else _seconds(timed.course, numbers),
        timed_by=None if timed is None else timed.header.party,
        winner=None if wins is None else tuple(winners.get(number) for number in numbers),
        curator=None if curator is None else _curator_series(curator, run, numbers),
        map=_map(sources, numbers, wins or []),
        consumer=_consumer_series(sources, numbers),
    )


def _run(sources: Sequence[TranscriptSource]) -> int:
    run = max(source.course.rounds for source in sources)
    delivered = any(source.consumer is not None and source.consumer.delivered for source in sources)
    # All rounds are run before anything is delivered, even those without points left.
    return max(run, sources[0].session.rounds) if delivered else run


def _seconds(course: Course, numbers: Numbers) -> tuple[float | None, ...]:
    started, last = course.started, course.rounds
    ends = {number: started.get(number + 1) for number in numbers} | {last: course.ended}
    return tuple(
        round(end - started[number], _DECIMALS)
        if (end := ends[number]) is not None and number in started
        else None
        for number in numbers
    )


def _curator_series(source: TranscriptSource, run: int, numbers: Numbers) -> CuratorSeries:
    machine, course = source.curator, source.course
    assert machine is not None
    won = {win.chosen_round for win in machine.ledger.wins}
    absent = Counter(absence.round for absence in machine.ledger.absences)
    chosen = {
        number: [win.candidate.features for win in wins] for number, wins in machine.ledger.by_round().items()
    }
    values = [] if machine.target is None else objectives(source.session, machine.target, chosen, run)
    before, objective, gains = _course(values, won, numbers)
    return CuratorSeries(
        objective_before=before,
        objective=objective,
        gain=gains,
        asked=_counts(course.asked, numbers),
        raw=_counts(course.raw, numbers),
        sealed=_counts(course.sealed, numbers),
        absent=tuple(absent[number] for number in numbers),
        raw_owners=_counts(_once(course.raw), numbers),
        sealed_owners=_counts(_once(course.sealed), numbers),
    )


def _consumer_series(sources: Sequence[TranscriptSource], numbers: Numbers) -> ConsumerSeries | None:
    source = next((each for each in sources if each.consumer is not None), None)
    if source is None or (machine := source.consumer) is None:
        return None
    buying = machine.buying
    if not isinstance(buying, BlindBuying) or buying.target is None:
        return None
    chosen: dict[int, list[Features]] = {}
    for entry in machine.delivered:
        if entry.candidate is not None and not entry.dispute:
            chosen.setdefault(entry.chosen_round, []).append(entry.candidate.features)
    void = Counter(entry.chosen_round for entry in machine.delivered if entry.dispute)
    values = objectives(source.session, buying.target, chosen, max(numbers, default=0))
    before, objective, gains = _course(values, chosen, numbers)
    return ConsumerSeries(
        objective_before=before,
        objective=objective,
        gain=gains,
        void=tuple(void[number] for number in numbers),
    )


def _once(owners: Mapping[int, list[str]]) -> dict[int, list[str]]:
    """Each owner once a round, however many points it handed over."""
    return {number: sorted(set(names)) for number, names in owners.items()}


def _course(
    values: Sequence[float], won: Collection[int], numbers: Numbers
) -> tuple[float | None, tuple[float, ...], tuple[float | None, ...]]:
    """J before, J after each round that is shown, and the round's gain; without J, nothing."""
    if not values:
        return None, (), (None,) * len(numbers)
    gains = [shortened(values[number] - values[number - 1]) if number in won else None for number in numbers]
    return shortened(values[0]), tuple(shortened(values[number]) for number in numbers), tuple(gains)


def objectives(
    session: Session, target: Target, chosen: Mapping[int, Sequence[Features]], run: int
) -> list[float]:
    """J of the seed set, then after each of `run` rounds, in the released target; φ of choices by round."""
    weight = session.file.seed_weight
    total, size = weight * features_to_float(target.seed_total), weight * target.seed_size
    values = [embedding_objective(target.embedding, total / size)]
    for number in range(1, run + 1):
        for features in chosen.get(number, ()):
            total, size = total + features_to_float(features), size + 1
        values.append(embedding_objective(target.embedding, total / size))
    return values


def _counts(handed: Mapping[int, Sequence[str]], numbers: Iterable[int]) -> Numbers:
    return tuple(len(handed.get(number, ())) for number in numbers)


def _map(sources: Sequence[TranscriptSource], numbers: Numbers, wins: Sequence[Win]) -> RoundMap | None:
    """The map of the owners that won most, by the curator's transcript; else of owners with transcripts."""
    telling = [source for source in sources if source.machine is not None and source.consumer is None]
    if not telling:
        return None
    curator = telling[0].curator
    won = Counter(owner for _, owner in wins)
    owners = sources[0].session.file.owners if curator is not None else [s.header.party for s in telling]
    rows = sorted(sorted(owners, key=lambda owner: (-won[owner], owner))[:MAP_OWNERS])
    cells: dict[str, dict[int, str]] = {owner: {} for owner in rows}

    def mark(letter: str, entries: Iterable[Win]) -> None:
        for number, owner in entries:
            if owner in cells:
                cells[owner][number] = letter

    # More informative states overwrite less informative ones.
    for source in telling if curator is None else telling[:1]:
        mark("q", _entries(source.course.asked))
        mark("s", _entries(source.course.sealed))
        mark("r", _entries(source.course.raw))
    if curator is not None:
        mark("a", ((absence.round, absence.owner) for absence in curator.ledger.absences))
    mark("W", wins)
    states = tuple("".join(cells[owner].get(number, "-") for number in numbers) for owner in rows)
    return RoundMap(owners=tuple(rows), states=states, left_out=len(owners) - len(rows))


def _entries(handed: Mapping[int, Sequence[str]]) -> Iterable[Win]:
    return ((number, owner) for number, owners in handed.items() for owner in owners)
