"""The oldest versions that the ranges of pyproject.toml allow: all is there, and a purchase comes through."""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
from collections.abc import Iterator

import pytest
from packaging.requirements import Requirement

from tests.conftest import ROOT
from tests.installed.environments import Environment, Warm, build, public_names, sources

HALVES = """
import numpy as np, pandas as pd, hushbid
random = np.random.default_rng(5)
def table(rows, mean):
    x = random.normal(mean, .15, rows).clip(0, 1)
    columns = {"x": x, "y": random.random(rows), "gap": np.where(x > .5, x, np.nan)}
    return pd.DataFrame(columns).astype("float16")
names = [("x", None), ("y", None), ("gap", 0)]
schema = hushbid.Schema.of(
    [dict(name=name, kind="number", lower=0, upper=1, missing=missing) for name, missing in names]
)
owners = {"north": table(200, .3), "south": table(200, .7)}
bought = hushbid.procure(
    owners=owners, validation=table(60, .7), seed_set=table(50, .5), schema=schema, points=20, epsilon=3
)
print(len(bought.points))
"""


@pytest.fixture(scope="module")
def oldest(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    place = tmp_path_factory.mktemp("oldest")
    built = build(sources(place / "tree"), place / "built")
    made = Environment(place)
    # `lowest-direct` is about what is named here, which pyproject.toml does: a wheel's packages are not.
    named = ("--requirements", str(ROOT / "pyproject.toml"), "--extra", "operator")
    # What is in a cache alone is not the oldest that there is.
    limits = place / "limits.txt"
    limits.write_text("".join(f"{name}<{_after(version)}\n" for name, version in _lowest().items()))
    made.install(*named, "--constraints", str(limits), "--resolution", "lowest-direct")
    made.install("--no-deps", str(built.wheel))
    made.install("pandas")
    return made


@pytest.fixture(scope="module")
def warm(oldest: Environment) -> Iterator[Warm]:
    with contextlib.closing(Warm(oldest)) as process:
        yield process


def _lowest() -> dict[str, str]:
    """The packages that hushbid needs without an extra, and the lowest allowed version of each."""
    needed = [Requirement(text) for text in importlib.metadata.requires("hushbid") or []]
    return {
        each.name: spec.version
        for each in needed
        if each.marker is None
        for spec in each.specifier
        if spec.operator == ">="
    }


def _minor(version: str) -> tuple[int, int]:
    major, minor, *_ = (*version.split("."), "0")
    return int(major), int(minor)


def _after(version: str) -> str:
    """The next minor version."""
    major, minor = _minor(version)
    return f"{major}.{minor + 1}"


def test_they_are_the_oldest(oldest: Environment) -> None:
    code = (
        "import importlib.metadata as m, json, sys; print(json.dumps([m.version(n) for n in sys.argv[1:]]))"
    )
    lowest = _lowest()
    versions = json.loads(oldest.ran("-c", code, *lowest))
    assert [_minor(version) for version in versions] == [_minor(version) for version in lowest.values()]


def test_every_module_name_and_verb_is_there(warm: Warm) -> None:
    assert {name: why for name, why in warm.found["modules"].items() if why is not None} == {}
    assert warm.found["names"] == public_names()
    assert {name: said for name, said in warm.found["helps"].items() if said != [0, True]} == {}


def test_the_demonstration_runs(warm: Warm) -> None:
    run = ("run", "digits", "--set", "session.points=20", "--no-rehearsal", "--json")
    assert json.loads(warm.ran("hushbid", *run))["points_delivered"] == 20


def test_numbers_of_two_bytes_are_numbers(oldest: Environment, warm: Warm) -> None:
    assert warm.ran(oldest.script("halves.py", HALVES)) == "20\n"
