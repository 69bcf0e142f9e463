"""The replay of a run shows the consumer's files: wanted rows, and scores that end in the results'."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
import tomli_w
from typer.testing import CliRunner

from hushbid.cli.app import app
from hushbid.consumer.store import RESULT_FILE, SETTINGS_FILE
from hushbid.protocol.names import CONSUMER
from hushbid.replay.facts import Facts, PointPicture, ScoreCourse
from hushbid.replay.merging import recording_of
from hushbid.replay.own import ReplayFiles
from hushbid.replay.scores import MOST_TRAINED
from tests.unit.hushbid.replay.test_replay_page import unpacked

Weights = npt.NDArray[np.float64]
ROUNDS, BATCH, WANTED = 25, 2, 30


def orchard(seed: int, rows: int) -> pd.DataFrame:
    draw = np.random.default_rng(seed)
    sugar, size = draw.random((2, rows)).round(4)
    ripe = np.where(sugar + 0.4 * size + 0.2 * draw.normal(size=rows) > 0.7, "yes", "no")
    return pd.DataFrame({"sugar": sugar, "size": size, "ripe": ripe})


def verb(*arguments: object) -> dict[str, Any]:
    ended = CliRunner().invoke(app, [*map(str, arguments), "--json"])
    assert ended.exit_code == 0, ended.output
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a run with a replay."""
    place = tmp_path_factory.mktemp("orchard")
    sets = {"hill": (1, 200), "vale": (2, 200), "validation": (3, WANTED), "seeds": (4, 12), "test": (5, 150)}
    for name, (seed, rows) in sets.items():
        orchard(seed, rows).to_csv(place / f"{name}.csv", index=False)
    named = {"label": "ripe"}
    cluster = {
        "session": {
            "name": "orchard", "points": ROUNDS * BATCH, "batch": BATCH, "allow_nonprivate": True,
        },
        "features": {"gamma": 1.0, "columns": 2, "dimension": 32, "lower": 0.0, "upper": 1.0},
        "target": {"mechanism": "exact"},
        "summary": {"mechanism": "exact"},
        "acquisition": {"rule": "sealed"},
        "owners": {name: {"data": f"{name}.csv", "columns": named} for name in ("hill", "vale")},
        "consumer": {
            "validation": "validation.csv", "seed_set": "seeds.csv", "test": "test.csv", "columns": named,
        },
    }  # fmt: skip
    (place / "orchard.toml").write_text(tomli_w.dumps(cluster))
    verb("run", place / "orchard.toml", "--directory", place / "runs", "--no-rehearsal", "--replay")
    return place / "runs" / "orchard-1"


@pytest.fixture
def copied(run: Path, tmp_path: Path) -> Path:
    """Its consumer's state directory, to be changed; rows stay where they were."""
    return shutil.copytree(run / "parties" / CONSUMER / "state", tmp_path / "state")


def facts(*places: Path, files: bool = True) -> Facts:
    given = ReplayFiles.at(places, files=files)
    return recording_of(given.transcripts, given.own).facts


def scores(found: Facts) -> ScoreCourse:
    assert isinstance(found.scores, ScoreCourse), found.scores
    return found.scores


def test_the_page_of_a_run_has_its_scores_and_wanted_rows(run: Path, tmp_path: Path) -> None:
    page = (run / "replay.html").read_text(encoding="utf-8")
    told = unpacked(page)
    results = json.loads((run / "parties" / CONSUMER / "state" / RESULT_FILE).read_text())["model"]
    course = told["scores"]
    assert course["metric"] == results["metric"] == "accuracy"
    assert course["value"][0] == pytest.approx(results["own"]["value"])
    for name in ("value", "low", "high"):
        assert course[name][-1] == pytest.approx(results["own_and_bought"][name])
    assert (course["points"][0], course["points"][-1]) == (0, ROUNDS * BATCH)
    assert course["points"][1:] == [BATCH * number for number in course["round"][1:]], "at ends of rounds"
    assert len(course["points"]) == MOST_TRAINED + 1, "the bound, and none"
    assert course["told"] == [
        f"LogisticRegression, trained with {WANTED} own rows and the points chosen so far, judged on 150 "
        "test rows. Each bought point has the weight that it has in the results’ model. Only the consumer "
        "can compute it, from its files."
    ]
    points = told["points_drawn"]
    assert len(points["wanted"]["x"]) == points["wanted"]["of"] == WANTED
    assert f"the {WANTED} rows of the validation set" in points["told"][0]
    # The target is exact: the released mean is that of the rows.
    middle = [np.mean(points["wanted"][axis]) for axis in "xy"]
    assert points["mean"] == pytest.approx(middle, abs=1e-3)
    assert "and the consumer&#x27;s files" in page
    output = tmp_path / "again.html"
    verb("replay", run, "--output", output)
    assert output.read_text(encoding="utf-8") == page, "the verb makes the same page of the directory"


