"""The import contracts of pyproject.toml, tried on a small tree: what they must refuse, and what not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.conftest import ROOT

MODULES = [
    "hushbid.protocol.machine",
    "hushbid.protocol.machine.machine",
    "hushbid.protocol.plain_files",
    "hushbid.protocol.platform",
    "hushbid.protocol.config",
    "hushbid.protocol.config.loading",
    "hushbid.protocol.data",
    "hushbid.protocol.data.csv_files",
    "hushbid.protocol.runtime",
    "hushbid.protocol.runtime.sockets",
    "hushbid.protocol.transcript",
    "hushbid.protocol.transcript.journal",
    "hushbid.protocol.transcript.environment",
    "hushbid.protocol.transcript.reader",
    "hushbid.protocol.transcript.record",
    "hushbid.curator.machine",
    "hushbid.curator.process",
    "hushbid.curator.hub",
    "hushbid.curator.session_log",
    "hushbid.owner.machine",
    "hushbid.owner.cli",
    "hushbid.consumer.machine",
    "hushbid.consumer.__main__",
    "hushbid.cli.app",
    "hushbid.report.page",
    "hushbid.tables.training",
]
LISTED = {
    f"{contract['containers'][0]}.{name.strip()}"
    for contract in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    if contract["type"] == "layers"
    for floor in contract["layers"]
    for name in floor.split("|")
}
"""All that stands on a floor."""
PACKAGES = {"hushbid"} | LISTED | {module.rpartition(".")[0] for module in MODULES}

REFUSED = [
    ("hushbid.protocol.machine.machine", "hushbid.curator.machine", "one way"),
    ("hushbid.protocol.machine.machine", "hushbid.cli.app", "one way"),
    ("hushbid.curator.machine", "hushbid.cli.app", "one way"),
    ("hushbid.curator.machine", "hushbid.owner.machine", "one way"),
    ("hushbid.owner.machine", "hushbid.consumer.machine", "one way"),
    ("hushbid.consumer.machine", "hushbid.curator.machine", "one way"),
    ("hushbid.tables.training", "hushbid.report.page", "the tools"),
    ("hushbid.protocol.machine.machine", "hushbid.protocol.transcript.record", "within protocol"),
    ("hushbid.protocol.config", "hushbid.protocol.machine", "within protocol"),
    ("hushbid.protocol.machine.machine", "zmq", "no sockets"),
    ("hushbid.protocol.transcript.record", "secrets", "no sockets"),
    ("hushbid.protocol.data.csv_files", "threading", "no sockets"),
    ("hushbid.protocol.config.loading", "time", "no sockets"),
    ("hushbid.curator.machine", "time", "no sockets"),
    ("hushbid.curator.machine", "datetime", "no sockets"),
    ("hushbid.owner.machine", "random", "no sockets"),
    ("hushbid.owner.machine", "os.path", "no sockets"),
    ("hushbid.consumer.machine", "concurrent.futures", "no sockets"),
    ("hushbid.consumer", "asyncio", "no sockets"),
    ("hushbid.curator.machine", "hushbid.protocol.runtime", "Only drivers"),
    ("hushbid.protocol.machine.machine", "hushbid.protocol.runtime.sockets", "Only drivers"),
    ("hushbid.protocol.transcript", "hushbid.protocol.transcript.journal", "Only drivers"),
    ("hushbid.protocol.config", "hushbid.protocol.config.loading", "Only drivers"),
    ("hushbid.protocol.machine.machine", "hushbid.protocol.plain_files", "Only drivers"),
    ("hushbid.curator.machine", "hushbid.protocol.platform", "Only who reads"),
    ("hushbid.protocol.data.csv_files", "resource", "no sockets"),
    ("hushbid.curator.machine", "hushbid.curator.process", "Only drivers"),
    ("hushbid.curator.machine", "hushbid.curator.hub", "Only drivers"),
]
ALLOWED = [
    ("hushbid.protocol.config.loading", "hushbid.protocol.plain_files"),
    ("hushbid.cli.app", "hushbid.curator.process"),
    ("hushbid.cli.app", "hushbid.protocol.runtime.sockets"),
    ("hushbid.cli.app", "time"),
    ("hushbid.owner.machine", "hushbid.protocol.machine.machine"),
    ("hushbid.owner.machine", "numpy"),
    ("hushbid.curator.process", "hushbid.protocol.runtime"),
    ("hushbid.curator.hub", "hushbid.protocol.runtime"),
    ("hushbid.curator.session_log", "hushbid.protocol.runtime"),
    ("hushbid.curator.hub", "os"),
    ("hushbid.curator.process", "hushbid.protocol.transcript.journal"),
    ("hushbid.owner.cli", "os"),
    ("hushbid.consumer.__main__", "time"),
    ("hushbid.protocol.runtime.sockets", "zmq"),
    ("hushbid.protocol.runtime", "hushbid.protocol.transcript.journal"),
    ("hushbid.protocol.transcript.journal", "secrets"),
    ("hushbid.protocol.config.loading", "os"),
    ("hushbid.protocol.data.csv_files", "os"),
    ("hushbid.protocol.platform", "fcntl"),
    ("hushbid.protocol.plain_files", "hushbid.protocol.platform"),
    ("hushbid.protocol.transcript.environment", "hushbid.protocol.platform"),
]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Empty packages under this project's contracts."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for module in sorted(PACKAGES | set(MODULES)):
        source = source_of(tmp_path, module)
        source.parent.mkdir(parents=True, exist_ok=True)
        source.touch()
    return tmp_path


def source_of(tree: Path, module: str) -> Path:
    path = tree.joinpath(*module.split("."))
    return path / "__init__.py" if module in PACKAGES else path.with_suffix(".py")


def add_imports(tree: Path, *imports: tuple[str, str]) -> None:
    for importer, imported in imports:
        with source_of(tree, importer).open("a") as source:
            source.write(f"import {imported}\n")


def lint_imports(tree: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=tree,
        env=os.environ | {"PYTHONPATH": str(tree), "NO_COLOR": "1", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def broken(output: str) -> dict[str, str]:
    """The findings about each broken contract, by its name."""
    parts = output.partition("Broken contracts")[2].split("\n---")
    names = [part.rstrip().rpartition("\n")[2] for part in parts[:-1]]
    return dict(zip(names, parts[1:], strict=True))


def test_a_forbidden_import_breaks_its_contract(tree: Path) -> None:
    add_imports(tree, *((importer, imported) for importer, imported, _ in REFUSED))
    result = lint_imports(tree)
    assert result.returncode == 1, result.stdout + result.stderr
    for importer, imported, contract in REFUSED:
        shown = imported if imported.startswith("hushbid") else imported.partition(".")[0]
        said = "".join(text for name, text in broken(result.stdout).items() if contract in name)
        assert f"{importer} -> {shown} (" in said, (importer, imported, result.stdout)


def test_permitted_imports_break_none(tree: Path) -> None:
    add_imports(tree, *ALLOWED)
    result = lint_imports(tree)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "5 kept, 0 broken" in result.stdout


@pytest.mark.parametrize("package", ["hushbid.attic", "hushbid.protocol.attic"])
def test_a_new_package_has_to_say_on_which_floor_it_stands(tree: Path, package: str) -> None:
    (tree / package.replace(".", "/")).mkdir()
    (tree / package.replace(".", "/") / "__init__.py").touch()
    result = lint_imports(tree)
    assert result.returncode == 1
    assert "attic" in result.stdout
