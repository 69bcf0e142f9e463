"""No noise: the greedy baseline of Kim et al. (2016), which protects nobody."""

from __future__ import annotations

from hushbid.protocol.privacy.accounting import Cost
from hushbid.protocol.privacy.accounting.validation import check_delta
from hushbid.protocol.privacy.noise import Draw
from hushbid.protocol.privacy.releases.base import Guarantee, Neighbours, ReleaseMechanism

__all__ = ["ExactRelease"]


class ExactRelease(ReleaseMechanism):
    """The mean embedding as it is.

    Status: not private, for no neighbours; a session needs `allow_nonprivate = true`.
    Sensitivity: 2·max‖φ‖, uncovered. Source: DPDS §4, "Non-Private Greedy".
    """

    name = "exact"
    private = False

    def draws(self, index: int) -> tuple[Draw, ...]:
        self.shows_public(index)
        return ()

    def guarantee(self, *, neighbours: Neighbours, delta: float) -> Guarantee:
        """No guarantee, whatever the neighbours."""
        Neighbours(neighbours)
        check_delta(delta)
        return Guarantee(epsilon=None, delta=delta, claimed_epsilon=None, claimed_delta=None)

    def cost(self, index: int, *, neighbours: Neighbours) -> tuple[Cost, ...]:
        """No cost that an accountant could add up: nothing is guaranteed."""
        self.shows_public(index)
        return ()
