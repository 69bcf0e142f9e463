"""Tables of figures: whole, however narrow the terminal."""

from __future__ import annotations

import pytest

from hushbid.experiment_verbs import _print, _table


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
