"""Purchases where few of the owners' points are wanted: the case that private selection is for.

The consumer has 3s and 4s of MNIST's test images at 0.7 to 0.3, as in appendix G of DPDS. The owners hold
training images of all digits, a given share of which are 3s and 4s at the same ratio. Images go to five
owners at random, so that no owner is better than another. The model classifies all ten digits, and is judged
on 3s and 4s only: it has to distinguish them from the others. A seed draws the images and all noise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from hushbid.datasets import Partition, Table
from hushbid.datasets.digit_groups import DIGIT_GROUPS, WANTED_DIGITS
from hushbid.datasets.partition import limited
from hushbid.lab.experiments.cells import Configuration
from hushbid.lab.experiments.market import Market, dealt
from hushbid.lab.experiments.purchases import judged, pairs_of, purchase_experiment
from hushbid.lab.experiments.results import PlottedFigure
from hushbid.lab.experiments.runner import refuse_none
from hushbid.lab.purchase_options import RareOptions
from hushbid.protocol.errors import ConfigError

__all__ = ["SHARES", "rare"]

SHARES: Final = (0.005, 0.02, 0.1, 0.2)
METHODS: Final = ("greedy-features", "uniform", "published", "published-sound", "private")
EPSILONS: Final = (1.0, 3.0)
POINTS: Final = (1000,)
GAMMA: Final = 0.01
MODEL: Final = "logistic"
RATIO: Final = 0.7
"""Share of the first wanted digit among wanted points."""


def _pairs(options: RareOptions) -> Iterator[tuple[Configuration, int]]:
    shares = options.shares or SHARES
    refuse_none(a_share=shares, a_seed=options.every_seed)
    fixed = {"dataset": "mnist", "pool": options.pool, "owner_points": options.owner_points}
    settings = [{**fixed, "share": share, "gamma": GAMMA, "model": MODEL} for share in shares]
    return pairs_of(options, settings, methods=METHODS, epsilons=EPSILONS, points=POINTS)


def _measure(options: RareOptions, configuration: Configuration, seed: int) -> dict[str, Any]:
    names = ("owner_points", "pool", "share")
    market = _market(options.data, *(configuration[name] for name in names), seed)
    exact = configuration["method"] == "greedy-kernel"
    return judged(market, configuration, exact=exact)


@lru_cache(maxsize=1)
def _market(data: Path | None, owner_points: int | None, pool: int, share: float, seed: int) -> Market:
    rare_among = deal_rare(
        dealt("mnist", data, None, seed), pool, share, owner_points, np.random.default_rng([seed, pool])
    )
    return Market(rare_among, GAMMA, MODEL, seed, WANTED_DIGITS)


def deal_rare(
    everywhere: Partition, pool: int, share: float, most: int | None, generator: np.random.Generator
) -> Partition:
    """Distribute the data: the same consumer, and owners with few wanted points.

    Args:
        pool: Total number of owners' points.
        share: Share of them with a wanted label.
        most: Maximum points per owner; None: all.

    Raises:
        ConfigError: There are not enough points of a kind.
    """
    tables = list(everywhere.owners.values())
    everything = Table(
        *(np.concatenate([getattr(t, name) for t in tables]) for name in ("features", "labels"))
    )
    wanted = round(share * pool)
    first = round(RATIO * wanted)
    counts: dict[tuple[int, ...], int] = {WANTED_DIGITS[:1]: first, WANTED_DIGITS[1:]: wanted - first}
    counts[tuple(d for group in DIGIT_GROUPS for d in group if d not in WANTED_DIGITS)] = pool - wanted
    rows = []
    for digits, count in counts.items():
        there = np.flatnonzero(np.isin(everything.labels, digits))
        if count > len(there):
            raise ConfigError(
                f"A pool of {pool} points, a share of {share:g} of them wanted, takes {count} images of the "
                f"digits {', '.join(map(str, digits))}, and there are {len(there)}.",
                advice="Take a smaller pool.",
            )
        rows.append(generator.choice(there, size=count, replace=False))
    shuffled = generator.permutation(np.concatenate(rows))
    parts = np.array_split(shuffled, len(DIGIT_GROUPS))
    owners = {
        f"owner-{number}": everything.take(limited(np.sort(part), most, generator))
        for number, part in enumerate(parts, start=1)
    }
    return replace(everywhere, owners=owners)


rare: Final = purchase_experiment(
    RareOptions,
    "Rare wanted points: what each method buys",
    _pairs,
    _measure,
    PlottedFigure("share", "weighted.accuracy", ("method", "epsilon"), panel="points"),
)
