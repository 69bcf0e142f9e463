"""Settlements recomputed for invariants, from the bought points and the definitions alone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from hushbid.protocol.session.session import Session
from hushbid.protocol.space.grid import FEATURE_UNIT, Features
from hushbid.protocol.wire.messages import Target

__all__ = ["ROUNDING", "BoughtPoint", "gained", "worth"]

ROUNDING: Final = 1e-9
"""Tolerance for sums of floating-point numbers, in seconds or shares of J."""

_Vector: TypeAlias = npt.NDArray[np.float64]


class BoughtPoint(NamedTuple):
    """A bought point by its φ, int16 of shape (d,); one that is not `paid` belongs to S all the same."""

    owner: str
    features: Features
    paid: bool


def gained(
    points: Iterable[BoughtPoint], owners: Sequence[str], target: Target | None, session: Session
) -> dict[str, float]:
    """What each owner's points add to J(S) = 2·g̃ᵀμ_S - ‖μ_S‖², each in turn (DPDS §2, incentives).

    Args:
        points: In the order in which they were chosen.
        owners: All owners, winners or not.
        target: The released g̃; None: there is no target, and nothing was bought.
    """
    shares = dict.fromkeys(owners, 0.0)
    if target is None:
        return shares
    weight = session.file.seed_weight
    total, size = weight * target.seed_total * FEATURE_UNIT, weight * target.seed_size
    before = _objective(target.embedding, total / size)
    for point in points:
        total, size = total + point.features * FEATURE_UNIT, size + 1
        after = _objective(target.embedding, total / size)
        if point.paid:
            shares[point.owner] += after - before
        before = after
    return shares


def worth(
    points: Iterable[BoughtPoint], noise: Mapping[str, int], weights: Sequence[int]
) -> dict[str, float]:
    """The worth of each owner's points in a private settlement, with its noise (docs/privacy.md).

    Args:
        points: In any order.
        noise: Each owner's noise, in units of 2^-15.
        weights: The first broadcast's weights without that of jitter, in units of 2^-22.
    """
    # C: half of the weight's length in units of 2^15 · 2^22, plus one.
    whole = math.isqrt(sum(weight**2 for weight in weights) * 2**28) + 1
    totals = dict(noise)
    for point in points:
        if point.paid:
            features: list[Any] = point.features.tolist()
            score = sum(value * weight for value, weight in zip(features, weights, strict=True))
            totals[point.owner] += min(max(score, 0), whole) * 2**15 // whole
    return {owner: total / 2**15 for owner, total in totals.items()}


def _objective(target: _Vector, mean: _Vector) -> float:
    return float(2.0 * (target @ mean) - mean @ mean)
