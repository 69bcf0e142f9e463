"""A curator that is gone, stopped, or never there: who ends with which code."""

from __future__ import annotations

import shutil
import signal
import socket

import psutil
import pytest

from hushbid.protocol.runtime.network.router import RouterEndpoint
from tests.processes.cluster import silent_listener
from tests.processes.lost import PROCESSES, QUICK, ROUNDS, Make, all_verify, codes, make, to_the_middle

__all__ = ["make"]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_curator_that_is_gone_is_given_up_after_a_while(make: Make, number: signal.Signals) -> None:
    cluster = make(**QUICK)
    to_the_middle(cluster)
    cluster.signal("curator", number)
    ended = cluster.end("consumer", "heron", "magpie", seconds=60)
    assert codes(ended) == dict.fromkeys(("consumer", "heron", "magpie"), 3)
    assert all("gone too long" in end.error["what"] for end in ended.values())
    assert all("The session may be over by now" in end.error["advice"] for end in ended.values())
    assert all_verify(cluster)


def test_a_curator_that_was_stopped_goes_on_with_all(make: Make) -> None:
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


def test_a_curator_that_comes_back_without_its_state_is_told_apart(make: Make) -> None:
    cluster = make(timeouts__enrolment=10.0)
    to_the_middle(cluster)
    cluster.signal("curator", signal.SIGKILL)
    cluster.end("curator")
    shutil.rmtree(cluster.directory("curator") / "state")
    cluster.start("curator")
    ended = cluster.end()
    # Only the consumer, which has nothing of the session yet that a new one lacks, could begin again.
    assert codes(ended) == {"curator": 3, "consumer": 1, "heron": 2, "magpie": 2}
    for name in ("heron", "magpie"):
        assert "state-lost" in ended[name].error["what"]
        assert "The curator was started again without its transcript" in ended[name].error["advice"]


def test_a_curator_that_never_answers_is_given_up(make: Make) -> None:
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
    assert not any("may be over" in end.error["advice"] for end in ended)


def test_a_party_without_a_curator_waits_idly(make: Make) -> None:
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


def test_a_port_in_use_ends_the_curator_with_2(make: Make) -> None:
    cluster = make(("heron",))
    with socket.create_server(("127.0.0.1", cluster.port)):
        cluster.start("curator")
        ended = cluster.end()["curator"]
    assert ended.code == 2
    assert f"127.0.0.1:{cluster.port}" in ended.error["what"]
    assert not cluster.transcript_path("curator").exists()
