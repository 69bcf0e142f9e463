"""What each owner's delivered points are worth, for `hushbid value`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from pydantic import Field
from pydantic.dataclasses import dataclass as figures

from hushbid.consumer.valuation import OwnerValue, value
from hushbid.protocol.data.dataset import Changes
from hushbid.protocol.errors import DataError
from hushbid.protocol.figures import Figures
from hushbid.tables.delivery import Delivery
from hushbid.tables.options import ValueOptions

__all__ = ["MOST_POINTS", "MOST_SELLERS", "Worth", "value_owners"]

MOST_POINTS: Final = 16_000
"""As many as are weighed: kernel values of all pairs are computed."""
MOST_SELLERS: Final = 2_000
"""Sums of every pair of them are held in memory."""


@figures(frozen=True, kw_only=True)
class Worth(Figures):
    """What owners' points are worth.

    Attributes:
        total: What all of them gained.
        owners: Each owner that sold a point, the largest gain first, as the consumer's result has them.
        orders: How many orders were drawn for the Shapley values; 0: all coalitions were evaluated.
        points: Points that were bought.
        gamma: γ.
        from_seed_set: Whether gains count from the seed set, as those of the consumer's result; else from
            nothing.
        outside: What was changed of tables, by their files' names.
    """

    total: float
    owners: Mapping[str, OwnerValue]
    orders: int
    points: int
    gamma: float
    from_seed_set: bool
    outside: Mapping[str, Changes] = Field(default_factory=dict)


def value_owners(options: ValueOptions) -> Worth:
    """What each owner's delivered points are worth to the consumer (`hushbid.consumer.valuation`).

    Raises:
        ConfigError: An option that cannot hold; or γ and the bounds are nowhere.
        DataError: A file that cannot be read, a delivery that does not say who sold what, or one too large.
    """
    columns = options.columns or (options.features, options.label)
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
    # Labels of seeds count for nothing, and a drawn set has none. As it is public, all of it has to fit.
    bare = replace(bought, columns=replace(bought.columns, label=None, identifier=None, outside="refuse"))
    seeds = None if options.seed_set is None else bare.table(options.seed_set)[1]
    pairs = options.orders // 2
    found = value(bought.points, sellers, wanted, seeds, width, pairs=pairs, seed=options.seed)
    return Worth(
        total=found.total,
        owners=dict(sorted(found.owners.items(), key=lambda item: -item[1].gain)),
        orders=found.orders,
        points=len(sellers),
        gamma=width,
        from_seed_set=seeds is not None,
        outside=bought.outside,
    )
