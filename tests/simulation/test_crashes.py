"""A session survives crashes of every party at every step: the result is that without crashes.

K = 2 and p = 5, and p = 20 in the slow tests; `logistic`, which needs more than two owners, has three.
Owners have 0.75·p points each, so that some rounds have exhausted bids. `hushbid sweep crashes` runs what is
too much for a test: with `--pairs` every two crashes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path

import pytest

from hushbid.evidence.sweep.crash_sweep import CrashSetting, check, sweep, uncrashed
from hushbid.evidence.sweep.crashes import (
    Crashes,
    Which,
    crashes_at,
    crashes_of,
    every,
    same_steps,
    write_crashes,
)
from hushbid.evidence.sweep.small_session import SimulatedCourse, goes_with, run, small_session
from hushbid.protocol import limits
from hushbid.protocol.errors import ExitCode
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.privacy.acquisition import RULES
from hushbid.protocol.privacy.releases import RELEASES
from hushbid.protocol.session.session import Session
from hushbid.protocol.transcript.reader import TranscriptReader
from hushbid.simulation.simulator import UNRECORDED, Crash
from hushbid.transcripts.replay import replayed

ROUNDS = 5
"""The fewest with all kinds of steps: in the last round, owners have run out and no point is checked."""
FEW_ROUNDS = 3
"""Where crashes are at the end of a session, or at all its steps: one round is like another."""
ROUNDS_AWAY = 13
"""Where an owner is away for some rounds."""
MORE_ROUNDS = 20
"""Of the slow tests."""
DEFAULT_RELEASE = "filtered-gaussian"
OWNERS = ("owner-0", "owner-1")
SHARES = 4
"""Of the pairs that a slow test runs, in which it is cut for shares of the slow tests."""
PAIRS = 60
"""In one of these shares."""


def setting(rule: str, release: str = DEFAULT_RELEASE, rounds: int = ROUNDS) -> CrashSetting:
    return CrashSetting(rule, release, rounds, max(len(OWNERS), RULES[rule].fewest_owners))


def survives(which: CrashSetting, plan: Sequence[Crashes], *, all_come: bool = True) -> None:
    """Check that every session of the plan has the outcome of one without crashes."""
    result = sweep(which, plan)
    told = [f"{write_crashes(failure.crashes)}: {failure.what}" for failure in result.failures]
    assert told == []
    assert result.sessions == len(plan) > 0
    if all_come:
        assert result.crashes == sum(map(len, plan))


def one_moment_each(course: SimulatedCourse, parties: Sequence[str]) -> list[Crashes]:
    """A crash at every step, at moments that vary from step to step."""
    plan: list[Crashes] = []
    for offset, party in enumerate(parties):
        for step in range(len(course.steps[party])):
            moments = crashes_at(course, party, step)
            plan.append((moments[(offset + step // 2) % len(moments)],))
    return plan


def some_of_each(base: SimulatedCourse, count: int | None, start: int) -> list[Crashes]:
    """A crash at that many steps of each party, spread over its life; None: at every step."""
    plan = one_moment_each(base, tuple(base.steps))
    if count is None:
        return plan
    of_each = ([each for each in plan if each[0].party == party] for party in base.steps)
    return [crashes for own in of_each for crashes in spread(own, count, start)]


def spread(plan: Sequence[Crashes], count: int, start: int = 0) -> list[Crashes]:
    """That many of a plan, spread over it; another start gives others."""
    stride = max(round(len(plan) / count), 1)
    return list(plan[start % stride :: stride])


# -- one crash ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rule", "release"), [pair for pair in product(RULES, RELEASES) if goes_with(*pair)])
def test_the_session_that_nobody_crashes_in_is_a_whole_one(rule: str, release: str) -> None:
    """The reference for the others: all points delivered, all parties present, frames and records clean."""
    session, base = uncrashed(setting(rule, release))
    result = base.result
    rounds = [1] * ROUNDS if RULES[rule].herds else list(range(1, ROUNDS + 1))
    assert [win[0] for win in result["wins"]] == rounds
    assert len(result["delivered points"]) == ROUNDS
    assert result["stored points"] == result["delivered points"]
    assert sum(result["points handed over"].values()) >= ROUNDS
    assert not any(result[book] for book in ("absences", "faults", "refusals", "disputes"))
    assert set(result["ends"].values()) == {ExitCode.DONE}
    assert len(result["ends"]) == len(base.steps) == len(session.file.owners) + 2
    assert result["settlement"]
    assert result["MMD²"] is not None
    assert base.crashed == ()
    assert check(base, base) == []


@pytest.mark.parametrize(("start", "rule"), [*enumerate(RULES)])
def test_a_crash_of_any_party_at_any_step(start: int, rule: str) -> None:
    """At two steps of each party, others for each rule; the slow test has all."""
    _, base = uncrashed(setting(rule))
    plan = one_moment_each(base, tuple(base.steps))
    for party in base.steps:
        own = [crashes for crashes in plan if crashes[0].party == party]
        survives(setting(rule), spread(own, 2, start))


@pytest.mark.parametrize("count", [4, pytest.param(None, marks=pytest.mark.slow)], ids=["some", "every"])
@pytest.mark.parametrize("rule", [name for name, rule in RULES.items() if rule.sealed])
def test_a_crash_of_any_party_at_any_step_where_owners_commit(rule: str, count: int | None) -> None:
    committing = setting(rule, rounds=FEW_ROUNDS)._replace(commits=True)
    _, base = uncrashed(committing)
    assert len(base.result["wins"]) == FEW_ROUNDS
    survives(committing, some_of_each(base, count, len(rule)))


@pytest.mark.parametrize("count", [2, pytest.param(None, marks=pytest.mark.slow)], ids=["some", "every"])
@pytest.mark.parametrize("rule", [name for name, rule in RULES.items() if rule.candidate_with_bid])
def test_a_crash_of_any_party_at_any_step_of_a_session_that_buys_three_a_round(
    rule: str, count: int | None
) -> None:
    batches = setting(rule, rounds=FEW_ROUNDS)._replace(batch=3)
    _, base = uncrashed(batches)
    assert len(base.result["wins"]) == 3 * FEW_ROUNDS
    assert {win[0] for win in base.result["wins"]} == ({1} if RULES[rule].herds else {1, 2, 3})
    survives(batches, some_of_each(base, count, len(rule)))


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
def test_a_crash_of_any_party_at_any_moment_of_any_step(rule: str) -> None:
    _, base = uncrashed(setting(rule, rounds=MORE_ROUNDS))
    plan = every(base, Which.SINGLE)
    assert len(plan) > 2 * sum(map(len, base.steps.values()))
    survives(setting(rule, rounds=MORE_ROUNDS), plan)


@pytest.mark.parametrize("release", sorted(RELEASES.keys() - {DEFAULT_RELEASE}))
def test_a_crash_of_whoever_makes_a_release(release: str) -> None:
    """`mwem`, like the default, carries state from release to release, which is restored."""
    _, base = uncrashed(setting("ask-all", release))
    survives(setting("ask-all", release), spread(one_moment_each(base, (CURATOR, CONSUMER)), 6))


@pytest.mark.slow
@pytest.mark.parametrize("release", sorted(RELEASES.keys() - {DEFAULT_RELEASE}))
@pytest.mark.parametrize("rule", ["sealed", "winner-only"])
def test_a_crash_at_any_step_with_another_release(rule: str, release: str) -> None:
    _, base = uncrashed(setting(rule, release, MORE_ROUNDS))
    survives(setting(rule, release, MORE_ROUNDS), one_moment_each(base, tuple(base.steps)))


# -- two crashes --------------------------------------------------------------------------------------


def same_step_plan(base: SimulatedCourse) -> list[Crashes]:
    """Any two parties, at simultaneous steps, at moments that vary from pair to pair."""
    plan: list[Crashes] = []
    parties = tuple(base.steps)
    for one, other in product(parties, parties):
        if parties.index(one) < parties.index(other):
            for first, second in same_steps(base, one, other):
                both = list(product(crashes_at(base, one, first), crashes_at(base, other, second)))
                plan.append(both[len(plan) % len(both)])
    return plan


@pytest.mark.parametrize(("start", "rule"), [*enumerate(RULES)])
def test_two_parties_crash_at_the_same_step(start: int, rule: str) -> None:
    """In three sessions, at other steps for each rule; the slow test has all."""
    _, base = uncrashed(setting(rule))
    survives(setting(rule), spread(same_step_plan(base), 3, 5 * start))


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
def test_any_two_parties_crash_at_any_step_that_they_take_at_the_same_time(rule: str) -> None:
    _, base = uncrashed(setting(rule, rounds=MORE_ROUNDS))
    plan = same_step_plan(base)
    parties = {frozenset(crash.party for crash in crashes) for crashes in plan}
    count = len(base.steps)
    assert len(parties) == count * (count - 1) // 2
    survives(setting(rule, rounds=MORE_ROUNDS), plan)


@pytest.mark.slow
@pytest.mark.parametrize("share", range(SHARES))
@pytest.mark.parametrize("rule", RULES)
def test_a_share_of_all_pairs_of_crashes(rule: str, share: int) -> None:
    longer = setting(rule, rounds=MORE_ROUNDS)
    plan = spread(every(uncrashed(longer)[1], Which.PAIRS), PAIRS, share * 101)
    survives(longer, plan, all_come=False)


@pytest.mark.parametrize("again", [2, 3])
@pytest.mark.parametrize("rule", ["sealed", "winner-only"])
def test_a_party_crashes_again_as_soon_as_it_has_started_again(rule: str, again: int) -> None:
    """At the record of its restart, before and after that is durable: repeatedly."""
    _, base = uncrashed(setting(rule))
    plan = [
        tuple(Crash(crash.party, crash.step + more * (crash.left >= 0), crash.left) for more in range(again))
        for party in base.steps
        for crash in crashes_of(base, party)
        if crash.left <= 0 and crash.step < len(base.steps[party]) - 2
    ]
    survives(setting(rule), spread(plan, 5, again))


@pytest.mark.parametrize("rule", ["ask-all", "sealed"])
def test_the_curator_and_another_crash_while_the_session_is_closed(rule: str) -> None:
    _, base = uncrashed(setting(rule, rounds=FEW_ROUNDS))
    closing = [crash for crash in crashes_of(base, CURATOR) if crash.step >= len(base.steps[CURATOR]) - 5]
    leaving = [
        crash
        for party, steps in base.steps.items()
        if party != CURATOR
        for crash in crashes_of(base, party)
        if crash.step >= len(steps) - 2
    ]
    survives(setting(rule, rounds=FEW_ROUNDS), spread(list(product(closing, leaving)), 9), all_come=False)


# -- places of their own ------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [8, pytest.param(None, marks=pytest.mark.slow)], ids=["some", "every"])
@pytest.mark.parametrize("rule", ["ask-all", "sealed"])
def test_a_crash_between_two_parts_of_a_delivery(
    rule: str, count: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "DELIVERY_CHUNK_BYTES", 400)
    session = small_session(rule, release=DEFAULT_RELEASE, rounds=5, owners=2)
    base = run(session)
    parts = len(base.steps[CONSUMER]) - 4
    assert parts > 3
    first = len(base.steps[CURATOR]) - parts
    delivering = [crash for crash in crashes_of(base, CURATOR) if crash.step >= first]
    plan: list[Crashes] = [(crash,) for crash in [*crashes_of(base, CONSUMER), *delivering]]
    for crashes in plan if count is None else spread(plan, count, rule == "sealed"):
        course = run(session, crashes)
        assert course.crashed == crashes
        assert check(course, base) == [], crashes


@pytest.mark.parametrize("party", [CURATOR, *OWNERS])
def test_a_crash_in_a_session_from_which_an_owner_is_away_for_some_rounds(party: str) -> None:
    """It is absent for as long as it takes to catch up, which a crash may change; nobody else ever is.

    While it owes answers to older broadcasts nobody waits for it: if it crashes then, it may not catch up.
    """
    session, _ = uncrashed(setting("sealed", rounds=ROUNDS_AWAY))
    gone = OWNERS[1]

    def away(number: int) -> tuple[str, ...]:
        return (gone,) if 5 <= number <= 8 else ()

    for crashes in spread([(crash,) for crash in crashes_of(run(session, away=away), party)], 7):
        course = run(session, crashes, away=away)
        result = course.result
        assert course.crashed == crashes
        assert set(result["ends"].values()) == {ExitCode.DONE}
        assert len(result["delivered points"]) == len(result["wins"])
        assert not any(result[book] for book in ("faults", "refusals", "disputes"))
        missed = {(absence.owner, absence.round) for absence in result["absences"]}
        assert missed >= {(gone, number) for number in (6, 7, 8)}, crashes
        last = ROUNDS_AWAY if party == gone else 10
        assert missed <= {(gone, number) for number in range(5, last + 1)}, crashes
        assert len(result["wins"]) == ROUNDS_AWAY or party == gone, crashes
        assert_recorded(session, course)


def assert_recorded(session: Session, course: SimulatedCourse) -> None:
    """Check that every frame left with one content, and that every party's record replays."""
    assert all(len(found) == 1 for found in course.bodies.values())
    for party, image in course.transcripts.items():
        replayed(Path(party), image=image)


