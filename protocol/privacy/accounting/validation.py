"""The checks that public functions of accounting make of their arguments."""

from __future__ import annotations

import math

from hushbid.protocol.errors import ConfigError

__all__ = ["check_count", "check_delta", "check_delta_of", "check_epsilon", "check_positive"]


def check_epsilon(epsilon: float) -> None:
    """Raises ConfigError unless `epsilon`, a target or a budget, is positive and finite."""
    check_positive("epsilon", epsilon)


def check_delta(delta: float) -> None:
    """Raises ConfigError unless 0 < `delta` < 1."""
    if not 0.0 < delta < 1.0:
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


def check_positive(key: str, value: float) -> None:
    """Raises ConfigError, which names the key, unless `value` is positive and finite."""
    if not (math.isfinite(value) and value > 0.0):
        raise ConfigError(f"{key} is {value}.", advice=f"Set {key} to a positive number.")


def check_count(key: str, value: int) -> None:
    """Raises ConfigError, which names the key, unless `value` is a whole number above 0."""
    if value < 1 or value != int(value):
        raise ConfigError(f"{key} is {value}.", advice=f"Set {key} to a whole number above 0.")
