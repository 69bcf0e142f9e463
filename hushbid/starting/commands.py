"""Commands to paste, as `hushbid init` and `hushbid again` print them."""

from __future__ import annotations

import shlex
from pathlib import Path

from pydantic.dataclasses import dataclass as figures

from hushbid.protocol.figures import Figures

__all__ = ["Command", "quoted"]


@figures(frozen=True)
class Command(Figures):
    """A command, `where` to paste it, and `what` for; empty: its verb says it."""

    where: str
    command: str
    what: str = ""


def quoted(path: Path) -> str:
    """A path for a shell, relative to the working directory if it is below it."""
    here = Path.cwd()
    return shlex.quote(str(path.relative_to(here) if path.is_relative_to(here) else path))
