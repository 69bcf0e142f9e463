"""Purchases of insurance customers, as in §4 of DPDS: four owners, Connecticut wanted, a linear SVM.

Florida's customers go to four owners at random, and 70 % of Connecticut's to the first of them. A quarter of
Connecticut's other customers are D_v, the rest are the test set. 150 customers of Ohio are the seed set
(`hushbid.datasets.insurance`). The label is the level of product G. A seed deals the data out and draws all
noise.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from hushbid.lab.experiments.cells import Configuration
from hushbid.lab.experiments.market import market_of
from hushbid.lab.experiments.purchases import judged, pairs_of, purchase_experiment
from hushbid.lab.experiments.results import PlottedFigure
from hushbid.lab.purchase_options import InsuranceOptions

__all__ = ["insurance"]

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
    return judged(market_of(options, configuration, seed), configuration, exact=True)


insurance: Final = purchase_experiment(
    InsuranceOptions,
    "Insurance customers (DPDS §4): what each method buys",
    _pairs,
    _measure,
    PlottedFigure("points", "weighted.accuracy", ("method", "epsilon")),
)
