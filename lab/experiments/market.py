"""What a method buys from and what it bought: a distributed dataset under one public feature map."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from hushbid.cluster.evaluation import Selection, greedy
from hushbid.consumer.appraisal import Judge
from hushbid.datasets import Partition, build
from hushbid.lab.experiments.cells import Configuration
from hushbid.lab.experiments.exact_greedy import exact_greedy
from hushbid.lab.purchase_options import PurchaseOptions
from hushbid.protocol.config.labels import LabelsSection
from hushbid.protocol.config.session import FeatureSection
from hushbid.protocol.session.session import feature_space_of
from hushbid.protocol.space.features import FeatureMap
from hushbid.protocol.space.grid import Features
from hushbid.protocol.space.mmd import Points, kernel_means

__all__ = ["DELTA", "DIMENSION", "MAP_SEED", "Bought", "Labels", "Market", "dealt", "market_of"]

DELTA: Final = 1e-5
"""δ of every ε."""
DIMENSION: Final = 140
"""d, as in DPDS §4."""
MAP_SEED: Final = 20190101

Labels: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Market:
    """A dataset distributed among owners and a consumer, and everything that methods share.

    Attributes:
        gamma: γ on scaled points.
        model: Downstream model (`hushbid.consumer.learners.MODELS`).
        seed: Seed of draws, noise and models.
        wanted_labels: Labels of the points that the consumer wants; empty if labels do not identify them.
        choice: The role of labels in a session's choice; None: it chooses by features alone.
        labelled: Which rows of D_v have a label in that choice, shape (m,).
    """

    partition: Partition
    gamma: float
    model: str
    seed: int
    wanted_labels: tuple[int, ...] = ()
    choice: LabelsSection | None = None
    labelled: npt.NDArray[np.bool_] | None = None
    _chosen: dict[str, Selection] = field(default_factory=dict)

    def features(
        self,
        name: str = "paired",
        dimension: int = DIMENSION,
        seed: int | None = MAP_SEED,
        **keys: Any,
    ) -> FeatureSection:
        """The feature-map section of a session for these points; without a seed the map is secret."""
        held = self.partition
        return FeatureSection(
            map=name,
            dimension=dimension,
            gamma=self.gamma,
            seed=seed,
            columns=held.columns,
            lower=held.lower,
            upper=held.upper,
            **keys,
        )

    @cached_property
    def map(self) -> FeatureMap:
        """The map used by the greedy choice by features."""
        return feature_space_of(self.features()).map(MAP_SEED)

    @cached_property
    def hashed(self) -> Mapping[str, Features]:
        """φ of each owner's points, shape (n, d)."""
        return {name: self.map.hash(table.features) for name, table in self.partition.owners.items()}

    @cached_property
    def sizes(self) -> Mapping[str, int]:
        return {name: len(table) for name, table in self.partition.owners.items()}

    @cached_property
    def wanted(self) -> Points:
        """D_v, scaled, shape (m, columns)."""
        return self.map.space.scale(self.partition.validation.features)

    @cached_property
    def judge(self) -> Judge:
        test = self.partition.test
        return Judge(
            self.wanted,
            self.gamma,
            test=(self.map.space.scale(test.features), test.labels),
            model=self.model,
            seed=self.seed,
        )

    def by_labels(self, labelled: npt.NDArray[np.bool_], similarity: float | None) -> Market:
        """The same market with sessions that also choose by labels, for the labelled rows of D_v.

        The set of all labels is public: the classes, or the range of amounts.
        """
        held = self.partition
        every = [table.labels for table in (*held.owners.values(), held.validation, held.test)]
        labels = np.concatenate(every)
        if labels.dtype.kind == "f":
            said: dict[str, Any] = {"lower": labels.min().item(), "upper": labels.max().item()}
        else:
            said = {"classes": np.unique(labels).tolist()}
        if similarity is not None:
            said["similarity"] = similarity
        return replace(self, choice=LabelsSection(**said), labelled=labelled)

    def scaled(self, selection: Selection) -> Points:
        """Chosen points, scaled, shape (n, columns)."""
        owners = self.partition.owners
        return self.map.space.scale(np.stack([owners[name].features[row] for name, row in selection]))

    def labels(self, selection: Selection) -> Labels:
        """Their labels, shape (n,)."""
        return np.array([self.partition.owners[name].labels[row] for name, row in selection])

    def mmd2(self, selection: Selection) -> float:
        """MMD² of chosen points against D_v, by the exact kernel."""
        points = self.scaled(selection)
        within = kernel_means(points, points, self.gamma).mean()
        cross = kernel_means(points, self.wanted, self.gamma).mean()
        return max(0.0, float(within - 2.0 * cross + self._spread))

    def greedy_kernel(self, p: int) -> Selection:
        """The exact greedy choice (`exact_greedy`); a shorter choice is a prefix of a longer one."""
        return self._first(p, self._by_kernel)

    def greedy_features(self, p: int) -> Selection:
        """The papers' greedy choice (`hushbid.cluster.evaluation.greedy`), likewise."""
        return self._first(p, self._by_features)

    def _first(self, p: int, choose: Callable[[int], Selection]) -> Selection:
        found = self._chosen.get(choose.__name__, [])
        if len(found) < min(p, sum(self.sizes.values())):
            found = self._chosen[choose.__name__] = choose(p)
        return found[:p]

    def _by_kernel(self, p: int) -> Selection:
        names = sorted(self.sizes)
        scale = self.map.space.scale
        rows = np.concatenate([scale(self.partition.owners[name].features) for name in names])
        starts = np.cumsum([0, *(self.sizes[name] for name in names)])
        places = exact_greedy(rows, self.wanted, self.gamma, p)
        whose = np.searchsorted(starts, places, side="right") - 1
        return [
            (names[owner], int(place - starts[owner])) for owner, place in zip(whose, places, strict=True)
        ]

    def _by_features(self, p: int) -> Selection:
        held, hashed = self.partition, self.map.hash
        wanted, seeds = hashed(held.validation.features), hashed(held.seed_set.features)
        return greedy(self.hashed, wanted, seeds, p, self.map.space.norm_bound)

    @cached_property
    def _spread(self) -> float:
        return float(kernel_means(self.wanted, self.wanted, self.gamma).mean())


