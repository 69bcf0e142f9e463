"""``python -m curator`` and ``hushbid curator``."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from protocol.runtime.command import KeyOption, LogFormatOption, MetricsOption, StateOption, run_verb
from protocol.runtime.logs import LogFormat, set_up_logging

__all__ = ["command"]


def command(
    session: Annotated[Path, typer.Option(help="The session file.", envvar="HUSHBID_SESSION")],
    config: Annotated[Path, typer.Option(help="The curator's private file.", envvar="HUSHBID_CONFIG")],
    listen: Annotated[
        str | None, typer.Option(help="Address to bind, in place of the files'.", envvar="HUSHBID_LISTEN")
    ] = None,
    key: KeyOption = None,
    state: StateOption = None,
    metrics: MetricsOption = None,
    log_format: LogFormatOption = LogFormat.TEXT,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
    progress_fd: Annotated[int | None, typer.Option(hidden=True)] = None,
) -> None:
    """Run a session's rounds as its curator, on this machine."""

    def body() -> dict[str, Any]:
        from curator.process import run_curator
        from protocol.config.loading import load_toml
        from protocol.config.party import CuratorFile
        from protocol.config.session import SessionFile

        set_up_logging("curator", log_format)
        session_file = load_toml(SessionFile, session)
        file = load_toml(CuratorFile, config).resolved(config.parent)
        file = file.with_options(listen=listen, key=key, state=state, metrics=metrics)
        return run_curator(session_file, file, progress=progress_fd)

    run_verb(body, as_json=as_json, show=_show)


def _show(result: Mapping[str, Any]) -> None:
    from protocol.prices import bill_lines
    from protocol.session import privacy_lines
    from protocol.settlement import SettlementTerms

    terms = SettlementTerms(**result["settlement_terms"])
    unit = " points (its standard error)" if terms.private else ""
    lines = [
        f"{result['points_delivered']} points were chosen in {result['rounds']} rounds; "
        f"{result['points_accessed']} raw points were seen.",
        *(
            f"{owner} was absent from {rounds} round{'s' if rounds > 1 else ''}."
            for owner, rounds in result["absences"].items()
        ),
        *(f"{fault['owner']}, round {fault['round']}: {fault['what']}." for fault in result["faults"]),
        *(
            f"Settlement of {owner}: {' ± '.join(terms.figures(value))}{unit}."
            for owner, value in result["settlement"].items()
        ),
        terms.sentence(),
        *_paid(result["settlement_paid"]),
        *bill_lines(result["bill"]),
        *privacy_lines(result["privacy"]),
        f"Transcript: {result['transcript']}",
    ]
    sys.stdout.write("\n".join(lines) + "\n")


def _paid(statement: Mapping[str, Any] | None) -> list[str]:
    from protocol.payment import PaidStatement

    if statement is None:
        return []
    made = PaidStatement.from_json(statement)
    lines = [
        f"{owner} should be paid by {line.figures()}" for owner, line in made.owners.items() if line.paid
    ]
    return [made.sentence(), *(f"{line}." for line in lines)]
