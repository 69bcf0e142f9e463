"""Texts that are searched for together are found as if each were searched for alone."""

from __future__ import annotations

import numpy as np
import pytest

from tests.processes.byte_search import WORD, those_in

KEPT = np.random.default_rng(3).integers(0, 3, 20_000, np.uint8).tobytes() + bytes(100) + b"\xff" * 40


def test_every_text_is_found_wherever_it_begins_and_ends() -> None:
    lengths = (1, WORD - 1, WORD, WORD + 1, 30)
    places = (*range(2 * WORD), *range(len(KEPT) - 200, len(KEPT) - 29))
    texts = {KEPT[place : place + length] for place in places for length in lengths}
    assert those_in(KEPT, texts) == texts


def test_what_is_not_there_is_not_found() -> None:
    rng = np.random.default_rng(4)
    drawn = {rng.integers(0, 3, length, np.uint8).tobytes() for length in (6, 8, 9, 11) for _ in range(200)}
    there = {text for text in drawn if text in KEPT}
    assert 50 < len(there) < len(drawn) - 50
    assert those_in(KEPT, drawn) == there


def test_a_text_that_ends_after_the_end_is_not_found() -> None:
    assert those_in(KEPT, {KEPT[-20:] + b"\xff" * 30, b"\x05" + KEPT[:20]}) == set()


@pytest.mark.parametrize("kept", [b"", b"short", KEPT[: WORD - 1]])
def test_little_is_looked_through_too(kept: bytes) -> None:
    assert those_in(kept, {kept[:3] or b"x", b"nowhere in it"}) == {kept[:3]} - {b""}
