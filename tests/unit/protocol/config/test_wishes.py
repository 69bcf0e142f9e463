"""``[wishes]`` of a session file: its values, its refusals, and what the digest covers."""

from __future__ import annotations

from typing import Any

import pytest

from hushbid.protocol.config.meaning import encoded_meaning
from hushbid.protocol.config.wishes import REFUSED
from hushbid.protocol.errors import ConfigError, ExitCode
from hushbid.protocol.session.session import open_session
from tests.support.session_files import load

EVERY = {"alpha": 1.0, "beta": 2.0, "gamma": 2.5}
PRICES: dict[str, Any] = {"wishes.prices": EVERY}


def test_a_session_without_wishes_means_what_it_meant() -> None:
    file = load({})
    assert file.wishes is None
    assert b"wishes" not in encoded_meaning(file.in_force(), file.owners)
    assert "wishes" not in file.in_force()
    assert open_session(file).prices is None
    assert all(open_session(file).turns.has(owner, 1) for owner in file.owners)


def test_every_wish_is_in_the_digest_however_a_number_is_written() -> None:
    made = [
        load(PRICES),
        load({"wishes.prices": EVERY | {"beta": 2.25}}),
        load(PRICES | {"wishes.budget": 250.0}),
        load({"wishes.caps": {"alpha": 50}}),
        load({"wishes.caps": {"alpha": 52}}),
        load(PRICES | {"wishes.caps": {"alpha": 50}}),
        load({}),
    ]
    assert len({file.digest() for file in made}) == len(made)
    assert load({"wishes.prices": EVERY | {"alpha": 1, "beta": 2}}).digest() == made[0].digest()


def test_a_point_is_bought_as_often_as_it_is_held_where_owners_are_treated_differently() -> None:
    assert load({}).distinct
    assert not load(PRICES).distinct
    assert not load({"wishes.caps": {"alpha": 50}}).distinct
    assert load({"wishes.prices": dict.fromkeys(EVERY, 3.0)}).distinct, "prices that choose nothing"


UNREADABLE: dict[str, tuple[dict[str, Any], str]] = {
    "only a budget": ({"wishes.budget": 5.0}, "it has neither prices nor caps"),
    "a budget of caps": ({"wishes.caps": {"alpha": 50}, "wishes.budget": 5.0}, "a budget needs prices"),
    "five places": ({"wishes.prices": EVERY | {"alpha": 0.12345}}, "alpha: has more than four places"),
    "nothing": ({"wishes.prices": EVERY | {"alpha": 0.0}}, "wishes.prices.alpha"),
    "less than nothing": ({"wishes.prices": EVERY | {"alpha": -1.0}}, "wishes.prices.alpha"),
    "no points": ({"wishes.caps": {"alpha": 0}}, "wishes.caps.alpha"),
    "a slip": ({"wishes.prises": EVERY}, "wishes.prises: unknown key, did you mean 'prices'?"),
    **{name: (PRICES | {f"wishes.{name}": 5}, f"no {name}: {why}") for name, why in REFUSED.items()},
}
IMPOSSIBLE: dict[str, tuple[dict[str, Any], str]] = {
    "an owner too few": ({"wishes.prices": {"alpha": 1.0, "beta": 2.0}}, "no price of gamma"),
    "an owner too many": ({"wishes.prices": EVERY | {"delta": 2.0}}, "not on the roster: delta"),
    "a cap of nobody": ({"wishes.caps": {"delta": 50}}, "not on the roster: delta"),
    "no turn": ({"wishes.caps": {"alpha": 1}}, "alpha would have no turn at all"),
    "too few owners": ({"wishes.caps": {"alpha": 50}, "session.min_owners": 3}, "some would have 2 owners"),
    "nobody": ({"wishes.caps": dict.fromkeys(EVERY, 32)}, "some would have 0 owners"),
    "copies, prices": (PRICES | {"session.distinct": True}, "session.distinct is true and wishes.prices"),
    "copies, caps": (
        {"wishes.caps": {"alpha": 50}, "session.distinct": True},
        "session.distinct is true and wishes.caps",
    ),
    "too dear": (PRICES | {"wishes.budget": 249.9999}, "100 points can cost 250."),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_what_a_file_cannot_say_is_refused_when_it_is_read(case: str) -> None:
    changes, says = UNREADABLE[case]
    with pytest.raises(ConfigError) as refused:
        load(changes)
    assert says in refused.value.what
    assert refused.value.exit_code is ExitCode.USAGE


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_what_a_session_cannot_have_is_refused_when_it_is_opened(case: str) -> None:
    changes, says = IMPOSSIBLE[case]
    with pytest.raises(ConfigError) as refused:
        open_session(load(changes))
    assert says in refused.value.what
    assert refused.value.advice


def test_a_budget_holds_for_the_dearest_points_that_caps_allow() -> None:
    open_session(load(PRICES | {"wishes.budget": 250.0}))
    capped = PRICES | {"wishes.caps": {"gamma": 10}}
    open_session(load(capped | {"wishes.budget": 205.0}))
    with pytest.raises(ConfigError, match=r"can cost 205\."):
        open_session(load(capped | {"wishes.budget": 204.9999}))
