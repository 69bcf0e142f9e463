"""Parties that are gone, stopped, or cannot be let in: who ends with what, and what the others do."""

from __future__ import annotations

import shutil
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import numpy as np
import psutil
import pytest

from protocol.runtime.keys import new_keypair
from protocol.runtime.network.router import RouterEndpoint
from protocol.wire.codec import Direction, decode_message
from protocol.wire.messages import Bid
from tests.processes.cluster import Cluster, Ended, Puppet, bodies, silent_listener

PACER = "ostrich"
"""An owner on the test's side: a round lasts while it holds its bid back."""
PROCESSES = ("curator", "consumer", "heron", "magpie")
ROUNDS = 12
MIDDLE = 5
QUICK = {"timeouts.silence": 2.0, "timeouts.abandon": 4.0, "timeouts.delivery": 4.0}
"""For tests that wait until somebody is given up; a party that a busy machine keeps waiting is not."""


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Cluster]]:
    made: list[Cluster] = []

    def make_cluster(owners: tuple[str, ...] = ("heron", "magpie", PACER), **changes: object) -> Cluster:
        values = {"session.points": ROUNDS} | {name.replace("__", "."): v for name, v in changes.items()}
        place = tmp_path / str(len(made))
        place.mkdir()
        made.append(Cluster(place, owners, changes=values))
        return made[-1]

    yield make_cluster
    for cluster in made:
        cluster.__exit__()


def to_the_middle(cluster: Cluster) -> Puppet:
    """Start the session, and keep it in its middle round, for which all others have bid."""
    pacer = cluster.puppet(PACER)
    pacer.hold_bids_from(MIDDLE)
    cluster.start(*PROCESSES)
    cluster.until(lambda: bid_rounds(cluster, "heron")[-1:] == [MIDDLE], "heron's bid")
    cluster.until(lambda: bid_rounds(cluster, "magpie")[-1:] == [MIDDLE], "magpie's bid")
    assert pacer.held
    return pacer


def bid_rounds(cluster: Cluster, owner: str) -> list[int]:
    """The rounds for which the curator has an owner's bid."""
    found = bodies(cluster.records("curator"), "curator").get((owner, "curator", "bid"), [])
    return [cast(Bid, decode_message(Direction.OWNER_TO_CURATOR, body)).round for body in found]


def codes(ended: dict[str, Ended]) -> dict[str, int]:
    return {name: end.code for name, end in ended.items()}


def all_verify(cluster: Cluster) -> bool:
    return not any(cluster.verified(name).torn for name in PROCESSES)


# -- owners ------------------------------------------------------------------------------------------------


def test_an_owner_that_is_killed_is_absent_and_the_session_finishes(make: Callable[..., Cluster]) -> None:
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
    make: Callable[..., Cluster],
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
def test_an_owner_that_is_killed_and_started_again_goes_on(
    make: Callable[..., Cluster], comeback: float
) -> None:
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


def test_an_owner_that_is_stopped_is_absent_until_it_goes_on(make: Callable[..., Cluster]) -> None:
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
    make: Callable[..., Cluster],
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


def test_owners_that_cannot_come_in_are_told_why_and_the_others_go_on(make: Callable[..., Cluster]) -> None:
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


# -- the curator -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_curator_that_is_gone_is_given_up_after_a_while(
    make: Callable[..., Cluster], number: signal.Signals
) -> None:
    cluster = make(**{name.replace(".", "__"): value for name, value in QUICK.items()})
    to_the_middle(cluster)
    cluster.signal("curator", number)
    ended = cluster.end("consumer", "heron", "magpie", seconds=60)
    assert codes(ended) == dict.fromkeys(("consumer", "heron", "magpie"), 3)
    assert all("gone too long" in end.error["what"] for end in ended.values())
    assert all_verify(cluster)


def test_a_curator_that_was_stopped_goes_on_with_all(make: Callable[..., Cluster]) -> None:
    cluster = make(timeouts__silence=2.0)
    pacer = to_the_middle(cluster)
    cluster.signal("curator", signal.SIGSTOP)
    for name in ("consumer", "heron", "magpie"):
        cluster.until(lambda name=name: "is silent" in cluster.log(name), f"{name}'s loss")  # type: ignore[misc]
    cluster.signal("curator", signal.SIGCONT)
    cluster.until(lambda: cluster.log("curator").count("is here") >= 2 * 3, "all to be back")
    pacer.let_go()
    ended = cluster.end()
    assert codes(ended) == dict.fromkeys(PROCESSES, 0)
    assert ended["consumer"].json["points_delivered"] == ROUNDS
    assert ended["curator"].json["refusals"] == []
    assert all_verify(cluster)


