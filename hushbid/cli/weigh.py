"""`hushbid weigh`: matching weights of delivered points, once more, as the consumer computes them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from consumer.cli import quality_lines
from owner.role import FeaturesOption, LabelOption, SessionOfTablesOption
from protocol.runtime.command import verb

__all__ = ["weigh_command"]


_BALANCED: Final = {"wanted": "those of the validation set", "equal": "equal"}
"""What label shares are, for people."""


def _show(result: Mapping[str, Any]) -> None:
    balance = result["balance"]
    figures = {
        "points": str(result["points"]),
        **({} if balance is None else {"label shares": _BALANCED[balance]}),
        "γ": f"{result['gamma']:g}",
        **quality_lines(result),
        "written to": result["output"],
    }
    if result["older"]:
        figures["as before"] = f"{result['older']}; `hushbid schema decode` writes it with these weights"
    width = max(map(len, figures))
    sys.stdout.write("".join(f"  {name:<{width}}  {value}\n" for name, value in figures.items()))


@verb(show=_show)
def weigh_command(
    delivered: Annotated[
        Path, typer.Argument(help="The consumer's delivered.npz.", metavar="DELIVERED", show_default=False)
    ],
    validation: Annotated[
        Path, typer.Option(help="D_v: what the points are to resemble.", envvar="HUSHBID_VALIDATION")
    ],
    features: FeaturesOption = None,
    label: LabelOption = None,
    test: Annotated[
        Path | None, typer.Option(help="Held-out points to judge by; a model too, if they have labels.")
    ] = None,
    ridge: Annotated[
        float | None,
        typer.Option(help="λ: 1, the default, takes D_v for a sample, 0 fits its noise as well."),
    ] = None,
    gamma: Annotated[float | None, typer.Option(help="γ of the RBF kernel; default: the session's.")] = None,
    session: SessionOfTablesOption = None,
    model: Annotated[str, typer.Option(help="The downstream model.")] = "logistic",
    seed: Annotated[int, typer.Option(help="Of the model.", min=0)] = 0,
    balance: Annotated[
        str | None,
        typer.Option(
            help="Label shares that the weights are to have: those of D_v (wanted), or equal ones; default: "
            "whatever resembles D_v best.",
            metavar="wanted|equal",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            help="Write the points with their weights here: .npz, .csv or .parquet; default: put the weights "
            "into DELIVERED.",
            metavar="FILE",
        ),
    ] = None,
) -> dict[str, Any]:
    """Weigh delivered points so that they resemble a validation set. Nothing leaves this machine."""
    from hushbid.tables.weighing import weigh

    return weigh(
        delivered,
        validation,
        columns=(features, label),
        test=test,
        ridge=ridge,
        gamma=gamma,
        session=session,
        model=model,
        seed=seed,
        balance=balance,
        output=output,
    )
