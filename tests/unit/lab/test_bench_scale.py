"""The cost of sessions by their sizes: one is measured, and fits find the coefficients."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from hushbid.cli.app import app
from hushbid.lab.bench.scale import (
    SIZES,
    TERMS,
    cells_around,
    exponents,
    extended,
    fitted,
    in_own_process,
)
from hushbid.lab.bench.scale_cell import ScaleCell, ScaleCost, cell_of, measure, session_of
from hushbid.protocol.errors import ConfigError, HushbidError
from hushbid.protocol.platform import peak_memory

BASE = ScaleCell("sealed", 40)
SMALL = ScaleCell("sealed", 3, points=6, batch=2, owner_points=10, dimension=16, columns=4)


def cost(cell: ScaleCell, each: float) -> ScaleCost:
    """Every cost of a cell whose terms all have one coefficient."""
    sums = {name: each * sum(term(cell) for _, term in terms.values()) for name, terms in TERMS.items()}
    return ScaleCost(seconds=1.0, consumer_seconds=0.0, bought=cell.points, **sums)  # type: ignore[arg-type]


def test_a_fit_finds_what_costs_are_made_of_and_extends_them() -> None:
    cells = cells_around(BASE)
    fits = fitted([(cell, cost(cell, 2e-9)) for cell in cells])
    far = replace(BASE, owners=10**6, owner_points=10**4, points=1000, batch=20)
    costs = extended(fits, far)
    for name, terms in TERMS.items():
        assert fits[name].worst < 1e-6
        assert list(fits[name].coefficients) == list(terms)
        assert costs[name] == pytest.approx(2e-9 * sum(term(far) for _, term in terms.values()), rel=0.01)
    assert costs["owner_seconds"] == pytest.approx(costs["owners_seconds"] / 10**6)


def test_a_cost_that_grows_otherwise_shows_in_the_error() -> None:
    cells = cells_around(BASE)
    squared = [(cell, replace(cost(cell, 1e-9), curator_seconds=1e-9 * cell.owners**2)) for cell in cells]
    assert fitted(squared)["curator_seconds"].worst > 0.2


def test_powers_are_those_by_which_a_cost_grows() -> None:
    powers = {"owners": 2.0, "owner_points": 0.0, "points": 1.0, "batch": -1.0, "dimension": 0.5}
    cells = cells_around(BASE)

    def grown(cell: ScaleCell) -> float:
        return float(np.prod([getattr(cell, size) ** power for size, power in powers.items()]))

    measured = [(cell, replace(cost(cell, 1e-9), curator_seconds=grown(cell))) for cell in cells]
    found = exponents(BASE, measured)
    assert found["curator_seconds"] == pytest.approx(powers, abs=1e-9)
    assert set(found) == set(TERMS)
    assert list(found["owners_seconds"]) == list(SIZES)
    asking = ScaleCell("published", 40, batch=1)
    alone = exponents(asking, [(cell, cost(cell, 1e-9)) for cell in cells_around(asking)])
    assert "batch" not in alone["curator_seconds"]


def test_a_tender_s_owners_submit_fewer_and_more() -> None:
    base = ScaleCell("tender", 40, batch=50)
    cells = [cell for cell in cells_around(base) if cell.batch != base.batch]
    assert [cell.batch for cell in cells] == [25, 100]
    for cell in cells:
        session_of(cell, [f"owner-{number}" for number in range(cell.owners)])


def test_cells_change_one_size_each_and_rules_that_ask_have_no_batch() -> None:
    sizes = ("owners", "points", "batch", "dimension")
    changed = [
        {name for name in sizes if getattr(cell, name) != getattr(BASE, name)} for cell in cells_around(BASE)
    ]
    assert max(map(len, changed)) == 1
    assert set().union(*changed) == set(sizes)
    assert {cell.batch for cell in cells_around(ScaleCell("published", 40, batch=1))} == {1}


def test_a_session_s_time_bytes_and_memory_are_measured() -> None:
    first, more = measure(SMALL), measure(replace(SMALL, owners=6))
    assert (first.bought, more.bought) == (6, 6)
    parts = first.curator_seconds + first.consumer_seconds + first.owners_seconds
    assert 0.0 < parts <= first.seconds * 1.001
    assert first.peak_bytes <= peak_memory()
    points = SMALL.owners * SMALL.points * (2 * SMALL.dimension)
    assert points < first.received_bytes < more.received_bytes
    assert more.sent_bytes > first.sent_bytes


def test_the_process_of_a_cell_gives_what_it_measured_or_fails_as_it_did() -> None:
    found = in_own_process(SMALL)
    assert (found.bought, found.received_bytes) == (6, measure(SMALL).received_bytes)
    with pytest.raises(HushbidError, match="K = 3, n = 10, p = 6, b = 2, d = 3 failed"):
        in_own_process(replace(SMALL, dimension=3))


@pytest.mark.parametrize(("rule", "batch"), [("sealed", 2), ("published", 1), ("logistic", 1)])
def test_a_cell_without_a_batch_has_one_that_its_rule_takes(rule: str, batch: int) -> None:
    cell = cell_of(json.dumps({"rule": rule, "owners": 5}))
    assert cell == ScaleCell(rule, 5, batch=batch)
    session_of(cell, list("abcde"))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"rule": "sealed", "owner": 5}', "owners"),
        ('{"rule": "sealed", "owners": 5, "batch": 0}', "batch"),
        ('{"rule": "loudest", "owners": 5}', "loudest"),
        ('{"rule": "logistic", "owners": 5, "batch": 2}', "asks for one point at a time"),
        ("[1]", "stdin has no cell"),
        ("owners = 5", "stdin has no cell"),
    ],
)
def test_what_is_no_cell_is_refused_with_a_reason(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        session_of(cell_of(text), list("abcde"))


def test_the_process_of_a_cell_says_why_it_cannot_measure_it() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hushbid.lab.bench.scale_cell"],
        input='{"rule": "loudest", "owners": 5}',
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr.startswith("hushbid: acquisition.rule: no rule is named 'loudest'"), done.stderr
    assert (done.returncode, json.loads(done.stdout)["error"]["kind"]) == (4, "ConfigError")


def test_a_rule_that_is_not_for_so_few_owners_says_so() -> None:
    with pytest.raises(ConfigError, match="not for 2 owners"):
        session_of(ScaleCell("logistic", 2, batch=1), ["a", "b"])
    done = CliRunner().invoke(app, ["bench", "scale", "--rule", "loudest"])
    assert (done.exit_code, "loudest" in done.stderr) == (4, True)


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["sealed", "blind", "ask-all"])
def test_nothing_grows_faster_than_the_number_of_owners(rule: str) -> None:
    """The figures of docs/scale.md at a small size: one more owner costs the same, however many there are."""
    done = CliRunner().invoke(app, ["bench", "scale", "--rule", rule, "--owners", "50", "--json"])
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    by_owners = {
        row["owners"]: row
        for row in found["measured"]
        if (row["owner_points"], row["points"], row["dimension"], row["batch"]) == (100, 100, 140, 2)
    }
    each = [by_owners[count]["received_bytes"] / count for count in (25, 50, 100)]
    assert np.ptp(each) < 0.02 * each[0]
    seconds = [by_owners[count]["curator_seconds"] / count for count in (25, 100)]
    assert seconds[1] < 2.0 * seconds[0]
