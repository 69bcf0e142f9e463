"""A release from outside the package: `gaussian`, rounded to a coarse grid after its noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hushbid.protocol.privacy.releases import ReleaseStream, register_release
from hushbid.protocol.privacy.releases.gaussian import GaussianRelease
from hushbid.protocol.space.grid import Totals

STEP = 2.0**-10


class CoarseStream(ReleaseStream):
    """Releases in steps of 2⁻¹⁰."""

    def _release(
        self, index: int, total: Totals, count: float, noise: tuple[npt.NDArray[Any], ...]
    ) -> npt.NDArray[np.float64]:
        return np.round(super()._release(index, total, count, noise) / STEP) * STEP


@register_release
class CoarseRelease(GaussianRelease):
    """A rounded `gaussian` release: post-processing, so its guarantee is that of `gaussian`."""

    name = "coarse"
    Stream = CoarseStream
