"""Feature maps: one file each, and one line of `FEATURE_MAPS`."""

from __future__ import annotations

from typing import Final

from protocol.errors import ConfigError
from protocol.features.base import Bound, FeatureMap, RealArray
from protocol.features.cosine import CosineMap
from protocol.features.paired import PairedMap

__all__ = ["FEATURE_MAPS", "Bound", "CosineMap", "FeatureMap", "PairedMap", "RealArray", "feature_map"]

FEATURE_MAPS: Final[dict[str, type[FeatureMap]]] = {
    PairedMap.name: PairedMap,
    CosineMap.name: CosineMap,
}
"""Every feature map, by the name that a session file uses."""


def feature_map(
    name: str, *, seed: int, dimension: int, gamma: float, lower: Bound, upper: Bound, columns: int
) -> FeatureMap:
    """The map of that name; for the parameters see `FeatureMap`.

    Raises:
        ConfigError: An unknown name, or a parameter outside of its range.
    """
    if name not in FEATURE_MAPS:
        raise ConfigError(
            f"There is no feature map named {name!r}.", advice=f"Choose one of: {', '.join(FEATURE_MAPS)}."
        )
    return FEATURE_MAPS[name](
        seed=seed, dimension=dimension, gamma=gamma, lower=lower, upper=upper, columns=columns
    )
