"""How a verb of the command line ends: one JSON object or people's text, and the right exit code."""

from __future__ import annotations

import json
import logging
import math
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn

import typer
from typer.exceptions import TyperException

from protocol.errors import ConfigError, ExitCode, HushbidError

__all__ = ["INTERRUPTED", "fail", "run_app", "run_command", "run_verb", "set_up_logging"]

INTERRUPTED: Final = 130
"""What a shell expects of a process that Ctrl-C ended."""


def run_verb(
    body: Callable[[], Mapping[str, Any]],
    *,
    as_json: bool,
    show: Callable[[Mapping[str, Any]], None] | None = None,
) -> NoReturn:
    """Run a verb and end the process with its exit code.

    Args:
        body: Does the work and returns the verb's result.
        as_json: Print the result as one JSON object on stdout; people's text stays on stderr.
        show: Prints the result for people; None: nothing more is to be said.
    """
    try:
        result = body()
        if as_json:
            _print_json(result)
        elif show is not None:
            show(result)
    except HushbidError as error:
        fail(error, as_json=as_json)
    except KeyboardInterrupt:
        _end_interrupted(as_json=as_json)
    except BrokenPipeError:
        # Who reads has read enough, as `head` does. What is left to be written at the end goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(ExitCode.FAILED)
    except Exception:
        sys.stderr.write("".join(f"{_escaped(line)}\n" for line in traceback.format_exc().splitlines()))
        sys.stderr.write("This is a bug in hushbid: please report it with the lines above.\n")
        if as_json:
            _print_json(
                {"error": _error("bug", "An unexpected error; see stderr.", "Report it.", ExitCode.BUG)}
            )
        sys.exit(ExitCode.BUG)
    sys.exit(ExitCode.DONE)


def fail(error: HushbidError, *, as_json: bool) -> NoReturn:
    """Say what went wrong and end the process. A peer's text cannot steer the terminal or begin a line."""
    for start, text in (("hushbid: ", error.what), ("         ", error.advice)):
        for line in text.split("\n") if text else ():
            sys.stderr.write(f"{start}{_escaped(line)}\n")
            start = "         "
    if as_json:
        _print_json({"error": _error(type(error).__name__, error.what, error.advice, error.exit_code)})
    sys.exit(error.exit_code)


def set_up_logging(party: str) -> None:
    """Log to stderr, one line an event, with the party's name. No log line holds a private value."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_OneLine(f"%(asctime)s {party} %(levelname)s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)


class _OneLine(logging.Formatter):
    """Keeps a message that holds a peer's text to one line without control characters."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        return _escaped(super().formatMessage(record))


def run_command(command: Callable[..., None]) -> NoReturn:
    """Run one verb as a program of its own."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(command)
    run_app(app)


def run_app(app: typer.Typer) -> NoReturn:
    """Run a command line and end the process with the verb's exit code; usage errors end with 4."""
    try:
        code = app(standalone_mode=False)
    except TyperException as error:
        usage = ConfigError(error.format_message(), advice="`--help` lists what can be given.")
        fail(usage, as_json="--json" in sys.argv[1:])
    except typer.Abort:
        _end_interrupted(as_json="--json" in sys.argv[1:])
    sys.exit(code or ExitCode.DONE)


def _end_interrupted(*, as_json: bool) -> NoReturn:
    sys.stderr.write("Interrupted.\n")
    if as_json:
        _print_json({"error": _error("Interrupted", "Interrupted.", "", INTERRUPTED)})
    sys.exit(INTERRUPTED)


def _escaped(text: str) -> str:
    """The text with its unprintable characters escaped, those that turn its direction among them."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def _finite(value: Any) -> Any:
    """A value for JSON, which knows no number that is not finite: such a figure is null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


def _error(kind: str, what: str, advice: str, code: int) -> dict[str, Any]:
    return {"kind": kind, "what": what, "advice": advice, "exit_code": int(code)}


def _print_json(value: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(_finite(value), allow_nan=False) + "\n")
    sys.stdout.flush()
