"""`hushbid value`: what each owner's points are worth to the consumer, by its own data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hushbid.protocol.runtime.command import say, takes, verb
from hushbid.tables.options import ValueOptions, changes_told

__all__ = ["value_command"]


def _show(result: Mapping[str, Any]) -> None:
    from rich.table import Table

    from hushbid.cli.terminal import Terminal

    for line in changes_told(result["outside"]):
        say(line)
    table = Table("owner", box=None, pad_edge=False)
    for name in ("points", "gain", "left out", "Shapley", "± s.e."):
        table.add_column(name, justify="right")
    for owner, row in sorted(result["owners"].items(), key=lambda item: -item[1]["shapley"]):
        error = f"{row['shapley_error']:.5f}" if result["orders"] else "exact"
        values = [f"{row[name]:+.5f}" for name in ("gain", "left_out", "shapley")]
        table.add_row(owner, str(row["points"]), *values, error)
    console = Terminal()
    console.print(table)
    start = "the seed set" if result["from_seed_set"] else "nothing"
    console.print(f"Gains and Shapley values add up to {result['total']:+.5f}, gained in MMD² over {start}.")
    console.print("All tell of the validation set without noise: they stay here, and nobody is paid by them.")


@takes(ValueOptions)
@verb(show=_show)
def value_command(options: ValueOptions) -> dict[str, Any]:
    """Work out what each owner's points are worth: gains, leaving one out, Shapley values. Nothing leaves."""
    from hushbid.tables.valuing import value_owners

    return value_owners(options)
