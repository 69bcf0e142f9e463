"""What a choice by running sums is to come to: a released mean in the units of what each point adds to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from hushbid.protocol.privacy.releases.statistic import Statistic
from hushbid.protocol.space.grid import Totals
from hushbid.protocol.space.herding import FARTHEST

__all__ = ["Aim"]


@dataclass(frozen=True, eq=False)
class Aim:
    """The aim of a choice (`hushbid.protocol.space.herding.herd`).

    Attributes:
        statistic: What each point adds.
        mean: Its wanted mean: int64 of shape (statistic.width,), in units of 2^-15.
    """

    statistic: Statistic
    mean: Totals

    @classmethod
    def of(cls, statistic: Statistic, mean: npt.NDArray[np.float64]) -> Self:
        """The aim at a mean in units of 2^-15: rounded, and cut off where no noise comes to.

        IEEE 754 rounds each coordinate correctly, so that every machine gets the same.
        """
        return cls(statistic, np.rint(np.clip(mean, -FARTHEST, FARTHEST)).astype(np.int64))
