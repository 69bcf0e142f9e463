"""`hushbid curator` and `hushbid owner`: these parties as their own packages run them."""

from __future__ import annotations

from hushbid.curator.cli import command as curator_command
from hushbid.owner.cli import command as owner_command

__all__ = ["curator_command", "owner_command"]
