"""Audits: many runs on neighbouring datasets; half of them fit the attack, and half count its successes.

Every run's noise has its own seed, so a result depends on the audit's seed alone, not on the number of
processes.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from hushbid.evidence.audit.attack import Attack, Stated
from hushbid.evidence.audit.bounds import allowed_alarms, epsilon_lower_of
from hushbid.evidence.audit.faults import FAULTS
from hushbid.evidence.audit.statistic import Observations, fit
from hushbid.evidence.audit.suites import SUITES, Expected, Suite, suite_of
from hushbid.evidence.pool import results_of
from hushbid.protocol import ranges
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.extras import need
from hushbid.protocol.intervals import within

__all__ = ["FEWEST_TRIALS", "AuditResult", "Progress", "audit", "choose"]

FEWEST_TRIALS: Final = 20
"""With fewer trials, half of them cannot bound anything."""

Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with a suite's name, its runs so far, and its total runs."""


@dataclass(frozen=True, slots=True)
class AuditResult:
    """The outcome of one suite; docs/audit.md says what its fields are."""

    suite: str
    stated: Stated
    epsilon_lower: float
    confidence: float
    trials: int
    expected: Expected
    alarms: int
    repeats: int

    @property
    def rejected(self) -> bool:
        """Whether there were more alarms than chance explains (`allowed_alarms`)."""
        return self.alarms > allowed_alarms(self.repeats, self.confidence)

    @property
    def as_expected(self) -> bool:
        """Whether the result is as expected; a control must be caught in nearly every repeat, 19 of 20."""
        if self.expected == "pass":
            return not self.rejected
        return self.rejected and self.alarms >= self.repeats - self.repeats // 20

    def as_json(self) -> dict[str, Any]:
        return {
            "suite": self.suite,
            "attacked": suite_of(self.suite).about,
            "stated_epsilon": self.stated.epsilon,
            "delta": self.stated.delta,
            "neighbours": self.stated.neighbours,
            "epsilon_lower": self.epsilon_lower,
            "confidence": self.confidence,
            "trials": self.trials,
            "rejected": self.rejected,
            "expected": self.expected,
            "as_expected": self.as_expected,
            "alarms": self.alarms,
            "repeats": self.repeats,
            "fault_of": suite_of(self.suite).sound or None,
        }


def choose(names: Sequence[str], *, faults: bool = False) -> tuple[Suite, ...]:
    """The suites with those names, or all of them, or those with a planted fault.

    Raises:
        ConfigError: There is no such suite, or names were given together with `faults`.
    """
    if names and faults:
        raise ConfigError(
            "Named suites and all planted faults exclude each other.", advice="Leave out one or the other."
        )
    if not names:
        return tuple(suite for suite in SUITES.values() if suite.name in FAULTS or not faults)
    return tuple(map(suite_of, names))


def audit(
    suites: Sequence[Suite],
    *,
    trials: int | None = None,
    confidence: float = 0.95,
    jobs: int = 1,
    seed: int = 0,
    repeats: int = 1,
    progress: Progress | None = None,
) -> Iterator[AuditResult]:
    """Run suites, one after the other, and yield each result as soon as it is available.

    Args:
        trials: Runs on each of D and D', at least `FEWEST_TRIALS`; None: each suite's own number.
        confidence: In (0, 1): a lower bound is too high in at most 1 - confidence of all audits.
        repeats: Number of audits of each suite, each with other noise.

    Raises:
        ConfigError: There are too few trials, another argument is out of range, or scikit-learn is missing.
    """
    if not 0.0 < confidence < 1.0:
        raise ConfigError(f"A confidence of {confidence} is impossible.", advice="Give one between 0 and 1.")
    sound = within(ranges.Count, min(jobs, repeats)) and within(ranges.Seed, seed)
    if not sound or (trials is not None and trials < FEWEST_TRIALS):
        raise ConfigError(
            "An audit's jobs, repeats, seed or trials are out of range.",
            advice=f"Give at least 1 job, 1 repeat, {FEWEST_TRIALS} trials, and a seed of 0 or more.",
        )
    need("sklearn", "An audit")
    for suite in suites:
        yield _audit_one(suite, trials or suite.trials, confidence, seed, repeats, jobs, progress)


class _Block(NamedTuple):
    suite: str
    seed: int
    repeat: int
    neighbour: int
    start: int
    stop: int


def _audit_one(
    suite: Suite,
    trials: int,
    confidence: float,
    seed: int,
    repeats: int,
    jobs: int,
    progress: Progress | None,
) -> AuditResult:
    attack = _attack(suite.name)
    blocks = [
        _Block(suite.name, seed, repeat, neighbour, start, min(start + attack.block, trials))
        for repeat in range(repeats)
        for neighbour in (0, 1)
        for start in range(0, trials, attack.block)
    ]
    done = 0
    gained: dict[int, Observations] = {}
    for place, evidence in results_of(_run, blocks, jobs=jobs):
        gained[place] = evidence
        done += blocks[place].stop - blocks[place].start
        if progress is not None:
            progress(suite.name, done, 2 * repeats * trials)
    found = [gained[place] for place in range(len(blocks))]
    size = len(blocks) // (2 * repeats)
    pairs = [Observations.joined(found[start : start + size]) for start in range(0, len(found), size)]
    bounds = [
        _bound(first, second, delta=attack.stated.delta, confidence=confidence)
        for first, second in zip(pairs[::2], pairs[1::2], strict=True)
    ]
    return AuditResult(
        suite=suite.name,
        stated=attack.stated,
        epsilon_lower=max(bounds),
        confidence=confidence,
        trials=trials,
        expected=suite.expected,
        alarms=sum(bound > attack.stated.epsilon for bound in bounds),
        repeats=repeats,
    )


def _bound(first: Observations, second: Observations, *, delta: float, confidence: float) -> float:
    """Fit the attack on the first half of the runs, and bound ε by the second."""
    half, trials = len(first) // 2, len(first)
    event = fit(first.part(0, half), second.part(0, half), delta=delta, confidence=confidence)
    hits, false_alarms = (event.count(part.part(half, trials)) for part in (second, first))
    return epsilon_lower_of(hits, false_alarms, trials - half, delta=delta, confidence=confidence)


@lru_cache
def _attack(name: str) -> Attack:
    """The attack, made once in every process."""
    return suite_of(name).attack()


def _run(block: _Block) -> Observations:
    key = (zlib.crc32(block.suite.encode()), block.repeat, block.neighbour)
    seeds = [
        int(np.random.SeedSequence(block.seed, spawn_key=(*key, run)).generate_state(1, np.uint64)[0] >> 1)
        for run in range(block.start, block.stop)
    ]
    return _attack(block.suite).run(block.neighbour, seeds)
