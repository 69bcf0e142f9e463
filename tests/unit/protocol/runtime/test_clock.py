"""A party's clock resumes where its transcript ends, even if the machine's clock starts anew."""

from __future__ import annotations

import time

from hushbid.protocol.runtime.clock import Clock


def test_it_is_the_machines_own_where_that_is_ahead() -> None:
    before = time.monotonic()
    now = Clock(before - 1000.0)()
    assert before <= now <= time.monotonic()


def test_it_never_goes_back_behind_the_last_step() -> None:
    last = time.monotonic() + 1000.0
    clock = Clock(last)
    first = clock()
    assert last <= first < last + 100.0
    assert clock() >= first
