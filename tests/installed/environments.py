"""Archives of the tree, and environments in which they are installed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

import hushbid
from tests.conftest import ROOT
from tests.support.sources import copied

__all__ = ["LINKED", "LOCK", "Built", "Environment", "Warm", "build", "public_names", "sources"]

INSIDE = ROOT / "tests" / "installed" / "inside.py"
LOCK = ROOT / "requirements.lock"
OURS = sysconfig.get_path("purelib")
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


def _link(path: str, to: str) -> None:
    os.makedirs(os.path.dirname(to), exist_ok=True)
    os.link(path, to)


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
        """Reuse byte code of the very same files, which uv links from its cache, and of hushbid's own.

        Compiling a party's packages takes longer than all the tests. Python checks the source's time and size
        before it uses byte code, so wrong files do no harm.
        """
        for name, source, there in self._modules():
            if os.path.exists(there):
                continue
            for place in (OURS, str(ROOT)):
                here = place + name
                compiled = cache_from_source(here)
                if not (os.path.exists(compiled) and os.path.exists(here)):
                    continue
                if place == str(ROOT) and Path(here).read_bytes() == Path(source).read_bytes():
                    before = os.stat(here)
                    os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))
                elif not os.path.samefile(here, source):
                    continue
                _link(compiled, there)
                break

    def _modules(self) -> Iterator[tuple[str, str, str]]:
        """Each module's path below the packages, its source, and its byte code, which may not be there."""
        theirs = str(self.python.parents[1] / Path(OURS).relative_to(sys.prefix))
        for place, _, names in os.walk(theirs):
            for name in names:
                if name.endswith(".py"):
                    source = f"{place}/{name}"
                    yield source.removeprefix(theirs), source, cache_from_source(source)

    def _uv(self, *arguments: str) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "uv", *arguments],
            cwd=self.place,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr

    def variables(self) -> dict[str, str]:
        """The variables of what runs there."""
        kept = ("PATH", "HOME", "LANG", "TMPDIR", "OPENBLAS_", "OMP_")
        variables = {name: value for name, value in os.environ.items() if name.startswith(kept)}
        return variables | {"XDG_STATE_HOME": str(self.place / "state")}

    def ran(self, *arguments: str, code: int = 0) -> str:
        """Python's stdout when run with these arguments in a user's directory."""
        done = subprocess.run(
            [str(self.python), *arguments],
            cwd=self.work,
            env=self.variables(),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == code, (arguments, done.stdout[-2000:], done.stderr[-4000:])
        return done.stdout

    def script(self, name: str, *parts: str) -> Path:
        """A script of these parts, which is a user's own file."""
        path = self.work / name
        path.write_text("\n".join(parts), encoding="utf-8")
        return path


class Warm:
    """A process of an environment in a user's directory that has imported everything, and forks others.

    Python and the imports take longer than most of what tests run there. A forked process does not show that
    what it runs imports all that it needs; tests of that start Python (`Environment.ran`).

    Attributes:
        found: What it has found there (`inside.look`).
    """

    def __init__(self, environment: Environment) -> None:
        self._work = environment.work
        self._process = subprocess.Popen(
            # The user's own files come first, as they do for `python -c` and for a script.
            [
                str(environment.python),
                "-c",
                f"import runpy; runpy.run_path({str(INSIDE)!r}, run_name='__main__')",
            ],
            cwd=self._work,
            # Who is forked could wait for threads that it lacks.
            env=environment.variables() | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            text=True,
        )
        try:
            said = self._said()
            assert said, "it ended, and stderr says why"
            self.found: dict[str, Any] = json.loads(said)
        except BaseException:
            self.close()
            raise

    def _said(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def ran(self, *words: str | Path, code: int = 0) -> str:
        """The stdout of a script with these arguments, or of `hushbid`."""
        with tempfile.TemporaryDirectory() as place:
            out, err = Path(place, "out"), Path(place, "err")
            for stream in (out, err):
                stream.touch()
            assert self._process.stdin is not None
            print(
                json.dumps({"words": [str(word) for word in words], "out": str(out), "err": str(err)}),
                file=self._process.stdin,
                flush=True,
            )
            ended = self._said()
            assert ended == f"{code}\n", (words, ended, out.read_text()[-2000:], err.read_text()[-4000:])
            return out.read_text()

    def close(self) -> None:
        """End it, and what it has forked."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()
