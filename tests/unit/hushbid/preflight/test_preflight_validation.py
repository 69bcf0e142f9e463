"""The consumer's preflight of its validation set: bounds, kernel, seed set and a rehearsal."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
import tomli_w

from hushbid.cli.app import main
from hushbid.consumer.verdict import Prospect, Verdict
from hushbid.plan.verdict import Rehearsing
from hushbid.protocol.config.invitation import invitation
from hushbid.protocol.config.session import SessionFile
from tests.support.preflight_party import KEYS


def test_the_consumer_reads_how_far_its_seed_set_lies_off(party: Any) -> None:
    one = party("consumer")
    near = one.preflight("--offline").checks["seed set"]
    assert near["status"] == "ok"
    assert "between the seed set and the validation set, where chance gives" in near["said"]
    assert near["said"].endswith("This follows from the validation set: keep it to yourself")
    rng = np.random.default_rng(4)
    np.savez(one.place / "seed.npz", features=0.1 * rng.random((20, 3)))
    report = one.preflight("--offline")
    assert (report.code, report.problems) == (0, []), "it stands in nobody's way"
    far = report.checks["seed set"]
    assert far["status"] == "warning"
    assert far["said"].startswith("far from the validation set: MMD² of")
    assert "seed_weight" not in far["fix"], "it is 0.1 already"
    one.session["session"]["seed_weight"] = 1.0
    fix = one.preflight("--offline", "--no-rehearsal").checks["seed set"]["fix"]
    assert fix.startswith("The seed set leads the first round.")
    assert "`session.seed_weight` of 0.1 or less limits the harm; the session has 1" in fix
    one.session["acquisition"]["rule"] = "tender"
    fix = one.preflight("--offline", "--no-rehearsal").checks["seed set"]["fix"]
    assert fix.startswith("Releases are clipped about the seed"), "a tender gives it no weight in any round"
    assert "seed_weight" not in fix


@pytest.mark.parametrize(
    ("features", "said", "fix"),
    [
        (
            {"upper": 1000.0},
            "all rows of the validation set are alike to the session",
            "bounds (`features.lower`",
        ),
        (
            {"gamma": 1e5},
            "no two rows of the validation set are alike to the session",
            "smaller `features.gamma`",
        ),
    ],
)
def test_the_consumer_reads_that_bounds_or_gamma_are_wrong(
    party: Any, features: dict[str, float], said: str, fix: str
) -> None:
    one = party("consumer")
    well = one.preflight("--offline", "--no-rehearsal").checks["kernel"]
    assert well["status"] == "ok"
    assert well["said"].startswith("the mean kernel value of two rows of the validation set is 0.")
    one.session["features"] |= features
    found = one.preflight("--offline", "--no-rehearsal")
    assert (found.code, found.problems) == (0, []), "it stands in nobody's way"
    assert found.checks["kernel"]["status"] == "warning"
    assert found.checks["kernel"]["said"].startswith(said)
    assert fix in found.checks["kernel"]["fix"]
    passed_over = found.checks["seed set"]
    assert passed_over["status"] == "not checked", "it would seem to lie near, or far"
    assert passed_over["said"].startswith("first correct what `kernel` reports")


def test_rows_that_are_all_equal_are_no_fault_of_the_bounds(party: Any) -> None:
    one = party("consumer")
    np.savez(one.place / "validation.npz", features=np.full((20, 3), 0.25))
    found = one.preflight("--offline", "--no-rehearsal").checks
    assert found["kernel"]["said"].startswith("all rows of the validation set are equal: ")
    assert found["kernel"]["fix"] == "Take validation data that differ."
    assert found["bounds"]["status"] == "ok"


def test_a_bound_that_is_far_too_wide_is_named_by_its_column(party: Any) -> None:
    one = party("consumer")
    well = one.preflight("--offline", "--no-rehearsal").checks["bounds"]
    assert well["status"] == "ok"
    one.session["features"] |= {"lower": [0.0, 0.0, -500.0], "upper": [1.0, 1.0, 500.0]}
    rows = np.load(one.place / "validation.npz")["features"]
    rows[0, 2], rows[1, 2] = 0.00625, 0.99375
    table = "\n".join(["a,b,income", *(",".join(map(str, row)) for row in rows)])
    for suffix, name in ((".npz", "column 2 of 3"), (".csv", "column 2 ('income') of 3")):
        np.savez(one.place / "validation.npz", features=rows)
        (one.place / "validation.csv").write_text(table + "\n", encoding="utf-8")
        one.own["validation"] = f"validation{suffix}"
        found = one.preflight("--offline", "--no-rehearsal")
        assert (found.code, found.checks["kernel"]["status"]) == (0, "ok"), "the others tell rows apart"
        check = found.checks["bounds"]
        assert check["status"] == "warning"
        assert f"less than 1% of their bounds in feature {name}" in check["said"]
        assert not [value for value in ("0.00625", "0.99375", "500") if value in check["said"]]
        assert "a number for each column" in check["fix"]
    rows[:, 2] = [0.5, *[0.0] * (len(rows) - 1)]
    one.session["features"]["lower"][2] = 0.0
    np.savez(one.place / "validation.npz", features=np.concatenate([rows, rows[1:]]))
    one.own["validation"] = "validation.npz"
    assert one.preflight("--offline", "--no-rehearsal").checks["bounds"]["status"] == "ok", "hardly a column"


@pytest.mark.parametrize(
    ("rows", "word", "fix"),
    [
        (50, "uncertain", "would tell; more than 50 are enough"),
        (250, "uncertain", "would tell more surely."),
        (250, "hopeless", "Do not buy for this model."),
    ],
)
def test_what_own_rows_tell_is_said_once_and_asks_for_no_rows_that_are_there(
    party: Any, monkeypatch: pytest.MonkeyPatch, rows: int, word: Any, fix: str
) -> None:
    told = Prospect(word, "both are possible", "accuracy", rows, 0.7, 0.6, 0.8, 0.5, 0.02, 0.04)
    monkeypatch.setattr(Rehearsing, "verdict", lambda *_: Verdict(why="none", prospect=told))
    found = party("consumer").preflight("--offline").checks["rehearsal"]
    assert found["said"].startswith(f"{word}: both are possible (70 % right with {rows} own rows")
    assert found["said"].count(word) == 1
    assert fix in found["fix"]


def test_the_consumer_reads_what_came_of_a_rehearsal(party: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    one = party("consumer")
    one.session["target"]["epsilon"] = one.session["summary"]["epsilon"] = 1e-9
    lines = one.preflight("--offline").checks["rehearsal"]["problem"].split("\n")
    assert lines[1].startswith("nothing was played: the rule of thumb of `hushbid plan` has ")
    # With more noise than is played.
    monkeypatch.setattr("hushbid.plan.rehearsal.drowning_errors", lambda _: None)
    one.session["target"]["epsilon"] = one.session["summary"]["epsilon"] = 0.005
    report = one.preflight("--offline")
    check = report.checks["rehearsal"]
    assert (report.code, check["status"]) == (4, "problem"), "as the consumer ends"
    lines = check["problem"].split("\n")
    assert (lines[0], len(lines)) == ("hopeless", 7)
    assert lines[1].startswith("MMD² over a random choice's, with weights")
    assert lines[-1] == "This follows from the validation set: keep it to yourself"
    assert "more rows of validation data, a larger epsilon (of the target first)" in check["fix"]
    shown = [line for line in report.err.splitlines() if any(each in line for each in lines)]
    assert [line[27:] for line in shown[-7:]] == lines, "under one another"
    assert max(map(len, shown[-7:])) <= 100
    anyway = one.preflight("--offline", "--anyway")
    assert (anyway.code, anyway.checks["rehearsal"]["status"]) == (0, "warning")
    one.session["features"]["upper"] = 1000.0
    check = one.preflight("--offline").checks["rehearsal"]
    assert check["problem"].startswith("hopeless\nnothing was played: the mean kernel value of two rows is ")
    assert check["fix"].startswith("All rows of the validation set are alike to the session")
    left_out = one.preflight("--offline", "--no-rehearsal").checks["rehearsal"]
    assert (left_out["status"], left_out["said"]) == ("not checked", "it was to be left out")
    np.savez(one.place / "validation.npz", features=np.random.default_rng(3).random((7, 3)))
    del one.session["features"]["upper"]
    few = one.preflight("--offline")
    assert few.code == 4
    assert "hopeless\nit takes 8 rows of validation data" in few.checks["rehearsal"]["problem"]
    one.session["target"]["epsilon"] = one.session["summary"]["epsilon"] = 1000.0
    assert one.preflight("--offline").checks["rehearsal"]["status"] == "warning"


def test_a_seed_set_that_will_be_drawn_is_looked_at_and_never_passed_over(party: Any) -> None:
    one = party("consumer")
    del one.own["seed_set"]
    one.own["seed_points"] = 20
    report = one.preflight("--offline")
    assert (report.code, report.problems) == (0, [])
    check = report.checks["seed set"]
    assert check["status"] == "warning"
    assert check["said"].startswith("drawn within the bounds: MMD² of")
    assert "`seed_set`" in check["fix"]
    assert not (one.place / "state").exists()


def test_an_invited_consumer_needs_no_private_file(party: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is checked with its start options: `hushbid consumer` takes the same."""
    consumer = party("consumer")
    made = invitation(SessionFile.model_validate(consumer.session), "consumer", KEYS["curator"])
    (consumer.place / "consumer.invitation").write_text(tomli_w.dumps(made), encoding="utf-8")
    (consumer.place / "secret.key").rename(consumer.place / "consumer.key")
    data = [
        "--validation",
        str(consumer.place / "validation.npz"),
        "--seed-set",
        str(consumer.place / "seed.npz"),
    ]
    given = ["--invitation", str(consumer.place / "consumer.invitation"), "--offline", "--no-rehearsal"]
    for options, code in ((data, 0), ([*data, "--seed-points", "3"], 4), ([], 4)):
        monkeypatch.setattr(sys, "argv", ["hushbid", "preflight", *given, *options])
        with pytest.raises(SystemExit) as ending:
            main()
        assert ending.value.code == code
