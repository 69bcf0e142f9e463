"""``[wishes]``: the consumer's prices and its limit on purchases per owner. All of it is public."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import (
    AfterValidator,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from hushbid.protocol import ranges
from hushbid.protocol.config.section import PartyName, Section
from hushbid.protocol.space.prices import MAX_BUDGET, MAX_PRICE, in_units

__all__ = ["REFUSED", "WishesSection"]

REFUSED: Final[Mapping[str, str]] = {
    "counted_caps": (
        "a cap that counts what was bought and then drops the owner makes who takes part depend on data, "
        "so that one record can change many points. `caps` gives an owner rounds instead, by public numbers"
    ),
    "stop_at_budget": (
        "a purchase that ends when its money is spent makes the number of points depend on data, and the "
        "released mean divides by a public one. `budget` is compared beforehand with the most that the "
        "points can cost"
    ),
    "balance": (
        "a balance over labels counts what was bought, so that one record can change many points. Give "
        "labels a part in the choice ([labels]), or weigh what was delivered: `hushbid weigh --balance`"
    ),
}
"""Wishes that would break a guarantee, and why; docs/privacy.md §3 lists the cases."""


def _whole_units(amount: float) -> float:
    in_units(amount)
    return amount


Price = Annotated[float, Field(gt=0, le=MAX_PRICE, allow_inf_nan=False), AfterValidator(_whole_units)]
Amount = Annotated[float, Field(gt=0, le=MAX_BUDGET, allow_inf_nan=False), AfterValidator(_whole_units)]


class WishesSection(Section):
    """``[wishes]``: prices and caps of owners. If present, it is in the session's digest."""

    prices: dict[PartyName, Price] = Field(default_factory=dict)
    """Price of a point, by owner; either all owners have one or none does."""
    budget: Amount | None = None
    """The most that all points together may cost, checked before the session; None: no limit."""
    caps: dict[PartyName, ranges.Points] = Field(default_factory=dict)
    """Most points bought from an owner, enforced through its turns (`hushbid.protocol.session.turns`); other
    owners have no cap.
    """

    @model_validator(mode="before")
    @classmethod
    def _keeps_every_guarantee(cls, values: Any) -> Any:
        for name, why in REFUSED.items() if isinstance(values, Mapping) else ():
            if name in values:
                raise ValueError(f"there is no {name}: {why}")
        return values

    @model_validator(mode="after")
    def _says_something(self) -> WishesSection:
        if not self.prices and not self.caps:
            raise ValueError("it has neither prices nor caps: leave the table out")
        if self.budget is not None and not self.prices:
            raise ValueError("a budget needs prices to be compared with")
        return self

    @model_serializer(mode="wrap")
    def _as_given(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in handler(self).items() if value}

    @property
    def uneven(self) -> bool:
        """Whether owners are treated differently, so that a choice depends on more than scores."""
        return bool(self.caps) or len(set(self.prices.values())) > 1