# -- the crash itself ---------------------------------------------------------------------------------


@pytest.mark.parametrize("party", [CURATOR, CONSUMER, *OWNERS])
def test_a_party_that_crashed_before_its_first_record_begins_anew(party: str) -> None:
    session, base = uncrashed(setting("sealed", rounds=FEW_ROUNDS))
    course = run(session, [Crash(party, 0, UNRECORDED)])
    assert course.crashed == (Crash(party, 0, UNRECORDED),)
    assert check(course, base) == []
    assert kinds_of(course, party)[0] == "started"
    assert "restarted" not in kinds_of(course, party), "there was nothing to go on from"


# The second owner is the first with other points: what a crash takes does not depend on them.
@pytest.mark.parametrize(
    "party", [CURATOR, CONSUMER, OWNERS[0], pytest.param(OWNERS[1], marks=pytest.mark.slow)]
)
def test_a_crash_takes_what_was_not_durable_and_nothing_else(party: str) -> None:
    session, base = uncrashed(setting("sealed", rounds=FEW_ROUNDS))
    for step in range(1, len(base.steps[party]) - 1, 2 if party == CURATOR else 1):
        kept, lost = (kinds_of(run(session, [Crash(party, step, left)]), party) for left in (0, UNRECORDED))
        before = kinds_of(base, party)[: step + 1]
        assert kept[: step + 2] == [*before, "restarted"]
        place = lost.index("restarted") if "restarted" in lost else 0
        assert place <= step
        assert lost[:place] == before[:place]
        assert sum(frames for _, frames in base.steps[party][place:step]) == 0, "what left was durable"


def kinds_of(course: SimulatedCourse, party: str) -> list[str]:
    """The kinds of the events that a party recorded, in order."""
    return [record.event.kind for record in TranscriptReader(Path(party), course.transcripts[party])]
