"""Simulated and recorded sessions, to make reports of."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hushbid.protocol.data import Dataset
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.runtime.party import open_journal
from hushbid.protocol.session.session import Session, open_session
from hushbid.protocol.transcript.journal import Journal
from hushbid.protocol.transcript.redaction import redact
from hushbid.report.figures import ReportFigures, figures_of
from hushbid.report.sources import open_sources
from hushbid.simulation.network import SteadyNetwork
from hushbid.simulation.simulator import Simulation, SimulationOutcome
from tests.simulation.harness import session_file

__all__ = ["LABEL", "OWNERS", "Recorded", "record"]

OWNERS = ("alpha", "beta", "gamma")
LABEL = "label</script><b>of-a-point</b>"
"""Of every point: other people's words."""
COLUMNS = 3


@dataclass(frozen=True)
class Recorded:
    """A session with its parties' transcripts, and their machines at its end."""

    session: Session
    paths: Mapping[str, Path]
    outcome: SimulationOutcome
    validation: Dataset

    def figures(self, *parties: str, evaluation: Path | None = None) -> ReportFigures:
        """The figures in these parties' transcripts."""
        return figures_of(open_sources([self.paths[party] for party in parties]), evaluation)

    def redacted(self, party: str) -> Path:
        """A copy of a party's transcript without its private fields."""
        path = self.paths[party].with_suffix(".redacted")
        with path.open("wb") as file:
            redact(self.paths[party], file.write)
        return path


def record(
    place: Path,
    *,
    owners: Sequence[str] = OWNERS,
    points: int = 12,
    rows: int = 20,
    away: Callable[[int], Collection[str]] | None = None,
    **settings: Any,
) -> Recorded:
    """Simulate a small session and record all parties.

    Args:
        place: Where the transcripts are written.
        points: p.
        rows: Points of each owner.
        away: Owners without a connection, by round (`SteadyNetwork`).
        settings: Arguments of `session_file`.
    """
    file = session_file(owners=owners, points=points, dimension=8, columns=COLUMNS, **settings)
    session = open_session(file)
    generator = np.random.default_rng(5)
    validation = Dataset.from_arrays("validation", generator.random((9, COLUMNS)))
    paths: dict[str, Path] = {}
    journals: list[Journal] = []

    def journal(role: str, party: str) -> Journal:
        made = open_journal(session, role=role, party=party, state=place, durability="flush")
        paths[party] = made.path
        journals.append(made)
        return made

    simulation = Simulation(
        session,
        owners={
            owner: Dataset.from_arrays(
                owner,
                generator.random((rows, COLUMNS)) ** (number + 1),
                labels=np.array([LABEL] * rows, dtype=np.str_),
            )
            for number, owner in enumerate(owners)
        },
        validation=validation,
        seed_set=Dataset.from_arrays("seed", generator.random((6, COLUMNS))),
        journal=journal,
        network=SteadyNetwork(away),
    )
    outcome = simulation.run()
    for made in journals:
        made.close()
    assert set(paths) == {CURATOR, CONSUMER, *owners}
    return Recorded(session, paths, outcome, validation)
