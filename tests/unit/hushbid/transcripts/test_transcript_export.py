"""An export has every value, or with --redact no private one, and exists whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import stat
import struct
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given

from hushbid.protocol.errors import ConfigError, DataError, TranscriptDamaged, TranscriptUnwritable
from hushbid.protocol.transcript.record import encode_header
from hushbid.protocol.transcript.verify import verify
from hushbid.protocol.wire.codec import encode_message
from hushbid.protocol.wire.messages import Broadcast
from hushbid.protocol.wire.values import Item, Value, pack_value, unpack_value
from hushbid.transcripts import export as export_module
from hushbid.transcripts.export import Exported, ExportFormat, export, export_lines
from tests.docs.pages import Page, names_in
from tests.support.transcript_values import STEP_LISTS
from tests.support.transcripts import (
    HEADER,
    STEPS,
    Step,
    read_transcript,
    record_spans,
    redact,
    same,
    transcript,
)

PRIVATE = ["-12345678901", "benign", "malign", "-1.5", "0001ff"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "owner.transcript"
    path.write_bytes(transcript())
    return path


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("export")


def lines(path: Path, *, redacted: bool = False) -> list[Any]:
    output = path.with_suffix(".jsonl")
    output.unlink(missing_ok=True)
    export(path, output, form=ExportFormat.JSONL, redacted=redacted)
    return [json.loads(line) for line in output.read_text().splitlines()]


def rows(path: Path, *, redacted: bool = False) -> list[dict[str, Any]]:
    output = path.with_suffix(".parquet")
    output.unlink(missing_ok=True)
    export(path, output, form=ExportFormat.PARQUET, redacted=redacted)
    found: list[dict[str, Any]] = pq.read_table(output).to_pylist()
    return found


# -- a redacted transcript -------------------------------------------------------------------------------


def test_a_redacted_transcript_verifies_with_the_same_head(path: Path) -> None:
    output = path.with_name("public.transcript")
    done = export(path, output, form=ExportFormat.TRANSCRIPT, redacted=True)
    assert output.read_bytes() == redact(transcript(), lambda number, name: False)
    assert done == Exported(len(STEPS), verify(path).head, 0, 0)
    assert verify(output).head == done.head


def test_a_transcript_as_it_is_is_no_export(path: Path) -> None:
    with pytest.raises(ConfigError, match="copy") as caught:
        export(path, path.with_name("copy"), form=ExportFormat.TRANSCRIPT, redacted=False)
    assert "--redact" in caught.value.advice
    assert not path.with_name("copy").exists()


# -- JSON lines ------------------------------------------------------------------------------------------


def test_json_lines_are_the_header_the_records_and_the_end(path: Path) -> None:
    header, *records, end = lines(path)
    assert (header["type"], header["role"], header["config_digest"]) == (
        "header",
        "owner",
        bytes(range(32)).hex(),
    )
    assert [(record["type"], record["record"]) for record in records] == [("record", n) for n in range(3)]
    assert end == {"type": "end", "records": 3, "head": verify(path).head.hex(), "torn_bytes": 0}


def value_of(shown: Any) -> Value:
    """The value behind a line of JSON: written from the module's description alone."""
    if isinstance(shown, list):
        return tuple(map(value_of, shown))
    if not isinstance(shown, dict):
        value: Value = shown
        return value
    if shown.keys() == {"hex"}:
        return bytes.fromhex(shown["hex"])
    if shown.keys() == {"float"}:
        return float(shown["float"])
    if shown.keys() == {"dtype", "shape", "values"}:
        return np.array(shown["values"], shown["dtype"]).reshape(shown["shape"])
    return {key: value_of(field) for key, field in shown.items()}


RESERVED = {"hex", "float", "dtype", "shape", "values", "encoded", "peer", "message", "body"}
"""Names of fields that mean something in the JSON: no map that is recorded has them as others' names."""


def names_of(value: Any) -> set[str]:
    """The names of all maps in an item."""
    if isinstance(value, dict):
        return set(value).union(*map(names_of, value.values()))
    return set().union(*map(names_of, value)) if isinstance(value, list | tuple) else set()


def one_nan(value: Any) -> Any:
    """The value with one NaN for all: their other bits mean nothing."""
    if isinstance(value, dict):
        return {key: one_nan(field) for key, field in value.items()}
    if isinstance(value, list | tuple):
        return [one_nan(element) for element in value]
    return float("nan") if isinstance(value, float) and value != value else value