def test_a_curator_that_comes_back_without_its_state_is_told_apart(make: Callable[..., Cluster]) -> None:
    cluster = make(timeouts__enrolment=10.0)
    to_the_middle(cluster)
    cluster.signal("curator", signal.SIGKILL)
    cluster.end("curator")
    shutil.rmtree(cluster.directory("curator") / "state")
    cluster.start("curator")
    ended = cluster.end()
    # Only the consumer, which has nothing of the session yet that a new one lacks, could begin again.
    assert codes(ended) == {"curator": 3, "consumer": 1, "heron": 4, "magpie": 4}
    for name in ("heron", "magpie"):
        assert "state-lost" in ended[name].error["what"]
        assert "The curator was started again without its transcript" in ended[name].error["advice"]


def test_a_curator_that_never_answers_is_given_up(make: Callable[..., Cluster]) -> None:
    nobody, silent, mute = (make(("heron",), timeouts__enrolment=4.0) for _ in range(3))
    with silent_listener() as listener:
        silent.change("heron", {"network.address": f"tcp://127.0.0.1:{listener.getsockname()[1]}"})
        roster = {mute.keys["heron"].public.text: "heron"}
        address = mute.values["network"]["address"]
        with RouterEndpoint(address, pair=mute.keys["curator"], roster=roster) as endpoint:
            for cluster in (nobody, silent, mute):
                cluster.start("heron")
            ended = [cluster.end("heron", seconds=60)["heron"] for cluster in (nobody, silent, mute)]
            assert endpoint.receive(1), "it said hello"
    assert [end.code for end in ended] == [3, 3, 3]
    assert all("never answered" in end.error["what"] for end in ended)


def test_a_party_without_a_curator_waits_idly(make: Callable[..., Cluster]) -> None:
    cluster = make(("heron",), timeouts__enrolment=60.0)
    cluster.start("heron")
    process = psutil.Process(cluster.processes["heron"].pid)
    cluster.until(lambda: cluster.transcript_path("heron").exists(), "heron's transcript")

    def used() -> float:
        times = process.cpu_times()
        return float(times.user + times.system)

    settled = process.num_ctx_switches().voluntary
    before = used()
    with pytest.raises(AssertionError, match="never"):
        cluster.until(lambda: False, "never", seconds=2.0)
    assert used() - before < 0.3
    assert process.num_ctx_switches().voluntary - settled < 500, "it spins"


def test_a_port_in_use_ends_the_curator_with_2(make: Callable[..., Cluster]) -> None:
    cluster = make(("heron",))
    with socket.create_server(("127.0.0.1", cluster.port)):
        cluster.start("curator")
        ended = cluster.end()["curator"]
    assert ended.code == 2
    assert f"127.0.0.1:{cluster.port}" in ended.error["what"]
    assert not cluster.transcript_path("curator").exists()


# -- the consumer ------------------------------------------------------------------------------------------


def test_a_consumer_that_never_comes_ends_the_session_with_3(make: Callable[..., Cluster]) -> None:
    cluster = make(("heron",), timeouts__enrolment=6.0)
    cluster.start("curator", "heron")
    ended = cluster.end()
    assert codes(ended) == {"curator": 3, "heron": 1}
    assert "consumer" in ended["curator"].error["what"]
    assert "abandoned" in ended["heron"].error["what"]
    assert not cluster.verified("curator").torn


# -- told to stop ------------------------------------------------------------------------------------------


def test_an_owner_that_is_told_to_stop_ends_in_order_and_the_others_go_on(
    make: Callable[..., Cluster],
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


@pytest.mark.parametrize(
    ("stopped", "others"),
    [
        pytest.param("consumer", {"curator": 3, "heron": 3, "magpie": 3}, id="consumer"),
        pytest.param("curator", {"consumer": 3, "heron": 3, "magpie": 3}, id="curator"),
    ],
)
def test_whom_nothing_goes_on_without_stops_in_order_and_is_given_up(
    make: Callable[..., Cluster], stopped: str, others: dict[str, int]
) -> None:
    cluster = make(**{name.replace(".", "__"): value for name, value in QUICK.items()})
    pacer = to_the_middle(cluster)
    cluster.signal(stopped, signal.SIGTERM)
    ended = cluster.end(stopped, seconds=60)[stopped]
    assert ended.code == 1
    assert "SIGTERM" in ended.error["what"]
    pacer.let_go()
    assert codes(cluster.end()) == others | {stopped: 1}
    assert all_verify(cluster)
