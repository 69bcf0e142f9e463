"""docs/operations.md has every event, metric, field of a status and reason that there is."""

from __future__ import annotations

import dataclasses
import logging
import re
from enum import StrEnum

import pytest

from curator.connections import Ignored
from protocol.runtime.authentication import Refusal
from protocol.runtime.connection_limits import Cut
from protocol.runtime.log_events import LOG_EVENTS
from protocol.runtime.logs import LINES_PER_MINUTE
from protocol.runtime.metrics import COUNTERS, GAUGES, ROUND_SECONDS
from protocol.runtime.router import Drop
from protocol.runtime.status_file import Status
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")


def rows(title: str) -> list[list[str]]:
    """The cells of the tables under a heading, those of the headings below it too."""
    level = re.search(rf"^(#+) {re.escape(title)}$", PAGE, re.M)
    assert level, f"no section {title}"
    text = re.split(rf"^#{{1,{len(level[1])}}} ", PAGE[level.end() :], maxsplit=1, flags=re.M)[0]
    lines = [line for line in text.splitlines() if line.startswith("| ") and "`" in line]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]


def quoted(cell: str) -> tuple[str, ...]:
    return tuple(re.findall(r"`([^`]+)`", cell))


EVENTS = {
    name: (level, quoted(fields))
    for title in ("At every party", "At the curator", "At an owner and the consumer")
    for (name,), level, fields in ((quoted(row[0]), row[1], row[2]) for row in rows(title))
}


@pytest.mark.parametrize("name", sorted(LOG_EVENTS.keys() | EVENTS.keys()))
def test_every_event_is_there_with_its_level_and_fields(name: str) -> None:
    event = LOG_EVENTS[name]
    assert EVENTS[name] == (logging.getLevelName(event.level).lower(), event.fields)


def test_the_lines_shown_are_the_event_s() -> None:
    message = LOG_EVENTS["peer.gone"].text.format(peer="alpha", seconds=10.0)
    assert f"Z curator WARNING peer.gone [rounds 7] {message}\n" in PAGE
    assert f'"event": "peer.gone", "message": "{message}", "phase": "rounds", "round": 7' in PAGE


def test_the_limit_of_lines_is_the_one_stated() -> None:
    assert f"at most {LINES_PER_MINUTE} lines a minute" in PAGE


def test_every_metric_is_there_with_its_label() -> None:
    stated = {quoted(row[0])[0]: quoted(row[2]) for row in rows("Metrics")}
    labels = {f"hushbid_{name}": described.label for name, described in GAUGES.items()}
    labels |= {f"hushbid_{name}_total": described.label for name, described in COUNTERS.items()}
    labels[f"hushbid_{ROUND_SECONDS}"] = "le"
    assert stated == {name: () if label is None else (label,) for name, label in labels.items()}


def test_every_field_of_a_status_is_there() -> None:
    stated = [name for row in rows("Status") for name in quoted(row[0])]
    assert sorted(stated) == sorted(each.name for each in dataclasses.fields(Status))


@pytest.mark.parametrize(
    ("of", "reasons"), [("dropped", Drop), ("ignored", Ignored), ("refused", Refusal), ("cut", Cut)]
)
def test_every_reason_is_there(of: str, reasons: type[StrEnum]) -> None:
    stated = {quoted(row[1])[0] for row in rows("Reasons") if row[0] == of}
    assert stated == {reason.value for reason in reasons}
