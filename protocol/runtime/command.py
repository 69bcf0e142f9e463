"""How a verb of the command line ends: one JSON object or people's text, and the right exit code."""

from __future__ import annotations

import json
import logging
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
    except HushbidError as error:
        fail(error, as_json=as_json)
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted.\n")
        sys.exit(INTERRUPTED)
    except Exception:
        sys.stderr.write(traceback.format_exc())
        sys.stderr.write("This is a bug in hushbid: please report it with the lines above.\n")
        if as_json:
            _print_json(
                {"error": _error("bug", "An unexpected error; see stderr.", "Report it.", ExitCode.BUG)}
            )
        sys.exit(ExitCode.BUG)
    if as_json:
        _print_json(result)
    elif show is not None:
        show(result)
    sys.exit(ExitCode.DONE)


def fail(error: HushbidError, *, as_json: bool) -> NoReturn:
    """Say what went wrong and end the process."""
    sys.stderr.write(f"hushbid: {error.what}\n")
    if error.advice:
        sys.stderr.write(f"         {error.advice}\n")
    if as_json:
        _print_json({"error": _error(type(error).__name__, error.what, error.advice, error.exit_code)})
    sys.exit(error.exit_code)


def set_up_logging(party: str) -> None:
    """Log to stderr, one line an event, with the party's name. No log line holds a private value."""
    logging.basicConfig(
        level=logging.INFO,
        stream=sys.stderr,
        format=f"%(asctime)s {party} %(levelname)s %(message)s",
        force=True,
    )


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
        code = INTERRUPTED
    sys.exit(code or ExitCode.DONE)


def _error(kind: str, what: str, advice: str, code: ExitCode) -> dict[str, Any]:
    return {"kind": kind, "what": what, "advice": advice, "exit_code": int(code)}


def _print_json(value: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(value, allow_nan=False) + "\n")
    sys.stdout.flush()
