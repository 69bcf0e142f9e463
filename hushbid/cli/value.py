"""`hushbid value`: what each owner's points are worth to the consumer, by its own data."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from owner.role import FeaturesOption, LabelOption, SessionOfTablesOption
from protocol.runtime.command import verb

__all__ = ["value_command"]


def _show(result: Mapping[str, Any]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table("owner", box=None, pad_edge=False)
    for name in ("points", "gain", "left out", "Shapley", "± s.e."):
        table.add_column(name, justify="right")
    for owner, row in sorted(result["owners"].items(), key=lambda item: -item[1]["shapley"]):
        error = f"{row['shapley_error']:.5f}" if result["orders"] else "exact"
        values = [f"{row[name]:+.5f}" for name in ("gain", "left_out", "shapley")]
        table.add_row(escape(owner), str(row["points"]), *values, error)
    console = Console()
    console.print(table)
    start = "the seed set" if result["from_seed_set"] else "nothing"
    console.print(f"Gains and Shapley values add up to {result['total']:+.5f}, gained in MMD² over {start}.")
    console.print("All tell of the validation set without noise: they stay here, and nobody is paid by them.")


@verb(show=_show)
def value_command(
    delivered: Annotated[
        Path, typer.Argument(help="The consumer's delivered.npz.", metavar="DELIVERED", show_default=False)
    ],
    validation: Annotated[Path, typer.Option(help="D_v.", envvar="HUSHBID_VALIDATION")],
    seed_set: Annotated[
        Path | None, typer.Option(help="D_init, from which values count; default: from nothing.")
    ] = None,
    features: FeaturesOption = None,
    label: LabelOption = None,
    session: SessionOfTablesOption = None,
    gamma: Annotated[float | None, typer.Option(help="γ of the RBF kernel; default: the session's.")] = None,
    orders: Annotated[
        int, typer.Option(help="Orders of owners that are drawn where more than 12 sold.", min=4)
    ] = 2_000,
    seed: Annotated[int, typer.Option(help="Of the draw.", min=0)] = 0,
) -> dict[str, Any]:
    """Work out what each owner's points are worth: gains, leaving one out, Shapley values. Nothing leaves."""
    from hushbid.tables.valuing import value_owners

    return value_owners(
        delivered,
        validation,
        seed_set=seed_set,
        columns=(features, label),
        session=session,
        gamma=gamma,
        orders=orders,
        seed=seed,
    )
