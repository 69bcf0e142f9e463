"""`hushbid plan --epsilon`: one option for every side's ε, and the former three beside it."""

from __future__ import annotations

from typing import Any

import pytest

from hushbid.plan.flags import PlanFlags
from hushbid.plan.planning import plan_session
from hushbid.plan.tables import whole_tables, with_flags
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.limits import MAX_HERDED


def epsilons(**given: Any) -> dict[str, Any]:
    """The ε of each table of a session that is planned without a file."""
    flags = PlanFlags(owners=5, points=50, **given)
    tables = with_flags(whole_tables(flags), flags)
    found = {name: tables[name].get("epsilon") for name in ("target", "summary", "acquisition")}
    return {**found, "rule": tables["acquisition"]["rule"]}


def test_one_number_is_of_the_sides_that_the_rule_charges() -> None:
    assert epsilons(epsilon="2") == epsilons(epsilon=2.0) == epsilons(epsilon_consumer=2.0)
    assert epsilons(epsilon=2.0)["rule"] == "tender"
    sealed = epsilons(epsilon=2.0, rule="sealed")
    assert sealed == epsilons(epsilon_consumer=2.0, epsilon_owners=2.0, rule="sealed")
    assert (sealed["target"], sealed["summary"]) == (2.0, 2.0)


def test_sides_by_name_are_as_their_former_options() -> None:
    named = epsilons(epsilon="consumer=1, owners=3")
    assert named == epsilons(epsilon_consumer=1.0, epsilon_owners=3.0)
    assert (named["target"], named["summary"], named["rule"]) == (1.0, 3.0, "sealed")
    asked = epsilons(epsilon="consumer=1,owners=3,asks=0.5", rule="logistic")
    assert asked["acquisition"] == 0.5


@pytest.mark.parametrize("wrong", ["much", "consumer=", "buyer=1", "consumer=1,consumer=2", "", "1,2", "=1"])
def test_what_names_no_side_is_refused_with_what_can_be_given(wrong: str) -> None:
    with pytest.raises(ConfigError) as refused:
        epsilons(epsilon=wrong)
    assert "consumer=1,owners=3" in refused.value.advice


def test_one_side_twice_is_refused() -> None:
    for epsilon in (1.0, "consumer=1"):
        with pytest.raises(ConfigError, match="The ε of consumer is given twice"):
            epsilons(epsilon=epsilon, epsilon_consumer=2.0)


def test_what_a_rule_asks_by_is_beside_the_number_of_all_sides() -> None:
    """`--epsilon 1 --epsilon-asks 0.5` was refused as the same ε twice."""
    both = epsilons(epsilon=1.0, epsilon_asks=0.5, rule="logistic")
    assert both == epsilons(epsilon="consumer=1,owners=1,asks=0.5", rule="logistic")
    with pytest.raises(ConfigError, match="The ε of asks is given twice"):
        epsilons(epsilon="consumer=1,owners=1,asks=0.5", epsilon_asks=0.5, rule="logistic")


@pytest.mark.parametrize(
    ("points", "flags", "rule", "told"),
    [
        (MAX_HERDED, {"epsilon": "1"}, "tender", False),
        (MAX_HERDED + 1, {"epsilon": "1"}, "sealed", True),
        (MAX_HERDED + 1, {"epsilon": "consumer=1,owners=3"}, "sealed", False),
        (MAX_HERDED + 1, {"epsilon": "1", "rule": "sealed"}, "sealed", False),
    ],
    ids=["tender", "too many", "asked for rounds", "named"],
)
def test_rounds_that_nobody_asked_for_are_said(
    points: int, flags: dict[str, Any], rule: str, told: bool
) -> None:
    said: list[str] = []
    plan = plan_session(owners=5, points=points, validation=380, say=said.append, **flags)
    assert plan.rule == rule
    lines = [line for line in said if "a tender chooses 16,384 at most: the rule is sealed" in line]
    assert len(lines) == told
