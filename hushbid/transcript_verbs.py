"""`hushbid transcript`: read a transcript, and check that its chain holds."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from protocol.errors import ExitCode
from protocol.runtime.command import run_verb

__all__ = ["transcript_app"]

transcript_app = typer.Typer(help="Read transcripts, and check them.")

JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]


@transcript_app.command("show")
def _show(
    file: Annotated[Path, typer.Argument(help="A transcript.")],
    private: Annotated[
        bool, typer.Option("--private", help="Show the values of private fields too: points, noise.")
    ] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Show at most this many records.")] = None,
    kind: Annotated[str | None, typer.Option(help="Show only events and effects of this kind.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Show what a party was given and did, record by record."""

    def body() -> dict[str, Any]:
        from hushbid.transcript_view import render_lines, show

        shown = _noting_unknown_kind(show(file, private=private, limit=limit, kind=kind), kind)
        if as_json:
            return _one_object(shown)
        # As it is read: a transcript may be large, and damage at its end is no reason to show nothing.
        render_lines(shown, Console())
        return {}

    run_verb(body, as_json=as_json)


@transcript_app.command("verify")
def _verify(
    files: Annotated[list[Path], typer.Argument(help="Transcripts.")], as_json: JsonOption = False
) -> None:
    """Check that transcripts are unchanged; ends with 1 if one is damaged, 4 if one is none.

    A file cut in the middle of a record is reported as torn; whole records cut off its end cannot be seen.
    """
    from hushbid.transcript_view import render_verifications, verify_all

    found: list[dict[str, Any]] = []

    def body() -> dict[str, Any]:
        found.extend(verify_all(files))
        return {"ok": all(each["ok"] for each in found), "transcripts": found}

    def show(_result: Mapping[str, Any]) -> None:
        render_verifications(found, Console())

    try:
        run_verb(body, as_json=as_json, show=show)
    except SystemExit as ending:
        # The result was printed, bad files included: they are what was asked for, but no success.
        bad = [each for each in found if not each["ok"]]
        if ending.code or not bad:
            raise
        damaged = any(each["record"] is not None for each in bad)
        raise SystemExit(ExitCode.FAILED if damaged else ExitCode.USAGE) from None


def _noting_unknown_kind(shown: Iterable[Mapping[str, Any]], kind: str | None) -> Iterator[Mapping[str, Any]]:
    """The same, but for what is to be said of a kind that is not there: that goes to stderr."""
    from hushbid.transcript_view import unknown_kind

    for part in shown:
        if part["type"] == "unknown-kind":
            sys.stderr.write(unknown_kind(kind or "", part["kinds"]) + "\n")
        else:
            yield part


def _one_object(shown: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    header: Mapping[str, Any] = {}
    records: list[Mapping[str, Any]] = []
    torn = 0
    for part in shown:
        if part["type"] == "header":
            header = part
        elif part["type"] == "torn":
            torn = part["bytes"]
        else:
            records.append(part)
    return {"header": header, "records": records, "torn_bytes": torn}
