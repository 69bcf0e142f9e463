"""A curator that is killed at any moment never shows a release with two values.

Its transcript has what owners were shown, byte for byte. It resumes from there.
"""

from __future__ import annotations

import signal
import time
from collections import defaultdict
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest

from hushbid.protocol.wire.codec import Direction, decode_message, encode_message
from hushbid.protocol.wire.messages import Broadcast
from tests.processes.cluster import SEALED, SECURE, Cluster, bodies

OWNERS = ("heron", "magpie")
ROUNDS = 140
"""More than are run before the curator is killed: it has drawn one batch of noise then, or two, of three."""
MOMENTS = 2
"""Half of them sealed; the slow tests have three times as many. A simulated curator crashes at a third of all
its moments, and drivers that break what is claimed are caught: `tests/simulation/test_crash_noise.py`."""
_GAUSSIAN: dict[str, Any] = {"mechanism": "gaussian", "epsilon": 8.0}
CHANGES: dict[str, Any] = {
    "session.points": ROUNDS,
    "timeouts.comeback": 20.0,
    "target": _GAUSSIAN | {"neighbours": "substitute-one"},
    "summary": _GAUSSIAN | {"neighbours": "add-remove-one"},
}


def shown(cluster: Cluster) -> dict[int, set[bytes]]:
    """The broadcasts sent to owners, by round."""
    found: dict[int, set[bytes]] = defaultdict(set)
    for puppet in cluster.puppets:
        for message in puppet.heard:
            if isinstance(message, Broadcast):
                found[message.round].add(encode_message(message))
    return found


def recorded(cluster: Cluster) -> dict[int, set[bytes]]:
    """The broadcasts of the curator's transcript, by round."""
    found: dict[int, set[bytes]] = defaultdict(set)
    for key, sent in bodies(cluster.records("curator"), "curator").items():
        if key[2] == "broadcast":
            for body in sent:
                message = decode_message(Direction.CURATOR_TO_OWNER, body)
                assert isinstance(message, Broadcast)
                found[message.round].add(body)
    return found


def kill(cluster: Cluster, *, after_round: int, seconds: float) -> None:
    """Run a session until a moment after a round's broadcast, and kill its curator."""
    for name in ("consumer", *OWNERS):
        cluster.puppet(name)
    cluster.until(lambda: max(shown(cluster), default=0) >= after_round, f"round {after_round}")
    deadline = time.monotonic() + seconds
    cluster.until(lambda: time.monotonic() >= deadline, "the moment")
    cluster.signal("curator", signal.SIGKILL)
    assert cluster.end("curator")["curator"].code == -signal.SIGKILL
    # What was on its way when it died has arrived when nothing arrives any more.
    quiet = time.monotonic() + 0.1
    cluster.until(lambda: time.monotonic() >= quiet, "the last frames")


@pytest.fixture(
    scope="module", params=[MOMENTS, pytest.param(3 * MOMENTS, marks=pytest.mark.slow)], ids=["some", "more"]
)
def killed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Sessions whose curator was killed at random moments, half of them sealed."""
    rng = np.random.default_rng(9)
    with ExitStack() as stack:
        clusters = []
        for moment in range(request.param):
            changes = CHANGES | SECURE | (SEALED if moment % 2 else {})
            place = tmp_path_factory.mktemp("killed")
            cluster = stack.enter_context(Cluster(place, OWNERS, rows=ROUNDS, changes=changes))
            cluster.start("curator")
            clusters.append(cluster)
        for cluster in clusters:
            kill(cluster, after_round=int(rng.integers(1, 60)), seconds=float(rng.uniform(0.0, 0.02)))
        yield clusters


def test_what_owners_were_shown_is_on_record_and_of_one_value(killed: list[Cluster]) -> None:
    rounds = []
    for cluster in killed:
        seen, kept = shown(cluster), recorded(cluster)
        assert seen, "the session was under way"
        assert set(seen) <= set(kept)
        for number, values in seen.items():
            assert len(values) == 1
            assert kept[number] == values
        rounds.append(max(seen))
    assert max(rounds) < ROUNDS, "none had ended"
    assert len(set(rounds)) > len(killed) // 2, "they were killed at different moments"


def test_noise_and_charge_of_every_release_are_on_record(killed: list[Cluster]) -> None:
    for cluster in killed:
        noise: set[int] = set()
        charged: set[int] = set()
        made: set[int] = set()
        for record in cluster.records("curator"):
            for item in record.items:
                fields: dict[str, Any] = {**item.public, **item.private}
                if item.kind == "noise-drawn":
                    noise |= set(range(fields["first"], fields["first"] + len(fields["rounds"])))
                elif item.kind == "charge":
                    charged |= set(range(fields["first"], fields["last"] + 1))
                elif item.kind == "weights-computed":
                    made.add(fields["round"])
        assert set(shown(cluster)) <= noise & charged & made


def test_started_again_it_goes_on_and_every_release_keeps_its_one_value(killed: list[Cluster]) -> None:
    for cluster in killed:
        before = recorded(cluster)
        cluster.start("curator")
        ended = cluster.end("curator")["curator"]
        assert ended.code == 0, ended.err
        assert ended.json["absences"] == {}
        assert ended.json["refusals"] == []
        seen, kept = shown(cluster), recorded(cluster)
        assert sorted(seen) == sorted(kept) == list(range(1, ROUNDS + 1))
        assert all(len(values) == 1 for values in seen.values())
        assert seen == kept
        assert before.items() <= kept.items()
        assert {puppet.finish.code for puppet in cluster.puppets if puppet.finish is not None} == {0}
        assert not cluster.verified("curator").torn_bytes
