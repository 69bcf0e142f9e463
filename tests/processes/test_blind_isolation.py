"""What the curator of a blind session holds: nothing by which it could weigh, score or compare.

In the middle of the session, while it waits for the consumer, everything that it has is searched: its state
directory, every frame to and from it, and its process's memory. The search is for rows and labels, φ of all
points, weights, plain scores, the target, Σφ over the seed set, the map's seed and digest, and both keys. The
same search finds what a sealed curator has.
"""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hushbid.protocol.crypto.blinding import MASK_BYTES, BlindKeys
from hushbid.protocol.names import CURATOR
from hushbid.protocol.space.grid import exact_scores
from hushbid.protocol.transcript.record import RecordedItem
from tests.processes.cluster import SEALED, SECURE, Cluster, bodies
from tests.processes.test_sealed_isolation import (
    CHANGES,
    OWNERS,
    PLACES,
    ROUNDS,
    ROWS,
    Session,
    count,
    furnish,
    memory_of,
    rows_and_labels,
    run,
)

BLIND: dict[str, Any] = SEALED | SECURE | {"acquisition.rule": "blind", "session.fixed_cadence": 0.8}
"""At a pace at which the consumer can be stopped in the middle, and a busy owner misses no round."""
Wanted = dict[str, list[bytes]]


@pytest.fixture(scope="module")
def blind(tmp_path_factory: pytest.TempPathFactory) -> Session:
    place = tmp_path_factory.mktemp("blind")
    with Cluster(place, OWNERS, rows=ROWS, changes={**CHANGES, **BLIND}, anew=[CURATOR]) as cluster:
        furnish(cluster)
        cluster.start("curator", "consumer", *OWNERS)
        award = ("curator", "consumer", "award")

        def awards() -> int:
            return len(bodies(cluster.records("curator"), "curator").get(award, []))

        cluster.until(lambda: awards() >= ROUNDS // 2, "the middle of the session")
        cluster.signal("consumer", signal.SIGSTOP)
        held = place / "held"
        state = cluster.directory("curator") / "state"
        shutil.copytree(state, held, ignore=shutil.ignore_patterns(".*.status.new"))
        memory = memory_of(cluster.processes["curator"].pid)
        cluster.signal("consumer", signal.SIGCONT)
        ended = cluster.end()
        assert {name: end.code for name, end in ended.items()} == dict.fromkeys(ended, 0)
        return Session(cluster, ended, held, memory)


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> Session:
    """The control: a curator that has φ, weights, scores and the target."""
    return run(tmp_path_factory.mktemp("sealed"), SEALED | SECURE)


def items(session: Session, party: str, *kinds: str) -> Iterator[RecordedItem]:
    for record in session.cluster.records(party):
        yield from (item for item in record.items if item.kind in kinds)


def secrets_of(session: Session) -> Wanted:
    """What a blind curator must not have, by kind."""
    (released,) = items(session, "consumer", "target-released")
    seed: Any = released.private["map_seed"]
    opened = session.cluster.session
    made, keys = opened.space.map(seed), BlindKeys(seed, opened.identifier)
    party, kind = (
        {"blind": "heron", "sealed": "curator"}[opened.rule.name],
        ("blind-scored", "weights-computed"),
    )
    weights: list[Any] = [item.private["weights"] for item in items(session, party, *kind)]
    wanted: Wanted = {
        "map": [seed, made.digest],
        "keys": [keys._broadcast, keys._mask],
        "target": [np.asarray(released.private["embedding"], "<f8").tobytes()],
        "seed total": [np.asarray(released.private["seed_total"], "<i8").tobytes()],
        "weights": [np.asarray(weight, "<i4").tobytes() for weight in weights],
        "features": [],
        "scores": [],
    }
    for owner in ("heron", "magpie"):
        features = made.hash(session.cluster.dataset(owner).features)
        wanted["features"] += [row.astype("<i2").tobytes() for row in features]
        for weight in weights:
            for score in exact_scores(features, np.asarray(weight)[: features.shape[1]]).tolist():
                if abs(score) > 2**34:  # shorter ones are found by chance
                    wanted["scores"] += [score.to_bytes(8, order, signed=True) for order in ("little", "big")]
                    wanted["scores"].append(score.to_bytes(MASK_BYTES, "big", signed=True))
    return wanted


@pytest.mark.parametrize("place", PLACES)
def test_a_blind_curator_holds_nothing_that_it_could_weigh_by(blind: Session, place: str) -> None:
    kept = PLACES[place](blind)
    assert len(kept) > 100
    wanted = secrets_of(blind)
    assert len(wanted["weights"]) == ROUNDS
    assert len(wanted["scores"]) > 100
    assert count(kept, wanted) == dict.fromkeys(wanted, 0)
    assert count(kept, rows_and_labels(blind)) == {"rows": 0, "labels": 0}


def test_the_memory_of_a_blind_curator_holds_none_of_it_either(blind: Session, sealed: Session) -> None:
    if not blind.memory:
        pytest.skip("this system shows no process another's memory")

    def wanted(session: Session) -> Wanted:
        # Memory is large: of many things a few are looked for.
        return {what: texts[:90] for what, texts in secrets_of(session).items()}

    found = count(sealed.memory, wanted(sealed))
    assert found["features"] > 0, "the control"
    assert found["target"] + found["seed total"] + found["weights"] > 0, "the control"
    rows = {what: texts[: 40 * 13] for what, texts in rows_and_labels(blind).items()}
    everything = {**wanted(blind), **rows}  # of other names: memory is searched once
    assert {"rows", "labels", "map", "target"} < set(everything)
    assert count(blind.memory, everything) == dict.fromkeys(everything, 0)


def test_the_same_search_finds_what_a_sealed_curator_has(sealed: Session) -> None:
    found = count(PLACES["its frames"](sealed), secrets_of(sealed))
    assert found["map"] == found["keys"] == 0
    assert found["target"] == found["seed total"] == 1
    assert found["weights"] == ROUNDS
    assert found["features"] >= ROUNDS
    assert found["scores"] > 0


def test_the_search_finds_a_blind_session_s_secrets_where_they_are(blind: Session) -> None:
    # The consumer drew the map and has everything but what was not bought; owners have weights.
    kept = blind.cluster.transcript_path("consumer").read_bytes()
    found = count(kept, secrets_of(blind))
    assert found["map"] >= 1
    assert found["target"] == found["seed total"] == 1
    assert found["features"] > 0
    kept = blind.cluster.transcript_path("heron").read_bytes()
    assert count(kept, secrets_of(blind))["weights"] == ROUNDS


def test_a_blind_session_delivers_what_owners_sealed(blind: Session) -> None:
    result: Path = blind.cluster.directory("consumer") / "state" / "delivered.npz"
    with np.load(result) as delivered:
        assert len(delivered["labels"]) == ROUNDS
    assert blind.ended["curator"].json["points_accessed"] == 0
    assert not (blind.cluster.directory("curator") / "state" / "curator.boxes").exists()
