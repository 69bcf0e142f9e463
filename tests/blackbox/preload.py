"""The preloaded library that fakes disk errors and clock jumps, compiled where there is a compiler."""

from __future__ import annotations

import errno
import shutil
import struct
import subprocess
from functools import cache
from pathlib import Path
from typing import Final

__all__ = ["Control", "library"]

_SOURCE: Final = Path(__file__).with_name("faults.c")
_CONTROL: Final = struct.Struct("=iiq")


@cache
def library(directory: Path) -> Path | None:
    """The compiled library; None without a C compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    made = directory / "faults.so"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", made, _SOURCE, "-ldl"], check=True
    )
    return made


class Control:
    """One process's control of the library, through a file that both map."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.write_bytes(_CONTROL.pack(0, 0, 0))

    def say(self, *, failures: int = 0, full: bool = False, seconds: int = 0) -> None:
        """Make the next calls fail, and move the clock ahead by some seconds."""
        with self.path.open("r+b") as file:
            file.write(_CONTROL.pack(failures, errno.ENOSPC if full else errno.EIO, seconds))
