"""`hushbid experiment`: figures of the documents, worked out again."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from hushbid.cli.experiment_tables import SHOWN
from hushbid.evidence.experiment_options import (
    ExperimentOptions,
    JobsOption,
    KmeOptions,
    OutOption,
    QuickOption,
    RaceOptions,
    RegressionOptions,
    SchedulerOption,
    ScreeningOptions,
    SelectionOptions,
    experiment,
    read_declaration,
)
from hushbid.evidence.purchase_options import (
    InsuranceOptions,
    MnistOptions,
    PrivacyUtilityOptions,
    RareOptions,
    RivalsOptions,
    ScalingOptions,
)
from protocol.runtime.command import JsonOption, run_verb, takes

__all__ = ["experiment_app"]

experiment_app = typer.Typer(help="Work out figures of the documents again.", no_args_is_help=True)


@experiment_app.callback()
def _experiment() -> None:
    pass


@experiment_app.command("selection")
@takes(SelectionOptions)
def _selection(options: SelectionOptions, as_json: JsonOption = False) -> None:
    """Say how near privately bought points come to the consumer's, beside greedy and uniform choices.

    With --session on the data of a cluster file's parties, as `simulate` has them: no ledger is charged, and
    what is printed is not private.
    """
    _run(lambda: options, as_json=as_json)


@experiment_app.command("screening")
@takes(ScreeningOptions)
def _screening(options: ScreeningOptions, as_json: JsonOption = False) -> None:
    """Say how often catalogue entries rank the right owner first, and what a screened session loses."""
    _run(lambda: options, as_json=as_json)


@experiment_app.command("race")
@takes(RaceOptions)
def _race(options: RaceOptions, as_json: JsonOption = False) -> None:
    """Say how well RACE sketches answer at sound ε, beside what the authors' code does."""
    _run(lambda: options, as_json=as_json)


@experiment_app.command("kme")
@takes(KmeOptions)
def _kme(options: KmeOptions, as_json: JsonOption = False) -> None:
    """Say how near a dataset's private release as weighted points comes to it, beside published figures."""
    _run(lambda: options, as_json=as_json)


@experiment_app.command("regression")
@takes(RegressionOptions)
def _regression(options: RegressionOptions, as_json: JsonOption = False) -> None:
    """Fit a linear model by RACE, beside least squares, AdaSSP and the mean."""
    _run(lambda: options, as_json=as_json)


@experiment_app.command("mnist")
@takes(MnistOptions)
def _mnist(options: MnistOptions, as_json: JsonOption = False) -> None:
    """Buy handwritten digits by each method, as in appendix G of the first paper."""
    _run(lambda: options, as_json=as_json)


@experiment_app.command("insurance")
@takes(InsuranceOptions)
def _insurance(options: InsuranceOptions, as_json: JsonOption = False) -> None:
    """Buy insurance customers by each method, as in section 4 of the first paper."""
    _run(lambda: options, as_json=as_json)


@experiment_app.command("rare")
@takes(RareOptions)
def _rare(options: RareOptions, as_json: JsonOption = False) -> None:
    """Buy by each method where few of the owners' points are wanted: where private selection pays."""
    _run(lambda: options, as_json=as_json)


@experiment_app.command("rivals")
@takes(RivalsOptions)
def _rivals(options: RivalsOptions, as_json: JsonOption = False) -> None:
    """Buy points, train on what owners could publish, or compress, at the same ε and the same size."""
    _run(lambda: options, as_json=as_json)


@experiment_app.command("privacy-utility")
@takes(PrivacyUtilityOptions)
def _privacy_utility(options: PrivacyUtilityOptions, as_json: JsonOption = False) -> None:
    """Say how good purchases are over ε, for every release at the same sound ε."""
    _run(lambda: options, as_json=as_json)


@experiment_app.command("scaling")
@takes(ScalingOptions)
def _scaling(options: ScalingOptions, as_json: JsonOption = False) -> None:
    """Say what a session costs, and what its curator sees, by the number of owners, for every rule."""
    _run(lambda: options, as_json=as_json)


@experiment_app.command("run")
def _declared(
    file: Annotated[Path, typer.Argument(help="What declares it, as --out leaves it.", metavar="FILE.toml")],
    out: OutOption = None,
    jobs: JobsOption = 1,
    scheduler: SchedulerOption = None,
    quick: QuickOption = False,
    as_json: JsonOption = False,
) -> None:
    """Run the experiment that a TOML file declares: `experiment`, and its verb's options by their names."""
    changes = {"out": out, "jobs": jobs, "scheduler": scheduler, "quick": quick}
    _run(lambda: read_declaration(file, **changes), as_json=as_json)


def _run(declared: Callable[[], ExperimentOptions], *, as_json: bool) -> None:
    kind = ""

    def body() -> dict[str, Any]:
        nonlocal kind
        from hushbid.evidence.experiments.runner import run

        options = declared()
        kind = options.NAME
        outcome = run(experiment(kind), replace(options, say=_say))
        for path in outcome.damaged:
            sys.stderr.write(f"{path} was damaged, and its cell was run again.\n")
        return {
            "rows": [row.as_json() for row in outcome.rows],
            "cells": outcome.cells,
            "kept": outcome.kept,
            "directory": None if options.out is None else str(options.out.resolve()),
        }

    run_verb(body, as_json=as_json, show=lambda result: SHOWN[kind](result))  # noqa: PLW0108 known once it is run


def _say(what: str) -> None:
    sys.stderr.write(f"running: {what}\n")
