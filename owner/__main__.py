"""``python -m owner``."""

from __future__ import annotations

from owner.cli import command
from protocol.runtime.command import run_command

if __name__ == "__main__":
    run_command(command)
