"""The blind sessions that an audit attacks: the purchases, and each attacker's view."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
import pytest

from hushbid.consumer.buying.blind import BlindBuying
from hushbid.evidence.audit import blind
from hushbid.evidence.audit.attack import SessionAttack
from hushbid.evidence.audit.suites import SUITES
from hushbid.simulation.simulator import Simulation

SEED = 5


def attack(suite: str) -> SessionAttack:
    return cast("SessionAttack", SUITES[suite].attack())


def finished(suite: str, neighbour: int) -> Simulation:
    simulation = attack(suite).simulation(neighbour, SEED)
    simulation.run()
    return simulation


def sellers(suite: str, neighbour: int) -> list[str]:
    """The seller of each round's box; marked if it is void."""
    simulation = finished(suite, neighbour)
    assert isinstance(simulation.consumer.buying, BlindBuying)
    wrong = {entry.chosen_round for entry in simulation.consumer.delivered if entry.dispute}
    return [
        f"{win.owner} (void)" if win.chosen_round in wrong else win.owner
        for win in simulation.curator.ledger.wins
    ]


@pytest.mark.parametrize("neighbour", [0, 1])
def test_an_owner_of_a_blind_session_reads_what_one_of_a_sealed_session_reads(neighbour: int) -> None:
    """To the last bit, with an owner that comes and goes: audits find the same of both."""
    one, other = (attack(suite).view(neighbour, SEED).weights for suite in ("sealed", "blind"))
    assert list(one) == list(other)
    assert all(np.array_equal(one[number], other[number]) for number in one)


def test_every_run_has_noise_map_and_keys_of_its_own() -> None:
    """The consumer weighs with a source that would otherwise be the session file's, the same in all runs."""
    first, again, other = (attack("blind-restarted").simulation(0, seed) for seed in (1, 1, 2))
    drawn = []
    for simulation in (first, again, other):
        simulation.run()
        assert isinstance(simulation.consumer.buying, BlindBuying)
        drawn.append(simulation.image("consumer"))
    weights = [attack("blind").view(0, seed).weights for seed in (1, 1, 2)]
    assert np.array_equal(weights[0][4], weights[1][4])
    assert not np.array_equal(weights[0][4], weights[2][4])
    keys = {repr(attack("blind")._map_seed(seed)) for seed in (1, 1, 2)}
    assert len(keys) == 2
    assert len({len(image) for image in drawn}) == 1


def test_a_consumer_that_dies_releases_what_it_would_have_released() -> None:
    crashed = attack("blind-restarted")
    views = [each.view(1, SEED).weights for each in (crashed, replace(crashed, crashes=None))]
    assert list(views[0]) == list(views[1])
    assert all(np.array_equal(views[0][number], views[1][number]) for number in views[0])
    assert [crash.party for crash in finished("blind-restarted", 1).crashed] == ["consumer"]


def test_a_void_box_is_bought_in_one_of_the_two_and_changes_nothing_else() -> None:
    later = ["liar"] * (blind.ROUNDS - 1)
    assert sellers("blind-void", 0) == ["liar (void)", *later]
    assert sellers("blind-void", 1) == ["victim", *later]


def test_were_its_owner_left_out_all_later_points_would_be_others() -> None:
    assert sellers("blind-void-excludes", 0) == ["liar (void)", *["watcher"] * (blind.ROUNDS - 1)]
    assert sellers("blind-void-excludes", 1) == ["victim", *["liar"] * (blind.ROUNDS - 1)]


def test_the_curator_sees_one_choice_whatever_the_target_is() -> None:
    without, other = (
        [(win.owner, win.handle) for win in finished("blind-curator", neighbour).curator.ledger.wins]
        for neighbour in (0, 1)
    )
    assert without == other
    assert len(without) == blind.FEW


def test_an_owner_runs_out_of_points_in_one_of_the_two_whose_sizes_are_compared() -> None:
    empty = [finished("blind-sizes", neighbour).owners["owner-1"].handed_over for neighbour in (0, 1)]
    assert empty == [blind.FEW - 1, blind.FEW]
