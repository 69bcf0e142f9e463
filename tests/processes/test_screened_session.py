"""A session that broadcasts the release by which its owners were screened: paid once, the same bytes."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from hushbid.cli.app import main
from hushbid.consumer.events import TargetReleased
from hushbid.consumer.target import KeptTarget
from hushbid.protocol.names import CONSUMER
from hushbid.protocol.runtime.ledger.lifetime_ledger import LifetimeLedger
from hushbid.transcripts.replay import replayed
from tests.processes.cluster import SECURE, Cluster

PRIVATE: dict[str, Any] = {
    **SECURE,
    "session.allow_nonprivate": False,
    "target": {"mechanism": "filtered-gaussian", "epsilon": 2.0, "neighbours": "substitute-one"},
    "summary": {"mechanism": "filtered-gaussian", "epsilon": 2.0, "neighbours": "add-remove-one"},
}
KEPT = "validation.target"


def hushbid(cluster: Cluster, party: str, *arguments: str) -> dict[str, Any]:
    """Run a verb to its end in a party's directory, as the command line does; returns its JSON."""
    said = io.StringIO()
    with (
        contextlib.chdir(cluster.directory(party)),
        contextlib.redirect_stdout(said),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(sys, "argv", ["hushbid", *arguments, "--json"])
        with pytest.raises(SystemExit) as ending:
            main()
    assert ending.value.code == 0, said.getvalue()
    found: dict[str, Any] = json.loads(said.getvalue())
    return found


def publish(cluster: Cluster, *arguments: str) -> Path:
    """Every owner publishes an entry into one directory."""
    catalogue = cluster.place / "catalogue"
    catalogue.mkdir()
    for owner in cluster.owners:
        hushbid(
            cluster, owner, "publish", "kme", "data.npz", "--name", owner, "--session", "session.toml",
            "--neighbours", "add-remove-one", "--epsilon", "5", "--key", "secret.key",
            "--out", str(catalogue), *arguments,
        )  # fmt: skip
    return catalogue


def screen(cluster: Cluster, catalogue: Path, *arguments: str) -> dict[str, Any]:
    return hushbid(
        cluster, CONSUMER, "screen", str(catalogue), "--session", "session.toml", "--config", "party.toml",
        "--target-file", KEPT, *arguments,
    )  # fmt: skip


def spendings(cluster: Cluster) -> list[tuple[str, float | None]]:
    path = cluster.directory(CONSUMER) / "validation.npz.ledger"
    with LifetimeLedger.open(path, budget=None, neighbours="substitute-one", rows=None) as ledger:
        return [(each.kind, each.epsilon) for each in ledger.spendings]


def test_a_screened_session_broadcasts_the_release_that_was_paid_for_once(tmp_path: Path) -> None:
    with Cluster(tmp_path, changes=PRIVATE) as cluster:
        found = screen(cluster, publish(cluster), "--best", "2", "--write-session", "screened.toml")
        at = cluster.directory(CONSUMER)
        for party in cluster.names:
            (cluster.directory(party) / "session.toml").write_bytes((at / "screened.toml").read_bytes())
        cluster.change(CONSUMER, {"target_file": KEPT}, file="party.toml")
        assert sorted(cluster.session.file.owners) == sorted(found["chosen"])
        taking_part = ["curator", CONSUMER, *found["chosen"]]
        cluster.start(*taking_part)
        ended = cluster.end(*taking_part)
        assert {end.code for end in ended.values()} == {0}, ended
        assert ended[CONSUMER].json["points_delivered"] == 20

        kept = KeptTarget.from_bytes((at / KEPT).read_bytes(), where=KEPT)
        released = [
            dict[str, Any](item.private)
            for record in cluster.records(CONSUMER)
            for item in record.effects
            if item.kind == TargetReleased.KIND
        ]
        assert [(each["embedding"].tobytes(), each["noise"][0].tobytes()) for each in released] == [
            (kept.release.embedding.tobytes(), kept.release.noise[0].tobytes())
        ]
        # Screening paid; the session is on record, and cost nothing more.
        (screening, paid), (session, more) = spendings(cluster)
        assert (screening, session) == ("screening", "session")
        assert paid == pytest.approx(2.0, rel=1e-6)
        assert more == 0.0
        for party in taking_part:
            cluster.verified(party)
            replayed(cluster.transcript_path(party))
        # Recomputed from D_v and the noise that was drawn for screening, the release is the one on record.
        recomputed = hushbid(
            cluster, CONSUMER, "transcript", "replay", str(cluster.transcript_path(CONSUMER)),
            "--recompute", "party.toml",
        )  # fmt: skip
        assert recomputed
