"""`hushbid bench owners`: a process for each owner on one machine, to the end, with valid records."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from hushbid.cli.app import main
from hushbid.transcripts.verification.whole_session import verify_all


def benched(
    place: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], *more: str
) -> Any:
    """The verb's output; it leaves no process."""
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    arguments = ["bench", "owners", "--directory", str(place), *more]
    monkeypatch.setattr(sys, "argv", ["hushbid", *arguments])
    monkeypatch.setattr("hushbid.cli.run.end_on_signals", lambda: None)  # signals of tests stay as they are
    with pytest.raises(SystemExit) as ending:
        main()
    out, err = capfd.readouterr()
    assert ending.value.code == 0, err
    assert {child.pid for child in psutil.Process().children(recursive=True)} <= before
    return json.loads(out) if "--json" in more else out


def transcripts(result: Any) -> list[Path]:
    return sorted(Path(result["directory"]).glob("parties/*/state/*.transcript"))


@pytest.mark.parametrize("blind", [(), ("--blind",)])
def test_a_session_of_a_process_for_each_owner_is_measured(
    blind: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    result = benched(tmp_path, monkeypatch, capfd, "--owners=2", "--json", *blind)
    sizes = (result["owners"], result["rounds"], result["bought"], result["absent"], result["failed"])
    assert sizes == (2, 50, 100, 0, 0)
    assert result["setting"] == ("blind" if blind else "private")
    assert 0.0 < result["rounds_seconds"] < result["whole_seconds"]
    assert result["processor_seconds"] > 0.0
    # Two owners hand over 100 points each, with 140 coordinates of two bytes where the curator sees them.
    assert result["received_bytes"] > (0 if blind else 2 * 100 * 280)
    assert result["sent_bytes"] > 0
    assert result["transcript_bytes"] == sum(path.stat().st_size for path in transcripts(result))
    assert verify_all(transcripts(result))["ok"]


def test_the_table_has_what_was_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    figures = {
        "owners": 200,
        "rounds": 50,
        "bought": 100,
        "whole_seconds": 184.3,
        "rounds_seconds": 75.2,
        "processor_seconds": 205.1,
        "memory_bytes": 11_340_000_000,
        "received_bytes": 31_700_000,
        "sent_bytes": 6_800_000,
        "transcript_bytes": 95_400_000,
        "absent": 7,
        "directory": str(tmp_path),
    }
    monkeypatch.setattr("hushbid.lab.bench.owners.bench_owners", lambda **_: figures)
    monkeypatch.setenv("COLUMNS", "200")
    out = benched(tmp_path, monkeypatch, capfd)
    for text in ("200 owners", "184 s", "75 s", "205 s", "11.34 GB", "31.7 MB", "6.8 MB", "95.4 MB", " 7 "):
        assert text in out


@pytest.mark.slow
def test_200_processes_of_owners_come_to_the_end_and_none_misses_a_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The figures of docs/scale.md: 11 GB for all of them together."""
    result = benched(tmp_path, monkeypatch, capfd, "--owners=200", "--json")
    assert (result["bought"], result["absent"], result["failed"]) == (100, 0, 0)
    assert result["memory_bytes"] < 16e9
    files = transcripts(result)
    assert len(files) == 202
    assert verify_all(files)["ok"]
