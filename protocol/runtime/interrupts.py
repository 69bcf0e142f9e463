"""How a program begins, and how Ctrl-C ends it during its imports; this module imports little."""

from __future__ import annotations

import atexit
import gc
import io
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from types import FrameType
from typing import Final, NoReturn

from hushbid.protocol.errors import ConfigError
from hushbid.protocol.printable import printable_lines, printable_source
from hushbid.protocol.runtime.standard_streams import outlive_readers
from hushbid.protocol.utf8_names import check_utf8

__all__ = [
    "INTERRUPTED",
    "LAUNCHED",
    "SignalEnd",
    "end_at_once",
    "end_by_signal",
    "end_interrupted",
    "print_error",
    "run_main",
]

INTERRUPTED: Final = 130
"""The exit code that shells expect after Ctrl-C."""
LAUNCHED: Final = "HUSHBID_LAUNCHED"
"""Set for a party whose launcher holds the other end of its stdin: it stops where that is closed."""

_SELDOM: Final = (20_000, 50, 100)
"""Thresholds of the garbage collector. A collection looks at existing objects too, imports make very many of
them, and messages and figures few cycles: at the default thresholds collecting takes a tenth of a run.
"""

_WIDTHS: Final = ("COLUMNS", "LINES", "TERMINAL_WIDTH")
"""Variables that say the size of the terminal, to Rich or to Typer."""

_NO_WORK: Final = frozenset({"-h", "--help", "--version"})

_code: int | None = None
"""What the process is to end with, once that is known."""


class SignalEnd(SystemExit):
    """A signal that unwinds the stack, as Ctrl-C does, with the exit code that shells expect of it."""

    def __init__(self, number: int) -> None:
        super().__init__(128 + number)
        self.name = signal.Signals(number).name


@cache
def end_at_once() -> None:
    """Have the process end without taking its modules apart first, an eighth of the time of a short verb.

    It ends so where a program of `run_main` says its exit code. All that is registered for the end (`atexit`)
    from now on runs before.
    """
    atexit.register(_end)


def _end() -> None:
    if _code is None:
        return
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        return  # Python says what cannot be written, and has a code for it
    os._exit(_code)


def run_main(main: Callable[[], NoReturn], *, party: bool = False) -> NoReturn:
    """Run a program that imports what it needs when it is called.

    Args:
        main: Ends the process. An interrupt that it does not handle ends it with `INTERRUPTED`.
        party: Whether it is a party of a session: SIGTERM before it takes part then ends it as later on.
    """
    end_at_once()
    gc.set_threshold(*_SELDOM)
    try:
        _run(main, party=party)
    except SystemExit as end:
        global _code  # noqa: PLW0603 - a process ends once
        if end.code is None or isinstance(end.code, int):
            _code = end.code or 0
        raise


def _run(main: Callable[[], NoReturn], *, party: bool) -> NoReturn:
    if party:
        signal.signal(signal.SIGTERM, _stopped)
    _open_what_is_closed()
    outlive_readers()
    _show_what_cannot_be_encoded()
    _forget_widths_of_nothing()
    try:
        if party and os.environ.pop(LAUNCHED, ""):
            threading.Thread(target=_stop_with_launcher, daemon=True).start()
        check_utf8(_words())
        main()
    except ConfigError as error:  # of the words: a verb ends with its own
        from hushbid.protocol.runtime.ending import fail  # noqa: PLC0415 - it imports this module

        fail(error, as_json="--json" in sys.argv[1:])
    except KeyboardInterrupt:
        end_interrupted(as_json="--json" in sys.argv[1:])
    except (ImportError, OSError, MemoryError, RuntimeError) as error:
        from hushbid.protocol.shortage import shortage_of  # noqa: PLC0415 - a program that begins imports little

        if (short := shortage_of(error)) is None:
            raise
        sys.stderr.write(f"hushbid: {printable_lines(str(short))}\n")
        if "--json" in sys.argv[1:]:
            print_error(type(short).__name__, short.what, short.advice, short.exit_code)
        sys.exit(short.exit_code)


def _stopped(_number: int, _frame: FrameType | None) -> NoReturn:
    """End a party that is told to stop before its session runs (then `Control` has the signal)."""
    what = "Stopped by SIGTERM before it took part; what was recorded is kept."
    _say_error("Stopped", what, 1, as_json="--json" in sys.argv[1:])
    sys.exit(1)


def _stop_with_launcher() -> None:
    """Stop this process, as SIGTERM does, when its launcher is gone: nobody would look after it."""
    while os.read(0, 1):
        pass
    from hushbid.protocol import platform  # noqa: PLC0415 - a program that begins imports little

    platform.stop_this_process()


def _show_what_cannot_be_encoded() -> None:
    """Write characters that the terminal's encoding lacks as escapes, in place of ending with an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _words() -> Iterator[str]:
    """All that names files, before anything is done: arguments, variables, and the working directory."""
    yield from sys.argv[1:]
    yield from (value for name, value in os.environ.items() if name.startswith("HUSHBID_"))
    if _NO_WORK.intersection(sys.argv):
        return
    try:
        yield os.getcwd()
    except OSError:  # it was removed, which whatever needs it reports
        return


def _forget_widths_of_nothing() -> None:
    """Take a size of 0 as unset, as Python itself does: Rich would print into no column, which is nothing."""
    for name in _WIDTHS:
        if not os.environ.get(name, "1").strip("0"):
            del os.environ[name]


def _open_what_is_closed() -> None:
    """Open the null device for standard streams that the process started without.

    Otherwise the next opened file, perhaps a transcript, would get their number: libraries would print into
    it, and child processes would read it as their stdin.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            from hushbid.protocol import platform  # noqa: PLC0415 - a program that begins imports little

            platform.open_nowhere()  # gets the lowest number that is free: this one
            os.set_inheritable(descriptor, True)
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)


def end_interrupted(*, as_json: bool, notes: Sequence[str] = ()) -> NoReturn:
    """End the process as Ctrl-C does.

    Args:
        as_json: Also print the error as one JSON object on stdout.
        notes: Lines about what was or was not left behind.
    """
    _say_error("Interrupted", "\n".join(("Interrupted.", *notes)), INTERRUPTED, as_json=as_json)
    sys.exit(INTERRUPTED)


def end_by_signal(end: SignalEnd, *, as_json: bool) -> NoReturn:
    """End the process as `end_interrupted` does, with the notes and the exit code of a signal."""
    what = "\n".join((f"Ended by {end.name}.", *getattr(end, "__notes__", ())))
    _say_error("Stopped", what, int(end.code or 0), as_json=as_json)
    raise end


def _say_error(kind: str, what: str, code: int, *, as_json: bool) -> None:
    sys.stderr.write(f"{printable_lines(what)}\n")
    if as_json:
        print_error(kind, what, "", code)


def print_error(kind: str, what: str, advice: str, code: int) -> None:
    """Print an error as one JSON object on stdout; raises `OSError` if that takes nothing."""
    error = {"kind": kind, "what": what, "advice": advice, "exit_code": int(code)}
    sys.stdout.write(printable_source(json.dumps({"error": error})) + "\n")
    sys.stdout.flush()
