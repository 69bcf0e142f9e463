"""The numbers that owners should be paid by, with standard errors, floored so that noise is not paid for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, Self

from pydantic.dataclasses import dataclass as figures

from hushbid.protocol.figures import Figures

__all__ = ["LEAST_ERRORS", "Errors", "OwnerStatement", "PaidStatement", "Price"]

LEAST_ERRORS: Final = 2.0
"""Least number of standard errors for a number to be paid at all."""

Errors = Mapping[str, float | None]
"""Owner → its standard error; None if unknown."""


@dataclass(frozen=True, slots=True)
class Price:
    """The prices for the numbers of a statement.

    Attributes:
        unit: Price of one unit of the statement; None: `total` is shared.
        total: The amount shared among paid owners; None: `unit` is the price.
    """

    unit: float | None = None
    total: float | None = None

    def __post_init__(self) -> None:
        if self.unit is not None and self.total is not None:
            raise ValueError("unit_price and total_price: one of them alone says what is paid")

    def amount(self, paid: float, share: float | None) -> float | None:
        """The amount that an owner gets; None if no price was chosen."""
        if self.unit is not None:
            return paid * self.unit
        return None if self.total is None else (share or 0.0) * self.total


@figures(frozen=True, slots=True)
class OwnerStatement(Figures):
    """One owner's line of a statement.

    Attributes:
        value: Its number before flooring.
        standard_error: Standard error of `value`; None if unknown.
        paid: The number it should be paid by, at least 0; None if that cannot be said.
        share: Its share of all payments, 0 to 1; None if nobody is paid.
        amount: Its payment in the price's currency; None if no price was chosen.
    """

    value: float
    standard_error: float | None
    paid: float | None
    share: float | None
    amount: float | None

    def figures(self) -> str:
        """The payment, its standard error, the share and the amount, for people."""
        if self.paid is None or self.standard_error is None:
            return "–"
        said = f"{self.paid:.4g} ± {self.standard_error:.2g}"
        said += "" if self.share is None else f", {self.share:.1%} of all"
        return said if self.amount is None else f"{said}: {self.amount:,.2f}"


@figures(frozen=True, slots=True)
class PaidStatement(Figures):
    """The payment that each owner should get, whether or not it may be told.

    Attributes:
        unit: What the numbers count.
        signal: Whether the released target stands out from its noise; None if unknown.
    """

    TOLD: ClassVar[Mapping[str, str]] = {"sum": "sum", "sentence": "sentence"}

    unit: str
    signal: bool | None
    owners: Mapping[str, OwnerStatement]

    @classmethod
    def of(
        cls, unit: str, values: Mapping[str, float], errors: Errors, *, signal: bool | None, price: Price
    ) -> Self:
        """Floor each owner's number: to 0 without a signal, and to 0 below `LEAST_ERRORS` standard errors."""
        paid = {owner: _floored(value, errors[owner], signal) for owner, value in values.items()}
        total = math.fsum(value for value in paid.values() if value is not None)
        owners = {}
        for owner, value in values.items():
            own = paid[owner]
            share = own / total if own is not None and total > 0.0 else None
            amount = None if own is None else price.amount(own, share)
            owners[owner] = OwnerStatement(value, errors[owner], own, share, amount)
        return cls(unit, signal, owners)

    @property
    def sum(self) -> float | None:
        """The sum of all paid numbers; None if that cannot be said."""
        paid = [line.paid for line in self.owners.values()]
        return None if None in paid else math.fsum(value for value in paid if value is not None)

    def sentence(self) -> str:
        """The reason for payments, or why there are none, for people."""
        if self.signal is None:
            return "Payments cannot be determined: the noise of the released target is not known."
        if not self.signal:
            return (
                "Nobody is paid: the released target lies where noise alone may have put it, so that nothing "
                "tells who sold what it asks for."
            )
        if not self.sum:
            return "Nobody is paid: no owner's number comes to two standard errors."
        return f"Paid: {self.unit}, if two standard errors or more."


def _floored(value: float, error: float | None, signal: bool | None) -> float | None:
    if signal is None or error is None:
        return None
    return value if signal and value > 0.0 and value >= LEAST_ERRORS * error else 0.0
