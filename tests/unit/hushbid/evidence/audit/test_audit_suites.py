"""In the sessions that an audit attacks, the points that the attack needs win."""

from __future__ import annotations

from typing import cast

import numpy as np

from hushbid.evidence.audit import near_ties, sessions, switching
from hushbid.evidence.audit.attack import SessionAttack, public_map
from hushbid.evidence.audit.suites import SUITES
from hushbid.protocol.privacy.releases import Prior
from hushbid.protocol.space.grid import FEATURE_BITS
from hushbid.simulation.simulator import Simulation

SEED = 5


def attack(suite: str) -> SessionAttack:
    return cast("SessionAttack", SUITES[suite].attack())


def finished(suite: str, neighbour: int) -> Simulation:
    simulation = attack(suite).simulation(neighbour, SEED)
    simulation.run()
    return simulation


def winners(suite: str, neighbour: int) -> list[tuple[str, bytes]]:
    """Owner and φ of each round's point."""
    wins = finished(suite, neighbour).curator.ledger.wins
    return [(win.owner, win.candidate.features.tobytes()) for win in wins]


def test_the_extra_point_is_another_one_after_every_round() -> None:
    without, including = (winners("session-switching", neighbour) for neighbour in (0, 1))
    first, *later = including
    assert first not in without
    assert later == without[:-1]
    assert len(set(without)) == len(without) == switching.ROUNDS


def test_a_restarted_curator_releases_what_it_would_have_released() -> None:
    steady, restarted = attack("session-switching"), attack("session-restarted")
    views = [each.view(1, SEED).weights for each in (steady, restarted)]
    assert list(views[0]) == list(views[1]) == list(range(1, switching.ROUNDS + 1))
    assert all(np.array_equal(views[0][number], views[1][number]) for number in views[0])
    assert [crash.party for crash in finished("session-restarted", 1).crashed] == ["curator"]


def test_near_ties_are_decided_alike_whatever_the_number_of_rows() -> None:
    without, including = (winners("session-near-ties", neighbour) for neighbour in (0, 1))
    assert without == including


def test_a_map_that_follows_the_number_of_rows_turns_every_near_tie() -> None:
    without, including = (winners("session-map-by-rows", neighbour) for neighbour in (0, 1))
    assert [owner for owner, _ in without] == ["watcher"] * near_ties.ROUNDS
    turned = ["victim"] * near_ties.TIES + ["watcher"] * (near_ties.ROUNDS - near_ties.TIES)
    assert [owner for owner, _ in including] == turned


def test_forged_features_are_a_fault_and_win_only_if_nobody_checks_them() -> None:
    checked = finished("session-forged", 0).curator.ledger
    assert {fault.owner for fault in checked.faults} == {"watcher"}
    assert "watcher" not in {win.owner for win in checked.wins}
    believed = finished("session-unchecked", 0).curator.ledger
    assert believed.faults == []
    assert believed.wins[0].owner == "watcher"
    length = np.linalg.norm(believed.wins[0].candidate.features.astype(np.float64)) / 2**FEATURE_BITS
    assert length > 3.5


def test_a_concentrated_seed_set_has_a_clip_radius_that_other_points_are_far_beyond() -> None:
    concentrated = sessions.concentrated()
    feature_map = public_map(concentrated.session)
    data = concentrated.data(feature_map)
    prior = Prior.of_features(feature_map.hash(data.seed_set), 0)
    moved = feature_map.hash(data.owners[1]["victim"]) - prior.centre
    assert prior.radius < 0.25 * 2**FEATURE_BITS
    assert np.linalg.norm(moved, axis=1).min() > 5 * prior.radius
