"""`hushbid consumer`: the consumer, with a rehearsal before it connects."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hushbid.consumer.cli import run_consumer_verb
from hushbid.parties import Consumer
from hushbid.protocol.errors import HushbidError
from hushbid.protocol.runtime.command import JsonOption, LogFormatOption, LogLevelOption, say, takes
from hushbid.protocol.runtime.telemetry.logs import LogFormat, LogLevel, logs_json

if TYPE_CHECKING:
    from hushbid.consumer.result import ConsumerResult

__all__ = ["consumer_command"]


@takes(Consumer)
def consumer_command(
    consumer: Consumer,
    log_format: LogFormatOption = LogFormat.TEXT,
    log_level: LogLevelOption = LogLevel.INFO,
    as_json: JsonOption = False,
) -> None:
    """Take part in a session as its consumer, on this machine."""
    run_consumer_verb(replace(consumer, say=_say), log_format, log_level, as_json=as_json, after=_report)


def _report(result: ConsumerResult) -> ConsumerResult:
    """Write a page on the session beside its transcript. A failure is printed, and the result is kept."""
    from hushbid.consumer.store import RESULT_FILE, keep_report
    from hushbid.running.report import REPORT, write_report

    page = result.transcript.with_name(REPORT)
    try:
        write_report([result.transcript], page, evaluation=page.with_name(RESULT_FILE))
        keep_report(page)
    except HushbidError as error:
        _say(f"WARNING: no report was written: {error.what}")
        return result
    return replace(result, report=page)


def _say(line: str) -> None:
    if not logs_json():  # their stderr carries only the log, which already has the verdict
        say(line)
