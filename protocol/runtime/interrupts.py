"""How a program begins, and how Ctrl-C ends it during its imports; this module imports little."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import Final, NoReturn

from hushbid.protocol.printable import printable_lines, printable_source

__all__ = ["INTERRUPTED", "end_interrupted", "run_main"]

INTERRUPTED: Final = 130
"""The exit code that shells expect after Ctrl-C."""


def run_main(main: Callable[[], NoReturn]) -> NoReturn:
    """Run a program that imports what it needs when it is called.

    Args:
        main: Ends the process. An interrupt that it does not handle ends it with `INTERRUPTED`.
    """
    _open_what_is_closed()
    try:
        main()
    except KeyboardInterrupt:
        end_interrupted(as_json="--json" in sys.argv[1:])


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
    what = "\n".join(("Interrupted.", *notes))
    sys.stderr.write(f"{printable_lines(what)}\n")
    if as_json:
        error = {"kind": "Interrupted", "what": what, "advice": "", "exit_code": INTERRUPTED}
        sys.stdout.write(printable_source(json.dumps({"error": error})) + "\n")
        sys.stdout.flush()
    sys.exit(INTERRUPTED)
