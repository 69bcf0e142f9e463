"""Transcripts of many rounds are verified and reported in little memory: some kilobytes a round."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hushbid.protocol.data import Dataset
from hushbid.protocol.runtime.party import open_journal
from hushbid.protocol.session.session import open_session
from hushbid.simulation.simulator import Simulation
from tests.simulation.harness import names, session_file

OWNERS = names(2)
MEASURED = """
import atexit, sys
from hushbid.cli.app import main
from hushbid.protocol.platform import peak_memory
atexit.register(lambda: print(peak_memory(), file=sys.stderr))
main()
"""


def recorded(place: Path, rounds: int) -> list[Path]:
    """The transcripts of a sealed session of so many rounds, on disk."""
    session = open_session(session_file(owners=OWNERS, points=rounds, rule="sealed", columns=3))
    generator = np.random.default_rng(1)
    journals = []

    def journal(role: str, party: str) -> object:
        journals.append(open_journal(session, role=role, party=party, state=place, durability="flush"))
        return journals[-1]

    def drawn(name: str, rows: int) -> Dataset:
        return Dataset.from_arrays(name, generator.random((rows, 3)))

    outcome = Simulation(
        session,
        owners={name: drawn(name, rounds) for name in OWNERS},
        validation=drawn("validation", 50),
        seed_set=drawn("seed-set", 20),
        journal=journal,  # type: ignore[arg-type]
    ).run()
    for each in journals:
        each.close()
    assert outcome.delivered is not None
    assert len(outcome.delivered.delivered) == rounds
    return [each.path for each in journals]


def most_memory(*arguments: object) -> int:
    """A verb's peak resident bytes, in a process of its own."""
    command = [sys.executable, "-c", MEASURED, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return int(done.stderr.split()[-1])


@pytest.mark.slow
def test_verifying_and_reporting_take_some_kilobytes_for_each_round_more(tmp_path: Path) -> None:
    taken, bytes_of = {}, {}
    for rounds in (300, 3000):
        place = tmp_path / str(rounds)
        transcripts = recorded(place, rounds)
        bytes_of[rounds] = sum(path.stat().st_size for path in transcripts)
        page = place / "report.html"
        taken[rounds] = [
            most_memory("transcript", "verify", *transcripts),
            most_memory("report", *transcripts, "--output", page),
        ]
    longer = bytes_of[3000] - bytes_of[300]
    assert longer > 9_000_000
    verifying, reporting = (many - few for few, many in zip(*taken.values(), strict=True))
    assert verifying < longer
    assert reporting < longer, "what the parties' machines keep of a point that was bought"
