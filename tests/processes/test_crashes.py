"""Parties are killed and restarted: the session ends as if nothing had happened.

Each kill is a SIGKILL to a real process. In the slow tests moments are random, between the start and the last
rounds; some kills hit two parties together, some a party that is still replaying. `HUSHBID_TEST_KILLS` is the
least number of kills in all sessions of a slow test together (30), `HUSHBID_TEST_SEED` draws other victims
and moments (0); a failure names the seed.
"""

from __future__ import annotations

import itertools
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from hushbid.protocol.names import CONSUMER, CURATOR
from tests.processes.cluster import Cluster
from tests.processes.recovery import (
    OWNERS,
    POINTS,
    check_whole,
    delivery,
    differences,
    end_well,
    recorded_bytes,
    session,
)

KILLS: Final = int(os.environ.get("HUSHBID_TEST_KILLS", "30"))
SEED: Final = int(os.environ.get("HUSHBID_TEST_SEED", "0"))
ROLES: Final = (CURATOR, CONSUMER, OWNERS[0])
SESSIONS: Final = (("sealed", 0), ("ask-all", 2), ("winner-only", 4), ("blind", 7))
"""What is run, each with a number that its moments are drawn from."""
LAST: Final = OWNERS[-1]
"""Who comes last, so that no session is over before the first party was killed."""


@dataclass
class Crashing:
    """A session whose parties are killed.

    Attributes:
        cluster: The session.
        killed: Who was, in order.
    """

    cluster: Cluster
    killed: list[str] = field(default_factory=list)

    def kill(self, *names: str) -> None:
        """Kill those of these parties that still run, together, and restart them."""
        victims = [name for name in names if self.cluster.running(name)]
        for name in victims:
            self.cluster.signal(name, signal.SIGKILL)
        for name in victims:
            code = self.cluster.processes[name].wait()
            if code == -signal.SIGKILL:
                self.killed.append(name)
                self.cluster.start(name)

    def kill_one_by_one(self, *names: str) -> None:
        """Kill the next while the one before it starts, or replays."""
        for name in names:
            self.kill(name)

    def reach(self, size: float) -> None:
        """Wait until the curator's transcript has a size, in bytes."""
        self.cluster.until(lambda: recorded_bytes(self.cluster, CURATOR) >= size, "the moment")


@dataclass(frozen=True)
class Undisturbed:
    """A session without crashes: its delivery, and how long the curator's transcript is."""

    delivered: dict[str, Any]
    bytes: int


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Undisturbed]:
    """The session of a kind without crashes."""

    @cache
    def of(kind: str) -> Undisturbed:
        with session(tmp_path_factory.mktemp("undisturbed") / kind, kind) as cluster:
            cluster.start_all()
            end_well(cluster)
            return Undisturbed(delivery(cluster), recorded_bytes(cluster, CURATOR))

    return of


@contextmanager
def crashing(
    place: Path, kind: str, number: int, *, without: str = ""
) -> Iterator[tuple[Crashing, np.random.Generator]]:
    """A session that has just been started, `without` a party, and the moments of its crashes."""
    rng = np.random.default_rng([SEED, number])
    with session(place / f"{kind}-{number}", kind) as cluster:
        cluster.start_all(but=[without])
        crashes = Crashing(cluster)
        try:
            yield crashes, rng
        except AssertionError as error:
            error.add_note(f"HUSHBID_TEST_SEED={SEED}, session {number}; killed: {crashes.killed}")
            raise


@pytest.mark.parametrize("kind", ["sealed", "blind-simulated"])
def test_each_role_is_killed_in_each_phase(
    tmp_path: Path, undisturbed: Callable[[str], Undisturbed], kind: str
) -> None:
    """While owners enrol, in the rounds, and at the delivery, where it can be held up.

    The simulator has a crash at every step of every rule (`tests/simulation/test_crashes.py`).
    """
    expected = undisturbed(kind)
    with crashing(tmp_path, kind, 0, without=LAST) as (crashes, _):
        cluster = crashes.cluster
        cluster.until(lambda: all(recorded_bytes(cluster, name) for name in ROLES), "transcripts")
        crashes.kill_one_by_one(*ROLES)
        cluster.start(LAST)
        for part, victim in zip((0.15, 0.3, 0.45), ROLES, strict=True):
            crashes.reach(part * expected.bytes)
            crashes.kill(victim)
        crashes.reach(0.6 * expected.bytes)
        crashes.kill(CONSUMER, CURATOR)
        if not cluster.session.rule.blind:  # else a round waits for the consumer
            crashes.reach(0.7 * expected.bytes)
            cluster.signal(CONSUMER, signal.SIGSTOP)
            cluster.until(lambda: cluster.round() == POINTS, "the delivery")
            crashes.kill_one_by_one(CONSUMER, CURATOR, OWNERS[0])
            assert crashes.killed[8:] == [CONSUMER, CURATOR, OWNERS[0]]
        assert crashes.killed[:8] == [*ROLES, *ROLES, CONSUMER, CURATOR]
        ended_as(cluster, expected)


