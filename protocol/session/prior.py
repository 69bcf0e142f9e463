"""What a target tells of the public seed set, for the releases that need it."""

from __future__ import annotations

from protocol.privacy.releases import Prior
from protocol.wire.messages import SubspaceTarget, Target

__all__ = ["prior_of"]


def prior_of(target: Target) -> Prior:
    """What a target that was checked tells of the seed set."""
    basis = None
    if isinstance(target, SubspaceTarget):
        basis = target.basis.reshape(-1, len(target.seed_total))
    return Prior.of_total(target.seed_total, target.seed_size, basis)
