"""What `hushbid consumer` prints at the end of a session, for people."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from hushbid.cli import app
from hushbid.cluster import open_cluster
from hushbid.setup import set_up
from protocol.session import open_session
from tests.conftest import ROOT


@pytest.mark.parametrize(
    ("figures", "lines"),
    [
        (
            {"mmd2": 0.0160112, "accuracy": 0.9538},
            ["MMD² to the validation set    0.01601", "accuracy                      0.954"],
        ),
        (
            {"mmd2": None, "accuracy": None},
            ["MMD² to the validation set    –", "accuracy                      –"],
        ),
    ],
    ids=["figures", "nothing to compute"],
)
def test_it_is_a_table_with_privacy_and_places(
    figures: dict[str, Any], lines: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "session.toml"
    made = set_up(
        open_cluster(ROOT / "configs" / "digits" / "cluster.toml"),
        tmp_path,
        path,
        address="tcp://127.0.0.1:1",
    )
    result = figures | {
        "session": "digits",
        "p": 200,
        "points_delivered": 198,
        "disputed": 1,
        "wall_seconds": 3.14159,
        "data": "delivered.npz",
        "ledger": "validation.npz.ledger",
        "transcript": "consumer.transcript",
        "privacy": [statement.as_json() for statement in open_session(made.session).privacy()],
    }
    monkeypatch.setattr("consumer.process.run_consumer", lambda *_arguments: result)
    config = str(tmp_path / "consumer" / "data" / "party.toml")
    out = CliRunner().invoke(app, ["consumer", "--session", str(path), "--config", config]).stdout
    for line in (
        "digits: what was procured",
        "points delivered              198 of 200, 1 disputed",
        *lines,
        "seconds                       3.1",
        "delivered points              delivered.npz",
        "ledger of the validation set  validation.npz.ledger",
        "transcript                    consumer.transcript",
        "the consumer's validation set, from the owners and the curator: ε = 3 at δ = 1e-05.",
    ):
        assert line in out
