"""`transcript diff`: where two sessions diverge in content, whatever the times, salts and numbers."""

from __future__ import annotations

import io
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from hushbid.protocol.errors import ConfigError, DataError, TranscriptDamaged
from hushbid.protocol.transcript.journal import MemoryJournal
from hushbid.protocol.transcript.record import Header
from hushbid.protocol.wire.messages import Hello, Ready, Target
from hushbid.protocol.wire.values import Fields, Item, pack_value
from hushbid.transcripts.diff import compare
from hushbid.transcripts.diff_view import render_comparison
from hushbid.transcripts.shapes import Comparison
from tests.support import recorded_frames, transcripts
from tests.support.recorded_frames import TICK, ask, bid, broadcast, frame, timer, weights
from tests.support.transcripts import Step, fixed_salts

HEADER = transcripts.HEADER._replace(role="curator", party="curator")
STEPS = recorded_frames.STEPS
READY = Ready()
Compare = Callable[..., Any]


def image(steps: list[Step], *, salt: bytes, header: Header = HEADER) -> bytes:
    journal = MemoryJournal(header, salts=fixed_salts(salt))
    for now, event, effects in steps:
        journal.append(now, event, effects)
    journal.commit()
    return journal.image


@pytest.fixture
def compared(tmp_path: Path) -> Compare:
    """Records the steps in two files, with their own salts, and compares these."""

    def run(a: list[Step], b: list[Step], *, redacted: str = "", **options: Any) -> Comparison:
        for name, steps in (("a", a), ("b", b)):
            content = image(steps, salt=name.encode())
            if name in redacted:
                content = transcripts.redact(content, lambda number, name: False)
            (tmp_path / name).write_bytes(content)
        found = compare(tmp_path / "a", tmp_path / "b", **options)
        assert json.loads(json.dumps(found, allow_nan=False)) == found, "JSON must hold it as it is"
        return found

    return run


def changed(number: int, event: Item | None = None, *effects: Item, now: float | None = None) -> list[Step]:
    """The steps with another event, effects or time in one of them."""
    steps = list(STEPS)
    old_now, old_event, old_effects = steps[number]
    steps[number] = (
        old_now if now is None else now,
        old_event if event is None else event,
        effects or old_effects,
    )
    return steps


def only_difference(found: dict[str, Any]) -> dict[str, Any]:
    assert not found["same"]
    (difference,) = found["parting"]["differences"]
    assert isinstance(difference, dict)
    return difference


# -- what is alike ------------------------------------------------------------------------------------------


def test_the_same_steps_are_the_same_under_any_salts(compared: Compare) -> None:
    found = compared(STEPS, STEPS)
    assert (found["same"], found["parting"], found["not_compared"]) == (True, None, 0)
    assert (found["header"], found["configuration"]) == ([], [])
    assert found["a"]["records"] == found["b"]["records"] == len(STEPS)
    counts = found["kinds"]["received"]
    assert counts == {"a": 4, "b": 4, "equal": 4, "different": 0, "not_compared": 0}
    assert sum(each["equal"] for each in found["kinds"].values()) == sum(1 + len(e) for _, _, e in STEPS)


def later(steps: list[Step]) -> list[Step]:
    """The same steps, a second later, timers included."""

    def moved(item: Item) -> Item:
        if item.kind != "set-timer":
            return item
        due = item.public["due"]
        assert isinstance(due, float)
        return item._replace(public={**item.public, "due": due + 1})

    return [(now + 1, event, tuple(map(moved, effects))) for now, event, effects in steps]


def test_times_are_compared_on_request_only(compared: Compare) -> None:
    assert compared(STEPS, later(STEPS))["same"]
    found = compared(STEPS, later(STEPS), times=True)
    assert only_difference(found) == {"place": 0, "a": "started", "b": "started", "fields": ["now"]}
    steps = changed(1, None, weights(1), broadcast("heron", 1), broadcast("wren", 1), timer("round", 1, 9.5))
    assert compared(STEPS, steps)["same"]
    found = compared(STEPS, steps, times=True)
    assert only_difference(found) == {"place": 4, "a": "set-timer", "b": "set-timer", "fields": ["due"]}


