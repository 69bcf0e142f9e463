"""How a process ends that Ctrl-C ended, also while it still imports: a module that itself imports little."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from typing import Final, NoReturn

__all__ = ["INTERRUPTED", "end_interrupted", "run_main"]

INTERRUPTED: Final = 130
"""The exit code that a shell expects of a process that Ctrl-C ended."""


def run_main(main: Callable[[], NoReturn]) -> NoReturn:
    """Run a program that imports what it needs when it is called.

    Args:
        main: Ends the process. An interrupt that it does not treat itself ends it with `INTERRUPTED`.
    """
    try:
        main()
    except KeyboardInterrupt:
        end_interrupted(as_json="--json" in sys.argv[1:])


def end_interrupted(*, as_json: bool, notes: Sequence[str] = ()) -> NoReturn:
    """End the process as Ctrl-C does.

    Args:
        as_json: Print the error as one JSON object on stdout, too.
        notes: Lines of what was left, or was not.
    """
    what = "\n".join(("Interrupted.", *notes))
    sys.stderr.write(f"{what}\n")
    if as_json:
        error = {"kind": "Interrupted", "what": what, "advice": "", "exit_code": INTERRUPTED}
        sys.stdout.write(json.dumps({"error": error}) + "\n")
        sys.stdout.flush()
    sys.exit(INTERRUPTED)
