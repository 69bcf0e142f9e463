"""A small market under the rule `tender`, for the tests of its sessions."""

from __future__ import annotations

from typing import Any

import numpy as np

from hushbid.protocol.data import Dataset
from hushbid.protocol.session.session import Session, open_session
from hushbid.simulation.simulator import Simulation, SimulationOutcome
from tests.simulation.harness import names, session_file

OWNERS, POINTS, COLUMNS = 3, 20, 4
PRIVATE: dict[str, Any] = {
    "target": {"mechanism": "filtered-gaussian", "epsilon": 3.0, "neighbours": "substitute-one"},
    "summary": {"mechanism": "filtered-gaussian", "epsilon": 3.0, "neighbours": "add-remove-one"},
}


def dataset(name: str, rows: int, middle: float, seed: int) -> Dataset:
    drawn = np.random.default_rng(seed).normal(middle, 0.15, (rows, COLUMNS))
    return Dataset.from_arrays(name, np.clip(drawn, 0.0, 1.0))


DATA = {name: dataset(name, 60, 0.2 + 0.3 * number, number) for number, name in enumerate(names(OWNERS))}
VALIDATION = dataset("validation", 80, 0.5, 10)
SEED_SET = Dataset.from_arrays("seed-set", np.random.default_rng(11).random((20, COLUMNS)))


def session(**changes: Any) -> Session:
    given = {"rule": "tender", "dimension": 64, "columns": COLUMNS, **PRIVATE, **changes}
    return open_session(session_file(owners=names(OWNERS), **{"points": POINTS, **given}))


def simulated(opened: Session, data: dict[str, Dataset] | None = None, **also: Any) -> SimulationOutcome:
    given: dict[str, Any] = {"owners": data or DATA, "validation": VALIDATION, "seed_set": SEED_SET} | also
    return Simulation(opened, **given).run()


def bought(outcome: SimulationOutcome) -> list[tuple[str, bytes]]:
    """Owner and raw point of each bought point; none is disputed."""
    assert outcome.delivered is not None
    delivered = outcome.delivered.delivered
    assert not any(entry.dispute for entry in delivered)
    return [
        (entry.owner, np.asarray(entry.candidate.point).tobytes()) for entry in delivered if entry.candidate
    ]
