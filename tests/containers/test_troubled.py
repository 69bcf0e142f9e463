"""The compose file in a real engine: a session whose containers are killed, paused, cut off and restarted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from hushbid.protocol.names import CONSUMER
from tests.containers.compose import USER, Deployment, docker
from tests.containers.ended import Session

pytestmark = pytest.mark.timeout(2400)

UNTOUCHED, KILLED, PAUSED, CUT_OFF = "owner-1", "owner-2", "owner-3", "owner-4"
ROUNDS = 300
CADENCE = 0.6
"""Seconds of a round: the session is not over before it was in trouble four times."""
PATIENT = {"timeouts.enrolment": 600.0, "timeouts.abandon": 600.0}
"""Nobody gives up while a busy engine starts the others, or the curator again."""
LOOK = """
import os, pathlib, pwd
print(os.getuid(), pwd.getpwuid(os.getuid()).pw_name)
status = pathlib.Path("/proc/1/status").read_text().splitlines()
print(*(line for line in status if line.startswith(("CapEff", "NoNewPrivs"))), sep="\\n")
try:
    pathlib.Path("/opt/hushbid/new").touch()
except OSError as error:
    print(error.strerror)
key = os.stat("/party/key/secret.key")
print(key.st_uid, oct(key.st_mode & 0o777))
print(*pathlib.Path("/tmp").rglob("*"))
"""
LOCKED_DOWN = f"""{USER} hushbid
CapEff:\t0000000000000000
NoNewPrivs:\t1
Read-only file system
{USER} 0o600

"""


@dataclass(frozen=True)
class Troubled(Session):
    exit_codes: Mapping[str, int]
    seen_inside: Mapping[str, str]
    """By party, what a look around in its container printed in the middle of the session."""


@pytest.fixture(scope="module")
def troubled(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Troubled]:
    """A session of four owners: one killed, one paused, one cut off; consumer and curator are killed too."""
    pace: dict[str, object] = {"session.points": ROUNDS, "session.batch": 1}
    pace |= {"session.fixed_cadence": CADENCE, "acquisition.rule": "sealed"}
    with Deployment(clone, owners=4, settings=pace | PATIENT) as deployment:
        # The rounds begin with the last owner: until then a slow engine has all the time that it needs.
        others = [party for party in deployment.parties if party != CUT_OFF]
        start(deployment, *others)
        for party in others:  # one by one: a check takes seconds on a busy machine, and three late ones count
            deployment.until(partial(deployment.healthy, party), f"{party} to be healthy")
        start(deployment, CUT_OFF)
        deployment.until(lambda: deployment.round() > 1, "the second round")
        seen_inside = {party: deployment.inside(party, LOOK) for party in deployment.parties}
        make_trouble(deployment)
        exit_codes = deployment.wait(deployment.parties)
        files = deployment.copy_out(tmp_path_factory.mktemp("troubled"))
        yield Troubled(deployment, files, exit_codes, seen_inside)


def start(deployment: Deployment, *parties: str) -> None:
    up = deployment.compose("up", "--detach", *parties)
    assert up.returncode == 0, up.stderr[-2000:]


def make_trouble(deployment: Deployment) -> None:
    """One fault after another, each as soon as the curator has noticed the end of the last."""
    network = f"{deployment.project}_session"
    for party, trouble, cure in (
        (KILLED, ["kill"], ["start"]),
        (CONSUMER, ["kill"], ["start"]),
        (PAUSED, ["pause"], ["unpause"]),
        (CUT_OFF, ["network", "disconnect", network], ["network", "connect", network]),
    ):
        deployment.until(partial(done, *trouble, deployment.container(party)), f"{party}'s {trouble[0]}")
        deployment.until(partial(told, deployment, rf"{party} is (gone|silent)", 1), f"{party} to be missed")
        docker(*cure, deployment.container(party))
        deployment.until(partial(told, deployment, rf"{party} is (here|back)", 2), f"{party} to be back")
    last = deployment.round()
    docker("kill", deployment.container("curator"))
    docker("start", deployment.container("curator"))
    deployment.until(lambda: deployment.round() > last + 1, "the rounds to go on after a kill")
    last = deployment.round()
    docker("restart", "--time", "20", deployment.container("curator"))
    deployment.until(lambda: deployment.round() > last + 1, "the rounds to go on")


def done(*arguments: str) -> bool:
    """Whether docker did it: runc gives up a pause after 0.2 s if a process waits for its disk just then."""
    try:
        docker(*arguments)
    except AssertionError:
        return False
    return True


def told(deployment: Deployment, what: str, times: int) -> bool:
    """Whether the curator's log contains a text that often."""
    return len(re.findall(what, deployment.log("curator"))) >= times


def test_a_session_survives_them_all(troubled: Troubled) -> None:
    parties = troubled.deployment.parties
    assert troubled.exit_codes == dict.fromkeys(parties, 0), troubled.deployment.story()
    assert f"{ROUNDS} of {ROUNDS}, 0 disputed" in troubled.deployment.log("consumer")
    assert troubled.verified()


@pytest.mark.parametrize("owner", [KILLED, PAUSED, CUT_OFF])
def test_rounds_go_on_without_an_owner_until_it_is_back(troubled: Troubled, owner: str) -> None:
    events = troubled.events("curator")
    lost = events.index(("lost", owner))
    bids = [place for place, event in enumerate(events) if event == ("bid", owner)]
    last = max(place for place in bids if place < lost)
    next_one = min((place for place in bids if place > lost), default=None)
    assert next_one is not None, "it takes part again"
    away = events[last:next_one]
    assert away.count(("timer", "round")) > 1, "it is absent when a round's time for bids is over"
    assert {("hello", owner), ("returned", owner)} & set(away)


@pytest.mark.parametrize("party", [KILLED, CONSUMER])
def test_a_party_that_was_killed_goes_on_from_its_transcript(troubled: Troubled, party: str) -> None:
    assert ("restarted", "") in troubled.events(party)
    assert "goes on after record" in troubled.deployment.log(party)


def test_an_owner_that_was_paused_goes_on_as_the_process_that_it_was(troubled: Troubled) -> None:
    assert ("restarted", "") not in troubled.events(PAUSED)
    assert "goes on after record" not in troubled.deployment.log(PAUSED)


def test_an_owner_that_was_cut_off_connects_again(troubled: Troubled) -> None:
    events = troubled.events(CUT_OFF)
    assert ("restarted", "") not in events
    assert ("connected", "") in events[events.index(("lost", "curator")) :]


def test_a_curator_that_was_killed_or_told_to_stop_goes_on_after_a_start(
    troubled: Troubled,
) -> None:
    log = troubled.deployment.log("curator")
    assert "Stopped by SIGTERM; what was recorded is kept." in log
    assert "goes on after record" in log
    assert troubled.events("curator").count(("restarted", "")) == 2
    for party in (UNTOUCHED, "consumer"):
        events = troubled.events(party)
        assert ("connected", "") in events[events.index(("lost", "curator")) :]


def test_a_container_can_do_no_more_than_it_must(troubled: Troubled) -> None:
    assert troubled.seen_inside == dict.fromkeys(troubled.deployment.parties, LOCKED_DOWN)
