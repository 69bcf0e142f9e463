"""The possible crashes in a session, and their notation."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import combinations, combinations_with_replacement, product
from operator import attrgetter
from typing import TypeAlias

from hushbid.evidence.sweep.small_session import SimulatedCourse
from hushbid.protocol.errors import ConfigError
from hushbid.simulation.simulator import UNRECORDED, Crash

__all__ = [
    "Crashes",
    "Which",
    "crashes_at",
    "crashes_of",
    "every",
    "read_crashes",
    "same_steps",
    "write_crashes",
]

Crashes: TypeAlias = tuple[Crash, ...]
"""The crashes of one session."""


class Which(StrEnum):
    """How the crashes of a sweep are chosen."""

    SINGLE = "single"
    """One crash per session: any party, at any step, at any moment of the step."""
    SAME_STEP = "same-step"
    """Two parties at simultaneous steps (`same_steps`)."""
    PAIRS = "pairs"
    """Any two crashes, including two of one party or at one moment."""


def every(course: SimulatedCourse, which: Which) -> list[Crashes]:
    """The crashes of a sweep, in a fixed order."""
    if which is Which.SAME_STEP:
        return [
            crashes
            for one, other in combinations(course.steps, 2)
            for steps in same_steps(course, one, other)
            for crashes in product(crashes_at(course, one, steps[0]), crashes_at(course, other, steps[1]))
        ]
    single = [crash for party in course.steps for crash in crashes_of(course, party)]
    if which is Which.PAIRS:
        return list(combinations_with_replacement(single, 2))
    return [(crash,) for crash in single]


def crashes_of(course: SimulatedCourse, party: str) -> list[Crash]:
    """Every crash of a party: at every step, at each of its moments."""
    return [crash for step in range(len(course.steps[party])) for crash in crashes_at(course, party, step)]


def crashes_at(course: SimulatedCourse, party: str, step: int) -> list[Crash]:
    """A party's crashes at a step: before it is durable, before its first frame leaves, and after each."""
    left = (UNRECORDED, *range(course.steps[party][step].frames + 1))
    return [Crash(party, step, frames) for frames in left]


def same_steps(course: SimulatedCourse, one: str, other: str) -> list[tuple[int, int]]:
    """Simultaneous steps of two parties: one's step, and the next step of the other."""
    found = set(_followed(course, one, other))
    found.update((step, following) for following, step in _followed(course, other, one))
    return sorted(found)


def _followed(course: SimulatedCourse, one: str, other: str) -> Iterator[tuple[int, int]]:
    steps = course.steps[other]
    for number, step in enumerate(course.steps[one]):
        following = bisect_left(steps, step.now, key=attrgetter("now"))
        if following < len(steps):
            yield number, following


def write_crashes(crashes: Sequence[Crash]) -> str:
    """Notation such as ``curator:12:0,owner-0:3:-1``: party, step, and number of frames that had left."""
    return ",".join(f"{crash.party}:{crash.step}:{crash.left}" for crash in crashes)


def read_crashes(text: str) -> Crashes:
    """Parse the result of `write_crashes`.

    Raises:
        ConfigError: It is something else.
    """
    found = []
    for part in text.split(","):
        party, _, place = part.partition(":")
        step, _, left = place.partition(":")
        if not (party and step.isdecimal() and (left.isdecimal() or left == str(UNRECORDED))):
            raise ConfigError(
                f"--only {text}: {part!r} is no crash.",
                advice="Give PARTY:STEP:LEFT, as in curator:12:0: at its step 12, after 0 frames have left; "
                f"{UNRECORDED}: before the step is durable.",
            )
        found.append(Crash(party, int(step), int(left)))
    return tuple(found)
