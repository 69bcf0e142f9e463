"""Releases that owners could publish instead of selling points, from which a consumer trains a model.

Each is one release of all owners' rows by a party that all of them trust. That favours publishing: owners
that publish separately each add the noise. ε covers one record added or removed, as for owners that sell.
Noise is simulated.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from hushbid.kme import KernelMeanRelease
from hushbid.lab.experiments.market import DELTA, Labels, Market
from hushbid.lab.experiments.merf import merf
from hushbid.protocol.privacy.noise import SimulatedNoise
from hushbid.protocol.space.mmd import Points
from hushbid.race import RaceClassifier
from hushbid.race.release import PoorModelWarning

__all__ = ["PUBLISHED", "ReceivedRelease", "everything"]

FEATURES: Final = 280
"""J of KME's Algorithm 2."""


@dataclass(frozen=True, eq=False)
class ReceivedRelease:
    """A release as the consumer gets it.

    Attributes:
        points, labels: Synthetic points, scaled, shape (n, columns), and their labels, shape (n,); None if a
        release has none.
        predict: Predicts labels of scaled points if the release is a model; else None.
    """

    points: Points | None
    labels: Labels | None
    predict: Callable[[Points], Labels] | None = None


Release: TypeAlias = Callable[[Market, int, float], ReceivedRelease]


def everything(market: Market) -> tuple[Points, Labels]:
    """All owners' points, scaled, and their labels."""
    rows = [(name, row) for name, size in sorted(market.sizes.items()) for row in range(size)]
    return market.scaled(rows), market.labels(rows)


def _classes(market: Market) -> npt.NDArray[Any]:
    """All labels of any party; the set of labels is public."""
    return np.unique(np.concatenate([table.labels for table in market.partition.owners.values()]))


def _merf(market: Market, count: int, epsilon: float) -> ReceivedRelease:
    points, labels = everything(market)
    generator = np.random.default_rng([market.seed, count])
    made = merf(
        points,
        labels,
        _classes(market),
        gamma=market.gamma,
        count=count,
        epsilon=epsilon,
        delta=DELTA,
        generator=generator,
    )
    return ReceivedRelease(*made)


def _kme(market: Market, count: int, epsilon: float) -> ReceivedRelease:
    """One release per class: a record belongs to one class, so all of them cost as much as one."""
    points, labels = everything(market)
    classes = _classes(market)
    releases = [
        KernelMeanRelease(
            lower=0.0,
            upper=1.0,
            epsilon=epsilon,
            delta=DELTA,
            neighbours="add-remove-one",
            method="features",
            points=max(1, count // len(classes)),
            gamma=market.gamma,
            features=FEATURES,
            norm=1.0,
            weights="uniform",
            random_state=market.seed,
            noise=partial(SimulatedNoise, market.seed, f"kme-{place}"),
        )
        .fit(points[labels == each])
        .release_
        for place, each in enumerate(classes)
    ]
    # Equal weights within a class. Each class gets as many points as its released size calls for, drawn again
    # if it calls for more.
    sizes = np.array([release.size for release in releases])
    shares = np.maximum(1, np.round(count * sizes / sizes.sum()).astype(int))
    made = [
        release.points[np.arange(share) % len(release.points)]
        for release, share in zip(releases, shares, strict=True)
    ]
    return ReceivedRelease(np.concatenate(made).astype(np.float64), np.repeat(classes, shares))


def _race(market: Market, _count: int, epsilon: float) -> ReceivedRelease:
    points, labels = everything(market)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PoorModelWarning)  # The experiment measures how poor it is.
        model = RaceClassifier(
            lower=0.0,
            upper=1.0,
            epsilon=epsilon,
            neighbours="add-remove-one",
            classes=_classes(market).tolist(),
            random_state=market.seed,
            noise=partial(SimulatedNoise, market.seed, "race"),
        ).fit(points, labels)
    return ReceivedRelease(None, None, model.predict)


PUBLISHED: Final[Mapping[str, Release]] = {"dp-merf": _merf, "kme": _kme, "race-classifier": _race}
"""Release name → function of a market, the number of synthetic points, and ε."""
