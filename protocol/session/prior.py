"""Facts about the public seed set that come with a target, for the releases that need them."""

from __future__ import annotations

from hushbid.protocol.privacy.releases import Prior
from hushbid.protocol.wire.messages import SubspaceTarget, Target

__all__ = ["prior_of"]


def prior_of(target: Target) -> Prior:
    """Facts about the seed set from a checked target."""
    basis = None
    if isinstance(target, SubspaceTarget):
        basis = target.basis.reshape(-1, len(target.seed_total))
    return Prior.of_total(target.seed_total, target.seed_size, basis)
