"""Two releases of one total: a finer one for the curator, and a coarser one for the owners.

The consumer draws Z and Z' and releases Σy + Z to the curator, and Σy + Z + Z' to the owners. The coarser one
follows from the finer by noise of its own, so that whoever sees both learns what the finer one tells, and no
sum of the two.

Z and Z' are discrete Gaussians of variance σ² and τ². Their sum is no discrete Gaussian of variance σ² + τ²,
but has its probabilities up to a factor of e^±b on each coordinate, b = 5·exp(-2π²/(1/σ² + 1/τ²)) (Kairouz,
Liu and Steinke 2021, "The Distributed Discrete Gaussian Mechanism", Theorem 8). With both from `LEAST` on,
4096 coordinates and both datasets, that is below 10^-4000 in ε: less than a float64 of ε can tell.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

from hushbid.protocol.errors import ConfigError
from hushbid.protocol.privacy.noise import Draw
from hushbid.protocol.privacy.releases.base import Neighbours, ReleaseMechanism

__all__ = ["Nested"]

LEAST: Final = 2.0**5
"""Smallest standard deviation of either noise, in units of the grid."""


@dataclass(frozen=True)
class Nested:
    """A finer release and the coarser one that follows from it.

    Attributes:
        finer: The curator's mechanism.
        draws: Z and Z'.
    """

    finer: ReleaseMechanism
    draws: tuple[Draw, Draw]

    @classmethod
    def of(cls, coarser: ReleaseMechanism, *, delta: float) -> Nested | None:
        """The nesting that a mechanism's parameters name by `epsilon_curator`; None if they name none.

        Raises:
            ConfigError: The curator would have no finer release than the owners.
        """
        epsilon = getattr(coarser.parameters, "epsilon_curator", None)
        if epsilon is None:
            return None
        own = {"epsilon": epsilon, "epsilon_curator": None, coarser.parameters.noise_key: None}
        finer = replace(coarser, parameters=coarser.parameters.model_copy(update=own))
        (whole,), (first,) = coarser.draws(0), finer.draws(0)
        more = whole.scale**2 - first.scale**2
        if more < LEAST**2 or first.scale < LEAST:
            stated = coarser.guarantee(neighbours=Neighbours.SUBSTITUTE_ONE, delta=delta).epsilon or 0.0
            raise ConfigError(
                f"[target]: epsilon_curator is {epsilon:g}, and the owners' {stated:.4g}: the curator's "
                "is to be the larger one, by no less than noise can add.",
                advice="Raise epsilon_curator above epsilon, or leave it out, and all see one release.",
            )
        # Rounded up, so that the sum has no less noise than is stated.
        scale = math.nextafter(math.sqrt(more), math.inf)
        return cls(finer, (first, Draw(whole.distribution, scale, whole.size)))
