"""`hushbid.procure` takes its tables in memory: no file is written, and the result is that of files."""

from __future__ import annotations

import builtins
import io
import os
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import tomli_w
from sklearn.datasets import load_wine

import hushbid
from hushbid import Procured, Schema
from hushbid.cluster.file import open_cluster
from hushbid.consumer.delivered import delivered_table
from hushbid.protocol.errors import ConfigError
from hushbid.running.simulate import simulate
from hushbid.tables.frames import as_arrow

KINDS = ["barolo", "grignolino", "barbera"]
OWNERS = {"Hôpital Nord": "hopital-nord", "zeta": "zeta", "alpha": "alpha"}
"""Names as people have them, and those of the roster, whose order is another."""


def wines() -> pd.DataFrame:
    """178 wines, some cells of which are empty, with labels that are text."""
    wine, generator = load_wine(), np.random.default_rng(3)
    names = [f"at {place}" for place in range(5)]
    values = np.where(generator.random((178, 5)) < 0.1, np.nan, wine.data[:, :5])
    frame = pd.DataFrame(values, columns=names).assign(kind=[KINDS[each] for each in wine.target])
    return frame.iloc[generator.permutation(178)].reset_index(drop=True)


WINES = wines()
SCHEMA = Schema.of(
    [
        {
            "name": name,
            "kind": "number",
            "lower": float(WINES[name].min()),
            "upper": float(WINES[name].max()),
            "missing": float(WINES[name].min()),
        }
        for name in WINES.columns[:5]
    ]
)
SEEDS, TEST = WINES[:15], WINES[45:85]
VALIDATION = WINES[15:45].assign(kind=WINES.kind[15:45].where(np.arange(30) % 3 > 0, None))
"""A third of its rows has no label."""
SOLD = {name: WINES[85 + place :: 3] for place, name in enumerate(OWNERS)}
TIMES = {"wall_seconds", "rounds_per_second"}
PLACES = {"transcripts", "data", "directory"}


def bought(**changes: Any) -> Procured:
    given: dict[str, Any] = {
        "owners": SOLD, "validation": VALIDATION, "test": TEST, "seed_set": SEEDS, "schema": SCHEMA,
        "points": 10, "epsilon": 5.0, "label": "kind", "gamma": 1.0, "seed": 2, "rehearse": False,
    } | changes  # fmt: skip
    return hushbid.procure(**given)


def cluster_of_files(place: Path, rule: str) -> Path:
    """The same procurement as files."""
    tables = {"validation": VALIDATION, "seeds": SEEDS, "test": TEST}
    for name, frame in (tables | {OWNERS[name]: frame for name, frame in SOLD.items()}).items():
        labels = frame.kind.fillna("").to_numpy(dtype=np.str_)
        np.savez(
            place / f"{name}.npz",
            features=SCHEMA.encode(as_arrow(frame, name)),
            labels=labels,
            labelled=labels != "",
        )
    release = {"mechanism": "filtered-gaussian", "epsilon": 5.0}
    sections = {
        "session": {"name": "procured", "points": 10, "allow_nonprivate": True},
        "features": {
            "gamma": 1.0, "columns": SCHEMA.width, "lower": list(SCHEMA.lower), "upper": list(SCHEMA.upper),
        } | ({"seed": 2} if rule == "ask-all" else {}),
        "target": release | {"neighbours": "substitute-one"},
        "summary": release | {"neighbours": "add-remove-one"},
        "acquisition": {"rule": rule},
        "labels": {"classes": KINDS},
        "owners": {
            handle: {"data": f"{handle}.npz"} | ({} if handle == name else {"display": name})
            for name, handle in OWNERS.items()
        },
        "consumer": {
            "validation": "validation.npz", "seed_set": "seeds.npz", "test": "test.npz", "seed": 2,
        },
    }  # fmt: skip
    path = place / "cluster.toml"
    path.write_text(tomli_w.dumps(sections), encoding="utf-8")
    return path


@pytest.mark.parametrize("rule", ["tender", "ask-all", "sealed", "blind"])
def test_the_result_is_that_of_files_to_the_bit(rule: str, tmp_path: Path) -> None:
    found = bought(settings={"acquisition.rule": rule, "labels.classes": KINDS})
    cluster = open_cluster(cluster_of_files(tmp_path, rule))
    expected = simulate(cluster, record=tmp_path / "kept", report=False)
    ours, theirs = found.result.as_json(), expected.as_json()
    assert {name for name in theirs if ours[name] != theirs[name]} <= TIMES | PLACES | {"verdict_why"}
    assert expected.data is not None
    table = delivered_table(SCHEMA, expected.data, label="kind").to_pandas()
    shown = {handle: name for name, handle in OWNERS.items()}
    pd.testing.assert_frame_equal(
        found.points, table.assign(owner=table.owner.map(shown)), check_exact=True, check_dtype=False
    )
    assert found.weights.tolist() == table.weight.tolist()


