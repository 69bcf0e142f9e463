"""`hushbid sweep`: the swept sessions, their shares, and the report of a session that differs."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from hushbid.cli.app import main
from hushbid.evidence.sweep.crash_sweep import CrashSetting, uncrashed
from hushbid.evidence.sweep.crashes import Which, crashes_of, every, read_crashes, same_steps, write_crashes
from hushbid.evidence.sweep.small_session import (
    PartyStep,
    SimulatedCourse,
    Tendering,
    compared,
    small_session,
)
from hushbid.owner.numerics import OwnerNumerics
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.privacy.acquisition import RULES
from hushbid.protocol.space.prices import Prices
from hushbid.protocol.space.terms import Terms
from hushbid.simulation.simulator import UNRECORDED, Crash

SHORT = CrashSetting("ask-all", "exact", 2, 2)
OPTIONS = ("--rule", "ask-all", "--release", "exact", "--rounds", "2", "--jobs", "1")


class Ended:
    """How `hushbid sweep crashes` ended."""

    def __init__(self, code: object, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def json(self) -> Any:
        assert len(self.out.splitlines()) == 1, self.out
        return json.loads(self.out)


@pytest.fixture
def swept(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Any:
    """`swept("--pairs")` runs the verb on a session of two rounds."""

    def run(*arguments: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["hushbid", "sweep", "crashes", *OPTIONS, *arguments])
        with pytest.raises(SystemExit) as ending:
            main()
        captured = capfd.readouterr()
        return Ended(ending.value.code, captured.out, captured.err)

    return run


def test_a_sweep_counts_sessions_and_crashes(swept: Any) -> None:
    ended = swept("--json")
    assert ended.code == 0
    (rule,) = ended.json["rules"]
    plan = every(uncrashed(SHORT)[1], Which.SINGLE)
    assert rule == {**SHORT._asdict(), "sessions": len(plan), "crashes": len(plan), "failures": []}
    assert ended.json["ok"]
    assert ended.err == f"sweeping ask-all: {len(plan)} sessions\n"


def test_people_are_shown_a_table(swept: Any) -> None:
    ended = swept("--only", "curator:4:0,owner-1:2:-1", "--only", "consumer:1:0")
    assert ended.code == 0
    (row,) = (line for line in ended.out.splitlines() if "ask-all" in line)
    assert row.replace("│", " ").split() == ["ask-all", "2", "3", "0"]


def test_a_session_that_comes_to_something_else_is_told_with_what_runs_it_again(
    swept: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OwnerNumerics, "restore", lambda self, effect, outcome: None)
    ended = swept("--json", "--share", "0/3")
    assert ended.code == 1
    assert not ended.json["ok"]
    (rule,) = ended.json["rules"]
    assert 0 < len(rule["failures"]) < rule["sessions"]
    assert all(failure["only"].startswith("owner-") for failure in rule["failures"])
    only = rule["failures"][0]["only"]
    again = swept("--only", only)
    assert again.code == 1
    assert rule["failures"][0]["what"] in again.out
    line = f'hushbid sweep crashes --rule ask-all --release exact --rounds 2 --owners 2 --only "{only}"'
    assert line in again.out


def test_a_crash_that_was_asked_for_and_never_comes_is_a_failure(swept: Any) -> None:
    ended = swept("--only", "curator:9999:0", "--json")
    assert ended.code == 1
    (rule,) = ended.json["rules"]
    assert rule["failures"] == [{"only": "curator:9999:0", "what": "the crash curator:9999:0 never came"}]
    assert ended.err == "sweeping ask-all: 1 session\n"


def test_shares_are_all_of_it_and_nothing_twice(swept: Any) -> None:
    sizes = [swept("--json", "--same-step", "--share", f"{index}/60").json for index in (0, 59)]
    plan = every(uncrashed(SHORT)[1], Which.SAME_STEP)
    assert [size["rules"][0]["sessions"] for size in sizes] == [len(plan[0::60]), len(plan[59::60])]


def test_processes_share_the_work(swept: Any) -> None:
    ended = swept("--json", "--share", "0/2", "--jobs", "2")
    assert ended.code == 0
    assert ended.json["rules"][0]["sessions"] > 20, "more than one process is given at once"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--pairs", "--same-step"), "three sweeps"),
        (("--share", "2/2"), "not a share"),
        (("--only", "curator:3"), "'curator:3' is no crash"),
        (("--only", "nobody:3:0"), "no party named 'nobody'"),
        (("--rule", "auction"), "no rule named 'auction'"),
        (("--release", "noise"), "no release named 'noise'"),
    ],
)
def test_what_cannot_be_swept_is_refused(swept: Any, arguments: tuple[str, ...], told: str) -> None:
    ended = swept(*arguments)
    assert ended.code == 4
    assert told in ended.err


def test_crashes_are_read_as_they_are_written() -> None:
    crashes = (Crash("curator", 12, 0), Crash("owner-0", 3, UNRECORDED))
    assert write_crashes(crashes) == "curator:12:0,owner-0:3:-1"
    assert read_crashes(write_crashes(crashes)) == crashes
    for text in ("", "curator", "curator:1:-2", "curator:1:0,", ":1:0", "curator:x:0"):
        with pytest.raises(ConfigError):
            read_crashes(text)


def course(**changes: Any) -> SimulatedCourse:
    values: dict[str, Any] = {"result": {"wins": 1}, "bodies": {}, "transcripts": {}, "crashed": ()}
    return SimulatedCourse(**(values | changes))


def stepping(**steps: tuple[tuple[float, int], ...]) -> SimulatedCourse:
    made = course()
    made.__dict__["steps"] = {
        party: tuple(PartyStep(*step) for step in taken) for party, taken in steps.items()
    }
    return made


def test_a_step_can_be_crashed_at_before_it_is_durable_and_around_each_frame() -> None:
    assert crashes_of(stepping(curator=((0.0, 0), (1.0, 2))), "curator") == [
        Crash("curator", step, left) for step, left in [(0, -1), (0, 0), (1, -1), (1, 0), (1, 1), (1, 2)]
    ]


def test_steps_of_two_parties_go_together_if_one_is_the_other_s_next() -> None:
    made = stepping(one=((0.0, 0), (2.0, 0), (5.0, 0)), other=((0.0, 0), (3.0, 0)))
    assert same_steps(made, "one", "other") == [(0, 0), (1, 1), (2, 1)]


def test_pairs_are_any_two_crashes_and_a_party_s_own_among_them() -> None:
    plan = every(stepping(one=((0.0, 0),), other=((0.0, 1),)), Which.PAIRS)
    assert len(plan) == len(set(plan)) == 5 * 6 // 2
    assert (Crash("one", 0, -1), Crash("one", 0, -1)) in plan


def test_sessions_are_compared_in_what_they_come_to_and_in_what_left() -> None:
    frame = ("curator", "owner-0", 1)
    base = course(bodies={frame: frozenset([b"1"])})
    assert compared(base, base) == []
    assert compared(course(result={"wins": 2}, bodies=base.bodies), base) == ["other wins"]
    assert compared(course(bodies={frame: frozenset([b"2"])}), base) == ["other frames"]
    twice = course(bodies={frame: frozenset([b"1", b"2"])})
    assert compared(twice, base) == ["a frame left twice, with two contents", "other frames"]


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_has_a_session_that_is_small_enough(rule: str) -> None:
    owners = RULES[rule].fewest_owners
    for rounds in (2, 20):
        session = small_session(rule, release="filtered-gaussian", rounds=rounds, owners=owners)
        assert session.file.session.points == rounds
        assert len(session.file.owners) == owners


def test_owners_of_a_small_tender_submit_in_several_messages() -> None:
    session, course = uncrashed(CrashSetting("tender", "gaussian", 5, 2))
    assert (session.rounds, session.messages, session.batch) == (1, 3, 2)
    submitted = [sender for (sender, receiver, _), _ in course.bodies.items() if sender.startswith("owner")]
    assert {sender: submitted.count(sender) for sender in submitted} == {"owner-0": 4, "owner-1": 4}
    alone = small_session("tender", release="exact", rounds=5, owners=2, tendering=Tendering(messages=1))
    assert (alone.messages, alone.batch) == (1, 5)


def test_a_small_tender_has_terms_and_a_finer_release_for_the_curator() -> None:
    terms = Tendering(prices=(1, 2), budget=9, caps=(4, 3), nested=True, submission=4)
    session = small_session("tender", release="gaussian", rounds=3, owners=2, batch=2, tendering=terms)
    assert session.terms == Terms(Prices((10_000, 20_000)), 90_000, (4, 3))
    assert session.nested is not None
    assert session.batch * session.messages >= 4


def test_logistic_has_no_session_of_fewer_owners() -> None:
    with pytest.raises(ConfigError, match="logistic"):
        small_session("logistic", release="exact", rounds=20, owners=RULES["logistic"].fewest_owners - 1)
