"""What people install: the archives, and an environment that has them and no checkout."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import hushbid
from hushbid.protocol.extras import PACKAGES
from tests.conftest import ROOT
from tests.docs.pages import Page
from tests.installed.environments import LINKED, LOCK, Built, Environment, Warm, build, public_names, sources
from tests.processes.cluster import free_port
from tests.support.sources import listed

LEFT = ("separate/north.key", "digits/north.npz", "digits/north.ledger", "digits/north.toml", "north.toml")
"""What somebody tried may have left these in configs/; they are nobody else's."""
README_TABLES = """
import numpy as np, pandas as pd, hushbid
from sklearn.linear_model import LogisticRegression as Model
random = np.random.default_rng(5)
def table(rows, mean):
    x = random.normal(mean, .15, rows).clip(0, 1)
    y = random.random(rows)
    return pd.DataFrame({"x": x, "y": y, "bought": np.where(x + y > 1, "yes", "no")})
north, south, wanted, public = table(300, .3), table(300, .7), table(120, .7), table(50, .5)
columns = ["x", "y"]
schema = hushbid.Schema.of([dict(name=name, kind="number", lower=0, upper=1) for name in columns])
model = Model()
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tree = sources(tmp_path_factory.mktemp("here") / "tree")
    for left in LEFT:
        (tree / "configs" / left).write_text("secret = true")
    return tree


@pytest.fixture(scope="module")
def here(tree: Path) -> Built:
    return build(tree, tree.parent / "built")


@dataclass(frozen=True)
class Bare:
    """A party's machine before it had the extra: what was found there, and what `run` said."""

    machine: Environment
    found: dict[str, Any]
    refused: dict[str, Any]


@pytest.fixture(scope="module")
def bare(here: Built, tmp_path_factory: pytest.TempPathFactory) -> Bare:
    machine = Environment(tmp_path_factory.mktemp("installed"))
    machine.install(str(here.wheel), "--constraint", str(LOCK))
    with contextlib.closing(Warm(machine)) as warm:
        return Bare(machine, warm.found, json.loads(warm.ran("hushbid", "run", "digits", "--json", code=4)))


@pytest.fixture(scope="module")
def operator(bare: Bare, here: Built) -> Environment:
    """The same machine afterwards, with the extra and pandas, for an operator."""
    bare.machine.install(f"{here.wheel}[operator]", "pandas", "--constraint", str(LOCK))
    return bare.machine


@pytest.fixture(scope="module")
def warm(operator: Environment) -> Iterator[Warm]:
    with contextlib.closing(Warm(operator)) as process:
        yield process


@pytest.fixture(scope="module")
def looked(warm: Warm) -> dict[str, Any]:
    return warm.found


# --- the archives ------------------------------------------------------------------------------------


def test_a_wheel_has_one_package_and_all_that_it_needs(here: Built) -> None:
    with zipfile.ZipFile(here.wheel) as file:
        names = set(file.namelist())
    (info,) = {name.partition("/")[0] for name in names} - {"hushbid"}
    assert info.endswith(".dist-info")
    sources_here = [name for name in listed("hushbid", *LINKED) if name.endswith((".py", ".pyi", "py.typed"))]
    within = {name if name.startswith("hushbid/") else f"hushbid/{name}" for name in sources_here}
    carried = {f"hushbid/{name}" for name in listed("configs")} | {"hushbid/requirements.lock"}
    carried |= {f"hushbid/report/page.{kind}" for kind in ("css", "js")}
    scripts = ("page.js", "parts.js", "pictures.js", "session.js", "live.js")
    carried |= {f"hushbid/replay/{name}" for name in ("page.css", *scripts)}
    assert {name for name in names if name.startswith("hushbid/")} == within | carried


