"""docs/tutorial.md: its directory, files, commands and code, followed from top to bottom.

tests/installed runs it as a script, where each party's process starts Python. Here they are threads.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from joblib import parallel_config

from hushbid.cli.app import main
from tests.docs.pages import Page
from tests.processes.cluster import free_port

PAGE = Page("docs/tutorial.md")


def blocks() -> Iterator[tuple[str, str]]:
    """Each block of the page: its language and its content."""
    for found in re.finditer(r"```(\w+)\n(.*?)```", PAGE.text, flags=re.DOTALL):
        yield found[1], found[2]


class Reader:
    """Follows the page in a directory of its own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.monkeypatch = monkeypatch
        self.port = str(free_port())
        self.names: dict[str, Any] = {"__name__": "page"}
        self.ran: list[str] = []

    def toml(self, text: str) -> None:
        """A file, whose name is its first comment."""
        Path(text.partition("\n")[0].removeprefix("# ")).write_text(text.replace("5790", self.port))

    def console(self, text: str) -> None:
        for line in text.splitlines():
            words = shlex.split(line.removeprefix("$ "))
            self.monkeypatch.setattr(sys, "argv", words)
            with contextlib.redirect_stdout(io.StringIO()), pytest.raises(SystemExit) as ended:
                main()
            assert ended.value.code == 0, line
            self.ran.append(words[1])

    def python(self, text: str) -> str:
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile(text, PAGE.path, "exec"), self.names)
        return said.getvalue()


def test_the_page_can_be_followed_and_prints_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, printed, compared = Reader(monkeypatch), "", 0
    with contextlib.chdir(tmp_path), parallel_config("threading"):
        for language, text in blocks():
            if language == "text":
                assert printed == text
                printed, compared = "", compared + 1
                continue
            assert not printed, f"the page does not say that this was printed: {printed}"
            printed = getattr(reader, language)(text) or ""
    assert not printed
    assert compared == PAGE.text.count("```text") > 0
    assert (reader.ran.count("keys"), reader.ran.count("invite")) == (9, 3)
    for name, party in reader.names["parties"].items():
        assert type(party).__name__.lower() in (name, "owner")
