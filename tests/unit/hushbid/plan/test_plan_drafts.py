"""Plans of unfinished session files, and of impossible sessions."""

from __future__ import annotations

from pathlib import Path

import pytest

from hushbid.plan.flags import PlanFlags
from hushbid.plan.planning import plan_session
from hushbid.plan.setting import plan_setting
from hushbid.protocol.errors import ConfigError
from tests.unit.hushbid.plan.test_plan import session_file


def test_a_roster_that_is_empty_yet_needs_a_number_of_owners(tmp_path: Path) -> None:
    table = 'mechanism = "gaussian"\nsigma = 3.0'
    path = session_file(tmp_path, table, table)
    path.write_text(path.read_text().replace('north = ""', "").replace('south = ""', ""))
    with pytest.raises(ConfigError, match="no owner is on its roster yet") as refused:
        plan_setting(path, PlanFlags(validation=60))
    assert "--owners" in refused.value.advice
    assert len(plan_setting(path, PlanFlags(validation=60, owners=3)).file.roster.owners) == 3


def test_a_plan_of_a_refused_rule_says_why_and_ends_well() -> None:
    """It ended with the rule's own error."""
    plan = plan_session(
        owners=100, points=50, validation=60, epsilon="consumer=1,owners=1,asks=1", rule="logistic"
    )
    assert (plan["verdict"], plan["verdict_by"], plan["privacy"]) == (
        "hopeless",
        "the session's settings",
        [],
    )
