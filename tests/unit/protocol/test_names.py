"""Names in a sentence: the first of many, and how many more there are."""

from __future__ import annotations

from hushbid.protocol.names import listed


def test_what_is_left_out_is_counted_in_the_number_that_it_has() -> None:
    assert listed("ab", 2, rest="other") == "a, b"
    assert listed("abc", 2, rest="other") == "a, b and 1 other"
    assert listed("abcd", 2, rest="other") == "a, b and 2 others"
    assert listed("abcd", 2) == "a, b and 2 more"
