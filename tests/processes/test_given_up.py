"""A session that cannot go on without a missing party: it stops in order, and is given up."""

from __future__ import annotations

import signal

import pytest

from tests.processes.lost import QUICK, Make, all_verify, codes, make, to_the_middle

__all__ = ["make"]


def test_a_consumer_that_never_comes_ends_the_session_with_3(make: Make) -> None:
    cluster = make(("heron",), timeouts__enrolment=6.0)
    cluster.start("heron")
    cluster.until(cluster.transcript_path("heron").exists, "heron, which may start slowly")
    cluster.start("curator")
    ended = cluster.end()
    assert codes(ended) == {"curator": 3, "heron": 1}
    assert "consumer" in ended["curator"].error["what"]
    assert "abandoned" in ended["heron"].error["what"]
    assert not cluster.verified("curator").torn_bytes


@pytest.mark.parametrize(
    ("stopped", "others"),
    [
        pytest.param("consumer", {"curator": 3, "heron": 3, "magpie": 3}, id="consumer"),
        pytest.param("curator", {"consumer": 3, "heron": 3, "magpie": 3}, id="curator"),
    ],
)
def test_whom_nothing_goes_on_without_stops_in_order_and_is_given_up(
    make: Make, stopped: str, others: dict[str, int]
) -> None:
    cluster = make(**QUICK)
    pacer = to_the_middle(cluster)
    cluster.signal(stopped, signal.SIGTERM)
    ended = cluster.end(stopped, seconds=60)[stopped]
    assert ended.code == 1
    assert "SIGTERM" in ended.error["what"]
    pacer.let_go()
    assert codes(cluster.end()) == others | {stopped: 1}
    assert all_verify(cluster)
