"""Options that describe a session besides a file, before there is one."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Final, Literal

import typer

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
    """Options besides a file: each option's help describes it.

    None: nothing is said, so that the file's value holds, or what is assumed.
    """

    owners: int | None = option(
        int | None, parser=_owner_count, help="K, the number of owners.", metavar="INTEGER"
    )
    points: int | None = option(int | None, min=1, help="p, points to buy.")
    batch: int | None = option(int | None, min=1, help="b, points that a round buys; default: p/50.")
    seed_weight: float | None = option(
        float | None, help="s, what a point of the seed set counts for; default: 0.1."
    )
    validation: int | None = option(int | None, min=1, help="m, points of the consumer's validation set.")
    dimension: int | None = option(int | None, min=1, help="d of the feature map; default: 140.")
    owner_points: int | None = option(int | None, min=1, help="Points of each owner; default: 10,000.")
    seed_points: int | None = option(int | None, min=1, help="Points of the public seed set; default: 150.")
    columns: int | None = option(int | None, min=1, help="Columns of a point; default: 100.")
    epsilon: float | str | None = option(
        str | None,
        help="ε of one record of each side that the rule charges, or of sides by name: consumer=1,owners=3; "
        "asks=E for the rules that ask by one.",
        metavar="E",
    )
    epsilon_owners: float | None = option(float | None, hidden=True, help="As --epsilon owners=E.")
    epsilon_consumer: float | None = option(float | None, hidden=True, help="As --epsilon consumer=E.")
    epsilon_asks: float | None = option(float | None, hidden=True, help="As --epsilon asks=E.")
    delta: float | None = option(float | None, help="δ of every ε; default: 1e-5.")
    rule: str | None = option(
        str | None,
        help="Acquisition rule; default: tender, or sealed where only rounds have what is asked for.",
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
        """The ε that is asked for, of a side.

        Args:
            charged: Whether an ε of no side by name is this side's too.

        Raises:
            ConfigError: The same side's twice, or no number.
        """
        sides, one_for_all = self._epsilons()
        of_all = None if side == "asks" else one_for_all  # what rules ask by is no side's
        own: float | None = getattr(self, f"epsilon_{side}")
        if own is None:
            return sides.get(side, of_all if charged else None)
        if side in sides or of_all is not None:
            raise ConfigError(f"The ε of {side} is given twice.", advice=f"Give --epsilon {side}=E alone.")
        return own

    def _epsilons(self) -> tuple[dict[str, float], float | None]:
        """What `epsilon` says of sides by name, and of all."""
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
