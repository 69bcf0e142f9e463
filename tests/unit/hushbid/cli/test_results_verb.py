"""`hushbid results STATE`: a whole purchase by its state directory alone, or an error with a remedy."""

from __future__ import annotations

import json
import os
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import pytest
import tomli_w
from typer.testing import CliRunner

from hushbid.cli.app import app
from hushbid.cluster.file import open_cluster
from hushbid.consumer.store import RESULT_FILE, SETTINGS_FILE, keep_report, keep_result, keep_settings
from hushbid.protocol.config.party import ConsumerFile
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.runtime.telemetry.status_file import Status, process_start, status_path
from hushbid.protocol.transcript.reader import TranscriptReader
from hushbid.report.sources import evaluation_in, transcripts_of
from hushbid.running.purchase import KeptResult, open_purchase
from hushbid.running.simulate import simulate
from tests.conftest import ROOT
from tests.support.picture_sessions import bought_scans

CONFIG = """
state = "state"
validation = "validation.csv"
test = "test.csv"
seed_set = "seeds.csv"

[columns]
label = "ripe"
"""
RUNNING = Status(
    party="consumer",
    role="consumer",
    session="orchard",
    phase="waiting",
    busy=None,
    round=0,
    rounds=12,
    connected=True,
    owners_connected=None,
    owners=None,
    paused=False,
    beat=time.time(),
    pid=os.getpid(),
    process_start=process_start(os.getpid()),
    started=time.time(),
    ready=True,
    finished=False,
    exit_code=None,
    counters={},
)


def orchard(seed: int, rows: int) -> pd.DataFrame:
    """A table about apples, unlike any other test's."""
    draw = np.random.default_rng(seed)
    sugar, sort = draw.random(rows), draw.choice(["elstar", "topaz"], rows)
    ripe = np.where(sugar + 0.2 * (sort == "topaz") > 0.6, "yes", "no")
    return pd.DataFrame({"sugar": sugar.round(4), "sort": sort, "ripe": ripe})


