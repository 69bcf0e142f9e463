"""``python -m curator`` and ``hushbid curator``."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from hushbid.curator.role import Curator
from hushbid.protocol.runtime.command import (
    JsonOption,
    LogFormatOption,
    LogLevelOption,
    log_to_stderr,
    run_verb,
    takes,
)
from hushbid.protocol.runtime.telemetry.logs import LogFormat, LogLevel

__all__ = ["command"]


@takes(Curator)
def command(
    curator: Curator,
    log_format: LogFormatOption = LogFormat.TEXT,
    log_level: LogLevelOption = LogLevel.INFO,
    as_json: JsonOption = False,
    progress_fd: Annotated[int | None, typer.Option(hidden=True)] = None,
) -> None:
    """Run a session's rounds as its curator, on this machine."""

    def body() -> dict[str, Any]:
        from hushbid.protocol.runtime.party import settle_process

        log_to_stderr("curator", log_format, log_level)
        settle_process()
        return curator.run(progress_fd=progress_fd).as_json()

    run_verb(body, as_json=as_json, show=_show)


def _show(result: Mapping[str, Any]) -> None:
    from hushbid.curator.ledger import Fault
    from hushbid.protocol.privacy.settlement import SettlementTerms
    from hushbid.protocol.session.guarantee import privacy_lines
    from hushbid.protocol.space.prices import bill_lines

    terms = SettlementTerms(**result["settlement_terms"])
    unit = " points (its standard error)" if terms.private else ""
    lines = [
        f"{result['points_delivered']} points were chosen in {result['rounds']} "
        f"round{'' if result['rounds'] == 1 else 's'}; "
        f"{result['points_accessed']} raw points were seen.",
        *(
            f"{owner} was absent from {rounds} round{'s' if rounds > 1 else ''}."
            for owner, rounds in result["absences"].items()
        ),
        *(
            f"{fault.owner}, round {fault.bid_round}: {fault.text}."
            for fault in map(Fault.of, result["faults"])
        ),
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
    from hushbid.protocol.privacy.payment import PaidStatement

    if statement is None:
        return []
    made = PaidStatement.from_json(statement)
    lines = [
        f"{owner} should be paid by {line.figures()}" for owner, line in made.owners.items() if line.paid
    ]
    return [made.sentence(), *(f"{line}." for line in lines)]
