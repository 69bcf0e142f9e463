"""A cell of an experiment: one configuration with one seed, and the file that keeps its measurement.

A file is named by the digest of everything that the measurement depends on: configuration, seed, data and
software. So results of other software or data are never found.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, TypeAlias

from hushbid.protocol import __version__
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.runtime.files.durable import in_place_of

__all__ = ["Cell", "CellFiles", "Configuration", "Measured", "data_of", "software", "write_whole"]

Configuration: TypeAlias = Mapping[str, Any]
"""The settings of a run, as JSON values."""
Measured: TypeAlias = Mapping[str, Any]
"""A measurement: JSON values, possibly nested."""

DIRECTORY: Final = "cells"
_PACKAGES: Final = ("numpy", "scipy", "scikit-learn", "opendp", "numkong")
"""Packages that figures may depend on."""


@dataclass(frozen=True, eq=False)
class Cell:
    """One configuration with one seed.

    Attributes:
        data: Name and SHA-256 of each data file, in the order in which the experiment names them.
    """

    experiment: str
    configuration: Configuration
    seed: int
    data: tuple[tuple[str, str], ...]

    @cached_property
    def identity(self) -> Mapping[str, Any]:
        """Everything that the measurement depends on."""
        return {
            "experiment": self.experiment,
            "configuration": dict(self.configuration),
            "seed": self.seed,
            "data": [list(file) for file in self.data],
            "software": software(),
        }

    @cached_property
    def digest(self) -> str:
        """Digest of the identity: the file's name."""
        return _digest(self.identity)

    def check_data(self, paths: Sequence[Path]) -> None:
        """Check that this process, perhaps on another machine, has the data that the identity names.

        Raises:
            ConfigError: The data differ, so that figures would be kept under a wrong name.
        """
        here = data_of(paths)
        if here == self.data:
            return
        others = {name for name, _ in {*here} ^ {*self.data}}
        raise ConfigError(
            "A process that shares the work has other data than this run began with: "
            + (f"{', '.join(sorted(others))}." if others else "the same files in another order."),
            advice="Put the same files under the same paths on all workers, and change none during a run.",
        )

    def check_software(self) -> None:
        """Check that this process, perhaps on another machine, has the software that the identity names.

        Raises:
            ConfigError: The versions differ, so that figures would be kept under a wrong name.
        """
        here, named = software(), self.identity["software"]
        if other := sorted(name for name in named if here.get(name) != named[name]):
            raise ConfigError(
                f"A worker has another version than this machine of: {', '.join(other)}.",
                advice="Install the same on all workers (`source` is the code of hushbid itself).",
            )


class CellFiles:
    """The files of finished cells in a directory of results; without a directory nothing is kept."""

    def __init__(self, directory: Path | None) -> None:
        self.damaged: list[Path] = []
        """Files that could not be read."""
        self._directory = None if directory is None else directory / DIRECTORY

    def read(self, cell: Cell) -> Measured | None:
        """A cell's measurement; None if it is not done, or its file is damaged."""
        if self._directory is None:
            return None
        path = self._place(self._directory, cell)
        try:
            text = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ConfigError(
                f"{path}: cannot be read: {error.strerror}.", advice="Check its mode."
            ) from error
        try:
            kept = json.loads(text)
            measured: Measured = kept["measured"]
            if kept["cell"] == cell.identity and kept["sha256"] == _digest(measured):
                return measured
        except (ValueError, LookupError, TypeError, RecursionError):
            pass
        self.damaged.append(path)
        return None

    def write(self, cell: Cell, measured: Measured) -> None:
        if self._directory is not None:
            kept = {"cell": cell.identity, "measured": measured, "sha256": _digest(measured)}
            content = json.dumps(kept, indent=1, allow_nan=False) + "\n"
            write_whole(self._place(self._directory, cell), content.encode())

    @staticmethod
    def _place(directory: Path, cell: Cell) -> Path:
        return directory / f"{cell.digest}.json"


def write_whole(path: Path, content: bytes) -> None:
    """Write a file into a directory of results, replacing an earlier one.

    Raises:
        ConfigError: It cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with in_place_of(path) as stream:
            stream.write(content)
    except OSError as error:
        raise ConfigError(
            f"{path}: cannot be written: {error.strerror}.",
            advice="Name a directory that this user can write to, and that has room.",
        ) from error


@cache
def software() -> Mapping[str, str]:
    """Versions of the software that measures, and the SHA-256 of hushbid's own source."""
    source = hashlib.sha256()
    home = Path(__file__).parents[2]
    # Unlike `rglob`, this walk follows the links to the parties' packages in a checkout.
    walked = (Path(place, name) for place, _, names in os.walk(home, followlinks=True) for name in names)
    for path in sorted(path for path in walked if path.suffix == ".py"):
        source.update(f"{path.relative_to(home).as_posix()}\0".encode())
        source.update(hashlib.sha256(path.read_bytes()).digest())
    return {
        "hushbid": __version__,
        "source": source.hexdigest(),
        "python": platform.python_version(),
        "machine": platform.machine(),
        **{name: version(name) for name in _PACKAGES},
    }


def data_of(paths: Iterable[Path]) -> tuple[tuple[str, str], ...]:
    """Name and SHA-256 of each data file, for `Cell.data`; directories count with all their files.

    Missing files are left for the experiment to report.

    Raises:
        ConfigError: A file cannot be read.
    """
    there = [file for path in paths for file in _files(path)]
    try:
        return tuple((path.name, _sha256(path, _state(path))) for path in there)
    except OSError as error:
        raise ConfigError(
            f"{error.filename}: cannot be read: {error.strerror}.", advice="Check its mode."
        ) from error


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(file for file in path.iterdir() if file.is_file())
    return [path] if path.is_file() else []


def _state(path: Path) -> tuple[int, ...]:
    """Metadata that change with a file's content, without reading it."""
    found = path.stat()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


@lru_cache(maxsize=1024)
def _sha256(path: Path, _state: tuple[int, ...]) -> str:
    """SHA-256 of a file, computed once for all cells while the file's state is the same."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()
