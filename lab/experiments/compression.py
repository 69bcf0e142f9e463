"""Compression without privacy or target: fewer points that represent all owners' points.

Libraries do the work: goodpoints (kernel thinning; Dwivedi and Mackey 2024) and apricot (facility location;
Schreiber, Bilmes and Noble 2020). A library that is not installed is skipped, and the table says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import metadata
from importlib.util import find_spec
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from hushbid.lab.experiments.market import Market
from hushbid.lab.experiments.publishing import everything
from hushbid.protocol.extras import OTHERS
from hushbid.protocol.space.mmd import Points

__all__ = ["COMPRESSED", "compressed", "installed"]

Rows: TypeAlias = npt.NDArray[np.intp]

HALVINGS: Final = 2
"""Thinning starts from four times as many random points as requested."""


def _thinned(points: Points, count: int, gamma: float, seed: int) -> Rows:
    from goodpoints import kt

    def kernel(point: Points, rows: Points) -> npt.NDArray[np.float64]:
        return np.asarray(np.exp(-gamma * ((rows - point) ** 2).sum(axis=1)))

    generator = np.random.default_rng(seed)
    halvings = min(HALVINGS, int(np.log2(max(1, len(points) // count))))
    drawn = generator.choice(len(points), size=min(len(points), count << halvings), replace=False)
    kept = kt.thin(points[drawn], halvings, kernel, kernel, seed=seed, store_K=True, unique=True)
    return np.asarray(drawn[np.asarray(kept, dtype=np.intp)])


def _located(points: Points, count: int, _gamma: float, seed: int) -> Rows:
    from apricot import FacilityLocationSelection

    generator = np.random.default_rng(seed)
    drawn = generator.choice(len(points), size=min(len(points), 4 * count), replace=False)
    chosen = FacilityLocationSelection(count, metric="euclidean", random_state=seed).fit(points[drawn])
    return np.asarray(drawn[np.asarray(chosen.ranking, dtype=np.intp)])


COMPRESSED: Final[Mapping[str, Callable[[Points, int, float, int], Rows]]] = {
    "goodpoints": _thinned,
    "apricot": _located,
}
"""Package name → function of points, number to keep, γ and seed; it returns the rows to keep."""


def installed(name: str) -> str | None:
    """The installed version of a package of `COMPRESSED`; None if it is not installed."""
    return metadata.version(OTHERS[name][0]) if find_spec(name) is not None else None


def compressed(market: Market, name: str, count: int) -> tuple[Points, npt.NDArray[np.generic]]:
    """The kept points, scaled, and their labels."""
    points, labels = everything(market)
    rows = COMPRESSED[name](points, count, market.gamma, market.seed)
    return points[rows], labels[rows]
