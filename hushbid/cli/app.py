"""The command line of hushbid: every verb, what it takes, and what it prints.

A verb imports what it needs when it runs, so that `hushbid --help` is quick.
"""

from __future__ import annotations

import json
import sys
from typing import Annotated, Final, NoReturn

import typer

from curator.cli import command as curator_command
from hushbid.cli import audit as audit_verbs
from hushbid.cli.advise import advise_command
from hushbid.cli.bench import bench_app
from hushbid.cli.consumer import consumer_command
from hushbid.cli.experiment import experiment_app
from hushbid.cli.health import health_command
from hushbid.cli.interop import interop_app
from hushbid.cli.invite import invite_command
from hushbid.cli.keys import keys_app
from hushbid.cli.ledger import ledger_command
from hushbid.cli.plan import plan_command
from hushbid.cli.preflight import preflight_command
from hushbid.cli.publish import publish_app
from hushbid.cli.report import report_command
from hushbid.cli.run import run_command, simulate_command
from hushbid.cli.schema import schema_app
from hushbid.cli.screen import screen_command
from hushbid.cli.setup import setup_command
from hushbid.cli.status import status_command
from hushbid.cli.sweep import sweep_app
from hushbid.cli.train import train_command
from hushbid.cli.transcript import transcript_app
from hushbid.cli.value import value_command
from hushbid.cli.watch import watch_command
from hushbid.cli.weigh import weigh_command
from owner.cli import command as owner_command
from protocol import __version__
from protocol.runtime.command import run_app

__all__ = ["app", "main"]

_EXIT_CODES: Final = (
    "Exit codes: 0 done, 1 the job failed, 2 connection or authentication, 3 time-out, "
    "4 usage, configuration or data, 5 a bug in hushbid, 130 a run or simulation was interrupted. "
    "Options go before HUSHBID_ variables, and these before files. "
    "With --json every verb prints one JSON object on stdout, and text for people on stderr."
)

app = typer.Typer(
    name="hushbid",
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

        sys.stdout.write(json.dumps(installed()) + "\n")
    else:
        sys.stdout.write(f"hushbid {__version__}\n")
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


app.command("run", epilog=_EXIT_CODES)(run_command)
app.command("simulate", epilog=_EXIT_CODES)(simulate_command)
app.command("curator", epilog=_EXIT_CODES)(curator_command)
app.command("owner", epilog=_EXIT_CODES)(owner_command)
app.command("consumer", epilog=_EXIT_CODES)(consumer_command)
app.add_typer(keys_app, name="keys")
app.command("invite", epilog=_EXIT_CODES)(invite_command)
app.command("preflight", epilog=_EXIT_CODES)(preflight_command)
app.add_typer(interop_app, name="interop")
app.add_typer(transcript_app, name="transcript")
app.add_typer(bench_app, name="bench")
app.add_typer(experiment_app, name="experiment")
app.add_typer(sweep_app, name="sweep")
app.command("health", epilog=_EXIT_CODES)(health_command)
app.command("status", epilog=_EXIT_CODES)(status_command)
app.command("watch", epilog=_EXIT_CODES)(watch_command)
app.command("ledger", epilog=_EXIT_CODES)(ledger_command)
app.command("audit", epilog=_EXIT_CODES)(audit_verbs.command)
app.command("advise", epilog=_EXIT_CODES)(advise_command)
app.command("plan", epilog=_EXIT_CODES)(plan_command)
app.command("report", epilog=_EXIT_CODES)(report_command)
app.add_typer(publish_app, name="publish")
app.add_typer(schema_app, name="schema")
app.command("screen", epilog=_EXIT_CODES)(screen_command)
app.command("weigh", epilog=_EXIT_CODES)(weigh_command)
app.command("train", epilog=_EXIT_CODES)(train_command)
app.command("value", epilog=_EXIT_CODES)(value_command)
app.command("setup", epilog=_EXIT_CODES)(setup_command)
