"""`hushbid run` with a blind curator: as simulated, and each party reports what it has."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from hushbid.cluster.file import open_cluster
from hushbid.protocol.runtime.telemetry.status_file import find_statuses
from hushbid.results.run import RunResult
from hushbid.running.simulate import simulate
from hushbid.transcripts.verification.whole_session import verify_all
from tests.processes.test_run import PARTIES, SEEDED, Watched, start, watch
from tests.unit.hushbid.cluster.test_cluster import DIGITS, DIGITS_OWNERS

POINTS = 15
"""Rounds, too."""


@pytest.fixture(scope="module")
def blind(tmp_path_factory: pytest.TempPathFactory) -> tuple[Watched, RunResult]:
    """A run with a blind curator and known noise, and its simulation."""
    place = tmp_path_factory.mktemp("blind")
    settings = ("acquisition.rule=blind", f"session.points={POINTS}", "session.jitter=0", *SEEDED)
    found = watch(start(DIGITS, place / "runs", *settings))
    assert found.code == 0, found.err
    return found, simulate(open_cluster(DIGITS, settings=settings), record=place / "simulated")


def test_a_blind_session_is_the_simulation_s(blind: tuple[Watched, RunResult]) -> None:
    found, simulated = blind
    wanted = simulated.as_json()
    own = {"wall_seconds", "rounds_per_second", "transcripts", "data", "directory", "processes", "report"}
    assert {name: value for name, value in found.json.items() if name not in own} == {
        name: value for name, value in wanted.items() if name not in own
    }
    assert (found.json["points_accessed_curator"], found.json["disputed"]) == (0, 0)
    with np.load(found.json["data"]) as run, np.load(wanted["data"]) as simulation:
        assert sorted(run) == sorted(simulation)
        for name in run:
            assert run[name].tobytes() == simulation[name].tobytes()


def test_a_blind_session_s_parties_tell_what_they_have(blind: tuple[Watched, RunResult]) -> None:
    found, _ = blind
    parties = Path(found.json["directory"]) / "parties"
    results = {name: json.loads((parties / name / "result.json").read_text()) for name in PARTIES}
    assert (results["curator"]["points_accessed"], results["curator"]["points_delivered"]) == (0, POINTS)
    assert results["curator"]["settlement"] == found.json["settlement"]
    assert results["curator"]["disputes"] == results["consumer"]["disputes"] == []
    for name in PARTIES:
        [trust] = [each["why"] for each in results[name]["privacy"] if "and the consumer" in each["from"]]
        assert "the order of bids" in trust
    [curator], [consumer], [owner] = (
        find_statuses(parties / name) for name in ("curator", "consumer", DIGITS_OWNERS[0])
    )
    assert (curator.round, consumer.round) == (found.json["rounds"],) * 2
    assert owner.points is consumer.points is None
    assert not (parties / "curator/state/curator.boxes").exists()
    verified = verify_all([Path(path) for path in found.json["transcripts"].values()])
    assert verified["ok"]
    assert [(each["checked"], each["others"], each["void"]) for each in verified["awards"]] == [
        (found.json["rounds"], [], [])
    ]


def test_the_consumer_spends_of_the_owners_epsilon_and_of_its_own_ledger_once(tmp_path: Path) -> None:
    found = watch(start(DIGITS, tmp_path / "runs", "acquisition.rule=blind", f"session.points={POINTS}"))
    assert found.code == 0, found.err
    parties = Path(found.json["directory"]) / "parties"
    owners, own = found.json["odometer"]
    [status] = find_statuses(parties / "consumer")
    assert status.spent_of_owners == {
        **{name: owners[name] for name in ("protects", "neighbours", "delta")},
        "epsilon": owners["epsilon"][-1],
    }
    assert status.spent is not None
    assert status.spent["epsilon"] == own["epsilon"][-1]
    lines = (parties / "consumer" / "validation.npz.ledger").read_text(encoding="utf-8").splitlines()
    assert sum(json.loads(line).get("kind") == "session" for line in lines) == 1
    assert (Path(found.json["directory"]) / "report.html").is_file()
