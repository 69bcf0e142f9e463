"""Common parts of the experiments on purchases: judging one purchase, and making the row of its seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Final, ParamSpec, TypeVar

import numpy as np

from hushbid.consumer.appraisal import Quality
from hushbid.lab.experiments.cells import Configuration, Measured
from hushbid.lab.experiments.market import DELTA, Market
from hushbid.lab.experiments.methods import METHODS, check_methods
from hushbid.lab.experiments.results import ExperimentRow, PlottedFigure
from hushbid.lab.experiments.runner import Experiment, Pairs, refuse_none
from hushbid.lab.purchase_options import PurchaseOptions
from hushbid.protocol.finite import finite

__all__ = [
    "MOST_WEIGHED",
    "PurchaseRow",
    "figures_of",
    "judged",
    "means",
    "pairs_of",
    "purchase_experiment",
    "quality_columns",
]

_Arguments = ParamSpec("_Arguments")
_Options = TypeVar("_Options", bound=PurchaseOptions)

MOST_WEIGHED: Final = 4_000
"""Largest purchase that is weighted: time and memory grow with the square of the number of points."""


@dataclass(frozen=True, kw_only=True)
class PurchaseRow(ExperimentRow):
    """One method with its settings, over all seeds. MMD² is against D_v with the exact kernel."""

    dataset: str
    share: float | None
    gamma: float
    points: int
    method: str
    epsilon: float | None
    delta: float
    epsilon_owners: float | None
    epsilon_consumer: float | None
    seeds: int
    bought: float
    wanted: float | None
    mmd2: float | None
    mmd2_weighted: float | None
    increase: float | None
    increase_weighted: float | None
    increase_exact: float | None
    increase_exact_weighted: float | None
    accuracy: float | None
    accuracy_weighted: float | None
    effective_points: float | None
    accuracy_each: tuple[float | None, ...]
    accuracy_weighted_each: tuple[float | None, ...]
    effective_points_each: tuple[float | None, ...]
    seconds: float | None


def pairs_of(
    options: PurchaseOptions,
    settings: Sequence[Mapping[str, Any]],
    *,
    methods: Sequence[str],
    epsilons: Sequence[float],
    points: Sequence[int],
    once: str | None = "published-sound",
) -> Iterator[tuple[Configuration, int]]:
    """Every setting, method, ε and p with every seed; pairs that share data are adjacent.

    Args:
        settings: The configuration keys that define the data to buy from.
        methods, epsilons, points: Defaults for what `options` leave unset.
        once: A method that runs at ε = 1 only, if no ε is given: its rounds take long.

    Raises:
        ConfigError: There is nothing to run, or a method is unknown.
    """
    methods, epsilons = options.methods or methods, options.epsilons or epsilons
    points = sorted(options.points or points, reverse=True)  # A shorter choice is a prefix.
    refuse_none(a_method=methods, an_epsilon=epsilons, a_number_of_points=points, a_seed=options.every_seed)
    check_methods(methods)
    for seed in options.every_seed:
        for setting in settings:
            for count in points:
                for method in methods:
                    tried = [1.0] if method == once and options.epsilons is None else epsilons
                    for epsilon in tried if METHODS[method].calibrated else [None]:
                        yield {**setting, "points": count, "method": method, "epsilon": epsilon}, seed


def said_of(configuration: Configuration, seed: int) -> str:
    """A description of a purchase."""
    share = configuration.get("share")
    epsilon = configuration["epsilon"]
    return (
        f"{configuration['dataset']}, γ = {configuration['gamma']:g}, "
        + (f"share {share:g}, " if share is not None else "")
        + f"p = {configuration['points']}, {configuration['method']}"
        + (f", ε = {epsilon:g}" if epsilon is not None else "")
        + f", seed {seed}"
    )


def judged(market: Market, configuration: Configuration, *, exact: bool) -> dict[str, Any]:
    """Buy, and judge the purchase.

    Args:
        configuration: With `points`, `method` and `epsilon`.
        exact: Whether to compare with greedy by the exact kernel too, which takes long.
    """
    p = configuration["points"]
    bought = METHODS[configuration["method"]].choose(market, p, configuration["epsilon"])
    points, labels = market.scaled(bought.selection), market.labels(bought.selection)
    if len(points) <= MOST_WEIGHED:
        judgement = market.judge.judge(points, labels)
        plain, weighted = judgement.plain, judgement.weighted
    else:
        plain, weighted = market.judge.quality(points, labels), None
    least = {"increase": market.mmd2(market.greedy_features(p))}
    if exact:
        least["increase_exact"] = market.mmd2(market.greedy_kernel(p))
    qualities = {"plain": plain, "weighted": None if weighted is None else weighted.quality}
    wanted = int(np.isin(labels, market.wanted_labels).sum()) if market.wanted_labels else None
    return {
        "bought": len(points),
        "wanted": wanted,
        "epsilon_owners": bought.epsilon_owners,
        "epsilon_consumer": bought.epsilon_consumer,
        **{kind: _figures(quality, least) for kind, quality in qualities.items()},
        "seconds": bought.seconds,
    }


def figures_of(quality: Quality | None) -> dict[str, float | None]:
    """The figures of a choice; None for values that are not finite."""
    names = ("mmd2", "mmd2_test", "accuracy", "effective_points")
    return {name: None if quality is None else finite(getattr(quality, name)) for name in names}


def _figures(quality: Quality | None, least: Mapping[str, float]) -> dict[str, float | None]:
    found = figures_of(quality)
    mmd2 = found["mmd2"]
    increases = {
        name: None if mmd2 is None or greedy <= 0.0 else 100.0 * (mmd2 - greedy) / greedy
        for name, greedy in least.items()
    }
    return found | increases


def purchase_row(configuration: Configuration, measured: Sequence[Measured]) -> PurchaseRow:
    """The table row of a configuration over its seeds."""
    plain, weighted = ([each[kind] for each in measured] for kind in ("plain", "weighted"))
    figures: dict[str, Any] = means([{name: each[name] for name in _WHOLE} for each in measured])
    of_plain, of_weighted = means(plain), means(weighted)
    for name in ("increase", "increase_exact"):
        figures |= {name: of_plain.get(name), f"{name}_weighted": of_weighted.get(name)}
    return PurchaseRow(
        **{name: configuration[name] for name in ("dataset", "gamma", "points", "method", "epsilon")},
        share=configuration.get("share"),
        delta=DELTA,
        seeds=len(measured),
        bought=fmean(each["bought"] for each in measured),
        **figures,
        **quality_columns(plain, weighted),
        effective_points_each=tuple(each["effective_points"] for each in weighted),
    )


_WHOLE: Final = ("epsilon_owners", "epsilon_consumer", "wanted", "seconds")


def quality_columns(
    plain: Sequence[Mapping[str, float | None]], weighted: Sequence[Mapping[str, float | None]]
) -> dict[str, Any]:
    """The quality columns, from each seed's figures without and with matching weights."""
    of_plain, of_weighted = means(plain), means(weighted)
    return {
        **{name: of_plain[name] for name in ("mmd2", "accuracy")},
        **{f"{name}_weighted": of_weighted[name] for name in ("mmd2", "accuracy")},
        "effective_points": of_weighted["effective_points"],
        "accuracy_each": tuple(each["accuracy"] for each in plain),
        "accuracy_weighted_each": tuple(each["accuracy"] for each in weighted),
    }


def means(figures: Sequence[Mapping[str, float | None]]) -> dict[str, float | None]:
    """The mean of each figure over the seeds that have it."""
    known = {name: [value for each in figures if (value := each[name]) is not None] for name in figures[0]}
    return {name: fmean(values) if values else None for name, values in known.items()}


def purchase_experiment(
    options: Callable[_Arguments, _Options],
    title: str,
    pairs: Callable[[_Options], Pairs],
    measure: Callable[[_Options, Configuration, int], Measured],
    figure: PlottedFigure,
) -> Experiment[_Arguments, _Options, PurchaseRow]:
    """An experiment on purchases from the dataset of `data`, measured by `judged`."""
    return Experiment(
        options=options,
        title=title,
        pairs=pairs,
        measure=measure,
        row=purchase_row,
        said=said_of,
        figure=figure,
    )
