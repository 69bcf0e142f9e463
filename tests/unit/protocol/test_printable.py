"""Others' text, as people are shown it: every active or hidden character becomes an escape."""

from __future__ import annotations

import json
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushbid.protocol.printable import printable, printable_in, printable_lines, printable_source


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, ünïcödé, 漢字 and ε = 1", "plain, ünïcödé, 漢字 and ε = 1"),
        ("\x1b]0;owned\x07", r"\x1b]0;owned\x07"),
        ("a\nb\r\tc\x00\x7f", r"a\nb\r\tc\x00\x7f"),
        ("\x9b31m\x85", r"\x9b31m\x85"),
        ("\u202eevil\u2066\u200f\u2028", r"\u202eevil\u2066\u200f\u2028"),
        ("\ud800\U000e0041\ufeff", r"\ud800\U000e0041\ufeff"),
    ],
)
def test_what_acts_is_shown_as_an_escape_and_nothing_is_lost(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(st.text())
def test_any_text_becomes_one_printable_line_and_stays_as_it_is_then(text: str) -> None:
    shown = printable(text)
    assert shown.isprintable()
    assert printable(shown) == shown
    assert printable_lines(text).replace("\n", "").isprintable()
    assert printable_lines(text).count("\n") == text.count("\n")


def test_a_value_is_printable_throughout_its_keys_and_its_kinds_kept() -> None:
    value = {"a\x1b": ["b\n", ("c\u202e", 1.5, None, True)], "n": {"x\r": 2}}
    assert printable_in(value) == {r"a\x1b": [r"b\n", [r"c\u202e", 1.5, None, True]], "n": {r"x\r": 2}}


@given(st.text())
def test_json_means_the_same_and_is_printable(text: str) -> None:
    for ensure_ascii in (True, False):
        source = printable_source(json.dumps({"a": text}, ensure_ascii=ensure_ascii, indent=1))
        assert source.replace("\n", "").isprintable()
        if ensure_ascii or max(map(ord, text), default=0) < 0x10000:
            assert json.loads(source) == {"a": text}


def test_toml_means_the_same_and_is_printable() -> None:
    source = printable_source('a = "x\u202e\u00a0\U000e0041"\nb = 1\n')
    assert source == 'a = "x\\u202e\\u00a0\\U000e0041"\nb = 1\n'
    assert tomllib.loads(source)["a"] == "x\u202e\u00a0\U000e0041"