def reach_delivery(crashes: Crashing, expected: Undisturbed) -> None:
    """Wait until points are being delivered, or have been."""
    # They are by far the largest thing that the consumer records.
    cluster = crashes.cluster
    least = sum(array.nbytes for array in expected.delivered.values()) // 2
    path = cluster.directory(CONSUMER) / "state" / "delivered.npz"
    cluster.until(lambda: recorded_bytes(cluster, CONSUMER) > least or path.exists(), "the delivery")


def ended_as(cluster: Cluster, expected: Undisturbed) -> None:
    """Everything that must hold at the end; and the same delivery, unless noise was fresh."""
    check_whole(cluster, end_well(cluster))
    if not cluster.session.noise_protects:
        assert differences(delivery(cluster), expected.delivered) == []


def kill_at_random(place: Path, kind: str, number: int, expected: Undisturbed, moments: int) -> list[str]:
    """A session whose parties are killed at random moments, the last possibly after its end."""
    with crashing(place, kind, number, without=LAST) as (crashes, rng):
        names = crashes.cluster.names
        time.sleep(rng.uniform(0.0, 2.0))  # who enrols is killed too
        crashes.kill(str(rng.choice([name for name in names if name != LAST])))
        crashes.cluster.start(LAST)
        for part in np.sort(rng.uniform(0.0, 0.55, moments - 1)):
            crashes.reach(part * expected.bytes)
            time.sleep(rng.uniform(0.0, 0.02))
            victims = rng.choice(names, size=2 if rng.random() < 0.25 else 1, replace=False).tolist()
            crashes.kill(*victims)
            if rng.random() < 0.3:
                # While it starts, or replays. Rounds do not wait for the consumer, and would soon be over.
                time.sleep(0.0 if victims == [CONSUMER] else rng.uniform(0.3, 1.2))
                crashes.kill(victims[0])
        ended_as(crashes.cluster, expected)
        assert crashes.killed
        return crashes.killed


@pytest.mark.slow
@pytest.mark.timeout(900)  # more than one session, where the first is over early
@pytest.mark.parametrize(("kind", "number"), SESSIONS)
def test_a_session_ends_as_it_would_have_without_the_crashes(
    tmp_path: Path, undisturbed: Callable[[str], Undisturbed], kind: str, number: int
) -> None:
    """At random moments, of one party or two, some of them again while they start."""
    expected, moments = undisturbed(kind), -(-KILLS // len(SESSIONS))
    killed: list[str] = []
    for more in itertools.count(number, 10):  # the kinds' numbers differ in their last digit
        killed += kill_at_random(tmp_path, kind, more, expected, moments)
        if len(killed) >= moments:
            break


@pytest.mark.slow
@pytest.mark.timeout(900)  # some minutes on a busy machine: a process starts for each kill
@pytest.mark.parametrize("victim", [CONSUMER, CURATOR, OWNERS[0]])
def test_a_party_of_a_blind_session_that_is_killed_again_and_again_goes_on(
    tmp_path: Path, undisturbed: Callable[[str], Undisturbed], victim: str
) -> None:
    """At thirty moments of one session, from enrolment on: the same delivery, and noise drawn once."""
    expected = undisturbed("blind-simulated")
    with crashing(tmp_path, "blind-simulated", 9) as (crashes, rng):
        for part in np.sort(rng.uniform(0.0, 0.85, KILLS)):
            crashes.reach(part * expected.bytes)
            time.sleep(rng.uniform(0.0, 0.02))
            crashes.kill(victim)
        assert set(crashes.killed) == {victim}
        assert len(crashes.killed) >= KILLS // 2  # on a busy machine a session may end between two moments
        ended_as(crashes.cluster, expected)


@pytest.mark.slow
@pytest.mark.parametrize("victim", [CONSUMER, CURATOR])
def test_who_is_killed_at_an_open_delivery_ends_it(
    tmp_path: Path, undisturbed: Callable[[str], Undisturbed], victim: str
) -> None:
    """Alone, where points are not sealed."""
    expected = undisturbed("ask-all")
    with crashing(tmp_path, "ask-all", 6) as (crashes, _):
        reach_delivery(crashes, expected)
        crashes.kill(victim)
        ended_as(crashes.cluster, expected)
