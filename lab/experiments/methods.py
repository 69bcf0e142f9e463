"""Methods of choosing p points from the owners' data: private ones, and baselines.

A method returns points only. Weighting points is up to the consumer and costs no privacy, so every method is
judged with and without matching weights (`purchases`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from hushbid.cluster.evaluation import Selection, uniform
from hushbid.lab.experiments.bought_in_session import SESSIONS, buy
from hushbid.lab.experiments.market import Bought, Market
from hushbid.lab.experiments.runner import refuse_unknown

__all__ = ["METHODS", "PRIVATE", "Method", "check_methods", "proportional"]


@dataclass(frozen=True)
class Method:
    """A function of the market, p and ε, which is None for methods that are not calibrated."""

    choose: Callable[[Market, int, float | None], Bought]
    calibrated: bool = False


def proportional(sizes: Mapping[str, int], p: int, generator: np.random.Generator) -> Selection:
    """Random rows of each owner in proportion to its share of all points, by largest remainders.

    Args:
        p: Points to choose; all if there are fewer.
    """
    names = sorted(sizes)
    total = sum(sizes.values())
    p = min(p, total)
    exact = np.array([sizes[name] * p / total for name in names])
    shares = np.floor(exact).astype(int)
    # The sort is stable: among equal remainders the first name's is rounded up.
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


def _at_random(choose: Callable[[Mapping[str, int], int, np.random.Generator], Selection]) -> Method:
    return _open(lambda market, p: choose(market.sizes, p, np.random.default_rng([market.seed, p])))


def _all(market: Market, _p: int) -> Selection:
    return [(name, row) for name, size in market.sizes.items() for row in range(size)]


def _in_session(name: str, market: Market, p: int, epsilon: float | None) -> Bought:
    return buy(market, SESSIONS[name], p, epsilon)


METHODS: Final[Mapping[str, Method]] = {
    "greedy-kernel": _open(Market.greedy_kernel),
    "greedy-features": _open(Market.greedy_features),
    "uniform": _at_random(uniform),
    "proportional": _at_random(proportional),
    "all": _open(_all),
    **{name: Method(partial(_in_session, name), how.calibrated) for name, how in SESSIONS.items()},
}
"""Every method by its name: greedy by the exact kernel or by features (with the seed set, as the papers have
it), equally many random points of each owner, points in proportion to its share, all points, and the
sessions."""

PRIVATE: Final = "private"
"""Our own private methods."""


def check_methods(names: Sequence[str]) -> None:
    """Refuse unknown methods.

    Raises:
        ConfigError: There is no method of that name.
    """
    refuse_unknown(names, METHODS, "method", "Methods")