def signed(head: bytes) -> Item:
    return Item("head-signed", {"head": head, "signature": head * 2}, {})


def closing(kind: str, message: str, **fields: Any) -> Item:
    """A frame of the last messages, with any fields."""
    body = pack_value({"kind": message, **fields})
    values: Fields = {"peer": "wren", "sequence": 9, "acknowledged": 3, "message": message, "body": body}
    return Item(kind, {}, {"frame": values})


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (signed(bytes(32)), signed(b"\1" * 32)),
        (frame("received", "wren", READY), frame("received", "wren", READY, sequence=7)),
        (frame("received", "wren", READY), frame("received", "wren", READY, acknowledged=7)),
        (
            closing("send", "close", outcome="complete", head=bytes(32), signature=b""),
            closing("send", "close", outcome="complete", head=b"\1" * 32, signature=b"\2" * 64),
        ),
        (
            closing("received", "farewell", head=bytes(32), signature=b""),
            closing("received", "farewell", head=b"\1" * 32, signature=b"\2" * 64),
        ),
        (
            closing("received", "hello", name="wren", session=bytes(32), software="1", sent=0, received=0),
            closing("received", "hello", name="wren", session=b"\1" * 32, software="2", sent=2, received=1),
        ),
        (
            closing("send", "welcome", version=1, sent=0, received=0),
            closing("send", "welcome", version=1, sent=5, received=4),
        ),
    ],
    ids=["head", "sequence", "acknowledged", "close", "farewell", "hello", "welcome"],
)  # fmt: skip
def test_what_says_nothing_of_what_was_done_is_passed_over(
    compared: Compare, ours: Item, theirs: Item
) -> None:
    assert compared([*STEPS, (9.0, ours, ())], [*STEPS, (9.0, theirs, ())])["same"]


def test_the_outcome_of_a_close_is_not_passed_over(compared: Compare) -> None:
    ours, theirs = (
        closing("send", "close", outcome=outcome, head=bytes(32), signature=b"")
        for outcome in ("complete", "abandoned")
    )
    found = compared([(0.0, TICK, (ours,))], [(0.0, TICK, (theirs,))], private=True)
    assert only_difference(found)["fields"] == ["frame.body.outcome"]


def fired(name: str) -> Item:
    return Item("timer", {"name": name, "attempt": 2}, {})


# -- where they part ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "record", "difference"),
    [
        (changed(5, bid("wren", 2, score=8)), 5, (0, "received", "received", ["frame"])),
        (changed(3, None, ask("heron", 1)), 3, (1, "send", "send", ["frame"])),
        (changed(5, None, ask("wren", 2)), 5, (1, None, "send", [])),
        (changed(7, TICK), 7, (0, "lost", "tick", ["kind"])),
        (changed(8, fired("pause")), 8, (0, "timer", "timer", ["name"])),
        (changed(7, Item("lost", {}, {"peer": "wren"})), 7, (0, "lost", "lost", ["peer"])),
        (changed(7, Item("lost", {}, {})), 7, (0, "lost", "lost", ["peer"])),
        ([*STEPS, (9.0, TICK, ())], 9, (0, None, "tick", [])),
    ],
    ids=["bid", "who", "asked", "kind", "public", "private", "no-field", "longer"],
)  # fmt: skip
def test_they_part_at_the_first_step_that_differs(
    compared: Compare, steps: list[Step], record: int, difference: tuple[Any, ...]
) -> None:
    place, a, b, fields = difference
    found = compared(STEPS, steps)
    assert found["parting"]["record"] == record
    assert only_difference(found) == {"place": place, "a": a, "b": b, "fields": fields}
    back = compared(steps, STEPS)
    assert only_difference(back) == {"place": place, "a": b, "b": a, "fields": fields}


def test_both_records_are_shown_private_values_on_request_only(compared: Compare) -> None:
    steps = changed(3, None, ask("heron", 1))
    parting = compared(STEPS, steps)["parting"]
    assert "heron" not in json.dumps(parting)
    assert "commitment" in parting["a"]["effects"][0]["private"]["frame"]
    parting = compared(STEPS, steps, private=True)["parting"]
    assert [parting[side]["effects"][0]["private"]["frame"]["peer"] for side in "ab"] == ["wren", "heron"]
    assert parting["differences"][0]["fields"] == ["frame.peer"]


