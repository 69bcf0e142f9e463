"""Methods of choosing p points from the owners' data: private ones, and what they are compared with.

Each is by name, and gives its points alone. Whether points are weighed is the consumer's affair and costs no
privacy, so that every method is judged with and without matching weights (`purchases`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from hushbid.cluster.evaluation import Selection, uniform
from hushbid.evidence.experiments.bought_in_session import SESSIONS, buy
from hushbid.evidence.experiments.market import Bought, Market
from hushbid.evidence.experiments.runner import refuse_unknown

__all__ = ["METHODS", "PRIVATE", "Method", "check_methods", "proportional"]


@dataclass(frozen=True)
class Method:
    """A way of choosing.

    Attributes:
        choose: Of the market, p, and ε, which is None for what is not calibrated to one.
        calibrated: Whether it is.
    """

    choose: Callable[[Market, int, float | None], Bought]
    calibrated: bool = False


def proportional(sizes: Mapping[str, int], p: int, generator: np.random.Generator) -> Selection:
    """Rows of each owner at random, as many as its share of all points, by largest remainders.

    Args:
        p: Points to choose; all, if there are fewer.
    """
    names = sorted(sizes)
    total = sum(sizes.values())
    p = min(p, total)
    exact = np.array([sizes[name] * p / total for name in names])
    shares = np.floor(exact).astype(int)
    # The sort is stable: of equal remainders the first name's is rounded up.
    for place in np.argsort(shares - exact, kind="stable")[: p - shares.sum()]:
        shares[place] += 1
    return [
        (name, int(row))
        for name, share in zip(names, shares, strict=True)
        for row in generator.choice(sizes[name], size=share, replace=False)
    ]


def _open(choose: Callable[[Market, int], Selection]) -> Method:
    """A method without any privacy."""

    def bought(market: Market, p: int, _epsilon: float | None) -> Bought:
        return Bought(choose(market, p), None, None, None)

    return Method(bought)


def _uniform(market: Market, p: int) -> Selection:
    return uniform(market.sizes, p, np.random.default_rng([market.seed, p]))


def _proportional(market: Market, p: int) -> Selection:
    return proportional(market.sizes, p, np.random.default_rng([market.seed, p]))


def _all(market: Market, _p: int) -> Selection:
    return [(name, row) for name, size in market.sizes.items() for row in range(size)]


def _in_session(name: str, market: Market, p: int, epsilon: float | None) -> Bought:
    return buy(market, SESSIONS[name], p, epsilon)


METHODS: Final[Mapping[str, Method]] = {
    "greedy-kernel": _open(Market.greedy_kernel),
    "greedy-features": _open(Market.greedy_features),
    "uniform": _open(_uniform),
    "proportional": _open(_proportional),
    "all": _open(_all),
    **{name: Method(partial(_in_session, name), how.calibrated) for name, how in SESSIONS.items()},
}
"""Every method by its name: greedy by the exact kernel or by features (with the seed set, as the papers have
it), as many points of each owner at random, as many as its share, all points, and the sessions."""

PRIVATE: Final = "private"
"""Ours."""


def check_methods(names: Sequence[str]) -> None:
    """Refuse a method that there is none of.

    Raises:
        ConfigError: There is none of that name.
    """
    refuse_unknown(names, METHODS, "method", "Methods")
