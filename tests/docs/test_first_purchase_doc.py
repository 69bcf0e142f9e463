"""docs/first-purchase.md: its tables are made, its session is set up, run and read, as the page says."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import sys
from pathlib import Path

import pandas as pd
import pytest

from hushbid.cli.app import main
from tests.docs.pages import Page

PAGE = Page("docs/first-purchase.md")
SAID = ["own rows", "own and bought rows", "own and random rows"]
"""Rows of the summary that the page explains."""


def commands() -> list[list[str]]:
    """The commands that the reader types, in order, without `python tables.py`."""
    lines = re.findall(r"^\$ (hushbid .*)$", PAGE.text, re.M)
    return [shlex.split(line) for line in lines]


def say(words: list[str], monkeypatch: pytest.MonkeyPatch) -> str:
    """A command's stdout."""
    monkeypatch.setattr(sys, "argv", words)
    said = io.StringIO()
    with contextlib.redirect_stdout(said), pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0, words
    return said.getvalue()


def test_the_page_can_be_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (script,) = re.findall(r"```python\n(.*?)```", PAGE.text, flags=re.DOTALL)
    assert [words[1] for words in commands()] == ["init", "run", "results"]
    with contextlib.chdir(tmp_path):
        exec(compile(script, "tables.py", "exec"), {})
        wanted = pd.read_csv("wanted.csv")
        assert (len(wanted), int(wanted["target"].notna().sum())) == (200, 40)
        for name in ("north", "south"):
            share = pd.read_csv(f"{name}.csv")["target"].isin([3, 5, 8, 9]).mean()
            assert share == pytest.approx(0.1, abs=0.03), "one row in ten is wanted"
        _, summary, files = (say(words, monkeypatch) for words in commands())
        for name in SAID:
            assert re.search(rf"^{name}\b", summary, re.M), name
            assert name in PAGE.text.lower()
        assert "eff. points" in summary
        assert "Protected: the records of every owner from every other owner (ε = 0)" in summary
        run = Path("purchase/runs/purchase-1")
        assert (run / "replay.html").is_file()
        assert (run / "report.html").is_file()
        assert "training.parquet" in files
        training = pd.read_parquet(next(run.rglob("training.parquet")))
        assert {"target", "weight"} <= set(training.columns)
        assert 40 < len(training) <= 40 + 150
        assert (training["weight"] > 0).all()
