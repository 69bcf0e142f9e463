"""A party's log: one line an event, as text for people or as JSON for machines, on stderr.

`hushbid.protocol.runtime.telemetry.log_events` lists all events. Both forms have the same fields; a peer's
text cannot steer a terminal or begin a line.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from hushbid.protocol.errors import ExitCode
from hushbid.protocol.names import listed
from hushbid.protocol.printable import printable, printable_source
from hushbid.protocol.runtime.telemetry.log_events import LogEvent

if TYPE_CHECKING:
    from hushbid.protocol.machine.machine import Finish

__all__ = [
    "LINES_PER_MINUTE",
    "LogFormat",
    "LogLevel",
    "SessionLog",
    "ending_event",
    "log",
    "logs_json",
    "set_up_logging",
]

LINES_PER_MINUTE: Final = 20
"""Lines of one kind about one peer; further ones are counted, and the count is logged: a flood must not fill
the disk.
"""
_WINDOW_SECONDS: Final = 60.0
_LISTED: Final = 8
"""Items of a list in a line of text; its field has all."""

_logger = logging.getLogger("hushbid")


class LogFormat(StrEnum):
    """Form of a log's lines."""

    TEXT = "text"
    JSON = "json"


class LogLevel(StrEnum):
    """The least that a log has."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


def set_up_logging(party: str, form: LogFormat = LogFormat.TEXT, level: LogLevel = LogLevel.INFO) -> None:
    """Log to stderr, one line an event, with the party's name. No log line has a private value."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLines(party) if form is LogFormat.JSON else _TextLines(party))
    logging.basicConfig(level=level.name, handlers=[handler], force=True)


def log(event: LogEvent, *, trace: bool = False, **fields: Any) -> None:
    """Log an event.

    Args:
        trace: Add the error that is being handled.
        fields: The event's, and `phase` and `round` if known.
    """
    shown = {
        name: (listed(value, _LISTED) or "none") if isinstance(value, list) else value
        for name, value in fields.items()
    }
    text, extra = event.text.format(**shown), {"event": event.event, "fields": fields}
    _logger.log(event.level, text, extra=extra, exc_info=trace)


def ending_event(finish: Finish) -> LogEvent:
    """The line about how a session ended for a party."""
    return LogEvent.SESSION_COMPLETE if finish.code is ExitCode.DONE else LogEvent.SESSION_GIVEN_UP


def logs_json() -> bool:
    """Whether stderr is a log of JSON lines, which nothing else may enter."""
    return any(isinstance(handler.formatter, _JsonLines) for handler in logging.getLogger().handlers)


class SessionLog:
    """The log of a party's loop: lines have the phase and round, and are limited by peer.

    Args:
        where: Returns the phase, and the round if there is one yet.
        clock: In seconds.
    """

    def __init__(
        self, where: Callable[[], Mapping[str, Any]], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._where = where
        self._clock = clock
        self._windows: dict[tuple[str, str], tuple[float, int]] = {}
        """By event and peer: start of the window, and number of lines."""

    def __call__(self, event: LogEvent, **fields: Any) -> None:
        """Log an event; one with a `peer` only within the limit of its kind."""
        peer = fields.get("peer")
        if peer is None or self._may_write(event.event, peer):
            log(event, **{**self._where(), **fields})

    def close(self) -> None:
        """Log the numbers of suppressed lines."""
        for event, peer in list(self._windows):
            self._end_window(event, peer)

    def _may_write(self, event: str, peer: str) -> bool:
        now = self._clock()
        since, count = self._windows.get((event, peer), (now, 0))
        if now - since >= _WINDOW_SECONDS:
            self._end_window(event, peer)
            since, count = now, 0
        self._windows[event, peer] = since, count + 1
        return count < LINES_PER_MINUTE

    def _end_window(self, event: str, peer: str) -> None:
        _, count = self._windows.pop((event, peer), (0.0, 0))
        if count > LINES_PER_MINUTE:
            suppressed: dict[str, Any] = {"kind": event, "peer": peer, "count": count - LINES_PER_MINUTE}
            log(LogEvent.LINES_SUPPRESSED, **self._where(), **suppressed)


def _time(record: logging.LogRecord) -> str:
    when = datetime.fromtimestamp(record.created, UTC)
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _fields(record: logging.LogRecord) -> Mapping[str, Any]:
    return getattr(record, "fields", {})


def _event_of(record: logging.LogRecord) -> str:
    """The event's name; for a foreign line, the logger's."""
    return str(getattr(record, "event", record.name))


class _TextLines(logging.Formatter):
    """`time party LEVEL event [phase round] text`; the text has the event's own fields."""

    def __init__(self, party: str) -> None:
        super().__init__()
        self._party = party

    def format(self, record: logging.LogRecord) -> str:
        fields = _fields(record)
        where = " ".join(str(fields[name]) for name in ("phase", "round") if name in fields)
        line = (
            f"{_time(record)} {self._party} {record.levelname} {_event_of(record)}"
            f"{f' [{where}]' if where else ''} {record.getMessage()}"
        )
        if record.exc_info:
            line += f" {self.formatException(record.exc_info)}"
        return printable(line)


class _JsonLines(logging.Formatter):
    """One JSON object a line: time, party, level, event, message, and the event's fields."""

    def __init__(self, party: str) -> None:
        super().__init__()
        self._party = party

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": _time(record),
            "party": self._party,
            "level": record.levelname.lower(),
            "event": _event_of(record),
            "message": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return printable_source(json.dumps(line))
