"""Owners of a tender that come and go: they need not be online together."""

from __future__ import annotations

import signal

from tests.processes.lost import Make, codes, make

__all__ = ["make"]

TENDER = {
    "acquisition": {"rule": "tender"},
    "features.seed": None,
    "session.submission": 12,
    "session.batch": 4,
    "timeouts.round": 120.0,
    "timeouts.abandon": 5.0,
}


def test_an_owner_that_was_told_so_may_leave_before_the_other_comes(make: Make) -> None:
    cluster = make(("heron", "magpie"), **TENDER)
    cluster.start("curator", "consumer", "heron")
    cluster.until(lambda: "the curator has all of the submission" in cluster.log("heron"), "word of it")
    assert "heron has submitted, and may leave; 1 of 2 have" in cluster.log("curator")
    cluster.signal("heron", signal.SIGTERM)
    assert cluster.end("heron")["heron"].code == 1
    cluster.start("magpie")
    ended = cluster.end("curator", "consumer", "magpie")
    assert codes(ended) == dict.fromkeys(("curator", "consumer", "magpie"), 0)
    assert ended["curator"].json["absences"] == {}
    assert ended["consumer"].json["points_delivered"] == 12
    cluster.start("heron")
    back = cluster.end("heron", seconds=60)["heron"]
    assert back.code == 3
    assert "all of the submission was sent" in back.error["what"]
    assert "The session may be over by now" in back.error["advice"]
