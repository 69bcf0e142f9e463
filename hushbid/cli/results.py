"""`hushbid results`: the consumer's purchase weighed, valued and exported, from its state directory alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hushbid.protocol.runtime.command import JsonResult, say, show_figures, takes, tell, verb
from hushbid.tables.options import ResultsOptions

if TYPE_CHECKING:
    from hushbid.running.purchase import Results

__all__ = ["results_command"]

_FILES: Final = {
    "report": "report",
    "parquet": "points, Parquet",
    "csv": "points, CSV",
    "npz": "points, NumPy",
    "training": "own and bought rows to train on",
    "model": "model (skops.io.load)",
    "session": "session file",
}
"""Descriptions of the files, in the order in which they are listed."""


def _show(found: Results) -> None:
    from hushbid.cli.train import show_trained
    from hushbid.cli.value import show_values
    from hushbid.consumer.cli import deciding, quality_lines, show
    from hushbid.tables.formulas import formula_line
    from hushbid.tables.options import changes_told

    if found.result is not None:
        show(found.result, details=found.details)
    else:
        tell("\n".join([found.session, *found.weigh.sentences]))
        figures = quality_lines(found.weigh.judgement)
        show_figures(deciding(figures, found.weigh.model, details=found.details), indent="  ")
    for line in changes_told(found.weigh.outside):
        say(line)
    tell("")
    if found.train is None:
        tell(f"No model was trained: {found.train_why}")
    else:
        told = found.train.beside == found.weigh.model  # printed above, for the same model and the same rows
        if not told:
            tell(f"With {found.train.estimator}:")
        show_trained(found.train, verdict=not told, scores=not told or found.details, tables=False)
    if not found.details:
        tell("  every accuracy: --details")
    tell("")
    if found.value is None:
        tell(f"Owners were not valued: {found.value_why}")
    else:
        show_values(found.value, tables=False)
    tell("")
    if found.report_why:
        tell(f"No report was written: {found.report_why}")
    if found.csv_why:
        tell(f"No CSV was written: {found.csv_why}")
    show_figures({said: found.files[name] for name, said in _FILES.items() if name in found.files})
    if found.formulas:
        say(formula_line(found.formulas, found.files["csv"]))


@takes(ResultsOptions)
@verb(show=_show)
def results_command(options: ResultsOptions) -> JsonResult:
    """Weigh, value, train on and export what a consumer bought, using only its state directory.

    Configuration, session, label, validation and test sets are those of the consumer's session. Nothing
    leaves this machine.
    """
    from hushbid.running.purchase import results

    return results(options)
