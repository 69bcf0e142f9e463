"""The command line of hushbid: every verb, its arguments, and its output.

A verb's module is imported when the verb is requested, and its dependencies when it runs.
"""

from __future__ import annotations

import sys
from collections import UserDict
from collections.abc import Callable, Mapping
from functools import cache, cached_property
from importlib import import_module
from typing import Annotated, Any, Final, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from hushbid.cli.listing import SHORT, import_rich_help
from hushbid.cli.spellings import meant, present
from hushbid.protocol import __version__
from hushbid.protocol.runtime.command import HELP_OPTIONS, json_line, run_app, tell, with_quiet

__all__ = ["GROUPS", "app", "evidence_verbs", "main"]

_EXIT_CODES: Final = (
    "Exit codes: 0 done, 1 the job failed, 2 connection or authentication, 3 time-out, "
    "4 usage, configuration or data, 5 a bug in hushbid, 6 the system lacks a resource, "
    "130 a run or simulation was interrupted. "
    "Options take precedence over HUSHBID_ variables, and variables over files. "
    "With --json every verb prints one JSON object on stdout, and text for people on stderr."
)

GROUPS: Final[Mapping[str, Mapping[str, str]]] = {
    "Prepare": {
        "init": "init:init_command",
        "advise": "advise:advise_command",
        "plan": "plan:plan_command",
        "schema": "schema:schema_app",
        "publish": "publish:publish_app",
        "screen": "screen:screen_command",
        "keys": "keys:keys_app",
        "invite": "invite:invite_command",
        "preflight": "preflight:preflight_command",
    },
    "Take part": {
        "run": "run:run_command",
        "simulate": "run:simulate_command",
        "owner": "parties:owner_command",
        "consumer": "consumer:consumer_command",
        "curator": "parties:curator_command",
        "again": "again:again_command",
    },
    "Look back": {
        "results": "results:results_command",
        "report": "report:report_command",
        "replay": "replay:replay_command",
        "weigh": "weigh:weigh_command",
        "train": "train:train_command",
        "value": "value:value_command",
        "transcript": "transcript:transcript_app",
    },
    "Operate": {
        "status": "status:status_command",
        "ledger": "ledger:ledger_command",
        "setup": "setup:setup_command",
        "evidence": "app:evidence_app",
    },
}
"""Every verb, grouped by purpose, mapped to its module in `hushbid.cli` and its function, or its typer of
subcommands.
"""
_TRUST: Final[Mapping[str, str]] = {
    "audit": "audit:audit_command",
    "interop": "interop:interop_app",
    "sweep": "sweep:sweep_app",
}
"""Our verbs below `evidence`, in the same form; packages beside ours add more (`evidence_verbs`)."""
_BEFORE: Final = {"health": "health:health_command", "watch": "watch:watch_command", **_TRUST}
"""Former names of verbs. They still work, as do those of other evidence, but help does not list them."""


@cache
def evidence_verbs() -> dict[str, str]:
    """Find the verbs below `evidence`, sorted: ours, and the entry points of the group `hushbid.evidence`.

    Reading what is installed takes some 50 ms, so it happens only when such a verb is requested.
    """
    from importlib.metadata import entry_points

    added = {each.name: each.value for each in entry_points(group="hushbid.evidence")}
    return dict(sorted({**added, **_TRUST}.items()))


class _Parsers(UserDict[str, Any]):
    """The parser of each verb, made on demand: making all of them takes longer than most verbs run.

    Args:
        verbs: As one of `GROUPS`, or with the whole name of a module.
        panels: The help panel that lists each verb; a verb without one is hidden.
    """

    def __init__(self, verbs: Mapping[str, str], panels: Mapping[str, str]) -> None:
        super().__init__(verbs)
        self._panels = panels

    def __getitem__(self, verb: str) -> Any:
        found = self.data[verb]
        if isinstance(found, str):
            module, _, name = found.partition(":")
            module = module if "." in module else f"hushbid.cli.{module}"
            found = _parser(verb, getattr(import_module(module), name))
            found.hidden = verb not in self._panels
            found.rich_help_panel = self._panels.get(verb)
            self.data[verb] = found
        return found


def _parser(verb: str, what: typer.Typer | Callable[..., None]) -> Any:
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    if isinstance(what, typer.Typer):
        alone.add_typer(what, name=verb, no_args_is_help=True)
        return with_quiet(typer.main.get_group(alone).commands[verb])
    alone.command(verb, epilog=_EXIT_CODES)(what)
    return with_quiet(typer.main.get_command(alone))


class _Verbs(TyperGroup):
    """Typer's parser of the command line, with the lazily made parsers of the verbs."""

    def __init__(self, **settings: Any) -> None:
        groups = {verb: group for group, verbs in GROUPS.items() for verb in verbs}
        listed = {verb: place for verbs in GROUPS.values() for verb, place in verbs.items()}
        super().__init__(**settings | {"commands": _Parsers(listed | _BEFORE, groups)})
        self._groups = groups
        self._listing = False

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """As in Typer, but without importing the verbs' modules."""
        import_rich_help()
        self._listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._listing = False

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - the interface requires it
        """As in Typer, without making each verb's parser."""
        return list(self.commands)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A verb's parser; while help is written, only its name and description."""
        if self._listing and cmd_name in SHORT:
            return TyperCommand(cmd_name, help=SHORT[cmd_name], rich_help_panel=self._groups[cmd_name])
        if self._listing:
            return None  # not listed
        if cmd_name not in self.commands and cmd_name in evidence_verbs():
            return self._evidence[cmd_name]  # without that word
        return super().get_command(ctx, cmd_name)

    @cached_property
    def _evidence(self) -> _Parsers:
        return _Parsers(evidence_verbs(), {})

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As in Typer; former spellings are accepted too."""
        return super().parse_args(ctx, present(args))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """As in Typer, but an unknown word is answered with the verb that it probably means."""
        known = not args or args[0].startswith("-") or args[0] in self.commands or args[0] in evidence_verbs()
        if not known:
            ctx.fail(meant(args[0], [verb for verbs in GROUPS.values() for verb in verbs]))
        return super().resolve_command(ctx, args)


class _Evidence(TyperGroup):
    def __init__(self, **settings: Any) -> None:
        verbs = evidence_verbs()
        super().__init__(**settings | {"commands": _Parsers(verbs, dict.fromkeys(verbs, "Commands"))})


evidence_app = typer.Typer(
    cls=_Evidence,
    help="Attack hushbid, benchmark it, reproduce the documentation's figures, and test other "
    "implementations.",
    no_args_is_help=True,
)


@evidence_app.callback()
def _evidence() -> None:
    pass


app = typer.Typer(
    name="hushbid",
    cls=_Verbs,
    help="Buy training data without anyone showing their data first.",
    epilog=f"`hushbid VERB -h` shows a verb's arguments and options. {_EXIT_CODES}",
    context_settings={"help_option_names": list(HELP_OPTIONS)},
    no_args_is_help=True,
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
        typer.Option("--version", help="Print the version and exit.", callback=_print_version),
    ] = False,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            is_eager=True,
            help="With --version: also print the versions of the libraries that affect results.",
        ),
    ] = False,
) -> None:
    if as_json:
        raise typer.BadParameter("without --version it goes after the verb.", param_hint="--json")
