"""Sweeps of crashes: many sessions with different crashes, each compared with one without."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from hushbid.evidence.sweep.crashes import Crashes, write_crashes
from hushbid.evidence.sweep.engine import bug, check_all
from hushbid.evidence.sweep.small_session import SimulatedCourse, compared, run, small_session
from hushbid.protocol.errors import ConfigError, HushbidError
from hushbid.protocol.session.session import Session
from hushbid.transcripts.replay import replayed

__all__ = ["CrashSetting", "Failure", "SweepResult", "check", "sweep", "uncrashed"]

Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with the rule, the number of sessions so far, and their total."""


class CrashSetting(NamedTuple):
    """The session that is repeated (`small_session`)."""

    rule: str
    release: str
    rounds: int
    owners: int
    batch: int = 1
    commits: bool = False


class Failure(NamedTuple):
    """The planned crashes after which a session differed, and the difference in words."""

    crashes: Crashes
    what: str


@dataclass
class SweepResult:
    """The result of the sessions of one setting (docs/results.md)."""

    setting: CrashSetting
    sessions: int = 0
    crashes: int = 0
    failures: list[Failure] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return {
            **self.setting._asdict(),
            "sessions": self.sessions,
            "crashes": self.crashes,
            "failures": [
                {"only": write_crashes(failure.crashes), "what": failure.what} for failure in self.failures
            ],
        }


def sweep(
    setting: CrashSetting,
    plan: Sequence[Crashes],
    *,
    all_come: bool = False,
    jobs: int = 1,
    progress: Progress | None = None,
) -> SweepResult:
    """Run a session once for each planned crash.

    Args:
        all_come: Whether a crash that never happens, because the party has no such step, is a failure.

    Raises:
        ConfigError: There is no such session, or no such party in it.
    """
    _, base = uncrashed(setting)
    for party in sorted({crash.party for crashes in plan for crash in crashes} - base.steps.keys()):
        raise ConfigError(
            f"There is no party named {party!r} to crash.", advice=f"Choose of: {', '.join(base.steps)}."
        )
    told = None if progress is None else lambda done: progress(setting.rule, done, len(plan))
    checked = check_all(partial(_check_one, setting, all_come), plan, jobs=jobs, progress=told)
    return SweepResult(
        setting,
        sessions=len(checked),
        crashes=sum(came for came, _ in checked),
        failures=[failure for _, failure in checked if failure is not None],
    )


def _check_one(setting: CrashSetting, all_come: bool, crashes: Crashes) -> tuple[int, Failure | None]:
    """Return the number of crashes that happened, and the failure if any."""
    session, base = uncrashed(setting)
    came = 0
    try:
        course = run(session, crashes)
        came = len(course.crashed)
        wrong = check(course, base)
        if all_come:
            never = Counter(crashes) - Counter(course.crashed)
            wrong += [f"the crash {write_crashes([crash])} never came" for crash in never.elements()]
    except Exception as error:
        wrong = [bug(error)]
    return came, Failure(crashes, "; ".join(wrong)) if wrong else None


@lru_cache
def uncrashed(setting: CrashSetting) -> tuple[Session, SimulatedCourse]:
    """A session and its course without crashes, made once in every process."""
    rule, release, rounds, owners, batch, commits = setting
    session = small_session(rule, release=release, rounds=rounds, owners=owners, batch=batch, commits=commits)
    return session, run(session)


def check(course: SimulatedCourse, base: SimulatedCourse) -> list[str]:
    """The faults of a crashed session in words, in its result or its records."""
    wrong = compared(course, base)
    for party, image in course.transcripts.items():
        try:
            replayed(Path(party), image=image)
        except HushbidError as error:
            wrong.append(f"the transcript of {party} does not replay ({error.what})")
    return wrong