@given(STEP_LISTS)
def test_nothing_of_a_value_is_lost_in_json_lines(scratch: Path, steps: list[Step]) -> None:
    assume(not any(names_of(part) & RESERVED for _, event, rest in steps for part in (event, *rest)))
    path = scratch / "drawn"
    path.write_bytes(transcript(steps))
    _header, *records, _end = lines(path)
    for record, (now, event, effects) in zip(records, steps, strict=True):
        assert record["now"] == now
        for shown, item in zip([record["event"], *record["effects"]], [event, *effects], strict=True):
            assert shown["kind"] == item.kind
            assert same(value_of(shown["public"]), one_nan(item.public))
            assert same(value_of(shown["private"]), one_nan(item.private))


def test_long_arrays_and_bytes_are_whole_and_deep_values_encoded(path: Path) -> None:
    deep: Value = 7
    for _ in range(60):
        deep = [deep]
    array = np.arange(10_000, dtype=np.int32).reshape(100, 100)
    fields: dict[str, Value] = {"a": array, "b": bytes(9_000), "c": deep, "d": float("-inf")}
    path.write_bytes(transcript([(0.0, Item("x", fields, {}), ())]))
    public = lines(path)[1]["event"]["public"]
    assert public["a"] == {"dtype": "int32", "shape": [100, 100], "values": list(range(10_000))}
    assert public["b"] == {"hex": "00" * 9_000}
    assert public["d"] == {"float": "-inf"}
    depth, inner = 0, public["c"]
    while isinstance(inner, list):
        depth, inner = depth + 1, inner[0]
    rest: Any = unpack_value(bytes.fromhex(inner["encoded"]))
    while isinstance(rest, tuple):
        depth, rest = depth + 1, rest[0]
    assert (depth, rest) == (60, 7)


def test_a_frames_body_is_given_as_its_message(path: Path) -> None:
    weights = np.arange(40, dtype=np.int32)
    body = encode_message(Broadcast(round=3, weights=weights, noise="secure"))
    frame: Value = {
        "peer": "heron",
        "sequence": 4,
        "acknowledged": 3,
        "message": "broadcast",
        "body": body,
    }
    path.write_bytes(transcript([(0.0, Item("received", {}, {"frame": frame}), ())]))
    shown = lines(path)[1]["event"]["private"]["frame"]
    assert list(shown["body"]) == ["kind", "round", "weights", "noise"], "in the order of the encoding"
    assert shown["body"]["weights"]["values"] == list(range(40))
    (row,) = rows(path)
    assert json.loads(row["value_json"]) == shown
    assert same(unpack_value(row["value"]), frame), "the bytes are the record's"


def test_a_body_that_is_no_message_stays_bytes(path: Path) -> None:
    for body in (b"\xc1", b"\x05", b"", b"\x81\x01\x02"):
        frame: Value = {"peer": "heron", "message": "bid", "body": body}
        path.write_bytes(transcript([(0.0, Item("received", {}, {"frame": frame}), ())]))
        assert lines(path)[1]["event"]["private"]["frame"]["body"] == {"hex": body.hex()}


# -- Parquet ---------------------------------------------------------------------------------------------


def test_the_table_has_a_row_for_each_field_and_each_item_without_any(path: Path) -> None:
    found = [(row["record"], row["place"], row["kind"], row["name"], row["visibility"]) for row in rows(path)]
    assert found == [
        (0, 0, "broadcast", "round", "public"),
        (0, 0, "broadcast", "weights", "public"),
        (0, 1, "bid", "round", "public"),
        (0, 1, "bid", "label", "private"),
        (0, 1, "bid", "score", "private"),
        (1, 0, "ask", "round", "public"),
        (1, 0, "ask", "frame", "private"),
        (1, 0, "ask", "won", "private"),
        (2, 0, "tick", None, None),
        (2, 1, "point", "bytes", "public"),
        (2, 1, "point", "label", "private"),
        (2, 1, "point", "row", "private"),
        (2, 2, "log", "parts", "public"),
        (2, 2, "log", "text", "public"),
    ]


@given(STEP_LISTS)
def test_values_in_the_table_are_the_records_encodings(scratch: Path, steps: list[Step]) -> None:
    path = scratch / "tabled"
    path.write_bytes(transcript(steps))
    found = rows(path)
    items = [
        (record, place, item)
        for record, (_, event, effects) in enumerate(steps)
        for place, item in enumerate((event, *effects))
    ]
    fields = [
        (record, place, item.kind, name, shown, value)
        for record, place, item in items
        for shown, part in (("public", item.public), ("private", item.private))
        for name, value in sorted(part.items())
    ]
    named = [row for row in found if row["visibility"] is not None]
    assert len(found) - len(named) == sum(not item.public and not item.private for _, _, item in items)
    for row, (record, place, kind, name, shown, value) in zip(named, fields, strict=True):
        assert (row["record"], row["place"], row["kind"], row["name"]) == (record, place, kind, name)
        assert (row["visibility"], row["value"]) == (shown, pack_value(value))
        assert (row["commitment"] is None) == (shown == "public")
        assert json.loads(row["value_json"]) is not None or value is None
        assert row["now"] == steps[record][0]


