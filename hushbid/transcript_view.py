"""What `hushbid transcript show` and `hushbid transcript verify` say.

`show` and `verify_all` give plain data that JSON can hold; `render_lines` and `render_verifications` print
the same for people. Private values of a transcript are shown on explicit request only: without it a
private field appears as the first digits of its commitment, which say nothing about it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np
from rich.console import Console
from rich.text import Text

from protocol.errors import DataError, TranscriptDamaged
from protocol.transcript.item import Value
from protocol.transcript.reader import iterate
from protocol.transcript.record import Header, Record, RecordedItem
from protocol.transcript.verify import verify

__all__ = ["render_lines", "render_verifications", "show", "unknown_kind", "verify_all"]

_SHOWN_BYTES: Final = 32
"""Bytes, and elements of an array, that are shown before the rest is left out."""
_SHOWN_COMMITMENT: Final = 16
"""Hexadecimal digits of a commitment that are shown."""
_SHOWN_NESTING: Final = 32
_SHOWN_KINDS: Final = 50
"""Kinds of a transcript that are listed to whoever asked for one that it has not got."""


def show(path: Path, *, private: bool, limit: int | None, kind: str | None) -> Iterator[dict[str, Any]]:
    """A transcript, one JSON object at a time.

    Args:
        path: The transcript.
        private: Whether to show the values of private fields.
        limit: Show at most this many records; all if None.
        kind: Show only events and effects of this kind, and only records that have one; all if None.

    Yields:
        ``{"type": "header", …}``, then for each record ``{"type": "record", "record": n, "now", "event",
        "effects", "digest"}``, then ``{"type": "torn", "bytes": n}`` if the file was read to a torn end. An
        event or effect is ``{"kind", "public", "private"}``; an event of another kind than asked for is None.
        If none is of the kind, last ``{"type": "unknown-kind", "kinds": […]}``, with those that there are.

    Raises:
        DataError: No transcript, or of a newer version.
        TranscriptDamaged: Its header, or a record that was come to, does not hold.
    """
    with iterate(path) as reader:
        yield {"type": "header", **_header(reader.header)}
        kinds: set[str] = set()
        for record in islice(_having(kind, reader, kinds), limit):
            yield _record(record, kind, private=private)
        if reader.torn:
            yield {"type": "torn", "bytes": reader.torn_bytes}
        if kind is not None and kind not in kinds:
            yield {"type": "unknown-kind", "kinds": sorted(kinds)}


def _having(kind: str | None, records: Iterable[Record], kinds: set[str]) -> Iterator[Record]:
    """The records with an event or effect of the kind; the kinds of all that were read go into the set."""
    for record in records:
        found = {item.kind for item in record.items}
        kinds |= found
        if kind is None or kind in found:
            yield record


def verify_all(paths: Sequence[Path]) -> list[dict[str, Any]]:
    """Check several transcripts; a bad one does not keep the others from being checked.

    Returns:
        For each path ``{"path", "ok", …}``. If ok: ``role``, ``party``, ``session``, ``records``, ``head``,
        ``torn_bytes``, ``private_fields``, ``redacted_fields``. Otherwise: ``error``, ``advice``, and
        ``record``, the number of the first damaged record (-1 for the header, None for a file that is no
        transcript).
    """
    return [_verified(path) for path in paths]


def _verified(path: Path) -> dict[str, Any]:
    try:
        found = verify(path)
    except (DataError, TranscriptDamaged) as error:
        record = error.record if isinstance(error, TranscriptDamaged) else None
        return {
            "path": str(path),
            "ok": False,
            "record": record,
            "error": error.what,
            "advice": error.advice,
        }
    return {
        "path": str(path),
        "ok": True,
        "role": found.header.role,
        "party": found.header.party,
        "session": found.header.session,
        "records": found.records,
        "head": found.head.hex(),
        "torn_bytes": found.torn_bytes,
        "private_fields": found.private_fields,
        "redacted_fields": found.redacted_fields,
    }


def _header(header: Header) -> dict[str, Any]:
    return header._asdict() | {
        "config_digest": header.config_digest.hex(),
        "environment": _plain(header.environment),
    }


def _record(record: Record, kind: str | None, *, private: bool) -> dict[str, Any]:
    def wanted(item: RecordedItem) -> bool:
        return kind is None or item.kind == kind

    return {
        "type": "record",
        "record": record.number,
        "now": _plain(record.now),
        "event": _item(record.event, private=private) if wanted(record.event) else None,
        "effects": [_item(effect, private=private) for effect in record.effects if wanted(effect)],
        "digest": record.digest.hex(),
    }


def _item(item: RecordedItem, *, private: bool) -> dict[str, Any]:
    hidden: dict[str, Any] = {}
    for name, commitment in item.commitments.items():
        if name not in item.private:
            hidden[name] = {"commitment": commitment.hex()[:_SHOWN_COMMITMENT], "redacted": True}
        elif private:
            hidden[name] = _plain(item.private[name])
        else:
            hidden[name] = {"commitment": commitment.hex()[:_SHOWN_COMMITMENT]}
    return {"kind": item.kind, "public": _plain(item.public), "private": hidden}


def _plain(value: Value, depth: int = 0) -> Any:
    """The value as JSON can hold it: long bytes and arrays by their length and first elements."""
    if depth > _SHOWN_NESTING:
        return "..."
    if isinstance(value, bytes):
        if len(value) <= _SHOWN_BYTES:
            return {"hex": value.hex()}
        return {"hex": value[:_SHOWN_BYTES].hex(), "bytes": len(value)}
    if isinstance(value, np.ndarray):
        shown = {"dtype": value.dtype.name, "shape": list(value.shape)}
        return shown | {
            "first" if value.size > _SHOWN_BYTES else "values": value.ravel()[:_SHOWN_BYTES].tolist()
        }
    if isinstance(value, Mapping):
        return {str(key): _plain(field, depth + 1) for key, field in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(element, depth + 1) for element in value]
    # JSON has no word for these.
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return value


def render_lines(shown: Iterable[Mapping[str, Any]], console: Console) -> None:
    """Print what `show` yields, a line for each event and effect; no line for an unknown kind."""
    for part in shown:
        if part["type"] == "header":
            lead = Text(f"{_safe(part['role'])} {_safe(part['party'])}", style="bold")
            lead.append(
                f"  session {_safe(part['session'])}, hushbid {_safe(part['software'])}", style="not bold"
            )
            lead.append(f", noise {_safe(part['noise'])}", style="not bold")
            console.print(lead, soft_wrap=True)
        elif part["type"] == "torn":
            message = f"The last record was not written wholly: {part['bytes']} bytes are left of it."
            console.print(Text(message, style="yellow"), soft_wrap=True)
        elif part["type"] == "record":
            _render_record(part, console)


def _render_record(part: Mapping[str, Any], console: Console) -> None:
    lead = Text(f"{part['record']:>6} {part['now']!s:>14} ", style="dim")
    if part["event"] is not None:
        console.print(lead + _line("→ ", "cyan", part["event"]), soft_wrap=True)
        lead = Text(" " * 24)
    for effect in part["effects"]:
        # Without its event, the first effect says of which record it is.
        console.print(lead + _line("← ", "green", effect), soft_wrap=True)
        lead = Text(" " * 24)


def unknown_kind(kind: str, kinds: Sequence[str]) -> str:
    """What is said of a kind that a transcript has not got, with those that it has."""
    shown = ", ".join(_safe(each) for each in kinds[:_SHOWN_KINDS])
    more = f" and {len(kinds) - _SHOWN_KINDS} more" if len(kinds) > _SHOWN_KINDS else ""
    has = f"has {shown}{more}" if kinds else "has no records"
    return f"Nothing in the transcript is of the kind {_safe(kind)!r}: it {has}."


def _line(arrow: str, style: str, item: Mapping[str, Any]) -> Text:
    line = Text(arrow + _safe(item["kind"]), style=style)
    for name, value in item["public"].items():
        line.append(f" {_safe(name)}={json.dumps(value)}", style="default")
    for name, value in item["private"].items():
        line.append(f" {_safe(name)}={json.dumps(value)}", style="dim")
    return line


def _safe(text: str) -> str:
    """Text from a transcript without anything that a terminal would act on."""
    return json.dumps(text)[1:-1]


def render_verifications(verifications: Sequence[Mapping[str, Any]], console: Console) -> None:
    """Print what `verify_all` returns, one or two lines for each file."""
    for found in verifications:
        path = _safe(found["path"])
        if not found["ok"]:
            console.print(Text("✗ ", style="red") + Text(f"{_safe(found['error'])} {_safe(found['advice'])}"))
            continue
        line = Text("✓ ", style="green")
        line.append(f"{path}: {_safe(found['role'])} {_safe(found['party'])}, ", style="default")
        line.append(
            f"{found['records']} records hold, head {found['head'][:_SHOWN_COMMITMENT]}…", style="default"
        )
        if found["redacted_fields"]:
            line.append(f"; {found['redacted_fields']} of {found['private_fields']} private fields redacted")
        console.print(line, soft_wrap=True)
        if found["torn_bytes"]:
            message = f"  its last record was not written wholly: {found['torn_bytes']} bytes are left of it"
            console.print(Text(message, style="yellow"), soft_wrap=True)
