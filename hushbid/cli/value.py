"""`hushbid value`: the worth of each owner's points to the consumer, by its own data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hushbid.protocol.runtime.command import JsonResult, say, takes, verb
from hushbid.tables.options import ValueOptions, changes_told

if TYPE_CHECKING:
    from hushbid.tables.valuing import Worth

__all__ = ["show_values", "value_command"]


def show_values(result: Worth, *, tables: bool = True) -> None:
    """Print the result for people, and what was changed in its `tables`."""
    from rich.table import Table

    from hushbid.cli.terminal import Terminal

    for line in changes_told(result.outside) if tables else ():
        say(line)
    start = "the seed set" if result.from_seed_set else "nothing"
    table = Table("owner", box=None, pad_edge=False)
    for name in ("points", f"gain over {start}", "left out", "Shapley", "± s.e."):
        table.add_column(name, justify="right")
    for owner, row in result.owners.items():  # in the consumer's order
        values = [f"{value:+.5f}" for value in (row.gain, row.left_out, row.shapley)]
        error = f"{row.shapley_error:.5f}" if result.orders else "exact"
        table.add_row(owner, str(row.points), *values, error)
    console = Terminal()
    console.print(table)
    console.print(f"Gains and Shapley values add up to {result.total:+.5f}, gained in MMD² over {start}.")
    if not result.from_seed_set:
        console.print("The consumer's exact gains count from the seed set: --seed-set gives the same.")
    console.print("They reveal the validation set without noise: keep them here, and pay nobody by them.")


@takes(ValueOptions)
@verb(show=show_values)
def value_command(options: ValueOptions) -> JsonResult:
    """Value each owner's points: gains, leave-one-out and Shapley values. Nothing leaves this machine."""
    from hushbid.tables.valuing import value_owners

    return value_owners(options)
