"""The checks that public functions of accounting make of their arguments."""

from __future__ import annotations

from hushbid.protocol import ranges
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.intervals import within

__all__ = ["check_cost", "check_count", "check_delta", "check_delta_of", "check_epsilon", "check_positive"]


def check_epsilon(epsilon: float) -> None:
    """Raises ConfigError unless `epsilon`, a target or a budget, is positive and finite."""
    check_positive("epsilon", epsilon)


def check_delta(delta: float) -> None:
    """Raises ConfigError unless 0 < `delta` < 1."""
    if not within(ranges.Delta, delta):
        raise ConfigError(
            f"delta is {delta}; no guarantee can be stated for it.", advice="Set delta between 0 and 1."
        )


def check_delta_of(delta: float, rows: int, whose: str) -> None:
    """Refuse a δ that would permit publishing a record: the guarantee then says nothing.

    A mechanism that reveals one of n records at random is (0, 1/n)-private (Dwork and Roth 2014, §2.3). The
    number of rows is private, and the error does not state it.

    Raises:
        ConfigError: δ·n is 1 or more.
    """
    if delta * rows >= 1.0:
        raise ConfigError(
            f"delta is {delta:g}, which is not below 1 over the number of rows of {whose}: a release that "
            "publishes one of them would have that guarantee.",
            advice="Agree on a delta far below that: a hundredth of it, say.",
        )


def check_cost(what: str, epsilon: float, delta: float) -> None:
    """Raises ConfigError, which names `what`, unless it can have cost so much, or nothing."""
    if not (within(ranges.SpentEpsilon, epsilon) and within(ranges.PureDelta, delta)):
        raise ConfigError(
            f"A {what} has epsilon {epsilon} and delta {delta}.",
            advice="Its epsilon is at least 0, its delta at least 0 and below 1.",
        )


def check_positive(key: str, value: float) -> None:
    """Raises ConfigError, which names the key, unless `value` is positive and finite."""
    if not within(ranges.Positive, value):
        raise ConfigError(f"{key} is {value}.", advice=f"Set {key} to a positive number.")


def check_count(key: str, value: int) -> None:
    """Raises ConfigError, which names the key, unless `value` is a whole number above 0."""
    if not within(ranges.Count, value) or value != int(value):
        raise ConfigError(f"{key} is {value}.", advice=f"Set {key} to a whole number above 0.")
