"""The output of `hushbid transcript show`.

`show` gives plain data that JSON can hold; `render_lines` prints the same for people. Private values are
shown on request only; otherwise a private field appears as the first digits of its commitment, which say
nothing about it. Filters see displayed fields only; otherwise filtering would reveal who was asked.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from rich.console import Console
from rich.text import Text

from hushbid.protocol.errors import ConfigError
from hushbid.protocol.names import listed
from hushbid.protocol.printable import printable, printable_source
from hushbid.protocol.transcript.reader import TranscriptReader
from hushbid.protocol.transcript.record import Header, Record, RecordedItem
from hushbid.transcripts.shapes import NotFound, Shown, ShownEnd, ShownHeader, ShownItem, ShownRecord
from hushbid.transcripts.values import shortened, shown_frame, whole

__all__ = [
    "EVERYTHING",
    "RecordSelection",
    "mark",
    "missing_lines",
    "named",
    "render_lines",
    "render_record",
    "say",
    "show",
    "shown_json",
    "shown_record",
]

_SHOWN_COMMITMENT: Final = 16
"""Number of hexadecimal digits shown of a commitment."""
_LISTED: Final = 50
"""Maximum number of kinds or peers listed when a requested one is missing."""


_LONGEST: Final = 1e9
"""Longest time shown with all digits, in seconds: thirty years."""


class RecordSelection(NamedTuple):
    """The records, events and effects to show; None selects all.

    Args:
        rounds: Only what belongs to these rounds. An event or effect without a round belongs to the rounds
            that its record names or, if there are none, to the last round named before (initially 0).
        peer: Only exchanges with this peer and events about it.
        kind: Only events and effects of this kind, or about a message of this kind.
    """

    rounds: range | None = None
    peer: str | None = None
    kind: str | None = None


EVERYTHING: Final = RecordSelection()


def show(
    path: Path, *, private: bool = False, choice: RecordSelection = EVERYTHING, limit: int | None = None
) -> Iterator[Shown]:
    """A transcript, one JSON object at a time (`Transcript.show`).

    All of a frame is private: its peer, its message's kind, and the round that the message names.

    Yields:
        ``{"type": "header", …}``, then for each record ``{"type": "record", "record": n, "now", "elapsed",
        "event", "effects", "digest"}``, and last ``{"type": "end", "records": n, "torn_bytes", "missing"}``
        with the number of records shown. ``elapsed`` counts from the first record. An event or effect is
        ``{"kind", "public", "private"}``; an event that was not chosen is None. ``torn_bytes`` is None if the
        limit came before the file's end. ``missing`` lists ``{"what": "kind" or "peer", "name", "there"}``
        for a name in the choice that is nowhere, with those that there are, and ``{"what": "round", "name":
        "A:B", "there": [first, last]}`` for rounds of which there is nothing.
    """
    if choice.peer is not None and not private:
        raise ConfigError(
            "The peer of a frame is private.",
            advice="Add --private to choose by peer, and to see private values.",
        )
    with TranscriptReader(path) as reader:
        yield _shown_header(reader.header)
        chosen = _Chosen(choice, private=private)
        count = 0
        for part in islice(chosen.of(reader), limit):
            count += 1
            yield part
        ended = limit is None or count < limit
        yield {
            "type": "end",
            "records": count,
            "torn_bytes": reader.torn_bytes if ended else None,
            "missing": chosen.missing(),
        }


class _Chosen:
    """Selects the chosen parts of a transcript's records, and remembers what was available."""

    def __init__(self, choice: RecordSelection, *, private: bool) -> None:
        self._choice = choice
        self._private = private
        self._kinds: set[str] = set()
        self._peers: set[str] = set()
        self._round = 0
        self._lowest: int | None = None
        self._rounds_there = False

    def of(self, records: Iterable[Record]) -> Iterator[ShownRecord]:
        began: float | None = None
        for record in records:
            began = record.now if began is None else began
            of_rounds = self._of_rounds(record)
            wanted = [self._wants(item) and of_rounds[place] for place, item in enumerate(record.items)]
            if not any(wanted):
                continue
            yield shown_record(record, private=self._private, began=began, wanted=wanted)

    def missing(self) -> list[NotFound]:
        asked: tuple[tuple[Literal["kind", "peer"], str | None, set[str]], ...] = (
            ("kind", self._choice.kind, self._kinds),
            ("peer", self._choice.peer, self._peers),
        )
        found: list[NotFound] = [
            {"what": what, "name": name, "there": sorted(there)}
            for what, name, there in asked
            if name is not None and name not in there
        ]
        rounds = self._choice.rounds
        if rounds is not None and not self._rounds_there:
            between = [] if self._lowest is None else [self._lowest, self._round]
            name = f"{rounds[0]}" if len(rounds) == 1 else f"{rounds[0]}:{rounds[-1]}"
            found.append({"what": "round", "name": name, "there": between})
        return found

    def _wants(self, item: RecordedItem) -> bool:
        kinds, peer = {item.kind}, None
        if self._private:
            frame = shown_frame(item)
            peer = item.private.get("peer") if frame is None else frame.peer
            if frame is not None:
                kinds.add(frame.message)
        self._kinds |= kinds
        if isinstance(peer, str):
            self._peers.add(peer)
        return self._choice.kind in {None, *kinds} and self._choice.peer in (None, peer)

    def _of_rounds(self, record: Record) -> list[bool]:
        """Whether the event, and each effect, belongs to the chosen rounds."""
        named = [list(self._rounds_of(item)) for item in record.items]
        together = [number for numbers in named for number in numbers]
        # A late bid belongs to an earlier round, and does not return to that round.
        self._round = max([self._round, *together])
        belonging = [numbers or together or [self._round] for numbers in named]
        first = min(map(min, belonging))
        self._lowest = first if self._lowest is None else min(self._lowest, first)
        rounds = self._choice.rounds
        wanted = [rounds is None or any(number in rounds for number in numbers) for numbers in belonging]
        self._rounds_there |= any(wanted)
        return wanted

    def _rounds_of(self, item: RecordedItem) -> Iterator[int]:
        fields = [item.public]
        if self._private:
            frame = shown_frame(item)
            fields.append(item.private if frame is None else frame.fields)
        for each in fields:
            number = each.get("round")
            if isinstance(number, int):
                yield number


