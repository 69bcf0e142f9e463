"""A plan with data has the rehearsal's verdict, and the range with the owners' own points."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pytest
import tomli_w
from rich.console import Console
from typer.testing import CliRunner

from hushbid.cli.app import app
from hushbid.cluster.file import open_cluster
from hushbid.consumer.verdict import Rehearsal, Staged, Verdict
from hushbid.plan import quality
from hushbid.plan.flags import PlanFlags
from hushbid.plan.noise import release_errors
from hushbid.plan.planning import plan_session
from hushbid.plan.prediction import predict
from hushbid.plan.result import Plan
from hushbid.plan.setting import PlanSetting, plan_setting
from hushbid.plan.terminal import render
from hushbid.plan.verdict import Rehearsing
from hushbid.plan.with_data import NOT_REHEARSED, Rehearsed, judge, rehearsed
from hushbid.running.simulate import simulate

FEATURES: Final = {"map": "paired", "dimension": 60, "gamma": 4.0, "columns": 2, "lower": 0.0, "upper": 1.0}


def place(count: int, seed: int, low: float, high: float) -> npt.NDArray[np.float64]:
    return np.random.default_rng(seed).uniform(low, high, (count, 2))


def made_common(tmp_path: Path) -> Path:
    """All of the owners' points are wanted, and the seed set is not: a uniform choice is hard to beat."""
    np.savez(tmp_path / "v.npz", features=place(200, 1, 0.3, 0.9))
    np.savez(tmp_path / "s.npz", features=place(40, 2, 0.0, 0.3))
    for number in range(2):
        np.savez(tmp_path / f"o{number}.npz", features=place(300, 3 + number, 0.3, 0.9))
    release = {"mechanism": "filtered-gaussian", "epsilon": 3.0}
    path = tmp_path / "cluster.toml"
    path.write_text(
        tomli_w.dumps(
            {
                "session": {"name": "common", "points": 60},
                "features": FEATURES,
                "target": release | {"neighbours": "substitute-one"},
                "summary": release | {"neighbours": "add-remove-one"},
                "acquisition": {"rule": "sealed"},
                "owners": {f"o{number}": {"data": f"o{number}.npz"} for number in range(2)},
                "consumer": {"validation": "v.npz", "seed_set": "s.npz"},
            }
        )
    )
    return path


@pytest.fixture
def common(tmp_path: Path) -> Path:
    return made_common(tmp_path)


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    """The plan of `common` with all defaults, which tests only read."""
    return plan_session(made_common(tmp_path_factory.mktemp("planned")))


def made(path: Path, verdict: Verdict, owners: Staged | None = None, **flags: Any) -> quality.Judged:
    """The verdict of a plan whose rehearsal had this outcome."""
    setting = plan_setting(path, PlanFlags(**flags))
    return judge(setting, Rehearsed(verdict, owners, owners), lambda: by_rule(setting))


def by_rule(setting: PlanSetting) -> quality.Judged:
    errors = release_errors(setting)
    return quality.verdict(setting, *errors, predict(setting, *errors))


def staged(*ratios: float) -> Verdict:
    return Verdict(Rehearsal(tuple(Staged("some", each, 1.0, each, 1.0) for each in ratios), 0.5))


def test_the_verdict_is_that_of_everybody_s_rehearsal(common: Path, planned: Plan) -> None:
    plan = planned
    session = simulate(open_cluster(common), rehearsing=Rehearsing(anyway=True)).as_json()
    rehearsal = plan["rehearsal"]
    assert rehearsal["verdict"] == session["verdict"]
    assert (rehearsal["verdict_why"], rehearsal["why"]) == ("", "")
    assert plan["verdict"] == rehearsal["verdict"]["verdict"]
    assert plan["remedies"] == []


def test_what_the_rule_of_thumb_calls_good_is_not_where_the_owners_data_are_the_limit(
    common: Path, planned: Plan
) -> None:
    setting = plan_setting(common, PlanFlags())
    guess = predict(setting, *release_errors(setting))
    assert guess.expected < 0.5 * guess.uniform, "good, said the rule"
    plan = planned
    assert plan["verdict"] != "good"
    found = plan["mmd2"]["weighted"]["times_random"]
    assert found["high"] == pytest.approx(2.0 * found["expected"]) == pytest.approx(4.0 * found["low"])
    assert f"it came to {found['expected']:.2g} times a random choice's MMD² with weights" in plan["reason"]
    sessions = [
        simulate(open_cluster(common, settings={"consumer.seed": seed})).as_json()["choices"]["run"]
        for seed in range(11, 19)
    ]
    figures = plan["mmd2"]
    assert figures["low"] < fmean(each["mmd2"] for each in sessions) < figures["high"]
    weighted = figures["weighted"]
    assert weighted["low"] < fmean(each["weighted"]["mmd2"] for each in sessions) < weighted["high"]


