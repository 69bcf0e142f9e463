"""The number of the owners' points for sale, and whether that leaves a choice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.session.wishes import over_budget

__all__ = ["all_sold", "offer"]


def all_sold(file: SessionFile, rows: Mapping[str, int]) -> int | None:
    """The number of points for sale, if every one of them is bought; None if there is something to choose.

    Args:
        rows: Number of points of each owner.
    """
    wishes = file.wishes
    caps = {} if wishes is None or not file.herds else wishes.caps
    for_sale = Counter({owner: min(count, caps.get(owner, count)) for owner, count in rows.items()})
    if for_sale.total() > file.session.points or over_budget(file, for_sale):
        return None
    return for_sale.total()


def offer(available: int, rows: Mapping[str, int]) -> str:
    """The owners' points together, in words, and how many of them are for sale."""
    have = "have" if available == sum(rows.values()) else "may sell"
    return f"The owners {have} {available:,} points"
