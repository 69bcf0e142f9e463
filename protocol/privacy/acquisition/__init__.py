"""Acquisition rules: how the curator gets the points (DESIGN §3).

One file each, and one line of `RULES`; others come by `register_rule`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from pydantic import ValidationError

from protocol.errors import ConfigError
from protocol.faults import faults
from protocol.privacy.acquisition.ask_all import AskAll
from protocol.privacy.acquisition.base import AcquisitionRule, Standing
from protocol.privacy.acquisition.blind import Blind
from protocol.privacy.acquisition.logistic import Logistic, LogisticParameters
from protocol.privacy.acquisition.published import Published
from protocol.privacy.acquisition.sealed import Sealed, SealedParameters
from protocol.privacy.acquisition.winner_only import WinnerOnly

__all__ = [
    "RULES",
    "AcquisitionRule",
    "Logistic",
    "LogisticParameters",
    "SealedParameters",
    "Standing",
    "acquisition_rule",
    "asks",
    "register_rule",
]

RULES: Final[dict[str, type[AcquisitionRule]]] = {
    rule.name: rule for rule in (Sealed, Blind, AskAll, Logistic, Published, WinnerOnly)
}
"""Every rule, by the name that a session file uses."""

R = TypeVar("R", bound=type[AcquisitionRule])


def register_rule(rule: R) -> R:
    """Make an acquisition rule known to sessions, plans, audits and sweeps; serves as a class decorator.

    It is known in this process, as soon as the module that calls this is imported. Every party of a session
    needs it.

    Args:
        rule: Its `name` is what a session file calls it by.

    Raises:
        ValueError: There is another rule of that name.
    """
    if RULES.setdefault(rule.name, rule) is not rule:
        raise ValueError(f"There is an acquisition rule named {rule.name!r} already.")
    return rule


def asks(name: str) -> bool:
    """Whether a rule asks owners for points, so that who is asked is private.

    An unknown name counts as one that does.

    Args:
        name: A key of `RULES`.
    """
    rule = RULES.get(name)
    return rule is None or not rule.candidate_with_bid


def acquisition_rule(
    name: str, parameters: Mapping[str, Any], *, owners: int, rounds: int, delta: float
) -> AcquisitionRule:
    """The rule of that name.

    Args:
        name: A key of `RULES`.
        parameters: The further keys of the session file's ``[acquisition]``.
        owners: K.
        rounds: p.
        delta: The δ at which the session states its privacy, in (0, 1).

    Raises:
        ConfigError: No such rule, parameters that it does not take, or a session that it is not for.
    """
    rule = RULES.get(name)
    if rule is None:
        raise ConfigError(
            f"acquisition.rule: no rule is named {name!r}.", advice=f"There are: {', '.join(RULES)}."
        )
    try:
        return rule(
            rule.Parameters.model_validate(dict(parameters)), owners=owners, rounds=rounds, delta=delta
        )
    except ValidationError as error:
        fault = faults(error)[0]
        key = ".".join(("acquisition", *fault.place))
        raise ConfigError(f"{key}: {fault.words}.", advice=f"Correct the parameters of {name}.") from None