def test_past_a_files_end_there_is_no_record(compared: Compare) -> None:
    parting = compared(STEPS, STEPS[:4])["parting"]
    assert (parting["record"], parting["b"]) == (4, None)
    assert parting["a"]["record"] == 4
    assert [each["b"] for each in parting["differences"]] == [None] * 5


def test_a_field_within_a_message_is_named_with_private_values(compared: Compare) -> None:
    def released(value: float) -> list[Step]:
        message = Target(
            embedding=np.array([value, 1.0]),
            size=3,
            seed_total=np.array([1, 2]),
            seed_size=2,
            maps=b"",
            noise="none",
        )
        return [(0.0, frame("received", "consumer", message), ())]

    found = compared(released(1.0), released(2.0), private=True)
    assert only_difference(found)["fields"] == ["frame.body.embedding"]


# -- by kind ------------------------------------------------------------------------------------------------


def test_events_and_effects_are_counted_by_kind(compared: Compare) -> None:
    steps = [*changed(5, bid("wren", 2, score=8)), (9.0, bid("heron", 2), (ask("heron", 2), ask("wren", 2)))]
    kinds = compared(STEPS, steps)["kinds"]
    assert kinds["received"] == {"a": 4, "b": 5, "equal": 3, "different": 1, "not_compared": 0}
    assert kinds["send"] == {"a": 6, "b": 8, "equal": 6, "different": 0, "not_compared": 0}
    assert not any(" " in kind for kind in kinds)
    kinds = compared(STEPS, steps, private=True)["kinds"]
    assert kinds["received bid"] == {"a": 4, "b": 5, "equal": 3, "different": 1, "not_compared": 0}
    assert kinds["send ask"] == {"a": 2, "b": 4, "equal": 2, "different": 0, "not_compared": 0}


def test_a_step_more_does_not_make_all_that_follows_different(compared: Compare) -> None:
    steps = [STEPS[0], (0.5, Item("restarted", {}, {}), ()), *STEPS[1:]]
    found = compared(STEPS, steps)
    assert found["parting"]["record"] == 1
    assert all(counts["different"] == 0 for counts in found["kinds"].values())
    assert found["kinds"]["restarted"] == {"a": 0, "b": 1, "equal": 0, "different": 0, "not_compared": 0}


# -- the session file ---------------------------------------------------------------------------------------


def started(configuration: Fields, seeds: Fields) -> list[Step]:
    return changed(0, Item("started", {"configuration": configuration}, {"seeds": seeds}))


def test_differences_of_the_session_file_are_listed_and_no_parting(compared: Compare) -> None:
    ours = started({"session": {"points": 2, "delta": 0.5}, "rule": "sealed"}, {"noise": 5})
    theirs = started({"session": {"points": 3, "delta": 0.5}, "extra": None}, {"noise": 5})
    found = compared(ours, theirs)
    assert found["configuration"] == [
        {"key": "extra", "a": None, "b": None},
        {"key": "rule", "a": "sealed", "b": None},
        {"key": "session.points", "a": 2, "b": 3},
    ]
    assert (found["same"], found["parting"]) == (False, None)


def test_of_seeds_it_is_said_only_that_they_differ(compared: Compare) -> None:
    ours, theirs = (started({"p": 2}, {"noise": seed, "features": 1}) for seed in (5, 60607))
    found = compared(ours, theirs)
    assert found["configuration"] == [{"key": "seeds.noise", "private": True}]
    assert "60607" not in json.dumps(found)
    assert (found["same"], found["parting"]) == (False, None)
    found = compared(ours, theirs, private=True)
    assert found["configuration"] == [{"key": "seeds.noise", "a": 5, "b": 60607}]


