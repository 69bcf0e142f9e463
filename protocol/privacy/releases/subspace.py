"""KME Algorithm 1: the mean embedding in the span of public points, with noise on few coordinates."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import Field

from hushbid.protocol import limits
from hushbid.protocol.errors import ConfigError, LocalProtocolError
from hushbid.protocol.privacy.releases.filtered_gaussian import ClippedStream, FilteredGaussianRelease
from hushbid.protocol.privacy.releases.gaussian import GaussianParameters
from hushbid.protocol.privacy.releases.prior import Prior
from hushbid.protocol.privacy.releases.statistic import BASIS_BITS

__all__ = ["SubspaceParameters", "SubspaceRelease"]


class SubspaceParameters(GaussianParameters):
    """The table of `subspace` in a session file.

    Attributes:
        directions: F, the number of released coordinates: fewer than the seed set has points, and at most d.
    """

    directions: int = Field(ge=1, le=limits.MAX_DIMENSION)


class SubspaceStream(ClippedStream):
    """Releases of points clipped in a basis of the seed set's (`SubspaceRelease`)."""

    @cached_property
    def _inverse(self) -> npt.NDArray[np.float64]:
        """B⁺, shape (d, F)."""
        basis: Any = self.statistic.basis
        return np.linalg.pinv(basis * 2.0**-BASIS_BITS)

    @cached_property
    def _stretch(self) -> float:
        return float(np.linalg.norm(self._inverse)) / math.sqrt(self.mechanism.dimension)

    @property
    def unit(self) -> float:
        """ρ, scaled as B⁺ scales coordinates."""
        return super().unit * self._stretch

    def _in_features(self, moved: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return np.asarray(self._inverse @ moved)


class SubspaceRelease(FilteredGaussianRelease):
    """Σy + Z in F coordinates: φ about the seed set's mean, projected on leading directions of the seed set.

    The release lies in the affine span of the public points' features, so it is a weighted sum of them, as in
    KME Algorithm 1. The noise is on F coordinates, whereas `filtered-gaussian` has it on all
    d. So d can be large, and the feature map accurate, at no cost in noise. The part of a point outside the
    span is lost.

    Sensitivity: 2 in L2, whatever the points and the basis (`Statistic`): y is clipped to length 1 in integer
    arithmetic. So a forged or non-orthonormal basis voids no guarantee; it only makes the release worse.
    Honest bases have orthogonal rows of equal length, chosen so that a point's projection is about as long as
    φ - c (`Prior.of_features`), and the clip radius equals `filtered-gaussian`'s. The basis follows from
    public points only, and F is a parameter: noise and cost do not depend on it.

    Post-processing, which costs nothing: the filter and the embedding of `FilteredGaussianRelease` with the
    basis' pseudoinverse B⁺ between them: n·c + ρ·B⁺Σy estimates Σφ.

    Status: private. Source: KME Algorithm 1 (Balog, Tolstikhin, Schölkopf 2018), with a sensitivity of 2
        clipped lengths instead of 2/N, and a calibrated discrete Gaussian.
    """

    parameters: SubspaceParameters
    name = "subspace"
    Parameters = SubspaceParameters
    Stream = SubspaceStream
    small_keys: ClassVar[Mapping[str, Any]] = {"directions": 4}

    def __post_init__(self) -> None:
        directions, dimension = self.directions, self.dimension
        if directions > dimension:
            raise ConfigError(
                f"Release mechanism 'subspace', key 'directions': there are no {directions} "
                f"directions among features of {dimension} coordinates.",
                advice="Set it to features.dimension or less.",
            )
        if directions * dimension > limits.MAX_BASIS:
            raise ConfigError(
                f"Release mechanism 'subspace', key 'directions': {directions} directions of "
                f"{dimension} coordinates are more numbers than the limit of {limits.MAX_BASIS}.",
                advice="Set fewer directions, or a smaller features.dimension.",
            )
        super().__post_init__()

    @property
    def directions(self) -> int:
        return self.parameters.directions

    @property
    def width(self) -> int:
        """F, regardless of d."""
        return self.directions

    def _basis(self, prior: Prior) -> npt.NDArray[np.int16]:
        if prior.basis is None or len(prior.basis) < self.directions:
            raise LocalProtocolError(
                "A subspace release was asked for before the seed set's prior had a basis."
            )
        return prior.basis[: self.directions]
