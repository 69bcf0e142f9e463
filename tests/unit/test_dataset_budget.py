"""What a session charges a dataset's lifetime ledger, and when it may not enrol."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from owner.machine import OwnerMachine
from protocol.config.party import BudgetSection, OwnerFile
from protocol.data import Dataset
from protocol.errors import BudgetExceeded, ConfigError
from protocol.runtime.dataset_budget import DatasetBudget, dataset_budget
from protocol.session import Session
from tests.unit.test_party import session

POINTS = Dataset.from_arrays("points.npz", np.array([[0.1, 0.2], [0.3, 0.4]]))


def budget_of(place: Path, opened: Session, **changes: Any) -> DatasetBudget:
    data = place / "points.npz"
    file = OwnerFile(name="alpha", state=place / "state", data=data).model_copy(update=changes)
    machine = OwnerMachine(opened, name="alpha")
    return dataset_budget(opened, file, data, POINTS, machine.charge, opened.privacy()[0])


def lines(place: Path) -> int:
    return len((place / "points.npz.ledger").read_text().splitlines())


def test_a_session_is_checked_without_a_charge_and_charged_once(tmp_path: Path) -> None:
    budget = budget_of(tmp_path, session())
    budget.check()
    assert lines(tmp_path) == 1, "the header alone"
    machine = OwnerMachine(session(), name="alpha")
    budget.charge(machine.charge)
    budget.charge(machine.charge)
    assert lines(tmp_path) == 2


def test_a_session_with_secure_noise_is_run_once(tmp_path: Path) -> None:
    """Its boxes, signatures and releases could not be told from those of the first run."""
    machine = OwnerMachine(session(), name="alpha")
    budget_of(tmp_path, session()).charge(machine.charge)
    with pytest.raises(ConfigError, match="has been run before") as caught:
        budget_of(tmp_path, session()).check()
    assert "session.nonce" in caught.value.advice


def test_a_session_that_protects_nobody_may_be_run_again_and_is_recorded_each_time(tmp_path: Path) -> None:
    opened = session(secure=False)
    machine = OwnerMachine(opened, name="alpha")
    for _ in range(2):
        budget = budget_of(tmp_path, opened)
        budget.check()
        budget.charge(machine.charge)
    assert lines(tmp_path) == 3


def test_a_budget_refuses_what_goes_over_it_and_what_guarantees_nothing(tmp_path: Path) -> None:
    small = BudgetSection(epsilon=0.5)
    with pytest.raises(BudgetExceeded, match=r"over its budget of ε = 0\.5"):
        budget_of(tmp_path, session(), budget=small).check()
    large = BudgetSection(epsilon=100.0, lift=True)
    with pytest.raises(BudgetExceeded, match="no ε that could be stated"):
        budget_of(tmp_path, session(secure=False), budget=large).check()
    assert lines(tmp_path) == 2, "the header, and the change of the budget"
