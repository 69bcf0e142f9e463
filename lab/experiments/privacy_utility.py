"""Quality of purchases over ε for every release, at the same sound ε and on the same data.

Both sides use the same release: the consumer's target, with one record of D_v replaced, and the summary over
all rounds, with one record of one owner added or removed. Greedy and uniform choices have no privacy and are
horizontal lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from hushbid.datasets import build
from hushbid.lab.experiments.cells import Configuration
from hushbid.lab.experiments.market import market_of
from hushbid.lab.experiments.purchases import judged, pairs_of, purchase_experiment
from hushbid.lab.experiments.results import PlottedFigure
from hushbid.lab.purchase_options import PrivacyUtilityOptions

__all__ = ["privacy_utility"]

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
    return judged(market_of(options, configuration, seed), configuration, exact=False)


privacy_utility: Final = purchase_experiment(
    PrivacyUtilityOptions,
    "Quality over ε, for every release",
    _pairs,
    _measure,
    PlottedFigure("epsilon", "weighted.mmd2", ("method",), log_y=True),
)
