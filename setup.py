"""The wheel: everything lives under `hushbid`, so that no name of ours can collide with another package's.

In a checkout the roles and the protocol are folders of their own: `protocol.wire.codec` is imported by that
name. An installed hushbid has `hushbid.protocol.wire`: a wheel's copies of the sources are moved there, and
their imports changed. An editable install has the folders as they are. All else is in pyproject.toml.
"""

from __future__ import annotations

import ast
import gzip
import os
import shutil
import tarfile
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import TypeGuard

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py
from setuptools.command.egg_info import egg_info
from setuptools.command.sdist import sdist
from setuptools.errors import SetupError

HOME = "hushbid"
MOVED = ("consumer", "curator", "owner", "protocol")
CARRIED = ("configs/", "requirements.lock")
"""Of the files that MANIFEST.in names, those that an installed hushbid has beside its modules, too."""
BY_NAME = ("__import__", "files", "find_spec", "import_module", "run_module")
"""Calls that find a module by a name in a string."""
EARLIEST = "315532800"
"""1980, where zip archives begin; for who sets no SOURCE_DATE_EPOCH."""


def moved(source: str, where: str) -> str:
    """A module's source with its imports of what was moved changed, and nothing else.

    Args:
        source: The module, with line feeds alone at the ends of lines.
        where: What messages call it.

    Raises:
        SetupError: It finds what was moved in a way that cannot be changed with certainty.
    """
    lines = [line.encode() for line in source.split("\n")]  # offsets in a line are of bytes
    found = [node for node in ast.walk(ast.parse(source)) if _finds_moved(node)]
    # From the end of a line on, so that what is left to change of it stays where it is.
    for node in sorted(found, key=lambda node: (node.lineno, node.col_offset), reverse=True):
        line = lines[node.lineno - 1]
        start, rest = line[: node.col_offset], line[node.col_offset :]
        if not (isinstance(node, ast.ImportFrom) and rest.startswith(b"from ") and rest[5:6].isalpha()):
            raise SetupError(f"{where}, line {node.lineno}: `from PACKAGE import ...` is what can be moved.")
        lines[node.lineno - 1] = start + rest.replace(b"from ", f"from {HOME}.".encode(), 1)
    return b"\n".join(lines).decode()


def _finds_moved(node: ast.AST) -> TypeGuard[ast.stmt | ast.expr]:
    match node:
        case ast.Import(names=names):
            return any(_moves(name.name) for name in names)
        case ast.ImportFrom(module=str(module), level=0):
            return _moves(module)
        case ast.Call(func=ast.Name(id=called) | ast.Attribute(attr=called), args=args, keywords=keywords):
            values = [*args, *(keyword.value for keyword in keywords)]
            return (called in BY_NAME and any(map(_may_name_moved, values))) or _runs_moved(args)
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return _runs_moved(items)
    return False


def _may_name_moved(value: ast.expr) -> bool:
    """Whether a string names what was moved, or begins with what is only known when it runs."""
    match value:
        case ast.Constant(str(name)):
            return _moves(name)
        case ast.JoinedStr(values=[ast.Constant(str(name)), *_]):
            return _moves(name)
        case ast.JoinedStr(values=[ast.FormattedValue(value=ast.Name(id=name)), *_]):
            return name not in ("__name__", "__package__")
        case ast.JoinedStr():
            return True
    return False


def _runs_moved(arguments: Iterable[ast.expr]) -> bool:
    """Whether a command line has ``-m`` before what was moved."""
    return any(
        isinstance(option, ast.Constant)
        and option.value == "-m"
        and isinstance(value, ast.Constant | ast.JoinedStr)
        and _moves(str(getattr(value.values[0] if isinstance(value, ast.JoinedStr) else value, "value", "")))
        for option, value in pairwise(arguments)
    )


def _moves(module: str) -> bool:
    return module.partition(".")[0] in MOVED


def _carried() -> Iterator[str]:
    """Files that MANIFEST.in names one by one: keys, data and files of parties may lie beside them."""
    for line in Path("MANIFEST.in").read_text(encoding="utf-8").splitlines():
        command, _, name = line.partition(" ")
        if command == "include" and name.startswith(CARRIED):
            yield name


class BuildPy(build_py):
    """Builds the sources as they are installed."""

    def run(self) -> None:
        """Copy the sources, then move and change the copies; an editable install has none."""
        if self.editable_mode:
            super().run()
            return
        place = Path(self.build_lib)
        shutil.rmtree(place, ignore_errors=True)  # what an earlier build moved is no source
        super().run()
        for package in MOVED:
            (place / package).rename(place / HOME / package)
        for module in sorted((place / HOME).rglob("*.py")):
            name = module.relative_to(place)
            module.write_text(moved(module.read_text(encoding="utf-8"), str(name)), encoding="utf-8")
        for name in _carried():
            (place / HOME / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(name, place / HOME / name)


class BdistWheel(bdist_wheel):
    """Makes the same bytes of the same sources, whatever modes a checkout gives them."""

    def write_wheelfile(self, *arguments: str, **named: str) -> None:
        """Write the last file that goes into the archive, and set the mode of all."""
        super().write_wheelfile(*arguments, **named)
        for file in Path(self.bdist_dir).rglob("*"):
            if file.is_file():
                file.chmod(0o644)


class Sdist(sdist):
    """Makes the same bytes of the same sources, too."""

    def make_archive(self, base_name: str, *_: object, **__: object) -> str:
        """Pack the tree in an order, at a time and with modes that do not depend on who does it."""
        made = int(os.environ.get("SOURCE_DATE_EPOCH", EARLIEST))

        def alike(entry: tarfile.TarInfo) -> tarfile.TarInfo:
            entry.mtime, entry.mode = made, 0o755 if entry.isdir() else 0o644
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            return entry

        name = f"{base_name}.tar.gz"
        with (
            open(name, "wb") as file,
            gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=made) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
        ):
            archive.add(Path(base_name).name, filter=alike)  # directories are added in the order of names
        return name


class EggInfo(egg_info):
    """Names one package at the top."""

    def run(self) -> None:
        """Write the metadata."""
        super().run()
        (Path(self.egg_info) / "top_level.txt").write_text(f"{HOME}\n", encoding="utf-8")


if __name__ == "__main__":  # as the build runs it; tests import it
    setup(cmdclass={"bdist_wheel": BdistWheel, "build_py": BuildPy, "egg_info": EggInfo, "sdist": Sdist})
