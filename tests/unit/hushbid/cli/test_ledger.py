"""`hushbid ledger`: the spent privacy by session and entry; the file stays unchanged."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from hushbid.cli.app import app
from hushbid.protocol.config.party import BudgetSection
from hushbid.protocol.privacy.accounting.adaptive import adaptive_epsilon
from hushbid.protocol.privacy.accounting.costs import GaussianCost
from hushbid.protocol.runtime.ledger.lifetime_ledger import LifetimeLedger
from hushbid.protocol.runtime.ledger.spending import Spending

RELATION = "add-remove-one"
COSTS = (GaussianCost(noise_multiplier=8.0, count=4),)


def spending(identifier: str, **changes: Any) -> Spending:
    given: dict[str, Any] = {
        "kind": "session", "epsilon": 1.5, "costs": COSTS, "delta": 1e-5, "neighbours": RELATION,
    }  # fmt: skip
    return Spending(identifier=identifier, date=date(2026, 3, 1), **(given | changes))


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """A ledger of two sessions of one name, and an entry."""
    path = tmp_path / "north.csv.ledger"
    with LifetimeLedger.open(path, budget=BudgetSection(epsilon=4.0), neighbours=RELATION, rows=None) as made:
        made.charge(spending(f"birds/{'ab' * 16}/north"))
        made.charge(spending(f"birds/{'cd' * 16}/north"))
        made.charge(spending(f"north/kme/{'ef' * 8}", kind="catalogue", epsilon=0.25))
    return path


def shown(*arguments: object, width: int = 150) -> Result:
    return CliRunner().invoke(app, ["ledger", *map(str, arguments)], env={"COLUMNS": str(width)})


def test_every_session_and_entry_is_a_line_with_its_cost_and_the_whole_is_held_against_the_budget(
    ledger: Path,
) -> None:
    ended = shown(ledger)
    assert ended.exit_code == 0, ended.stderr
    rows = [line.split() for line in ended.stdout.splitlines() if "2026-03-01" in line]
    assert rows == [
        ["2026-03-01", "session", "birds", "abababab", "north", "1.5", "1e-05", RELATION],
        ["2026-03-01", "session", "birds", "cdcdcdcd", "north", "1.5", "1e-05", RELATION],
        ["2026-03-01", "catalogue", "north", "kme", "efefefef", "0.25", "1e-05", RELATION],
    ]
    total = adaptive_epsilon([COSTS] * 3, 1e-5)
    assert f"Spent together: ε = {total:.4g} at δ = 1e-05 ({RELATION})." in ended.stdout
    assert f"Budget: ε = 4 at δ = 1e-05 ({RELATION})." in ended.stdout


def test_in_80_columns_names_are_folded_and_the_relation_is_whole(tmp_path: Path) -> None:
    path, name = tmp_path / "north.csv.ledger", "a-session-of-many-hospitals-in-the-north"
    with LifetimeLedger.open(path, budget=None, neighbours=RELATION, rows=None) as made:
        unsaid = spending(f"{name}/{'ab' * 16}/consumer", epsilon=None, costs=())
        made.charge(replace(unsaid, neighbours="substitute-one"))
        made.charge(spending(f"north/kme/{'ef' * 8}", kind="catalogue", epsilon=0.25))
    lines = shown(path, width=80).stdout.splitlines()[1:]
    assert max(map(len, lines)) <= 80
    rows = [line.split() for line in lines if "2026-03-01" in line]
    assert [row[-1] for row in rows] == ["substitute-one", RELATION]
    assert rows[0][-4:-1] == ["no", "guarantee", "1e-05"]
    begins = lines[1].index("name") if "name" in lines[1] else lines[0].index("name")
    assert name in "".join(line[begins:].split(" ")[0] for line in lines)


def test_the_same_as_json(ledger: Path) -> None:
    (found,) = json.loads(shown(ledger, "--json").stdout)["ledgers"]
    assert found["file"] == str(ledger)
    assert found["budget"] == {"epsilon": 4.0, "delta": 1e-5, "neighbours": RELATION}
    assert found["spent"]["epsilon"] == adaptive_epsilon([COSTS] * 3, 1e-5)
    assert [row["identifier"] for row in found["spendings"]] == [
        f"{'ab' * 16}/north",
        f"{'cd' * 16}/north",
        f"kme/{'ef' * 8}",
    ]


def test_data_are_named_in_place_of_the_ledger_beside_them(ledger: Path) -> None:
    (found,) = json.loads(shown(ledger.with_suffix(""), "--json").stdout)["ledgers"]
    assert found["file"] == str(ledger)


def test_a_ledger_in_use_is_read_and_left_as_it_is(ledger: Path) -> None:
    with ledger.open("ab") as file:
        file.write(b'{"kind": "sess')  # a charge that is being written
    before = ledger.read_bytes()
    with LifetimeLedger.open(
        ledger.with_name("other"), budget=None, neighbours=RELATION, rows=None
    ):  # held by this process
        ended = shown(ledger, ledger.with_name("other"), "--json")
    assert [len(each["spendings"]) for each in json.loads(ended.stdout)["ledgers"]] == [3, 0]
    assert ledger.read_bytes() == before


def test_a_session_without_a_guarantee_leaves_no_epsilon_for_the_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    with LifetimeLedger.open(path, budget=None, neighbours=RELATION, rows=None) as made:
        made.charge(spending("birds/x", epsilon=None, costs=()))
    ended = shown(path)
    assert "no guarantee" in ended.stdout
    assert "no ε can be stated" in ended.stdout
    assert "No budget: nothing is refused." in ended.stdout
    (found,) = json.loads(shown(path, "--json").stdout)["ledgers"]
    assert (found["budget"], found["spent"]["epsilon"]) == (None, None)
    assert math.isfinite(found["spent"]["delta"])


@pytest.mark.parametrize("content", [None, "age\n1\n"], ids=["missing", "no ledger"])
def test_what_is_no_ledger_ends_with_4_and_is_not_made(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "a.csv"
    if content is not None:
        path.write_text(content)
    ended = shown(path)
    assert (ended.exit_code, ended.stdout) == (4, "")
    assert "a.csv" in ended.stderr
    assert [each.name for each in tmp_path.iterdir()] == ([] if content is None else ["a.csv"])


def test_data_without_a_ledger_are_not_taken_for_a_damaged_one(tmp_path: Path) -> None:
    data = tmp_path / "north.csv"
    data.write_text("age,income\n41,12345\n")
    ended = shown(data)
    assert ended.exit_code == 4
    said = " ".join(ended.stderr.split())
    assert f"{data} is not a ledger, and north.csv.ledger does not lie beside it" in said
    assert "malformed" not in said


def test_a_session_that_costs_owners_nothing_is_said_to(tmp_path: Path) -> None:
    path = tmp_path / "north.csv.ledger"
    with LifetimeLedger.open(path, budget=None, neighbours=RELATION, rows=None) as made:
        for nonce in ("ab", "cd"):
            made.charge(spending(f"tender/{nonce * 16}/north", epsilon=0.0, delta=0.0, costs=()))
    said = shown(path).stdout
    assert "Nothing charged between owners: 2 sessions" in said
    assert f"Spent together: ε = 0 at δ = 1e-05 ({RELATION})." in said


def test_a_release_that_a_consumer_uses_again_is_no_session_between_owners(tmp_path: Path) -> None:
    path = tmp_path / "wanted.csv.ledger"
    relation = "substitute-one"
    with LifetimeLedger.open(path, budget=None, neighbours=relation, rows=None) as made:
        again = {"epsilon": 0.0, "delta": 0.0, "costs": (), "neighbours": relation}
        made.charge(spending(f"again/{'ab' * 16}/consumer", **again))
    assert "Nothing charged between owners" not in shown(path).stdout
