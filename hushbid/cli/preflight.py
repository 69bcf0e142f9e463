"""`hushbid preflight`: whether a party can take part in a session from this machine."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

from owner.role import (
    BudgetOption,
    ConfigOption,
    DataOption,
    FeaturesOption,
    IdentifierOption,
    InvitationOption,
    LabelOption,
    LedgerOption,
    LiftOption,
    Owner,
    SessionOption,
)
from protocol.errors import ExitCode
from protocol.runtime.command import JsonOption, KeyOption, StateOption, run_verb

__all__ = ["preflight_command"]


def preflight_command(
    session: SessionOption = None,
    config: ConfigOption = None,
    invitation: InvitationOption = None,
    data: DataOption = None,
    key: KeyOption = None,
    state: StateOption = None,
    ledger: LedgerOption = None,
    features: FeaturesOption = None,
    label: LabelOption = None,
    identifier: IdentifierOption = None,
    budget_epsilon: BudgetOption = None,
    lift_budget: LiftOption = False,
    listen: Annotated[
        str | None, typer.Option(help="Of a curator, as it is given it.", envvar="HUSHBID_LISTEN")
    ] = None,
    validation: Annotated[
        Path | None, typer.Option(help="Of the consumer, as it is given it.", envvar="HUSHBID_VALIDATION")
    ] = None,
    seed_set: Annotated[
        Path | None, typer.Option(help="Of the consumer, as it is given it.", envvar="HUSHBID_SEED_SET")
    ] = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Ask nothing of the network, and bind nothing.")
    ] = False,
    rehearsal: Annotated[
        bool,
        typer.Option(
            "--rehearsal/--no-rehearsal",
            help="Of the consumer: play the session with owners made of the validation set.",
            envvar="HUSHBID_REHEARSAL",
        ),
    ] = True,
    anyway: Annotated[
        bool,
        typer.Option(
            "--anyway", help="Of the consumer: a hopeless session would go on.", envvar="HUSHBID_ANYWAY"
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Check whether a party can take part from this machine. Give it the options that the party is given."""
    options = Owner(
        session=session,
        config=config,
        invitation=invitation,
        data=data,
        key=key,
        state=state,
        ledger=ledger,
        features=features,
        label=label,
        identifier=identifier,
        budget_epsilon=budget_epsilon,
        lift_budget=lift_budget,
    )
    code = ExitCode.DONE

    def body() -> dict[str, Any]:
        from functools import partial

        from hushbid.preflight.checks import exit_code, preflight
        from hushbid.preflight.subject import open_subject

        nonlocal code
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
        findings = []
        for finding in preflight(opening):
            findings.append(finding)
            _say(finding.as_json(), as_json=as_json)
        code = exit_code(findings)
        return {"checks": [finding.as_json() for finding in findings]}

    try:
        run_verb(body, as_json=as_json)
    except SystemExit as ending:
        if ending.code == ExitCode.DONE:
            sys.exit(code)
        raise


def _say(finding: Mapping[str, str], *, as_json: bool) -> None:
    """What is well, and what to do about what is not: a line, or several under one another."""
    stream = sys.stderr if as_json else sys.stdout
    _write(stream, finding["status"], finding["check"], finding["problem"] or finding["said"])
    if finding["fix"]:
        _write(stream, "", "fix", finding["fix"])
    stream.flush()


def _write(stream: TextIO, status: str, name: str, text: str) -> None:
    for line in text.split("\n"):
        stream.write(f"{status:<11}  {name:<12}  {line}\n")
        status = name = ""
