"""Archives of the tree, and environments in which they are installed."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

import hushbid
from tests.conftest import ROOT
from tests.support.sources import copied

__all__ = ["LINKED", "LOCK", "Built", "Environment", "build", "public_names", "sources"]

LOCK = ROOT / "requirements.lock"
LINKED = ("consumer", "curator", "lab", "owner", "protocol")
"""Folders at the top, which are packages in hushbid; and what a user's own files may be called, too."""
SOURCES = (
    "pyproject.toml",
    "hatch_version.py",
    "README.md",
    "LICENSE",
    ".gitignore",
    "configs",
    "hushbid",
    *LINKED,
)


@dataclass(frozen=True)
class Built:
    """An sdist and a wheel of one tree."""

    sdist: Path
    wheel: Path


def sources(place: Path) -> Path:
    """The files that an archive is built from."""
    return copied(place, *SOURCES)


def public_names() -> dict[str, Any]:
    """Each public name of hushbid, and its module in this checkout."""
    return {name: getattr(getattr(hushbid, name), "__module__", None) for name in hushbid.__all__}


def build(tree: Path, into: Path) -> Built:
    """Build both by pyproject.toml's backend, as pip and `build` do."""
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(into)]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return Built(next(into.glob("*.tar.gz")), next(into.glob("*.whl")))


class Environment:
    """An environment of its own, and a directory far from the checkout to work in.

    Next to what is run there lie a user's own `consumer.py`, `curator.py`, `owner.py` and `protocol.py`.

    Args:
        place: An empty directory.
    """

    def __init__(self, place: Path) -> None:
        self.place = place
        self.python = place / "environment" / "bin" / "python"
        self.work = place / "work"
        self.work.mkdir()
        for name in LINKED:
            (self.work / f"{name}.py").write_text("raise SystemExit('this is not hushbid')\n")
        self._uv("venv", "--python", sys.executable, str(self.python.parents[1]))

    def install(self, *arguments: str) -> None:
        """Install from what `make install` has left in uv's cache; from the index if that lacks something."""
        command = ("pip", "install", "--python", str(self.python), *arguments)
        try:
            self._uv(*command, "--offline")
        except AssertionError:
            self._uv(*command)
        self._take_compiled()

    def _take_compiled(self) -> None:
        """Reuse this interpreter's byte code of the very same files, which uv links from its cache.

        Compiling a party's packages takes longer than all the tests. Python checks the source's time and size
        before it uses byte code, so wrong files do no harm.
        """
        ours = sysconfig.get_path("purelib")
        theirs = str(self.python.parents[1] / Path(ours).relative_to(sys.prefix))
        for place, _, names in os.walk(theirs):
            here = ours + place.removeprefix(theirs)
            for name in names:
                source, compiled = f"{place}/{name}", cache_from_source(f"{here}/{name}")
                there = cache_from_source(source)
                if not name.endswith(".py") or os.path.exists(there) or not os.path.exists(compiled):
                    continue
                if os.path.samefile(source, f"{here}/{name}"):
                    os.makedirs(os.path.dirname(there), exist_ok=True)
                    os.link(compiled, there)

    def _uv(self, *arguments: str) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "uv", *arguments],
            cwd=self.place,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr

    def ran(self, *arguments: str, code: int = 0) -> str:
        """Python's stdout when run with these arguments in a user's directory."""
        kept = ("PATH", "HOME", "LANG", "TMPDIR", "OPENBLAS_", "OMP_")
        variables = {name: value for name, value in os.environ.items() if name.startswith(kept)}
        done = subprocess.run(
            [str(self.python), *arguments],
            cwd=self.work,
            env=variables | {"XDG_STATE_HOME": str(self.place / "state")},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == code, (arguments, done.stdout[-2000:], done.stderr[-4000:])
        return done.stdout

    def script(self, name: str, *parts: str) -> str:
        """The output of a script of these parts, which is a user's own file."""
        (self.work / name).write_text("\n".join(parts), encoding="utf-8")
        return self.ran(name)
