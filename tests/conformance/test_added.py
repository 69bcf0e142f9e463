"""A release and an acquisition rule from outside the package: one file and one registry call each.

The package does everything with them that it does with its own releases and rules.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

from hushbid.evidence.audit.run import audit, choose
from hushbid.evidence.sweep.crash_sweep import CrashSetting, check, sweep, uncrashed
from hushbid.evidence.sweep.crashes import crashes_at
from hushbid.evidence.sweep.fault_sweep import check_seed
from hushbid.evidence.sweep.plan import plan_of
from hushbid.evidence.sweep.small_session import SimulatedCourse
from hushbid.plan.flags import PlanFlags
from hushbid.plan.result import make_plan
from hushbid.plan.setting import plan_setting
from hushbid.plan.speed import Speed
from hushbid.protocol.errors import ConfigError, ExitCode
from hushbid.protocol.privacy.acquisition import RULES, register_rule
from hushbid.protocol.privacy.acquisition.ask_all import AskAll
from hushbid.protocol.privacy.releases import RELEASES, register_release
from hushbid.protocol.privacy.releases.gaussian import GaussianRelease
from hushbid.protocol.session.session import Session
from hushbid.protocol.space.grid import FEATURE_UNIT
from hushbid.replay.own import ReplayFiles
from hushbid.replay.writing import write_replay
from hushbid.transcripts.replay import replayed
from hushbid.transcripts.verification.whole_session import verify_all

TOYS = ("tests.support.coarse_release", "tests.support.every_bidder")
RELEASE, RULE = "coarse", "every-bidder"
SETTING = CrashSetting(RULE, RELEASE, rounds=4, owners=2)
FLAGS = PlanFlags(
    owners=5, points=100, batch=1, validation=380, owner_points=1_000, columns=20,
    epsilon_owners=1.0, epsilon_consumer=1.0, rule=RULE, release=RELEASE,
)  # fmt: skip
SPEED = Speed(
    draw=1e-3, release=1e-5, pass_start=2e-5, pass_row=1e-8, hash_point=1e-6, seal=1e-4,
    owner_messages=1e-5, curator_messages=2e-5, sync=1e-3,
)  # fmt: skip


@pytest.fixture(autouse=True, scope="module")
def _registered() -> Iterator[None]:
    """For these tests alone: others go through everything registered."""
    with patch.dict(RELEASES), patch.dict(RULES):
        for name in TOYS:
            sys.modules.pop(name, None)
            importlib.import_module(name)
        yield


@pytest.fixture(scope="module")
def played() -> tuple[Session, SimulatedCourse]:
    return uncrashed(SETTING)


@pytest.fixture
def transcripts(played: tuple[Session, SimulatedCourse], tmp_path: Path) -> dict[str, Path]:
    paths = {party: tmp_path / f"{party}.transcript" for party in played[1].transcripts}
    for party, image in played[1].transcripts.items():
        paths[party].write_bytes(image)
    return paths


def test_a_whole_session_is_played_on_them(played: tuple[Session, SimulatedCourse]) -> None:
    session, course = played
    assert (session.file.summary.mechanism, session.rule.name) == (RELEASE, RULE)
    assert len(course.result["delivered points"]) == SETTING.rounds
    assert set(course.result["ends"].values()) == {ExitCode.DONE}
    # Everybody is asked in every round, until its three points are gone.
    assert set(course.result["points handed over"].values()) == {3}
    assert check(course, course) == []


def test_it_is_the_toy_that_releases(played: tuple[Session, SimulatedCourse]) -> None:
    toy = played[0].target
    (draw,) = toy.draws(0)
    noise = np.arange(draw.size, dtype=np.int64) * 1_000
    released = toy.stream().release(0, np.zeros(draw.size, dtype=np.int64), 40.0, (noise,))
    assert np.array_equal(released, np.round(noise * (FEATURE_UNIT / 40.0) * 2**10) / 2**10)
    assert np.any(released)


def test_what_is_guaranteed_is_stated(played: tuple[Session, SimulatedCourse]) -> None:
    owners, consumer = played[0].privacy()[:2]
    assert owners.epsilon is not None
    assert consumer.epsilon is not None


def test_its_transcripts_verify_and_replay(transcripts: dict[str, Path]) -> None:
    found = verify_all(list(transcripts.values()))
    assert found["ok"]
    assert found["missing"] == []
    assert all(replayed(path).finished for path in transcripts.values())


def test_its_replay_says_how_it_buys_and_who_knows_what(transcripts: dict[str, Path], tmp_path: Path) -> None:
    facts, _ = write_replay(ReplayFiles(list(transcripts.values()), None), tmp_path / "replay.html")
    assert f"as the rule {RULE} says" in (tmp_path / "replay.html").read_text(encoding="utf-8")
    curator, owner = " ".join(facts.knowledge["curator"].knows), " ".join(facts.knowledge["owner"].hidden)
    assert "Raw points with their labels: at most K·p of them" in curator
    assert "Which of its points were chosen" in owner  # an ask tells nothing


def test_it_survives_a_crash_at_every_step_of_every_party(played: tuple[Session, SimulatedCourse]) -> None:
    course = played[1]
    plan = []
    for party, steps in course.steps.items():
        for step in range(len(steps)):
            moments = crashes_at(course, party, step)
            plan.append((moments[step % len(moments)],))
    result = sweep(SETTING, plan)
    assert result.failures == []
    assert result.crashes == len(plan) > 30


def test_everything_goes_wrong_and_what_must_hold_holds() -> None:
    seeds = [seed for seed in range(100) if plan_of(seed, (RULE,)).release == RELEASE][:5]
    assert len(seeds) == 5
    for seed in seeds:
        result = check_seed(seed, (RULE,))
        assert result.failures == []
        assert result.rules == {RULE: 1}


def test_a_session_of_them_is_planned() -> None:
    plan = make_plan(plan_setting(None, FLAGS), SPEED, cores=2)
    other = make_plan(plan_setting(None, replace(FLAGS, release="gaussian", rule="ask-all")), SPEED, cores=2)
    assert (plan["rule"], plan["points_accessed_curator"]) == (RULE, 500)
    for name in ("target", "summary"):
        assert plan[name]["mechanism"] == RELEASE
        assert plan[name]["sigma"] == other[name]["sigma"] > 0
        assert plan[name]["error"] == pytest.approx(other[name]["error"])


def test_a_release_that_says_nothing_of_its_noise_is_planned_by_simulating_it() -> None:
    """The norm of 140 normal numbers is within 6 % of its mean in two draws of three."""

    class Silent(GaussianRelease):
        name = "silent"
        sigma = None  # type: ignore[assignment]

    with patch.dict(RELEASES):
        register_release(Silent)
        plan = make_plan(plan_setting(None, replace(FLAGS, release="silent", rule="ask-all")), SPEED, cores=2)
    other = make_plan(plan_setting(None, replace(FLAGS, release="gaussian", rule="ask-all")), SPEED, cores=2)
    assert plan["target"]["error_is_simulated"]
    for name in ("target", "summary"):
        for figure in ("noise", "error", "error_unfiltered"):
            assert plan[name][figure] == pytest.approx(other[name][figure], rel=0.2)


@pytest.mark.parametrize(("name", "trials"), [(RELEASE, 1_000), (RULE, 40)])
def test_they_are_audited_by_their_names(name: str, trials: int) -> None:
    """Fails by chance with probability 0.05 at most for another seed: the bound's confidence."""
    (result,) = audit(choose([name]), trials=trials)
    assert (result.suite, result.as_expected) == (name, True)
    assert result.stated.epsilon == pytest.approx(1.0, rel=1e-3)
    assert result.as_json()["expected"] == "pass"


def test_a_name_is_taken_once() -> None:
    class Another(GaussianRelease):
        name = RELEASE

    class Other(AskAll):
        name = RULE

    with pytest.raises(ValueError, match="'coarse' already"):
        register_release(Another)
    with pytest.raises(ValueError, match="'every-bidder' already"):
        register_rule(Other)
    with pytest.raises(ConfigError, match="no suite named 'published'"):
        choose(["published"])