def test_no_source_is_changed_on_its_way_into_an_archive(here: Built) -> None:
    with zipfile.ZipFile(here.wheel) as wheel, tarfile.open(here.sdist) as sdist:
        top = here.sdist.name.removesuffix(".tar.gz")
        for name in listed("hushbid", *LINKED):
            if name.endswith(".py"):
                inside = name if name.startswith("hushbid/") else f"hushbid/{name}"
                packed = sdist.extractfile(f"{top}/{inside}")
                assert packed is not None
                assert (ROOT / name).read_bytes() == wheel.read(inside) == packed.read(), name


def test_the_same_sources_are_the_same_wheel_and_the_same_sdist(here: Built, tmp_path: Path) -> None:
    """The sdist's own sources suffice: at another time, with other modes, beside an old build."""
    with tarfile.open(here.sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    unpacked = tmp_path / here.sdist.name.removesuffix(".tar.gz")
    assert sorted(path.name for path in unpacked.glob("hushbid/configs/**/north*")) == []
    for stale in ("build/lib/hushbid/old.py", "build/lib/owner/__init__.py", "hushbid.egg-info/SOURCES.txt"):
        (unpacked / stale).parent.mkdir(parents=True, exist_ok=True)
        (unpacked / stale).write_text("old = True")
    for file in unpacked.rglob("*"):
        file.chmod(0o700 if file.is_dir() else 0o600)
        os.utime(file, (10**9, 10**9))
    there = build(unpacked, tmp_path / "built")
    assert there.sdist.read_bytes() == here.sdist.read_bytes()
    assert there.wheel.read_bytes() == here.wheel.read_bytes()


@pytest.mark.parametrize("name", [*LINKED, "configs"])
def test_a_tree_that_lost_a_link_builds_nothing_and_says_why(tree: Path, tmp_path: Path, name: str) -> None:
    """As when an archive is unpacked where links are not supported."""
    lost = tmp_path / "tree"
    (lost / "hushbid").mkdir(parents=True)
    for path in (*tree.iterdir(), *(tree / "hushbid").iterdir()):
        place = lost / path.relative_to(tree)
        if path.is_file():
            shutil.copy(path, place)  # hatch_version.py looks around itself
        elif place not in (lost / "hushbid", lost / "hushbid" / name):
            place.symlink_to(path)
    (lost / "hushbid" / name).write_text(f"../{name}")
    with pytest.raises(AssertionError, match=rf"hushbid/{name} is no folder.*core\.symlinks=true clone"):
        build(lost, tmp_path / "built")


# --- modules, names and verbs ------------------------------------------------------------------------


def test_every_module_has_the_name_that_it_has_here(looked: dict[str, Any], operator: Environment) -> None:
    assert {name: why for name, why in looked["modules"].items() if why is not None} == {}
    files = [name for name in listed("hushbid", *LINKED) if name.endswith(".py")]
    dotted = {name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in files}
    within = {name if name.startswith("hushbid") else f"hushbid.{name}" for name in dotted}
    assert set(looked["modules"]) | {"hushbid"} == within
    assert Path(looked["file"]).is_relative_to(operator.python.parents[1])
    assert looked["ours"] == []


def test_every_public_name_is_there_and_comes_from_where_it_does_here(looked: dict[str, Any]) -> None:
    assert looked["names"] == public_names()
    assert looked["dir"] == dir(hushbid) == sorted(hushbid.__all__)
    assert looked["version"] == hushbid.__version__


def test_every_verb_explains_itself(looked: dict[str, Any]) -> None:
    assert len(looked["helps"]) > 60
    assert {name: said for name, said in looked["helps"].items() if said != [0, True]} == {}


def test_without_the_extra_all_names_are_there_and_what_is_missing_is_named(bare: Bare) -> None:
    assert bare.found["names"] == public_names()
    assert {name: said for name, said in bare.found["helps"].items() if said != [0, True]} == {}
    missing = {f"lacks {module}" for module in PACKAGES}
    wanting = {name: why for name, why in bare.found["modules"].items() if why is not None}
    assert 0 < len(wanting) < len(bare.found["modules"]) / 4
    for name, why in wanting.items():
        assert why in missing or "pip install 'hushbid[operator]'" in why, (name, why)
    assert "scikit-learn" in bare.refused["error"]["what"]
    assert "pip install 'hushbid[operator]'" in bare.refused["error"]["advice"]


# --- what people do ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def told(operator: Environment) -> list[str]:
    """The output of a script that buys as in the README, and then tries the impossible."""
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    script = operator.script(
        "readme.py",
        README_TABLES,
        code,
        "print(len(bought.points), len(model.classes_))",
        "small = dict(owners=dict(north=north, south=south), validation=wanted[:10], seed_set=public)",
        "try:\n"
        "    hushbid.procure(**small, schema=schema, points=300, epsilon=.01)\n"
        "except hushbid.Hopeless as error:\n"
        "    import pickle\n"
        "    print(type(error).__module__, type(pickle.loads(pickle.dumps(error))).__qualname__)",
    )
    return operator.ran(str(script)).splitlines()


def test_the_demonstration_runs_in_processes_of_its_own(operator: Environment) -> None:
    program = str(operator.python.with_name("hushbid"))
    run = ("run", "digits", "--set", "session.points=20", "--no-rehearsal", "--json")
    result = json.loads(operator.ran(program, *run))
    assert result["points_delivered"] == 20
    assert Path(result["directory"]).parent == operator.work / "runs"


def test_the_readme_buys_from_two_tables(told: list[str]) -> None:
    assert told[0] == "300 2"


def test_the_page_of_the_python_interface_prints_what_it_says(operator: Environment, warm: Warm) -> None:
    text = Page("docs/python.md").text
    codes = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    said = "".join(re.findall(r"```text\n(.*?)```", text, flags=re.DOTALL))
    assert warm.ran(operator.script("page.py", *codes)).split() == said.split()


def test_the_tutorial_s_three_parties_run_as_processes_and_print_what_it_says(
    operator: Environment, warm: Warm
) -> None:
    text = Page("docs/tutorial.md").text
    port, code, said = str(free_port()), [], ""
    for language, block in re.findall(r"```(\w+)\n(.*?)```", text, flags=re.DOTALL):
        match language:
            case "toml":
                name = block.partition("\n")[0].removeprefix("# ")
                (operator.work / name).write_text(block.replace("5790", port))
            case "console":
                for line in block.splitlines():
                    warm.ran(*line.removeprefix("$ ").split())
            case "python":
                code.append(block)
            case "text":
                said += block
    assert warm.ran(operator.script("tutorial.py", *code)) == said


def test_an_error_is_caught_by_its_name(told: list[str]) -> None:
    assert told[1:] == ["hushbid.protocol.errors Hopeless"]


@pytest.mark.parametrize("party", ["consumer", "curator", "owner"])
def test_a_party_starts_by_its_module_s_name(operator: Environment, party: str) -> None:
    assert "--session" in operator.ran("-P", "-m", f"hushbid.{party}", "--help")


# --- in a checkout -----------------------------------------------------------------------------------


def test_a_checkout_takes_the_place_of_an_old_wheel(tmp_path: Path, here: Built) -> None:
    tree = sources(tmp_path / "tree")
    made = Environment(tmp_path)
    made.install("lazy-loader", "--constraint", str(LOCK))
    made.install(str(here.wheel), "--no-deps")
    assert "site-packages" in made.ran("-c", "import hushbid; print(hushbid.__file__)")
    (tree / "protocol" / "__init__.py").write_text('__version__ = "9.9.9"\n')
    made.install("--no-deps", "--editable", str(tree))
    assert made.ran(
        "-c", "from hushbid.protocol import __file__ as file, __version__; print(file, __version__)"
    ) == (f"{tree}/hushbid/protocol/__init__.py 9.9.9\n")
    assert (made.python.parent / "hushbid").exists()
