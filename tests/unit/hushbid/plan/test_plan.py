"""`hushbid plan`: figures by hand, monotonicity, verdicts, JSON, and wrong usage."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from hushbid.cli.plan import plan_command
from hushbid.plan import remedies
from hushbid.plan.flags import PlanFlags
from hushbid.plan.noise import noise_values, release_errors
from hushbid.plan.prediction import predict
from hushbid.plan.quality import verdict
from hushbid.plan.result import make_plan
from hushbid.plan.setting import PlanSetting, plan_setting
from hushbid.plan.speed import Speed, measure_speed, times
from hushbid.plan.traffic import points_accessed, traffic
from hushbid.plan.wanted import wanted_of
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.runtime.command import run_command
from tests.conftest import ROOT

CONFIGS = ROOT / "configs"
PUBLISHED = CONFIGS / "digits" / "published.toml"
MNIST_LIKE = PlanFlags(
    owners=5, points=1000, validation=380, owner_points=11_000, columns=784,
    epsilon_owners=1.0, epsilon_consumer=1.0,
)  # fmt: skip
SPEED = Speed(
    draw=1e-3, release=1e-5, pass_start=2e-5, pass_row=1e-8, hash_point=1e-6, seal=1e-4,
    owner_messages=1e-5, curator_messages=2e-5, sync=1e-3,
)  # fmt: skip


def setting(**changes: Any) -> PlanSetting:
    return plan_setting(None, replace(MNIST_LIKE, **changes))


def judged(planned: PlanSetting) -> str:
    errors = release_errors(planned)
    return verdict(planned, *errors, predict(planned, *errors)).verdict


def expected(planned: PlanSetting) -> float:
    return predict(planned, *release_errors(planned)).expected


def sigma_of(mechanism: Any) -> float:
    return float(mechanism.sigma)


# -- figures by hand -------------------------------------------------------------------------------------


def session_file(tmp_path: Path, target: str, summary: str) -> Path:
    path = tmp_path / "session.toml"
    path.write_text(
        f"""
        [session]
        name = "by-hand"
        points = 101
        batch = 1
        seed_weight = 1.0
        [features]
        dimension = 100
        gamma = 0.1
        columns = 3
        [target]
        {target}
        neighbours = "substitute-one"
        [summary]
        {summary}
        neighbours = "add-remove-one"
        [acquisition]
        rule = "ask-all"
        [roster]
        curator = "<placeholder: no keys are needed to plan>"
        [roster.owners]
        north = ""
        south = ""
        """
    )
    return path


def test_gaussian_noise_of_a_known_sigma(tmp_path: Path) -> None:
    path = session_file(
        tmp_path, 'mechanism = "gaussian"\nsigma = 3.0', 'mechanism = "gaussian"\nsigma = 40.0'
    )
    target, summary = release_errors(plan_setting(path, PlanFlags(validation=60, seed_points=100)))
    assert target.sigma == pytest.approx(3.0)
    assert target.noise == pytest.approx(30.0)  # σ·√100
    assert target.error == target.relative_noise == pytest.approx(0.5)  # over m = 60
    assert summary.count == 200  # 100 seed points, and 100 that were bought before the last round
    assert summary.error == pytest.approx(400.0 / 200)


def test_a_filter_s_error_is_that_of_its_steady_gain(tmp_path: Path) -> None:
    # A random walk of variance Q a round under noise R settles at the gain k = (-Q + √(Q² + 4QR))/2R; the
    # noise that is left is k/(2 - k)·R, and a steady drift is (1 - k)/k rounds behind.
    table = 'mechanism = "filtered-gaussian"\nsigma = 10.0'
    planned = plan_setting(session_file(tmp_path, table, table), PlanFlags(validation=60, points=2001))
    _, summary = release_errors(planned)
    walk, noise = 500.0 / 100, 10.0**2
    gain = (-walk + math.sqrt(walk**2 + 4 * walk * noise)) / (2 * noise)
    assert planned.spread == 0.8
    assert planned.drift == 0.4
    left = 0.8 * math.sqrt(100 * gain / (2 - gain) * noise)
    behind = 0.8 * 0.4 * (1 - gain) / gain
    assert summary.error == pytest.approx(math.hypot(left, behind) / 2150, rel=1e-6)
    assert summary.sigma == pytest.approx(0.8 * 10.0)
    assert summary.relative_noise == pytest.approx(80.0 / 2150)


def test_the_sigma_of_an_epsilon_is_the_mechanism_s_own() -> None:
    planned = setting(release="gaussian")
    target, summary = release_errors(planned)
    session = planned.session()
    assert target.sigma == pytest.approx(sigma_of(session.target))
    assert summary.sigma == pytest.approx(sigma_of(session.summary))
    guarantee = session.privacy()[0]
    assert guarantee.epsilon == pytest.approx(1.0, rel=1e-6)


def test_both_calibrations_of_mwem() -> None:
    planned = plan_setting(PUBLISHED, PlanFlags())
    target, summary = release_errors(planned)
    assert target.calibrations is not None
    assert summary.calibrations is not None
    assert target.calibrations["published"].laplace_scale == pytest.approx(100.0)  # 1/ε, ε = 0.01
    assert target.calibrations["sound"].laplace_scale == pytest.approx(400.0)  # Δ/(ε/2), Δ = 2
    published = summary.calibrations["published"]
    # DESIGN §1: 0.043 as claimed, 0.072 sound, for D_s at δ = 1e-4.
    assert published.claimed_epsilon == pytest.approx(0.043, rel=0.01)
    assert published.epsilon == pytest.approx(0.072, rel=0.02)
    assert summary.calibrations["sound"].epsilon == pytest.approx(0.0099, rel=0.01)


def test_no_noise_has_no_error() -> None:
    planned = setting(release="exact", epsilon_owners=None, epsilon_consumer=None)
    target, summary = release_errors(planned)
    assert target.error == summary.error == target.noise == 0.0
    assert noise_values(planned) == {}
    assert judged(planned) == "good"


def test_noise_values_are_counted() -> None:
    # d for the target, and d for each round but the first, which shows the seed set alone.
    assert noise_values(setting(dimension=100, batch=1)) == {"discrete-gaussian": 100 + 999 * 100}


@pytest.mark.parametrize(
    ("rule", "points"),
    [
        ("sealed", 0.0),
        ("blind", 0.0),
        ("winner-only", 300.0),
        ("ask-all", 5 * 300.0),
        ("published", 300 / 0.5 + 300 * 5 / 3),  # τ = ⌈5^(2/3)⌉ = 3
    ],
)
def test_raw_points_that_the_curator_sees(rule: str, points: float) -> None:
    planned = setting(rule=rule, points=300)
    assert points_accessed(planned) == pytest.approx(points)
    plan = make_plan(planned, SPEED, cores=2)
    assert plan["parsimony"] == pytest.approx(points / (300 + 380))


def test_the_curator_sees_no_more_points_than_there_are() -> None:
    assert points_accessed(setting(rule="ask-all", owner_points=250)) == 5 * 250


def test_logistic_sees_what_the_rule_itself_expects() -> None:
    planned = setting(rule="logistic", owners=5000, epsilon_asks=1.0, owner_points=2000)
    rule: Any = planned.session().rule
    assert points_accessed(planned) == pytest.approx(rule.expected_points)
    # About p·r0: as many above r0 are not asked as below it are.
    assert points_accessed(planned) == pytest.approx(rule.rounds * rule.middle, rel=0.01)


def test_bytes_are_those_of_frames() -> None:
    planned = setting(points=100, batch=1)
    found = traffic(planned, 0.0)
    # A bid holds a box of the padded point, 2 bytes for each of 140 features, and a signature.
    box = planned.session().box_bytes + 48
    assert 100 * (box + 280 + 64) < found.owner_sent < 100 * (box + 280 + 64 + 300)
    assert 100 * 4 * 140 < found.owner_received < 100 * (4 * 140 + 200) + 200
    assert found.curator_received == pytest.approx(5 * found.owner_sent, rel=0.02)


def test_the_cost_model_by_hand() -> None:
    planned = setting(points=100, owner_points=10_000, batch=1)
    found = times(planned, SPEED, cores=2)
    # messages + a pass over 10,000 points + sealing + a record that is synced
    owner = 1e-5 + (2e-5 + 1e-4) + 1e-4 + 1e-3
    # five bids, a pass over a pool that is half full, the release, a record that is synced
    curator = 5 * 2e-5 + (2e-5 + 250 * 1e-8) + 1e-5 + 1e-3
    assert found.rounds == pytest.approx(100 * (owner + curator))
    assert found.rounds_here == pytest.approx(100 * (owner * 5 / 2 + curator))
    assert found.hashing == pytest.approx(0.01)
    assert found.noise == pytest.approx(0.1)
    slow = times(planned, replace(SPEED, draw=1.0), cores=2)
    assert slow.rounds == pytest.approx(100.0)  # noise that takes longer than all the rest
    paced = times(planned.with_session(fixed_cadence=0.5), SPEED, cores=2)
    assert paced.rounds == paced.rounds_here == pytest.approx(50.0)


def test_bytes_of_batches_are_those_of_frames() -> None:
    planned = setting(points=100, batch=10)
    found = traffic(planned, 0.0)
    box = planned.session().box_bytes + 48
    # Ten rounds of ten points; of each a box, 2 bytes for each of 140 features, a digest, number and score.
    point = box + 280 + 32 + 16
    assert 10 * (10 * point + 64) < found.owner_sent < 10 * (10 * point + 64 + 400)
    assert 10 * 4 * 140 < found.owner_received < 10 * (4 * 140 + 200) + 200


def test_the_cost_model_of_batches_by_hand() -> None:
    found = times(setting(points=100, owner_points=10_000, batch=10), SPEED, cores=2)
    owner = 1e-5 + (2e-5 + 1e-4) + 10 * 1e-4 + 1e-3
    curator = 5 * 2e-5 + (2e-5 + 250 * 1e-8) + 1e-5 + 1e-3
    assert found.rounds == pytest.approx(10 * (owner + curator))
    assert found.noise == pytest.approx(0.01)


def test_a_plan_compares_batches() -> None:
    plan = make_plan(setting(), SPEED, cores=2, round_trip=0.1)
    assert (plan["batch"], plan["rounds"], plan["seed_weight"]) == (20, 50, 0.1)
    rows = {row["batch"]: row for row in plan["batches"]}
    assert list(rows) == [1, 5, 10, 20, 40, 100]
    assert [row["rounds"] for row in rows.values()] == [1000, 200, 100, 50, 25, 10]
    assert rows[20]["noise_values"] == sum(plan["noise_values"].values())
    assert rows[20]["seconds"] == plan["seconds"]["rounds"]
    assert rows[20]["seconds_with_network"] == pytest.approx(rows[20]["seconds"] + 50 * 0.1)
    assert rows[20]["seconds_with_network"] < rows[1]["seconds_with_network"] / 10


def test_a_seed_set_that_counts_less_is_less_to_make_up_for() -> None:
    expected_of = [expected(setting(points=100, seed_weight=weight)) for weight in (1.0, 0.1, 0.01)]
    assert expected_of == sorted(expected_of, reverse=True)
    assert expected_of[0] > 1.2 * expected_of[1]


def test_few_rounds_are_worse_and_said_to_be() -> None:
    exact = setting(release="exact", epsilon_owners=None, epsilon_consumer=None)
    found = [expected(exact.with_session(batch=batch)) for batch in (1, 20, 90)]
    assert found == sorted(found)
    one = setting(points=50, batch=50)
    errors = release_errors(one)
    judged_one = verdict(one, *errors, predict(one, *errors))
    assert judged_one.verdict == "hopeless"
    assert "1 rounds are few: the 50 points of one do not see each other" in judged_one.reason


@pytest.mark.parametrize("rule", ["winner-only", "logistic"])
def test_a_batch_of_a_rule_that_asks_is_refused_before_all_else(rule: str) -> None:
    with pytest.raises(ConfigError, match="asks for one point at a time"):
        setting(rule=rule, batch=3, epsilon_asks=1.0)


def test_a_rule_that_asks_has_no_batches_to_compare() -> None:
    assert [row["batch"] for row in make_plan(setting(rule="winner-only"), SPEED)["batches"]] == [1]


def test_what_is_measured_is_positive() -> None:
    found = asdict(measure_speed(setting(points=10)))
    # Both come of a line through two measurements: on a busy machine its slope or its start may be nothing.
    assert found.pop("pass_start") >= 0.0
    assert found.pop("pass_row") >= 0.0
    assert all(0.0 < seconds < 10.0 for seconds in found.values()), found
    assert measure_speed(setting(points=10, rule="ask-all")).seal == 0.0


# -- what grows and what shrinks -------------------------------------------------------------------------


@pytest.mark.parametrize("release", ["filtered-gaussian", "gaussian"])
def test_more_epsilon_is_less_noise(release: str) -> None:
    planned = [setting(release=release, epsilon_owners=e, epsilon_consumer=e) for e in (0.1, 0.3, 1, 3, 10)]
    for side in (0, 1):
        noise = [release_errors(each)[side].noise for each in planned]
        assert noise == sorted(noise, reverse=True)
        assert noise[-1] < noise[0] / 10
    distances = [expected(each) for each in planned]
    assert distances == sorted(distances, reverse=True)


def test_more_validation_points_are_less_error() -> None:
    errors = [release_errors(setting(validation=m))[0].error for m in (20, 100, 380, 2000)]
    assert errors == sorted(errors, reverse=True)
    assert errors[0] / errors[-1] == pytest.approx(100.0)


def test_more_rounds_and_fewer_coordinates_are_less_error() -> None:
    rounds = [expected(setting(points=p)) for p in (100, 300, 1000, 3000)]
    assert rounds == sorted(rounds, reverse=True)
    assert release_errors(setting(dimension=70))[0].error < release_errors(setting())[0].error


# -- verdicts --------------------------------------------------------------------------------------------


def test_the_default_release_is_good_on_data_like_mnist() -> None:
    planned = setting()
    assert judged(planned) == "good"
    # Sessions on MNIST come to 0.0092.
    assert expected(planned) == pytest.approx(0.0092, rel=0.5)


def test_few_points_and_a_small_epsilon_are_hopeless() -> None:
    planned = setting(validation=20, epsilon_owners=0.1, epsilon_consumer=0.1)
    plan = make_plan(planned, SPEED, cores=2)
    assert plan["verdict"] == "hopeless"
    assert "noise on the target's mean embedding" in plan["reason"]
    changes = {remedy["change"]: remedy for remedy in plan["remedies"]}
    more = changes["validation"]["validation"]
    # It is the least that does: a tenth less is not good.
    assert judged(replace(planned, m=more)) == "good"
    assert judged(replace(planned, m=int(0.9 * more))) != "good"
    epsilon = changes["epsilon"]
    assert 0.1 < epsilon["epsilon_owners"] <= 20
    assert (
        judged(
            planned.with_releases("filtered-gaussian", epsilon["epsilon_owners"], epsilon["epsilon_consumer"])
        )
        == "good"
    )


def test_the_paper_s_own_setting_is_hopeless_and_says_why() -> None:
    plan = make_plan(plan_setting(PUBLISHED, PlanFlags()), SPEED, cores=2)
    assert plan["verdict"] == "hopeless"
    assert "Laplace scale of 2.24e+03 on coordinate sums that 249 points" in plan["reason"]
    assert plan["remedies"]
    assert all(r.get("release") == "filtered-gaussian" for r in plan["remedies"])
    assert plan["mmd2"]["uniform_is_measured"]


def test_gaussian_noise_without_filter_asks_for_the_filter() -> None:
    planned = setting(release="gaussian", epsilon_owners=0.5, epsilon_consumer=1.0)
    errors = release_errors(planned)
    found = verdict(planned, *errors, predict(planned, *errors))
    assert found.verdict != "good"
    (remedy,) = found.remedies
    assert (remedy.change, remedy.release) == ("release", "filtered-gaussian")
    assert remedy.epsilon_owners == pytest.approx(0.5, rel=1e-3)


def test_logistic_is_refused_for_a_hundred_owners() -> None:
    planned = setting(rule="logistic", owners=100, epsilon_asks=1.0)
    plan = make_plan(planned, SPEED, cores=2)
    assert plan["verdict"] == "hopeless"
    assert "logistic is not for 100 owners" in plan["reason"]
    assert plan["points_accessed_curator"] is plan["bytes"] is plan["seconds"] is None
    rule, owners = plan["remedies"]
    assert rule == {"change": "rule", "rule": "sealed"}
    assert not setting(rule="logistic", owners=owners["owners"], epsilon_asks=1.0).refusal
    assert setting(rule="logistic", owners=owners["owners"] - 1, epsilon_asks=1.0).refusal


def test_there_has_to_be_something_to_choose_from() -> None:
    plan = make_plan(setting(owner_points=200), SPEED, cores=2)
    assert plan["verdict"] == "hopeless"
    assert "buy every one" in plan["reason"]


def test_without_data_the_range_is_wide_and_said_to_be() -> None:
    planned = setting()
    errors = release_errors(planned)
    guess = predict(planned, *errors)
    around = guess.times_random
    assert around.expected == pytest.approx(guess.expected / guess.uniform)
    assert around.low == pytest.approx(0.5 * around.expected)
    assert around.high == pytest.approx(around.expected + 1.5)
    said = verdict(planned, *errors, guess).reason
    assert f"{around.low:.2g} to {around.high:.2g} times" in said
    assert "hushbid preflight" in said
    noisy = predict(planned, *release_errors(setting(epsilon_owners=0.01, epsilon_consumer=0.01)))
    assert noisy.times_random.high == pytest.approx(8.0 * noisy.times_random.expected)


def test_with_data_the_range_is_half_and_twice() -> None:
    measured = plan_setting(CONFIGS / "digits" / "cluster.toml", PlanFlags())
    errors = release_errors(measured)
    found = predict(measured, *errors)
    around = found.times_random
    assert around.high == pytest.approx(4.0 * around.low) == pytest.approx(2.0 * around.expected)
    assert "preflight" not in verdict(measured, *errors, found).reason


@pytest.mark.parametrize(
    ("sizes", "whose"),
    [
        ({"validation": 1000, "owner_points": 900}, "the validation set"),
        ({"validation": 900, "owner_points": 1000}, "the largest owner's points"),
        ({"validation": 999, "owner_points": 999}, ""),
        ({"validation": 999, "owner_points": None}, ""),
    ],
)
def test_a_delta_that_lets_a_row_be_published_is_no_guarantee(sizes: dict[str, Any], whose: str) -> None:
    planned = setting(points=100, **sizes).with_session(delta=1e-3)
    errors = release_errors(planned)
    found = verdict(planned, *errors, predict(planned, *errors))
    assert (f"rows of {whose}" in found.reason) is bool(whose)
    assert not whose or found.verdict == "hopeless"


# -- files, flags and the command line -------------------------------------------------------------------


def test_a_flag_goes_before_the_file() -> None:
    path = CONFIGS / "digits" / "sealed.toml"
    from_file = plan_setting(path, PlanFlags())
    changed = plan_setting(path, PlanFlags(points=50, validation=500, owners=7, epsilon_consumer=0.5))
    assert (from_file.m, len(from_file.owner_points)) == (66, 5)
    assert from_file.data is not None
    assert (changed.p, changed.m, len(changed.owner_points)) == (50, 500, 7)
    assert sum(changed.owner_points) == sum(from_file.owner_points)
    assert changed.file.target.parameters["epsilon"] == 0.5
    assert changed.file.summary == from_file.file.summary
    assert changed.sources["validation"] == "the command line"
    assert changed.sources["spread"] == "the data"


def test_simulated_noise_where_there_is_no_secure_one() -> None:
    planned = setting(release="mwem")
    assert all("simulated" in row.why for row in planned.session().privacy()[:2])
    assert not any(row.why for row in setting().session().privacy()[:2])


@pytest.mark.parametrize("file", sorted(CONFIGS.glob("digits/*.toml")), ids=lambda path: path.stem)
def test_every_configuration_of_the_demonstration_has_a_plan(file: Path) -> None:
    plan = make_plan(plan_setting(file, PlanFlags()), SPEED, cores=2)
    assert plan["verdict"] in ("uncertain", "hopeless"), "nothing is good that was not rehearsed"
    assert len(plan["privacy"]) == 3


class Ended:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def plan(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Any:
    for name in [name for name in os.environ if name.startswith("HUSHBID_")]:
        monkeypatch.delenv(name)

    def run(*arguments: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["plan", *arguments])
        with pytest.raises(SystemExit) as ending:
            run_command(plan_command)
        captured = capfd.readouterr()
        assert isinstance(ending.value.code, int)
        return Ended(int(ending.value.code), captured.out, captured.err)

    return run


WHOLE = (
    "--owners", "5", "--points", "50", "--validation", "20",
    "--epsilon-owners", "0.1", "--epsilon-consumer", "0.1",
)  # fmt: skip


def test_the_verb_prints_one_object_and_ends_well_whatever_the_verdict(plan: Any) -> None:
    ended = plan(*WHOLE, "--json")
    assert ended.code == 0
    assert len(ended.out.splitlines()) == 1
    assert json.loads(ended.out)["verdict"] == "hopeless"
    text = plan(*WHOLE).out
    assert "doubtful" in text, "by the rule of thumb, which knows no data"
    assert "Assumed" in text


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "--owners K"),
        (("--owners", "5"), "--points p"),
        (WHOLE[:4] + WHOLE[6:], "--validation m"),
        ((*WHOLE[:6], *WHOLE[8:], "--rule", "sealed"), "--epsilon owners=E"),
        ((*WHOLE, "--rule", "logistic"), "--epsilon asks=E"),
        ((*WHOLE, "--rule", "auction"), "no rule is named 'auction'"),
        ((*WHOLE, "--release", "laplace"), "Choose one of: "),
        ((*WHOLE, "--release", "exact"), "takes no ε"),
        ((*WHOLE, "--delta", "1"), "session.delta"),
        ((*WHOLE, "--dimension", "7"), "dimension 7"),
        ((*WHOLE, "--epsilon-owners", "-1"), "[summary]"),
        ((*WHOLE, "--points", "0"), "points"),
        ((*WHOLE, "--data", "x"), "--data"),
        ((*WHOLE, "--wanted", "0"), "--wanted is 0"),
        ((*WHOLE, "--wanted", "1.5"), "--wanted is 1.5"),
        ((*WHOLE, "--wanted", "nan"), "--wanted is nan"),
        (("absent.toml",), "no such file"),
        ((str(CONFIGS / "digits" / "cluster.toml"), "--columns", "9"), "--columns"),
        ((str(PUBLISHED), "--epsilon-owners", "1"), "--release mwem"),
        ((str(CONFIGS / "separate" / "session.toml"),), "--validation m"),
    ],
)  # fmt: skip
def test_wrong_usage_ends_with_4_and_says_what_to_give(
    plan: Any, arguments: tuple[str, ...], says: str
) -> None:
    ended = plan(*arguments)
    assert ended.code == 4
    assert says in " ".join(ended.err.split()), ended.err
    assert ended.out == ""


# -- whether it pays ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("share", "case", "says"),
    [
        (0.001, "rare", "pays: where 2 % were wanted"),
        (0.02, "rare", "pays: where 2 % were wanted"),
        (0.05, "between", "Not known"),
        (0.115, "common", "at random and weighing comes near in MMD²"),
        (1.0, "common", "at random and weighing comes near in MMD²"),
    ],
)
def test_a_share_of_wanted_points_is_judged_by_measured_cases(share: float, case: str, says: str) -> None:
    planned = setting()
    found = make_plan(planned, SPEED, cores=2, wanted=share)["wanted"]
    assert found["case"] == case
    assert says in found["says"]
    assert found["at_random"] == pytest.approx(planned.p * share)


def test_where_noise_decides_nothing_pays() -> None:
    drowned = setting(validation=20, epsilon_owners=0.1, epsilon_consumer=0.1)
    assert make_plan(drowned, SPEED, cores=2, wanted=0.02)["wanted"]["case"] == "drowned"


def test_a_random_choice_has_no_more_points_than_there_are() -> None:
    assert wanted_of(0.5, points=1000, available=100, drowned=False).at_random == 50.0


def test_without_a_share_nothing_is_said_of_it(plan: Any) -> None:
    ended = plan(*WHOLE, "--json")
    assert json.loads(ended.out)["wanted"] is None
    assert "wanted:" not in ended.err
    said = " ".join(plan(*WHOLE, "--wanted", "0.02").out.split())
    assert "wanted: 0.02 of the owners' points, so about" in said


def test_where_no_epsilon_would_do_none_is_proposed() -> None:
    """Three points of D_v say too little of their distribution, whatever the noise."""
    assert remedies._least_epsilon(setting(points=50, validation=3), (1.0, 1.0)) is None
    assert remedies._least_epsilon(setting(points=50, validation=370), (1.0, 1.0)) is not None


def test_sizes_by_name_are_no_number_of_owners() -> None:
    flags = ["--points", "10", "--validation", "100", "--epsilon-owners", "1", "--epsilon-consumer", "1"]
    ended = subprocess.run(
        [sys.executable, "-m", "hushbid", "plan", "--owners", "north=5000,3000", *flags],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 4
    assert "'north=5000,3000' is not a number of owners" in ended.stderr
    assert "`hushbid advise --owners` takes sizes by name" in ended.stderr
