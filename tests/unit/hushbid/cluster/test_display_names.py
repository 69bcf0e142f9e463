"""Owners' display names: a roster's name for each, and what is shown in its place."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushbid.cluster.display_names import handles_of, shown_name
from hushbid.cluster.file import ClusterFile
from hushbid.protocol.config.loading import validated
from hushbid.protocol.config.section import is_party_name
from hushbid.protocol.errors import ConfigError


@pytest.mark.parametrize(
    ("name", "handle"),
    [
        ("north", "north"),
        ("owner-1", "owner-1"),
        ("North", "north"),
        ("Site-1", "site-1"),
        ("Hôpital Nord", "hopital-nord"),
        ("Große Straße 7", "grosse-strasse-7"),
        ("../north", "north"),
        ("Øst & Væst", "ost-vaest"),
        ("A" * 120, "a" * 48),
        ("病院", "owner-616b0d57"),
    ],
)
def test_a_handle_is_made_of_the_name(name: str, handle: str) -> None:
    assert handles_of([name]) == {name: handle}


def test_names_that_would_have_one_handle_are_told_apart_whatever_their_order() -> None:
    names = ["North", "north", "Nörth", "NORTH"]
    found = handles_of(names)
    assert found["north"] == "north", "a name that a roster can have is its own"
    assert len({*found.values()}) == 4
    for order in permutations(names):
        assert handles_of(order) == found


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("", "is empty"),
        (" ", "is empty"),
        ("x" * 201, "longer than 200"),
        ("Consumer", "an owner cannot be named consumer"),
        ("curator", "an owner cannot be named consumer or curator"),
    ],
)
def test_a_name_that_tells_nobody_apart_is_refused(name: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        handles_of(["north", name])


@given(st.lists(st.text(min_size=1, max_size=60), unique=True, max_size=8))
def test_every_name_has_a_handle_that_a_roster_takes(names: list[str]) -> None:
    usable = [name for name in names if name.strip() and name.strip().lower() not in ("consumer", "curator")]
    found = handles_of(usable)
    assert [*found] == usable
    assert len({*found.values()}) == len(usable)
    assert all(is_party_name(handle) and handle not in ("consumer", "curator") for handle in found.values())


@pytest.mark.parametrize("display", ["Hôpital Nord", "north"])
def test_two_owners_that_would_be_shown_alike_are_refused(display: str) -> None:
    """A report by names would have lost one of them."""
    owners = {
        "north": {"data": "n.csv"} | ({} if display == "north" else {"display": display}),
        "south": {"data": "s.csv", "display": display},
    }
    values = {
        "session": {"name": "alike", "points": 10},
        "features": {"gamma": 1.0},
        "target": {"mechanism": "filtered-gaussian", "epsilon": 1.0, "neighbours": "substitute-one"},
        "acquisition": {"rule": "tender"},
        "consumer": {"validation": "v.csv", "seed_points": 5},
        "owners": owners,
    }
    with pytest.raises(ConfigError, match=f"the owners north and south are both shown as '{display}'"):
        validated(ClusterFile, values, where="cluster.toml")
    owners["south"]["display"] = "Süd"
    validated(ClusterFile, values, where="cluster.toml")
    for taken in ("Curator", "consumer", "  "):
        owners["south"]["display"] = taken
        with pytest.raises(ConfigError, match="the owner south cannot be shown as"):
            validated(ClusterFile, values, where="cluster.toml")


def test_what_is_shown_acts_on_no_terminal() -> None:
    display = {"north": "Nord\x1b[31m\n\u202eevil"}
    assert shown_name("north", display) == "Nord\\x1b[31m\\n\\u202eevil"
    assert shown_name("south", display) == "south"
