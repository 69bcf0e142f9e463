"""Quality over ε of every release, at the same sound ε: what is bought by each, on the same data.

A release is that of both sides: of the consumer's target, one record of D_v replaced, and of the summary
over all rounds, one record of one owner more or less. Greedy and uniform choices, without privacy, are lines
across.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from hushbid.datasets import build
from hushbid.evidence.experiments.cells import Configuration
from hushbid.evidence.experiments.market import Market
from hushbid.evidence.experiments.purchases import PurchaseRow, judged, pairs_of, purchase_experiment
from hushbid.evidence.experiments.results import Figure
from hushbid.evidence.experiments.runner import run
from hushbid.evidence.purchase_options import PrivacyUtilityOptions
from protocol.runtime.command import keywords_of

__all__ = ["EXPERIMENT", "privacy_utility"]

METHODS: Final = (
    "greedy-features",
    "uniform",
    "private",
    "gaussian",
    "subspace",
    "race",
    "published-sound",
)
EPSILONS: Final = (0.1, 0.3, 1.0, 3.0, 10.0)
POINTS: Final = (300,)


def _pairs(options: PrivacyUtilityOptions) -> Iterator[tuple[Configuration, int]]:
    suggested = build(options.dataset, path=options.data, seed=0).suggested
    setting = {
        "dataset": options.dataset,
        "owner_points": options.owner_points,
        "gamma": float(suggested["gamma"]),
        "model": str(suggested["model"]),
    }
    epsilons = options.epsilons or EPSILONS
    return pairs_of(options, [setting], methods=METHODS, epsilons=epsilons, points=POINTS, once=None)


def _measure(options: PrivacyUtilityOptions, configuration: Configuration, seed: int) -> dict[str, Any]:
    names = ("dataset", "owner_points", "gamma", "model")
    market = _market(options.data, *(configuration[name] for name in names), seed)
    return judged(market, configuration, exact=False)


@lru_cache(maxsize=1)
def _market(
    data: Path | None, name: str, owner_points: int | None, gamma: float, model: str, seed: int
) -> Market:
    limits = {} if owner_points is None else {"owner_points": owner_points}
    return Market(build(name, path=data, seed=seed, options=limits), gamma, model, seed)


EXPERIMENT: Final = purchase_experiment(
    "Quality over ε, for every release",
    _pairs,
    _measure,
    Figure("epsilon", "weighted.mmd2", ("method",), log_y=True),
)


@keywords_of(PrivacyUtilityOptions)
def privacy_utility(options: PrivacyUtilityOptions) -> list[PurchaseRow]:
    """Buy by each release at each ε; arguments are those of `PrivacyUtilityOptions`.

    Returns:
        A row for each release, ε and p.

    Raises:
        ConfigError: Nothing to run, or no such method or dataset.
        DataError: The dataset's files cannot be used.
    """
    return run(EXPERIMENT, options).rows
