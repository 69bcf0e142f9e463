"""docs/commands.md has an example of every command, and names none that is not there."""

from __future__ import annotations

import re

import pytest

from hushbid.cli.app import GROUPS, evidence_verbs
from tests.docs.pages import Page

PAGE = Page("docs/commands.md")
COMMANDS = sorted(verb for verbs in GROUPS.values() for verb in verbs)
EXAMPLES = "\n".join(re.findall(r"^```console\n(.*?)^```", PAGE.text, re.M | re.S))
NAMED = sorted(set(re.findall(r"^(?:\w+)?\$\s+hushbid (?:evidence )?([a-z]+(?:-[a-z]+)*)", EXAMPLES, re.M)))


@pytest.mark.parametrize("command", [*(each for each in COMMANDS if each != "evidence"), *evidence_verbs()])
def test_a_command_has_an_example(command: str) -> None:
    assert command in NAMED


def test_no_example_is_of_a_command_that_is_not_there() -> None:
    assert set(NAMED) <= {*COMMANDS, *evidence_verbs()}
