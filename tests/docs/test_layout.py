"""The tree as a whole: packages, pins, and what no file may hold."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import hushbid.protocol
from tests.conftest import ROOT
from tests.support.sources import listed

ROOT_PACKAGES = ["protocol", "curator", "owner", "consumer", "hushbid", "lab"]
TREES = [*ROOT_PACKAGES, "configs", "tests", "benchmarks", "docs", ".ci"]
MAX_LINES = 600
REGISTRY = re.compile(r"https?://\S*/simple\b|--(?:extra-)?index-url|--find-links|--trusted-host", re.I)
MACHINE_PATH = re.compile(r"(?<![\w.:/-])/(?:home|root|work|Users|mnt)/[\w.]")


def project_files() -> Iterator[Path]:
    """Every file of the project, committed or not; nothing that a tool made."""
    top = [path for path in ROOT.iterdir() if path.is_file() and path.name != ".git"]
    below = [path for tree in TREES for path in (ROOT / tree).rglob("*") if path.is_file()]
    yield from sorted(path for path in top + below if "__pycache__" not in path.parts)


def text_of(path: Path) -> str:
    """The text of a file; empty for a binary one."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""


@cache
def pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


@cache
def lock() -> dict[str, str]:
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    pins = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(name): version for name, version in pins}


def test_every_file_that_may_be_packed_is_named() -> None:
    """By name: other files in configs/ belong to users."""
    named = pyproject()["tool"]["hatch"]["build"]["include"]
    assert [name for name in named if "/configs/" in name] == [
        f"/hushbid/{name}" for name in listed("configs")
    ]


@pytest.mark.parametrize("package", ROOT_PACKAGES)
def test_a_package_ships_its_types(package: str) -> None:
    assert (ROOT / package / "py.typed").is_file()


def test_a_module_has_one_name() -> None:
    """The folders of the parties are packages in hushbid/, and are imported by that name alone."""
    theirs = {*ROOT_PACKAGES} - {"hushbid"}
    assert {name: (ROOT / "hushbid" / name).readlink() for name in theirs} == {
        name: Path("..", name) for name in theirs
    }
    # Parsing all files takes seconds: those that import nothing of these names, at a glance, are left out.
    suspect = re.compile(rf"\b(import|from)\b(?:[^\n#]|\\\n)*[\s,]({'|'.join(theirs)})\b")
    found = [
        (str(path.relative_to(ROOT)), name)
        for path in project_files()
        if path.suffix in (".py", ".pyi") and suspect.search(text := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        for name in imported(node)
        if name.partition(".")[0] in theirs
    ]
    assert found == []


def imported(node: ast.AST) -> list[str]:
    match node:
        case ast.Import(names=names):
            return [name.name for name in names]
        case ast.ImportFrom(module=str(module), level=0):
            return [module]
    return []


def test_the_version_is_stated_once() -> None:
    assert hushbid.__version__ == hushbid.protocol.__version__ == importlib.metadata.version("hushbid")


def test_a_tool_is_pinned_as_in_the_lock() -> None:
    tools = [
        *pyproject()["project"]["optional-dependencies"]["dev"],
        *pyproject()["build-system"]["requires"],
    ]
    for requirement in map(Requirement, tools):
        if requirement.name != "hushbid":  # with an extra of its own
            assert str(requirement.specifier) == f"=={lock()[canonicalize_name(requirement.name)]}"


def test_what_is_run_with_has_a_range_that_the_lock_is_in() -> None:
    project = pyproject()["project"]
    for requirement in map(
        Requirement, [*project["dependencies"], *project["optional-dependencies"]["operator"]]
    ):
        bounds = sorted(each.operator for each in requirement.specifier)
        assert bounds == ["<", ">="], requirement
        assert requirement.specifier.contains(lock()[canonicalize_name(requirement.name)]), requirement


def test_the_lock_holds_everything_that_its_packages_need() -> None:
    for name in lock():
        for text in importlib.metadata.requires(name) or []:
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                pinned = lock().get(canonicalize_name(requirement.name))
                assert pinned is not None, f"{name} needs {requirement}"
                assert requirement.specifier.contains(pinned, prereleases=True), f"{name} needs {requirement}"


def test_no_file_names_a_package_registry_or_a_path_of_one_machine() -> None:
    here = Path(__file__).resolve()
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in project_files()
        if path != here
        for number, line in enumerate(text_of(path).splitlines(), start=1)
        if REGISTRY.search(line) or MACHINE_PATH.search(line)
    ]
    assert found == []


def test_no_module_is_longer_than_a_person_reads_at_once() -> None:
    lengths = {p: len(text_of(p).splitlines()) for p in project_files() if p.suffix == ".py"}
    assert {str(p.relative_to(ROOT)): n for p, n in lengths.items() if n > MAX_LINES} == {}


@pytest.mark.parametrize(
    "line", ["https://registry.example/simple", "--index-url x", "see /home/ann/keys", "'/root/.venv'"]
)
def test_the_patterns_find_what_they_are_for(line: str) -> None:
    assert REGISTRY.search(line) or MACHINE_PATH.search(line)


@pytest.mark.parametrize("line", ["../shared/data/mnist.npz", "docs/work/x", "https://example.org/home/x"])
def test_the_patterns_leave_other_paths(line: str) -> None:
    assert not REGISTRY.search(line)
    assert not MACHINE_PATH.search(line)