def test_the_tables_metadata_is_the_header(path: Path) -> None:
    rows(path)
    described = pq.read_schema(path.with_suffix(".parquet")).metadata
    assert json.loads(described[b"hushbid.role"]) == "owner"
    assert json.loads(described[b"hushbid.environment"])["python"] == "cpython 3.11.7"


def test_the_document_has_the_columns_in_their_order(path: Path) -> None:
    rows(path)
    table = pq.read_table(path.with_suffix(".parquet"))
    described = Page("docs/transcript-format.md").rows("Taking private fields out")[-6:]
    assert [name for row in described for name in names_in(row[0])] == table.column_names
    shown = set(table.column("visibility").to_pylist()) - {None} | {"redacted"}
    assert shown <= {name for row in described for name in names_in(row[1])}


def test_a_transcript_without_records_is_an_empty_table(path: Path) -> None:
    path.write_bytes(transcript([]))
    assert rows(path) == []
    assert [line["type"] for line in lines(path)] == ["header", "end"]


def test_many_records_become_several_row_groups(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export_module, "_BATCH_ROWS", 10)
    steps: list[Step] = [(float(n), Item("tick", {"n": n}, {}), ()) for n in range(25)]
    path.write_bytes(transcript(steps))
    assert [unpack_value(row["value"]) for row in rows(path)] == list(range(25))
    assert pq.ParquetFile(path.with_suffix(".parquet")).num_row_groups == 3


# -- redaction in every format ---------------------------------------------------------------------------


@pytest.mark.parametrize("form", ExportFormat)
def test_a_redacted_export_holds_no_private_value(path: Path, form: ExportFormat) -> None:
    output = path.with_name("out")
    export(path, output, form=form, redacted=True)
    reads: dict[ExportFormat, Callable[[], str]] = {
        ExportFormat.TRANSCRIPT: lambda: repr(read_transcript(output)),
        ExportFormat.JSONL: output.read_text,
        ExportFormat.PARQUET: lambda: repr(pq.read_table(output).to_pylist()),
    }
    text = reads[form]()
    assert not any(value in text for value in PRIVATE)
    encoded = [
        pack_value(value)
        for _, event, effects in STEPS
        for item in (event, *effects)
        for value in item.private.values()
    ]
    assert not any(value in output.read_bytes() for value in encoded if len(value) > 2)


@pytest.mark.parametrize("form", [ExportFormat.JSONL, ExportFormat.PARQUET])
def test_what_is_said_of_private_values_is_so(path: Path, form: ExportFormat) -> None:
    """Also for a file that was redacted before."""
    copy = path.with_name("public.transcript")
    export(path, copy, form=ExportFormat.TRANSCRIPT, redacted=True)
    for source, redacted, there in ((path, False, 6), (path, True, 0), (copy, False, 0)):
        output = path.with_name(f"{source.stem}-{redacted}")
        done = export(source, output, form=form, redacted=redacted)
        assert done.private == there
        told = {"records": done.records, "output": "o", "head": "h", "torn_bytes": 0, "private_fields": there}
        assert ("Private values are in it" in " ".join(export_lines(told))) == bool(there)


@pytest.mark.parametrize("form", [ExportFormat.JSONL, ExportFormat.PARQUET])
def test_a_value_that_can_be_read_and_not_written_is_refused(path: Path, form: ExportFormat) -> None:
    deep = b"\x91" * 1000 + b"\xc0"
    public = b"\x94\x00" + pack_value(0.0) + b"\x93" + pack_value("tick") + b"\x81" + pack_value("x") + deep
    public += b"\x80\x90"
    head, digest = encode_header(HEADER)
    lengths = struct.pack("<II", len(public), 0)
    record = lengths + struct.pack("<I", crc32(lengths)) + public + hashlib.sha256(digest + public).digest()
    path.write_bytes(head + record)
    with pytest.raises(DataError, match="nested too deeply"):
        export(path, path.with_name("out"), form=form, redacted=False)
    assert [each.name for each in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("form", [ExportFormat.JSONL, ExportFormat.PARQUET])
def test_exporting_redacted_is_exporting_the_redacted_copy(path: Path, form: ExportFormat) -> None:
    read: Callable[..., Any] = lines if form is ExportFormat.JSONL else rows
    redacted = read(path, redacted=True)
    copy = path.with_name("public.transcript")
    export(path, copy, form=ExportFormat.TRANSCRIPT, redacted=True)
    assert read(copy) == redacted
    assert redacted != read(path)


def test_what_was_taken_out_has_its_commitment_left(path: Path) -> None:
    bid = lines(path, redacted=True)[1]["effects"][0]
    assert (bid["private"], sorted(bid["commitments"])) == ({}, ["label", "score"])
    assert bid["commitments"] == lines(path)[1]["effects"][0]["commitments"]
    taken = [row for row in rows(path, redacted=True) if row["visibility"] == "redacted"]
    assert [(row["value"], row["value_json"]) for row in taken] == [(None, None)] * 6
    assert taken[0]["commitment"].hex() == bid["commitments"]["label"]


# -- the file that is written ----------------------------------------------------------------------------


@pytest.mark.parametrize("form", ExportFormat)
def test_it_can_be_read_by_its_owner_only(path: Path, form: ExportFormat) -> None:
    before = os.umask(0)
    try:
        export(path, path.with_name("out"), form=form, redacted=True)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.with_name("out").stat().st_mode) == 0o600


