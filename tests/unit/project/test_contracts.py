"""The import contracts of pyproject.toml, tried on a small tree: what they must refuse, and what not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

MODULES = [
    "protocol",
    "protocol.machine",
    "protocol.machine.machine",
    "protocol.plain_files",
    "protocol.platform",
    "protocol.config",
    "protocol.config.loading",
    "protocol.data",
    "protocol.data.csv_files",
    "protocol.runtime",
    "protocol.runtime.sockets",
    "protocol.transcript",
    "protocol.transcript.journal",
    "protocol.transcript.record",
    "curator",
    "curator.machine",
    "curator.process",
    "curator.hub",
    "curator.session_log",
    "owner",
    "owner.machine",
    "owner.cli",
    "consumer",
    "consumer.machine",
    "consumer.__main__",
    "hushbid",
    "hushbid.cli.app",
]
PACKAGES = {module.rpartition(".")[0] for module in MODULES} | {m for m in MODULES if "." not in m}

REFUSED = [
    ("protocol.machine.machine", "curator.machine", "one way"),
    ("protocol.machine.machine", "hushbid.cli.app", "one way"),
    ("curator.machine", "hushbid.cli.app", "one way"),
    ("curator.machine", "owner.machine", "one way"),
    ("owner.machine", "consumer.machine", "one way"),
    ("consumer.machine", "curator.machine", "one way"),
    ("protocol.machine.machine", "zmq", "no sockets"),
    ("protocol.transcript.record", "secrets", "no sockets"),
    ("protocol.data.csv_files", "threading", "no sockets"),
    ("protocol.config.loading", "time", "no sockets"),
    ("curator.machine", "time", "no sockets"),
    ("curator.machine", "datetime", "no sockets"),
    ("owner.machine", "random", "no sockets"),
    ("owner.machine", "os.path", "no sockets"),
    ("consumer.machine", "concurrent.futures", "no sockets"),
    ("consumer", "asyncio", "no sockets"),
    ("curator.machine", "protocol.runtime", "Only drivers"),
    ("protocol.machine.machine", "protocol.runtime.sockets", "Only drivers"),
    ("protocol.transcript", "protocol.transcript.journal", "Only drivers"),
    ("protocol.config", "protocol.config.loading", "Only drivers"),
    ("protocol.machine.machine", "protocol.plain_files", "Only drivers"),
    ("curator.machine", "protocol.platform", "Only who reads"),
    ("protocol.data.csv_files", "resource", "no sockets"),
    ("curator.machine", "curator.process", "Only drivers"),
    ("curator.machine", "curator.hub", "Only drivers"),
]
ALLOWED = [
    ("protocol.config.loading", "protocol.plain_files"),
    ("hushbid.cli.app", "curator.process"),
    ("hushbid.cli.app", "protocol.runtime.sockets"),
    ("hushbid.cli.app", "time"),
    ("owner.machine", "protocol.machine.machine"),
    ("owner.machine", "numpy"),
    ("curator.process", "protocol.runtime"),
    ("curator.hub", "protocol.runtime"),
    ("curator.session_log", "protocol.runtime"),
    ("curator.hub", "os"),
    ("curator.process", "protocol.transcript.journal"),
    ("owner.cli", "os"),
    ("consumer.__main__", "time"),
    ("protocol.runtime.sockets", "zmq"),
    ("protocol.runtime", "protocol.transcript.journal"),
    ("protocol.transcript.journal", "secrets"),
    ("protocol.config.loading", "os"),
    ("protocol.data.csv_files", "os"),
    ("protocol.platform", "fcntl"),
    ("protocol.plain_files", "protocol.platform"),
]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The packages with nothing in them, under the contracts of this project."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for module in MODULES:
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


def broken_contracts(output: str) -> list[str]:
    return [line.removesuffix(" BROKEN") for line in output.splitlines() if line.endswith(" BROKEN")]


@pytest.mark.parametrize(("importer", "imported", "contract"), REFUSED)
def test_a_forbidden_import_breaks_its_contract(
    tree: Path, importer: str, imported: str, contract: str
) -> None:
    add_imports(tree, (importer, imported))
    result = lint_imports(tree)
    assert result.returncode == 1, result.stdout + result.stderr
    assert any(contract in broken for broken in broken_contracts(result.stdout)), result.stdout
    assert f"{importer} -> {imported.partition('.')[0]}" in result.stdout


def test_permitted_imports_break_none(tree: Path) -> None:
    add_imports(tree, *ALLOWED)
    result = lint_imports(tree)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "4 kept, 0 broken" in result.stdout
