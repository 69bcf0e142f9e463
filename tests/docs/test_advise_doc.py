"""docs/advise.md names every field and says every number of `hushbid advise`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from hushbid.advice.proposal import CHOICE, GRID, LARGEST_PURCHASE, TENDER_DIMENSIONS
from hushbid.advice.trials import DIMENSION
from hushbid.cli.app import app
from hushbid.consumer.verdict import GOOD
from tests.docs.pages import Page, names_in

PAGE = Page("docs/advise.md")


def test_the_fields_are_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = np.random.default_rng(0).random((16, 2))
    np.save("validation.npy", rows)
    np.save("public.npy", rows[::-1] / 2)
    given = [
        "--lower",
        "0",
        "--upper",
        "1",
        "--points",
        "5",
        "--epsilon",
        "3",
        "--public",
        "public.npy",
        "--json",
    ]
    done = CliRunner().invoke(app, ["advise", "validation.npy", *given])
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    stated = {name.strip("`"): text for name, text in PAGE.rows("Fields")}
    assert list(found) == list(stated)
    assert {*found["settings"][0]} <= {*names_in(stated["settings"])}
    assert {*found["trials"][0]} <= {*names_in(stated["trials"])}
    assert {*found["own"], *found["own"]["staged"][0]} <= {*names_in(stated["own"])}


def test_the_numbers_are_those_of_the_code() -> None:
    *smaller, largest = (f"{epsilon:g}" for epsilon in GRID)
    for said in (
        f"The smallest of {', '.join(smaller)} and {largest}",
        f"`--effect`, {GOOD:g} unless it is given",
        f"A tenth of the owners' points, {LARGEST_PURCHASE:,} at most",
        f"The largest of {', '.join(f'{d:,}' for d in TENDER_DIMENSIONS)} and {DIMENSION} with",
        f"In rounds d is {DIMENSION}",
    ):
        assert said in PAGE.text, said
    assert CHOICE == 10