def test_another_sessions_digest_is_a_difference_and_another_machine_is_none(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    a.write_bytes(image(STEPS, salt=b"a"))
    b.write_bytes(image(STEPS, salt=b"b", header=HEADER._replace(environment={"python": "cpython 3.12.1"})))
    found = compare(a, b)
    assert found["same"]
    assert [each["key"] for each in found["header"]] == ["environment.blas", "environment.python"]
    b.write_bytes(image(STEPS, salt=b"b", header=HEADER._replace(config_digest=bytes(32))))
    assert not compare(a, b)["same"], "what differs may have been taken out"


# -- redacted files -----------------------------------------------------------------------------------------


def test_a_file_and_its_redacted_copy_are_the_same_and_nothing_is_left_open(tmp_path: Path) -> None:
    whole, copy = tmp_path / "whole", tmp_path / "copy"
    whole.write_bytes(image(STEPS, salt=b"a"))
    copy.write_bytes(transcripts.redact(whole.read_bytes(), lambda number, name: False))
    for pair in ((whole, copy), (copy, whole), (copy, copy)):
        for private in (False, True):
            found = compare(*pair, private=private)
            assert (found["same"], found["not_compared"]) == (True, 0)
            assert "received" in found["kinds"], "a file whose frames were taken out has no kinds of messages"


@pytest.mark.parametrize("redacted", ["a", "b", "ab"])
def test_what_was_taken_out_is_not_compared(compared: Compare, redacted: str) -> None:
    found = compared(STEPS, changed(3, None, ask("heron", 1)), redacted=redacted, private=True)
    assert (found["same"], found["parting"]) == (True, None)
    assert found["kinds"]["send"] == {"a": 6, "b": 6, "equal": 0, "different": 0, "not_compared": 6}
    # All frames, the two weights, and who was lost; the seeds are of the session file.
    assert found["not_compared"] == 6 + 4 + 2 + 1


def test_public_differences_show_in_redacted_files(compared: Compare) -> None:
    found = compared(STEPS, changed(5, None, ask("wren", 2)), redacted="ab")
    assert only_difference(found) == {"place": 1, "a": None, "b": "send", "fields": []}


def test_files_of_one_transcript_are_said_to_be(tmp_path: Path) -> None:
    whole, copy = tmp_path / "whole", tmp_path / "copy"
    whole.write_bytes(image(STEPS, salt=b"a"))
    copy.write_bytes(transcripts.redact(whole.read_bytes(), lambda number, name: False))
    for pair, what in (
        ((whole, whole), "both have the same head"),
        ((whole, copy), "b is a redacted copy of a"),
        ((copy, whole), "a is a redacted copy of b"),
    ):
        assert what in told(compare(*pair))
    other = tmp_path / "other"
    other.write_bytes(image(STEPS, salt=b"b"))
    assert "one transcript" not in told(compare(whole, other))


def test_keys_addresses_and_nonces_are_told_in_one_line_where_they_are_many(compared: Compare) -> None:
    def configured(number: int, owners: int) -> list[Step]:
        keys = {f"o{owner}": f"key {number} {owner}" for owner in range(owners)}
        session: Fields = {"points": number, "nonce": f"{number}"}
        return started({"session": session, "roster": {"owners": keys}}, {"noise": 5})

    few, many = (compared(configured(1, owners), configured(2, owners)) for owners in (1, 4))
    assert "roster.owners.o0 is" in told(few)
    lines = [line for line in told(many).splitlines() if line.startswith("Session file")]
    assert lines == [
        "Session file: session.points is 1 in a, 2 in b",
        "Session file: 5 names, keys, addresses and nonces differ (in roster, session; --json lists them)",
    ]
    assert len(many["configuration"]) == 6


@pytest.mark.parametrize("redacted", ["", "ab"])
def test_a_hint_says_that_private_names_more_where_it_does(compared: Compare, redacted: str) -> None:
    other = changed(3, None, ask("heron", 1))
    hint = "--private names what differs"
    assert (hint in told(compared(STEPS, other, redacted=redacted))) == (not redacted)
    assert hint not in told(compared(STEPS, other, redacted=redacted, private=True))
    assert hint not in told(compared(STEPS, changed(5, None, ask("wren", 2)), redacted=redacted))


def told(found: Comparison) -> str:
    """The output for people."""
    console = Console(file=io.StringIO(), width=100)
    render_comparison(found, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


# -- files that cannot be compared --------------------------------------------------------------------------


def test_two_roles_are_not_compared(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    a.write_bytes(image(STEPS, salt=b"a"))
    b.write_bytes(image(STEPS, salt=b"b", header=HEADER._replace(role="owner", party="wren")))
    with pytest.raises(ConfigError, match=r"role curator.*role owner"):
        compare(a, b)


def test_what_is_no_transcript_or_damaged_is_told(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    a.write_bytes(image(STEPS, salt=b"a"))
    b.write_bytes(b"points,labels\n")
    for pair in ((a, b), (b, a), (a, tmp_path / "none")):
        with pytest.raises(DataError):
            compare(*pair)
    b.write_bytes(a.read_bytes()[:-1] + b"\0")
    with pytest.raises(TranscriptDamaged, match="record 8"):
        compare(a, b)


def test_torn_tails_are_counted_and_not_compared(compared: Compare, tmp_path: Path) -> None:
    compared(STEPS, STEPS)
    with (tmp_path / "b").open("ab") as file:
        file.write(b"torn")
    found = compare(tmp_path / "a", tmp_path / "b")
    assert (found["same"], found["a"]["torn_bytes"], found["b"]["torn_bytes"]) == (True, 0, 4)


def test_memory_does_not_grow_with_the_files(tmp_path: Path) -> None:
    row = np.arange(2_000, dtype=np.float64)

    def peak(count: int) -> int:
        steps: list[Step] = [(float(n), Item("tick", {}, {"row": row + n}), ()) for n in range(count)]
        for name in ("a", "b"):
            (tmp_path / name).write_bytes(image(steps, salt=name.encode()))
        tracemalloc.start()
        assert compare(tmp_path / "a", tmp_path / "b")["same"]
        _, highest = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return highest

    peak(5)
    assert peak(200) < 2 * peak(5)


# -- for people ---------------------------------------------------------------------------------------------


def test_people_are_told_where_and_how_they_part(compared: Compare) -> None:
    assert "No record of one differs" in told(compared(STEPS, STEPS))
    text = told(compared(STEPS, changed(3, None, ask("heron", 1)), private=True))
    assert "They part at record 3." in text
    assert "effect 1, send: frame.peer" in text
    assert (
        text.index("a:\n") < text.index('"peer": "wren"') < text.index("b:\n") < text.index('"peer": "heron"')
    )
    assert [line.split() for line in text.splitlines() if line.startswith("send ask")] == [
        ["send", "ask", "2", "2", "1", "1", "0"]
    ]
    assert "b ends before it." in told(compared(STEPS, STEPS[:4]))
    assert "effect 1: send, in b only" in told(compared(STEPS, changed(5, None, ask("wren", 2))))
    assert "the event: lost in a, tick in b" in told(compared(STEPS, changed(7, TICK)))
    assert "13 could not be compared" in told(compared(STEPS, STEPS, redacted="b"))
    ours, theirs = (started({"p": p}, {"noise": p}) for p in (2, 3))
    text = told(compared(ours, theirs))
    assert "Session file: p is 2 in a, 3 in b" in text
    assert "seeds.noise differs (--private" in text


def test_nothing_in_a_transcript_reaches_the_terminal_as_a_command(compared: Compare) -> None:
    evil = "\x1b]0;title\x07[red]x[/]\r"
    ours: list[Step] = [(0.0, Item(evil, {evil: evil}, {}), ())]
    theirs: list[Step] = [(0.0, Item(evil, {evil: 1}, {}), (Item(evil, {}, {}),))]
    text = told(compared(ours, theirs, private=True))
    assert not set(text) & set("\x1b\x07\r")


def test_a_hello_names_its_party(compared: Compare) -> None:
    def hello(name: str) -> list[Step]:
        message = Hello(
            versions=(1,), role="owner", name=name, session=bytes(32), software="1", sent=0, received=0
        )
        return [(0.0, frame("received", name, message), ())]

    found = compared(hello("wren"), hello("heron"), private=True)
    assert only_difference(found)["fields"] == ["frame.body.name", "frame.peer"]
