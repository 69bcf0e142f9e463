"""Sections and settings in memory have the meaning that a file of them has."""

from __future__ import annotations

import tomllib
from collections import OrderedDict
from datetime import date
from decimal import Decimal
from enum import Enum, IntEnum
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w

from hushbid.cluster.file import made_cluster, open_cluster
from hushbid.cluster.settings import plain
from hushbid.protocol.errors import ConfigError, DataError


class Word(str, Enum):  # noqa: UP042 - what people have
    BLIND = "blind"


class Count(IntEnum):
    FIVE = 5


SECTIONS: dict[str, Any] = {
    "session": {"name": "made", "points": 20, "allow_nonprivate": True},
    "features": {"map": "paired", "seed": 3},
    "target": {"mechanism": "filtered-gaussian", "epsilon": 2.0, "neighbours": "substitute-one"},
    "summary": {"mechanism": "filtered-gaussian", "epsilon": 2.0, "neighbours": "add-remove-one"},
    "acquisition": {"rule": "ask-all"},
    "dataset": {"name": "digits", "seed": 7},
}


@pytest.mark.parametrize(
    "value",
    [
        True,
        7,
        -0.0,
        1e300,
        float("inf"),
        "ü \x00 \r\n \\ \"q\" '''",
        date(2026, 11, 28),
        Word.BLIND,
        Count.FIVE,
        Decimal("3"),
        (1, "two", 3.0),
        [[], {}, [True]],
        {"": 2, "a b": {"c": 1}},
        OrderedDict(north=2.0, south=(1, 2)),
    ],
    ids=repr,
)
def test_a_value_of_python_is_what_a_file_would_give(value: Any) -> None:
    read = tomllib.loads(tomli_w.dumps({"value": value}))["value"]
    found = plain(value)
    assert (found, type(found), repr(found)) == (read, type(read), repr(read))


def test_a_value_of_numpy_is_python_s_wherever_it_stands() -> None:
    found = plain(
        {"a": np.int64(5), "b": [np.float32(0.5), {"c": np.bool_(True)}], np.str_("d"): np.str_("e")}
    )
    assert repr(found) == "{'a': 5, 'b': [0.5, {'c': True}], 'd': 'e'}"


@pytest.mark.parametrize(
    "value", [None, {1, 2}, np.ones(2), Path("x"), b"x", 1j, [None], {"a": None}], ids=repr
)
def test_what_no_file_can_hold_is_refused(value: Any) -> None:
    with pytest.raises(ConfigError, match=r"the test: session\.name(\.a)? is neither a number nor text"):
        made_cluster({**SECTIONS, "session": {"name": value}}, of="the test")


def test_sections_in_memory_make_the_cluster_that_a_file_of_them_makes(tmp_path: Path) -> None:
    path = tmp_path / "cluster.toml"
    path.write_text(tomli_w.dumps(SECTIONS), encoding="utf-8")
    settings = {"session.batch": 4, "dataset.owner_points": 9}
    made, opened = made_cluster(SECTIONS, of="test", settings=settings), open_cluster(path, settings=settings)
    assert (made.file, made.features, made.model) == (opened.file, opened.features, opened.model)
    assert made.owners == opened.owners
    assert repr(made) == repr(opened).replace("cluster.toml", "test")
    assert {len(each) for each in made.load().owners.values()} == {9}


def test_errors_have_the_name_of_who_made_the_sections(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"test: session\.pionts: unknown key, did you mean 'points'"):
        made_cluster({**SECTIONS, "session": {"name": "x", "points": 5, "pionts": 6}}, of="test")
    with pytest.raises(ConfigError, match=r"test, \[features\]: gamma"):
        made_cluster({**SECTIONS, "features": {"gamma": -1.0}}, of="test")
    with pytest.raises(DataError, match="elsewhere"):
        made_cluster({**SECTIONS, "dataset": {"name": "mnist"}}, of="test", data=tmp_path / "elsewhere.npz")


def test_paths_start_at_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = made_cluster({**SECTIONS, "run": {"directory": "out"}}, of="test")
    assert made.file.run.directory == tmp_path / "out"


def test_a_signalling_nan_is_a_nan() -> None:
    assert np.isnan(plain(Decimal("sNaN")))