@pytest.mark.parametrize("form", ExportFormat)
def test_no_file_is_replaced(path: Path, form: ExportFormat) -> None:
    for there in (path, path.with_name("dangling")):
        if not there.exists():
            there.symlink_to(path.with_name("nowhere"))
        with pytest.raises(ConfigError, match="already exists"):
            export(path, there, form=form, redacted=True)
    assert path.read_bytes() == transcript()
    path.with_name("out.partial").write_bytes(b"of another export")
    with pytest.raises(ConfigError, match=r"out\.partial exists"):
        export(path, path.with_name("out"), form=form, redacted=True)
    assert path.with_name("out.partial").read_bytes() == b"of another export"


def test_a_place_that_cannot_be_written_to_is_said(path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot create the file: No such file or directory"):
        export(path, path.parent / "none" / "out", form=ExportFormat.JSONL, redacted=False)


@pytest.mark.parametrize("form", ExportFormat)
def test_of_a_damaged_transcript_nothing_is_left(path: Path, form: ExportFormat) -> None:
    image = bytearray(transcript())
    image[-1] ^= 1
    path.write_bytes(image)
    with pytest.raises(TranscriptDamaged, match="record 2"):
        export(path, path.with_name("out"), form=form, redacted=True)
    assert list(path.parent.iterdir()) == [path]
    path.write_bytes(b"no transcript")
    with pytest.raises(DataError):
        export(path, path.with_name("out"), form=form, redacted=True)
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("form", ExportFormat)
def test_a_torn_tail_is_left_out_and_counted(path: Path, form: ExportFormat) -> None:
    whole = verify(path)
    path.write_bytes(transcript() + b"torn")
    done = export(path, path.with_name("out"), form=form, redacted=True)
    assert done == Exported(whole.records, whole.head, 4, done.private)


@contextmanager
def little_room() -> Iterator[None]:
    """Limit this process's files to 200 bytes: the error of a full disk.

    This is no fixture: pytest's own output may go to a file.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("form", ExportFormat)
@pytest.mark.parametrize("many", [1, 1000], ids=["at-its-end", "on-its-way"])
def test_a_full_disk_is_said_and_nothing_is_left(path: Path, form: ExportFormat, many: int) -> None:
    path.write_bytes(transcript(STEPS * many))
    with (
        little_room(),
        pytest.raises(TranscriptUnwritable, match="cannot be written: File too large") as caught,
    ):
        export(path, path.with_name("out"), form=form, redacted=form is ExportFormat.TRANSCRIPT)
    assert "Make room" in caught.value.advice
    assert list(path.parent.iterdir()) == [path]


def test_an_interrupt_leaves_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(export_module, "_item", interrupt)
    with pytest.raises(KeyboardInterrupt):
        export(path, path.with_name("out"), form=ExportFormat.JSONL, redacted=False)
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("form", [ExportFormat.JSONL, ExportFormat.PARQUET])
def test_memory_does_not_grow_with_the_file(
    path: Path, monkeypatch: pytest.MonkeyPatch, form: ExportFormat
) -> None:
    monkeypatch.setattr(export_module, "_BATCH_ROWS", 4)
    row = np.arange(2_000, dtype=np.float64)
    output = path.with_name("out")

    def peak(count: int) -> int:
        path.write_bytes(
            transcript([(float(n), Item("tick", {}, {"row": row + n}), ()) for n in range(count)])
        )
        tracemalloc.start()
        export(path, output, form=form, redacted=False)
        _, highest = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        output.unlink()
        return highest

    peak(5)
    # Whatever kept 60 rows of 16 kB would hold twice what 5 rows take, which is 0.4 MB at most.
    few, many = peak(5), peak(60)
    assert many < 2 * few


def test_the_records_of_the_test_are_what_it_says() -> None:
    assert len(list(record_spans(transcript()))) == len(STEPS) == 3
