"""docs/plan.md names every field of a plan, and has the rule of thumb of the code."""

from __future__ import annotations

import re
from typing import Any

from hushbid.plan import prediction
from hushbid.plan.flags import PlanFlags
from hushbid.plan.result import Plan, make_plan
from hushbid.plan.setting import plan_setting
from hushbid.plan.tables import ASSUMED
from tests.docs.pages import Page
from tests.unit.hushbid.plan.test_plan import PUBLISHED, SPEED, setting

PAGE = Page("docs/plan.md")


def names(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set(value) | {name for item in value.values() for name in names(item)}
    return {name for item in value for name in names(item)} if isinstance(value, list) else set()


def test_the_page_explains_every_name_and_a_plan_is_read_back() -> None:
    drowned = setting(validation=20, epsilon_owners=0.1, epsilon_consumer=0.1)
    plans = [
        make_plan(plan_setting(PUBLISHED, PlanFlags()), SPEED, cores=2),
        make_plan(drowned, SPEED, cores=2, wanted=0.1, theory=True),
        make_plan(setting(epsilon_owners=None), SPEED, cores=2),
    ]
    explained = set(re.findall(r"`([\w-]+)`", PAGE.text))
    for plan in plans:
        assert names(plan.as_json()) - explained == set()
        assert Plan.from_json(plan.as_json()) == plan


def test_the_page_has_the_rule_of_thumb_of_the_code() -> None:
    few = f"{prediction.FEW_ROUNDS:g}·U/T^{prediction.FEWER_ROUNDS:g}"
    cap = f"x/(1 + x/({prediction.LARGEST_FLOOR:g}·U))"
    for said in (
        f"floor + {prediction.SPOILT:g}·U·h/(1 + h)",
        f"h = (E²/(d·{140 * prediction.HALFWAY:g}/140))^{prediction.STEEPNESS:g}",
        f"E² = E_target² + {prediction.SUMMARY_WEIGHT:g}·E_summary²",
        f"floor = {prediction.FLOOR:g}·U + {cap} + {few}",
        ", ".join(f"`{name}` {ASSUMED[name]:g}" for name in ("spread", "drift", "mmd2_uniform")),
    ):
        assert said in PAGE.text, said
