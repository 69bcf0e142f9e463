"""Owners of a simulation that lose their connection as a round begins, and come back, or never come."""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np
import pytest

from hushbid.evidence.audit.acquisition import ROUNDS, ask_all, sealed
from hushbid.evidence.audit.attack import SessionAttack
from hushbid.evidence.audit.circles import LIKE_X
from hushbid.evidence.audit.points import points_at
from hushbid.evidence.audit.suites import SUITES
from hushbid.protocol.data import Dataset
from hushbid.protocol.errors import ExitCode, LocalProtocolError
from hushbid.protocol.runtime.driver import Outgoing
from hushbid.protocol.session.session import open_session
from hushbid.simulation.network import SteadyNetwork
from hushbid.simulation.simulator import Simulation, SimulationOutcome
from tests.simulation.harness import names, session_file

COLUMNS = 3


def run(
    away: dict[int, Collection[str]], *, points: int = 6
) -> tuple[list[tuple[str, str, str]], SimulationOutcome]:
    """Simulate three owners; also every frame as (sender, receiver, kind)."""
    session = open_session(
        session_file(owners=names(3), points=points, rule="ask-all", dimension=8, columns=COLUMNS)
    )
    frames: list[tuple[str, str, str]] = []

    def tap(sender: str, receiver: str, frame: Outgoing) -> None:
        frames.append((sender, receiver, frame.kind))

    def dataset(name: str, seed: int, count: int) -> Dataset:
        return Dataset.from_arrays(name, np.random.default_rng(seed).random((count, COLUMNS)))

    outcome = Simulation(
        session,
        owners={name: dataset(name, number, 9) for number, name in enumerate(names(3))},
        validation=dataset("validation", 100, 9),
        seed_set=dataset("seed-set", 101, 5),
        tap=tap,
        network=SteadyNetwork(lambda number: away.get(number, ())),
    ).run()
    return frames, outcome


def absences(outcome: SimulationOutcome) -> list[tuple[int, str]]:
    return [(absence.round, absence.owner) for absence in outcome.curator.ledger.absences]


def test_nobody_is_away_unless_it_is_said() -> None:
    _, outcome = run({})
    assert absences(outcome) == []


def test_an_owner_that_loses_its_connection_is_absent_until_it_has_answered_what_it_was_sent() -> None:
    gone, *_ = names(3)
    frames, outcome = run({2: [gone]})
    # The broadcast of round 2 was on its way. It comes again after the hello, and is answered too late for
    # round 3, which the others close without it.
    assert absences(outcome) == [(2, gone), (3, gone)]
    assert sum(kind == "hello" for sender, _, kind in frames if sender == gone) == 2
    assert all(finish.code is ExitCode.DONE for finish in outcome.finishes.values())


def test_an_owner_that_never_comes_is_waited_for_as_long_as_enrolment_takes() -> None:
    *_, missing = names(3)
    _, outcome = run({number: [missing] for number in range(7)})
    assert absences(outcome) == [(number, missing) for number in range(1, 7)]
    assert outcome.seconds > 60.0
    assert outcome.finishes[missing].code is ExitCode.TIMEOUT
    assert outcome.finishes["curator"].code is ExitCode.DONE


def test_an_owner_that_stays_away_gives_the_curator_up_and_the_session_goes_on() -> None:
    gone, *others = names(3)
    _, outcome = run({number: [gone] for number in range(3, 7)})
    assert absences(outcome) == [(number, gone) for number in range(3, 7)]
    assert outcome.finishes[gone].code is ExitCode.TIMEOUT
    assert all(outcome.finishes[name].code is ExitCode.DONE for name in ("curator", "consumer", *others))


# -- what the suites do with it -----------------------------------------------------------------------


def winners(attack: SessionAttack, neighbour: int) -> list[str]:
    """The owner of each round's point."""
    simulation = attack.simulation(neighbour, seed=5)
    outcome = simulation.run()
    assert outcome.curator.ledger.faults == []
    return [win.owner for win in outcome.curator.ledger.wins]


@pytest.mark.parametrize("make", [ask_all, sealed])
def test_by_the_presence_rule_one_record_puts_one_point_in_the_place_of_another(
    make: Callable[[], SessionAttack],
) -> None:
    attack = make()
    assert winners(attack, 0) == ["watcher"] * ROUNDS
    assert winners(attack, 1) == ["victim"] + ["watcher"] * (ROUNDS - 1)


def test_a_kept_pool_makes_a_difference_of_one_point_more_for_each_absence() -> None:
    attack = SUITES["session-keeps-absent-pool"].attack()
    assert isinstance(attack, SessionAttack)
    differing = [a != b for a, b in zip(winners(attack, 0), winners(attack, 1), strict=True)]
    assert [number for number, differs in enumerate(differing, start=1) if differs] == [1, 2, 5, 8]


def test_points_are_made_for_the_map_that_the_consumer_will_draw() -> None:
    attack = sealed()
    outcome = attack.simulation(1, seed=5).run()
    best = outcome.curator.ledger.wins[0].candidate.features
    angle = np.arctan2(best[8:], best[:8])
    assert angle == pytest.approx([0.5, *[LIKE_X] * 7], abs=1e-3)


def test_a_map_without_the_points_that_an_attack_needs_is_refused() -> None:
    session = open_session(session_file(owners=names(1), points=1, dimension=8, columns=4))
    assert session.public_map is not None
    # The map of an ordinary γ does not turn far enough within the public bounds.
    with pytest.raises(LocalProtocolError, match="no points of the features"):
        points_at(session.public_map, np.arange(4.0)[None])
