"""Whole sessions with prices and caps: the greedy choice by price, the bill of both sides, replays."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from hushbid.cli.app import app
from hushbid.cluster.evaluation import greedy
from hushbid.curator.ledger import Dispute
from hushbid.protocol.data import Dataset
from hushbid.protocol.privacy.acquisition import RULES
from hushbid.protocol.session.session import Session, open_session
from hushbid.protocol.session.wishes import bill_of
from hushbid.report.figures import figures_of
from hushbid.report.sources import open_sources
from hushbid.simulation.simulator import Crash, Simulation, SimulationOutcome
from tests.simulation.harness import names, session_file

OWNERS, POINTS = 4, 12
WISHES: dict[str, Any] = {
    "prices": {"owner-0": 1.0, "owner-1": 2.5, "owner-2": 1.0, "owner-3": 0.5},
    "caps": {"owner-0": 4, "owner-3": 6},
    "budget": 30.0,
}
MAY = sorted(name for name, rule in RULES.items() if not (rule.even_owners or rule.unpriced))
RNG = np.random.default_rng(3)
DATA = {name: Dataset.from_arrays(name, RNG.random((20, 5))) for name in names(OWNERS)}
VALIDATION = Dataset.from_arrays("validation", RNG.random((10, 5)))
SEED_SET = Dataset.from_arrays("seed-set", RNG.random((6, 5)))


def session(rule: str, wishes: dict[str, Any] | None = WISHES) -> Session:
    return open_session(
        session_file(owners=names(OWNERS), points=POINTS, rule=rule, dimension=16, columns=5, wishes=wishes)
    )


def simulated(opened: Session) -> SimulationOutcome:
    return Simulation(opened, owners=DATA, validation=VALIDATION, seed_set=SEED_SET).run()


def bought(outcome: SimulationOutcome) -> list[tuple[str, bytes]]:
    assert outcome.delivered is not None
    found = []
    for entry in outcome.delivered.delivered:
        assert entry.candidate is not None
        assert not entry.dispute
        found.append((entry.owner, np.asarray(entry.candidate.point).tobytes()))
    return found


@pytest.mark.parametrize("rule", [rule for rule in MAY if not RULES[rule].sealed])
def test_without_noise_a_session_is_the_greedy_choice_by_price_and_turn(rule: str) -> None:
    opened = session(rule)
    assert opened.public_map is not None
    hashed = {name: opened.public_map.hash(data.features) for name, data in DATA.items()}
    chosen = greedy(
        hashed,
        opened.public_map.hash(VALIDATION.features),
        opened.public_map.hash(SEED_SET.features),
        POINTS,
        opened.space.norm_bound,
        opened,
    )
    found = bought(simulated(opened))
    assert found == [(name, DATA[name].features[row].tobytes()) for name, row in chosen]
    assert found != bought(simulated(session(rule, None))), "the wishes choose something"


@pytest.mark.parametrize("rule", MAY)
def test_curator_and_consumer_have_one_bill_within_caps_and_budget(rule: str) -> None:
    opened = session(rule)
    outcome = simulated(opened)
    sold = Counter(owner for owner, _ in bought(outcome))
    made = bill_of(opened.file, outcome.curator.ledger.sold())
    assert made == bill_of(opened.file, sold)
    assert made is not None
    assert made.points == POINTS
    assert made.total == sum(sold[owner] * price for owner, price in WISHES["prices"].items())
    assert made.total <= WISHES["budget"]
    assert all(sold[owner] <= cap for owner, cap in WISHES["caps"].items())
    for win in outcome.curator.ledger.wins:
        assert opened.turns.has(win.owner, win.chosen_round)
    assert not outcome.curator.ledger.absences


def test_neither_a_point_that_the_consumer_disputes_nor_an_empty_box_is_on_the_bill() -> None:
    ledger = simulated(session("ask-all")).curator.ledger
    whole = dict(ledger.sold())
    win = ledger.wins[0]
    ledger.disputes.append(Dispute(win.chosen_round, win.owner, win.handle))
    assert ledger.sold()[win.owner] == whole[win.owner] - 1
    ledger.empty[win.owner] = 1
    assert ledger.sold() == whole | {win.owner: whole[win.owner] - 2}


CLUSTER = """
session = { name = "wishes", points = 12, batch = 3, allow_nonprivate = true }
features = { dimension = 32 }
target = { mechanism = "gaussian", epsilon = 1.0, neighbours = "substitute-one" }
summary = { mechanism = "gaussian", epsilon = 1.0, neighbours = "add-remove-one" }
acquisition = { rule = "sealed" }
dataset = { name = "digits" }
[wishes]
prices = { digits-01 = 1, digits-34 = 2.5, digits-56 = 1, digits-78 = 1, digits-92 = 2 }
caps = { digits-01 = 6 }
budget = 30
"""
FEATURES = "dimension = 32, gamma = 0.5, columns = 64"


def test_a_recorded_session_with_wishes_is_replayed_and_its_result_has_the_bill(tmp_path: Path) -> None:
    cluster, place = tmp_path / "cluster.toml", tmp_path / "record"
    cluster.write_text(CLUSTER, encoding="utf-8")
    command = ["simulate", str(cluster), "--record", str(place), "--no-rehearsal", "--json"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.stderr
    result = json.loads(done.stdout)
    assert not result["distinct"]
    assert result["bill"]["points"] == result["points_delivered"] == 12
    assert result["bill"]["owners"]["digits-01"]["points"] <= 6
    for party in ("curator", "consumer", "digits-01", "digits-34"):
        replayed = CliRunner().invoke(app, ["transcript", "replay", str(place / f"{party}.transcript")])
        assert replayed.exit_code == 0, replayed.stderr
    reported = CliRunner().invoke(
        app, ["report", str(place / "curator.transcript"), "--output", str(tmp_path / "page.html"), "--json"]
    )
    assert reported.exit_code == 0, reported.stderr
    owners = figures_of(open_sources([place / "curator.transcript"])).owners
    billed = result["bill"]["owners"]
    assert owners.amount == tuple(billed[name]["amount"] for name in owners.name)
    assert owners.price == tuple(billed[name]["price"] for name in owners.name)
    assert "price of a point" in (tmp_path / "page.html").read_text(encoding="utf-8")
    planned = CliRunner().invoke(app, ["plan", str(cluster), "--json"])
    assert planned.exit_code == 0, planned.stderr


@pytest.mark.parametrize("step", [12, 25, 40])
def test_a_curator_that_dies_and_comes_back_buys_the_same(step: int) -> None:
    opened = session("ask-all")
    crashed = Simulation(
        opened,
        owners=DATA,
        validation=VALIDATION,
        seed_set=SEED_SET,
        crashes=[Crash("curator", step, 0)],
    )
    outcome = crashed.run()
    assert crashed.crashed
    assert bought(outcome) == bought(simulated(opened))


def test_a_plan_checks_wishes_and_leaves_them_out_for_other_owners(tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.toml"
    cluster.write_text(CLUSTER, encoding="utf-8")
    dear = CliRunner().invoke(app, ["plan", str(cluster), "--points", "60", "--json"])
    assert dear.exit_code == 4
    assert "wishes.budget is 30, and 60 points can cost" in dear.stderr
    session_file = tmp_path / "session.toml"
    tables = CLUSTER.replace('dataset = { name = "digits" }\n', "").replace("dimension = 32", FEATURES)
    session_file.write_text(tables + "[roster]\nowners = {}\n", encoding="utf-8")
    other = ["plan", str(session_file), "--validation", "200", "--owners", "3", "--json"]
    planned = CliRunner().invoke(app, other)
    assert planned.exit_code == 0, planned.stderr
