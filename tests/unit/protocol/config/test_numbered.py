"""Numbered boxes (`session.numbered`): which sessions have them, with their digest and version."""

from __future__ import annotations

from typing import Any

import pytest

from hushbid.protocol.errors import ConfigError
from hushbid.protocol.session.session import open_session
from tests.support.session_files import load


@pytest.mark.parametrize("rule", ["sealed", "blind"])
def test_boxes_without_numbers_are_another_session_and_the_one_of_before_there_were_numbers(
    rule: str,
) -> None:
    boxed = {"acquisition.rule": rule, "features.seed": None}
    numbered, before = load(boxed), load(boxed | {"session.numbered": False})
    assert numbered.digest() == load(boxed | {"session.numbered": True}).digest() != before.digest()
    assert (open_session(numbered).protocol_version, numbered.in_force()["session"]["numbered"]) == (5, True)
    version = {"sealed": 2, "blind": 3}[rule]
    assert (open_session(before).protocol_version, before.in_force()["session"]["numbered"]) == (
        version,
        False,
    )


@pytest.mark.parametrize(
    "changes",
    [{"acquisition.rule": "tender"}, {"acquisition.rule": "sealed", "acquisition.commitment_depth": 4}],
    ids=["tender", "owners that commit"],
)
@pytest.mark.parametrize("given", [True, False])
def test_boxes_that_have_numbers_anyway_do_not_ask(changes: dict[str, Any], given: bool) -> None:
    changes = {"features.seed": None, "session.jitter": None, **changes}
    file = load(changes | {"session.numbered": given})
    assert file.digest() == load(changes).digest()
    assert open_session(file).numbered_boxes


def test_points_without_boxes_have_no_numbered_ones() -> None:
    with pytest.raises(ConfigError, match=r"session\.numbered is true, and under the rule ask-all"):
        open_session(load({"session.numbered": True, "acquisition.rule": "ask-all"}))
