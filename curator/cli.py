"""``python -m curator`` and ``hushbid curator``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from hushbid.curator.role import Curator
from hushbid.protocol.runtime.command import (
    JsonOption,
    JsonResult,
    LogFormatOption,
    LogLevelOption,
    log_to_stderr,
    run_verb,
    takes,
)
from hushbid.protocol.runtime.telemetry.logs import LogFormat, LogLevel

if TYPE_CHECKING:
    from hushbid.curator.result import CuratorResult

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

    def body() -> JsonResult:
        from hushbid.protocol.runtime.party import settle_process

        log_to_stderr("curator", log_format, log_level)
        settle_process()
        return curator.run(progress_fd=progress_fd)

    run_verb(body, as_json=as_json, show=_show)


def _show(result: CuratorResult) -> None:
    from hushbid.protocol.session.guarantee import privacy_lines

    terms, paid = result.settlement_terms, result.settlement_paid
    unit = " points (its standard error)" if terms.private else ""
    payments = {} if paid is None else paid.owners
    lines = [
        f"{result.points_delivered} points were chosen in {result.rounds} "
        f"round{'' if result.rounds == 1 else 's'}; {result.points_accessed} raw points were seen.",
        *(
            f"{owner} was absent from {rounds} round{'s' if rounds > 1 else ''}."
            for owner, rounds in result.absences.items()
        ),
        *(f"{fault.owner}, round {fault.bid_round}: {fault.text}." for fault in result.faults),
        *(
            f"Settlement of {owner}: {' ± '.join(terms.figures(value))}{unit}."
            for owner, value in result.settlement.items()
        ),
        terms.sentence(),
        *([] if paid is None else [paid.sentence()]),
        *(f"Payment due to {owner}: {line.figures()}." for owner, line in payments.items() if line.paid),
        *([] if result.bill is None else [result.bill.sentence()]),
        *privacy_lines(result.privacy),
        f"Transcript: {result.transcript}",
    ]
    sys.stdout.write("\n".join(lines) + "\n")
