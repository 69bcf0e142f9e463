"""Purchases of insurance customers, as in §4 of DPDS: four owners, Connecticut wanted, a linear SVM.

Florida's customers fall to four owners at random, 70 % of Connecticut's to the first of them; of the rest of
Connecticut a quarter is D_v and the others are the test set; 150 customers of Ohio are the seed set
(`hushbid.datasets.insurance`). The label is the level of product G. A seed deals the data out and draws all
noise.
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
from hushbid.evidence.purchase_options import InsuranceOptions
from protocol.runtime.command import keywords_of

__all__ = ["EXPERIMENT", "insurance"]

METHODS: Final = (
    "greedy-kernel",
    "greedy-features",
    "uniform",
    "proportional",
    "all",
    "published",
    "published-sound",
    "private",
)
EPSILONS: Final = (0.3, 1.0, 3.0, 10.0)
POINTS: Final = (100, 300, 1000)
GAMMA: Final = 0.1
MODEL: Final = "linear-svm"


def _pairs(options: InsuranceOptions) -> Iterator[tuple[Configuration, int]]:
    setting = {"dataset": "insurance", "owner_points": options.owner_points, "gamma": GAMMA, "model": MODEL}
    return pairs_of(options, [setting], methods=METHODS, epsilons=EPSILONS, points=POINTS)


def _measure(options: InsuranceOptions, configuration: Configuration, seed: int) -> dict[str, Any]:
    market = _market(options.data, configuration["owner_points"], seed)
    return judged(market, configuration, exact=True)


@lru_cache(maxsize=1)
def _market(data: Path | None, owner_points: int | None, seed: int) -> Market:
    limits = {} if owner_points is None else {"owner_points": owner_points}
    return Market(build("insurance", path=data, seed=seed, options=limits), GAMMA, MODEL, seed)


EXPERIMENT: Final = purchase_experiment(
    "Insurance customers (DPDS §4): what each method buys",
    _pairs,
    _measure,
    Figure("points", "weighted.accuracy", ("method", "epsilon")),
)


@keywords_of(InsuranceOptions)
def insurance(options: InsuranceOptions) -> list[PurchaseRow]:
    """Buy by each method; arguments are those of `InsuranceOptions`.

    Returns:
        A row for each method, ε and p.

    Raises:
        ConfigError: Nothing to run, or no such method.
        DataError: The dataset's file cannot be used.
    """
    return run(EXPERIMENT, options).rows
