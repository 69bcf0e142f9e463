"""`hushbid experiment`: figures of the documents, worked out again."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from protocol.runtime.command import run_verb

__all__ = ["experiment_app"]

experiment_app = typer.Typer(help="Work out figures of the documents again.", no_args_is_help=True)


@experiment_app.callback()
def _experiment() -> None:
    pass


@experiment_app.command("selection")
def _selection(
    dataset: Annotated[str, typer.Argument(help="digits, mnist or insurance.")] = "digits",
    data: Annotated[
        Path | None, typer.Option(envvar="HUSHBID_DATA", help="Where the dataset's files lie.")
    ] = None,
    epsilon: Annotated[
        list[float] | None, typer.Option(min=0.0, help="ε of owners and of consumer, each; may be repeated.")
    ] = None,
    points: Annotated[list[int] | None, typer.Option(min=1, help="Points to buy; may be repeated.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds.")] = 5,
    first_seed: Annotated[int, typer.Option(min=0, help="The first of them.")] = 0,
    mechanism: Annotated[str, typer.Option(help="Release mechanism.")] = "filtered-gaussian",
    delta: Annotated[float, typer.Option(min=0.0, max=1.0, help="δ of each ε.")] = 1e-5,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Say how near privately bought points come to the consumer's, beside greedy and uniform choices."""

    def body() -> dict[str, Any]:
        from hushbid.experiments.selection import selection

        rows = selection(
            dataset,
            data,
            epsilons=epsilon or [1.0, 3.0],
            points=points or [100],
            seeds=range(first_seed, first_seed + seeds),
            mechanism=mechanism,
            delta=delta,
            say=_say,
        )
        return {"rows": [row.as_json() for row in rows]}

    run_verb(body, as_json=as_json, show=_show)


def _say(what: str) -> None:
    sys.stderr.write(f"running: {what}\n")


def _show(result: Mapping[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    rows = result["rows"]
    table = Table(
        "p",
        "ε",
        "MMD²",
        "greedy",
        "uniform",
        "accuracy",
        title=f"{rows[0]['dataset']}, {rows[0]['mechanism']}, mean of {len(rows[0]['mmd2_each'])} seeds",
    )
    for row in rows:
        accuracy = "-" if row["accuracy"] is None else f"{row['accuracy']:.3f}"
        figures = (f"{row[name]:.4f}" for name in ("mmd2", "mmd2_greedy", "mmd2_uniform"))
        table.add_row(str(row["points"]), f"{row['epsilon']:g}", *figures, accuracy)
    Console().print(table)
