"""Across crashes no noise is drawn twice for a release; faults that break recovery are caught."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy.typing as npt
import pytest

from hushbid.consumer.numerics import ConsumerNumerics
from hushbid.curator.numerics import CuratorNumerics
from hushbid.evidence.sweep.crash_sweep import CrashSetting, check, sweep, uncrashed
from hushbid.evidence.sweep.crashes import Crashes, crashes_at, crashes_of, same_steps
from hushbid.evidence.sweep.small_session import SimulatedCourse, run
from hushbid.owner.numerics import OwnerNumerics
from hushbid.protocol.config.session import TimeoutSection
from hushbid.protocol.errors import ExitCode
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.privacy.noise import Draw, SimulatedNoise
from hushbid.protocol.runtime.driver import Driver, Outgoing
from hushbid.protocol.session.session import open_session
from hushbid.protocol.transcript.record import Record
from hushbid.protocol.transcript.replay import EventReader
from hushbid.protocol.wire.link import Link
from hushbid.simulation import simulator
from hushbid.simulation.simulator import UNRECORDED, Crash
from hushbid.transcripts.replay import replayed

ROUNDS = 5
"""The fewest in which every kind of step comes that comes in ten."""
MORE_ROUNDS = 10
"""Of the slow tests."""
SEALED = CrashSetting("sealed", "filtered-gaussian", ROUNDS, 2)
ASK_ALL = SEALED._replace(rule="ask-all")
BLIND = SEALED._replace(rule="blind")
TOLD_BY = 16
"""Bytes by which a draw is told from others, and found on record: some are cut up before they get there."""


class FreshNoise(SimulatedNoise):
    """Noise that differs at each start of a party, like an operating system's, and a record of all of it.

    Args:
        party: The party that draws.
        drawn: Where it is recorded.
    """

    protects = True

    def __init__(self, party: str, drawn: list[bytes]) -> None:
        super().__init__(int.from_bytes(os.urandom(8)), party)
        self._drawn = drawn

    def draw(self, request: Draw) -> npt.NDArray[Any]:
        noise = super().draw(request)
        self._drawn.append(noise.tobytes()[:TOLD_BY])
        return noise

    def random_bytes(self, count: int) -> bytes:
        keys = super().random_bytes(count)
        self._drawn.append(keys[:TOLD_BY])
        return keys


class ForgetfulNoise(FreshNoise):
    """A broken control: fresh noise that claims to be repeatable."""

    protects = False


Drawn = dict[str, list[bytes]]
"""What each party drew, in all its starts together."""


def with_fresh_noise(
    setting: CrashSetting, crashes: Iterable[Crash] = (), kind: type[FreshNoise] = FreshNoise
) -> tuple[SimulatedCourse, Drawn]:
    session, _ = uncrashed(setting)
    drawn: Drawn = defaultdict(list)
    return run(session, crashes, noise=lambda party: kind(party, drawn[party])), drawn


def drawn_twice(
    drawn: Drawn, course: SimulatedCourse, crash: Crash, setting: CrashSetting = SEALED
) -> list[str]:
    """The parties that drew anything more than once, or drew what is not on record; empty if all is well.

    Draws of a step that the crash lost are not on record.
    """
    wrong = []
    for party, values in drawn.items():
        recorded = [value for value in values if value in course.transcripts[party]]
        if len(recorded) != draws_of(party, setting):
            wrong.append(f"{party} has {len(recorded)} values of {draws_of(party, setting)} on record")
        if len(recorded) != len(values) and not (party == crash.party and crash.left == UNRECORDED):
            wrong.append(f"{party} drew {len(values) - len(recorded)} values that are not on record")
    return wrong


@cache
def draws_of(party: str, setting: CrashSetting) -> int:
    """How often a party draws in a session without crashes."""
    _, drawn = with_fresh_noise(setting)
    return len(drawn[party])


def assert_whole(course: SimulatedCourse, rounds: int) -> None:
    """Check that all ended, everything arrived, and each frame left with one content."""
    result = course.result
    assert set(result["ends"].values()) == {ExitCode.DONE}
    assert len(result["wins"]) == rounds
    assert len(result["delivered points"]) == rounds
    assert result["stored points"] == result["delivered points"]
    assert not any(result[book] for book in ("absences", "faults", "refusals", "disputes"))
    assert all(len(found) == 1 for found in course.bodies.values()), "one value for each release"


def noisy_crashes(party: str, setting: CrashSetting) -> list[Crash]:
    """Some crashes of a party; all of a consumer that does not weigh, which takes few steps.

    With these strides, every kind of step of a party is crashed, and at other moments from round to round.
    """
    _, base = uncrashed(setting)
    found = crashes_of(base, party)
    if (party, setting.rule) == (CONSUMER, SEALED.rule):
        return found
    return found[1::4] if party == CURATOR else found[::3]


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["some", "every"])
@pytest.mark.parametrize("setting", [SEALED, BLIND], ids=["sealed", "blind"])
@pytest.mark.parametrize("party", [CURATOR, CONSUMER, "owner-0"])
def test_noise_and_keys_are_drawn_once_for_what_leaves(
    party: str, setting: CrashSetting, every: bool
) -> None:
    """Under `blind` the consumer draws the noise that protects owners, and crashes at any step of a round."""
    if every:
        setting = setting._replace(rounds=MORE_ROUNDS)
    for crash in crashes_of(uncrashed(setting)[1], party) if every else noisy_crashes(party, setting):
        course, drawn = with_fresh_noise(setting, [crash])
        assert course.crashed == (crash,)
        assert_whole(course, setting.rounds)
        assert drawn_twice(drawn, course, crash, setting) == [], crash
        for name, image in course.transcripts.items():
            replayed(Path(name), image=image)


def test_noise_that_was_not_durable_is_drawn_again_and_was_never_seen() -> None:
    """A crash may waste noise; lost noise is on nobody's record, and in no frame."""
    _, base = uncrashed(SEALED)
    wasted = 0
    for crash in crashes_of(base, CURATOR):
        if crash.left == UNRECORDED:
            course, drawn = with_fresh_noise(SEALED, [crash])
            lost = [value for value in drawn[CURATOR] if value not in course.transcripts[CURATOR]]
            wasted += bool(lost)
    assert wasted == 1, "all rounds' noise is drawn in one step"


