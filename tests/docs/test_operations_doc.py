"""docs/operations.md shows lines as they are logged, and has every field of a status."""

from __future__ import annotations

import dataclasses

from hushbid.protocol.runtime.telemetry.log_events import LOG_EVENTS
from hushbid.protocol.runtime.telemetry.logs import LINES_PER_MINUTE
from hushbid.protocol.runtime.telemetry.status_file import Status
from tests.docs.pages import Page

PAGE = Page("docs/operations.md")


def test_the_lines_shown_are_the_event_s() -> None:
    message = LOG_EVENTS["peer.gone"].text.format(peer="alpha", seconds=10.0)
    assert f"Z curator WARNING peer.gone [rounds 7] {message}\n" in PAGE.text
    assert f'"event": "peer.gone", "message": "{message}", "phase": "rounds", "round": 7' in PAGE.text


def test_the_limit_of_lines_is_the_one_stated() -> None:
    assert f"at most {LINES_PER_MINUTE} lines a minute" in PAGE.text


def test_every_field_of_a_status_is_there() -> None:
    assert sorted(PAGE.first_names("Status")) == sorted(each.name for each in dataclasses.fields(Status))
