"""`hushbid audit` and `hushbid.audit_machines`: attack the real machines, and bound ε from below."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import typer

from hushbid.protocol import platform
from hushbid.protocol.runtime.command import by_option, keywords_of, option

if TYPE_CHECKING:
    from hushbid.evidence.audit.run import AuditResult

__all__ = ["AuditOptions", "audit_machines"]


@dataclass(frozen=True, kw_only=True)
class AuditOptions:
    """A request to audit; the options' help describes the fields.

    Attributes:
        progress: As `hushbid.evidence.audit.run.Progress`.
    """

    suites: Sequence[str] | None = field(
        default=None,
        kw_only=False,
        metadata=by_option(
            Annotated[
                list[str] | None,
                typer.Argument(help="Suites to audit; default: all.", metavar="[SUITE]..."),
            ]
        ),
    )
    trials: int | None = option(
        int | None, help="Runs on each of the two neighbouring datasets; default: the suite's own number."
    )
    confidence: float = option(float, default=0.95, help="Confidence of each lower bound on ε.")
    jobs: int | None = option(int | None, min=1, help="Number of processes; default: one per core.")
    seed: int = option(int, default=0, min=0, help="Seed of all noise: the same seed gives the same result.")
    repeat: int = option(int, default=1, min=1, help="Audits per suite, each with different noise.")
    faults: bool = option(
        bool, "--faults", default=False, help="Audit planted faults only; each must be caught."
    )
    progress: Callable[[str, int, int], None] | None = None


@keywords_of(AuditOptions)
def audit_machines(options: AuditOptions) -> tuple[AuditResult, ...]:
    """Attack the machines on neighbouring datasets; arguments are the attributes of `AuditOptions`.

    It can show that a guarantee does not hold, but not that one does: it tries only its own attacks.

    Returns:
        The result of each suite; `as_expected` says whether a control was caught, or another suite passed.

    Raises:
        ConfigError: There is no such suite, or an argument is out of range.
    """
    from hushbid.evidence.audit.run import audit, choose

    found = audit(
        choose(options.suites or (), faults=options.faults),
        trials=options.trials,
        confidence=options.confidence,
        jobs=options.jobs or platform.cores(),
        seed=options.seed,
        repeats=options.repeat,
        progress=options.progress,
    )
    return tuple(found)
