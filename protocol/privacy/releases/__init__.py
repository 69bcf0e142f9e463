"""Release mechanisms: one file each, and one line of `RELEASES`; others are added with `register_release`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hushbid.protocol import limits, ranges
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.intervals import within
from hushbid.protocol.privacy.accounting.validation import check_delta
from hushbid.protocol.privacy.registry import Registry
from hushbid.protocol.privacy.releases.base import (
    Neighbours,
    ReleaseMechanism,
    ReleaseStream,
    Setting,
    largest_norm,
)
from hushbid.protocol.privacy.releases.exact import ExactRelease
from hushbid.protocol.privacy.releases.filtered_gaussian import FilteredGaussianRelease
from hushbid.protocol.privacy.releases.gaussian import GaussianRelease
from hushbid.protocol.privacy.releases.mwem import MwemRelease
from hushbid.protocol.privacy.releases.prior import Prior
from hushbid.protocol.privacy.releases.race import RaceRelease
from hushbid.protocol.privacy.releases.statistic import Statistic
from hushbid.protocol.privacy.releases.subspace import SubspaceRelease

__all__ = [
    "RELEASES",
    "ExactRelease",
    "Neighbours",
    "Prior",
    "ReleaseMechanism",
    "ReleaseStream",
    "Setting",
    "Statistic",
    "register_release",
    "release_mechanism",
]

RELEASES: Final[Registry[ReleaseMechanism]] = Registry(
    "a release mechanism",
    (ExactRelease, MwemRelease, GaussianRelease, FilteredGaussianRelease, SubspaceRelease, RaceRelease),
    unknown="There is no release mechanism named {name!r}.",
    wrong="Release mechanism {name!r}, key {key!r}",
)
"""Every release mechanism, by the name that a session file uses."""
register_release: Final = RELEASES.register


def release_mechanism(name: str, parameters: Mapping[str, object], setting: Setting) -> ReleaseMechanism:
    """The mechanism with that name, for one dataset and a fixed number of releases.

    Args:
        parameters: The mechanism's own table in the session file.
        setting: Its task: 1 release for the consumer's target, p for the curator's summary.

    Raises:
        ConfigError: An unknown name; a key of `parameters` that is unknown, missing, of a wrong type or out
            of range; a dimension, count, bound or δ out of range; a budget that is too small.
    """
    dimension, releases, bound = setting.dimension, setting.releases, setting.norm_bound
    if not within(ranges.Dimension, dimension):
        raise ConfigError(
            f"Dimension {dimension} is not in {limits.MIN_DIMENSION}..{limits.MAX_DIMENSION}.",
            advice="Correct the feature map's dimension in the session file.",
        )
    if not within(ranges.Points, releases):
        raise ConfigError(
            f"{releases} releases are not in 1..{limits.MAX_POINTS}.", advice="Correct the number of rounds."
        )
    if not 0.0 < bound <= largest_norm(dimension):
        raise ConfigError(
            f"No feature map of dimension {dimension} has a norm bound of {bound}.",
            advice="Pass the map's own `norm_bound`.",
        )
    check_delta(setting.delta)
    mechanism, checked = RELEASES.chosen(name, parameters)
    return mechanism(checked, setting)
