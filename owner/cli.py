"""``python -m owner`` and ``hushbid owner``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hushbid.owner.role import Owner
from hushbid.protocol.runtime.command import (
    JsonOption,
    JsonResult,
    LogFormatOption,
    LogLevelOption,
    log_to_stderr,
    run_verb,
    takes,
    tell,
)
from hushbid.protocol.runtime.telemetry.logs import LogFormat, LogLevel

if TYPE_CHECKING:
    from hushbid.owner.result import OwnerResult

__all__ = ["command"]


@takes(Owner)
def command(
    owner: Owner,
    log_format: LogFormatOption = LogFormat.TEXT,
    log_level: LogLevelOption = LogLevel.INFO,
    as_json: JsonOption = False,
) -> None:
    """Take part in a session as an owner, on this machine."""

    def body() -> JsonResult:
        from hushbid.protocol.runtime.party import settle_process

        log_to_stderr("owner", log_format, log_level)
        session, file = owner.files()
        log_to_stderr(file.name, log_format, log_level)
        settle_process()
        return owner.run_as(session, file)

    run_verb(body, as_json=as_json, show=_show)


def _show(result: OwnerResult) -> None:
    from hushbid.protocol.session.guarantee import privacy_lines

    lines = [
        f"{result.owner}: {result.handed_over} of {result.points} points were handed over in "
        f"{result.rounds} round{'' if result.rounds == 1 else 's'}.",
        *privacy_lines(result.privacy),
        f"Transcript: {result.transcript}",
    ]
    tell("\n".join(lines))
