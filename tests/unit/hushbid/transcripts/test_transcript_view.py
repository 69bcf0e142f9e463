"""`transcript show`: private values on request only, filtered by what is shown, nothing active."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from hushbid.protocol.errors import ConfigError, DataError, TranscriptDamaged
from hushbid.protocol.wire.values import Fields, Item
from hushbid.transcripts.view import EVERYTHING, RecordSelection, missing_lines, named, render_lines, show
from tests.support import recorded_frames
from tests.support.transcripts import Step, redact, transcript

PRIVATE = ["-12345678901", "benign", "malign", "0.5", "-1.5", "0001ff"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "owner.transcript"
    path.write_bytes(transcript())
    return path


@pytest.fixture
def session(tmp_path: Path) -> Path:
    path = tmp_path / "curator.transcript"
    path.write_bytes(transcript(recorded_frames.STEPS))
    return path


def parts_of(
    path: Path, choice: RecordSelection = EVERYTHING, *, private: bool = False, limit: int | None = None
) -> list[Any]:
    parts: list[Any] = list(show(path, private=private, choice=choice, limit=limit))
    assert json.loads(json.dumps(parts, allow_nan=False)) == parts, "JSON must hold it as it is"
    assert [part["type"] for part in parts] == ["header", *["record"] * (len(parts) - 2), "end"]
    assert parts[-1]["records"] == len(parts) - 2
    return parts


def shown(path: Path, choice: RecordSelection = EVERYTHING, **options: Any) -> list[Any]:
    """The records that are shown."""
    return parts_of(path, choice, **options)[1:-1]


def numbers(path: Path, choice: RecordSelection, **options: Any) -> list[int]:
    return [record["record"] for record in shown(path, choice, **options)]


def rendered(path: Path, choice: RecordSelection = EVERYTHING, **options: Any) -> str:
    console = Console(file=io.StringIO(), width=80)
    render_lines(parts_of(path, choice, **options), console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_header_comes_first_then_the_records(path: Path) -> None:
    header, *records, end = parts_of(path)
    assert (header["type"], header["role"], header["party"]) == ("header", "owner", "hospital-a")
    assert header["config_digest"] == bytes(range(32)).hex()
    assert [record["record"] for record in records] == [0, 1, 2]
    assert end == {"type": "end", "records": 3, "torn_bytes": 0, "missing": []}
    assert records[0]["event"]["public"]["weights"] == {
        "dtype": "int32",
        "shape": [3],
        "values": [4194304, -7, 0],
    }


def test_private_values_are_commitments_unless_asked_for(path: Path) -> None:
    text = json.dumps(shown(path))
    assert not any(value in text.replace('"now": 0.5', "") for value in PRIVATE)
    assert not any(value in rendered(path) for value in ("benign", "malign", "12345678901"))
    asked = json.dumps(shown(path, private=True))
    assert all(value in asked for value in PRIVATE)
    assert "benign" in rendered(path, private=True)


def test_redacted_values_are_shown_as_redacted_even_when_asked_for(path: Path) -> None:
    commitment = shown(path)[0]["effects"][0]["private"]["label"]["commitment"]
    path.write_bytes(redact(transcript(), lambda number, name: name != "label"))
    effect = shown(path, private=True)[0]["effects"][0]
    assert effect["private"] == {"label": {"commitment": commitment, "redacted": True}, "score": -12345678901}


def test_limit_and_kind_choose_records(path: Path) -> None:
    assert numbers(path, EVERYTHING, limit=2) == [0, 1]
    assert numbers(path, RecordSelection(kind="ask")) == [1]
    assert numbers(path, RecordSelection(kind="log")) == [2], "an effect's kind counts too"


def test_of_a_record_only_what_is_of_the_kind_is_shown(path: Path) -> None:
    (point,) = shown(path, RecordSelection(kind="log"))
    assert (point["record"], point["event"], point["now"]) == (2, None, 2.0)
    assert [effect["kind"] for effect in point["effects"]] == ["log"]
    (broadcast,) = shown(path, RecordSelection(kind="broadcast"))
    assert (broadcast["event"]["kind"], broadcast["effects"]) == ("broadcast", [])
    lines = rendered(path, RecordSelection(kind="log")).splitlines()[1:]
    assert len(lines) == 1
    assert lines[0].split()[:4] == ["2", "1.500000", "←", "log"], "an effect alone says of which record it is"


# -- choosing by round, peer and kind of message ---------------------------------------------------------


@pytest.mark.parametrize(
    ("rounds", "records"),
    [(range(1), [0]), (range(1, 2), [1, 2, 3]), (range(2, 3), [4, 5, 6, 7, 8]), (range(3, 9), [])],
)
def test_a_record_that_names_no_round_is_of_the_one_under_way(
    session: Path, rounds: range, records: list[int]
) -> None:
    assert numbers(session, RecordSelection(rounds)) == records


def test_a_late_bid_is_of_the_round_that_it_names_once_private_values_are_shown(session: Path) -> None:
    assert numbers(session, RecordSelection(range(1, 2)), private=True) == [1, 2, 3, 6]
    # Neither is what follows of the earlier round again.
    assert numbers(session, RecordSelection(range(2, 3)), private=True) == [4, 5, 7, 8]
    assert numbers(session, RecordSelection(range(1, 3)), private=True) == [1, 2, 3, 4, 5, 6, 7, 8]


def test_of_a_record_that_ends_one_round_and_begins_another_each_has_its_part(tmp_path: Path) -> None:
    path = tmp_path / "curator.transcript"
    checked = Item("candidates-checked", {}, {})
    following = (checked, recorded_frames.weights(2), recorded_frames.broadcast("heron", 2))
    path.write_bytes(transcript([(0.0, recorded_frames.bid("heron", 1), following)]))

    def kinds(rounds: range) -> list[str]:
        (record,) = shown(path, RecordSelection(rounds), private=True)
        items = [record["event"], *record["effects"]]
        return [item["kind"] for item in items if item is not None]

    assert kinds(range(1, 2)) == ["received", "candidates-checked"]
    assert kinds(range(2, 3)) == ["candidates-checked", "weights-computed", "send"]


def test_what_passed_between_the_party_and_a_peer_is_chosen(session: Path) -> None:
    heron = shown(session, RecordSelection(peer="heron"), private=True)
    assert [record["record"] for record in heron] == [1, 2, 4, 6, 7]
    assert [len(record["effects"]) for record in heron] == [1, 0, 1, 0, 0]
    assert heron[0]["event"] is None
    assert heron[0]["effects"][0]["private"]["frame"]["peer"] == "heron"
    assert heron[-1]["event"]["private"] == {"peer": "heron"}, "and what happened to it"


def test_choices_combine(session: Path) -> None:
    wren = RecordSelection(range(2, 3), "wren", "send")
    (first, last) = shown(session, wren, private=True)
    assert [item["private"]["frame"]["message"] for item in first["effects"] + last["effects"]] == [
        "broadcast",
        "ask",
    ]
    assert numbers(session, wren._replace(kind="ask"), private=True) == [8]
    assert numbers(session, wren, private=True, limit=1) == [4]


def test_a_kind_of_message_is_chosen_where_private_values_are_shown(session: Path) -> None:
    assert numbers(session, RecordSelection(kind="ask"), private=True) == [3, 8]
    assert numbers(session, RecordSelection(kind="bid"), private=True) == [2, 3, 5, 6]
    assert numbers(session, RecordSelection(kind="received")) == [2, 3, 5, 6]


def test_a_frame_is_shown_with_its_message(session: Path) -> None:
    (effect,) = shown(session, RecordSelection(kind="ask"), private=True)[0]["effects"]
    assert effect["private"]["frame"] == {
        "peer": "wren",
        "sequence": 1,
        "acknowledged": 0,
        "message": "ask",
        "body": {"kind": "ask", "round": 1, "handle": {"dtype": "int64", "shape": [1], "values": [1]}},
    }


def test_who_was_asked_cannot_be_found_by_choosing_without_private_values(session: Path) -> None:
    asked_wren = transcript(recorded_frames.STEPS)
    steps = list(recorded_frames.STEPS)
    now, event, _ = steps[3]
    steps[3] = (now, event, (recorded_frames.ask("heron", 1),))
    asked_heron = transcript(steps)

    def seen(image: bytes, choice: RecordSelection) -> str:
        """Everything shown, except digests, which cover salted commitments."""
        session.write_bytes(image)
        records = parts_of(session, choice)
        for record in records[1:-1]:
            del record["digest"]
            for item in filter(None, [record["event"], *record["effects"]]):
                item["private"] = dict.fromkeys(item["private"])
        return json.dumps(records)

    rounds = [None, *(range(first, last) for first in range(4) for last in range(first + 1, 5))]
    for kind in (None, "send", "received", "ask", "bid", "lost", "tick"):
        for among in rounds:
            choice = RecordSelection(rounds=among, kind=kind)
            assert seen(asked_wren, choice) == seen(asked_heron, choice)
            assert "wren" not in seen(asked_wren, choice)
    session.write_bytes(asked_wren)
    assert "wren" in json.dumps(parts_of(session, RecordSelection(kind="send"), private=True)), (
        "what there is to find"
    )
    for peer in ("wren", "heron"):
        with pytest.raises(ConfigError, match="private") as caught:
            seen(asked_wren, RecordSelection(peer=peer))
        assert "--private" in caught.value.advice


def test_a_redacted_transcript_is_chosen_from_by_what_is_left(session: Path) -> None:
    session.write_bytes(redact(transcript(recorded_frames.STEPS), lambda number, name: False))
    assert numbers(session, RecordSelection(range(1, 2)), private=True) == [1, 2, 3]
    assert numbers(session, RecordSelection(kind="send"), private=True) == [1, 3, 4, 8]
    *_, end = parts_of(session, RecordSelection(peer="wren"), private=True)
    assert end["missing"] == [{"what": "peer", "name": "wren", "there": []}]
    assert "taken out" in " ".join(missing_lines(end, private=True))


# -- names that are not there, torn ends, damage ---------------------------------------------------------


def told(path: Path, choice: RecordSelection, *, private: bool = False) -> str:
    *_, end = parts_of(path, choice, private=private)
    return "\n".join(missing_lines(end, private=private))


def test_a_kind_that_is_not_there_is_told_with_those_that_are(path: Path) -> None:
    kinds = ["ask", "bid", "broadcast", "log", "point", "tick"]
    _, end = parts_of(path, RecordSelection(kind="lgo"))
    assert end["missing"] == [{"what": "kind", "name": "lgo", "there": kinds}]
    assert len(rendered(path, RecordSelection(kind="lgo")).splitlines()) == 1, (
        "the header; the rest is for stderr"
    )
    assert "'lgo'" in told(path, RecordSelection(kind="lgo"))
    assert "ask, bid, broadcast, log, point, tick" in told(path, RecordSelection(kind="lgo"))
    path.write_bytes(transcript([]))
    assert "has none" in told(path, RecordSelection(kind="log"))
    assert "\x1b" not in told(path, RecordSelection(kind="\x1b[2J"))
    many: list[Step] = [(0.0, Item(f"k{number:03}", {}, {}), ()) for number in range(101)]
    path.write_bytes(transcript(many))
    assert "k049 and 51 more" in told(path, RecordSelection(kind="x"))


def test_a_peer_or_a_message_that_is_not_there_is_told_too(session: Path) -> None:
    assert "it has heron, wren" in told(session, RecordSelection(peer="magpie"), private=True)
    assert "add --private" in told(session, RecordSelection(kind="offer"))
    assert "ask, bid, broadcast, lost, received" in told(session, RecordSelection(kind="offer"), private=True)
    assert "--private" not in told(session, RecordSelection(kind="offer"), private=True)
    assert told(session, RecordSelection(range(90), "wren", "ask"), private=True) == "", (
        "all are names that it has"
    )


def test_rounds_that_are_not_there_are_told_with_those_that_are(session: Path) -> None:
    for rounds, name in ((range(90, 91), "90"), (range(90, 100), "90:99")):
        line = told(session, RecordSelection(rounds), private=True)
        assert line == f"Nothing in the transcript is of round {name}: its rounds are 0 to 2."
        assert parts_of(session, RecordSelection(rounds))[-1]["missing"] == [
            {"what": "round", "name": name, "there": [0, 2]}
        ]
    assert parts_of(session, RecordSelection(range(2, 90)))[-1]["missing"] == []


def test_a_party_that_is_called_by_its_role_is_named_once() -> None:
    assert named("curator", "curator") == "curator"
    assert named("owner", "wren") == "owner wren"


@pytest.mark.parametrize("kind", ["lost", "returned"])
def test_a_peer_that_is_no_name_is_shown_as_it_is(path: Path, kind: str) -> None:
    path.write_bytes(transcript([(0.0, Item(kind, {}, {"peer": {"a": 1}}), ())]))
    assert kind in rendered(path, private=True)
    assert "it has none" in told(path, RecordSelection(peer="wren"), private=True)


def test_a_torn_end_is_told_when_it_is_come_to(path: Path) -> None:
    path.write_bytes(transcript() + b"torn")
    assert parts_of(path)[-1]["torn_bytes"] == 4
    assert parts_of(path, limit=1)[-1]["torn_bytes"] is None
    assert "not written wholly: 4 bytes" in rendered(path)


def test_damage_is_raised_after_the_records_before_it(path: Path) -> None:
    image = bytearray(transcript())
    image[-1] ^= 1
    path.write_bytes(image)
    parts = show(path)
    assert [next(parts)["type"] for _ in range(3)] == ["header", "record", "record"]
    with pytest.raises(TranscriptDamaged):
        next(parts)
    with pytest.raises(DataError):
        next(show(path.with_name("none")))


def test_long_content_is_cut_and_what_json_cannot_say_is_named(path: Path) -> None:
    fields: Fields = {
        "a": np.arange(1000, dtype=np.int64),
        "b": bytes(700),
        "c": float("nan"),
        "d": [float("inf")],
    }
    path.write_bytes(transcript([(0.0, Item("x", fields, {}), ())]))
    public = shown(path)[0]["event"]["public"]
    assert public["a"] == {"dtype": "int64", "shape": [1000], "first": list(range(32))}
    assert public["b"] == {"hex": "00" * 32, "bytes": 700}
    assert (public["c"], public["d"]) == ({"float": "nan"}, [{"float": "inf"}])


def test_nothing_in_a_transcript_reaches_the_terminal_as_a_command(path: Path) -> None:
    evil = "\x1b]0;title\x07[red]x[/]\r\u202e"
    steps: list[Step] = [(0.0, Item(evil, {evil: evil}, {evil + "p": evil}), ())]
    path.write_bytes(transcript(steps))
    text = rendered(path, private=True)
    assert not set(text) & set("\x1b\x07\r\u202e")
    assert "[red]x[/]" in text, "markup is text"
