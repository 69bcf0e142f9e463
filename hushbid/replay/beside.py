"""Two recordings side by side: what differs in public terms, and where the first difference is.

Recordings of one session are compared record by record, as in `hushbid transcript diff`; those of two
sessions round by round, by what was said and chosen, without sizes, times and the order within a round, which
changes with the network.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from hushbid.protocol.errors import ConfigError, HushbidError
from hushbid.protocol.names import an, listed
from hushbid.replay.facts import ALL_OWNERS, NOBODY, Facts
from hushbid.replay.merging import Recording
from hushbid.transcripts.diff import compare
from hushbid.transcripts.diff_view import parting_places
from hushbid.transcripts.shapes import Parting

__all__ = ["Beside", "Difference", "Term", "beside_of"]

_NAMED: Final = 6
_PLACES: Final = 3
_UNKNOWN: Final = "not known"
_EPSILON: Final = (("add-remove-one", "ε of owners' data"), ("substitute-one", "ε of the validation set"))


class Term(NamedTuple):
    """Something public that both sessions have, in words, and what it is in either."""

    name: str
    a: str
    b: str


@dataclass(frozen=True)
class Difference:
    """The first difference: the message, by its number in a round from 1, at which both can be looked at.

    Attributes:
        round: 0 before the first; the round after a session's last is its delivery and end.
        words: What differs, by kinds alone: for the terminal.
        named: The same with parties and notes, which depend on data: for the page, which is private.
    """

    round: int
    message: int
    words: str
    named: str


@dataclass(frozen=True)
class Beside:
    """The other session, and how it differs from the first.

    Attributes:
        terms: What can be told of both in public terms, whether it differs or not.
        difference: None: nothing that was compared differs.
        not_compared: Parties whose transcripts could not be compared, and why, in sentences.
    """

    other: Facts
    terms: tuple[Term, ...]
    difference: Difference | None
    not_compared: tuple[str, ...]

    @property
    def differing(self) -> tuple[Term, ...]:
        return tuple(term for term in self.terms if term.a != term.b)

    @property
    def alike(self) -> tuple[Term, ...]:
        return tuple(term for term in self.terms if term.a == term.b)


class _Place(NamedTuple):
    """A step by round, and by number in it from 1: what both sessions are moved by."""

    round: int
    message: int


def beside_of(a: Recording, b: Recording) -> Beside:
    """Compare two recordings.

    Raises:
        ConfigError: They are one recording, or nothing of one has its like in the other.
    """
    _require_like(a, b)
    not_compared: list[str] = []
    if a.facts.session == b.facts.session:
        difference, compared = _by_records(a, b, not_compared)
        if not compared:
            difference = _by_rounds(a, b, not_compared)
    else:
        difference = _by_rounds(a, b, not_compared)
    return Beside(b.facts, tuple(_terms(a.facts, b.facts)), difference, tuple(not_compared))


def _require_like(a: Recording, b: Recording) -> None:
    same_session = a.facts.session == b.facts.session
    if same_session and not _common(a, b):
        raise ConfigError(
            "Both are of one session, and of other parties of it: there is nothing to compare.",
            advice="Give all of them as one replay, without --beside.",
        )
    roles = [sorted({told.reading.header.role for told in each.told.values()}) for each in (a, b)]
    if not set(roles[0]) & set(roles[1]):
        ours, theirs = (", ".join(an(role) for role in each) for each in roles)
        raise ConfigError(
            f"The transcripts are of {ours}, and those of --beside of {theirs}.",
            advice="Give transcripts of the same roles on both sides, as of two runs.",
        )
    if same_session and all(_same_file(a, b, party) for party in _common(a, b)):
        raise _one_recording()


def _one_recording() -> ConfigError:
    return ConfigError(
        "Both are the same recording of one session.",
        advice="Name with --beside the run or the transcripts of another, or leave it out.",
    )


def _common(a: Recording, b: Recording) -> list[str]:
    return [party for party in a.told if party in b.told]


def _same_file(a: Recording, b: Recording, party: str) -> bool:
    return a.told[party].path.samefile(b.told[party].path)


# -- public terms ------------------------------------------------------------------------------------------


def _terms(a: Facts, b: Facts) -> Iterator[Term]:
    yield Term("rule", a.rule, b.rule)
    for neighbours, name in _EPSILON:
        yield Term(name, _epsilon(a, neighbours), _epsilon(b, neighbours))
    yield Term("points wanted (p)", f"{a.points:,}", f"{b.points:,}")
    yield Term("points a round (batch)", f"{a.batch:,}", f"{b.batch:,}")
    yield Term("owners", _owners(a), _owners(b))
    yield Term("rounds", _rounds(a), _rounds(b))
    yield Term("points bought", _bought(a), _bought(b))
    yield Term("messages", _messages(a), _messages(b))
    yield Term("bytes of messages", _bytes(a), _bytes(b))


def _epsilon(facts: Facts, neighbours: str) -> str:
    found = next((each for each in facts.odometers if each.neighbours == neighbours), None)
    return "none is promised" if found is None else f"{found.epsilon[-1]:.3g}"


def _owners(facts: Facts) -> str:
    names = facts.parties[2:]
    return f"{len(names):,}: {listed(names, _NAMED)}"


def _rounds(facts: Facts) -> str:
    whole = f"{facts.planned:,}"
    return whole if facts.rounds == facts.planned else f"{facts.rounds:,} of {whole}"


def _bought(facts: Facts) -> str:
    return _UNKNOWN if facts.chosen is None else f"{len(facts.chosen.round):,}"


def _messages(facts: Facts) -> str:
    steps = facts.steps
    return f"{sum(count for count, event in zip(steps.count, steps.event, strict=True) if not event):,}"


def _bytes(facts: Facts) -> str:
    steps = facts.steps
    sizes = [size for size, event in zip(steps.size, steps.event, strict=True) if not event]
    known = [size for size in sizes if size is not None]
    return f"{sum(known):,}" if len(known) == len(sizes) else _UNKNOWN


# -- two recordings of one session -------------------------------------------------------------------------


def _by_records(a: Recording, b: Recording, not_compared: list[str]) -> tuple[Difference | None, bool]:
    """The earliest place at which two transcripts of one party part, and whether any could be compared."""
    partings: list[Difference] = []
    compared, one = False, True
    for party in _common(a, b):
        try:
            found = compare(a.told[party].path, b.told[party].path)
        except HushbidError:
            not_compared.append(f"{party}: its transcript does not hold to its end in one of the two.")
            one = False
            continue
        compared = True
        one = one and found["a"]["head"] == found["b"]["head"]
        if found["parting"] is not None:
            partings.append(_parting(a, b, party, found["parting"]))
    if compared and one:
        raise _one_recording()
    return min(partings, key=lambda each: (each.round, each.message), default=None), compared


def _parting(a: Recording, b: Recording, party: str, parting: Parting) -> Difference:
    record = parting["record"]
    # The later of the two places: there, both have come to the record.
    place = max(_place(each.facts, each.step_of(party, record)) for each in (a, b))
    lines = list(parting_places(parting, ("A", "B")))
    if len(lines) > _PLACES:
        lines[_PLACES:] = [f"and {len(lines) - _PLACES} more"]
    lines += [
        f"{name} ends before it"
        for name, shown in (("A", parting["a"]), ("B", parting["b"]))
        if shown is None
    ]
    words = f"The transcripts of {party} part at record {record}: {'; '.join(lines)}."
    return Difference(*place, words, words)


# -- two sessions ------------------------------------------------------------------------------------------


def _by_rounds(a: Recording, b: Recording, not_compared: list[str]) -> Difference | None:
    """The first round in which something else was said, happened, or was chosen."""
    tellers = _tellers(a, b, not_compared)
    alike = tellers == a.told.keys() == b.told.keys()
    said = [_said(each.facts, tellers, with_arrival=alike) for each in (a, b)]
    starts = [_starts(each.facts) for each in (a, b)]
    for number in range(max(a.facts.rounds, b.facts.rounds) + 2):
        slices = [
            each[_start(places, number) : _start(places, number + 1)]
            for each, places in zip(said, starts, strict=True)
        ]
        extra = [_first_extra(slices[0], slices[1]), _first_extra(slices[1], slices[0])]
        if offsets := [each for each in extra if each is not None]:
            alone = [
                (side, facts, _start(places, number) + offset)
                for side, facts, places, offset in zip("AB", (a.facts, b.facts), starts, extra, strict=True)
                if offset is not None
            ]
            when = _round_name(a.facts, b.facts, number)
            words, named = (
                "; ".join(f"{side} alone has “{tell(facts, step)}”" for side, facts, step in alone)
                for tell in (_kind, _in_words)
            )
            return Difference(number, min(offsets) + 1, f"{when}: {words}.", f"{when}: {named}.")
        if found := _chosen_otherwise(a.facts, b.facts, number):
            return found
    return None


def _tellers(a: Recording, b: Recording, not_compared: list[str]) -> set[str]:
    """Parties whose transcripts are here of both sessions, and tell as much."""
    tellers: set[str] = set()
    for party in dict.fromkeys((*a.told, *b.told)):
        if party not in a.told or party not in b.told:
            not_compared.append(f"{party}: its transcript is here of one session only.")
        elif a.told[party].reading.redacted != b.told[party].reading.redacted:
            not_compared.append(f"{party}: one of its transcripts is a redacted copy.")
        else:
            tellers.add(party)
    return tellers


def _said(facts: Facts, tellers: Iterable[str], *, with_arrival: bool) -> list[Hashable | None]:
    """What each step says, without its size and time; None where it is not compared."""
    steps = facts.steps
    places = {place for place, name in enumerate(facts.parties) if name in set(tellers)}
    return [
        None
        if steps.teller[i] not in places
        else (
            facts.kinds[steps.kind[i]],
            _name(facts, steps.sender[i], i),
            _name(facts, steps.receiver[i], i),
            steps.count[i],
            steps.again[i],
            steps.late[i],
            with_arrival and steps.unarrived[i],
            facts.notes[steps.note[i]],
        )
        for i in range(len(steps.round))
    ]


def _name(facts: Facts, party: int, step: int) -> str:
    if party == NOBODY:
        return "a party that is not named"
    if party != ALL_OWNERS:
        return facts.parties[party]
    some = facts.steps.some.get(step)
    if some is None:
        return f"all {len(facts.parties) - 2:,} owners"
    return listed([facts.parties[each] if each >= 0 else "one not named" for each in some], len(some))


def _first_extra(mine: Sequence[Hashable | None], theirs: Sequence[Hashable | None]) -> int | None:
    """The place of the first of mine that theirs have less often."""
    left = Counter(theirs)
    for place, each in enumerate(mine):
        if each is None:
            continue
        if left[each] <= 0:
            return place
        left[each] -= 1
    return None


def _kind(facts: Facts, step: int) -> str:
    return facts.kinds[facts.steps.kind[step]]


def _in_words(facts: Facts, step: int) -> str:
    steps = facts.steps
    note = facts.notes[steps.note[step]]
    who = _short(_name(facts, steps.sender[step], step))
    if not steps.event[step]:
        who = f"{who} to {_short(_name(facts, steps.receiver[step], step))}"
    count = f"{steps.count[step]:,} × " if steps.count[step] > 1 else ""
    marks = [
        text
        for column, text in (
            (steps.again, "sent again"),
            (steps.late, "late"),
            (steps.unarrived, "did not arrive"),
        )
        if column[step]
    ]
    return f"{who}: {count}{', '.join((_kind(facts, step), *marks))}{f' ({note})' if note else ''}"


def _short(names: str) -> str:
    return listed(names.split(", "), _NAMED, rest="owner")


def _chosen_otherwise(a: Facts, b: Facts, number: int) -> Difference | None:
    if a.chosen is None or b.chosen is None:
        return None
    points = [
        [i for i, chosen_in in enumerate(each.chosen.round) if chosen_in == number]  # type: ignore[union-attr]
        for each in (a, b)
    ]
    owners = [
        Counter(each.parties[each.chosen.owner[i]] for i in mine)  # type: ignore[union-attr]
        for each, mine in zip((a, b), points, strict=True)
    ]
    if owners[0] == owners[1]:
        return None
    known = [
        _place(each, each.chosen.at[mine[0]])  # type: ignore[union-attr]
        for each, mine in zip((a, b), points, strict=True)
        if mine
    ]
    told = [
        listed([f"{count:,} of {name}" for name, count in sorted(each.items())], _NAMED, rest="owner")
        or "none"
        for each in owners
    ]
    when = _round_name(a, b, number)
    return Difference(
        *max(known),
        f"{when}: the points chosen are not of the same owners.",
        f"{when}: the points chosen are in A {told[0]}, in B {told[1]}.",
    )


def _round_name(a: Facts, b: Facts, number: int) -> str:
    if number == 0:
        return "Before the first round"
    if number > a.rounds and number > b.rounds:
        return "At the delivery and the end"
    ended = next(
        (f", where {side} is at its end" for side, each in (("A", a), ("B", b)) if number > each.rounds), ""
    )
    return f"In round {number:,}{ended}"


# -- places ------------------------------------------------------------------------------------------------


def _starts(facts: Facts) -> list[int]:
    """The first step of each round, of the end, and of what would follow it, as session.js finds them."""
    last = facts.rounds + 1
    found = [len(facts.steps.round)] * (last + 2)
    for step in range(len(facts.steps.round) - 1, -1, -1):
        found[min(facts.steps.round[step], last)] = step
    for number in range(last, -1, -1):
        found[number] = min(found[number], found[number + 1])
    return found


def _start(starts: Sequence[int], number: int) -> int:
    return starts[min(number, len(starts) - 1)]


def _place(facts: Facts, step: int) -> _Place:
    starts = _starts(facts)
    number = max(0, bisect_right(starts, step, hi=len(starts) - 1) - 1)
    return _Place(number, step - starts[number] + 1)
