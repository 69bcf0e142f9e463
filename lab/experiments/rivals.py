"""Alternatives for a buyer with the same data and ε: buy, train on published releases, or compress.

All are judged with the same test set, downstream model and validation set, with equal weights and with
matching weights, which the consumer computes itself in every case.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from statistics import fmean
from typing import Any, Final

import numpy as np

from hushbid.lab.experiments.cells import Configuration, Measured
from hushbid.lab.experiments.compression import COMPRESSED, compressed, installed
from hushbid.lab.experiments.market import DELTA, Market, dealt
from hushbid.lab.experiments.methods import METHODS
from hushbid.lab.experiments.publishing import PUBLISHED
from hushbid.lab.experiments.purchases import figures_of, quality_columns
from hushbid.lab.experiments.results import ExperimentRow, PlottedFigure
from hushbid.lab.experiments.runner import Experiment, refuse_none, refuse_unknown
from hushbid.lab.purchase_options import RivalsOptions
from hushbid.protocol.extras import OTHERS

__all__ = ["RIVALS", "RivalRow", "rivals"]

BUYING: Final = ("private", "uniform", "greedy-features")
RIVALS: Final = (*BUYING, *PUBLISHED, *COMPRESSED)
EPSILONS: Final = (1.0, 3.0)
POINTS: Final = (1000,)


@dataclass(frozen=True, kw_only=True)
class RivalRow(ExperimentRow):
    """One rival with its settings, over all seeds."""

    dataset: str
    rival: str
    kind: str
    points: int
    epsilon: float | None
    delta: float
    seeds: int
    mmd2: float | None
    mmd2_weighted: float | None
    accuracy: float | None
    accuracy_weighted: float | None
    effective_points: float | None
    accuracy_each: tuple[float | None, ...]
    accuracy_weighted_each: tuple[float | None, ...]
    seconds: float
    note: str


def _pairs(options: RivalsOptions) -> Iterator[tuple[Configuration, int]]:
    names, epsilons = options.rivals or RIVALS, options.epsilons or EPSILONS
    counts = options.points or POINTS
    refuse_none(a_rival=names, an_epsilon=epsilons, a_number_of_points=counts, a_seed=options.every_seed)
    refuse_unknown(names, RIVALS, "rival", "Rivals")
    fixed = {"dataset": options.dataset, "owner_points": options.owner_points}
    for seed in options.every_seed:
        for count in counts:
            for name in names:
                private = name in PUBLISHED or (name in METHODS and METHODS[name].calibrated)
                package = {"package": installed(name)} if name in COMPRESSED else {}
                for epsilon in epsilons if private else [None]:
                    yield {**fixed, "points": count, "rival": name, "epsilon": epsilon, **package}, seed


def _said(configuration: Configuration, seed: int) -> str:
    epsilon = configuration["epsilon"]
    protected = "" if epsilon is None else f", ε = {epsilon:g}"
    return f"{configuration['dataset']}, {configuration['rival']}{protected}, seed {seed}"


@lru_cache(maxsize=1)
def _market(name: str, data: Path | None, owner_points: int | None, seed: int) -> Market:
    held = dealt(name, data, owner_points, seed)
    return Market(held, float(held.suggested["gamma"]), str(held.suggested["model"]), seed)


def _measure(options: RivalsOptions, configuration: Configuration, seed: int) -> dict[str, Any]:
    name, count, epsilon = (configuration[key] for key in ("rival", "points", "epsilon"))
    if name in COMPRESSED and configuration["package"] is None:
        package, extra = OTHERS[name]
        return {"note": f"{package} is not installed: pip install 'hushbid[{extra}]'", "seconds": 0.0}
    market = _market(configuration["dataset"], options.data, configuration["owner_points"], seed)
    started = time.process_time()
    points: Any
    labels: Any
    if name in METHODS:
        selection = METHODS[name].choose(market, count, epsilon).selection
        points, labels = market.scaled(selection), market.labels(selection)
    elif name in COMPRESSED:
        points, labels = compressed(market, name, count)
    else:
        released = PUBLISHED[name](market, count, epsilon)
        if released.predict is not None:
            test = market.partition.test
            right = released.predict(market.map.space.scale(test.features)) == test.labels
            spent = time.process_time() - started
            return {"note": "", "seconds": spent, "plain": {"accuracy": float(np.mean(right))}}
        points, labels = released.points, released.labels
    spent = time.process_time() - started
    judgement = market.judge.judge(points, labels)
    weighted = None if judgement.weighted is None else judgement.weighted.quality
    return {
        "note": "",
        "seconds": spent,
        "plain": figures_of(judgement.plain),
        "weighted": figures_of(weighted),
    }


def _row(configuration: Configuration, measured: Sequence[Measured]) -> RivalRow:
    none = figures_of(None)
    plain, weighted = (
        [{**none, **each.get(kind, {})} for each in measured] for kind in ("plain", "weighted")
    )
    name = configuration["rival"]
    return RivalRow(
        dataset=configuration["dataset"],
        rival=name,
        kind="publish" if name in PUBLISHED else "compress" if name in COMPRESSED else "buy",
        points=configuration["points"],
        epsilon=configuration["epsilon"],
        delta=DELTA,
        seeds=len(measured),
        **quality_columns(plain, weighted),
        seconds=fmean(each["seconds"] for each in measured),
        note=measured[0]["note"],
    )


rivals: Final = Experiment(
    options=RivalsOptions,
    title="Buying, publishing and compressing at the same ε and size",
    pairs=_pairs,
    measure=_measure,
    row=_row,
    said=_said,
    figure=PlottedFigure("epsilon", "weighted.accuracy", ("rival",)),
)
