"""`transcript show` and `transcript verify`: private values on request only, nothing a terminal acts on."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from hushbid.transcript_view import render_lines, render_verifications, show, unknown_kind, verify_all
from protocol.errors import DataError, TranscriptDamaged
from protocol.transcript.item import Fields, Item
from tests.unit.transcripts import STEPS, Step, header_end, redact, transcript

PRIVATE = ["-12345678901", "benign", "malign", "0.5", "-1.5", "0001ff"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "owner.transcript"
    path.write_bytes(transcript())
    return path


def shown(
    path: Path, *, private: bool = False, limit: int | None = None, kind: str | None = None
) -> list[Any]:
    parts = list(show(path, private=private, limit=limit, kind=kind))
    assert json.loads(json.dumps(parts, allow_nan=False)) == parts, "JSON must hold it as it is"
    return parts


def rendered(path: Path, **options: Any) -> str:
    console = Console(file=io.StringIO(), width=80)
    render_lines(shown(path, **options), console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_header_comes_first_then_the_records(path: Path) -> None:
    header, *records = shown(path)
    assert (header["type"], header["role"], header["party"]) == ("header", "owner", "hospital-a")
    assert header["config_digest"] == bytes(range(32)).hex()
    assert [record["record"] for record in records] == [0, 1, 2]
    assert records[0]["event"]["public"]["weights"] == {
        "dtype": "int32",
        "shape": [3],
        "values": [4194304, -7, 0],
    }


def test_private_values_are_commitments_unless_asked_for(path: Path) -> None:
    text = json.dumps(shown(path)[1:])
    assert not any(value in text.replace('"now": 0.5', "") for value in PRIVATE)
    assert not any(value in rendered(path) for value in ("benign", "malign", "12345678901"))
    asked = json.dumps(shown(path, private=True))
    assert all(value in asked for value in PRIVATE)
    assert "benign" in rendered(path, private=True)


def test_redacted_values_are_shown_as_redacted_even_when_asked_for(path: Path) -> None:
    commitment = shown(path)[1]["effects"][0]["private"]["label"]["commitment"]
    path.write_bytes(redact(transcript(), lambda number, name: name != "label"))
    effect = shown(path, private=True)[1]["effects"][0]
    assert effect["private"] == {"label": {"commitment": commitment, "redacted": True}, "score": -12345678901}


def test_limit_and_kind_choose_records(path: Path) -> None:
    assert [part["record"] for part in shown(path, limit=2)[1:]] == [0, 1]
    assert [part["record"] for part in shown(path, kind="ask")[1:]] == [1]
    assert [part["record"] for part in shown(path, kind="log")[1:]] == [2], "an effect's kind counts too"


def test_of_a_record_only_what_is_of_the_kind_is_shown(path: Path) -> None:
    (point,) = shown(path, kind="log")[1:]
    assert (point["record"], point["event"], point["now"]) == (2, None, 2.0)
    assert [effect["kind"] for effect in point["effects"]] == ["log"]
    (broadcast,) = shown(path, kind="broadcast")[1:]
    assert (broadcast["event"]["kind"], broadcast["effects"]) == ("broadcast", [])
    lines = rendered(path, kind="log").splitlines()[1:]
    assert len(lines) == 1
    assert lines[0].split()[:4] == ["2", "2.0", "←", "log"], "an effect alone says of which record it is"


def test_a_kind_that_is_not_there_is_told_with_those_that_are(path: Path) -> None:
    kinds = ["ask", "bid", "broadcast", "log", "point", "tick"]
    assert shown(path, kind="lgo")[1:] == [{"type": "unknown-kind", "kinds": kinds}]
    assert len(rendered(path, kind="lgo").splitlines()) == 1, "the header; the rest is said on stderr"
    message = unknown_kind("lgo", kinds)
    assert "'lgo'" in message
    assert "ask, bid, broadcast, log, point, tick" in message
    path.write_bytes(transcript([]))
    assert shown(path, kind="log")[1:] == [{"type": "unknown-kind", "kinds": []}]
    assert "no records" in unknown_kind("log", [])
    assert "\x1b" not in unknown_kind("\x1b[2J", ["\x1b[2J"])
    assert "k49 and 51 more" in unknown_kind("x", [f"k{number}" for number in range(101)])


def test_a_torn_end_is_shown_when_it_is_come_to(path: Path) -> None:
    path.write_bytes(transcript() + b"torn")
    assert shown(path)[-1] == {"type": "torn", "bytes": 4}
    assert shown(path, limit=1)[-1]["type"] == "record"
    assert "not written wholly: 4 bytes" in rendered(path)


def test_damage_is_raised_after_the_records_before_it(path: Path) -> None:
    image = bytearray(transcript())
    image[-1] ^= 1
    path.write_bytes(image)
    parts = show(path, private=False, limit=None, kind=None)
    assert [next(parts)["type"] for _ in range(3)] == ["header", "record", "record"]
    with pytest.raises(TranscriptDamaged):
        next(parts)
    with pytest.raises(DataError):
        next(show(path.with_name("none"), private=False, limit=None, kind=None))


def test_long_content_is_cut_and_what_json_cannot_say_is_text(path: Path) -> None:
    fields: Fields = {
        "a": np.arange(1000, dtype=np.int64),
        "b": bytes(700),
        "c": float("nan"),
        "d": [float("inf")],
    }
    path.write_bytes(transcript([(0.0, Item("x", fields, {}), ())]))
    public = shown(path)[1]["event"]["public"]
    assert public["a"] == {"dtype": "int64", "shape": [1000], "first": list(range(32))}
    assert public["b"] == {"hex": "00" * 32, "bytes": 700}
    assert (public["c"], public["d"]) == ("nan", ["inf"])


def test_nothing_in_a_transcript_reaches_the_terminal_as_a_command(path: Path) -> None:
    evil = "\x1b]0;title\x07[red]x[/]\r\u202e"
    steps: list[Step] = [(0.0, Item(evil, {evil: evil}, {evil + "p": evil}), ())]
    path.write_bytes(transcript(steps))
    text = rendered(path, private=True)
    assert not set(text) & set("\x1b\x07\r\u202e")
    assert "[red]x[/]" in text, "markup is text"


def test_a_bad_file_does_not_keep_others_from_being_verified(path: Path) -> None:
    bad, none = path.with_name("bad"), path.with_name("none")
    image = bytearray(transcript())
    image[header_end(transcript()) + 30] ^= 1
    bad.write_bytes(image)
    found = verify_all([bad, none, path])
    assert [entry["ok"] for entry in found] == [False, False, True]
    assert [entry.get("record") for entry in found[:2]] == [0, None]
    assert (found[2]["records"], found[2]["party"], found[2]["torn_bytes"]) == (len(STEPS), "hospital-a", 0)
    assert json.loads(json.dumps(found)) == found


def test_verifications_are_told_to_people(path: Path) -> None:
    bad = path.with_name("bad")
    bad.write_bytes(transcript()[:-40] + b"x" * 40)
    path.write_bytes(redact(transcript(), lambda number, name: False) + b"torn")
    console = Console(file=io.StringIO(), width=200)
    render_verifications(verify_all([path, bad]), console)
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert "3 records hold" in text
    assert "6 of 6 private fields redacted" in text
    assert "4 bytes are left of it" in text
    assert "record 2 is damaged" in text
