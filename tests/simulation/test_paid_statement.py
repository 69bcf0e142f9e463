"""Whole sessions on data of two classes: sellers of what the target asks for are paid, noise is not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hushbid.protocol.privacy.payment import PaidStatement, Price
from tests.support.two_classes import HELD, bought

DATASETS = ("occupancy.npz", "skin.npz")
MOST = max(HELD, key=HELD.__getitem__)

Locate = Callable[[str], Path]


def stated(path: Path, *, epsilon: float, seed: int) -> PaidStatement:
    found = bought(path, epsilon=epsilon, seed=seed).curator.statement(Price())
    assert found is not None
    return found[1]


def check_the_owner_of_most_wanted_points_comes_first(path: Path, seed: int) -> None:
    statement = stated(path, epsilon=1.0, seed=seed)
    paid = {owner: line.paid or 0.0 for owner, line in statement.owners.items()}
    assert statement.signal
    assert max(paid, key=paid.__getitem__) == MOST
    for line in statement.owners.values():
        assert line.standard_error is not None
        assert 0.0 < line.standard_error < 0.01


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", DATASETS)
def test_the_owner_of_most_wanted_points_comes_first(name: str, seed: int, shared_data: Locate) -> None:
    check_the_owner_of_most_wanted_points_comes_first(shared_data(name), seed)


@pytest.mark.slow
@pytest.mark.parametrize("name", DATASETS)
def test_it_does_in_ten_seeds_of_ten(name: str, shared_data: Locate) -> None:
    for seed in range(10):
        check_the_owner_of_most_wanted_points_comes_first(shared_data(name), seed)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", DATASETS)
def test_a_session_without_signal_pays_nobody(name: str, seed: int, shared_data: Locate) -> None:
    statement = stated(shared_data(name), epsilon=1e-6, seed=seed)
    assert statement.sum == 0.0
    assert statement.signal is False
