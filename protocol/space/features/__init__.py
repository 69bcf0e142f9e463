"""Feature maps: one file each, and one line of `FEATURE_SPACES`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hushbid.protocol.errors import ConfigError
from hushbid.protocol.space.features.base import SEED_BYTES, Bound, FeatureMap, FeatureSpace
from hushbid.protocol.space.features.cosine import CosineSpace
from hushbid.protocol.space.features.fourier import FourierMap
from hushbid.protocol.space.features.lsh import LshSpace
from hushbid.protocol.space.features.paired import PairedSpace

__all__ = [
    "FEATURE_SPACES",
    "SEED_BYTES",
    "Bound",
    "FeatureMap",
    "FeatureSpace",
    "FourierMap",
    "PairedSpace",
    "feature_map",
    "feature_space",
]

FEATURE_SPACES: Final[dict[str, type[FeatureSpace]]] = {
    PairedSpace.name: PairedSpace,
    CosineSpace.name: CosineSpace,
    LshSpace.name: LshSpace,
}
"""Every kind of feature map, by its name in session files."""


def feature_space(
    name: str,
    *,
    dimension: int,
    gamma: float,
    lower: Bound,
    upper: Bound,
    columns: int,
    options: Mapping[str, Any] | None = None,
) -> FeatureSpace:
    """The space of the maps with that name; `FeatureSpace` describes the parameters.

    `options` are further parameters of these maps (`FeatureSpace.options`); the map's own defaults apply to
    those left out.

    Raises:
        ConfigError: The name is unknown, an option is not the map's, or a parameter is out of range.
    """
    if name not in FEATURE_SPACES:
        raise ConfigError(
            f"There is no feature map named {name!r}.", advice=f"Choose one of: {', '.join(FEATURE_SPACES)}."
        )
    given = options or {}
    if foreign := sorted(given.keys() - FEATURE_SPACES[name].options):
        raise ConfigError(
            f"The feature map {name!r} does not take: {', '.join(foreign)}.",
            advice="Leave it out of [features], or choose the map that it is for.",
        )
    return FEATURE_SPACES[name](
        dimension=dimension, gamma=gamma, lower=lower, upper=upper, columns=columns, **given
    )


def feature_map(name: str, *, seed: int | bytes, **public: Any) -> FeatureMap:
    """The map with that name and seed (`FeatureSpace.map`); other arguments are those of `feature_space`.

    Raises:
        ConfigError: The name is unknown, or a parameter is out of range.
    """
    return feature_space(name, **public).map(seed)
