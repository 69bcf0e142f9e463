"""`hushbid advise` with files that have columns or are to be completed: sessions, clusters, invitations."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hushbid.cli.app import app
from hushbid.cluster.file import open_cluster
from hushbid.protocol.config.invitation import invitation
from hushbid.protocol.config.loading import load_toml
from hushbid.protocol.config.session import DraftSession
from hushbid.protocol.data.schema import Schema
from tests.unit.hushbid.advice.test_advice import place, verb
from tests.unit.protocol.runtime.test_invitation import CURATOR, session, written

__all__ = ["place"]

COLUMNS = """
[session]
name = "people"
points = 500
[acquisition]
rule = "sealed"
[features]
gamma = 9.0
[target]
mechanism = "exact"
[summary]
mechanism = "exact"
[network]
address = "tcp://127.0.0.1:5790"
[[columns]]
name = "age"
kind = "integer"
lower = 18
upper = 90
[[columns]]
name = "smokes"
kind = "category"
categories = ["yes", "no"]
[roster]
curator = ""
consumer = ""
[roster.owners]
north = ""
south = ""
"""


@pytest.fixture
def people(place: Path) -> list[str]:
    """A session with columns, and a table for them: the options that read it."""
    (place / "people.toml").write_text(COLUMNS)
    rows = "".join(f"{18 + 7 * age % 70},{'yes' if age % 3 else 'no'},1\n" for age in range(60))
    (place / "people.csv").write_text(f"age,smokes,unused\n{rows}")
    return ["advise", "people.csv", "--owners", "north=400,south=200", "--no-rehearsal", "--json"]


@pytest.mark.parametrize("option", ["--session", "--into"])
def test_tables_are_read_by_a_session_s_columns(place: Path, people: list[str], option: str) -> None:
    done = CliRunner().invoke(app, [*people, option, "people.toml"])
    assert done.exit_code == 0, done.stderr
    bounds = json.loads(done.stdout)["settings"][0]
    schema = Schema.read(place / "people.toml")
    assert bounds["value"] == {"lower": list(schema.lower), "upper": list(schema.upper)}
    assert "Those of the columns" in bounds["why"]
    draft = load_toml(DraftSession, place / "people.toml")
    assert draft.session.points == (60 if option == "--into" else 500)
    assert "[18" not in (place / "people.toml").read_text(), "the columns say the bounds"
    (place / "people.csv").write_text("age,smokes\n20,maybe\n30,no\n")
    done = CliRunner().invoke(app, [*people, option, "people.toml"])
    assert (done.exit_code, "row 0" in done.stderr) == (4, True)


def test_columns_say_the_bounds_alone(people: list[str]) -> None:
    done = CliRunner().invoke(app, [*people, "--session", "people.toml", "--lower", "0", "--upper", "1"])
    assert (done.exit_code, "say the bounds" in done.stderr) == (4, True)


def test_a_schema_alone_becomes_a_session_file_of_its_columns(place: Path, people: list[str]) -> None:
    schema = (
        COLUMNS[COLUMNS.index("[[columns]]") : COLUMNS.index("[roster]")] + 'missing = "own"\nweight = 0.5\n'
    )
    (place / "schema.toml").write_text(schema)
    done = CliRunner().invoke(app, [*people, "--session", "schema.toml", "--write", "new.toml"])
    assert done.exit_code == 0, done.stderr
    draft = load_toml(DraftSession, place / "new.toml")
    assert Schema(columns=tuple(draft.columns)) == Schema.read(place / "schema.toml")
    assert "lower = [" not in (place / "new.toml").read_text(), "the columns say the bounds"
    planned = CliRunner().invoke(app, ["plan", "new.toml", "--validation", "60", "--json"])
    assert planned.exit_code == 0, planned.stderr


def test_an_invitation_states_columns_and_bounds(place: Path, people: list[str]) -> None:
    columns = tomllib.loads(COLUMNS)["columns"]
    named = {"features.columns": None, "features.lower": None, "columns": columns}
    written(place, invitation(session(named), "consumer", CURATOR), "consumer")
    done = CliRunner().invoke(app, [*people, "--session", "consumer.invitation"])
    assert done.exit_code == 0, done.stderr
    schema = Schema.of(columns)
    bounds = json.loads(done.stdout)["settings"][0]["value"]
    assert bounds == {"lower": list(schema.lower), "upper": list(schema.upper)}


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        (
            COLUMNS[COLUMNS.index("[[columns]]") : COLUMNS.index("[roster]")],
            "session.name and acquisition.rule are",
        ),
        (COLUMNS.replace('[acquisition]\nrule = "sealed"\n', ""), "acquisition.rule is"),
    ],
)
def test_a_file_that_no_proposal_completes_is_refused_before_any_work(
    place: Path, people: list[str], text: str, missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hushbid.advice.proposal.advise", lambda *_, **__: pytest.fail("it was worked out"))
    (place / "begun.toml").write_text(text)
    done = CliRunner().invoke(app, [*people, "--into", "begun.toml"])
    assert (done.exit_code, f"begun.toml: {missing} missing" in done.stderr) == (4, True), done.stderr
    assert "--output" in done.stderr
    assert (place / "begun.toml").read_text() == text


def test_a_session_without_columns_says_the_bounds(place: Path) -> None:
    (place / "cluster.toml").write_text(CLUSTER)
    done = verb("--session", "cluster.toml", "--no-rehearsal", "--json", bounds=())
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["settings"][0]["value"] == {"lower": [0.0] * 3, "upper": [1.0] * 3}


CLUSTER = """
[session]
name = "mine"    # ours
points = 500
batch = 250
[features]
gamma = 77.0     # to be chosen
columns = 3
lower = [0.0, 0.0, 0.0]
upper = [1.0, 1.0, 1.0]
[target]
mechanism = "gaussian"
sigma = 3.0
neighbours = "substitute-one"
[summary]
mechanism = "exact"
[acquisition]
rule = "sealed"
[owners.north]
data = "north.npz"
[owners.south]
data = "south.npz"
[consumer]
validation = "validation.npz"
seed_set = "seeds.npz"
"""


def test_a_cluster_file_gets_the_proposals_and_can_be_simulated(place: Path) -> None:
    (place / "cluster.toml").write_text(CLUSTER)
    done = verb("--no-rehearsal", "--seed-set", "seeds.npz", "--into", "cluster.toml", bounds=())
    assert done.exit_code == 0, done.stderr
    text = (place / "cluster.toml").read_text()
    values = tomllib.loads(text)
    assert "# ours" in text
    assert values["session"] == {"name": "mine", "points": 60, "delta": 1e-5}
    assert values["features"]["lower"] == [0.0, 0.0, 0.0]
    assert values["features"]["gamma"] != 77.0
    epsilon = values["target"]["epsilon"]
    assert values["target"] == {
        "mechanism": "filtered-gaussian", "epsilon": epsilon, "neighbours": "substitute-one",
    }  # fmt: skip
    assert values["summary"]["neighbours"] == "add-remove-one"
    assert open_cluster(place / "cluster.toml").file.session.points == 60
    assert "hushbid simulate" in done.stdout
    simulated = CliRunner().invoke(app, ["simulate", "cluster.toml", "--json"])
    assert simulated.exit_code == 0, simulated.stderr
    assert json.loads(simulated.stdout)["points_delivered"] == 60


def test_a_session_file_keeps_its_roster(place: Path) -> None:
    assert verb("--no-rehearsal", "--write", "session.toml").exit_code == 0
    done = verb("--no-rehearsal", "--points", "30", "--gamma", "3", "--into", "session.toml", bounds=())
    assert done.exit_code == 0, done.stderr
    draft = load_toml(DraftSession, place / "session.toml")
    assert (draft.session.points, draft.features.gamma, list(draft.roster.owners)) == (
        30,
        3.0,
        ["north", "south"],
    )


def test_what_no_session_can_be_made_of_is_not_put_into_a_file(place: Path) -> None:
    """The file's map has rows of 32 cells, which do not divide 140 coordinates."""
    lsh = CLUSTER.replace("columns = 3", 'columns = 3\nmap = "lsh"\ncells = 32\ndimension = 160')
    (place / "cluster.toml").write_text(lsh)
    done = verb("--no-rehearsal", "--into", "cluster.toml")
    assert (done.exit_code, "cells" in done.stderr) == (4, True), done.stderr
    assert (place / "cluster.toml").read_text() == lsh


def test_a_file_that_does_not_go_with_it_stays(place: Path) -> None:
    (place / "cluster.toml").write_text(CLUSTER.replace('"sealed"', '"sealed"\nwrong = [[').strip())
    before = (place / "cluster.toml").read_text()
    for arguments in (
        ("--into", "cluster.toml"),
        ("--into", "nowhere.toml"),
        ("--into", "x", "--write", "y"),
    ):
        done = verb("--no-rehearsal", *arguments)
        assert done.exit_code == 4, done.stdout
    assert (place / "cluster.toml").read_text() == before


@pytest.mark.parametrize(
    "named", [["missing.csv"], ["table.csv", "--features", "a,word"]], ids=["file", "column"]
)
def test_a_file_that_cannot_be_read_is_refused(place: Path, named: list[str]) -> None:
    (place / "table.csv").write_text("a,b,word\n0.1,0.2,secret\n0.3,0.4,hidden\n")
    done = CliRunner().invoke(app, ["advise", *named, "--lower", "0", "--upper", "1", "--points", "5"])
    assert done.exit_code == 4
    assert "secret" not in done.stderr