def test_all_figures_are_of_the_sessions_that_were_played(common: Path, planned: Plan) -> None:
    plan = planned
    assert plan["verdict_by"] == "a rehearsal"
    figures, played = plan["mmd2"], plan["rehearsal"]["owners"]
    assert figures["by"] == "sessions played with the owners' points"
    assert (figures["expected"], figures["uniform"]) == (played["mmd2"], played["mmd2_uniform"])
    assert figures["without_noise"] == plan["rehearsal"]["without_noise"]["mmd2"]
    assert figures["weighted"]["expected"] == played["mmd2_weighted"]
    assert figures["uniform_is_measured"]
    [row] = [row for row in plan["batches"] if row["batch"] == plan["batch"]]
    assert row["mmd2"] == pytest.approx(figures["expected"]), "rows of other batches are in proportion"
    assert plan_session(common)["rehearsal"] == plan["rehearsal"], "the same every time"
    assert Plan.from_json(plan.as_json()) == plan


def said(plan: Plan) -> str:
    stream = io.StringIO()
    render(plan, Console(file=stream))
    return " ".join(stream.getvalue().split())


def test_without_data_the_verdict_s_line_says_that_a_rehearsal_decides(planned: Plan) -> None:
    sizes: dict[str, Any] = {"owners": 5, "validation": 380, "epsilon_owners": 1.0, "epsilon_consumer": 1.0}
    plan = plan_session(points=1000, **sizes)
    assert plan["verdict_by"] == "the rule of thumb"
    rule = "By a rule of thumb, without weights and without the data. A rehearsal decides: "
    assert f"{plan['called']} {rule}" in said(plan)
    assert rule not in plan["reason"]
    settled = plan_session(points=1000, owner_points=1, **sizes)
    assert settled["verdict_by"] == "the session's settings"
    assert rule not in said(settled) + said(planned)


def test_what_was_not_rehearsed_is_not_called_good(common: Path) -> None:
    plan = plan_session(common, rehearsal=False)
    assert (plan["verdict"], plan["verdict_by"]) == ("uncertain", "the rule of thumb")
    assert plan["reason"].startswith(
        "What the owners' data can give at best is not known: it was to be left out. By the rule of thumb: "
    )
    assert plan["mmd2"]["by"] == "the rule of thumb"
    assert plan["mmd2"]["weighted"] is None
    assert plan["rehearsal"]["verdict"] is None


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        ({"validation": 400}, "400 rows of validation data are planned, and the data have 200"),
        ({"owner_points": 5_000}, "10,000 points of owners are planned, and the data have 600"),
        ({"seed_points": 41}, "41 points of a seed set are planned, and the data have 40"),
    ],
)  # fmt: skip
def test_where_the_data_are_not_those_that_are_planned_the_floor_is_not_known(
    common: Path, flags: dict[str, Any], why: str
) -> None:
    plan = plan_session(common, **flags)
    assert plan["verdict"] in ("uncertain", "hopeless")
    assert f"What the owners' data can give at best is not known: {why}" in plan["reason"]


def test_of_a_rule_that_asks_by_coins_the_floor_is_not_known(common: Path) -> None:
    setting = plan_setting(common, PlanFlags(rule="logistic", owners=300, epsilon_asks=1.0, batch=1))
    assert not setting.refusal
    found = rehearsed(setting, Rehearsing())
    assert found is not None
    judged = judge(setting, found, partial(by_rule, setting))
    assert judged.verdict in ("uncertain", "hopeless")
    assert judged.reason.startswith(
        "What the owners' data can give at best is not known: the rule logistic buys"
    )


def test_owners_among_whom_the_same_points_are_dealt_are_rehearsed(common: Path, planned: Plan) -> None:
    assert plan_session(common, owners=6)["rehearsal"] == planned["rehearsal"]


