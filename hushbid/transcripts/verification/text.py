"""The output of `hushbid transcript verify` for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from rich.console import Console
from rich.text import Text

from hushbid.protocol.names import CONSUMER, CURATOR, listed
from hushbid.protocol.printable import printable
from hushbid.transcripts.verification.shapes import (
    AwardFile,
    BroadcastEvidence,
    Disagreement,
    Equivocation,
    OtherBox,
    Pair,
    RecordPlace,
    Related,
    Several,
    TranscriptFile,
    Verified,
    VoidBox,
)
from hushbid.transcripts.view import mark, named, say

__all__ = ["render_verification"]

_SHOWN_DIGITS: Final = 16
"""Number of hexadecimal digits shown of a digest."""
_LISTED: Final = 8
"""Maximum number of names or rounds listed one by one."""

_SIGNATURES: Final = {
    "holds": "signed",
    "absent": "not signed",
    "no-keys": "not signed: the session has no keys",
    "unchecked": "signed, by a key that follows from a seed that was taken out",
    "fails": "signature wrong",
}
_DISAGREEMENTS: Final = {
    "never-sent": "was received and never sent",
    "never-received": "was sent and never received, though later ones were",
    "other-bytes": "was received with other bytes than were sent",
    "acknowledged": "was acknowledged, and is not in the receiver's file",
    "other-head": "is signed, and not that of the file: that was rewritten, or cut",
}


def render_verification(found: Verified, console: Console) -> None:
    """Print what `verify_all` returns: each file, then the comparisons between files."""
    for file in found["transcripts"]:
        _render_file(file, console)
    for pair in found["pairs"]:
        _render_pair(pair, console)
    for awards in found["awards"]:
        _render_awards(awards, console)
    _render_equivocations(found["equivocations"], console)
    for several in found["heads"]:
        _render_heads(several, console)
    for related in found["versions"]:
        _render_versions(related, found["pairs"], console)
    if CURATOR in found["missing"] and len(found["transcripts"]) > 1:
        message = (
            "Only the curator shares frames with others: without its file, the broadcasts that owners had"
        )
        say(console, f"{message} and the heads that it signed were compared, and nothing else.", "yellow")
    if found["missing"]:
        say(console, f"No files of {_listed(found['missing'])}: not compared with theirs.", "dim")


def _render_file(found: TranscriptFile, console: Console) -> None:
    path = printable(found["path"])
    if not found["ok"]:
        mark(console, "✗", "red", f"{printable(found['error'])} {printable(found['advice'])}")
        return
    redacted = ""
    if found["redacted_fields"]:
        redacted = f"; {found['redacted_fields']} of {found['private_fields']} private fields redacted"
    holds = (
        f"{found['records']} records hold, head {_digits(found['head'])}, {_SIGNATURES[found['signature']]}"
    )
    mark(console, "✓", "green", f"{path}: {named(found['role'], found['party'])}, {holds}{redacted}")
    if found["torn_bytes"]:
        message = f"  its last record was not written wholly: {found['torn_bytes']} bytes are left of it"
        say(console, message, "yellow")


def _render_pair(pair: Pair, console: Console) -> None:
    between = f"{CURATOR} and {printable(pair['party'])}"
    if pair["ok"]:
        under_way = f", and {pair['under_way']} under way when a file ends" if pair["under_way"] else ""
        console.print(
            Text("✓ ", style="green") + Text(f"{between} agree: {pair['frames']} frames{under_way}")
        )
    elif pair["ok"] is None:
        console.print(Text("– ", style="yellow") + Text(f"{between} not compared: {pair['why']}"))
    else:
        files = f"{printable(pair['curator'])}, {printable(pair['peer'])}"
        say(console, f"✗ {between} disagree in {pair['count']} places ({files}):", "red")
        for each in pair["disagreements"]:
            say(console, f"    {_disagreement(each)}")
        if pair["count"] > len(pair["disagreements"]):
            say(console, f"    and {pair['count'] - len(pair['disagreements'])} more", "dim")


def _disagreement(found: Disagreement) -> str:
    sender = printable(found["sender"])
    if found["what"] == "other-head":
        what = f"the head of {sender}"
    else:
        message = f" ({printable(found['message'])})" if found["message"] else ""
        what = f"frame {found['sequence']}{message} of {sender}"
    ends = (("sent", found["sent"]), ("received", found["received"]))
    places = [f"{verb} {_place(place)}" for verb, place in ends if place is not None]
    return f"{what} {_DISAGREEMENTS[found['what']]}{': ' if places else ''}{'; '.join(places)}"


def _place(place: RecordPlace) -> str:
    return f"in record {place['record']} of {printable(place['path'])} ({_digits(place['digest'])})"


def _render_awards(found: AwardFile, console: Console) -> None:
    others, path = found["others"], printable(found["path"])
    if not others:
        message = f"each of {found['checked']} awards has the best boxes that owners bid"
        mark(console, "✓", "green", f"{path}: {message}")
    for each in others[:_LISTED]:
        what = f"in record {each['record']} of {path} is not what was bid: {each['what']}"
        say(console, f"✗ {_box(each)} {what}", "red")
    if len(others) > _LISTED:
        say(console, f"✗ and {len(others) - _LISTED} more such boxes", "red")
    faults = found["faults"] or ()
    for fault in faults[:_LISTED]:
        by = "the curator's" if fault["by"] == CURATOR else "its owner's"
        of = f"{_box(fault)} was void"
        if fault["boxes"] > 1:
            owner = printable(fault["owner"])
            of = f"{fault['boxes']} boxes that {owner} bid in round {fault['bid_round']} were void"
        say(console, f"{of}: {printable(fault['what'])}. That is {by} doing.", "yellow")
    if len(faults) > _LISTED:
        say(console, f"and {len(faults) - _LISTED} more faults of this kind", "yellow")


def _box(found: OtherBox | VoidBox) -> str:
    which = f"box {found['handle']}" if found["handle"] else "a box"
    return f"{which} of {printable(found['owner'])}, awarded in round {found['round']},"


def _render_equivocations(found: Sequence[Equivocation], console: Console) -> None:
    for equivocation in found[:_LISTED]:
        broadcasts = equivocation["broadcasts"]
        say(
            console, f"✗ Equivocation: round {equivocation['round']} had {len(broadcasts)} broadcasts:", "red"
        )
        for broadcast in broadcasts:
            for record in broadcast["records"]:
                say(console, f"    {_digits(broadcast['digest'])} {_evidence(record)}")
    if len(found) > _LISTED:
        say(console, f"✗ Equivocation in {len(found) - _LISTED} more rounds", "red")


def _render_heads(found: Several, console: Console) -> None:
    party, heads = printable(found["party"]), found["heads"]
    several = "heads" if len({each["head"] for each in heads}) > 1 else "outcomes"
    say(console, f"✗ Equivocation: {party} told of several {several} of its one transcript:", "red")
    for each in heads:
        outcome = f", {printable(each['outcome'])}" if each["outcome"] else ""
        for place in each["records"][:_LISTED]:
            where = f"in record {place['record']} of {printable(place['path'])}"
            say(console, f"    {_digits(each['head'])}{outcome}: {where}")
        if len(each["records"]) > _LISTED:
            say(console, f"    and in {len(each['records']) - _LISTED} more files", "dim")


def _evidence(record: BroadcastEvidence) -> str:
    owners, place = record["owners"], f"in record {record['record']} of {printable(record['path'])}"
    verb = "sent" if record["party"] == CONSUMER else "received"
    told = f"sent to {_listed(owners)}" if owners else f"{verb} by {printable(record['party'])}"
    return f"{told}, {place}"


def _render_versions(found: Related, pairs: Sequence[Pair], console: Console) -> None:
    party = printable(found["party"])
    first, second = (printable(path) for path in found["paths"])
    if found["relation"] == "same":
        say(console, f"{first} and {second} are one transcript of {party}.")
    elif found["relation"] == "beginning":
        say(console, f"{first} is the beginning of {second}, up to record {found['record']}.", "yellow")
    else:
        say(console, f"✗ Two transcripts of {party}: they part at record {found['record']}.", "red")
        for path in found["paths"]:
            say(console, f"    {printable(path)} {_sides(path, pairs)}")


def _sides(path: str, pairs: Sequence[Pair]) -> str:
    """Parties whose files agree with a file, and parties whose files do not."""
    others = [
        (pair["ok"], pair["peer"] if pair["curator"] == path else pair["curator"])
        for pair in pairs
        if path in (pair["curator"], pair["peer"])
    ]
    sides = (
        ("agrees with", [other for ok, other in others if ok]),
        ("contradicts", [other for ok, other in others if ok is False]),
    )
    told = [f"{verb} {_listed(names)}" for verb, names in sides if names]
    return ", and ".join(told) or "was compared with no other party's"


def _listed(names: Iterable[str]) -> str:
    return listed([printable(name) for name in names], _LISTED)


def _digits(digest: str) -> str:
    return f"{digest[:_SHOWN_DIGITS]}…"
