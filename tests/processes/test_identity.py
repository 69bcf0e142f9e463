"""The same session gives the same bytes: in one process, over ZeroMQ with CURVE, on other BLAS kernels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from hushbid.protocol.runtime.driver import Outgoing
from hushbid.protocol.wire.codec import Direction, decode_frame, decode_message, encode_message
from hushbid.protocol.wire.messages import without_box
from hushbid.simulation.simulator import Simulation
from tests.processes.cluster import SEALED, SECURE, Cluster, bodies

Bodies = dict[tuple[str, str, str], list[bytes]]

_MWEM = {"mechanism": "mwem", "calibration": "published", "step_epsilon": 5.0, "steps": 8, "eta": 0.125}
_GAUSSIAN = {"mechanism": "gaussian", "sigma": 2.0}
_TARGET, _SUMMARY = {"neighbours": "substitute-one"}, {"neighbours": "add-remove-one"}
GAUSSIAN = {"target": _GAUSSIAN | _TARGET, "summary": _GAUSSIAN | _SUMMARY, "noise.seed": 11}
MWEM = {"target": _MWEM | _TARGET, "summary": _MWEM | _SUMMARY, "noise.seed": 12}
_SUBSPACE = {"mechanism": "subspace", "epsilon": 3.0, "directions": 6}
SUBSPACE = {"target": _SUBSPACE | _TARGET, "summary": _SUBSPACE | _SUMMARY}
_RACE = {"mechanism": "race", "epsilon": 3.0}
RACE = {"target": _RACE | _TARGET, "summary": _RACE | _SUMMARY, "features.map": "lsh"}
SESSIONS = [
    pytest.param(GAUSSIAN | {"acquisition.rule": "winner-only"}, id="gaussian, winner-only"),
    pytest.param({"network.insecure": True}, id="exact, ask-all, without CURVE"),
    pytest.param(MWEM | {"acquisition.rule": "published"}, id="mwem, published"),
    pytest.param(GAUSSIAN | SEALED, id="gaussian, sealed"),
    pytest.param(SUBSPACE, id="subspace, ask-all"),
    pytest.param(RACE | SEALED, id="race, sealed"),
    # With CURVE every rule is above, and without it what is exact; the transport knows of neither.
    pytest.param({}, id="exact, ask-all", marks=pytest.mark.slow),
    pytest.param(
        SEALED | {"network.insecure": True}, id="exact, sealed, without CURVE", marks=pytest.mark.slow
    ),
]


def simulated(cluster: Cluster) -> Bodies:
    found: Bodies = defaultdict(list)

    def tap(sender: str, receiver: str, frame: Outgoing) -> None:
        found[sender, receiver, frame.kind].append(decode_frame(frame.data).body)

    Simulation(
        cluster.session,
        owners={name: cluster.dataset(name) for name in cluster.owners},
        validation=cluster.dataset("consumer", "validation.npz"),
        seed_set=cluster.dataset("consumer", "seed.npz"),
        tap=tap,
    ).run()
    return without_heads(found)


def without_heads(found: Bodies) -> Bodies:
    """All messages except those with a transcript's head, which depends on its salts and times."""
    return {key: sent for key, sent in found.items() if key[2] not in ("close", "farewell")}


def recorded(cluster: Cluster) -> Bodies:
    """The content of the parties' transcripts, after checking that they agree."""
    of_curator = bodies(cluster.records("curator"), "curator")
    others: Bodies = {}
    for name in cluster.names[1:]:
        others |= bodies(cluster.records(name), name)
    kept = {
        key: list(map(kept_by_curator, sent)) if key[2] == "bid" else sent for key, sent in others.items()
    }
    assert kept == of_curator, "heads and all"
    return without_heads(others)


def kept_by_curator(bid: bytes) -> bytes:
    """A bid as the curator's transcript has it: with digests of boxes."""
    without = without_box(decode_message(Direction.OWNER_TO_CURATOR, bid))
    return bid if without is None else encode_message(without)


OWNERS = ("heron", "magpie", "ostrich")


def run(
    place: Path, changes: Mapping[str, Any], owners: Sequence[str] = OWNERS, **coretypes: str
) -> tuple[Bodies, Bodies, Cluster]:
    with Cluster(place, owners, changes=changes) as cluster:
        for name in cluster.names:
            kind = {"OPENBLAS_CORETYPE": coretypes[name]} if name in coretypes else {}
            cluster.start(name, **kind)
        ended = cluster.end()
        assert {name: end.code for name, end in ended.items()} == dict.fromkeys(cluster.names, 0)
        return recorded(cluster), simulated(cluster), cluster


