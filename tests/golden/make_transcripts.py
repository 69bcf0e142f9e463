"""Writes golden transcripts of short sessions: `python -m tests.golden.make_transcripts NAME DIRECTORY`.

Run it once for a new format, or for a change of what is recorded, into a new directory: existing files are
never rewritten, and stay readable for ever.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hushbid.protocol.data import Dataset
from hushbid.protocol.session.session import Session, open_session
from hushbid.protocol.transcript.journal import MemoryJournal
from hushbid.protocol.transcript.record import Header
from hushbid.simulation.simulator import Simulation
from tests.simulation.harness import names, session_file
from tests.support.transcripts import fixed_salts

__all__ = ["SESSIONS", "golden_images", "golden_session", "recorded_images"]

OWNERS = names(2)
COLUMNS = 3
ENVIRONMENT = {"python": "cpython 3.11.7", "blas": ["openblas 0.3 Haswell"]}


SESSIONS: Mapping[str, Mapping[str, Any]] = {
    "session-2": {"rule": "sealed"},
    "committed": {"rule": "sealed", "commitment_depth": 4},
    "tender": {
        "rule": "tender",
        "batch": 2,
        "submission": 4,
        "wishes": {"prices": {"owner-0": 1.0, "owner-1": 2.0}, "budget": 5.0, "caps": {"owner-1": 2}},
    },
}
"""K = 2, p = 3, every release private with simulated noise; the tender has two messages of a submission, all
wishes, and a finer release for the curator.
"""


def golden_session(name: str) -> Session:
    """One of `SESSIONS`."""
    private = {"mechanism": "filtered-gaussian", "epsilon": 3.0}
    finer = {"epsilon_curator": 6.0} if name == "tender" else {}
    return open_session(
        session_file(
            owners=OWNERS,
            points=3,
            target=private | finer | {"neighbours": "substitute-one"},
            summary=private | {"neighbours": "add-remove-one"},
            dimension=4,
            columns=COLUMNS,
            **SESSIONS[name],
        )
    )


def golden_images(name: str) -> dict[str, bytes]:
    """Each party's transcript of one of `SESSIONS`."""
    rng = np.random.default_rng(0)

    def points(name: str, count: int) -> Dataset:
        # Halves, quarters and eighths: whatever BLAS sums them, their features are not close to a rounding.
        return Dataset.from_arrays(name, rng.integers(0, 9, (count, COLUMNS)) / 8.0)

    owners = {name: points(name, 4) for name in OWNERS}
    return recorded_images(golden_session(name), owners, points("validation", 6), points("seed-set", 4))


def recorded_images(
    session: Session, owners: Mapping[str, Dataset], validation: Dataset, seed_set: Dataset
) -> dict[str, bytes]:
    """Each party's transcript of a simulated session, with fixed salts."""
    journals: dict[str, MemoryJournal] = {}

    def journal(role: str, party: str) -> MemoryJournal:
        header = Header(
            role, party, session.identifier.hex(), session.file.digest(), "0.1.0", ENVIRONMENT, "simulated"
        )._replace(protocol=session.protocol_version)
        journals[party] = MemoryJournal(header, salts=fixed_salts(party.encode()))
        return journals[party]

    simulation = Simulation(session, owners=owners, validation=validation, seed_set=seed_set, journal=journal)
    simulation.run()
    for written in journals.values():
        written.commit()
    return {party: written.image for party, written in journals.items()}


def main() -> None:
    name, place = sys.argv[1], Path(sys.argv[2])
    place.mkdir()
    for party, image in golden_images(name).items():
        (place / f"{party}.transcript").write_bytes(image)


if __name__ == "__main__":
    main()
