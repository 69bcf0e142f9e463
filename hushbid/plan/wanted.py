"""Whether to buy by this protocol, or at random and weigh: a rule of thumb from measured sessions."""

from __future__ import annotations

from typing import Final, Literal

from pydantic.dataclasses import dataclass as figures

from hushbid.protocol import ranges
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.figures import Figures
from hushbid.protocol.intervals import within

__all__ = ["Wanted", "check_share", "wanted_of"]

RARE_SHARE: Final = 0.02
"""Share of wanted points in the one measured case in which private selection clearly paid."""

COMMON_SHARE: Final = 0.11
"""Share of wanted points from which it paid in effective points alone: measured at 0.115 and 0.20."""

_SAYS: Final = {
    "drowned": "No: the choice is expected to follow noise, and to be no better than a random one.",
    "rare": "Buying by this protocol pays: where 2 % were wanted (MNIST, p = 1000, ε = 1) it bought 92 to "
    "125 wanted points, and a random choice 20.",
    "between": "Not known: it paid where 2 % were wanted, and from 11 % on in effective points and accuracy "
    "alone. Nothing between was measured.",
    "common": "Buying at random and weighing comes near in MMD². By this protocol there were 2 to 3 times as "
    "many effective points, and more accuracy (measured at 11 % and 20 %, p = 1000, ε = 1).",
}


@figures(frozen=True, slots=True)
class Wanted(Figures):
    """The consequences of a share of wanted points.

    Attributes:
        share: Share of the owners' points that resemble the target, given by the caller.
        at_random: Expected wanted points among p bought at random. Weighed, the p have about as many
            effective points: 1.3 and 1.4 times that in the two measured cases.
        case: ``rare``, ``between`` or ``common`` by the share; ``drowned``: noise is expected to choose,
            whatever the share.
        says: Whether it pays, by measured cases. Nothing in it is fitted.
    """

    share: float
    at_random: float
    case: Literal["rare", "between", "common", "drowned"]
    says: str


def check_share(share: float) -> None:
    """Refuse an invalid share of wanted points.

    Raises:
        ConfigError: It is not in (0, 1].
    """
    if not within(ranges.Share, share):
        raise ConfigError(
            f"--wanted is {share:g}, and a share must be above 0 and at most 1.",
            advice="Give 0.02 if one point in fifty is wanted, or leave it out.",
        )


def wanted_of(share: float, *, points: int, available: int, drowned: bool) -> Wanted:
    """The case of a share in (0, 1], for p points of those available.

    Args:
        drowned: Whether the choice is expected to follow noise.
    """
    case: Literal["rare", "between", "common", "drowned"] = "between"
    if drowned:
        case = "drowned"
    elif share <= RARE_SHARE:
        case = "rare"
    elif share >= COMMON_SHARE:
        case = "common"
    return Wanted(share, min(points, available) * share, case, _SAYS[case])