@pytest.fixture
def nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever writes a file or makes a directory fails, once pytest has made its own."""
    opened, opened_low = io.open, os.open

    def open_(file: Any, mode: str = "r", *rest: Any, **named: Any) -> Any:
        assert not {*mode} & {*"wax+"}, f"{file} is written"
        return opened(file, mode, *rest, **named)

    def open_low(path: Any, flags: int, *rest: Any, **named: Any) -> int:
        assert not flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT), f"{path} is written"
        return opened_low(path, flags, *rest, **named)

    def mkdir(path: Any, *_rest: Any, **_named: Any) -> None:
        raise AssertionError(f"{path} is made")

    monkeypatch.setattr(builtins, "open", open_)
    monkeypatch.setattr(io, "open", open_)
    monkeypatch.setattr(os, "open", open_low)
    monkeypatch.setattr(os, "mkdir", mkdir)
    monkeypatch.setattr(tempfile, "tempdir", None)  # looking for one writes a file


@pytest.mark.usefixtures("nothing_is_written")
@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"rehearse": True, "anyway": True}, id="rehearsed"),
        pytest.param({"seed_set": None, "seed_points": 30, "label": None}, id="a drawn seed set"),
        pytest.param({"settings": {"acquisition.rule": "blind"}, "label": None}, id="blind"),
    ],
)
def test_no_file_is_written(changes: dict[str, Any]) -> None:
    assert len(bought(**changes).points) == 10


@pytest.mark.usefixtures("nothing_is_written")
def test_whoever_looks_for_written_files_finds_those_of_a_directory(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=re.escape(str(tmp_path))):
        bought(directory=tmp_path / "kept")


@pytest.mark.parametrize(
    "setting",
    [
        pytest.param({"consumer.validation": "/other.npz"}, id="validation"),
        pytest.param({"consumer.seed_set": "/other.npz"}, id="seed set"),
        pytest.param({"consumer.seed_points": 5}, id="seed points"),
        pytest.param({"consumer.test": "/other.npz"}, id="test"),
        pytest.param({"owners.zeta": {"data": "/other.npz"}}, id="owner"),
        pytest.param({"dataset.name": "digits"}, id="dataset"),
    ],
)
def test_settings_cannot_put_other_data_in_place_of_the_arguments(setting: dict[str, Any]) -> None:
    [key] = setting
    with pytest.raises(ConfigError) as caught:
        bought(settings=setting)
    assert caught.value.what == f"procure: the data are given, and the setting {key!r} is about others."


def test_a_name_that_no_file_could_hold_is_refused_as_an_error_of_the_arguments() -> None:
    with pytest.raises(ConfigError, match=r"procure: owners\.a\.display: should be a valid string"):
        bought(owners={"a\ud800": SOLD["zeta"]})


def rows(count: int, seed: int) -> dict[str, Any]:
    """Rows with a number and an amount as their label."""
    generator = np.random.default_rng(seed)
    return {"a": generator.random(count), "y": generator.random(count)}


NUMBER = Schema.of([{"name": "a", "kind": "number", "lower": 0.0, "upper": 1.0}])


def test_what_a_caller_changes_meanwhile_changes_no_label_that_is_bought() -> None:
    owner = rows(40, 1)

    def changed(_round: int, _points: int) -> None:
        owner["y"][:] = 77.0

    bought = hushbid.procure(
        owners={"north": owner, "south": rows(40, 2)}, validation=rows(20, 3), seed_set=rows(10, 5),
        schema=NUMBER, points=8, epsilon=5.0, label="y", gamma=1.0, seed=1, rehearse=False, progress=changed,
        settings={"acquisition.rule": "ask-all"},
    )  # fmt: skip
    assert np.all(owner["y"] == 77.0)
    assert 77.0 not in np.asarray(bought.points["y"], dtype=float)


def test_no_working_directory_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    bought = hushbid.procure(
        owners={"north": rows(40, 1)}, validation=rows(20, 3), seed_set=rows(10, 5), schema=NUMBER,
        points=4, epsilon=5.0, gamma=1.0, rehearse=False,
    )  # fmt: skip
    assert len(bought.weights) == 4


@pytest.mark.parametrize("label", ["owner", "weight", "round", "training_weight", "identifier"])
def test_a_label_may_have_the_name_of_a_column_that_is_added(label: str) -> None:
    def table(count: int, seed: int) -> dict[str, Any]:
        found = rows(count, seed)
        return {"a": found["a"], label: np.where(found["y"] > 0.5, "high", "low")}

    bought = hushbid.procure(
        owners={"north": table(60, 1)}, validation=table(40, 3), seed_set=table(10, 5), schema=NUMBER,
        points=8, epsilon=5.0, label=label, gamma=1.0, rehearse=False,
    )  # fmt: skip
    assert set(bought.points.column(label).to_pylist()) <= {"high", "low"}
    assert bought.training is not None
    assert set(bought.training.column(label).to_pylist()) == {"high", "low"}
    assert f"{label}_" in bought.points.column_names or label == "identifier"  # rows have no identifiers


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("settings", ["session.batch=5"]),
        ("settings", {1: 2}),
        ("label", ["y"]),
        ("directory", 3),
        ("directory", "a\0b"),
        ("progress", 3),
        ("seed_points", True),
        ("seed_points", 10**9),
        pytest.param("seed_points", 10**5000, id="seed points of 5001 digits"),
        ("seed", True),
        pytest.param("seed", 10**5000, id="a seed of 5001 digits"),
    ],
)
def test_an_argument_of_another_type_is_named(argument: str, value: Any) -> None:
    given: dict[str, Any] = {
        "owners": {"north": rows(40, 1)}, "validation": rows(20, 3), "schema": NUMBER, "points": 4,
        "epsilon": 5.0, "gamma": 1.0, "rehearse": False, "seed_points": 10, argument: value,
    }  # fmt: skip
    with pytest.raises(ConfigError, match=argument.replace("_", ".")):
        hushbid.procure(**given)
