"""Owners that are gone, stopped, or refused: who ends with which code, and what the others do."""

from __future__ import annotations

import shutil
import signal

import numpy as np
import pytest

from hushbid.protocol.runtime.keys import new_keypair
from tests.processes.lost import (
    MIDDLE,
    PROCESSES,
    ROUNDS,
    Make,
    all_verify,
    bid_rounds,
    codes,
    make,
    to_the_middle,
)

__all__ = ["make"]


def test_an_owner_that_is_killed_is_absent_and_the_session_finishes(make: Make) -> None:
    cluster = make()
    pacer = to_the_middle(cluster)
    cluster.signal("heron", signal.SIGKILL)
    cluster.end("heron")
    pacer.let_go()
    ended = cluster.end()
    assert codes(ended) == {"curator": 0, "consumer": 0, "magpie": 0, "heron": -signal.SIGKILL}
    assert ended["curator"].json["absences"] == {"heron": ROUNDS - MIDDLE}
    assert ended["consumer"].json["points_delivered"] == ROUNDS
    assert all_verify(cluster)


def test_an_owner_that_is_killed_while_its_bid_is_awaited_is_waited_for_no_longer(
    make: Make,
) -> None:
    cluster = make()
    pacer = to_the_middle(cluster)
    cluster.signal("heron", signal.SIGSTOP)
    pacer.let_go()
    cluster.until(lambda: cluster.round() > MIDDLE, "a round that waits for heron")
    cluster.signal("heron", signal.SIGKILL)
    ended = cluster.end()
    assert codes(ended) == {"curator": 0, "consumer": 0, "magpie": 0, "heron": -signal.SIGKILL}
    assert ended["curator"].json["absences"] == {"heron": ROUNDS - MIDDLE}
    silence = cluster.session.file.timeouts.silence
    assert ended["curator"].json["wall_seconds"] < silence, "its silence was not waited for"
    assert all_verify(cluster)


@pytest.mark.parametrize("comeback", [20.0, 0.3])
def test_an_owner_that_is_killed_and_started_again_goes_on(make: Make, comeback: float) -> None:
    """In time it has missed nothing; later, the rounds that went on without it."""
    cluster = make(timeouts__comeback=comeback)
    pacer = to_the_middle(cluster)
    cluster.signal("heron", signal.SIGSTOP)
    pacer.let_go()
    pacer.hold_bids_from(MIDDLE + 3)
    cluster.until(lambda: cluster.round() > MIDDLE, "a round that waits for heron")
    cluster.signal("heron", signal.SIGKILL)
    cluster.end("heron")
    if comeback < 1.0:
        cluster.until(lambda: pacer.held, "two rounds without heron")
    cluster.start("heron")
    cluster.until(lambda: bid_rounds(cluster, "heron")[-1] == MIDDLE + 3, "heron's return")
    pacer.let_go()
    ended = cluster.end()
    assert codes(ended) == dict.fromkeys(PROCESSES, 0)
    assert ended["curator"].json["absences"] == ({"heron": 2} if comeback < 1.0 else {})
    assert ended["curator"].json["refusals"] == []
    assert ended["consumer"].json["points_delivered"] == ROUNDS
    assert all_verify(cluster)


def test_an_owner_that_is_stopped_is_absent_until_it_goes_on(make: Make) -> None:
    cluster = make(timeouts__silence=2.0)
    pacer = to_the_middle(cluster)
    cluster.signal("heron", signal.SIGSTOP)
    pacer.let_go()
    pacer.hold_bids_from(MIDDLE + 3)
    cluster.until(lambda: pacer.held, "two rounds without heron")
    assert bid_rounds(cluster, "heron")[-1] == MIDDLE
    cluster.signal("heron", signal.SIGCONT)
    cluster.until(lambda: bid_rounds(cluster, "heron")[-1] == MIDDLE + 3, "heron's return")
    pacer.let_go()
    ended = cluster.end()
    assert codes(ended) == dict.fromkeys(PROCESSES, 0)
    assert ended["curator"].json["absences"] == {"heron": 2}
    assert all_verify(cluster)


def test_an_owner_that_lost_its_state_is_refused_and_the_session_goes_on(
    make: Make,
) -> None:
    cluster = make()
    pacer = to_the_middle(cluster)
    cluster.signal("heron", signal.SIGKILL)
    cluster.end("heron")
    shutil.rmtree(cluster.directory("heron") / "state")
    cluster.start("heron")
    again = cluster.end("heron")["heron"]
    assert again.code == 4
    assert "state-lost" in again.error["what"]
    assert "without its transcript" in again.error["advice"]
    pacer.let_go()
    ended = cluster.end()
    assert codes(ended) == {"curator": 0, "consumer": 0, "magpie": 0, "heron": 4}
    assert {"peer": "heron", "round": MIDDLE, "code": "state-lost"} in ended["curator"].json["refusals"]


def test_owners_that_cannot_come_in_are_told_why_and_the_others_go_on(make: Make) -> None:
    owners = ("stranger", "misled", "elsewhere", "broken", "heron")
    cluster = make(owners, timeouts__enrolment=15.0)
    other = new_keypair()
    cluster.use_key("stranger", other)
    cluster.change("stranger", {"roster.owners.stranger": other.public.text})
    cluster.change("misled", {"roster.curator": new_keypair().public.text})
    cluster.change("elsewhere", {"session.points": ROUNDS + 1})
    np.savez(cluster.directory("broken") / "data.npz", features=np.full((5, 3), np.nan))
    cluster.start_all()
    ended = cluster.end()
    assert codes(ended) == {
        "curator": 0, "consumer": 0, "heron": 0, "stranger": 2, "misled": 2, "elsewhere": 4, "broken": 4
    }  # fmt: skip
    assert "does not know our key" in ended["stranger"].error["what"]
    assert "handshake" in ended["misled"].error["what"]
    assert "configuration" in ended["elsewhere"].error["what"]
    assert "session file" in ended["elsewhere"].error["advice"]
    absences = ended["curator"].json["absences"]
    assert absences == dict.fromkeys(sorted(owners[:4]), ROUNDS)
    assert ended["curator"].json["refusals"] == [{"peer": "elsewhere", "round": 0, "code": "configuration"}]
    assert "refused a connection" in cluster.log("curator")


def test_an_owner_that_is_told_to_stop_ends_in_order_and_the_others_go_on(
    make: Make,
) -> None:
    cluster = make()
    pacer = to_the_middle(cluster)
    cluster.signal("heron", signal.SIGTERM)
    stopped = cluster.end("heron", seconds=60)["heron"]
    assert stopped.code == 1
    assert "SIGTERM" in stopped.error["what"]
    pacer.let_go()
    ended = cluster.end()
    assert codes(ended) == {"curator": 0, "consumer": 0, "magpie": 0, "heron": 1}
    assert ended["curator"].json["absences"] == {"heron": ROUNDS - MIDDLE}
    assert all_verify(cluster)
