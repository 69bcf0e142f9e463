"""Sessions of real processes whose consumer was written from the documents alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.transcripts.verification.whole_session import verify_all
from tests.conftest import ROOT
from tests.interop.minimal import formats
from tests.interop.minimal.consumer import Consumer
from tests.interop.minimal.feature_map import FeatureMap
from tests.interop.test_sessions import PATIENT
from tests.processes.cluster import SEALED, SECURE, Cluster, bodies

pytestmark = pytest.mark.processes

OWNERS = ("heron", "magpie")
EXACT = {"target": {"mechanism": "exact"}, "summary": {"mechanism": "exact"}}
CHANGES: dict[str, dict[str, Any]] = {
    "sealed": SEALED | SECURE,
    "sealed-batch": SEALED | SECURE | {"session.points": 14, "session.batch": 3, "session.distinct": True},
    "tender": SEALED | SECURE | {"acquisition.rule": "tender", "session.batch": 4, "summary": None},
    "sealed-committed": SEALED | SECURE | {"acquisition.commitment_depth": 9},
    "ask-all": {"acquisition.rule": "ask-all"},
}
"""Session → changes to its file."""


def start_minimal(cluster: Cluster) -> None:
    """Start the consumer of the documents as the cluster's."""
    files = {"session": "session.toml", "key": "secret.key", "validation": "validation.npz"}
    options = {**files, "seed-set": "seed.npz"}
    arguments = [word for option, value in options.items() for word in (f"--{option}", value)]
    cluster.run(CONSUMER, ["-m", "tests.interop.minimal.consumer", *arguments], {"PYTHONPATH": str(ROOT)})


def deliveries(cluster: Cluster) -> list[dict[str, Any]]:
    """The deliveries as the curator sent them."""
    found = bodies(cluster.records(CURATOR), CURATOR)[CURATOR, CONSUMER, "delivery"]
    return [formats.message_of(body) for body in found]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "rule", [pytest.param(rule, marks=[pytest.mark.slow] if rule == "ask-all" else []) for rule in CHANGES]
)
def test_a_consumer_of_the_documents_buys(rule: str, tmp_path: Path) -> None:
    changes = {"session.points": 10, **PATIENT, **EXACT, **CHANGES[rule]}
    with Cluster(tmp_path, OWNERS, rows=12, changes=changes) as cluster:
        cluster.start_all(but=[CONSUMER])
        start_minimal(cluster)
        ended = cluster.end(seconds=240)
        assert {name: end.code for name, end in ended.items()} == dict.fromkeys(cluster.names, 0), (
            cluster.log(CONSUMER)
        )
        result, bought = ended[CURATOR].json, json.loads(ended[CONSUMER].out)
        assert bought["outcome"] == "complete"
        assert (bought["disputes"], result["disputes"], result["faults"], result["refusals"]) == (
            [],
            [],
            [],
            [],
        )
        points = cluster.session.file.session.points
        assert result["points_delivered"] == sum(bought["sold"].values()) == points
        # Curator's and owners' files hold, alone and together; the consumer's farewell is signed.
        found = verify_all([cluster.transcript_path(name) for name in (CURATOR, *OWNERS)])
        assert found["ok"], found
        curators = next(each for each in found["transcripts"] if each["party"] == CURATOR)
        assert {each["party"]: each["signature"] for each in curators["signed_heads"]} == dict.fromkeys(
            cluster.names, "holds"
        )
        if rule != "ask-all":
            consumer, purchases = again(cluster), deliveries(cluster)[0]["purchases"]
            assert [consumer.wrong(purchase) for purchase in purchases] == [""] * points
            assert {what: consumer.wrong(altered(purchases[0], what)) for what in ALTERED} == ALTERED


CLOSED, UNSIGNED = "the box does not open, or holds no point", "the signature does not hold"
ALTERED = {"box": CLOSED, "signature": UNSIGNED, "features": UNSIGNED}
"""Part of a purchase that was altered → why it is disputed."""


def again(cluster: Cluster) -> Consumer:
    """The session's consumer, with the map that an owner received."""
    session = formats.Session.read(cluster.directory(CONSUMER) / "session.toml")
    keys = [formats.key_of_file(cluster.directory(name) / "secret.key") for name in (CONSUMER, OWNERS[0])]
    rows = cluster.dataset(CONSUMER, "validation.npz").features
    consumer = Consumer(session, keys[0], rows, rows)
    (box,) = bodies(cluster.records(CURATOR), CURATOR)[CURATOR, OWNERS[0], "secret-map"]
    own = session.sealing_key(CONSUMER)
    seed, _ = formats.open_map(formats.message_of(box)["box"], session.identifier, own, keys[1])
    consumer._map = FeatureMap(session.tables["features"], seed)
    for roots in bodies(cluster.records(CURATOR), CURATOR).get((CURATOR, CONSUMER, "roots"), ()):
        consumer._keep(formats.message_of(roots))
    return consumer


def altered(purchase: dict[str, Any], what: str) -> dict[str, Any]:
    """A purchase with one bit changed."""
    part = purchase["candidate"][what]
    if what == "features":
        changed: Any = part ^ 1
    else:
        changed = part[:-1] + bytes([part[-1] ^ 1])
    return {**purchase, "candidate": {**purchase["candidate"], what: changed}}
