"""A session with a blind curator buys, pays and guarantees the same as under `sealed`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from hushbid.protocol.data import Dataset
from hushbid.protocol.errors import ExitCode
from hushbid.protocol.session.session import Session, open_session
from hushbid.simulation.simulator import Simulation, SimulationOutcome
from tests.simulation.harness import names, session_file

OWNERS = names(3)


def _release(mechanism: str, **keys: Any) -> dict[str, Any]:
    of = {"summary": "add-remove-one", "target": "substitute-one"}
    return {
        table: {"mechanism": mechanism, "epsilon": 5.0, "neighbours": neighbours, **keys}
        for table, neighbours in of.items()
    }


SETTINGS: Mapping[str, dict[str, Any]] = {
    "exact": {},
    "gaussian": _release("gaussian"),
    "filtered": _release("filtered-gaussian"),
    "subspace": _release("subspace", directions=4),
    "private settlement": {**_release("gaussian"), "settlement": 1.0},
    "fixed cadence": {**_release("gaussian"), "fixed_cadence": 1.0},
    "caps": {"wishes": {"caps": {"owner-0": 4}}},
    "one a round": {"batch": 1},
    "uneven last round": {"points": 22},
    "more than there is": {"points": 90, "batch": 20},
}


def simulated(rule: str, **setting: Any) -> tuple[Session, SimulationOutcome]:
    rng = np.random.default_rng(1)
    keywords = {"points": 24, "dimension": 20, "columns": 6, "batch": 4, "seed_weight": 0.1, **setting}
    session = open_session(session_file(owners=OWNERS, rule=rule, **keywords))
    outcome = Simulation(
        session,
        owners={name: Dataset.from_arrays(name, rng.random((25, 6))) for name in OWNERS},
        validation=Dataset.from_arrays("validation", rng.random((60, 6))),
        seed_set=Dataset.from_arrays("seed-set", rng.random((40, 6))),
    ).run()
    assert {finish.code for finish in outcome.finishes.values()} == {ExitCode.DONE}
    return session, outcome


def bought(outcome: SimulationOutcome) -> list[tuple[str, int, bytes]]:
    found = []
    for entry in outcome.consumer.delivered:
        assert entry.candidate is not None
        assert not entry.dispute
        found.append((entry.owner, entry.chosen_round, entry.candidate.point.tobytes()))
    return found


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=list(SETTINGS))
def test_as_sealed(setting: dict[str, Any]) -> None:
    (one, sealed), (other, blind) = (simulated(rule, **setting) for rule in ("sealed", "blind"))
    assert bought(sealed) == bought(blind)
    assert blind.curator.settlement() == sealed.curator.settlement()
    epsilons = [[statement.epsilon for statement in session.privacy()] for session in (one, other)]
    assert epsilons[0] == epsilons[1]
    assert blind.curator.ledger.points_accessed == 0
