"""Many sessions, each with its own seed's faults, and each checked against all invariants."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from hushbid.evidence.sweep.course import SessionEvidence, run_plan
from hushbid.evidence.sweep.engine import bug, check_all
from hushbid.evidence.sweep.invariants import broken, different_again
from hushbid.evidence.sweep.plan import SweepPlan, plan_of
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.names import CONSUMER, CURATOR

__all__ = ["FaultSweep", "SeedFailure", "check_seed", "seeds_of", "sweep_faults", "write_transcripts"]

AGAIN: Final = 10
"""One in this many seeds is run twice, and must give the same transcripts."""


class SeedFailure(NamedTuple):
    """A seed whose session broke an invariant (docs/results.md)."""

    seed: int
    broken: dict[str, list[str]]
    plan: list[str]
    smallest: list[str]

    def as_json(self) -> dict[str, Any]:
        return self._asdict()


@dataclass
class FaultSweep:
    """The outcome of a sweep, or of a part of it (docs/results.md).

    Attributes:
        digests: Digest of each session's transcripts, in the order of the seeds.
    """

    sessions: int = 0
    again: int = 0
    happened: Counter[str] = field(default_factory=Counter)
    rules: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    failures: list[SeedFailure] = field(default_factory=list)
    digests: list[bytes] = field(default_factory=list)

    def add(self, other: FaultSweep) -> None:
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))

    def as_json(self) -> dict[str, Any]:
        return {
            "sessions": self.sessions,
            "again": self.again,
            "digest": hashlib.sha256(b"".join(self.digests)).hexdigest(),
            "happened": dict(sorted(self.happened.items())),
            "rules": dict(sorted(self.rules.items())),
            "ends": dict(sorted(self.ends.items())),
            "failures": [failure.as_json() for failure in self.failures],
        }


def seeds_of(first: int, sessions: int | None, part: slice) -> Iterator[int]:
    """The seeds of a sweep's share; None: the number of sessions is unlimited."""
    every = count(first) if sessions is None else iter(range(first, first + sessions))
    return islice(every, part.start, None, part.step)


def sweep_faults(
    seeds: Iterable[int],
    *,
    rules: Sequence[str] = (),
    jobs: int = 1,
    seconds: float | None = None,
    progress: Callable[[int], None] | None = None,
) -> FaultSweep:
    """Run the sessions of these seeds.

    Args:
        rules: Acquisition rules that a seed chooses from; none: all.
        jobs, seconds, progress: As `check_all`.
    """
    result = FaultSweep()
    for each in check_all(
        partial(check_seed, rules=rules), seeds, jobs=jobs, seconds=seconds, progress=progress
    ):
        result.add(each)
    return result


def check_seed(seed: int, rules: Sequence[str] = ()) -> FaultSweep:
    """Run the session of one seed, and check all invariants."""
    plan = plan_of(seed, rules)
    evidence, wrong = _checked(plan)
    again = seed % AGAIN == 0 or bool(wrong)
    if again and evidence is not None and (different := different_again(evidence)):
        wrong["same-again"] = [
            f"the transcript of {party} is another when it is run again" for party in different
        ]
    failures = []
    if wrong:
        smallest = _shrunk(plan, frozenset(wrong))
        failures.append(SeedFailure(seed, wrong, plan.words(), smallest.words()))
    result = FaultSweep(1, int(again), failures=failures, rules=Counter({plan.rule: 1}))
    if evidence is not None:
        result.happened = evidence.happened
        result.ends = _ends(evidence)
        images = (hashlib.sha256(image).digest() for image in evidence.transcripts.values())
        result.digests = [hashlib.sha256(b"".join(images)).digest()]
    return result


def write_transcripts(seed: int, rules: Sequence[str], directory: Path) -> None:
    """Run the session of a seed, and write every party's transcript.

    Raises:
        ConfigError: The directory cannot be created, or already exists.
    """
    try:
        directory.mkdir(parents=True)
    except OSError as error:
        raise ConfigError(
            f"{directory}: cannot make the directory: {error.strerror}.", advice="Name another directory."
        ) from error
    for party, image in run_plan(plan_of(seed, rules)).transcripts.items():
        (directory / f"{party}.transcript").write_bytes(image)


def _checked(plan: SweepPlan) -> tuple[SessionEvidence | None, dict[str, list[str]]]:
    """Run a plan; return its evidence, if it came to an end, and its faults."""
    try:
        evidence = run_plan(plan)
        return evidence, broken(evidence)
    except Exception as error:
        return None, {"no-bug": [bug(error)]}


def _shrunk(plan: SweepPlan, names: frozenset[str]) -> SweepPlan:
    """The plan reduced to the faults needed to break one of the same invariants."""
    for fewer in plan.fewer():
        if names & _checked(fewer)[1].keys():
            return _shrunk(fewer, names)
    return plan


def _ends(evidence: SessionEvidence) -> Counter[str]:
    ends: Counter[str] = Counter()
    for party, finish in evidence.outcome.finishes.items():
        role = party if party in (CURATOR, CONSUMER) else "owner"
        role = f"byzantine {role}" if party in evidence.byzantine else role
        ends[f"{role} {finish.code.value}"] += 1
    return ends
