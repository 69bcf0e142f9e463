"""Release mechanisms: one file each, and one line of `RELEASES`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from protocol import limits
from protocol.errors import ConfigError
from protocol.releases.base import Guarantee, Neighbours, ReleaseMechanism, largest_norm
from protocol.releases.exact import ExactRelease
from protocol.releases.gaussian import GaussianRelease
from protocol.releases.mwem import MwemRelease

__all__ = [
    "RELEASES",
    "ExactRelease",
    "GaussianRelease",
    "Guarantee",
    "MwemRelease",
    "Neighbours",
    "ReleaseMechanism",
    "release_mechanism",
]

RELEASES: Final[dict[str, type[ReleaseMechanism[Any]]]] = {
    ExactRelease.name: ExactRelease,
    MwemRelease.name: MwemRelease,
    GaussianRelease.name: GaussianRelease,
}
"""Every release mechanism, by the name that a session file uses."""


def release_mechanism(
    name: str,
    parameters: Mapping[str, Any],
    *,
    dimension: int,
    releases: int,
    norm_bound: float | None = None,
) -> ReleaseMechanism[Any]:
    """The mechanism of that name, for one dataset and a fixed number of releases.

    Args:
        name: A key of `RELEASES`.
        parameters: The mechanism's own table of the session file.
        dimension: Coordinates d of φ.
        releases: 1 for the consumer's target, p for the curator's summary.
        norm_bound: `FeatureMap.norm_bound` of the session's map. Left out, the largest of all maps is
            assumed, about √2: sound for any, but twice the ρ that a map of ‖φ‖ = 1 costs.

    Raises:
        ConfigError: An unknown name; a key of `parameters` that is unknown, missing, of a wrong type
            or out of range; a dimension, count or bound out of range.
    """
    if name not in RELEASES:
        raise ConfigError(
            f"There is no release mechanism named {name!r}.", advice=f"Choose one of: {', '.join(RELEASES)}."
        )
    if not limits.MIN_DIMENSION <= dimension <= limits.MAX_DIMENSION:
        raise ConfigError(
            f"Dimension {dimension} is not in {limits.MIN_DIMENSION}..{limits.MAX_DIMENSION}.",
            advice="Correct the feature map's dimension in the session file.",
        )
    if not 1 <= releases <= limits.MAX_POINTS:
        raise ConfigError(
            f"{releases} releases are not in 1..{limits.MAX_POINTS}.", advice="Correct the number of rounds."
        )
    largest = largest_norm(dimension)
    bound = largest if norm_bound is None else norm_bound
    if not 0.0 < bound <= largest:
        raise ConfigError(
            f"No feature map of dimension {dimension} has a norm bound of {bound}.",
            advice="Pass the map's own `norm_bound`.",
        )
    return RELEASES[name].build(parameters, dimension=dimension, releases=releases, norm_bound=bound)
