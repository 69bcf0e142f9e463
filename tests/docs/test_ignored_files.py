"""What a party makes, keys above all, gets neither into the image nor into the repository."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator

import pytest

from tests.conftest import ROOT

MADE = ["key", "pub", "request", "invitation", "ledger", "transcript"]
"""Endings of what `hushbid keys`, `hushbid invite` and the parties write."""


def patterns(name: str) -> list[str]:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def expression(pattern: str) -> re.Pattern[str]:
    """A pattern as the engine reads it: `**/` is any directories, `*` ends at a slash."""
    parts = re.split(r"(\*\*/|\*)", pattern)
    return re.compile("".join({"**/": "(.*/)?", "*": "[^/]*"}.get(part, re.escape(part)) for part in parts))


def reaches_the_build(path: str) -> bool:
    """Whether .dockerignore lets a file through: its last matching pattern, or its parent's, decides."""
    there = True
    parts = path.split("/")
    for pattern in patterns(".dockerignore"):
        inner = expression(pattern.removeprefix("!"))
        if any(inner.fullmatch("/".join(parts[:count])) for count in range(1, len(parts) + 1)):
            there = pattern.startswith("!")
    return there


def shipped() -> Iterator[str]:
    for path in sorted((ROOT / "configs").rglob("*")):
        if path.suffix in (".toml", ".service", ".md"):
            yield path.relative_to(ROOT).as_posix()


def test_every_example_is_in_the_image() -> None:
    assert len(list(shipped())) > 10
    assert [path for path in shipped() if not reaches_the_build(path)] == []


@pytest.mark.parametrize("ending", MADE)
@pytest.mark.parametrize(
    "place", ["", "configs/", "configs/separate/", "configs/new/", "owner/", "hushbid/report/"]
)
def test_nothing_that_a_party_makes_reaches_the_build(place: str, ending: str) -> None:
    assert not reaches_the_build(f"{place}curator.{ending}")


@pytest.mark.parametrize(
    "path", ["configs/separate/customers.csv", "configs/separate/state/settings", "data/a.toml"]
)
def test_no_data_and_no_state_reach_the_build(path: str) -> None:
    assert not reaches_the_build(path)


def test_an_engine_of_version_20_10_finds_what_is_let_through() -> None:
    # It skips an ignored directory unless an exception's text begins with that directory's path.
    for exception in (pattern for pattern in patterns(".dockerignore") if pattern.startswith("!")):
        assert "*" not in exception.rpartition("/")[0]


def test_git_leaves_the_same_out_and_nothing_that_is_tracked() -> None:
    assert {f"*.{ending}" for ending in MADE} <= set(patterns(".gitignore"))
    if not (ROOT / ".git").exists():
        pytest.skip("no repository here")
    ignored = ["git", "ls-files", "--cached", "--ignored", "--exclude-standard"]
    assert subprocess.run(ignored, cwd=ROOT, capture_output=True, check=True).stdout == b""
