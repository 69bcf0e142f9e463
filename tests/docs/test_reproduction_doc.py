"""docs/reproduction.md: its tables follow from the rows that are kept, and its claims hold in them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from hushbid.lab.experiments import mnist, privacy_utility, rare, rivals, scaling
from hushbid.lab.experiments.insurance import EPSILONS, METHODS, POINTS
from tests.conftest import ROOT
from tests.docs.tables import reproduction
from tests.docs.tables.markers import parts
from tests.docs.tables.reproduction import KEPT, OURS, better, compared, exponent, purchases, rows_of

PAGE = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
MADE: dict[str, Callable[[Path], str]] = {
    "insurance": partial(purchases, "insurance", ""),
    "mnist": partial(purchases, "mnist", "gamma"),
    "rare": partial(purchases, "rare", "share"),
    "rivals": reproduction.rivals,
    "privacy-utility": reproduction.privacy_utility,
    "scaling": reproduction.scaling,
}
"""What makes the table of each experiment, of rows that may be kept elsewhere."""


@pytest.mark.parametrize("name", MADE)
def test_another_figure_makes_another_table(name: str, tmp_path: Path) -> None:
    shutil.copytree(KEPT, tmp_path, dirs_exist_ok=True)
    assert MADE[name](tmp_path) == parts(PAGE)[name]
    path = tmp_path / f"{name}.csv"
    names, first, *rest = path.read_text().splitlines()
    place = names.split(",").index("bytes_sent" if name == "scaling" else "accuracy_weighted")
    lines = []
    for line in [first, *rest]:
        cells = line.split(",")
        cells[place] = cells[place] and str(0.5 * float(cells[place]) + 0.1)
        lines.append(",".join(cells))
    path.write_text("\n".join([names, *lines]) + "\n")
    assert MADE[name](tmp_path) != parts(PAGE)[name]


def test_the_tables_have_what_the_experiments_run_by_default() -> None:
    found = {(row["method"], row["points"]) for row in rows_of("insurance")}
    assert found == {(method, str(points)) for method in METHODS for points in POINTS}
    ours = {float(row["epsilon"]) for row in rows_of("insurance") if row["method"] == "private"}
    assert ours == set(EPSILONS)
    assert {float(row["share"]) for row in rows_of("rare")} == set(rare.SHARES)
    assert {float(row["gamma"]) for row in rows_of("mnist")} == set(mnist.GAMMAS)
    assert {row["rival"] for row in rows_of("rivals")} == set(rivals.RIVALS)
    assert {row["method"] for row in rows_of("privacy-utility")} == set(privacy_utility.METHODS)
    assert {int(row["owners"]) for row in rows_of("scaling")} == set(scaling.OWNERS)


def test_ours_beats_uniform_with_weights_on_insurance_by_five_points_and_where_wanted_points_are_rare() -> (
    None
):
    for name, setting, ours, uniform, _ in compared():
        if name == "insurance" or (name == "rare" and float(ours["share"]) <= 0.1):
            assert better(ours, uniform), (name, setting)
        if (name, ours["points"]) == ("insurance", "1000"):
            assert float(ours["accuracy_weighted"]) >= float(uniform["accuracy_weighted"]) + 0.05
            assert ours["seeds"] == uniform["seeds"] == "5"


def test_ours_beats_the_published_mechanism_at_the_same_sound_epsilon() -> None:
    """Where wanted points are rare and on insurance, in effective points at every size."""
    for name in ("insurance", "rare"):
        rows = rows_of(name)
        for row in rows:
            if (row["method"], row["epsilon"]) == ("published-sound", "1"):
                same = [
                    each for each in rows if (each["share"], each["points"]) == (row["share"], row["points"])
                ]
                (ours,) = (each for each in same if (each["method"], each["epsilon"]) == OURS)
                assert float(ours["effective_points"]) > float(row["effective_points"])


def test_nothing_is_won_is_said_where_that_is_so() -> None:
    nothing = [1 for _, _, ours, uniform, _ in compared() if not better(ours, uniform)]
    said = [line for line in parts(PAGE)["won"].splitlines()[2:] if "nothing" in line.split("|")[7]]
    assert len(said) == len(nothing)


def test_an_exponent_is_that_of_a_power() -> None:
    assert exponent({4: 2.0 * 4**0.4, 32: 2.0 * 32**0.4, 256: 2.0 * 256**0.4}) == pytest.approx(0.4)
    assert exponent({4: 1.0}) is None
    assert exponent({4: 0.0, 8: 0.0}) is None
