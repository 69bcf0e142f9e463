"""The points for sale, and whether they leave a choice."""

from __future__ import annotations

from typing import Any

import pytest

from hushbid.plan.supply import all_sold
from tests.simulation.tender_market import session

ROWS = {"owner-0": 100, "owner-1": 100, "owner-2": 100}
PRICES = {"owner-0": 1.0, "owner-1": 2.0, "owner-2": 3.0}


@pytest.mark.parametrize(
    ("points", "wishes", "sold"),
    [
        (299, None, None),
        (300, None, 300),
        (400, None, 300),
        (220, {"caps": {"owner-0": 20}}, 220),  # the cap leaves no choice
        (219, {"caps": {"owner-0": 20}}, None),
        (300, {"prices": PRICES, "budget": 600}, 300),
        (300, {"prices": PRICES, "budget": 599}, None),  # not all can be paid for
    ],
)
def test_all_that_is_for_sale_is_bought_where_nothing_can_be_left_out(
    points: int, wishes: dict[str, Any] | None, sold: int | None
) -> None:
    opened = session(points=points, submission=points, wishes=wishes)
    assert all_sold(opened.file, ROWS) == sold
