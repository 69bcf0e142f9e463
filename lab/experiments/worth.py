"""Where buying pays: the consumer's model with and without a purchase, by its number of own rows.

Each setting is a public dataset distributed among five owners and a consumer: MNIST digits, insurance
customers, and tables whose owners are near or far (`hushbid.datasets.tilted`). The seed distributes the data
and draws all noise, which has the distribution that the stated ε needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hushbid.cluster.evaluation import Selection
from hushbid.consumer.appraisal import Judge
from hushbid.consumer.model_figures import Figure as ModelFigure
from hushbid.consumer.model_figures import ModelFigures
from hushbid.consumer.prospect import prospect
from hushbid.datasets import Partition, Table, build
from hushbid.datasets.digit_groups import WANTED_DIGITS
from hushbid.datasets.tilted import FAR, NEAR, tilted
from hushbid.lab.experiment_options import WorthOptions
from hushbid.lab.experiments.cells import Configuration, Measured
from hushbid.lab.experiments.market import Market, dealt
from hushbid.lab.experiments.methods import METHODS
from hushbid.lab.experiments.rare import deal_rare
from hushbid.lab.experiments.results import ExperimentRow, PlottedFigure
from hushbid.lab.experiments.runner import Experiment, refuse_none, refuse_unknown
from hushbid.protocol.errors import ConfigError

__all__ = ["SETTINGS", "WorthRow", "worth"]

MOST_TESTED: Final = 2_000
OWNER_POINTS: Final = 2_000
"""Maximum rows per owner, in all settings."""
_DIGITS_GAMMA: Final = 0.01
_POOL: Final = 10_000
_METHODS: Final = {"sealed": "private", "tender": "tender"}
"""Rule → method. `private` uses another rule that buys the same points as `sealed`."""


@dataclass(frozen=True, kw_only=True)
class WorthRow(ExperimentRow):
    """One setting with its options, over all seeds: means, and each seed's gain and verdict beforehand.

    `own_rows` is the actual number, which may be smaller than requested.
    """

    setting: str
    own_rows: int
    labelled: int
    points: int
    epsilon: float
    model: str
    choice: str
    rule: str
    seeds: int
    metric: str | None
    own: float | None
    bought: float | None
    own_and_bought: float | None
    uniform: float | None
    own_and_uniform: float | None
    greedy: float | None
    own_and_greedy: float | None
    without_noise: float | None
    own_and_without_noise: float | None
    trivial: float | None
    gain: float | None
    gain_each: tuple[float | None, ...]
    verdict_each: tuple[str | None, ...]
    wanted: float | None
    mmd2: float | None
    mmd2_weighted: float | None
    mmd2_greedy: float | None
    mmd2_without_noise: float | None
    effective_points: float | None
    unweighted: float


def _mnist(data: Path, seed: int, _rows: int) -> Market:
    partition = dealt("mnist", data / "mnist.npz", OWNER_POINTS, seed)
    return Market(partition, _DIGITS_GAMMA, "logistic", seed, WANTED_DIGITS)


def _rare(data: Path, seed: int, _rows: int) -> Market:
    everywhere = dealt("mnist", data / "mnist.npz", None, seed)
    partition = deal_rare(everywhere, _POOL, 0.02, None, np.random.default_rng([seed, _POOL]))
    return Market(partition, _DIGITS_GAMMA, "logistic", seed, WANTED_DIGITS)


def _insurance(data: Path, seed: int, _rows: int) -> Market:
    partition = build(
        "insurance", path=data / "allstate.csv.gz", seed=seed, options={"owner_points": OWNER_POINTS}
    )
    return Market(partition, float(partition.suggested["gamma"]), "logistic", seed)


def _table(name: str, tilts: Sequence[float]) -> Callable[[Path, int, int], Market]:
    def market(data: Path, seed: int, rows: int) -> Market:
        generator = np.random.default_rng([seed, len(name)])
        with np.load(data / f"{name}.npz") as file:
            labels = file["labels"] if "labels" in file else file["targets"].astype(np.float64)
            table = Table(file["features"], labels)
        most = 12 * OWNER_POINTS + 10 * rows
        if len(table) > most:  # a part of the largest tables
            table = table.take(np.sort(generator.choice(len(table), size=most, replace=False)))
        test = min(MOST_TESTED, len(table) // 5)
        partition = tilted(
            table,
            tilts,
            validation=min(rows, len(table) // 5),
            test=test,
            owner_points=OWNER_POINTS,
            generator=generator,
        )
        return Market(partition, float(partition.suggested["gamma"]), "logistic", seed)

    return market


SETTINGS: Final[Mapping[str, Callable[[Path, int, int], Market]]] = {
    "mnist": _mnist,
    "rare": _rare,
    "insurance": _insurance,
    **{
        f"{name}-{how}": _table(name, tilts)
        for name in ("occupancy", "skin", "codrna", "airfoil")
        for how, tilts in (("near", NEAR), ("far", FAR))
    },
}
"""Settings by name: each makes a market from the data directory, a seed, and the number of rows of D_v."""


def _pairs(options: WorthOptions) -> Iterator[tuple[Configuration, int]]:
    settings = options.settings or tuple(SETTINGS)
    refuse_unknown(settings, SETTINGS, "setting", "Settings")
    chosen: dict[str, Sequence[Any]] = {
        "an_epsilon": options.epsilons or (1.0,),
        "a_number_of_points": options.points or (300,),
        "a_number_of_own_rows": options.own_rows or (30, 100, 300, 1000),
        "a_number_of_labels": options.labelled or (0, 50, 1000),
        "a_model": options.models or ("logistic",),
        "a_choice": options.choices or ("features",),
        "a_rule": options.rules or ("sealed",),
    }
    refuse_unknown(chosen["a_choice"], ("features", "labels"), "choice", "Choices")
    refuse_unknown(chosen["a_rule"], _METHODS, "rule", "Rules")
    refuse_none(a_setting=settings, a_seed=options.every_seed, **chosen)
    for seed, setting, rows in product(options.every_seed, settings, chosen["a_number_of_own_rows"]):
        # As many labels as rows means all.
        labelled = sorted({min(count, rows) for count in chosen["a_number_of_labels"]})
        for points, epsilon, count in product(chosen["a_number_of_points"], chosen["an_epsilon"], labelled):
            # Without labels only features are left to choose by.
            choices = chosen["a_choice"] if count else ("features",)
            for choice, rule, model in product(choices, chosen["a_rule"], chosen["a_model"]):
                yield (
                    {
                        "setting": setting,
                        "own_rows": rows,
                        "labelled": count,
                        "points": points,
                        "epsilon": epsilon,
                        "model": model,
                        "choice": choice,
                        "rule": rule,
                    },
                    seed,
                )


def _said(configuration: Configuration, seed: int) -> str:
    said = (
        "{setting}, {own_rows} own rows, {labelled} labelled, p = {points}, ε = {epsilon:g}, {model}, "
        "by {choice}, {rule}"
    )
    return f"{said.format(**configuration)}, seed {seed}"


@lru_cache(maxsize=1)
def _market(data: Path, setting: str, rows: int, seed: int) -> Market:
    """A market with this many rows of D_v."""
    market = SETTINGS[setting](data, seed, rows)
    return replace(market, partition=_with_rows(market.partition, rows, seed), _chosen={})


@lru_cache(maxsize=1)
def _beside(market: Market, points: int) -> Mapping[str, Selection]:
    """The choices without privacy."""
    return {
        name: METHODS[method].choose(market, points, None).selection
        for name, method in (("uniform", "uniform"), ("greedy", "greedy-features"))
    }


# By features, which does not depend on the number of labels, and by labels; with both rules, and without
# noise.
@lru_cache(maxsize=8)
def _bought(
    market: Market,
    points: int,
    epsilon: float | None,
    labelled: int | None,
    similarity: float | None,
    method: str,
) -> Selection:
    """The purchase, using the labels of this many rows too; None: by features alone."""
    if labelled is not None:
        held = np.zeros(len(market.partition.validation), dtype=np.bool_)
        held[_known_rows(market, labelled)] = True
        market = market.by_labels(held, similarity)
    return METHODS[method].choose(market, points, epsilon).selection


def _known_rows(market: Market, labelled: int) -> npt.NDArray[np.intp]:
    """The labelled rows of D_v; a smaller number is a prefix of a larger one."""
    generator = np.random.default_rng([market.seed, 2])
    return generator.permutation(len(market.partition.validation))[:labelled]


def _with_rows(partition: Partition, rows: int, seed: int) -> Partition:
    generator = np.random.default_rng([seed, 1])
    kept = generator.permutation(len(partition.validation))[:rows]
    tested = generator.permutation(len(partition.test))[:MOST_TESTED]
    return replace(
        partition,
        validation=partition.validation.take(np.sort(kept)),
        test=partition.test.take(np.sort(tested)),
    )


def _measure(options: WorthOptions, configuration: Configuration, seed: int) -> dict[str, Any]:
    market = _market(options.data, configuration["setting"], configuration["own_rows"], seed)
    points, labelled = configuration["points"], configuration["labelled"]
    by_labels = labelled if configuration["choice"] == "labels" else None
    same, rule = (by_labels, options.similarity), configuration["rule"]
    choices = {
        "bought": _bought(market, points, configuration["epsilon"], *same, _METHODS[rule]),
        **_beside(market, points),
        "without_noise": _bought(market, points, None, *same, "tender-exact"),
    }
    held, scale = market.partition, market.map.space.scale
    known: list[Any] = [None] * len(held.validation)
    rows = _known_rows(market, labelled)
    for row in rows.tolist():
        known[row] = held.validation.labels[row].item()
    judge = Judge(
        market.wanted,
        market.gamma,
        test=(scale(held.test.features), held.test.labels),
        model=configuration["model"],
        seed=seed,
        wanted_labels=known,
    )
    figures: dict[str, ModelFigures] = {}
    quality: dict[str, Any] = {}
    mmd2: dict[str, float | None] = {}
    for name, selection in choices.items():
        chosen, labels = market.scaled(selection), market.labels(selection)
        plain = judge.quality(chosen, [None] * len(chosen))
        judgement, matching = judge.weighed(plain, chosen, labels.tolist())
        mmd2[name] = plain.mmd2
        figures[name] = judge.model_figures(chosen, labels.tolist(), matching)[0]
        if name == "bought":
            quality = {
                "mmd2_weighted": None if judgement.weighted is None else judgement.weighted.quality.mmd2,
                "effective_points": None if matching is None else matching.effective_points,
            }
            if market.wanted_labels:
                quality["wanted"] = float(np.isin(labels, market.wanted_labels).mean())
    mine = figures["bought"]
    if mine.metric is None:
        raise ConfigError(f"{configuration['setting']} has nothing to judge by: {mine.why}.")
    both = {name: found.own_and_bought if mine.own_rows else found.bought for name, found in figures.items()}
    return {
        "own_rows": len(known),
        "labelled": len(rows),
        "metric": mine.metric,
        "own": _value(mine.own),
        "trivial": _value(mine.trivial),
        "bought": _value(mine.bought),
        "uniform": _value(figures["uniform"].bought),
        "greedy": _value(figures["greedy"].bought),
        "own_and_bought": _value(both["bought"]),
        "own_and_uniform": _value(both["uniform"]),
        "own_and_greedy": _value(both["greedy"]),
        "without_noise": _value(figures["without_noise"].bought),
        "own_and_without_noise": _value(both["without_noise"]),
        "mmd2": mmd2["bought"],
        "mmd2_greedy": mmd2["greedy"],
        "mmd2_without_noise": mmd2["without_noise"],
        "unweighted": mine.training_weights is not None and mine.training_weights.kind == "none",
        "verdict": prospect(market.wanted, known, p=points, model=configuration["model"], seed=seed).word,
        "wanted": None,
        **quality,
    }


def _value(figure: ModelFigure | None) -> float | None:
    return None if figure is None else figure.value


_MEANS: Final = (
    "own", "bought", "own_and_bought", "uniform", "own_and_uniform", "greedy", "own_and_greedy",
    "without_noise", "own_and_without_noise", "trivial", "wanted", "mmd2", "mmd2_weighted", "mmd2_greedy",
    "mmd2_without_noise", "effective_points",
)  # fmt: skip


def _row(configuration: Configuration, measured: Sequence[Measured]) -> WorthRow:
    means: dict[str, Any] = {
        name: fmean(values)
        if (values := [each[name] for each in measured if each[name] is not None])
        else None
        for name in _MEANS
    }
    gains = tuple(_gain(each) for each in measured)
    known = [gain for gain in gains if gain is not None]
    there = {name: round(fmean(each[name] for each in measured)) for name in ("own_rows", "labelled")}
    return WorthRow(
        **{**configuration, **there},
        seeds=len(measured),
        metric=measured[0]["metric"],
        **means,
        gain=fmean(known) if known else None,
        gain_each=gains,
        verdict_each=tuple(each["verdict"] for each in measured),
        unweighted=fmean(each["unweighted"] for each in measured),
    )


def _gain(measured: Measured) -> float | None:
    """The gain over own rows or, if none has a label, over as many random points."""
    against = measured["own"] if measured["own"] is not None else measured["own_and_uniform"]
    both = measured["own_and_bought"]
    return None if None in (against, both) else both - against


worth: Final = Experiment(
    options=WorthOptions,
    title="Where buying pays: the consumer's model with a purchase and without",
    pairs=_pairs,
    measure=_measure,
    row=_row,
    said=_said,
    figure=PlottedFigure(
        "own_rows", "own_and_bought", ("labelled", "model", "choice", "rule"), panel="setting"
    ),
)