@pytest.mark.parametrize("came_to", [0.01, 0.6, 1.3])
def test_a_plan_has_the_consumers_verdict_whatever_the_owners_own_points_came_to(
    common: Path, came_to: float
) -> None:
    """`run` and `consumer` know no owner's points, and say the same about the same session."""
    owners = Staged("the owners' own points", came_to, 1.0, came_to, 1.0)
    for played, word in ((staged(0.5, 0.4, 0.3, 1.0), "good"), (staged(1.0, 0.9, 0.8, 1.0), "uncertain")):
        found = made(common, played, owners)
        assert found.verdict == word
        assert f"With the owners' own points it came to {came_to:.2g} times" in found.reason


def test_the_owners_own_points_make_no_verdict_better(common: Path) -> None:
    best = Staged("the owners' own points", 0.01, 1.0, 0.01, 1.0)
    assert made(common, staged(2.0, 0.6, 0.6, 1.0), best).verdict == "uncertain"
    found = made(common, staged(2.0, 2.0, 2.0, 2.0), best)
    assert found.verdict == "hopeless"
    assert "hopeless: the noise chooses" in found.reason
    assert "Take more rows of validation data" in found.reason
    assert "it came to 0.01 times" in found.reason


def test_where_owners_data_are_the_limit_no_epsilon_is_promised(common: Path) -> None:
    found = made(common, staged(1.0, 1.0, 1.0, 1.0), Staged("own", 0.9, 1.0, 0.9, 1.0)).reason
    assert "neither a larger ε nor more rows of validation data would bring it, with weights, to 0.5" in found
    least = Staged("own", 0.3, 1.0, 0.9, 1.0)
    assert "are the limit" not in made(common, staged(1.0, 1.0, 1.0, 1.0), least).reason


def test_a_session_that_can_choose_nothing_or_is_refused_is_not_played(common: Path) -> None:
    for flags, says in (
        (PlanFlags(points=600), "would buy every one of them"),
        (PlanFlags(rule="logistic", epsilon_asks=1.0, batch=1), "logistic is not for 2 owners"),
    ):
        setting = plan_setting(common, flags)
        found = rehearsed(setting, Rehearsing())
        assert found is not None
        assert (found.owners, found.verdict.rehearsal) == (None, None)
        judged = judge(setting, found, partial(by_rule, setting))
        assert judged.verdict == "hopeless"
        assert says in judged.reason


def test_bounds_that_are_too_wide_are_hopeless_and_nothing_is_played(common: Path) -> None:
    text = common.read_text()
    common.write_text(text.replace("upper = 1.0", "upper = 1000.0"))
    plan = plan_session(common)
    assert plan["verdict"] == "hopeless"
    assert "all rows of the validation set are alike to the session" in plan["reason"]
    assert plan["rehearsal"]["owners"] is None


def test_releases_without_noise_are_played_too(common: Path) -> None:
    plan = plan_session(common, release="exact")
    assert plan["rehearsal"]["verdict"]["staged"]
    assert plan["rehearsal"]["owners"]["mmd2"] > 0.0


def test_it_says_how_far_it_is(common: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hushbid.plan.verdict._FIRST_SECONDS", 0.0)
    monkeypatch.setattr("hushbid.plan.verdict._NEXT_SECONDS", 0.0)
    ended = CliRunner().invoke(app, ["plan", str(common), "--json"])
    assert ended.exit_code == 0, ended.output
    assert "Rehearsing the session: 100% (--no-rehearsal leaves it out)." in ended.stderr
    assert "Playing the session with the owners' points: 100%" in ended.stderr
    assert json.loads(ended.stdout)["rehearsal"]["owners"] is not None
    shown = CliRunner().invoke(app, ["plan", str(common), "--no-rehearsal"])
    assert "uncertain" in shown.stdout
    assert "Rehearsing" not in shown.stderr


def test_a_seed_set_is_no_reason_to_call_a_session_hopeless(common: Path) -> None:
    """Ten points beside a seed set of 150 had 0.4 to 2.3 times a random choice's MMD²."""
    flags = PlanFlags(owners=2, points=10, validation=100, epsilon_owners=3.0, epsilon_consumer=3.0)
    few = plan_setting(None, flags)
    found = predict(few, *release_errors(few))
    assert found.expected > found.uniform
    assert found.drowned < 1.0
    assert by_rule(few).verdict == "poor"
    noisy = plan_setting(None, replace(flags, validation=20, epsilon_owners=0.1, epsilon_consumer=0.1))
    assert by_rule(noisy).verdict == "hopeless"


def test_nothing_played_is_nothing_known() -> None:
    assert NOT_REHEARSED.verdict.word is None
