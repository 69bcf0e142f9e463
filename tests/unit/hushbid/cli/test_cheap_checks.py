"""Impossible requests are refused before any work, and a useless ε is warned of."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from hushbid.cli.app import app
from hushbid.cluster.file import open_cluster
from hushbid.consumer.appraisal import Quality
from hushbid.parties import Consumer
from hushbid.protocol.config.party import ConsumerFile
from hushbid.protocol.config.session import NetworkSection, RosterSection
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.names import an
from hushbid.results.standing import Standing
from hushbid.text_files import check_directory_place, check_file_place, check_new_file
from tests.conftest import ROOT

DIGITS = str(ROOT / "configs" / "digits" / "sealed.toml")
NOWHERE = "/proc/hushbid-x"
"""Nothing can be made there, not by root either."""


@pytest.fixture
def rows(tmp_path: Path) -> str:
    place = tmp_path / "rows.npz"
    np.savez(place, features=np.random.default_rng(7).random((60, 3)))
    return str(place)


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Anything that takes long fails the test."""

    def work(*_: object, **__: object) -> None:
        pytest.fail("this is costly, and was begun")

    def forbid(*places: str) -> None:
        for place in places:
            monkeypatch.setattr(place, work)

    return forbid


def refused(*arguments: str) -> dict[str, Any]:
    """The error that ends a call."""
    ended = CliRunner().invoke(app, [*arguments, "--json"])
    assert ended.exit_code == 4, ended.stderr
    found = json.loads(ended.stdout)["error"]
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--name", "spitäler", "--output", "new.toml"], "spitäler"),
        (["--output", f"{NOWHERE}/new.toml"], NOWHERE),
        (["--output", "/proc/new.toml"], "/proc"),
        (["--output", "missing/new.toml"], "missing"),
    ],
)
def test_advice_is_not_worked_out_for_a_file_that_cannot_be(
    rows: str, idle: Callable[..., None], options: list[str], said: str
) -> None:
    idle("hushbid.advice.proposal.advise")
    assert said in refused("advise", rows, "--lower", "0", "--upper", "1", *options)["what"]


@pytest.mark.parametrize("place", [NOWHERE, f"{NOWHERE}/deeper", str(ROOT / "README.md")])
@pytest.mark.parametrize("verb", ["run", "simulate"])
def test_a_session_is_not_rehearsed_for_a_directory_that_cannot_be(
    idle: Callable[..., None], verb: str, place: str
) -> None:
    if verb == "run" and sys.platform != "linux":
        pytest.skip("a run is of Linux alone")
    idle("hushbid.plan.verdict.Rehearsing.verdict")
    assert place.removesuffix("/deeper") in refused(verb, DIGITS, "--output", place)["what"]


def test_a_consumer_does_not_rehearse_with_an_address_that_cannot_be(
    idle: Callable[..., None], tmp_path: Path
) -> None:
    idle("hushbid.plan.verdict.Rehearsing.verdict")
    cluster = open_cluster(Path(DIGITS))
    network = NetworkSection(address="tcp://127.0.0.1:*", insecure=True)
    session = cluster.session_file(RosterSection(owners=dict.fromkeys(cluster.owners, "")), network)
    file = ConsumerFile(
        state=tmp_path / "state", validation=tmp_path / "v.npz", seed_points=9, metrics="here"
    )
    with pytest.raises(ConfigError, match="me"):
        Consumer("unread.toml", rehearsal=True)._before(session, file)


@pytest.mark.parametrize("verb", ["weigh", "train", "report", "experiment"])
def test_nothing_is_computed_for_a_file_that_cannot_be(
    rows: str, idle: Callable[..., None], tmp_path: Path, verb: str
) -> None:
    idle("hushbid.consumer.appraisal.Judge.quality", "hushbid.lab.experiments.runner.results_of")
    delivered = tmp_path / "delivered.npz"
    points = np.random.default_rng(8).random((40, 3))
    labels = np.arange(40) % 2
    np.savez(delivered, features=points, labels=labels, lower=np.zeros(3), upper=np.ones(3), gamma=1.0)
    calls = {
        "weigh": ["weigh", str(delivered), "--validation", rows, "--output", f"{NOWHERE}.npz"],
        "train": ["train", str(delivered), "--output", f"{NOWHERE}.skops"],
        "report": ["report", str(delivered), "--output", f"{NOWHERE}.html"],
        "experiment": ["experiment", "scaling", "--quick", "--output", NOWHERE],
    }
    assert "/proc" in refused(*calls[verb])["what"]


def test_a_plan_is_not_rehearsed_for_a_share_that_cannot_be(idle: Callable[..., None]) -> None:
    idle("hushbid.plan.with_data.rehearsed")
    assert "--wanted is 2" in refused("plan", DIGITS, "--wanted", "2")["what"]


@pytest.mark.parametrize("check", [check_file_place, check_new_file, check_directory_place])
def test_a_name_that_no_folder_takes_is_refused_beforehand(
    check: Callable[[Path], None], tmp_path: Path
) -> None:
    """It was a system error, which reads like a bug."""
    with pytest.raises(ConfigError, match=r"cannot be reached: File name too long"):
        check(tmp_path / ("x" * 300))
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(ConfigError):
        check(loop / "x")


def test_an_epsilon_that_protects_nobody_is_warned_of() -> None:
    sized = ["--owners", "5", "--points", "50", "--validation", "60"]
    told = {
        epsilon: CliRunner().invoke(app, ["plan", *sized, "--epsilon", epsilon, "--quiet"]).stderr
        for epsilon in ("20", "25")
    }
    assert told["20"] == ""
    assert told["25"].startswith("WARNING: ε = 25 does not protect the consumer's validation set")


@pytest.mark.parametrize("ratio", [0.794, 0.8, 0.806, 1.149, 1.151, 1.194, 1.2, 1.249])
def test_ratios_that_are_printed_alike_are_called_alike(ratio: float) -> None:
    def quality(mmd2: float) -> Quality:
        return Quality(mmd2=mmd2, mmd2_test=None, accuracy=None, effective_points=50.0)

    standing = Standing(quality(0.01 * ratio), quality(0.01), weighted=False, alike=False)
    printed = float(standing.sentence().rpartition(" is ")[2].split()[0])
    assert standing.rank == ("closer" if printed <= 0.8 else "farther" if printed >= 1.2 else "alike")


def test_articles_go_by_the_noun() -> None:
    nouns = ("integer", "number", "owner", "curator", "award", "")
    assert [an(noun) for noun in nouns] == [
        "an integer",
        "a number",
        "an owner",
        "a curator",
        "an award",
        "a ",
    ]
