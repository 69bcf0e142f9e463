"""`hushbid weigh`: recompute the matching weights of delivered points, as the consumer computes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hushbid.consumer.cli import quality_lines
from hushbid.protocol.runtime.command import JsonResult, say, show_figures, takes, tell, verb
from hushbid.tables.options import WeighOptions, changes_told

if TYPE_CHECKING:
    from hushbid.tables.weighing import WeighedTables

__all__ = ["weigh_command"]


_BALANCED: Final = {"wanted": "those of the validation set", "equal": "equal"}
"""Labels of the sources of label shares."""
_UNUSED: Final = (
    "WARNING: The points have labels, and no row of the validation set has one: weights are by the other "
    "columns alone. Name its label's column with --label, if it has one."
)


def _show(result: WeighedTables) -> None:
    from hushbid.tables.formulas import formula_line

    for line in changes_told(result.outside):
        say(line)
    if result.labels_unused:
        say(_UNUSED)
    figures = {
        "points": str(result.points),
        **({} if result.balance is None else {"label shares": _BALANCED[result.balance]}),
        "γ": f"{result.gamma:g}",
        **quality_lines(result.judgement),
        "written to": str(result.output),
    }
    if result.older:
        figures["as before"] = f"{result.older}; `hushbid schema decode` writes it with these weights"
    tell("\n".join(result.sentences))
    show_figures(figures, indent="  ")
    if result.formulas:
        say(formula_line(result.formulas, str(result.output)))


@takes(WeighOptions)
@verb(show=_show)
def weigh_command(options: WeighOptions) -> JsonResult:
    """Weigh delivered points so that they resemble a validation set. Nothing leaves this machine."""
    from hushbid.tables.weighing import weigh

    return weigh(options)
