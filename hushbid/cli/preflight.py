"""`hushbid preflight`: whether a party can take part in a session from this machine."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from owner.role import Owner
from protocol.errors import ExitCode
from protocol.runtime.command import JsonOption, run_verb, takes

if TYPE_CHECKING:
    from hushbid.preflight.checks import Finding

__all__ = ["preflight_command"]


@takes(Owner, without=("metrics",))
def preflight_command(
    options: Owner,
    listen: Annotated[
        str | None, typer.Option(help="A curator's option of this name.", envvar="HUSHBID_LISTEN")
    ] = None,
    validation: Annotated[
        Path | None, typer.Option(help="The consumer's option of this name.", envvar="HUSHBID_VALIDATION")
    ] = None,
    seed_set: Annotated[
        Path | None, typer.Option(help="The consumer's option of this name.", envvar="HUSHBID_SEED_SET")
    ] = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Ask nothing of the network, and bind nothing.")
    ] = False,
    rehearsal: Annotated[
        bool,
        typer.Option(
            "--rehearsal/--no-rehearsal",
            help="For the consumer: play the session with owners made of the validation set.",
            envvar="HUSHBID_REHEARSAL",
        ),
    ] = True,
    anyway: Annotated[
        bool,
        typer.Option(
            "--anyway", help="For the consumer: a hopeless session would go on.", envvar="HUSHBID_ANYWAY"
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Check whether a party can take part from this machine. Give it the options that the party is given."""
    findings: list[Finding] = []

    def body() -> dict[str, Any]:
        from functools import partial

        from hushbid.preflight.checks import preflight
        from hushbid.preflight.subject import open_subject

        opening = partial(
            open_subject,
            options,
            listen=listen,
            validation=validation,
            seed_set=seed_set,
            offline=offline,
            rehearse=rehearsal,
            anyway=anyway,
        )
        for finding in preflight(opening):
            findings.append(finding)
            _say(finding.as_json(), as_json=as_json)
        return {"checks": [finding.as_json() for finding in findings]}

    def ends(_: Mapping[str, Any]) -> ExitCode:
        from hushbid.preflight.checks import exit_code

        return exit_code(findings)

    run_verb(body, as_json=as_json, ends=ends)


def _say(finding: Mapping[str, str], *, as_json: bool) -> None:
    """Write a finding and, for a problem, its remedy: one line, or several under one another."""
    stream = sys.stderr if as_json else sys.stdout
    _write(stream, finding["status"], finding["check"], finding["problem"] or finding["said"])
    if finding["fix"]:
        _write(stream, "", "fix", finding["fix"])
    stream.flush()


def _write(stream: TextIO, status: str, name: str, text: str) -> None:
    for line in text.split("\n"):
        stream.write(f"{status:<11}  {name:<12}  {line}\n")
        status = name = ""
