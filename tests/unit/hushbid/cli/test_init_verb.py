"""`hushbid init`: files that run as they are, what they reveal of rows, and errors with remedies."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from typer.main import get_command
from typer.testing import CliRunner

from hushbid.cli.app import app
from hushbid.cluster.file import open_cluster
from hushbid.protocol.config.loading import load_toml
from hushbid.protocol.config.party import ConsumerFile, CuratorFile, OwnerFile
from hushbid.protocol.config.session import DraftSession
from hushbid.protocol.data.schema import Schema
from hushbid.running.simulate import simulate
from hushbid.starting.beginning import MOST_NAMES
from hushbid.starting.columns import given_bounds


def bees(seed: int, rows: int) -> pd.DataFrame:
    """A table about hives, unlike any other test's."""
    draw = np.random.default_rng(seed)
    weight, breed = draw.normal(40.0, 8.0, rows), draw.choice(["carnica", "buckfast"], rows)
    return pd.DataFrame(
        {
            "hive": np.arange(seed * 10_000, seed * 10_000 + rows),
            "weight": weight.round(2),
            "frames": draw.integers(4, 13, rows),
            "breed": breed,
            "seen": [f"2024-0{month}-11" for month in draw.integers(3, 9, rows)],
            "wintered": np.where(weight + draw.normal(0.0, 3.0, rows) > 40.0, "yes", "no"),
        }
    )


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, seed, rows in (("wanted", 1, 60), ("alps", 2, 200), ("plain", 3, 150), ("test", 4, 80)):
        bees(seed, rows).to_csv(tmp_path / f"{name}.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def init(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["init", *arguments], env={"COLUMNS": "200"})


def made(*arguments: str) -> dict[str, Any]:
    ended = init(*arguments, "--json")
    assert ended.exit_code == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert isinstance(found, dict)
    return found


def refused(*arguments: str) -> dict[str, str]:
    ended = init(*arguments, "--json")
    assert ended.exit_code == 4, ended.stderr
    found = json.loads(ended.stdout)["error"]
    assert isinstance(found, dict)
    return found


OWNERS = ("--owner", "alps=alps.csv", "--owner", "plain=plain.csv")


# -- one machine -----------------------------------------------------------------------------------------


def test_two_owners_tables_make_a_session_that_runs(place: Path) -> None:
    found = made("wanted.csv", *OWNERS, "--test", "test.csv", "--label", "wintered", "--identifier", "hive")
    assert found["columns"] == {
        "weight": "number",
        "frames": "integer",
        "breed": "category",
        "seen": "date",
    }
    assert (found["points"], found["epsilon"], found["left_out"]) == (87, 3.0, {})
    cluster = open_cluster(Path(found["files"]["cluster"]), settings=["session.points=20"])
    result = simulate(cluster)
    assert result.as_json()["points_delivered"] == 20
    assert result.as_json()["model"]["sentence"]


def test_one_table_is_dealt_out_to_try_a_session_and_that_is_said(place: Path) -> None:
    bees(5, 400).to_csv(place / "all.csv", index=False)
    found = made("all.csv", "--label", "wintered", "--name", "trial")
    directory = place / "trial"
    names = ("validation", "test", "north", "south", "west")
    rows = {name: pq.read_table(directory / "data" / f"{name}.parquet") for name in names}
    assert [table.num_rows for table in rows.values()] == [40, 80, 94, 93, 93]
    hives = [hive for table in rows.values() for hive in table["hive"].to_pylist()]
    assert len(set(hives)) == len(hives) == 400, "no row is two parties'"
    assert any("dealt out" in line for line in found["said"])
    assert {path.stat().st_mode & 0o077 for path in (directory, *directory.glob("data/*"))} == {0}
    assert len(open_cluster(directory / "cluster.toml").load().owners) == 3


def test_the_commands_are_verbs_with_options_that_there_are(place: Path) -> None:
    for where in ("one", "several", "compose"):
        found = made("wanted.csv", *OWNERS, "--for", where, "--output", f"for {where}")
        lines = [shlex.split(each["command"]) for each in found["commands"]]
        lines = [line for line in lines if line[0] == "hushbid"]
        assert lines or where == "compose"
        for _, verb, *rest in lines:
            command: Any = get_command(app).commands[verb]  # type: ignore[attr-defined]
            if hasattr(command, "commands"):
                command = command.commands[rest[0]]
            taken = {option for parameter in command.params for option in parameter.opts}
            assert {word for word in rest if word.startswith("--")} <= taken
    assert f"hushbid run '{Path('for one') / 'cluster.toml'}'" in init(
        "wanted.csv", *OWNERS, "--output", "for two"
    ).stdout.replace("for two", "for one")


# -- what a public file tells ----------------------------------------------------------------------------


def test_what_is_read_off_rows_is_said_and_is_no_row_s_own_value(place: Path) -> None:
    found = made("wanted.csv", *OWNERS, "--label", "wintered")
    assert found["read"] == {
        "weight": ["bounds"],
        "frames": ["bounds"],
        "breed": ["categories"],
        "seen": ["bounds"],
    }
    [said] = [line for line in found["said"] if "No ε covers that" in line]
    assert "bounds of weight, frames, seen; categories of breed" in said
    weight = next(each for each in Schema.read(found["files"]["cluster"]).columns if each.name == "weight")
    all_rows = pd.concat([pd.read_csv(f"{name}.csv") for name in ("wanted", "alps", "plain")])
    assert weight.lower is not None
    assert weight.upper is not None
    assert weight.lower < all_rows["weight"].min()
    assert weight.upper > all_rows["weight"].max()
    assert all(end % 5 == 0 for end in (weight.lower, weight.upper))
    assert "bounds follow from rows" in Path(found["files"]["cluster"]).read_text()


def test_bounds_of_dates_are_said_as_dates(place: Path) -> None:
    found = made("wanted.csv", *OWNERS, "--bounds", "seen=2001-01-01:2031-12-31", "--label", "wintered")
    assert "seen" not in found["read"]
    text = Path(found["files"]["cluster"]).read_text()
    assert 'lower = "2001-01-01"\nupper = "2031-12-31"' in text
    assert given_bounds(["at=2019-01-01T08:00:2019-01-02T17:30"]) == {
        "at": ("2019-01-01T08:00", "2019-01-02T17:30")
    }


def test_what_people_say_is_not_read_off_rows(place: Path) -> None:
    said = [
        "--bounds",
        "weight=0:120",
        "--bounds",
        "frames=0:20",
        "--categories",
        'breed=carnica, buckfast,"ligustica, or italian"',
    ]
    found = made("wanted.csv", *OWNERS, *said, "--without", "seen", "--label", "wintered")
    assert found["read"] == {}
    assert not any("No ε covers that" in line for line in found["said"])
    columns = {each.name: each for each in Schema.read(found["files"]["cluster"]).columns}
    assert (columns["weight"].lower, columns["weight"].upper) == (0.0, 120.0)
    assert columns["breed"].categories == ("carnica", "buckfast", "ligustica, or italian")
    assert found["left_out"] == {
        "seen": "it was to be left out",
        "hive": "no value stands twice, as in an identifier: `--identifier` names one",
    }


def test_an_epsilon_that_protects_nobody_is_warned_of(place: Path) -> None:
    assert any(
        line.startswith("WARNING: ε = 30") for line in made("wanted.csv", *OWNERS, "--epsilon", "30")["said"]
    )


# -- several machines, and containers --------------------------------------------------------------------


def test_several_machines_have_a_public_file_and_a_private_one_each(place: Path) -> None:
    found = made(
        "wanted.csv",
        "--owner",
        "alps",
        "--owner",
        "plain=plain.csv",
        "--for",
        "several",
        "--label",
        "wintered",
    )
    files = {name: Path(path) for name, path in found["files"].items()}
    session = load_toml(DraftSession, files["session"])
    assert sorted(session.roster.owners) == ["alps", "plain"]
    assert len(session.session.nonce) == 16
    consumer = load_toml(ConsumerFile, files["consumer"])
    assert (consumer.validation, consumer.columns.label) == (place / "wanted.csv", "wintered")
    load_toml(CuratorFile, files["curator"])
    away, here = (load_toml(OwnerFile, files[name]) for name in ("alps", "plain"))
    assert (away.columns.outside, here.columns.outside) == ("clip", "refuse"), "rows elsewhere were not seen"
    assert here.data == place / "plain.csv"
    places = [each["where"] for each in found["commands"]]
    assert set(places) == {"curator", "consumer", "alps", "plain"}
    approve = next(each for each in found["commands"] if "keys approve" in each["command"])
    assert "--fingerprint NAME=FINGERPRINT for each" in approve["what"]
    other = made("wanted.csv", "--owner", "alps", "--for", "several", "--output", "other")
    again = load_toml(DraftSession, Path(other["files"]["session"]))
    assert again.session.nonce != session.session.nonce


def test_what_owners_elsewhere_may_have_is_asked_for_before_the_commands(place: Path) -> None:
    bees(1, 60).assign(frames=9, sort="alpine").to_csv(place / "wanted.csv", index=False)
    away = ("wanted.csv", "--owner", "alps", "--for", "several", "--label", "wintered", "--without", "seen")
    frames, sort, elsewhere = made(*away)["said"][:3]
    assert frames.startswith("WARNING: frames is left out: it has one value alone")
    assert "`--bounds frames=LOW:HIGH`" in frames
    assert sort.startswith("WARNING: sort is left out: it has 1 different text")
    assert "`--categories sort=A,B,C`" in sort
    assert elsewhere.startswith(
        "WARNING: Owners' tables elsewhere are not known: categories of breed and bounds"
    )
    assert "`--categories breed=A,B,C`, `--bounds weight=LOW:HIGH`" in elsewhere
    shown = init(*away, "--output", "shown").stdout
    assert (
        shown.rindex("WARNING") < shown.index("session.toml and curator.toml go to") < shown.index("Paste:")
    )
    assert shown.count("sort is left out") == 1
    told = [("--bounds", "weight=0:120"), ("--bounds", "frames=0:20")]
    told += [("--categories", name) for name in ("breed=carnica,buckfast", "sort=alpine,other")]
    found = made(*away, *(word for each in told for word in each), "--output", "told")
    assert list(found["columns"]) == ["weight", "frames", "breed", "sort"]
    assert not any(line.startswith("WARNING") for line in found["said"])
    here = made("wanted.csv", *OWNERS, "--without", "sort", "--output", "here")
    assert "frames" in here["columns"], "owners' rows have other values"
    assert not any(line.startswith("WARNING") for line in here["said"])


def test_a_session_requires_labels_where_the_validation_set_has_them(place: Path) -> None:
    for where in ("one", "several"):
        for label in (("--label", "wintered"), ("--without", "wintered")):
            found = made("wanted.csv", *OWNERS, "--for", where, *label, "--output", f"{where}{label[0]}")
            text = Path(next(iter(found["files"].values()))).read_text()
            assert ('labels = "any"' in text) == (label[0] == "--label")
    assert open_cluster(place / "one--label" / "cluster.toml").load().validation.labels is not None


def test_containers_get_copies_beside_the_cluster_file(place: Path) -> None:
    found = made("wanted.csv", *OWNERS, "--for", "compose", "--label", "wintered")
    text = Path(found["files"]["cluster"]).read_text()
    assert str(place) not in text, "containers see no other directory"
    assert any("copied to" in line for line in found["said"])
    up = next(each["command"] for each in found["commands"] if "docker-compose up" in each["command"])
    assert "HUSHBID_CLUSTER=/data/cluster.toml" in up
    assert "HUSHBID_OWNERS=2" in up


# -- what cannot be --------------------------------------------------------------------------------------

WRONG = [
    pytest.param([], "--validation", id="no table"),
    pytest.param(["wanted.csv", "--validation", "wanted.csv"], "--validation", id="two validation sets"),
    pytest.param(["nowhere.csv", *OWNERS], "", id="no such file"),
    pytest.param(["wanted.csv"], "--owner NAME=FILE", id="too few rows to deal"),
    pytest.param(["wanted.csv", "--owner", "alps"], "--owner alps=FILE", id="no owner's table"),
    pytest.param(["wanted.csv", *OWNERS, *OWNERS], "own name", id="an owner twice"),
    pytest.param(["wanted.csv", "--owner", "Älps=alps.csv"], "small letters", id="an owner's name"),
    pytest.param(["wanted.csv", "--owner", "curator=alps.csv"], "another name", id="a party's name"),
    pytest.param(["wanted.csv", "--owner", "test=alps.csv"], "another name", id="the test set's name"),
    pytest.param(["wanted.csv", "--owner", "validation=alps.csv"], "another name", id="wanted rows' name"),
    pytest.param(["wanted.csv", "--owner", "session", "--for", "several"], "another name", id="a file's"),
    pytest.param(["wanted.csv", *OWNERS, "--name", "spitäler"], "small letters", id="the session's name"),
    pytest.param(["wanted.csv", *OWNERS, "--output", "/proc/x"], "--output", id="no directory"),
    pytest.param(["wanted.csv", *OWNERS, "--output", "."], "--output", id="a directory that is there"),
    pytest.param(["wanted.csv", *OWNERS, "--epsilon", "-1"], "positive", id="epsilon"),
    pytest.param(["wanted.csv", *OWNERS, "--points", "16385"], "hushbid advise", id="more than a tender's"),
    pytest.param(["wanted.csv", *OWNERS, "--label", "honey"], "wintered", id="no such label"),
    pytest.param(["wanted.csv", *OWNERS, "--bounds", "weight=9"], "age=0:120", id="no bounds"),
    pytest.param(["wanted.csv", *OWNERS, "--bounds", "weight=9:1"], "age=0:120", id="bounds the wrong way"),
    pytest.param(["wanted.csv", *OWNERS, "--bounds", "seen=1:2"], "seen=1900-01-01", id="numbers for dates"),
    pytest.param(
        ["wanted.csv", *OWNERS, "--bounds", "weight=2019-01-01:2020-01-01"], "weight=0:120", id="dates"
    ),
    pytest.param(["wanted.csv", *OWNERS, "--categories", "breed=a,,b"], "sort=a,b,c", id="no categories"),
    pytest.param(["wanted.csv", *OWNERS, "--categories", "breed=a\rb,c"], "sort=a,b,c", id="a line break"),
    pytest.param(["wanted.csv", *OWNERS, "--bounds", "weight=30:50"], "--bounds", id="bounds too narrow"),
    pytest.param(["wanted.csv", *OWNERS, "--bounds", "breed=0:1"], "Leave it out", id="a category's bounds"),
    pytest.param(
        ["wanted.csv", *OWNERS, "--label", "wintered", "--bounds", "wintered=0:1"],
        "no other option",
        id="a label's bounds",
    ),
    pytest.param(
        ["wanted.csv", *OWNERS, "--label", "wintered", "--categories", "wintered=0,1"],
        "no other option",
        id="a label's categories",
    ),
    pytest.param(["wanted.csv", *OWNERS, "--categories", "breed=carnica"], "sort=a,b,c", id="one category"),
    pytest.param(
        ["wanted.csv", *OWNERS, "--categories", "breed=carnica,x"], "all --categories", id="unknown"
    ),
]


@pytest.mark.parametrize(("arguments", "advice"), WRONG)
def test_what_cannot_be_is_refused_with_what_mends_it_and_leaves_nothing(
    place: Path, arguments: list[str], advice: str
) -> None:
    before = sorted(place.iterdir())
    assert advice in refused(*arguments)["advice"]
    assert sorted(place.iterdir()) == before


def test_tables_that_do_not_go_together_are_named(place: Path) -> None:
    bees(6, 50).drop(columns="frames").to_csv("short.csv", index=False)
    error = refused("wanted.csv", "--owner", "short=short.csv")
    assert error["what"] == "short.csv has no column 'frames'."
    assert "--without frames" in error["advice"]
    bees(6, 50).assign(frames="many").to_csv("text.csv", index=False)
    error = refused("wanted.csv", "--owner", "text=text.csv")
    kinds = (
        "The tables have values of different kinds in 'frames': category in text.csv; integer in wanted.csv."
    )
    assert error["what"] == kinds
    assert "--without frames" in error["advice"]


def test_a_table_of_a_header_alone_is_said_to_hold_no_rows(place: Path) -> None:
    (place / "none.csv").write_text((place / "alps.csv").read_text().partition("\n")[0] + "\n")
    for arguments in (("none.csv", *OWNERS), ("wanted.csv", "--owner", "none=none.csv")):
        assert refused(*arguments)["what"] == "none.csv holds no rows."
    assert refused("wanted.csv", *OWNERS, "--test", "none.csv")["what"] == "none.csv holds no rows."


def test_a_number_too_large_is_named_and_codes_stay_texts(place: Path) -> None:
    rows = bees(6, 200).astype({"frames": object})
    rows.loc[3, "frames"] = 10**30
    rows.to_csv("large.csv", index=False)
    for arguments in (("large.csv",), ("wanted.csv", "--owner", "large=large.csv")):
        error = refused(*arguments, "--identifier", "hive")
        assert error["what"].startswith(
            "large.csv: column 'frames': row 3 (counted from 0; line 5 of the file) is a number that would be"
        )
        assert "--without frames" in error["advice"]
        assert "000000" not in str(error), "a value is private"
    assert "frames" in made("large.csv", "--without", "frames", "--output", "left out")["left_out"]
    codes = ["1" + "0" * 20 + f"{row % 3}7" for row in range(200)]
    bees(6, 200).assign(frames=codes).to_csv("codes.csv", index=False)
    found = made("codes.csv", "--identifier", "hive", "--output", "of codes")
    assert found["columns"]["frames"] == "category"


def test_a_session_may_have_a_name_that_no_owner_can_have(place: Path) -> None:
    assert Path(made("wanted.csv", *OWNERS, "--name", "consumer")["directory"]).name == "consumer"


def test_two_owners_files_of_one_name_are_both_read(place: Path) -> None:
    for name, kept in (("north", {}), ("south", {"frames": "many"})):
        (place / name).mkdir()
        bees(6, 50).assign(**kept).to_csv(place / name / "hives.csv", index=False)
    owners = ("--owner", "north=north/hives.csv", "--owner", "south=south/hives.csv")
    for each in (owners, (*owners[2:], *owners[:2])):
        assert "different kinds in 'frames'" in refused("wanted.csv", *each)["what"]
    bees(6, 50).drop(columns="frames").to_csv(place / "south" / "hives.csv", index=False)
    assert refused("wanted.csv", *owners)["what"] == f"{place / 'south/hives.csv'} has no column 'frames'."


def test_few_rows_are_the_reason_of_an_epsilon_only_where_they_are(place: Path) -> None:
    for name, more in (("by rows", ()), ("by word", ("--epsilon", "3"))):
        text = Path(made("wanted.csv", *OWNERS, *more, "--output", name)["files"]["cluster"]).read_text()
        assert ("rows are few" in text, "epsilon = 3.0" in text) == (name == "by rows", True)


def test_people_read_what_was_made_and_what_to_paste(place: Path) -> None:
    ended = init("wanted.csv", *OWNERS, "--label", "wintered")
    assert ended.exit_code == 0
    for said in (
        "Rows are compared by weight (number)",
        "No ε covers that",
        "Paste:",
        "$ hushbid run",
        "$ hushbid results",
    ):
        assert said in ended.stdout


def test_long_lists_of_columns_are_short(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).integers(0, 9, (200, 20))
    lines = [",".join(f"pixel_{place}" for place in range(20)), *(",".join(map(str, row)) for row in rows)]
    (tmp_path / "scans.csv").write_text("\n".join(lines))
    ended = CliRunner().invoke(app, ["init", str(tmp_path / "scans.csv"), "--output", str(tmp_path / "s")])
    assert ended.exit_code == 0, ended.stderr
    told = " ".join(ended.stdout.split())
    assert told.count(f"and {20 - MOST_NAMES} more") == 2
    assert "pixel_9" not in told
