"""The options of `hushbid weigh` and `hushbid value`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from hushbid.owner.role import FeaturesOption, LabelOption, SessionOfTablesOption
from hushbid.protocol import ranges
from hushbid.protocol.names import MODEL
from hushbid.protocol.runtime.command import by_option, option
from hushbid.protocol.runtime.ranged import ranged

if TYPE_CHECKING:
    from hushbid.protocol.data import DataColumns
    from hushbid.protocol.data.dataset import Changes

__all__ = [
    "DeliveredArgument",
    "OutsideOfTablesOption",
    "ResultsOptions",
    "ValueOptions",
    "WeighOptions",
    "changes_told",
]

DeliveredArgument: TypeAlias = Annotated[
    Path, typer.Argument(help="The consumer's delivered.npz.", metavar="DELIVERED", show_default=False)
]
OutsideOfTablesOption: TypeAlias = Annotated[
    Literal["refuse", "clip", "drop"] | None,
    typer.Option(
        help="Treatment of table rows that do not fit the public bounds, categories and labels, as in a "
        "party's own file; default: refuse.",
        envvar="HUSHBID_OUTSIDE",
    ),
]
GammaOption: TypeAlias = Annotated[
    float | None, ranged(ranges.Gamma, help="γ of the RBF kernel; default: the session's.")
]


@dataclass(frozen=True, kw_only=True)
class WeighOptions:
    """Delivered points to weigh: each option's help describes it.

    `model` is one of `hushbid.consumer.learners.MODELS`, and `balance` one of
    `hushbid.consumer.balance.BALANCES`.
    """

    delivered: Path = field(metadata=by_option(DeliveredArgument))
    validation: Path = option(
        Path,
        default=MISSING,
        help="D_v: the weighted points should resemble it.",
        envvar="HUSHBID_VALIDATION",
    )
    features: str | None = field(default=None, metadata=by_option(FeaturesOption))
    label: str | None = field(default=None, metadata=by_option(LabelOption))
    test: Path | None = option(
        Path | None, help="Held-out points for the evaluation; labelled ones also evaluate a model."
    )
    ridge: float | None = option(
        ranges.Ridge | None, help="λ: 1, the default, treats D_v as a sample; 0 fits its noise as well."
    )
    label_weight: float | None = option(
        ranges.LabelWeight | None,
        help="Strength of labels relative to features, from 0 (none) to below 1; default: 0.6. Used if D_v "
        "has labels.",
    )
    gamma: float | None = field(default=None, metadata=by_option(GammaOption))
    outside: Literal["refuse", "clip", "drop"] | None = field(
        default=None, metadata=by_option(OutsideOfTablesOption)
    )
    session: Path | None = field(default=None, metadata=by_option(SessionOfTablesOption))
    columns: DataColumns | None = None
    """How tables are read, in place of `features` and `label`."""
    model: str = option(str, default=MODEL, help="The downstream model.")
    seed: int = option(ranges.Seed, default=0, help="Random seed of the model.")
    balance: str | None = option(
        str | None,
        help="Label shares for the weights: those of D_v (wanted), or equal ones; default: whatever "
        "resembles D_v best.",
        metavar="wanted|equal",
    )
    output: Path | None = option(
        Path | None,
        help="Output file for the points with their weights: .npz, .csv or .parquet; default: update "
        "DELIVERED.",
        metavar="FILE",
    )


@dataclass(frozen=True, kw_only=True)
class ValueOptions:
    """Delivered points to value: each option's help describes it."""

    delivered: Path = field(metadata=by_option(DeliveredArgument))
    validation: Path = option(Path, default=MISSING, help="D_v.", envvar="HUSHBID_VALIDATION")
    seed_set: Path | None = option(Path | None, help="D_init, the baseline of the values; default: none.")
    features: str | None = field(default=None, metadata=by_option(FeaturesOption))
    label: str | None = field(default=None, metadata=by_option(LabelOption))
    outside: Literal["refuse", "clip", "drop"] | None = field(
        default=None, metadata=by_option(OutsideOfTablesOption)
    )
    session: Path | None = field(default=None, metadata=by_option(SessionOfTablesOption))
    columns: DataColumns | None = None
    """How tables are read, in place of `features` and `label`."""
    gamma: float | None = field(default=None, metadata=by_option(GammaOption))
    orders: int = option(
        int, default=2_000, help="Number of random owner orders, if more than 12 owners sold.", min=4
    )
    seed: int = option(ranges.Seed, default=0, help="Random seed of the orders.")


@dataclass(frozen=True, kw_only=True)
class ResultsOptions:
    """A purchase to examine: each option's help describes it."""

    state: Path = field(
        metadata=by_option(
            Annotated[
                Path,
                typer.Argument(
                    help="The consumer's state directory, or a run directory.",
                    metavar="STATE",
                    show_default=False,
                ),
            ]
        )
    )
    config: Path | None = option(
        Path | None,
        help="The consumer's private file, if the state directory does not name it.",
        envvar="HUSHBID_CONFIG",
    )
    estimator: str | None = option(
        str | None, help="The scikit-learn model; default: as in the private file.", metavar="NAME"
    )
    output: Path | None = option(
        Path | None, help="Directory for the files; default: `results` in STATE.", metavar="DIR"
    )
    details: bool = option(
        bool, "--details", default=False, help="Print every accuracy, not only the one that decides."
    )


def changes_told(outside: Mapping[str, Changes]) -> list[str]:
    """The changes to tables, clipped or dropped rows, a line for each (`Delivery.changed`)."""
    return [f"{name}: {changes.said}" for name, changes in outside.items()]