def shown_record(
    record: Record, *, private: bool, began: float, wanted: Sequence[bool] | None = None
) -> ShownRecord:
    """A record as JSON, with the wanted parts of its event and effects; None: all."""
    shown = [
        _item(item, private=private) if wanted is None or wanted[place] else None
        for place, item in enumerate(record.items)
    ]
    return {
        "type": "record",
        "record": record.number,
        "now": shortened(record.now),
        "elapsed": shortened(record.now - began),
        "event": shown[0],
        "effects": [effect for effect in shown[1:] if effect is not None],
        "digest": record.digest.hex(),
    }


def _shown_header(header: Header) -> ShownHeader:
    return {
        "type": "header",
        "role": header.role,
        "party": header.party,
        "session": header.session,
        "config_digest": header.config_digest.hex(),
        "software": header.software,
        "environment": whole(header.environment),
        "noise": header.noise,
        "protocol": header.protocol,
    }


def _item(item: RecordedItem, *, private: bool) -> ShownItem:
    hidden: dict[str, Any] = {}
    for name, commitment in item.commitments.items():
        if name not in item.private:
            hidden[name] = {"commitment": commitment.hex()[:_SHOWN_COMMITMENT], "redacted": True}
        elif private:
            hidden[name] = shortened(item.private[name])
        else:
            hidden[name] = {"commitment": commitment.hex()[:_SHOWN_COMMITMENT]}
    return {"kind": item.kind, "public": shortened(item.public), "private": hidden}


def render_lines(shown: Iterable[Shown], console: Console) -> None:
    """Print what `show` yields: a line for each event and effect."""
    for part in shown:
        if part["type"] == "header":
            lead = Text(named(part["role"], part["party"]), style="bold")
            lead.append(
                f"  session {printable(part['session'])}, hushbid {printable(part['software'])}",
                style="not bold",
            )
            lead.append(f", noise {printable(part['noise'])}", style="not bold")
            console.print(lead, soft_wrap=True)
        elif part["type"] == "record":
            render_record(part, console)
        elif part["torn_bytes"]:
            message = f"The last record was not written wholly: {part['torn_bytes']} bytes are left of it."
            say(console, message, "yellow")


def render_record(part: ShownRecord, console: Console) -> None:
    """Print a record that `show` yields."""
    lead = Text(f"{part['record']:>6} {_seconds(part['elapsed']):>14} ", style="dim")
    if part["event"] is not None:
        console.print(lead + _line("→ ", "cyan", part["event"]), soft_wrap=True)
        lead = Text(" " * 24)
    for effect in part["effects"]:
        # Without the event, the first effect shows the record's number.
        console.print(lead + _line("← ", "green", effect), soft_wrap=True)
        lead = Text(" " * 24)


def missing_lines(end: ShownEnd, *, private: bool) -> Iterator[str]:
    """Lines about requested names that a transcript lacks, from the end object of `show`."""
    for each in end["missing"]:
        there = each["there"]
        if each["what"] == "round":
            shown = f"{there[0]} to {there[1]}" if there else "none"
            yield f"Nothing in the transcript is of round {each['name']}: its rounds are {shown}."
            continue
        name = f"{each['what']} {printable(each['name'])!r}"
        shown = listed([printable(str(name)) for name in there], _LISTED)
        yield f"Nothing in the transcript is of the {name}: it has {shown or 'none'}."
        if each["what"] == "kind" and not private:
            yield "Kinds of messages are private: add --private to choose by them."
        if each["what"] == "peer" and not there:
            yield "All names of peers were taken out of it."


def _line(arrow: str, style: str, item: ShownItem) -> Text:
    line = Text(arrow + printable(item["kind"]), style=style)
    for name, value in item["public"].items():
        line.append(f" {printable(name)}={shown_json(value)}", style="default")
    for name, value in item["private"].items():
        line.append(f" {printable(name)}={shown_json(value)}", style="dim")
    return line


def _seconds(elapsed: Any) -> str:
    """Seconds since the first record, to the microsecond; impossible times are shown unchanged."""
    return f"{elapsed:.6f}" if isinstance(elapsed, float) and abs(elapsed) < _LONGEST else f"{elapsed!s}"


def say(console: Console, text: str, style: str = "default") -> None:
    """Print a line of any length."""
    console.print(Text(text, style=style), soft_wrap=True)


def mark(console: Console, sign: str, style: str, text: str) -> None:
    """Print a line of any length after a coloured sign."""
    console.print(Text(f"{sign} ", style=style) + Text(text, style="default"), soft_wrap=True)


def named(role: str, party: str) -> str:
    """A party with its role, said once if the name is the role: text for people."""
    return printable(party) if role == party else f"{printable(role)} {printable(party)}"


def shown_json(value: Any) -> str:
    """A value from a transcript, for people."""
    return printable_source(json.dumps(value))
