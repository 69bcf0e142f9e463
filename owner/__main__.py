"""``python -m owner``."""

from __future__ import annotations

from typing import NoReturn

from hushbid.protocol.runtime.interrupts import run_main


def main() -> NoReturn:
    """Run the command line."""
    from hushbid.owner.cli import command
    from hushbid.protocol.runtime.command import run_command

    run_command(command)


if __name__ == "__main__":
    run_main(main, party=True)
