"""The files that a consumer's options result in: with its private file, and with an invitation alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w

from hushbid.consumer.role import ConsumerRole
from hushbid.protocol.config.invitation import invitation
from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.errors import ConfigError
from tests.support.preflight_party import KEYS, PRIVATE
from tests.support.session_files import changed


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with invitations for two parties, and data of the consumer's."""
    roster: dict[str, Any] = {name: pair.public.text for name, pair in KEYS.items()}
    roster["owners"] = {"north": roster.pop("north")}
    network = {"address": "tcp://127.0.0.1:5790"}
    session = SessionFile.model_validate(changed(PRIVATE) | {"network": network, "roster": roster})
    for name in ("consumer", "north"):
        made = invitation(session, name, KEYS["curator"])
        (tmp_path / f"{name}.invitation").write_text(tomli_w.dumps(made), encoding="utf-8")
    for name in ("validation", "seed", "test"):
        np.savez(tmp_path / f"{name}.npz", features=np.random.default_rng(3).random((20, 3)))
    return tmp_path


def invited(place: Path, **options: Any) -> ConsumerRole:
    return ConsumerRole(invitation=place / "consumer.invitation", **options)


def test_an_invited_consumer_needs_no_private_file(place: Path) -> None:
    session, file = invited(
        place,
        validation=place / "validation.npz",
        seed_set=place / "seed.npz",
        test=place / "test.npz",
        features="a,b,c",
        label="kind",
        outside="drop",
        budget_epsilon=2.5,
    ).files()
    assert file.key == place / "consumer.key"
    assert file.state == place / f"consumer-{session.session.name}"
    assert (file.validation, file.seed_set) == (place / "validation.npz", place / "seed.npz")
    assert (file.test, file.seed_points) == (place / "test.npz", None)
    assert (file.columns.features, file.columns.label) == (["a", "b", "c"], "kind")
    assert file.columns.outside == "drop"
    assert file.budget is not None
    assert file.budget.epsilon == 2.5


def test_its_seed_set_may_be_drawn(place: Path) -> None:
    _, file = invited(place, validation=place / "validation.npz", seed_points=150).files()
    assert (file.seed_set, file.seed_points) == (None, 150)


def test_tables_are_kept_in_its_state(place: Path) -> None:
    table = [{"a": 0.5, "b": 0.5, "c": 0.5}]
    _, file = invited(place, validation=table, seed_set=table, ledger=place / "ledger").files()
    assert file.validation == file.state / "validation.parquet"
    assert file.seed_set == file.state / "seed_set.parquet"


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({}, "needs --validation and a seed set, or --config"),
        ({"validation": "validation.npz"}, "a seed set is missing"),
        ({"validation": "validation.npz", "seed_set": "seed.npz", "seed_points": 9}, "leave one of them out"),
        ({"validation": "validation.npz", "seed_points": 0}, "greater than or equal to 1"),
        ({"validation": "validation.npz", "seed_points": 9, "budget_epsilon": -1.0}, "greater than 0"),
    ],
)
def test_what_lacks_or_cannot_be_is_said(place: Path, options: dict[str, Any], why: str) -> None:
    given = {name: place / value if isinstance(value, str) else value for name, value in options.items()}
    with pytest.raises(ConfigError, match=why):
        invited(place, **given).files()


def test_an_invitation_of_another_party_and_none_are_refused(place: Path) -> None:
    with pytest.raises(ConfigError, match="is for north") as caught:
        ConsumerRole(invitation=place / "north.invitation", validation=place / "validation.npz").files()
    assert "hushbid owner" in caught.value.advice
    (place / "session.toml").write_text(tomli_w.dumps(changed(PRIVATE)), encoding="utf-8")
    with pytest.raises(ConfigError, match="Without an invitation the consumer needs --config"):
        ConsumerRole(session=place / "session.toml", validation=place / "validation.npz").files()


@pytest.mark.parametrize("written", [{"seed_points": 40}, {"seed_set": "seed.npz"}])
def test_an_option_s_seed_set_goes_before_the_file_s(place: Path, written: dict[str, Any]) -> None:
    config = place / "consumer.toml"
    own = {"key": "k", "state": "state", "validation": "validation.npz"}
    config.write_text(tomli_w.dumps(own | written), encoding="utf-8")
    _, named = invited(place, config=config, seed_set=place / "test.npz").files()
    assert (named.seed_set, named.seed_points) == (place / "test.npz", None)
    _, drawn = invited(place, config=config, seed_points=7).files()
    assert (drawn.seed_set, drawn.seed_points) == (None, 7)
    with pytest.raises(ConfigError, match="leave one of them out"):
        invited(place, config=config, seed_set=place / "test.npz", seed_points=7).files()