def market_of(
    options: PurchaseOptions, configuration: Configuration, seed: int, wanted_labels: tuple[int, ...] = ()
) -> Market:
    """The market of a configuration (`dataset`, `owner_points`, `gamma`, `model`); the last one is cached."""
    names = ("dataset", "owner_points", "gamma", "model")
    return _market(options.data, *(configuration[name] for name in names), seed, wanted_labels)


@lru_cache(maxsize=1)
def _market(
    data: Path | None,
    dataset: str,
    owner_points: int | None,
    gamma: float,
    model: str,
    seed: int,
    wanted_labels: tuple[int, ...],
) -> Market:
    return Market(dealt(dataset, data, owner_points, seed), gamma, model, seed, wanted_labels)


@lru_cache(maxsize=1)
def dealt(dataset: str, data: Path | None, owner_points: int | None, seed: int) -> Partition:
    """A distributed dataset with at most this many points per owner; the last one is cached."""
    limits = {} if owner_points is None else {"owner_points": owner_points}
    return build(dataset, path=data, seed=seed, options=limits)


@dataclass(frozen=True, eq=False)
class Bought:
    """A purchase.

    Attributes:
        selection: Points as (owner, row), in the order of choice.
        epsilon_owners: Stated ε for one record of one owner added or removed, at `DELTA`; None: unprotected.
        epsilon_consumer: The same for one record of D_v replaced.
        seconds: Processor time of a session, all parties; None for other methods, as they share work.
    """

    selection: Selection
    epsilon_owners: float | None
    epsilon_consumer: float | None
    seconds: float | None