def test_a_party_that_draws_again_is_caught() -> None:
    caught = set()
    for party in (CURATOR, CONSUMER, "owner-0"):
        crash = crashes_of(uncrashed(SEALED)[1], party)[-1]
        course, drawn = with_fresh_noise(SEALED, [crash], ForgetfulNoise)
        if drawn_twice(drawn, course, crash):
            caught.add(party)
    assert caught == {CURATOR, CONSUMER, "owner-0"}


# -- controls: what a crash must not be survived with ---------------------------------------------------


def spread(plan: list[Crashes], count: int) -> list[Crashes]:
    """At most that many, spread over a plan."""
    return plan[:: -(-len(plan) // count)]


def plan_of(setting: CrashSetting, party: str) -> list[Crashes]:
    """Those in rounds come first: what is lost before them shows less."""
    _, base = uncrashed(setting)
    plan = spread([(crash,) for crash in crashes_of(base, party)], 20)
    return plan[6:] + plan[:6]


def is_caught(setting: CrashSetting, plan: list[Crashes]) -> bool:
    """Whether a session of the plan fails; stops at the first that does."""
    return any(sweep(setting, [crashes]).failures for crashes in plan)


@pytest.mark.parametrize(
    ("party", "numerics", "setting"),
    [
        (CURATOR, CuratorNumerics, ASK_ALL),
        (CONSUMER, ConsumerNumerics, SEALED),
        ("owner-1", OwnerNumerics, ASK_ALL),
        ("owner-1", OwnerNumerics, SEALED),
    ],
)
def test_numerics_that_take_nothing_up_are_caught(
    party: str, numerics: type, setting: CrashSetting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numerics, "restore", lambda self, effect, outcome: None)
    assert is_caught(setting, plan_of(setting, party))


class UnlinkedDriver(Driver):
    """A broken control: sent and received frames are forgotten."""

    def resume(self, records: Iterable[Record], read: EventReader) -> None:
        super().resume(records, read)
        self.machine.links.update({peer: Link() for peer in self.machine.links})


class EagerDriver(Driver):
    """A broken control: every other time frames leave before their step is durable."""

    late = False

    def release(self) -> list[Outgoing]:
        if self._outgoing:
            self.late = not self.late
        if not self.late:
            self.settle()
        outgoing, self._outgoing = self._outgoing, []
        return outgoing


@pytest.mark.parametrize("broken", [UnlinkedDriver, EagerDriver])
@pytest.mark.parametrize("party", [CURATOR, "owner-0"])
def test_a_driver_that_loses_what_it_must_keep_is_caught(
    party: str, broken: type[Driver], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of(SEALED, party)
    monkeypatch.setattr(simulator, "Driver", broken)
    assert is_caught(SEALED, plan)


def test_frames_that_leave_before_they_are_durable_leave_with_two_contents(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If noise is fresh, and the first frame's recipient has lost it: the bodies of frames differ."""
    _, base = uncrashed(SEALED)
    monkeypatch.setattr(simulator, "Driver", EagerDriver)
    first_answers = [steps for steps in same_steps(base, CURATOR, "owner-1") if steps[0] in (7, 8)]
    assert any(
        "owner-1" in sent_twice(crashes)
        for step, following in first_answers
        for crashes in product(crashes_at(base, CURATOR, step), crashes_at(base, "owner-1", following))
    )


def sent_twice(crashes: Iterable[Crash]) -> set[str]:
    """Who sent a frame with two contents."""
    course, _ = with_fresh_noise(SEALED, crashes)
    return {sender for (sender, _, _), found in course.bodies.items() if len(found) > 1}


def test_a_curator_that_does_not_wait_for_who_crashed_has_absences() -> None:
    session, base = uncrashed(ASK_ALL)
    hasty = open_session(session.file.model_copy(update={"timeouts": TimeoutSection(comeback=1e-6)}))
    whole = run(hasty)
    assert check(whole, base) == [], "nobody crashed"
    absent = 0
    for crash in crashes_of(base, "owner-0")[::4]:
        course = run(hasty, [crash])
        absent += bool(course.result["absences"])
        assert course.result["ends"][CURATOR] is ExitCode.DONE
    assert absent
