"""How many points of the owners are for sale, and whether that leaves a choice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.space.prices import bill

__all__ = ["all_sold"]


def all_sold(file: SessionFile, rows: Mapping[str, int]) -> int | None:
    """The number of points for sale, if every one of them is bought; None if there is something to choose.

    Args:
        rows: How many points each owner has.
    """
    wishes = file.wishes
    caps = {} if wishes is None or not file.herds else wishes.caps
    for_sale = Counter({owner: min(count, caps.get(owner, count)) for owner, count in rows.items()})
    if for_sale.total() > file.session.points:
        return None
    made = None if wishes is None else bill(wishes.prices, for_sale, wishes.budget)
    if made is not None and made["budget"] is not None and made["total"] > made["budget"]:
        return None
    return for_sale.total()
