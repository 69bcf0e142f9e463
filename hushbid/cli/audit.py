"""`hushbid audit`: attack the real machines, and bound ε from below by what the attacks find."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from hushbid.cli.progress import job_progress
from hushbid.evidence.audit.machines import AuditOptions, audit_machines
from hushbid.protocol.errors import ExitCode
from hushbid.protocol.runtime.command import takes, verb

__all__ = ["audit_command"]

NO_PROOF: Final = (
    "An audit can show that a guarantee does not hold. It cannot show that one does: it tries the attacks "
    "that are listed, and no others."
)


def _show(result: Mapping[str, Any]) -> None:
    from rich.table import Table

    from hushbid.cli.terminal import Terminal

    table = Table("suite", "fault of", "stated ε", "at δ", "ε is at least", "runs", "alarms", "result")
    for suite in result["suites"]:
        table.add_row(
            suite["suite"],
            suite["fault_of"] or "",
            f"{suite['stated_epsilon']:.3g}",
            f"{suite['delta']:.2g}",
            f"{suite['epsilon_lower']:.3g}",
            f"2 × {suite['trials']}",
            f"{suite['alarms']} of {suite['repeats']}",
            _verdict(suite),
        )
    console = Terminal()
    console.print(table)
    for suite in result["suites"]:
        console.print(
            f"{suite['suite']} ({suite['neighbours']}): {suite['attacked']}.", highlight=False, soft_wrap=True
        )
    confidence = result["suites"][0]["confidence"]
    console.print(
        f"Each bound holds with {confidence:.4g} confidence: it is too high in at most "
        f"{1.0 - confidence:.2g} of all audits.",
        NO_PROOF,
        highlight=False,
        soft_wrap=True,
    )


def _verdict(suite: Mapping[str, Any]) -> str:
    if suite["expected"] == "reject":
        return "caught" if suite["as_expected"] else "NOT CAUGHT"
    return "passed" if suite["as_expected"] else "REJECTED"


def _ends(result: Mapping[str, Any]) -> ExitCode:
    return ExitCode.DONE if result["as_expected"] else ExitCode.FAILED


@takes(AuditOptions)
@verb(show=_show, ends=_ends)
def audit_command(options: AuditOptions) -> dict[str, Any]:
    """Attack the real machines on neighbouring datasets: broken controls must be caught, the others pass."""
    with job_progress("auditing", "runs") as progress:
        results = audit_machines.of(replace(options, progress=progress))
    return {
        "suites": [result.as_json() for result in results],
        "as_expected": all(result.as_expected for result in results),
        "note": NO_PROOF,
    }
