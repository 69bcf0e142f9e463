"""docs/wire.md says what the code does: fields, directions, limits, offences, layout."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest
from pydantic import BaseModel

from protocol import arrays, limits
from protocol.errors import Offence
from protocol.messages import CONTROL_SEQUENCE, PROTOCOL_VERSION, Candidate, Message, Purchase, Secrecy
from protocol.wire import FRAME_VERSION, HEADER_BYTES, Direction, Frame, encode_frame
from tests.conftest import ROOT
from tests.unit.message_cases import CASES

REDACTED = {Secrecy.PUBLIC: "nothing", Secrecy.BODY: "its body", Secrecy.EXISTENCE: "that it was sent"}
PARTIES = {
    frozenset({Direction.OWNER_TO_CURATOR}): "Owner → curator",
    frozenset({Direction.CONSUMER_TO_CURATOR}): "Consumer → curator",
    frozenset({Direction.CURATOR_TO_OWNER}): "Curator → owner",
    frozenset({Direction.CURATOR_TO_CONSUMER}): "Curator → consumer",
    frozenset({Direction.OWNER_TO_CURATOR, Direction.CONSUMER_TO_CURATOR}): "Owner or consumer → curator",
    frozenset({Direction.CURATOR_TO_OWNER, Direction.CURATOR_TO_CONSUMER}): "Curator → owner or consumer",
    frozenset(Direction) - {Direction.GREETING}: "Any party → any party",
}
MODELS: dict[str, type[BaseModel]] = {case.message.kind: type(case.message) for case in CASES.values()}
PARTS: dict[str, type[BaseModel]] = {"candidate": Candidate, "purchase": Purchase}


@cache
def page() -> str:
    return (ROOT / "docs" / "wire.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    """The text under a heading, up to the next one of its level or above."""
    found = re.search(rf"^(#+) {re.escape(title)}\n(.*?)(?=^#+ |\Z)", page(), re.M | re.S)
    assert found, f"no section {title}"
    return found[2]


def rows(text: str) -> list[list[str]]:
    """The cells of a section's table, without its head; an escaped bar is part of its cell."""
    lines = [line for line in text.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def test_the_messages_of_the_page_are_the_messages_there_are() -> None:
    titles = re.findall(r"^### `(.+)`$", page(), re.M)
    assert sorted(titles) == sorted(MODELS)


@pytest.mark.parametrize("title", [*(f"`{kind}`" for kind in sorted(MODELS)), *sorted(PARTS)])
def test_the_fields_of_a_message_are_listed_in_their_order(title: str) -> None:
    model = (MODELS | PARTS)[title.strip("`")]
    assert [row[0].strip("`") for row in rows(section(title))] == list(model.model_fields)


@pytest.mark.parametrize("kind", sorted(MODELS))
def test_who_may_send_a_message_and_what_is_redacted_of_it(kind: str) -> None:
    allowed = next(case.allowed for case in CASES.values() if case.message.kind == kind)
    model = MODELS[kind]
    assert issubclass(model, Message)
    lead = section(f"`{kind}`").strip()
    parties = PARTIES[allowed - {Direction.GREETING}]
    assert lead.startswith(f"{parties}. Redacted: {REDACTED[model.SECRECY]}. ")


@pytest.mark.parametrize(
    ("field", "message"),
    [("embedding", "target"), ("seed_total", "target"), ("weights", "broadcast"), ("score", "bid")],
)
def test_the_dtype_of_an_array_is_the_one_stated(field: str, message: str) -> None:
    array = getattr(CASES[message].message, field)
    assert isinstance(array, np.ndarray)
    stated = next(row[1] for row in rows(section(f"`{message}`")) if row[0] == f"`{field}`")
    assert stated.split()[0] == array.dtype.name


def test_the_limits_are_those_of_the_code() -> None:
    table = rows(section("Limits"))
    assert table
    for name, value, _ in table:
        assert int(value) == getattr(limits, name.strip("`")), name


def test_no_limit_of_the_wire_is_left_out() -> None:
    sources = [
        (ROOT / "protocol" / f"{name}.py").read_text() for name in ("messages", "wire", "arrays", "link")
    ]
    used = {name for source in sources for name in re.findall(r"limits\.([A-Z_]+)", source)}
    assert used <= {row[0].strip("`") for row in rows(section("Limits"))}


def test_the_offences_are_those_of_the_code() -> None:
    assert [row[0].strip("`") for row in rows(section("Offences"))] == [offence.value for offence in Offence]


def test_the_header_is_laid_out_as_stated() -> None:
    frame = encode_frame(Frame(bytes(range(16)), 2, 3, b"body"))
    parts = {
        "magic": b"HBID",
        "frame version": bytes([FRAME_VERSION]),
        "session": bytes(range(16)),
        "sequence": (2).to_bytes(8, "big"),
        "acknowledged": (3).to_bytes(8, "big"),
        "body": b"body",
    }
    table = rows(section("Frame"))
    assert [row[2] for row in table] == list(parts)
    for offset, length, field, _ in table:
        end = int(offset) + int(length) if length else len(frame)
        assert frame[int(offset) : end] == parts[field]
    assert int(table[-1][0]) == HEADER_BYTES


def test_the_array_types_are_those_of_the_code() -> None:
    (stated,) = [row[2] for row in rows(section("Arrays of numbers")) if row[1] == "dtype"]
    for code, name in re.findall(r"(\d) (u?(?:int|float)\d+)", stated):
        assert arrays.pack_array(np.zeros(1, name))[0] == int(code)
    assert len(re.findall(r"\d (?:u?int|float)", stated)) == 6


def test_the_versions_and_the_unnumbered_messages_are_those_of_the_code() -> None:
    assert (
        page()
        .splitlines()[2]
        .startswith(f"Frame version {FRAME_VERSION}, protocol version {PROTOCOL_VERSION}.")
    )
    unnumbered = {case.message.kind for case in CASES.values() if case.sequence == CONTROL_SEQUENCE}
    (stated,) = re.findall(r"\*\*Sequence and acknowledgement\.\*\* (.+?) have sequence 0", page(), re.S)
    assert set(re.findall(r"`(\w+)`", stated)) == unnumbered
