"""The conditions of the first paper's theorems: their formulas, and that no session meets them."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from hushbid.cli.app import app
from hushbid.plan.theory import TheorySetting, asked, coordinate_error
from tests.support.theory_settings import SETTINGS

MNIST = SETTINGS["MNIST, appendix G"]


def test_the_conditions_are_those_that_are_printed() -> None:
    found, d, log_p = asked(MNIST), 140, math.log(1000)
    assert found.steps == d**2 == 19_600
    base = 44 * math.sqrt(2) * math.sqrt(d) * math.log(d) * log_p**2
    assert found.validation_needed == pytest.approx(base * 16 * d**2)
    assert found.validation_needed_proof == pytest.approx(base * math.sqrt(16 * d**2))
    assert found.seed_points_needed == pytest.approx(
        121 * 8 * d**2 * math.log(d) ** 2 * math.log(1e5) * log_p**5
    )
    assert found.dimension_needed == pytest.approx(16 * math.log(2 * 47_960) * log_p**2)
    error = coordinate_error(380, d, 1 / (16 * d**2))
    parts = (
        2 * math.sqrt(2 * math.log(2 * d) / d**2),
        11 * math.sqrt(2) * math.log(d) * 16 * d**2 / (380 * math.sqrt(d)),
        4 / d, 2 * d * math.exp(-95), 1 / d,
    )  # fmt: skip
    assert error == found.target_error == pytest.approx(sum(parts))


def test_lemma_5_counts_more_where_it_is_corrected() -> None:
    found = asked(replace(MNIST, owners=1000))
    assert found.points_accessed == pytest.approx(1000 * (1000 / 100 + 2))
    assert found.points_accessed_corrected == pytest.approx(1000 * (10 + 1 / (1 - math.exp(-0.5))))


@pytest.mark.parametrize("name", SETTINGS)
def test_no_session_meets_a_condition_that_matters(name: str) -> None:
    found = asked(SETTINGS[name])
    assert {"validation", "seed_points", "error"} <= set(found.unmet)
    assert not found.guarantee
    assert found.target_error > found.zero_error, "a release of zeros has a smaller bound"


def test_a_session_that_meets_them_all_is_told_so() -> None:
    """A control: with more points than there are atoms in a grain of sand, and as many coordinates."""
    vast = TheorySetting(
        owners=5, available=10**9, points=100, validation=10**30, seed_points=10**30,
        dimension=2**22, epsilon=100.0, epsilon_target=100.0, delta=1e-12,
    )  # fmt: skip
    found = asked(vast)
    assert (found.unmet, found.guarantee) == ((), True)
    assert found.target_error < found.zero_error


def test_the_verb_tells_it_of_a_planned_session() -> None:
    given = ["plan", "--owners", "5", "--points", "1000", "--validation", "380"]
    epsilons = ["--epsilon-owners", "2", "--epsilon-consumer", "1"]
    done = CliRunner().invoke(app, [*given, *epsilons, "--theory", "--json"])
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)["theory"]
    assert (found["epsilon"], found["epsilon_target"], found["available"]) == (2.0, 1.0, 50_000)
    assert found["validation_needed"] == pytest.approx(asked(MNIST).validation_needed)
    assert "Theorem 2: points of D_init" in done.stderr
    assert json.loads(CliRunner().invoke(app, [*given, *epsilons, "--json"]).stdout)["theory"] is None