@pytest.mark.parametrize("changes", SESSIONS)
def test_processes_exchange_the_bytes_of_the_simulation(tmp_path: Path, changes: dict[str, Any]) -> None:
    # Of three owners bids come in more orders: that is looked at where all that is sent has noise.
    real, simulation, cluster = run(tmp_path, changes, OWNERS if changes == GAUSSIAN | SEALED else OWNERS[:2])
    assert real == simulation
    assert all(len(real["curator", owner, "broadcast"]) == 20 for owner in cluster.owners)
    assert all(len(real[owner, "curator", "bid"]) == 20 for owner in cluster.owners)
    assert len(real["curator", "consumer", "delivery"]) == 1


# Noise is drawn by the same functions under every rule.
@pytest.mark.parametrize("rule", [pytest.param("ask-all", marks=pytest.mark.slow), "sealed"])
def test_a_session_with_secure_noise_runs_to_its_end_and_no_two_are_alike(tmp_path: Path, rule: str) -> None:
    changes = GAUSSIAN | SECURE | (SEALED if rule == "sealed" else {})
    found = []
    for number in range(2):
        place = tmp_path / str(number)
        place.mkdir()
        with Cluster(place, ("heron", "magpie"), changes=changes) as cluster:
            cluster.start_all()
            ended = cluster.end()
            assert {name: end.code for name, end in ended.items()} == dict.fromkeys(cluster.names, 0)
            assert ended["consumer"].json["points_delivered"] == 20
            assert ended["consumer"].json["disputed"] == 0
            found.append(recorded(cluster))
    assert [{key: len(sent) for key, sent in real.items()} for real in found] == [
        {key: len(sent) for key, sent in found[0].items()}
    ] * 2
    for key in (("consumer", "curator", "target"), ("curator", "heron", "broadcast")):
        assert not set(found[0][key]) & set(found[1][key])


# Each release and each rule once: the messages that a rule adds do not depend on the release.
@pytest.mark.parametrize(
    ("release", "rule"),
    [
        pytest.param(SUBSPACE, "sealed", id="subspace-sealed"),
        pytest.param(RACE, "ask-all", id="race-ask-all"),
        pytest.param(SUBSPACE, "ask-all", id="subspace-ask-all", marks=pytest.mark.slow),
        pytest.param(RACE, "sealed", id="race-sealed", marks=pytest.mark.slow),
    ],
)
def test_a_session_by_sketches_or_in_a_subspace_keeps_what_it_promises(
    tmp_path: Path, release: dict[str, Any], rule: str
) -> None:
    """With secure noise, and without leave to be anything but private."""
    private = {"session.allow_nonprivate": False}
    changes = release | SECURE | private | (SEALED if rule == "sealed" else {})
    with Cluster(tmp_path, ("heron", "magpie"), changes=changes) as cluster:
        stated = {row.protects: row.epsilon for row in cluster.session.privacy()[:2]}
        assert list(stated.values()) == [pytest.approx(3.0, rel=1e-3)] * 2
        cluster.start_all()
        ended = cluster.end()
        assert {name: end.code for name, end in ended.items()} == dict.fromkeys(cluster.names, 0)
        assert ended["consumer"].json["points_delivered"] == 20
        assert ended["consumer"].json["disputed"] == 0
        kinds = {key[2] for key in recorded(cluster) if key[0] == "consumer"}
        assert ("subspace-target" in kinds) == (release is SUBSPACE)


def test_noise_is_in_the_bytes(tmp_path: Path) -> None:
    # The control: another seed of the noise gives other bytes, so the noise is in what is compared.
    with Cluster(tmp_path, changes=GAUSSIAN) as one:
        first = simulated(one)
        for name in one.names:
            one.change(name, {"noise.seed": 13})
        assert simulated(one)["consumer", "curator", "target"] != first["consumer", "curator", "target"]


KERNELS = {"curator": "Haswell", "consumer": "Prescott", "heron": "Prescott", "magpie": "Sandybridge"}


@pytest.mark.parametrize("changes", [pytest.param(GAUSSIAN, id="gaussian")])
def test_blas_kernels_of_several_kinds_give_the_same_bytes(tmp_path: Path, changes: dict[str, Any]) -> None:
    real, simulation, cluster = run(tmp_path, changes, OWNERS[:2], **KERNELS)
    kinds = {str(cluster.verified(name).header.environment["blas"]) for name in KERNELS}
    if len(kinds) < 2:
        pytest.skip("this BLAS chooses its kernels otherwise than by OPENBLAS_CORETYPE")
    assert real == simulation
