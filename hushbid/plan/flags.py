"""Options that describe a session in addition to a file, or in place of one."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Final, Literal

import typer

from hushbid.protocol import limits, ranges
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.runtime.command import option

__all__ = ["PlanFlags"]

_SIDES: Final = frozenset({"owners", "consumer", "asks"})


def _owner_count(text: str) -> int:
    if text.isascii() and text.isdecimal() and int(text) > 0:
        return int(text)
    raise typer.BadParameter(
        f"{text!r} is not a number of owners, such as 5. Their numbers of points go into --owner-points; "
        "`hushbid advise --owners` takes sizes by name."
    )


@dataclass(frozen=True, kw_only=True)
class PlanFlags:
    """Options in addition to a file: each option's help describes it.

    None: not given; the file's value holds, or an assumed one.
    """

    owners: int | None = option(
        int | None, parser=_owner_count, help="K, the number of owners.", metavar="INTEGER"
    )
    points: int | None = option(ranges.Points | None, help="p, the number of points to buy.")
    batch: int | None = option(ranges.PointsOfRound | None, help="b, points per round; default: p/50.")
    seed_weight: float | None = option(
        ranges.SeedWeight | None, help="s, the weight of a seed-set point; default: 0.1."
    )
    validation: int | None = option(
        ranges.RowCount | None, help="m, points in the consumer's validation set."
    )
    dimension: int | None = option(ranges.Dimension | None, help="d of the feature map; default: 140.")
    owner_points: int | None = option(ranges.RowCount | None, help="Points per owner; default: 10,000.")
    seed_points: int | None = option(
        ranges.RowCount | None, help="Points in the public seed set; default: 150."
    )
    columns: int | None = option(ranges.Columns | None, help="Columns per point; default: 100.")
    epsilon: float | str | None = option(
        str | None,
        help="ε per record of each side that the rule charges, or of sides by name: consumer=1,owners=3; "
        "asks=E for the rules that ask by one.",
        metavar="E",
    )
    epsilon_owners: float | None = option(
        ranges.Epsilon | None, hidden=True, help="Same as --epsilon owners=E."
    )
    epsilon_consumer: float | None = option(
        ranges.Epsilon | None, hidden=True, help="Same as --epsilon consumer=E."
    )
    epsilon_asks: float | None = option(ranges.Epsilon | None, hidden=True, help="Same as --epsilon asks=E.")
    delta: float | None = option(ranges.Delta | None, help="δ of every ε; default: 1e-5.")
    rule: str | None = option(
        str | None,
        help="Acquisition rule; default: tender, or sealed if other options require rounds or --points are "
        f"more than {limits.MAX_HERDED:,}.",
    )
    release: str | None = option(
        str | None, help="Release mechanism of both sides; default: filtered-gaussian."
    )

    def given(self) -> dict[str, Any]:
        """The fields that are not None, by name."""
        values = {each.name: getattr(self, each.name) for each in fields(PlanFlags)}
        return {name: value for name, value in values.items() if value is not None}

    def epsilon_of(
        self, side: Literal["owners", "consumer", "asks"], *, charged: bool = True
    ) -> float | None:
        """The requested ε of a side.

        Args:
            charged: Whether an ε given without a side applies to this side too.

        Raises:
            ConfigError: The side's ε is given twice, or is not a number.
        """
        sides, one_for_all = self._epsilons()
        of_all = None if side == "asks" else one_for_all  # the ε that rules ask by belongs to no side
        own: float | None = getattr(self, f"epsilon_{side}")
        if own is None:
            return sides.get(side, of_all if charged else None)
        if side in sides or of_all is not None:
            raise ConfigError(f"The ε of {side} is given twice.", advice=f"Give --epsilon {side}=E alone.")
        return own

    def _epsilons(self) -> tuple[dict[str, float], float | None]:
        """The parts of `epsilon` for sides by name, and for all sides."""
        if not isinstance(self.epsilon, str):
            return {}, self.epsilon
        try:
            if "=" not in self.epsilon:
                return {}, float(self.epsilon)
            pairs = [each.split("=") for each in self.epsilon.split(",")]
            sides = {name.strip(): float(value) for name, value in pairs}
        except ValueError:
            sides, pairs = {}, []
        if not sides or not sides.keys() <= _SIDES or len(sides) < len(pairs):
            raise ConfigError(
                f"--epsilon: {self.epsilon!r} is neither a number nor sides with one each.",
                advice="Give a number, such as 1, or consumer=1,owners=3; asks=E is for rules that ask.",
            )
        return sides, None
