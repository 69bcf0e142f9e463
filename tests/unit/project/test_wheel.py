"""What a wheel installs: one package, which needs no checkout, and in which all names are found."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT

SOURCES = ("setup.py", "pyproject.toml", "MANIFEST.in", "README.md", "LICENSE", "requirements.lock")
FOLDERS = ("configs", "consumer", "curator", "hushbid", "owner", "protocol")
MOVED = ("consumer", "curator", "owner", "protocol")
LEFT = ("separate/north.key", "digits/north.npz", "digits/north.ledger", "digits/north.toml", "north.toml")
"""What somebody tried may have left these in configs/; they are nobody else's."""
BUILD = "from setuptools import build_meta; build_meta.build_{}({!r})"


@dataclass(frozen=True)
class Built:
    """An sdist and a wheel of one tree."""

    sdist: Path
    wheel: Path


def listed(*names: str) -> list[str]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *names]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in done.stdout.splitlines() if (ROOT / name).is_file()]


def sources(place: Path) -> Path:
    """The tree as it would be built, without what a build leaves."""
    for name in listed(*SOURCES, *FOLDERS):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes((ROOT / name).read_bytes())
    return place


def build(tree: Path, into: Path, *what: str) -> None:
    """Build what is named, as pip and `build` do, in one process."""
    into.mkdir()
    script = "\n".join(BUILD.format(kind, str(into)) for kind in what)
    environment = os.environ | {"SOURCE_DATE_EPOCH": "1700000000"}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tree, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def both(tree: Path, into: Path) -> Built:
    build(tree, into, "sdist", "wheel")
    return Built(next(into.glob("*.tar.gz")), next(into.glob("*.whl")))


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Built:
    place = tmp_path_factory.mktemp("here")
    tree = sources(place / "tree")
    for left in LEFT:
        (tree / "configs" / left).write_text("secret = true")
    return both(tree, place / "built")


@pytest.fixture(scope="module")
def wheel(here: Built) -> Path:
    return here.wheel


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
    # Uncompiled: the processes compile what they import, which is less than half of it.
    subprocess.run([*install, "--ignore-installed", "--no-index", "--no-compile", str(wheel)], check=True)
    return python


def test_a_wheel_has_one_package_and_all_that_it_needs(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as file:
        names = set(file.namelist())
        info = next(name.partition("/")[0] for name in names if name.endswith(".dist-info/METADATA"))
        assert {name.partition("/")[0] for name in names} == {"hushbid", info}
        assert file.read(f"{info}/top_level.txt") == b"hushbid\n"
        here = {str(path.relative_to(ROOT)) for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")}
        assert {name if name.startswith("hushbid/") else f"hushbid/{name}" for name in here} <= names
        for part in (
            "py.typed",
            "protocol/py.typed",
            "report/page.css",
            "requirements.lock",
            *listed("configs"),
        ):
            assert f"hushbid/{part}" in names
        assert {name for name in names if name.startswith("hushbid/configs/")} == {
            f"hushbid/{name}" for name in listed("configs")
        }
        unmoved = re.compile(
            rf"^\s*(from ({'|'.join(MOVED)})[\w.]* import|import ({'|'.join(MOVED)})\b)", re.M
        )
        assert [
            name for name in names if name.endswith(".py") and unmoved.search(file.read(name).decode())
        ] == []


def test_the_same_sources_are_the_same_wheel_and_the_same_sdist(here: Built, tmp_path: Path) -> None:
    """Those of the sdist, which lack nothing, at another time and with other modes."""
    with tarfile.open(here.sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    unpacked = tmp_path / here.sdist.name.removesuffix(".tar.gz")
    assert sorted(path.name for path in unpacked.glob("configs/**/north*")) == []
    shutil.rmtree(unpacked / "hushbid.egg-info")  # with the next two, what a build adds to the sources
    for made in ("PKG-INFO", "setup.cfg"):
        (unpacked / made).unlink()
    for file in unpacked.rglob("*"):
        file.chmod(0o700)
        os.utime(file, (10**9, 10**9))
    there = both(unpacked, tmp_path / "built")
    assert there.sdist.read_bytes() == here.sdist.read_bytes()
    assert there.wheel.read_bytes() == here.wheel.read_bytes()


def test_every_example_is_listed() -> None:
    """By name: what lies in configs/ besides is somebody's own."""
    named = [line.removeprefix("include ") for line in (ROOT / "MANIFEST.in").read_text().splitlines()]
    assert named == ["requirements.lock", *listed("configs")]


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
    source += 'import_module(f"{__name__}.owner")\nrun("-m", f"{place}owner", "-m", "http", "owner")\n'
    assert setup.moved(source, "seen.py") == source


@pytest.mark.parametrize(
    "statement",
    [
        "import owner",
        "import os, protocol.wire.codec as wire",
        "from  owner import a",
        "from \\\n owner import a",
        'importlib.import_module("owner.cli")',
        'resources.files("protocol")',
        'importlib.import_module(f"owner.{verb}")',
        'importlib.import_module(f"{role}.cli")',
        'importlib.import_module(name="owner")',
        'runpy.run_module(alter_sys=True, mod_name=f"protocol.{part}")',
        'subprocess.run([sys.executable, "-m", "owner", "--json"])',
        'command = ("-m", f"consumer.{part}")',
        'os.execl(python, python, "-m", "curator")',
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
    few = ("--set", "session.points=20", "--no-rehearsal", "--json")
    result = json.loads(called(hushbid, "run", "digits", *few))  # `simulate` finds the example as it does
    assert result["points_delivered"] == 20
    assert Path(result["directory"]).parent == tmp_path / "runs"
    looked = called(
        str(python),
        "-c",
        "import hushbid, importlib.util as find; hushbid.procure; print(hushbid.__file__);"
        "from hushbid.preflight import software; assert software._tested()['numpy'];"
        f"print([name for name in {[*FOLDERS]} if find.find_spec(name)])",
    ).splitlines()
    assert Path(looked[0]).is_relative_to(python.parents[1])
    assert looked[1] == "['hushbid']"
