"""Copies of the tree as git has it, or would take it with uncommitted changes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.conftest import ROOT

__all__ = ["copied", "listed"]


def listed(*places: str) -> list[str]:
    """The files and links of these places, or of the whole tree, without deleted ones."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *places]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in done.stdout.split("\0") if name and (ROOT / name).exists()]


def copied(destination: Path, *places: str) -> Path:
    """Copy them, links as links."""
    for name in listed(*places):
        (destination / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, destination / name, follow_symlinks=False)
    return destination
