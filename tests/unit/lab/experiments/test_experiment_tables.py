"""`hushbid experiment`: tables that are whole, however narrow the terminal; and the files that remain."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from hushbid.cli.app import app
from hushbid.lab.cli.experiment_tables import SHOWN, _print, _table
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.runtime.ledger.known_ledgers import known_ledgers_path


def test_no_figure_is_cut_off_in_a_narrow_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    cells = [f"{place}.12345678" for place in range(8)]
    table = _table(*(f"column {place}" for place in range(8)))
    table.add_row(*cells)
    _print(table)
    out = capsys.readouterr().out
    assert all(cell in out for cell in cells)
    assert "…" not in out


def test_what_a_rival_needs_is_shown_with_the_extra_in_its_brackets(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    figures = ("mmd2", "mmd2_weighted", "accuracy", "accuracy_weighted", "effective_points", "epsilon")
    row: dict[str, Any] = dict.fromkeys(figures) | {
        "dataset": "digits", "delta": 1e-5, "seeds": 1, "kind": "compress", "rival": "goodpoints",
        "points": 9, "note": "goodpoints is not installed: pip install 'hushbid[rivals]'",
    }  # fmt: skip
    SHOWN["rivals"].print([row])
    out = capsys.readouterr().out
    assert "pip install 'hushbid[rivals]'" in out
    assert "δ = 1e-05, one seed" in out


def test_a_screening_experiment_leaves_the_user_s_list_of_ledgers_alone(
    monkeypatch: pytest.MonkeyPatch, own_state: Path
) -> None:
    places: list[Path] = []

    def screened(*_arguments: Any, **_options: Any) -> Any:
        places.append(known_ledgers_path())
        raise ConfigError("That is enough.")

    monkeypatch.setattr("hushbid.lab.experiments.screening._cluster", lambda *_arguments: None)
    monkeypatch.setattr("hushbid.lab.experiments.screening._screened", screened)
    done = CliRunner().invoke(app, ["experiment", "screening", "--data", "mnist.npz", "--json"])
    assert (done.exit_code, "That is enough" in done.stderr) == (4, True), done.stderr
    assert not places[0].is_relative_to(own_state)
    assert not places[0].parent.parent.exists()
    assert known_ledgers_path().is_relative_to(own_state)


def test_rows_of_worth_are_told_from_each_other_by_all_that_they_were_tried_with() -> None:
    tried = {"setting", "own_rows", "labelled", "points", "epsilon", "model", "choice", "rule"}
    assert tried <= {column.of for column in SHOWN["worth"].columns}
