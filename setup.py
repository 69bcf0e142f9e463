"""The wheel: everything lives under `hushbid`, so that no name of ours can collide with another package's.

In a checkout the roles and the protocol are folders of their own: `protocol.wire` is imported by that name.
An installed hushbid has `hushbid.protocol.wire`: a wheel's copies of the sources are moved there, and their
imports changed. An editable install has the folders as they are. All else is in pyproject.toml.
"""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.egg_info import egg_info
from setuptools.errors import SetupError

HOME = "hushbid"
MOVED = ("consumer", "curator", "owner", "protocol")
CONFIGS = "configs"
"""What `hushbid run digits` looks in, next to the code that runs it."""


def moved(source: str, where: str) -> str:
    """A module's source with its imports of what was moved changed, line by line in place.

    Args:
        source: The module.
        where: What messages call it.

    Raises:
        SetupError: An import binds the name of a package that is somewhere else now.
    """
    lines = source.splitlines(keepends=True)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import) and any(_moves(name.name) for name in node.names):
            raise SetupError(f"{where}, line {node.lineno}: `from PACKAGE import ...` is what can be moved.")
        if isinstance(node, ast.ImportFrom) and not node.level and _moves(node.module or ""):
            line = lines[node.lineno - 1]
            start, rest = line[: node.col_offset], line[node.col_offset :]
            lines[node.lineno - 1] = start + rest.replace("from ", f"from {HOME}.", 1)
    return "".join(lines)


def _moves(module: str) -> bool:
    return module.partition(".")[0] in MOVED


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
        shutil.copytree(CONFIGS, place / HOME / CONFIGS)


class EggInfo(egg_info):
    """Names one package at the top."""

    def run(self) -> None:
        """Write the metadata."""
        super().run()
        (Path(self.egg_info) / "top_level.txt").write_text(f"{HOME}\n", encoding="utf-8")


setup(cmdclass={"build_py": BuildPy, "egg_info": EggInfo})
