"""One thing that a dataset's privacy is spent on, as its lifetime ledger records it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final, Literal, Self, get_args

from hushbid.protocol.errors import ConfigError
from hushbid.protocol.limits import MAX_TEXT
from hushbid.protocol.privacy.accounting import (
    ApproximateCost,
    Cost,
    adaptive_epsilon,
    cost_from_record,
    cost_to_record,
    for_two_steps,
    merge_costs,
)
from hushbid.protocol.privacy.accounting.validation import check_cost
from hushbid.protocol.privacy.releases import Neighbours

__all__ = ["Spending", "SpendingKind", "checked_neighbours", "epsilon_of_spendings"]

_LEFT_OUT_IF_EMPTY: Final = ("transcript", "root", "key")
SpendingKind = Literal["session", "catalogue", "screening"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """One thing that a dataset's privacy is spent on.

    Attributes:
        kind: ``session``; ``catalogue``, a published entry; or ``screening``, a consumer's release of D_v by
            which it ranks entries.
        identifier: With `kind`, the name under which it is paid once.
        date: When it was agreed to.
        neighbours: The datasets that its ε and its costs compare.
        epsilon: Its stated ε; None: nothing is guaranteed.
        costs: Its parts, for the accountant; if empty, only (ε, δ) is known.
        transcript: Of a session, the beginning of the transcript whose releases are paid (`party.beginning`);
            empty where an older version charged it.
        root: What the party committed to as these data, by the name that
            `hushbid.protocol.crypto.commitment.root_name` gives it; empty where it committed to nothing.
        key: The public key of whoever made the root, from whose secret key it follows, too; empty where
            there is no root, or where an older version charged it.

    Raises:
        ConfigError: A value is out of range.
    """

    kind: SpendingKind
    identifier: str
    date: date
    neighbours: str
    epsilon: float | None
    delta: float
    costs: tuple[Cost, ...] = ()
    transcript: str = ""
    root: str = ""
    key: str = ""

    def __post_init__(self) -> None:
        checked_neighbours(self.neighbours)
        if self.kind not in get_args(SpendingKind):
            raise ConfigError(
                f"A spending of kind {self.kind!r} is not known.",
                advice="Use session, catalogue or screening.",
            )
        if not 0 < len(self.identifier) <= MAX_TEXT:
            raise ConfigError(
                f"A spending's identifier has {len(self.identifier)} characters.",
                advice=f"Give 1 to {MAX_TEXT}.",
            )
        if self.epsilon is None:
            if self.costs:
                raise ConfigError(
                    "A spending has costs but no epsilon.", advice="State the epsilon of the costs."
                )
        elif not self.costs:
            ApproximateCost(epsilon=self.epsilon, delta=self.delta, count=1)
        else:
            check_cost("spending", self.epsilon, self.delta)

    @property
    def charged(self) -> tuple[Cost, ...] | None:
        """What the accountant adds up, by the spending's own relation; None if nothing is guaranteed."""
        if self.epsilon is None:
            return None
        return merge_costs(self.costs) or (ApproximateCost(epsilon=self.epsilon, delta=self.delta, count=1),)

    @property
    def free(self) -> bool:
        """Whether it costs nothing, such as a session that reuses a release."""
        return not self.costs and self.epsilon == 0.0 and self.delta == 0.0

    def charged_by(self, neighbours: str) -> tuple[Cost, ...] | None:
        """What the accountant adds up by a relation; None if nothing is guaranteed by it.

        A cost by `add-remove-one` gives one by `substitute-one`, two steps of it (`for_two_steps`). There is
        no conversion in the other direction.
        """
        charged = self.charged
        if charged is None or self.neighbours == neighbours or self.free:
            return charged
        return for_two_steps(charged) if neighbours == Neighbours.SUBSTITUTE_ONE else None

    def as_record(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "identifier": self.identifier,
            "date": self.date.isoformat(),
            "neighbours": str(self.neighbours),
            "epsilon": self.epsilon,
            "delta": self.delta,
            "costs": [cost_to_record(cost) for cost in self.costs],
            **{name: getattr(self, name) for name in _LEFT_OUT_IF_EMPTY if getattr(self, name)},
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any], *, neighbours: str) -> Self:
        """Rebuild a spending from the result of `as_record`.

        Args:
            neighbours: Relation of a record that names none, as in ledgers of format 1.

        Raises:
            ConfigError, KeyError, TypeError, ValueError: It is malformed.
        """
        record = {"neighbours": neighbours, **dict.fromkeys(_LEFT_OUT_IF_EMPTY, ""), **record}
        if set(record) != {
            "kind", "identifier", "date", "neighbours", "epsilon", "delta", "costs", *_LEFT_OUT_IF_EMPTY,
        }:  # fmt: skip
            raise ValueError("its keys are not those of a spending")
        for key, types in (
            ("identifier", str),
            ("epsilon", float | int | None),
            ("delta", float | int),
            *((name, str) for name in _LEFT_OUT_IF_EMPTY),
        ):
            if isinstance(record[key], bool) or not isinstance(record[key], types):
                raise TypeError(f"its {key} is of another type")
        return cls(
            kind=record["kind"],
            identifier=record["identifier"],
            date=date.fromisoformat(record["date"]),
            neighbours=record["neighbours"],
            epsilon=record["epsilon"],
            delta=record["delta"],
            costs=tuple(cost_from_record(cost) for cost in record["costs"]),
            **{name: record[name] for name in _LEFT_OUT_IF_EMPTY},
        )


def epsilon_of_spendings(spendings: Sequence[Spending], delta: float, neighbours: str) -> float:
    """The least ε of a cap at δ that admits the spendings, each decided on in view of those before it.

    Args:
        spendings: In the order of their charging.
        delta: In (0, 1).
        neighbours: The datasets that the cap compares.

    Returns:
        ε; infinite if one of them guarantees nothing by this relation.

    Raises:
        ConfigError: `delta` outside of (0, 1).
    """
    charged = [spending.charged_by(neighbours) for spending in spendings]
    known = [costs for costs in charged if costs is not None]
    total = adaptive_epsilon(known, delta)
    return total if len(known) == len(charged) else math.inf


def checked_neighbours(neighbours: object) -> str:
    """A neighbour relation's name.

    Raises:
        ConfigError: There is no such relation.
    """
    if neighbours not in list(Neighbours):
        raise ConfigError(
            f"There is no neighbour relation named {neighbours!r}.",
            advice=f"Use {' or '.join(Neighbours)}.",
        )
    return str(neighbours)
