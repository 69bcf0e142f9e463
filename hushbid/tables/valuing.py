"""What each owner's delivered points are worth, for `hushbid value`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from hushbid.consumer.valuation import value
from hushbid.protocol.errors import DataError
from hushbid.tables.delivery import Delivery
from hushbid.tables.options import ValueOptions

__all__ = ["MOST_POINTS", "MOST_SELLERS", "value_owners"]

MOST_POINTS: Final = 16_000
"""As many as are weighed: kernel values of all pairs are computed."""
MOST_SELLERS: Final = 2_000
"""Sums of every pair of them are held in memory."""


def value_owners(options: ValueOptions) -> dict[str, Any]:
    """What each owner's delivered points are worth to the consumer (`hushbid.consumer.valuation`).

    Returns:
        ``total``, ``owners`` (name → `OwnerValue`), ``orders`` that were drawn, ``points``, ``gamma``,
        ``from_seed_set``, and what was changed of tables, ``outside``.

    Raises:
        ConfigError: An option that cannot hold; or γ and the bounds are nowhere.
        DataError: A file that cannot be read, a delivery that does not say who sold what, or one too large.
    """
    columns = (options.features, options.label)
    bought = Delivery.read(options.delivered, options.session, columns, options.outside)
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
    width = bought.gamma(options.gamma)
    _, wanted = bought.table(options.validation, label_gaps=True)
    seeds = None if options.seed_set is None else bought.table(options.seed_set, as_it_is=True)[1]
    pairs = options.orders // 2
    found = value(bought.points, sellers, wanted, seeds, width, pairs=pairs, seed=options.seed)
    return {
        "total": found.total,
        "owners": {owner: asdict(each) for owner, each in found.owners.items()},
        "orders": found.orders,
        "points": len(sellers),
        "gamma": width,
        "from_seed_set": seeds is not None,
        "outside": bought.outside,
    }
