"""`hushbid preflight`: whether a party can take part in a session from this machine."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TextIO

from hushbid.preflight.options import PartyOptions
from hushbid.protocol.errors import ExitCode
from hushbid.protocol.printable import printable
from hushbid.protocol.runtime.command import JsonOption, run_verb, takes

if TYPE_CHECKING:
    from hushbid.preflight.checks import Finding

__all__ = ["preflight_command"]


@takes(PartyOptions, without=("metrics",))
def preflight_command(options: PartyOptions, as_json: JsonOption = False) -> None:
    """Check whether a party can take part from this machine. Give it the party's own options."""
    findings: list[Finding] = []

    def body() -> dict[str, Any]:
        from hushbid.preflight.checks import preflight
        from hushbid.preflight.subject import open_subject

        for finding in preflight(lambda: open_subject(options)):
            findings.append(finding)
            _say(finding, as_json=as_json)
        return {"checks": [finding.as_json() for finding in findings]}

    def ends(_: Mapping[str, Any]) -> ExitCode:
        from hushbid.preflight.checks import exit_code

        return exit_code(findings)

    run_verb(body, as_json=as_json, ends=ends)


def _say(finding: Finding, *, as_json: bool) -> None:
    """Write a finding and, for a problem, its remedy: on one line, or on several lines."""
    stream = sys.stderr if as_json else sys.stdout
    _write(stream, finding.status, finding.check, finding.problem or finding.said)
    if finding.fix:
        _write(stream, "", "fix", finding.fix)
    stream.flush()


def _write(stream: TextIO, status: str, name: str, text: str) -> None:
    for line in text.split("\n"):
        stream.write(f"{status:<11}  {name:<12}  {printable(line)}\n")
        status = name = ""