@pytest.fixture(scope="module")
def bought(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A consumer's directory after a session, as an older version left it."""
    place = tmp_path_factory.mktemp("orchard")
    sets = {"hill": (1, 200), "vale": (2, 200), "validation": (3, 60), "seeds": (4, 30), "test": (5, 80)}
    for name, (seed, rows) in sets.items():
        orchard(seed, rows).to_csv(place / f"{name}.csv", index=False)
    (place / "consumer.toml").write_text(CONFIG)
    named = {"label": "ripe"}
    cluster = {
        "session": {"name": "orchard", "points": 40, "allow_nonprivate": True},
        "features": {"gamma": 1.0, "dimension": 32},
        "columns": [
            {"name": "sugar", "kind": "number", "lower": 0.0, "upper": 1.0},
            {"name": "sort", "kind": "category", "categories": ["elstar", "topaz"]},
        ],
        "target": {"mechanism": "exact"},
        "acquisition": {"rule": "tender"},
        "owners": {name: {"data": f"{name}.csv", "columns": named} for name in ("hill", "vale")},
        "consumer": {
            "validation": "validation.csv",
            "seed_set": "seeds.csv",
            "test": "test.csv",
            "columns": named,
        },
    }
    (place / "orchard.txt").write_text(tomli_w.dumps(cluster))
    simulate(open_cluster(place / "orchard.txt"), record=place / "state", report=False, models=False)
    return place


@pytest.fixture
def state(bought: Path, tmp_path: Path) -> Path:
    return shutil.copytree(bought, tmp_path / "party") / "state"


def results(*arguments: str | Path) -> Any:
    return CliRunner().invoke(app, ["results", *map(str, arguments)], env={"COLUMNS": "200"})


def refused(*arguments: str | Path) -> dict[str, str]:
    ended = results(*arguments, "--json")
    assert ended.exit_code == 4, ended.stderr
    found = json.loads(ended.stdout)["error"]
    assert isinstance(found, dict)
    return found


def test_a_state_directory_is_enough_and_the_three_forms_have_the_same_weights(state: Path) -> None:
    ended = results(state, "--json")
    assert ended.exit_code == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert found["directory"] == str(state / "results")
    assert (found["train_why"], found["report_why"]) == ("", "")
    assert found["train"]["own_rows"] == 60
    assert set(found["value"]["owners"]) == {"hill", "vale"}
    assert (found["value_why"], found["value"]["from_seed_set"]) == ("", True)
    assert found["train"]["scores"]["accuracy"] > 0.8
    judged = found["weigh"]["model"]
    assert found["train"]["model"] == judged, "one purchase has one verdict"
    assert found["train"]["scores"]["accuracy"] == pytest.approx(judged["own_and_bought"]["value"])
    files = {name: Path(path) for name, path in found["files"].items()}
    with np.load(files["npz"]) as arrays:
        weights, beside = arrays["weights"], arrays["training_weights"]
    parquet, csv = pq.read_table(files["parquet"]), arrow_csv.read_csv(files["csv"])
    assert parquet.column_names == csv.column_names
    assert parquet.column_names[:3] == ["sugar", "sort", "ripe"]
    for table in (parquet, csv):
        assert table["weight"].to_pylist() == weights.tolist()
        assert table["training_weight"].to_pylist() == beside.tolist()
    training = pq.read_table(files["training"])
    assert training.num_rows == 60 + (beside > 0).sum()
    assert sum(training["weight"].to_pylist()) == pytest.approx(60 + beside.sum())
    assert files["report"].read_bytes().startswith(b"<!DOCTYPE html>")
    assert {path.stat().st_mode & 0o077 for path in files.values()} == {0}, "for its owner alone"


def test_a_run_s_directory_and_the_party_s_lead_to_the_same(state: Path, tmp_path: Path) -> None:
    run = tmp_path / "run" / "parties"
    run.mkdir(parents=True)
    shutil.copytree(state.parent, run / "consumer")
    for place in (state, state.parent, tmp_path / "run"):
        assert open_purchase(place).file.columns.label == "ripe"


def test_people_read_judgement_model_values_and_files(state: Path) -> None:
    ended = results(state, "--output", state.parent / "out")
    assert ended.exit_code == 0, ended.stderr
    for said in (
        "orchard\nThe model is not measurably better",
        "LogisticRegression",
        "Shapley",
        "points.parquet",
    ):
        assert said in ended.stdout
    assert ended.stdout.count("with own rows alone") == 1
    accuracies = [line for line in ended.stdout.splitlines() if line.startswith("  accuracy")]
    assert not accuracies  # the first sentence has the one that decides
    every = results(state, "--details").stdout
    assert len([line for line in every.splitlines() if line.startswith("  accuracy")]) >= 3
    assert (state.parent / "out" / "points.csv").is_file()


def test_another_model_has_a_verdict_of_its_own(state: Path) -> None:
    said = results(state, "--estimator", "GaussianNB").stdout
    assert said.count("with own rows alone") == 2
    assert "\nWith GaussianNB:\nThe model " in said


def test_a_report_takes_the_directories_that_results_take(state: Path, tmp_path: Path) -> None:
    output = str(tmp_path / "page.html")
    ended = CliRunner().invoke(app, ["report", str(state.parent), "--output", output, "--json"])
    assert ended.exit_code == 0, ended.stderr
    told = {each["party"] for each in json.loads(ended.stdout)["figures"]["transcripts"]}
    assert told == {"consumer", "curator", "hill", "vale"}
    run = tmp_path / "run" / "parties"
    run.mkdir(parents=True)
    with pytest.raises(ConfigError, match="has no transcript"):
        transcripts_of(tmp_path / "run")
    shutil.copytree(state.parent, run / "consumer")
    names = sorted(path.name for path in state.glob("*.transcript"))
    for place in (state, tmp_path / "run"):
        assert [path.name for path in transcripts_of(place)] == names


def test_a_report_of_a_directory_has_the_judgement_that_lies_there(tmp_path: Path) -> None:
    party, run = tmp_path / "party", tmp_path / "run"
    (party / "state").mkdir(parents=True)
    run.mkdir()
    (party / "state" / "consumer.transcript").touch()
    assert evaluation_in(party) is evaluation_in(run) is None
    for kept in (party / "state" / RESULT_FILE, run / "evaluation.json"):
        kept.touch()
    assert evaluation_in(party) == evaluation_in(party / "state") == party / "state" / RESULT_FILE
    assert evaluation_in(run) == run / "evaluation.json"


def test_a_consumer_s_result_names_the_report_beside_it(state: Path) -> None:
    session = open_purchase(state).session
    keep_result(state, session, {"role": "consumer", "report": None})
    keep_report(state / "report.html")
    kept = json.loads((state / RESULT_FILE).read_text())
    assert kept["report"] == str(state / "report.html")
    assert kept["identifier"] == session.identifier.hex()


def test_images_are_written_to_all_files_but_csv(tmp_path: Path) -> None:
    bought_scans(tmp_path)
    config = 'state = "record"\nvalidation = "validation.npz"\nseed_set = "seed.npz"\n'
    (tmp_path / "consumer.toml").write_text(config)
    found = json.loads(results(tmp_path / "record", "--json").stdout)
    assert pq.read_table(found["files"]["parquet"])["scan"].to_pylist()[0] is not None
    assert "csv" not in found["files"]
    assert found["csv_why"] == "CSV holds no images, and column 'scan' has some."
    assert f"No CSV was written: {found['csv_why']}" in results(tmp_path / "record").stdout


def with_labels(state: Path, labels: Any, **tables: Any) -> None:
    """Another delivery, with these labels and other tables of the consumer's."""
    with np.load(state / "delivered.npz") as archive:
        arrays = dict(archive)
    np.savez(state / "delivered.npz", **(arrays | {"labels": labels(arrays)}))
    for name, table in tables.items():
        table.to_csv(state.parent / f"{name}.csv", index=False)


def test_labels_that_a_spreadsheet_takes_for_formulas_are_warned_of(state: Path) -> None:
    with_labels(state, lambda arrays: np.where(arrays["labels"] == "yes", "=yes", "no"))
    ended = results(state)
    count = (pq.read_table(state / "results" / "points.parquet")["ripe"].to_numpy() == "=yes").sum()
    assert f"points.csv for formulas, and act on them: {count} of ripe." in ended.stderr
    assert json.loads(results(state, "--json").stdout)["formulas"] == {"ripe": count}


@pytest.mark.parametrize("rows", [60, 4])
def test_whole_amounts_are_learned_by_the_regressor_that_judges_them(state: Path, rows: int) -> None:
    """Four own rows and no test rows are too few to judge by, and enough to learn from."""
    tables = {name: orchard(seed, 60) for name, seed in (("validation", 3), ("test", 5))}
    for table in tables.values():
        table["ripe"] = (table["sugar"] * 1000).round().astype(int)
    with_labels(
        state,
        lambda arrays: np.rint(arrays["features"][:, 0] * 1000).astype(np.int64),
        validation=tables["validation"][:rows],
        test=tables["test"],
    )
    if rows < 60:
        (state.parent / "consumer.toml").write_text(CONFIG.replace('test = "test.csv"\n', ""))
    found = json.loads(results(state, "--json").stdout)
    assert (found["train_why"], found["train"]["kind"], found["train"]["estimator"]) == (
        "",
        "regressor",
        "Ridge",
    )
    assert found["weigh"]["model"]["metric"] == ("r2" if rows == 60 else None)


def test_owners_are_valued_from_a_drawn_seed_set_too(state: Path) -> None:
    draw = np.random.default_rng(6)
    drawn = np.column_stack([draw.random(30), np.eye(2)[draw.integers(0, 2, 30)]])
    np.savez(state / "seed-set.npz", features=drawn, session=np.zeros(32, dtype=np.uint8))
    config = state.parent / "consumer.toml"
    config.write_text(config.read_text().replace('seed_set = "seeds.csv"', "seed_points = 30"))
    found = json.loads(results(state, "--json").stdout)
    assert (found["value_why"], found["value"]["from_seed_set"]) == ("", True)


def test_what_the_consumer_kept_needs_no_file_beside_it(state: Path, tmp_path: Path) -> None:
    file = ConsumerFile.model_validate(
        {"state": state, "validation": state.parent / "validation.csv", "seed_points": 30, "seed": 3}
    )
    keep_settings(file)
    (state.parent / "consumer.toml").unlink()
    found = open_purchase(state)
    assert found.file == file
    assert found.result is None
    recorded = json.loads((ROOT / "tests/golden/results/consumer.json").read_text(encoding="utf-8"))
    keep_result(state, found.session, recorded)
    identifier = found.session.identifier.hex()
    assert open_purchase(state).result == KeptResult.from_json({**recorded, "identifier": identifier})


def test_a_result_of_another_session_is_refused_with_what_mends_it(state: Path) -> None:
    (state / RESULT_FILE).write_text(json.dumps({"identifier": "00" * 16, "role": "consumer"}))
    error = refused(state)
    assert error["kind"] == "DataError"
    assert "is of another session" in error["what"]
    assert "hushbid consumer" in error["advice"]
    for damaged in ("[]", "{", '"text"'):
        (state / RESULT_FILE).write_text(damaged)
        assert "damaged" in refused(state)["what"]


def test_an_incomplete_result_is_damage_and_no_bug(state: Path) -> None:
    keep_result(state, open_purchase(state).session, {"role": "consumer", "p": 40})
    assert "is damaged" in refused(state)["what"]
    assert results(state).exit_code == 4


def test_a_report_takes_no_result_of_another_session(state: Path) -> None:
    transcript, result = state / "consumer.transcript", state / RESULT_FILE
    keep_result(state, open_purchase(state).session, {"role": "consumer"})
    arguments = ["report", str(transcript), "--evaluation", str(result), "--output", str(state / "page.html")]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    result.write_text(json.dumps({"identifier": "00" * 16, "role": "consumer"}))
    ended = CliRunner().invoke(app, [*arguments, "--json"])
    assert ended.exit_code == 4
    assert "of another session" in json.loads(ended.stdout)["error"]["what"]


def test_a_session_that_still_runs_is_refused_with_what_shows_it(state: Path) -> None:
    RUNNING.write(status_path(state, "consumer"))
    error = refused(state)
    assert "is still running" in error["what"]
    assert error["advice"] == f"`hushbid status --watch {state}` shows it until it is over."
    replace(RUNNING, process_start=1).write(status_path(state, "consumer"))
    error = refused(state)
    assert "was stopped before its end" in error["what"]
    assert "`hushbid consumer`" in error["advice"]
    replace(RUNNING, finished=True, exit_code=0).write(status_path(state, "consumer"))
    assert open_purchase(state).delivered.is_file()


def test_directories_that_have_no_results_are_told_apart(state: Path, tmp_path: Path) -> None:
    assert "is no directory" in refused(tmp_path / "nowhere")["what"]
    (tmp_path / "empty").mkdir()
    assert "no session has begun" in refused(tmp_path / "empty")["what"]
    owner = tmp_path / "owner"
    owner.mkdir()
    shutil.copy(state / "hill.transcript", owner)
    assert "state directory of hill" in refused(owner)["what"]
    (state / "delivered.npz").unlink()
    assert "delivered no points" in refused(state)["what"]


def test_a_private_file_that_is_nowhere_is_asked_for(state: Path) -> None:
    config = (state.parent / "consumer.toml").rename(state.parent.parent / "elsewhere.toml")
    assert "--config" in refused(state)["advice"]
    (state / SETTINGS_FILE).write_text("{}")
    assert "--config" in refused(state)["advice"]
    moved = config.rename(state.parent / "mine")
    assert open_purchase(state, moved).file.columns.label == "ripe"


def test_an_output_that_cannot_be_is_refused_before_the_work(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hushbid.running.purchase.weigh", lambda _: pytest.fail("this is costly"))
    assert "/proc" in refused(state, "--output", "/proc/hushbid")["what"]


def test_a_table_that_does_not_fit_is_named(state: Path) -> None:
    orchard(3, 60).drop(columns="sort").to_csv(state.parent / "validation.csv", index=False)
    error = refused(state)
    assert error["kind"] == "DataError"
    assert "sort" in error["what"]


def test_the_transcript_decides_which_session_it_is(state: Path) -> None:
    with TranscriptReader(state / "consumer.transcript") as reader:
        assert open_purchase(state).session.identifier.hex() == reader.header.session
