"""`hushbid transcript`: read, verify, compare and export transcripts."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Any

import typer

from hushbid.cli.terminal import Terminal
from hushbid.protocol import ranges
from hushbid.protocol.errors import ConfigError, ExitCode
from hushbid.protocol.runtime.command import json_line, say, verb
from hushbid.protocol.runtime.ranged import ranged
from hushbid.protocol.runtime.standard_streams import is_unread
from hushbid.transcripts.api import Transcript, verify_transcripts
from hushbid.transcripts.shapes import Comparison, Shown
from hushbid.transcripts.verification.shapes import Verified

__all__ = ["transcript_app"]

transcript_app = typer.Typer(help="Read, verify, compare and export transcripts.")

JsonLinesOption = Annotated[bool, typer.Option("--json", help="JSON objects on stdout, one per line.")]


@transcript_app.command("show")
@verb()
def _show(
    file: Annotated[Path, typer.Argument(help="A transcript.")],
    rounds: Annotated[
        str | None, typer.Option("--round", help="Only records of round N, or of rounds A to B: N or A:B.")
    ] = None,
    peer: Annotated[
        str | None, typer.Option(help="Only messages from or to this peer; needs --private.")
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(help="Only events and effects of this kind; with --private, also messages."),
    ] = None,
    private: Annotated[
        bool, typer.Option("--private", help="Show the values of private fields too: points, noise.")
    ] = False,
    limit: Annotated[int | None, ranged(ranges.Count, help="Maximum number of records.")] = None,
    as_json: JsonLinesOption = False,
) -> dict[str, Any]:
    """Show a party's inputs and actions, record by record."""
    from hushbid.transcripts.view import RecordSelection, render_lines, show

    choice = RecordSelection(None if rounds is None else _rounds(rounds), peer, kind)
    all_of_it = show(file, private=private, choice=choice, limit=limit)
    read = takewhile(lambda _: not is_unread(), all_of_it)
    shown = _noting_missing(read, private=private)
    # As it is read: a transcript may be large, and damage at its end must not hide the rest.
    if as_json:
        return _as_lines(shown)
    render_lines(shown, Terminal())
    return {}


def _show_comparison(found: Comparison) -> None:
    from hushbid.transcripts.diff_view import render_comparison

    render_comparison(found, Terminal())


@transcript_app.command("diff")
@verb(show=_show_comparison, ends=lambda found: ExitCode.DONE if found["same"] else ExitCode.FAILED)
def _diff(
    a: Annotated[Path, typer.Argument(help="A transcript.")],
    b: Annotated[Path, typer.Argument(help="Another transcript of the same role.")],
    private: Annotated[bool, typer.Option("--private", help="Show private values too.")] = False,
    times: Annotated[bool, typer.Option("--times", help="Compare times too.")] = False,
) -> Comparison:
    """Show where two sessions diverge, and how much agrees; exit code 1 if anything differs.

    The comparison covers events, not times, salts or frame numbers.
    """
    from hushbid.transcripts.diff import compare

    return compare(a, b, private=private, times=times)


def _show_export(result: Mapping[str, Any]) -> None:
    from hushbid.transcripts.export import export_lines

    for line in export_lines(result):
        say(line)


@transcript_app.command("export")
@verb(show=_show_export)
def _export(
    file: Annotated[Path, typer.Argument(help="A transcript.")],
    output: Annotated[Path, typer.Option(help="A new file to write; existing files are not replaced.")],
    redact: Annotated[bool, typer.Option("--redact", help="Leave every private value out.")] = False,
    form: Annotated[
        str, typer.Option("--format", help="transcript (with --redact), jsonl, or parquet.")
    ] = "transcript",
) -> dict[str, Any]:
    """Write a transcript without its private fields, or as JSON lines or a table for other tools."""
    done = Transcript(file).export(output, redact=redact, format=form)
    return {
        "output": str(output),
        "format": form,
        "redacted": redact,
        "records": done.records,
        "head": done.head.hex(),
        "private_fields": done.private,
        "torn_bytes": done.torn_bytes,
    }


def _show_replay(result: Mapping[str, Any]) -> None:
    from hushbid.transcripts.replay_view import render_replays

    render_replays(result, Terminal())


@transcript_app.command("replay")
@verb(show=_show_replay)
def _replay(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Transcripts, each recorded by its party; or a state or run directory that contains them."
        ),
    ],
    recompute: Annotated[
        Path | None,
        typer.Option(help="The party's own file: also recompute features, releases and bids from its data."),
    ] = None,
) -> dict[str, Any]:
    """Feed the recorded events and noise to the same machine again; exit code 1 if it acts differently."""
    from hushbid.report.sources import transcripts_of
    from hushbid.transcripts.replay_view import replay_all

    return replay_all(transcripts_of(*files), recompute)


def _show_verified(result: Verified) -> None:
    from hushbid.transcripts.verification.text import render_verification

    render_verification(result, Terminal())


def _ends_verified(found: Verified) -> ExitCode:
    if found["ok"]:
        return ExitCode.DONE
    bad = [each for each in found["transcripts"] if not each["ok"]]
    unread = bool(bad) and all(each["record"] is None for each in bad)
    contradicted = any(each["ok"] is False for part in ("pairs", "versions") for each in found[part])
    contradicted |= bool(found["equivocations"] or found["heads"])
    return ExitCode.USAGE if unread and not contradicted else ExitCode.FAILED


@transcript_app.command("verify")
@verb(show=_show_verified, ends=_ends_verified)
def _verify(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Transcripts of one session, of any party; or a state or run directory that contains them."
        ),
    ],
) -> Verified:
    """Check transcripts: chains, signatures, and that parties' files agree.

    Exit code 1: a file is damaged, or files contradict each other; 4: a file is no transcript, or the files
    are of different sessions. A file cut in the middle of a record is reported as torn; whole records missing
    at its end show only against the files of others.
    """
    from hushbid.report.sources import transcripts_of

    return verify_transcripts(transcripts_of(*files))


def _rounds(text: str) -> range:
    """The rounds that N or A:B stands for, inclusive."""
    first, colon, last = text.partition(":")
    if first.isdecimal() and (last if colon else first).isdecimal():
        rounds = range(int(first), int(last if colon else first) + 1)
        if rounds:
            return rounds
    raise ConfigError(
        f"--round {text}: neither a round nor rounds from one to a later one.",
        advice="Give a number, as in 12, or the first and the last, as in 12:15; 0 is before the first.",
    )


def _noting_missing(shown: Iterable[Shown], *, private: bool) -> Iterator[Shown]:
    """The same; requested names that occur nowhere are reported on stderr."""
    from hushbid.transcripts.view import missing_lines

    for part in shown:
        if part["type"] == "end":
            for line in missing_lines(part, private=private):
                say(line)
        yield part


def _as_lines(shown: Iterable[Shown]) -> dict[str, Any]:
    """Print each part as a line, as it is read, except the last: that is the verb's result."""
    for part in shown:
        if part["type"] == "end":
            sys.stdout.flush()
            return dict(part)
        sys.stdout.write(json_line(part))
    return {}
