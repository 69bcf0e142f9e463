"""``hushbid`` and ``python -m hushbid``."""

from __future__ import annotations

import sys
from typing import NoReturn

from hushbid.protocol.runtime.interrupts import run_main

__all__ = ["main"]


def main() -> NoReturn:
    """Run the command line and end the process with the verb's exit code."""
    run_main(_app, party=sys.argv[1:2] in (["curator"], ["owner"], ["consumer"]))


def _app() -> NoReturn:
    if sys.argv[1:2] in (["health"], ["status"]):
        from hushbid.cli.health_check import run_plain

        run_plain(sys.argv[1:])  # returns what it leaves to the command line's parser
    from hushbid.cli.app import main as run  # whose imports take most of a second, which Ctrl-C may end

    run()


if __name__ == "__main__":
    main()
