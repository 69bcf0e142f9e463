"""Purchases of handwritten digits, as in appendix G of DPDS: five owners by groups, 3s and 4s wanted.

Each test image of a 3 or 4, at 0.7 to 0.3, is in D_v with probability 0.25 and otherwise in the test set; 150
test images of other digits are the seed set (`hushbid.datasets.mnist`). The model is a network with one
hidden layer of 32 units, without the paper's dropout, and classifies all ten digits. A seed deals the data
out and draws all noise.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from hushbid.datasets.digit_groups import WANTED_DIGITS
from hushbid.lab.experiments.cells import Configuration
from hushbid.lab.experiments.market import market_of
from hushbid.lab.experiments.purchases import judged, pairs_of, purchase_experiment
from hushbid.lab.experiments.results import PlottedFigure
from hushbid.lab.experiments.runner import refuse_none
from hushbid.lab.purchase_options import MnistOptions

__all__ = ["mnist"]

METHODS: Final = ("greedy-kernel", "greedy-features", "uniform", "published", "private")
EPSILONS: Final = (0.3, 1.0, 3.0, 10.0)
POINTS: Final = (300, 1000)
GAMMAS: Final = (0.1, 0.01)
"""The paper's γ, at which nearly all kernel values are 0, and one at which methods differ."""
MODEL: Final = "mlp"
EXACT: Final = "greedy-kernel"
"""The method that others are compared with if it is selected; it takes longer than they do."""


def _pairs(options: MnistOptions) -> Iterator[tuple[Configuration, int]]:
    gammas = options.gammas or GAMMAS
    refuse_none(a_gamma=gammas, a_seed=options.every_seed)
    fixed = {"dataset": "mnist", "owner_points": options.owner_points, "model": MODEL}
    exact = EXACT in (options.methods or METHODS)
    settings = [{**fixed, "gamma": gamma, "exact": exact} for gamma in gammas]
    return pairs_of(options, settings, methods=METHODS, epsilons=EPSILONS, points=POINTS)


def _measure(options: MnistOptions, configuration: Configuration, seed: int) -> dict[str, Any]:
    market = market_of(options, configuration, seed, WANTED_DIGITS)
    return judged(market, configuration, exact=configuration["exact"])


mnist: Final = purchase_experiment(
    MnistOptions,
    "Handwritten digits (DPDS, appendix G): what each method buys",
    _pairs,
    _measure,
    PlottedFigure("points", "plain.increase", ("method", "epsilon"), panel="gamma"),
)
