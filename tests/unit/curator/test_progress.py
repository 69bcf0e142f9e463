"""The progress that the curator's operator is told, and the parties that it names."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from hushbid.cli.progress import waiting
from hushbid.curator.progress import ProgressFollower
from hushbid.protocol.machine.progress import MOST_NAMED
from hushbid.protocol.names import CONSUMER
from tests.simulation.harness import names, session_file


@dataclass
class Machine:
    """The parts of a curator's machine that are read."""

    owners: tuple[str, ...]
    phase: str = "enrolling"
    round: int = 0
    paused: bool = False
    awaits_consumer: bool = False
    here: set[str] = field(default_factory=set)
    wins: int = 0
    done: set[str] = field(default_factory=set)

    @property
    def seats(self) -> dict[str, Any]:
        return {owner: SimpleNamespace(connected=owner in self.here) for owner in self.owners}

    @property
    def away(self) -> list[str]:
        return [owner for owner in self.owners if owner not in self.here | self.done]

    @property
    def ledger(self) -> Any:
        return SimpleNamespace(chosen=self.wins)


def follower_of(rule: str, owners: int = 3, **seen: Any) -> tuple[Machine, ProgressFollower]:
    played: Any = Machine(names(owners), **seen)
    return played, ProgressFollower(session_file(owners=names(owners), points=40, batch=4, rule=rule), played)


@pytest.mark.parametrize("rule", ["ask-all", "winner-only"])
def test_who_is_missing_at_enrolment_is_named_under_every_rule(rule: str) -> None:
    machine, follower = follower_of(rule)
    machine.here = {machine.owners[0]}
    found = follower.progress()
    assert (found.phase, found.owners_connected, found.owners) == ("enrolling", 1, 3)
    assert found.missing == machine.owners[1:]


@pytest.mark.parametrize(("rule", "named"), [("ask-all", True), ("winner-only", False), ("published", False)])
def test_no_name_stands_beside_a_round_where_a_rule_asks(rule: str, named: bool) -> None:
    machine, follower = follower_of(rule, phase="bidding", round=3, paused=True)
    machine.here = set(machine.owners[1:])
    found = follower.progress()
    assert (found.phase, found.round, found.paused, found.owners_connected) == ("rounds", 3, True, 2)
    assert found.missing == (machine.owners[:1] if named else ())


@pytest.mark.parametrize("phase", ["delivering", "closing", "done"])
def test_nobody_is_missing_once_the_rounds_are_over(phase: str) -> None:
    _, follower = follower_of("ask-all", phase=phase, round=10)
    assert follower.progress().missing == ()


def test_a_few_are_named_and_the_others_counted() -> None:
    _, follower = follower_of("ask-all", owners=30)
    found = follower.progress()
    assert found.missing == names(30)[:MOST_NAMED]
    assert (found.owners_connected, found.owners) == (0, 30)
    assert len(found.as_line()) < 4096, "a pipe takes it whole"


def test_the_pace_is_of_decided_rounds_alone() -> None:
    machine, follower = follower_of("ask-all", phase="bidding")
    follower.note(0.0)
    for second in range(1, 4):
        machine.round, machine.wins = second, 4 * (second - 1)
        follower.note(float(second))
    found = follower.progress()
    assert (found.points, found.points_planned) == (8, 40)
    assert found.points_per_second == pytest.approx(4.0)
    assert found.seconds_left == pytest.approx(8.0)
    machine.phase, machine.wins = "delivering", 12
    follower.note(99.0)
    assert follower.progress().points_per_second == pytest.approx(4.0), "the delivery is no round"
    assert follower.progress().seconds_left is None


def test_a_consumer_that_the_rounds_wait_for_is_named_before_owners() -> None:
    machine, follower = follower_of("blind", phase="weighing", round=3, paused=True, awaits_consumer=True)
    machine.here = set(machine.owners[1:])
    found = follower.progress()
    assert (found.phase, found.paused, found.missing) == ("rounds", True, (CONSUMER, machine.owners[0]))
    assert waiting(found) == f"consumer, {machine.owners[0]}"
    machine.here = set(machine.owners)
    assert waiting(follower.progress()) == "consumer"


def test_an_owner_that_has_submitted_to_a_tender_is_not_missing_when_it_is_gone() -> None:
    machine, follower = follower_of("tender", phase="bidding", round=1)
    machine.here, machine.done = {machine.owners[0]}, {machine.owners[1]}
    found = follower.progress()
    assert (found.owners_connected, found.missing) == (1, machine.owners[2:])
