"""`hushbid value`: the worth of each owner's delivered points, from files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from hushbid.cli.app import app
from hushbid.consumer.valuation import value

LOWER, UPPER, GAMMA = -1.0, np.array([3.0, 1.0]), 2.0
RNG = np.random.default_rng(4)


def drawn(rows: int) -> Any:
    return LOWER + RNG.random((rows, 2)) * (UPPER - LOWER)


POINTS, WANTED, SEEDS = drawn(60), drawn(40), drawn(20)
OWNERS = np.array(["heron", "magpie", "wren"] * 20)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    write(tmp_path)
    for name, rows in (("validation", WANTED), ("seed-set", SEEDS)):
        np.save(tmp_path / f"{name}.npy", rows)
    return tmp_path


def write(place: Path, **changes: Any) -> None:
    arrays = {
        "features": POINTS, "owners": OWNERS, "rounds": np.arange(1, 61),
        "gamma": np.float64(GAMMA), "lower": np.float64(LOWER), "upper": UPPER, **changes,
    }  # fmt: skip
    kept = {name: held for name, held in arrays.items() if held is not None}
    np.savez(place / "delivered.npz", **kept)


def run(place: Path, *options: str) -> Result:
    given = ["value", str(place / "delivered.npz"), "--validation", str(place / "validation.npy")]
    return CliRunner().invoke(app, [*given, *options])


def scaled(points: Any) -> Any:
    return (points - LOWER) / (UPPER - LOWER)


def test_values_are_of_scaled_points_and_the_seed_set(place: Path) -> None:
    seeds = ("--seed-set", str(place / "seed-set.npy"))
    found = json.loads(run(place, *seeds, "--json").stdout)
    own = value(scaled(POINTS), OWNERS.tolist(), scaled(WANTED), scaled(SEEDS), GAMMA, pairs=2, seed=0)
    assert found["total"] == pytest.approx(own.total)
    assert {name: row["shapley"] for name, row in found["owners"].items()} == pytest.approx(
        {name: each.shapley for name, each in own.owners.items()}
    )
    assert (found["orders"], found["points"], found["gamma"]) == (0, 60, GAMMA)
    assert found["from_seed_set"]
    shown = run(place, *seeds).stdout
    assert "exact" in shown
    assert all(name in shown for name in ("heron", "magpie", "wren", "over the seed set"))
    assert not json.loads(run(place, "--json").stdout)["from_seed_set"]


def test_many_owners_have_values_with_an_error(place: Path) -> None:
    write(place, owners=np.array([f"owner-{number % 20}" for number in range(60)]))
    found = json.loads(run(place, "--orders", "100", "--json").stdout)
    assert found["orders"] == 100
    assert all(row["shapley_error"] > 0.0 for row in found["owners"].values())
    assert sum(row["shapley"] for row in found["owners"].values()) == pytest.approx(found["total"])
    again = json.loads(run(place, "--orders", "100", "--json").stdout)
    assert found == again, "the same seed draws the same orders"
    other = json.loads(run(place, "--orders", "100", "--seed", "1", "--json").stdout)
    assert other["owners"] != found["owners"]


@pytest.mark.parametrize(
    ("change", "options", "said"),
    [
        ({"owners": None}, (), "does not say who sold"),
        ({}, ("--gamma", "-1"), "γ is -1"),
        ({}, ("--orders", "3"), "to 4"),
        ({}, ("--seed-set", "gone.npy"), "gone.npy"),
        ({"gamma": None}, (), "--session"),
    ],
    ids=["no owners", "gamma", "orders", "no seed set", "no bounds"],
)
def test_what_cannot_be_valued_is_refused(
    place: Path, change: dict[str, Any], options: tuple[str, ...], said: str
) -> None:
    write(place, **change)
    done = run(place, *options)
    assert done.exit_code in (2, 4), done.stdout  # typer's own parser ends with 2 in this runner
    assert said in done.stderr
    assert "Traceback" not in done.stderr
