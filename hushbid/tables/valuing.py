"""The worth of each owner's delivered points, for `hushbid value`."""

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
from hushbid.protocol.runtime.blas_threads import one_blas_thread
from hushbid.tables.delivery import DeliveredTables
from hushbid.tables.options import ValueOptions

__all__ = ["MOST_POINTS", "MOST_SELLERS", "Worth", "value_owners"]

MOST_POINTS: Final = 16_000
"""Most points, as in weighing: kernel values of all pairs are computed."""
MOST_SELLERS: Final = 2_000
"""Most owners: sums over every pair of them are held in memory."""


@figures(frozen=True, kw_only=True)
class Worth(Figures):
    """The worth of the owners' points.

    Attributes:
        total: The gain of all of them.
        owners: Each owner that sold a point, the largest gain first, as the consumer's result has them.
        orders: Number of drawn orders for the Shapley values; 0: all coalitions were evaluated.
        points: Points that were bought.
        from_seed_set: Whether gains count from the seed set, as those of the consumer's result; else from
            nothing.
        outside: Changes to tables, by their files' names.
    """

    total: float
    owners: Mapping[str, OwnerValue]
    orders: int
    points: int
    gamma: float
    from_seed_set: bool
    outside: Mapping[str, Changes] = Field(default_factory=dict)


@one_blas_thread()
def value_owners(options: ValueOptions) -> Worth:
    """The worth of each owner's delivered points to the consumer (`hushbid.consumer.valuation`).

    Raises:
        ConfigError: An option is invalid; or γ and the bounds are missing.
        DataError: A file cannot be read, or a delivery does not say who sold what, or is too large.
    """
    columns = options.columns or (options.features, options.label)
    bought = DeliveredTables.read(options.delivered, options.session, columns, options.outside)
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
                f"{name} has {count} {what}, and values are computed for at most {most}.",
                advice="Value a part of the points.",
            )
    width = bought.gamma(options.gamma)
    _, wanted = bought.table(options.validation, label_gaps=True)
    # Labels of seeds count for nothing, and a drawn set has none. All of the set must fit, as it is public.
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
