"""What `hushbid value` does: read delivered points, and work out what each owner's are worth."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from consumer.valuation import value
from hushbid.tables.delivery import Columns, Delivery
from protocol.errors import ConfigError, DataError

__all__ = ["MOST_POINTS", "MOST_SELLERS", "value_owners"]

MOST_POINTS: Final = 16_000
"""As many as are weighed; kernel values of all pairs are worked out."""
MOST_SELLERS: Final = 2_000
"""Sums of every two of them are held."""


def value_owners(
    delivered: Path | str,
    validation: Path | str,
    *,
    seed_set: Path | str | None = None,
    columns: Columns = (None, None),
    session: Path | str | None = None,
    gamma: float | None = None,
    orders: int = 2_000,
    seed: int = 0,
) -> dict[str, Any]:
    """What each owner's delivered points are worth to the consumer (`consumer.valuation`).

    Args:
        delivered: The consumer's ``delivered.npz``.
        validation: D_v, in any format that parties read.
        seed_set: D_init, from which values count; None: from nothing.
        columns: Feature columns (as in ``a,b,c``) and the label's, of `validation` and `seed_set`.
        session: The session file, by whose ``[[columns]]``, if any, tables are read.
        gamma: γ; None: the session's.
        orders: Of owners that are drawn where many sold, at least 4; half of them, each with its reverse.
        seed: Of the draw.

    Returns:
        ``total``, ``owners`` (name → `OwnerValue`), ``orders`` that were drawn, ``points``, ``gamma`` and
        ``from_seed_set``.

    Raises:
        ConfigError: An option that cannot hold; or γ and the bounds are nowhere.
        DataError: A file that cannot be read, a delivery that does not say who sold what, or one too large.
    """
    if orders < 4:
        raise ConfigError(f"{orders} orders of owners have no error to tell.", advice="Give at least 4.")
    bought = Delivery.read(delivered, session, columns)
    name = bought.path.name
    if "owners" not in bought.arrays:
        raise DataError(f"{name} does not say who sold which point.", advice="Give a whole delivery.")
    sellers = [str(owner) for owner in bought.arrays["owners"]]
    for count, most, what in (
        (len(sellers), MOST_POINTS, "points"),
        (len(set(sellers)), MOST_SELLERS, "owners that sold"),
    ):
        if count > most:
            raise DataError(
                f"{name} has {count} {what}, and values are worked out for {most} at most.",
                advice="Value a part of the points.",
            )
    width = bought.gamma(gamma)
    _, wanted = bought.table(validation)
    seeds = None if seed_set is None else bought.table(seed_set)[1]
    found = value(bought.points, sellers, wanted, seeds, width, pairs=orders // 2, seed=seed)
    return {
        "total": found.total,
        "owners": {owner: asdict(each) for owner, each in found.owners.items()},
        "orders": found.orders,
        "points": len(sellers),
        "gamma": width,
        "from_seed_set": seeds is not None,
    }
