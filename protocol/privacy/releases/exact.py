"""No noise: the greedy baseline of Kim et al. (2016), which protects nobody."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from protocol.privacy.accounting import Cost
from protocol.privacy.noise import Draw
from protocol.privacy.releases.base import (
    Guarantee,
    MechanismParameters,
    Neighbours,
    ReleaseMechanism,
    check_delta,
)
from protocol.space.grid import FEATURE_UNIT, Totals

__all__ = ["ExactRelease"]


class ExactParameters(MechanismParameters):
    """`exact` has no parameters."""


class ExactRelease(ReleaseMechanism[ExactParameters]):
    """The mean embedding as it is.

    Status: not private, for no neighbours; a session needs `allow_nonprivate = true`.
    Sensitivity: 2·max‖φ‖, uncovered. Source: DPDS §4, "Non-Private Greedy".
    """

    name: ClassVar[str] = "exact"
    private: ClassVar[bool] = False
    Parameters: ClassVar[type[MechanismParameters]] = ExactParameters

    def draws(self, index: int) -> tuple[Draw, ...]:
        """None."""
        self.check_index(index)
        return ()

    def guarantee(self, *, neighbours: Neighbours, delta: float) -> Guarantee:
        """Nothing, whatever the neighbours."""
        Neighbours(neighbours)
        check_delta(delta)
        return Guarantee(epsilon=None, delta=delta, claimed_epsilon=None, claimed_delta=None)

    def cost(self, index: int, *, neighbours: Neighbours) -> tuple[Cost, ...]:
        """None that an accountant could add up: nothing is guaranteed."""
        self.check_index(index)
        return ()

    def _release(
        self, index: int, total: Totals, count: float, noise: tuple[npt.NDArray[Any], ...]
    ) -> npt.NDArray[np.float64]:
        return np.asarray(self.with_offset(total) * (FEATURE_UNIT / count), dtype=np.float64)
