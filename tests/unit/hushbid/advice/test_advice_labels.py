"""`hushbid advise`: whether the choice uses labels, decided by public rows or by options."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from hushbid.advice.labels import LabelTrial, labels_given, labels_of, tried
from hushbid.advice.proposal import Advice, advise
from hushbid.advice.trials import Bounds, Request
from hushbid.cli.app import app
from hushbid.protocol.config.labels import LabelsSection
from hushbid.protocol.config.loading import load_toml
from hushbid.protocol.config.session import DraftSession, SessionFile
from hushbid.protocol.data import Dataset
from hushbid.protocol.errors import ConfigError, DataError
from tests.unit.hushbid.advice.test_advice import no_alternatives

__all__ = ["no_alternatives"]

RNG = np.random.default_rng(0)
CLASSES = LabelsSection(classes=["high", "low"])
PAYS = LabelTrial(metric="accuracy", own=0.7, by_features=0.8, by_labels=0.9, gains=(0.1, 0.1, 0.1))
LOSES = LabelTrial(metric="accuracy", own=0.7, by_features=0.8, by_labels=0.8, gains=(0.1, 0.1, -0.2))


def rows(count: int, name: str = "rows", *, labelled: bool = True) -> Dataset:
    points = RNG.random((count, 3))
    labels = np.where(points[:, 0] > 0.5, "high", "low")
    return Dataset.from_arrays(name, points, labels if labelled else None)


VALIDATION, PUBLIC = rows(60, "validation"), rows(900, "public")


def made(**changes: Any) -> tuple[Advice, SessionFile]:
    known: dict[str, Any] = {
        "validation": VALIDATION,
        "bounds": Bounds(0.0, 1.0),
        "owners": {"north": 400, "south": 200},
        "epsilon": 1.0,
        "gamma": 4.0,
        "rehearse": False,
    }
    return advise(Request(**known | changes), say=lambda _line: None)


def advised(**changes: Any) -> Advice:
    return made(**changes)[0]


def proposed(advice: Advice) -> tuple[Any, str]:
    return next((each.value, each.source) for each in advice.proposals if each.setting == "labels")


def test_without_public_labels_they_have_no_part_unless_it_is_asked_for() -> None:
    assert proposed(advised()) == ("no part", "public")
    assert made()[1].labels is None
    assert proposed(advised(public=rows(200, labelled=False))) == ("no part", "public")
    asked, file = made(choice="labels", labels=CLASSES)
    assert proposed(asked) == ("a part", "given")
    assert file.labels == CLASSES
    assert proposed(advised(choice="features", public=PUBLIC)) == ("no part", "given")
    unlabelled = advised(validation=rows(60, labelled=False))
    assert "labels" not in [each.setting for each in unlabelled.proposals]


@pytest.mark.usefixtures("no_alternatives")
@pytest.mark.parametrize(
    ("trial", "expected"), [(PAYS, "a part"), (LOSES, "no part"), ("too few", "no part")]
)
def test_public_rows_decide(monkeypatch: pytest.MonkeyPatch, trial: Any, expected: str) -> None:
    monkeypatch.setattr("hushbid.advice.proposal.tried", lambda *_: trial)
    advice, file = made(public=PUBLIC, rehearse=True, epsilon=3.0, dimension=4, points=4)
    assert proposed(advice) == (expected, "public")
    assert advice.labels is (None if isinstance(trial, str) else trial)
    assert file.labels == (labels_of(PUBLIC) if expected == "a part" else None)
    assert advice.disclosed == []
    # With labels in the choice the proposal is rehearsed with them.
    assert advice.own is not None


def test_what_decides_does_not_follow_from_the_validation_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two validation sets of one size, with other labels: the same plays, of which one is enough to see."""
    _, file = made(points=20)
    found = tried(file, CLASSES, PUBLIC, len(VALIDATION), lambda _: None)
    assert isinstance(found, LabelTrial)
    assert found.own > 0.6
    assert len(found.gains) == 3
    assert "plays on public rows" in found.sentence()
    monkeypatch.setattr("hushbid.advice.labels.PLAYS", 1)
    again = tried(file, CLASSES, PUBLIC, len(rows(60)), lambda _: None)
    assert isinstance(again, LabelTrial)
    assert again.gains == found.gains[:1]


def test_too_few_public_rows_decide_nothing() -> None:
    said = tried(made()[1], CLASSES, rows(60), 30, lambda _: None)
    assert isinstance(said, str)
    assert "too few" in said


@pytest.mark.parametrize(
    ("changes", "error", "expected"),
    [
        ({"choice": "labels"}, ConfigError, "The set of labels is missing"),
        (
            {"choice": "labels", "validation": rows(60, labelled=False), "labels": CLASSES},
            DataError,
            "no labels",
        ),
        ({"choice": "labels", "labels": LabelsSection(classes=["high", "other"])}, DataError, "no class"),
    ],
)
def test_what_cannot_be(changes: dict[str, Any], error: type[Exception], expected: str) -> None:
    with pytest.raises(error, match=expected):
        advised(**changes)


def test_which_labels_there_are() -> None:
    assert labels_given("3, 4,-7", None) == LabelsSection(classes=[3, 4, -7])
    assert labels_given("no,yes", None) == LabelsSection(classes=["no", "yes"])
    assert labels_given(None, "0,500.5") == LabelsSection(lower=0.0, upper=500.5)
    assert labels_given(None, None) is None
    for classes, range_ in (
        ("yes", None),
        ("a,a", None),
        (None, "5"),
        (None, "a,b"),
        (None, "5,1"),
        ("1,2", "1,2"),
    ):
        with pytest.raises(ConfigError):
            labels_given(classes, range_)
    amounts = Dataset.from_arrays("rows", np.zeros((3, 1)), np.array([0.0, 5.0, 10.0]))
    assert labels_of(amounts) == LabelsSection(lower=-1.0, upper=11.0)
    names = Dataset.from_arrays("rows", np.zeros((3, 1)), np.array(["a", "b", "c"]))
    assert labels_of(names) is None
    assert labels_of(rows(9, labelled=False)) is None


def test_the_file_that_is_written_has_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    labels = VALIDATION.labels
    assert labels is not None
    np.savez("validation.npz", features=VALIDATION.features, labels=labels)
    words = [
        "advise",
        "validation.npz",
        "--lower",
        "0",
        "--upper",
        "1",
        "--owners",
        "400,200",
        "--gamma",
        "4",
    ]
    words += ["--epsilon", "1", "--no-rehearsal", "--choice", "labels", "--classes", "high,low"]
    done = CliRunner().invoke(app, [*words, "--write", "session.toml", "--json"])
    assert done.exit_code == 0, done.output
    assert load_toml(DraftSession, Path("session.toml")).labels == CLASSES
    assert json.loads(done.stdout)["labels"] is None
    shown = CliRunner().invoke(app, words)
    assert "a part" in shown.stdout
    Path("cluster.toml").write_text(
        'session = { name = "ours" }\nacquisition = { rule = "sealed" }\n'
        '[consumer]\nvalidation = "v.npz"\nseed_points = 5\n[owners.north]\ndata = "n.npz"\n',
        encoding="utf-8",
    )
    done = CliRunner().invoke(app, [*words, "--into", "cluster.toml"])
    assert done.exit_code == 0, done.output
    assert "[labels]" in Path("cluster.toml").read_text(encoding="utf-8")
