"""Every configuration that is shipped makes a session, and protects whom it says that it protects."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hushbid.cluster.file import ClusterFile, open_cluster
from hushbid.protocol.config.loading import load_toml, validated
from hushbid.protocol.config.party import ConsumerFile, CuratorFile, OwnerFile
from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.crypto.sealing import content_bytes
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.runtime.keys import new_keypair
from hushbid.protocol.runtime.party import check_durability
from hushbid.protocol.session.session import Session, objections, open_session
from hushbid.running.simulate import simulate
from tests.conftest import ROOT

CONFIGS = ROOT / "configs"
SEPARATE = CONFIGS / "separate"
CLUSTERS = sorted(path for path in CONFIGS.glob("*/*.toml") if path.parent != SEPARATE)
COLUMNS = {"digits": 64, "mnist": 784, "insurance": 56}
"""Of the demonstration datasets: docs/data.md."""
SECTIONS = ("session", "target", "summary", "acquisition", "noise")


def path_of(path: Path) -> str:
    return str(path.relative_to(CONFIGS))


def session_of(path: Path) -> Session:
    """The session of a cluster file, without its dataset."""
    file = load_toml(ClusterFile, path)
    assert file.dataset is not None
    given: dict[str, Any] = {section: getattr(file, section).model_dump() for section in SECTIONS}
    given["features"] = {"gamma": 1.0, "columns": COLUMNS[file.dataset.name]} | file.features
    owners = {f"owner-{number}": new_keypair().public.text for number in range(5)}
    given["roster"] = {
        "curator": new_keypair().public.text,
        "consumer": new_keypair().public.text,
        "owners": owners,
    }
    return open_session(validated(SessionFile, given, where=str(path)))


def separate_session(**changes: Any) -> Session:
    """The session between machines, once every party has a key."""
    values = tomllib.loads((SEPARATE / "session.toml").read_text(encoding="utf-8"))
    roster = values["roster"]
    roster |= {party: new_keypair().public.text for party in ("curator", "consumer")}
    roster["owners"] = {owner: new_keypair().public.text for owner in roster["owners"]}
    file = validated(SessionFile, values, where="session.toml")
    return open_session(file.model_copy(update=changes))


def test_every_configuration_is_there() -> None:
    assert {path_of(path) for path in CLUSTERS} == {
        "digits/cluster.toml",
        "digits/exact.toml",
        "digits/gaussian.toml",
        "digits/published.toml",
        "digits/race.toml",
        "digits/sealed.toml",
        "digits/subspace.toml",
        "insurance/cluster.toml",
        "insurance/private.toml",
        "mnist/cluster.toml",
        "mnist/private.toml",
    }


@pytest.mark.parametrize("path", CLUSTERS, ids=path_of)
def test_a_cluster_makes_a_session_that_may_run_on_this_machine(path: Path) -> None:
    session = session_of(path)
    check_durability(session, load_toml(ClusterFile, path).run.durability, listen="tcp://127.0.0.1:5790")


@pytest.mark.parametrize("path", CLUSTERS, ids=path_of)
def test_a_cluster_that_allows_less_than_privacy_is_one_that_needs_it(path: Path) -> None:
    session = session_of(path)
    assert session.file.session.allow_nonprivate is bool(objections(session))


@pytest.mark.parametrize(
    "session",
    [
        pytest.param(lambda: session_of(CONFIGS / "digits" / "cluster.toml"), id="digits/cluster"),
        pytest.param(lambda: session_of(CONFIGS / "digits" / "sealed.toml"), id="digits/sealed"),
        pytest.param(lambda: session_of(CONFIGS / "digits" / "gaussian.toml"), id="digits/gaussian"),
        pytest.param(lambda: session_of(CONFIGS / "digits" / "race.toml"), id="digits/race"),
        pytest.param(lambda: session_of(CONFIGS / "digits" / "subspace.toml"), id="digits/subspace"),
        pytest.param(lambda: session_of(CONFIGS / "mnist" / "private.toml"), id="mnist/private"),
        pytest.param(lambda: session_of(CONFIGS / "insurance" / "private.toml"), id="insurance/private"),
        pytest.param(separate_session, id="separate"),
    ],
)
def test_a_private_session_guarantees_the_epsilon_that_it_states(session: Any) -> None:
    opened = session()
    owners, consumer, _ = opened.privacy()
    stated = [(owners, opened.file.summary), (consumer, opened.file.target)]
    if opened.rule.herds:
        assert (owners.epsilon, owners.why) == (0.0, "")
        del stated[0]
    for statement, section in stated:
        assert statement.why == ""
        assert statement.noise == "secure"
        assert statement.epsilon <= section.parameters["epsilon"]
        assert statement.epsilon > 0.99 * section.parameters["epsilon"], "no noise is wasted"


@pytest.mark.parametrize(
    ("path", "dtype"),
    [
        ("digits/cluster.toml", "uint8"),
        ("digits/gaussian.toml", "uint8"),
        ("mnist/private.toml", "uint8"),
        ("insurance/private.toml", "float64"),
    ],
)
def test_the_points_of_a_dataset_fit_their_boxes(path: str, dtype: str) -> None:
    """With 32 bytes for the label, which takes 6 in these datasets."""
    session = session_of(CONFIGS / path)
    assert content_bytes(session.space.columns, dtype, 32) <= session.box_bytes


@pytest.mark.parametrize(
    ("path", "data", "model"),
    [
        ("mnist/private.toml", "mnist.npz", "GaussianNB"),
        ("insurance/private.toml", "allstate.csv.gz", "logistic"),
    ],
)
def test_a_private_cluster_procures_without_a_raw_point_for_the_curator(
    path: str, data: str, model: str, shared_data: Callable[[str], Path]
) -> None:
    # With the models that suit the datasets, trained 77 times, the test is of the models.
    few = ["session.points=20", "dataset.owner_points=200", f"consumer.model={model}"]
    result = simulate(open_cluster(CONFIGS / path, data=shared_data(data), settings=few))
    assert result.points_delivered == 20
    assert (result.points_accessed_curator, result.disputed) == (0, 0)


def test_the_session_between_machines_may_be_deployed() -> None:
    session = separate_session()
    address = session.file.network.address
    assert "127.0.0.1" not in address
    for name, kind in (("curator", CuratorFile), ("owner", OwnerFile), ("consumer", ConsumerFile)):
        durability = load_toml(kind, SEPARATE / f"{name}.toml").durability
        check_durability(session, durability, listen=address)
    with pytest.raises(ConfigError, match="fsync"):
        check_durability(session, "flush", listen=address)


def test_the_party_files_between_machines_have_a_budget_that_the_session_fits_into() -> None:
    session = separate_session()
    owner = load_toml(OwnerFile, SEPARATE / "owner.toml")
    consumer = load_toml(ConsumerFile, SEPARATE / "consumer.toml")
    for file, statement in zip((owner, consumer), session.privacy()[:2], strict=True):
        assert file.budget is not None
        assert statement.epsilon is not None
        assert (statement.epsilon, statement.delta) <= (file.budget.epsilon, file.budget.delta)


def test_the_readme_of_the_configurations_names_each() -> None:
    page = (CONFIGS / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `([\w/.-]+)` \|", page, re.M)) == {path_of(path) for path in CLUSTERS}
