"""Feature maps: one file each, and one line of `FEATURE_SPACES`."""

from __future__ import annotations

from typing import Final

from protocol.errors import ConfigError
from protocol.features.base import SEED_BYTES, Bound, FeatureMap, FeatureSpace, RealArray
from protocol.features.cosine import CosineSpace
from protocol.features.paired import PairedSpace

__all__ = [
    "FEATURE_SPACES",
    "SEED_BYTES",
    "Bound",
    "CosineSpace",
    "FeatureMap",
    "FeatureSpace",
    "PairedSpace",
    "RealArray",
    "feature_map",
    "feature_space",
]

FEATURE_SPACES: Final[dict[str, type[FeatureSpace]]] = {
    PairedSpace.name: PairedSpace,
    CosineSpace.name: CosineSpace,
}
"""Every kind of feature map, by the name that a session file uses."""


def feature_space(
    name: str, *, dimension: int, gamma: float, lower: Bound, upper: Bound, columns: int
) -> FeatureSpace:
    """The space of the maps of that name; for the parameters see `FeatureSpace`.

    Raises:
        ConfigError: An unknown name, or a parameter outside of its range.
    """
    if name not in FEATURE_SPACES:
        raise ConfigError(
            f"There is no feature map named {name!r}.", advice=f"Choose one of: {', '.join(FEATURE_SPACES)}."
        )
    return FEATURE_SPACES[name](dimension=dimension, gamma=gamma, lower=lower, upper=upper, columns=columns)


def feature_map(
    name: str,
    *,
    seed: int | bytes,
    dimension: int,
    gamma: float,
    lower: Bound,
    upper: Bound,
    columns: int,
) -> FeatureMap:
    """The map of that name and seed; for the parameters see `FeatureSpace` and `FeatureMap`.

    Raises:
        ConfigError: An unknown name, or a parameter outside of its range.
    """
    space = feature_space(name, dimension=dimension, gamma=gamma, lower=lower, upper=upper, columns=columns)
    return space.map(seed)
