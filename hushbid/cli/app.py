"""The command line of hushbid: every verb, what it takes, and what it prints.

A verb's module is imported when the verb is asked for, and what it works with when it runs.
"""

from __future__ import annotations

import sys
from collections import UserDict
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any, Final, NoReturn

import typer
from typer.core import TyperGroup

from hushbid.protocol import __version__
from hushbid.protocol.runtime.command import json_line, run_app, tell

__all__ = ["app", "main"]

_EXIT_CODES: Final = (
    "Exit codes: 0 done, 1 the job failed, 2 connection or authentication, 3 time-out, "
    "4 usage, configuration or data, 5 a bug in hushbid, 130 a run or simulation was interrupted. "
    "Options go before HUSHBID_ variables, and these before files. "
    "With --json every verb prints one JSON object on stdout, and text for people on stderr."
)

_VERBS: Final = {
    "run": "run:run_command",
    "simulate": "run:simulate_command",
    "curator": "parties:curator_command",
    "owner": "parties:owner_command",
    "consumer": "consumer:consumer_command",
    "keys": "keys:keys_app",
    "invite": "invite:invite_command",
    "preflight": "preflight:preflight_command",
    "interop": "interop:interop_app",
    "transcript": "transcript:transcript_app",
    "bench": "bench:bench_app",
    "experiment": "experiment:experiment_app",
    "sweep": "sweep:sweep_app",
    "health": "health:health_command",
    "status": "status:status_command",
    "watch": "watch:watch_command",
    "ledger": "ledger:ledger_command",
    "audit": "audit:audit_command",
    "advise": "advise:advise_command",
    "plan": "plan:plan_command",
    "report": "report:report_command",
    "publish": "publish:publish_app",
    "schema": "schema:schema_app",
    "screen": "screen:screen_command",
    "weigh": "weigh:weigh_command",
    "train": "train:train_command",
    "value": "value:value_command",
    "setup": "setup:setup_command",
}
"""Where each verb is: a module of `hushbid.cli`, and its function, or its typer with more verbs."""


class _Parsers(UserDict[str, Any]):
    """The parser of each verb, made when it is asked for: to make all takes longer than most verbs do."""

    def __getitem__(self, verb: str) -> Any:
        found = self.data[verb]
        if isinstance(found, str):
            module, _, name = found.partition(":")
            found = self.data[verb] = _parser(verb, getattr(import_module(f"hushbid.cli.{module}"), name))
        return found


def _parser(verb: str, what: typer.Typer | Callable[..., None]) -> Any:
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    if isinstance(what, typer.Typer):
        alone.add_typer(what, name=verb)
        return typer.main.get_group(alone).commands[verb]
    alone.command(verb, epilog=_EXIT_CODES)(what)
    return typer.main.get_command(alone)


class _Verbs(TyperGroup):
    """Typer's parser of the command line, with those of verbs as above."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings | {"commands": _Parsers(_VERBS)})


app = typer.Typer(
    name="hushbid",
    cls=_Verbs,
    help="Buy training data without anyone showing their data first.",
    epilog=_EXIT_CODES,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def main() -> NoReturn:
    """Run the command line and end the process with the verb's exit code."""
    run_app(app)


def _print_version(context: typer.Context, wanted: bool) -> None:
    if not wanted:
        return
    if context.params.get("as_json"):
        from hushbid.preflight.software import installed

        sys.stdout.write(json_line(installed()))
    else:
        tell(f"hushbid {__version__}")
    raise typer.Exit


@app.callback()
def _hushbid(
    _version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and end.", callback=_print_version),
    ] = False,
    as_json: Annotated[
        bool,
        typer.Option("--json", is_eager=True, help="With --version: also of what results depend on."),
    ] = False,
) -> None:
    if as_json:
        raise typer.BadParameter("without --version it goes after the verb.", param_hint="--json")
