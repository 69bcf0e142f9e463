"""`hushbid experiment`: reproduce the documentation's figures."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from hushbid.lab.cli.experiment_tables import SHOWN
from hushbid.lab.experiment_fields import (
    ExperimentOptions,
    JobsOption,
    OutOption,
    QuickOption,
    SchedulerOption,
)
from hushbid.lab.experiment_options import OPTIONS, experiment, read_declaration
from hushbid.protocol.runtime.command import JsonOption, run_verb, say, takes

__all__ = ["experiment_app"]

experiment_app = typer.Typer(help="Reproduce the documentation's figures.", no_args_is_help=True)


@experiment_app.callback()
def _experiment() -> None:
    pass


def _add_verb(kind: type[ExperimentOptions]) -> None:
    """Add the verb of an experiment; its help is the part of the options' docstring before the attributes."""

    @takes(kind)
    def command(options: ExperimentOptions, as_json: JsonOption = False) -> None:
        _run(lambda: options, as_json=as_json)

    text, _, _ = (inspect.getdoc(kind) or "").partition("\n\nAttributes:")
    experiment_app.command(kind.NAME, help=text)(command)


for _kind in OPTIONS.values():
    _add_verb(_kind)


@experiment_app.command("run")
def _declared(
    file: Annotated[
        Path, typer.Argument(help="TOML declaration, as --output writes it.", metavar="FILE.toml")
    ],
    out: OutOption = None,
    jobs: JobsOption = 1,
    scheduler: SchedulerOption = None,
    quick: QuickOption = False,
    as_json: JsonOption = False,
) -> None:
    """Run the experiment declared in a TOML file: the key `experiment`, and the verb's options by name."""
    changes = {"out": out, "jobs": jobs, "scheduler": scheduler, "quick": quick}
    _run(lambda: read_declaration(file, **changes), as_json=as_json)


def _run(declared: Callable[[], ExperimentOptions], *, as_json: bool) -> None:
    kind = ""

    def body() -> dict[str, Any]:
        nonlocal kind
        from hushbid.lab.experiments.runner import run

        options = declared()
        kind = options.NAME
        outcome = run(experiment(kind), replace(options, say=_say))
        for path in outcome.damaged:
            say(f"{path} was damaged, and its cell was run again.")
        return {
            "rows": [row.as_json() for row in outcome.rows],
            "cells": outcome.cells,
            "kept": outcome.kept,
            "directory": None if options.out is None else str(options.out.resolve()),
        }

    run_verb(body, as_json=as_json, show=lambda result: SHOWN[kind].print(result["rows"]))


def _say(what: str) -> None:
    say(f"running: {what}")
