"""What a wheel installs: one package, which needs no checkout, and in which all names are found."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT

SOURCES = ("setup.py", "pyproject.toml", "MANIFEST.in", "README.md", "LICENSE")
FOLDERS = ("configs", "consumer", "curator", "hushbid", "owner", "protocol")


def sources(place: Path) -> Path:
    """The tree as it would be built, without what a build leaves."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *SOURCES, *FOLDERS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_bytes((ROOT / name).read_bytes())
    return place


def built(tree: Path, into: Path) -> Path:
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    environment = os.environ | {"SOURCE_DATE_EPOCH": "1700000000", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    done = subprocess.run(
        [*command, "--wheel-dir", str(into), str(tree)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (wheel,) = into.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sources(tmp_path_factory.mktemp("tree"))


@pytest.fixture(scope="module")
def wheel(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tree, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel, and of the packages here all but the checkout."""
    place = tmp_path_factory.mktemp("fresh")
    venv.create(place, with_pip=False)
    python = place / "bin" / "python"
    asked = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    own = Path(subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip())
    # A .pth file in a directory that another one names is not read: the checkout is not found by it.
    (own / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    install = [sys.executable, "-m", "pip", "--python", str(python), "--quiet", "install", "--no-deps"]
    subprocess.run([*install, "--ignore-installed", "--no-index", str(wheel)], check=True)
    return python


def test_a_wheel_has_one_package_and_all_that_it_needs(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as file:
        names = set(file.namelist())
        info = next(name.partition("/")[0] for name in names if name.endswith(".dist-info/METADATA"))
        assert {name.partition("/")[0] for name in names} == {"hushbid", info}
        assert file.read(f"{info}/top_level.txt") == b"hushbid\n"
        here = {str(path.relative_to(ROOT)) for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")}
        assert {name if name.startswith("hushbid/") else f"hushbid/{name}" for name in here} <= names
        for part in ("py.typed", "protocol/py.typed", "report/page.css", "configs/digits/cluster.toml"):
            assert f"hushbid/{part}" in names
        for name in names:
            if name.endswith(".py"):
                for node in ast.walk(ast.parse(file.read(name))):
                    roots = [each.name for each in node.names] if isinstance(node, ast.Import) else []
                    roots += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                    assert not {root.partition(".")[0] for root in roots} & {*FOLDERS[1:]} - {"hushbid"}, name


def test_the_same_tree_is_the_same_wheel_and_so_is_its_sdist(tree: Path, wheel: Path, tmp_path: Path) -> None:
    again = sources(tmp_path / "tree")
    for file in again.rglob("*"):
        file.chmod(0o700)
    # What somebody tried may have left things; they are nobody else's.
    for left in ("separate/north.key", "digits/north.npz", "digits/north.ledger"):
        (again / "configs" / left).write_text("secret")
    command = [sys.executable, "-c", "import setuptools.build_meta as made; made.build_sdist('../sdist')"]
    subprocess.run(command, cwd=again, capture_output=True, check=True)
    (packed,) = (tmp_path / "sdist").glob("*.tar.gz")
    with tarfile.open(packed) as archive:
        archive.extractall(tmp_path, filter="data")
    unpacked = tmp_path / packed.name.removesuffix(".tar.gz")
    assert not {".key", ".npz", ".ledger"} & {path.suffix for path in unpacked.rglob("*")}
    assert built(again, tmp_path / "of-tree").read_bytes() == wheel.read_bytes()
    assert built(unpacked, tmp_path / "of-sdist").read_bytes() == wheel.read_bytes()


@pytest.fixture(scope="module")
def setup() -> Any:
    spec = importlib.util.spec_from_file_location("hushbid_setup", ROOT / "setup.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("source", "there"),
    [
        ("from protocol import a\n", "from hushbid.protocol import a\n"),
        (
            "def f():\n    from owner.a import (\n        b,\n    )",
            "def f():\n    from hushbid.owner.a import (\n        b,\n    )",
        ),
        (
            "é = 1; from owner import a; from owner import b",
            "é = 1; from hushbid.owner import a; from hushbid.owner import b",
        ),
        ('a = """\f\u2028"""\nfrom owner import a', 'a = """\f\u2028"""\nfrom hushbid.owner import a'),
    ],
    ids=["package", "lines", "one line", "feeds"],
)
def test_an_import_of_what_is_moved_is_changed(setup: Any, source: str, there: str) -> None:
    assert setup.moved(source, "seen.py") == there


def test_what_only_looks_like_one_stays(setup: Any) -> None:
    source = 'from hushbid.owner import a\nfrom ownership import b\nopen("owner")\n# from owner import c\n'
    assert setup.moved(source, "seen.py") == source


@pytest.mark.parametrize(
    "statement",
    [
        "import owner",
        "import os, protocol.wire as wire",
        "from  owner import a",
        "from \\\n owner import a",
        'importlib.import_module("owner.cli")',
        'resources.files("protocol")',
    ],
)
def test_what_cannot_be_moved_ends_the_build(setup: Any, statement: str) -> None:
    with pytest.raises(setup.SetupError, match=r"^seen.py, line 2: `from PACKAGE import ...`"):
        setup.moved(f"x = 1\n{statement}\n", "seen.py")


def test_an_installed_hushbid_needs_no_checkout(python: Path, tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def called(*command: str) -> str:
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    hushbid = str(python.parent / "hushbid")
    assert json.loads(called(hushbid, "--version", "--json"))["hushbid"]
    few = ("--set", "session.points=20", "--no-rehearsal", "--json")
    result = json.loads(called(hushbid, "run", "digits", *few))
    assert result["points_delivered"] == 20
    assert Path(result["directory"]).parent == tmp_path / "runs"
    assert json.loads(called(hushbid, "simulate", "digits", *few))["points_delivered"] == 20
    looked = called(
        str(python),
        "-c",
        "import hushbid, importlib.util as find; hushbid.procure; print(hushbid.__file__);"
        f"print([name for name in {[*FOLDERS]} if find.find_spec(name)])",
    ).splitlines()
    assert Path(looked[0]).is_relative_to(python.parents[1])
    assert looked[1] == "['hushbid']"
