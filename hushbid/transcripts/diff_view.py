"""The output of `hushbid transcript diff` for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from hushbid.protocol.printable import printable
from hushbid.transcripts.view import render_record, say, shown_json

__all__ = ["parting_places", "render_comparison"]

_SIDES = ("a", "b")
_OF_EACH_SESSION = ("roster.", "network.address", "session.name", "session.nonce")
"""Settings that differ between any two sessions."""
_LISTED = 2
"""Maximum number of settings listed individually."""


def render_comparison(found: Mapping[str, Any], console: Console) -> None:
    """Print what `hushbid.transcripts.diff.compare` returns: where the two part, and the counts by kind."""
    for side in _SIDES:
        file = found[side]
        line = f"{side}: {printable(file['path'])}, {printable(file['party'])}, {file['records']} records"
        torn = f", and {file['torn_bytes']} bytes of one not written wholly" if file["torn_bytes"] else ""
        say(console, line + torn)
    if found["a"]["head"] == found["b"]["head"]:
        say(console, _one_transcript(found))
    for each in found["header"]:
        say(console, f"Header: {_difference(each)}")
    for line in _settings(found["configuration"]):
        say(console, f"Session file: {line}")
    _render_parting(found["parting"], console)
    if found["kinds"]:
        console.print(_table(found["kinds"]))
    if found["not_compared"]:
        message = f"{found['not_compared']} could not be compared: what is private was taken out of a file."
        say(console, message, "yellow")


def _render_parting(parting: Mapping[str, Any] | None, console: Console) -> None:
    if parting is None:
        say(console, "No record of one differs from the other's.", "green")
    else:
        say(console, f"They part at record {parting['record']}.", "bold")
        for line in parting_places(parting):
            say(console, f"  {line}")
        if parting["within"]:
            console.print(Text("  --private names what differs within private fields.", style="dim"))
        for side in _SIDES:
            if parting[side] is None:
                console.print(f"{side} ends before it.")
            else:
                console.print(f"{side}:")
                render_record(parting[side], console)


def _one_transcript(found: Mapping[str, Any]) -> str:
    taken = [found[side]["redacted_fields"] for side in _SIDES]
    if taken[0] == taken[1]:
        return "They are one transcript: both have the same head."
    less, more = _SIDES if taken[0] > taken[1] else _SIDES[::-1]
    return f"They are one transcript, with the same head: {less} is a redacted copy of {more}."


def _settings(differences: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """One line per setting; settings that always differ share one line if there are many."""
    own = [each for each in differences if each["key"].startswith(_OF_EACH_SESSION)]
    many = len(own) > _LISTED
    for each in differences:
        if not (many and each in own):
            yield _difference(each)
    if many:
        names = ", ".join(dict.fromkeys(printable(each["key"].partition(".")[0]) for each in own))
        yield f"{len(own)} names, keys, addresses and nonces differ (in {names}; --json lists them)"


def _difference(each: Mapping[str, Any]) -> str:
    key = printable(each["key"])
    if "private" in each:
        return f"{key} differs (--private shows how)"
    return f"{key} is {shown_json(each['a'])} in a, {shown_json(each['b'])} in b"


def parting_places(parting: Mapping[str, Any], sides: tuple[str, str] = _SIDES) -> Iterator[str]:
    """The differences in the first differing records, one line per event or effect; shows no values.

    Args:
        sides: Names of the two transcripts.
    """
    for each in parting["differences"]:
        where = f"effect {each['place']}" if each["place"] else "the event"
        kinds = [each[side] for side in _SIDES]
        if None in kinds:
            there = kinds.index(None) ^ 1
            yield f"{where}: {printable(kinds[there])}, in {sides[there]} only"
        elif kinds[0] != kinds[1]:
            yield f"{where}: {printable(kinds[0])} in {sides[0]}, {printable(kinds[1])} in {sides[1]}"
        else:
            yield f"{where}, {printable(kinds[0])}: {', '.join(map(printable, each['fields']))}"


def _table(kinds: Mapping[str, Mapping[str, int]]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("kind")
    for column in ("in a", "in b", "equal", "different", "not compared"):
        table.add_column(column, justify="right")
    for kind, counts in kinds.items():
        table.add_row(Text(printable(kind)), *(str(count) for count in counts.values()))
    return table
