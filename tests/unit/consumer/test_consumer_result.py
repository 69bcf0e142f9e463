"""The output of `hushbid consumer` for people at the end of a session."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from hushbid.cli.app import app
from hushbid.cluster.containers import set_up
from hushbid.cluster.file import open_cluster
from hushbid.consumer.appraisal import Judgement, Quality, Weighted
from hushbid.consumer.disputes import SellerFault
from hushbid.consumer.model_figures import NO_MODEL
from hushbid.consumer.own_figures import OwnFigures
from hushbid.consumer.result import ConsumerResult, missing_said
from hushbid.consumer.seed_distance import SeedDistance
from hushbid.consumer.verdict import Rehearsal, Staged, Verdict
from hushbid.protocol.data.dataset import Changes
from hushbid.protocol.session.session import open_session
from tests.conftest import ROOT


@pytest.mark.parametrize(
    ("judgement", "lines"),
    [
        (
            Judgement(
                Quality(0.0160112, 0.02, 0.9538, 198.0),
                Weighted(Quality(0.0040112, 0.01, 0.9612, 121.6), 1.0, 1e-8),
            ),
            [
                "MMD² to the validation set               0.01601",
                "MMD² to the test points                  0.02000",
                "accuracy                                 0.954",
                "MMD² to the validation set with weights  0.00401",
                "MMD² to the test points with weights     0.01000",
                "accuracy with weights                    0.961",
                "effective points                         122 of 198, with weights of λ = 1",
            ],
        ),
        (
            Judgement(Quality(0.5, None, None, 2.0), None, "they are too many"),
            ["accuracy                      –", "weights                       none: they are too many"],
        ),
        (Judgement(), ["MMD² to the validation set    –", "accuracy                      –"]),
    ],
    ids=["figures", "no weights", "nothing to compute"],
)
def test_it_is_a_table_with_privacy_and_places(
    judgement: Judgement, lines: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "session.toml"
    made = set_up(
        open_cluster(ROOT / "configs" / "digits" / "cluster.toml"),
        tmp_path,
        path,
        address="tcp://127.0.0.1:1",
    )
    staged = (Staged("all that is wanted", 0.3, 0.2, 0.5, 0.4), Staged("a tenth of it", 0.5, 0.4, 0.5, 0.4))
    rehearsal = Rehearsal(staged, 0.5)
    result = ConsumerResult(
        session="digits",
        p=200,
        m=66,
        roots={},
        points_delivered=198,
        unlabelled=5,
        disputed=2,
        disputes=(),
        faults=(SellerFault("tern", 9, 7, "the box does not open", 2),),
        wall_seconds=3.14159,
        verdict=Verdict(rehearsal, anyway=True),
        course=None,
        bill=None,
        judgement=judgement,
        own=OwnFigures(),
        model=NO_MODEL,
        seed_set_drawn=True,
        seed_distance=SeedDistance(mmd2=0.4501, by_chance=0.0124, radii=0.906),
        outside=Changes({"age": 2}, 3, {"size": 2}, 1),
        seed_rows_shared=0,
        data=Path("delivered.npz"),
        table=None,
        ledger=Path("validation.npz.ledger"),
        transcript=Path("consumer.transcript"),
        privacy=open_session(made.session).privacy(),
    )
    assert ConsumerResult.from_json(result.as_json()) == result
    assert result.as_json()["outside"]["over"] == 1
    monkeypatch.setattr("hushbid.consumer.process.run_consumer", lambda *_arguments: result)
    config = str(tmp_path / "consumer" / "data" / "party.toml")
    arguments = ["consumer", "--session", str(path), "--config", config, "--no-rehearsal"]
    out = CliRunner().invoke(app, arguments).stdout
    width = len(lines[0]) - len(lines[0].split()[-1])
    figures = {
        "points delivered": "198 of 200, 2 disputed, 5 without a label",
        "disputed": "tern, bid of round 7: the box does not open (2 points)",
        "seed set": "drawn, far: MMD² of 0.45 between the seed set and the validation set, where chance "
        "gives 0.012 to like sets of these sizes; 0.91 clipping radii apart",
        "before the session": "hopeless, and gone on with anyway: 1.50, 1.25 of a random choice's MMD², "
        "with weights",
        "seconds": "3.1",
        "delivered points": "delivered.npz",
        "ledger of the validation set": "validation.npz.ledger",
        "transcript": "consumer.transcript",
    }
    for line in (
        "digits\nWhether the model gets better cannot be told: nothing was bought.\n",
        *(f"{name:<{width}}{value}" for name, value in figures.items()),
        *lines,
        "the consumer's validation set, from the owners and the curator: ε = 3 at δ = 1e-05.",
    ):
        assert line in out


@pytest.mark.parametrize(
    ("figures", "said"),
    [
        ({}, ""),
        ({"unlabelled": 5, "unidentified": 5}, ""),
        ({"unlabelled": 2}, ", 2 without a label"),
        ({"unlabelled": 2, "unidentified": 3}, ", 2 without a label, 3 without an identifier"),
    ],
)
def test_points_that_lack_what_others_have_are_told(figures: dict[str, int], said: str) -> None:
    counts = {"unlabelled": 0, "unidentified": 0, **figures}
    assert missing_said(SimpleNamespace(points_delivered=5, **counts)) == said
