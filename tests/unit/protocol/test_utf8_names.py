"""Names that are not UTF-8 are refused before anything is written or charged; other names are taken."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from hushbid.cluster.file import open_cluster
from hushbid.protocol.config.party import CuratorFile
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.utf8_names import resolved
from hushbid.text_files import check_directory_place, check_new_file

BAD = os.fsdecode(b"w\xfcnted")
SHOWN = r"w\xfcnted"
TABLE = "age,sort,bought\n1,a,yes\n2,b,no\n3,a,yes\n4,b,no\n"


def hushbid(
    words: Sequence[str], directory: Path, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hushbid", *words],
        capture_output=True, text=True, timeout=240, check=False, cwd=directory,
        env={**os.environ, **(variables or {})},
    )  # fmt: skip


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with tables, one of which has the bad name, and a link to it."""
    for name in ("table.csv", f"{BAD}.csv"):
        (tmp_path / name).write_text(TABLE)
    (tmp_path / BAD).mkdir()
    (tmp_path / "link.csv").symlink_to(tmp_path / f"{BAD}.csv")
    (tmp_path / "link").symlink_to(tmp_path / BAD)
    return tmp_path


def there(place: Path) -> list[Path]:
    return sorted(place.rglob("*"))


@pytest.mark.parametrize(
    ("words", "variables"),
    [
        (["init", f"{BAD}.csv", "--label", "bought"], {}),
        (["init", "table.csv", "--label", "bought", "--owner", f"north={BAD}.csv"], {}),
        (["init", "link.csv", "--label", "bought"], {}),
        (["init", "table.csv", "--label", "bought", "--owner", "north=link.csv"], {}),
        (["schema", "draft", f"{BAD}.csv"], {}),
        (["advise", f"{BAD}.csv", "--owners", "500"], {}),
        (["run", "digits", "--output", f"{BAD}/out"], {}),
        (["run", "digits", "--output", "link/out"], {}),
        (["run", "digits"], {"HUSHBID_DIRECTORY": BAD}),
        (["status", "--check", BAD], {}),
        (["owner", "--session", f"{BAD}.toml"], {}),
    ],
    ids=lambda each: " ".join(each).replace(BAD, "bad") if isinstance(each, list) else "",
)
def test_it_is_refused_before_anything_is_written(
    words: list[str], variables: dict[str, str], place: Path
) -> None:
    before = there(place)
    ended = hushbid([*words, "--json"], place, variables)
    error = json.loads(ended.stdout)["error"]
    assert (ended.returncode, error["kind"], error["exit_code"]) == (4, "ConfigError", 4)
    assert SHOWN in error["what"]
    assert "not UTF-8" in error["what"]
    assert error["advice"] == "Rename the file or the directory."
    assert len(ended.stderr.splitlines()) == 2, ended.stderr
    assert there(place) == before


def test_no_work_is_begun_in_such_a_directory_and_help_is_given(place: Path) -> None:
    ended = hushbid(["run", "digits"], place / BAD)
    assert (ended.returncode, "not UTF-8" in ended.stderr) == (4, True)
    assert there(place / BAD) == []
    assert hushbid(["--version"], place / BAD).returncode == 0


def test_a_name_of_other_letters_in_utf8_is_taken(place: Path) -> None:
    other = place / "dür 東京"
    other.mkdir()
    (other / "wünsche.csv").write_text(TABLE)
    drafted = hushbid(["schema", "draft", "wünsche.csv"], other)
    assert (drafted.returncode, "[[columns]]" in drafted.stdout) == (0, True), drafted.stderr


@pytest.mark.parametrize(
    "kept",
    [
        resolved,
        check_directory_place,
        lambda link: check_new_file(link / "new"),
        lambda link: CuratorFile(state=Path(link.name)).resolved(link.parent),
        lambda link: CuratorFile(state=Path("state")).with_options(state=link),
        lambda link: open_cluster("digits", settings=[f'run.directory="{link}"']),
    ],
    ids=["resolved", "directory", "file", "party's file", "option", "cluster"],
)
def test_what_a_link_leads_to_is_refused_where_a_file_would_name_it(
    kept: Callable[[Path], Any], place: Path
) -> None:
    with pytest.raises(ConfigError, match="not UTF-8") as refused:
        kept(place / "link")
    assert SHOWN in refused.value.what