def test_transcripts_alone_have_neither(run: Path, tmp_path: Path) -> None:
    output = tmp_path / "page.html"
    verb("replay", run, "--output", output, "--transcripts-only")
    page = output.read_text(encoding="utf-8")
    told = unpacked(page)
    assert "transcripts alone were given" in told["scores"]
    assert told["points_drawn"]["wanted"]["x"] == []
    assert told["points_drawn"]["mean"] is not None
    assert "consumer&#x27;s files" not in page
    files = sorted(run.glob("parties/*/state/*.transcript"))
    assert facts(*files) == facts(run, files=False)


def test_the_consumer_s_directory_is_enough_for_scores(run: Path, copied: Path) -> None:
    found = facts(copied)
    page = unpacked((run / "replay.html").read_text(encoding="utf-8"))
    assert json.loads(json.dumps(found.as_json()))["scores"] == page["scores"]
    assert isinstance(found.points_drawn, PointPicture)
    assert len(found.points_drawn.wanted.x) == WANTED
    assert found.points_drawn.offered.x == ()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        (SETTINGS_FILE, "settings.json is not beside its transcript"),
        ("delivered.npz", "no training weights of these points"),
    ],
)
def test_a_file_that_is_gone_is_told(name: str, why: str, copied: Path) -> None:
    (copied / name).unlink()
    found = facts(copied)
    assert isinstance(found.scores, str)
    assert why in found.scores
    assert found.from_files == (name == "delivered.npz"), "wanted rows are known by the settings"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"validation": "test"}, "are others than those of the session"),
        ({"validation": "nowhere"}, "cannot be read"),
        ({"test": "nowhere"}, "cannot be read"),
        (None, "is damaged, or of another version"),
    ],
)
def test_rows_that_are_not_the_session_s_are_not_shown(
    change: dict[str, str] | None, why: str, copied: Path
) -> None:
    settings = json.loads((copied / SETTINGS_FILE).read_text())
    for name, other in (change or {}).items():
        settings[name] = str(Path(settings["validation"]).with_name(f"{other}.csv"))
    (copied / SETTINGS_FILE).write_text("{" if change is None else json.dumps(settings))
    found = facts(copied)
    assert isinstance(found.scores, str)
    assert why in found.scores
    assert str(copied.parent) not in found.scores
    assert not found.from_files


def test_other_test_rows_than_those_of_the_results_are_told(run: Path, copied: Path) -> None:
    settings = json.loads((copied / SETTINGS_FILE).read_text())
    settings["test"] = settings["validation"]
    (copied / SETTINGS_FILE).write_text(json.dumps(settings))
    told = scores(facts(copied)).told
    assert told[-1].startswith("The last figure is not the results’")
    (copied / RESULT_FILE).unlink()
    assert scores(facts(copied)).told[-1] == (
        "No results are beside its transcript to compare the last figure with."
    )


@pytest.mark.parametrize(
    "changed",
    [
        lambda weights: weights[:-1],
        lambda weights: np.append(weights, 1.0),
        lambda weights: weights[0],
        lambda weights: np.tile(weights, (2, 1)),
        lambda weights: weights.astype(str),
        lambda weights: np.full_like(weights, np.nan),
        lambda weights: -weights - 1.0,
    ],
    ids=["one less", "one more", "one number", "two rows", "text", "not a number", "negative"],
)
def test_training_weights_that_are_none_give_no_score(
    changed: Callable[[Weights], Weights], copied: Path
) -> None:
    path = copied / "delivered.npz"
    with np.load(path) as file:
        arrays = dict(file)
    arrays["training_weights"] = changed(arrays["training_weights"])
    np.savez(path, **arrays)
    told = facts(copied).scores
    assert isinstance(told, str)
    assert "has no training weights of these points" in told


def test_results_that_are_no_plain_file_are_not_waited_for(copied: Path) -> None:
    (copied / RESULT_FILE).unlink()
    os.mkfifo(copied / RESULT_FILE)
    assert (
        "No results are beside its transcript to compare the last figure with." in scores(facts(copied)).told
    )


def test_results_judged_on_other_rows_are_told(copied: Path) -> None:
    settings = json.loads((copied / SETTINGS_FILE).read_text())
    settings["test"] = None
    (copied / SETTINGS_FILE).write_text(json.dumps(settings))
    assert any("judged on other rows" in line for line in scores(facts(copied)).told)
