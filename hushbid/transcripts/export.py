"""`hushbid transcript export`: a transcript without its private fields, or as JSON lines or a Parquet table.

A redacted transcript is still a transcript, with the original's chain. The other two formats contain every
value with commitments and digests, but no salts, so they cannot be used for verification.

The output gets its name once it is complete, and only its owner can read it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

from hushbid.protocol.errors import ConfigError, TranscriptUnwritable
from hushbid.protocol.runtime.files.durable import new_file
from hushbid.protocol.transcript.reader import TranscriptReader
from hushbid.protocol.transcript.record import Record, RecordedItem
from hushbid.protocol.transcript.redaction import redact
from hushbid.transcripts.values import encoded, header_fields, whole

__all__ = ["ExportFormat", "Exported", "export", "export_lines"]

_BATCH_BYTES: Final = 2**24
"""Bytes of values held before they are written to a Parquet file as one row group."""
_BATCH_ROWS: Final = 2**16


class ExportFormat(StrEnum):
    """The format of an export."""

    TRANSCRIPT = "transcript"
    JSONL = "jsonl"
    PARQUET = "parquet"


class Exported(NamedTuple):
    """What was exported: whole records, the chain's head after them, and the number of private values.

    `torn_bytes` at the transcript's end form no whole record, and were left out.
    """

    records: int
    head: bytes
    torn_bytes: int
    private: int


def export(source: Path, output: Path, *, form: ExportFormat, redacted: bool) -> Exported:
    """Write a transcript to another file (`Transcript.export`). After an error no output is left."""
    if form is ExportFormat.TRANSCRIPT and not redacted:
        raise ConfigError(
            "An unredacted export in transcript format would be a copy of the file.",
            advice="Add --redact to remove its private fields, or name another --format; or copy the file.",
        )
    with TranscriptReader(source) as records, _new_file(output) as stream:
        if form is ExportFormat.TRANSCRIPT:
            done = redact(source, stream.write)
            return Exported(done.records, done.head, done.torn_bytes, 0)
        shown = _Shown(redacted=redacted)
        write = _write_lines if form is ExportFormat.JSONL else _write_table
        write(records, shown, stream)
        return Exported(records.count, records.head, records.torn_bytes, shown.private)


def export_lines(result: Mapping[str, Any]) -> Iterator[str]:
    """A finished export in words, by the verb's result."""
    yield f"{result['records']} records are in {result['output']}; the chain's head is {result['head']}."
    if result["torn_bytes"]:
        yield f"A last record that was not written wholly, {result['torn_bytes']} bytes, was left out."
    if not result["private_fields"]:
        yield "No private value is in it. That does not make it differentially private: what is public in it"
        yield "depends on the data, as does how many records there are."
    else:
        yield "Private values are in it: keep it as private as the data."


@contextmanager
def _new_file(output: Path) -> Iterator[BinaryIO]:
    """A file that gets its name when the block ends, and is removed if the block fails."""
    unfinished = output.with_name(output.name + ".partial")
    if os.path.lexists(output):
        raise ConfigError(
            f"{output} already exists.", advice="Name another file: existing files are not replaced."
        )
    with ExitStack() as stack:
        try:
            stream = stack.enter_context(new_file(unfinished))
        except FileExistsError:
            raise ConfigError(
                f"{unfinished} exists: an export is running, or one was killed.",
                advice="Remove it if no export is running.",
            ) from None
        except OSError as error:
            raise ConfigError(
                f"{output}: cannot create the file: {error.strerror}.",
                advice="Name a directory that exists and that this user can write to.",
            ) from None
        try:
            yield stream
            stack.close()
            unfinished.rename(output)
        except OSError as error:
            unfinished.unlink(missing_ok=True)
            raise TranscriptUnwritable(
                f"{output}: the export cannot be written: {error.strerror or type(error).__name__}.",
                advice="Make room, or name a file on another disk. Nothing of it is left.",
            ) from error


class _Shown:
    """The exported form of an event or effect; counts the private values in it."""

    def __init__(self, *, redacted: bool) -> None:
        self._redacted = redacted
        self.private = 0

    def __call__(self, item: RecordedItem) -> RecordedItem:
        if self._redacted:
            return item._replace(private={})
        self.private += len(item.private)
        return item


# -- JSON lines ------------------------------------------------------------------------------------------


def _write_lines(records: TranscriptReader, shown: _Shown, stream: BinaryIO) -> None:

    def write(line: dict[str, Any]) -> None:
        stream.write(json.dumps(line, allow_nan=False).encode() + b"\n")

    write({"type": "header", **header_fields(records.header)})
    for record in records:
        write(
            {
                "type": "record",
                "record": record.number,
                "now": whole(record.now),
                "event": _item(shown(record.event)),
                "effects": [_item(shown(effect)) for effect in record.effects],
                "digest": record.digest.hex(),
            }
        )
    write(
        {
            "type": "end",
            "records": records.count,
            "head": records.head.hex(),
            "torn_bytes": records.torn_bytes,
        }
    )


def _item(item: RecordedItem) -> dict[str, Any]:
    return {
        "kind": item.kind,
        "public": whole(item.public),
        "private": {name: whole(value) for name, value in item.private.items()},
        "commitments": {name: commitment.hex() for name, commitment in item.commitments.items()},
    }


# -- Parquet ---------------------------------------------------------------------------------------------


def _write_table(records: TranscriptReader, shown: _Shown, stream: BinaryIO) -> None:
    """One row for each field of each event and effect, and one for each without fields."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    described = {name: json.dumps(value) for name, value in header_fields(records.header).items()}
    schema = pa.schema(
        [
            pa.field("record", pa.int64(), nullable=False),
            pa.field("now", pa.float64(), nullable=False),
            pa.field("place", pa.int32(), nullable=False),
            pa.field("kind", pa.string(), nullable=False),
            pa.field("name", pa.string()),
            pa.field("visibility", pa.string()),
            pa.field("value", pa.large_binary()),
            pa.field("value_json", pa.large_string()),
            pa.field("commitment", pa.binary(32)),
        ],
        metadata={f"hushbid.{name}": value for name, value in described.items()},
    )
    with pq.ParquetWriter(stream, schema, compression="zstd") as table:
        write = partial(_write_batch, table, schema)
        rows: list[dict[str, Any]] = []
        held = 0
        for record in records:
            for row in _rows(record, shown):
                rows.append(row)
                held += len(row["value"] or b"")
            if held >= _BATCH_BYTES or len(rows) >= _BATCH_ROWS:
                write(rows)
                rows, held = [], 0
        write(rows)


def _write_batch(table: Any, schema: Any, rows: list[dict[str, Any]]) -> None:
    import pyarrow as pa

    if rows:
        table.write_table(pa.Table.from_pylist(rows, schema=schema))


def _rows(record: Record, shown: _Shown) -> Iterator[dict[str, Any]]:
    for place, item in enumerate(map(shown, record.items)):
        common = {"record": record.number, "now": record.now, "place": place, "kind": item.kind}
        nothing = dict.fromkeys(("name", "visibility", "value", "value_json", "commitment"))
        if not item.public and not item.commitments:
            yield common | nothing
        for name, value in item.public.items():
            yield common | nothing | {"name": name, "visibility": "public"} | _value(value)
        for name, commitment in item.commitments.items():
            row = common | nothing | {"name": name, "commitment": commitment}
            if name in item.private:
                yield row | {"visibility": "private"} | _value(item.private[name])
            else:
                yield row | {"visibility": "redacted"}


def _value(value: Any) -> dict[str, Any]:
    return {"value": encoded(value), "value_json": json.dumps(whole(value), allow_nan=False)}
