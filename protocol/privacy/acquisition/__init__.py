"""Acquisition rules: how the curator gets the points (DESIGN §3).

One file each, and one line of `RULES`; other packages add rules with `register_rule`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hushbid.protocol.privacy.acquisition.ask_all import AskAll
from hushbid.protocol.privacy.acquisition.base import AcquisitionRule, BidStanding
from hushbid.protocol.privacy.acquisition.blind import Blind
from hushbid.protocol.privacy.acquisition.logistic import Logistic
from hushbid.protocol.privacy.acquisition.published import Published
from hushbid.protocol.privacy.acquisition.sealed import Sealed
from hushbid.protocol.privacy.acquisition.tender import Tender
from hushbid.protocol.privacy.acquisition.winner_only import WinnerOnly
from hushbid.protocol.privacy.registry import Registry

__all__ = [
    "RULES",
    "AcquisitionRule",
    "BidStanding",
    "Logistic",
    "acquisition_rule",
    "asks",
    "herds",
    "register_rule",
]

RULES: Final[Registry[AcquisitionRule]] = Registry(
    "an acquisition rule",
    (Sealed, Tender, Blind, AskAll, Logistic, Published, WinnerOnly),
    unknown="acquisition.rule: no rule is named {name!r}.",
    wrong="acquisition.{key}",
)
"""Every rule, by the name that a session file uses."""
register_rule: Final = RULES.register


def asks(name: str) -> bool:
    """Whether a rule asks owners for points, so that the asked owners are private; so does an unknown one."""
    rule = RULES.get(name)
    return rule is None or not rule.candidate_with_bid


def herds(name: str) -> bool:
    """Whether a rule has one round, in which owners submit their own choice (`AcquisitionRule.herds`)."""
    rule = RULES.get(name)
    return rule is not None and rule.herds


def acquisition_rule(
    name: str, parameters: Mapping[str, object], *, owners: int, rounds: int, delta: float
) -> AcquisitionRule:
    """The rule with that name, for a session (`AcquisitionRule`).

    Args:
        parameters: The further keys of the session file's ``[acquisition]``.

    Raises:
        ConfigError: There is no such rule, it refuses the parameters, or it does not suit the session.
    """
    rule, checked = RULES.chosen(name, parameters)
    return rule(checked, owners=owners, rounds=rounds, delta=delta)
