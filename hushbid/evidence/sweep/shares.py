"""Settlements computed anew, for invariants: of the points that were bought, by the definitions alone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from hushbid.protocol.session.session import Session
from hushbid.protocol.space.grid import FEATURE_UNIT, Features
from hushbid.protocol.wire.messages import Target

__all__ = ["ROUNDING", "Bought", "gained", "worth"]

ROUNDING: Final = 1e-9
"""Seconds, or shares of J, by which sums of floating-point numbers may differ."""

_Vector: TypeAlias = npt.NDArray[np.float64]


class Bought(NamedTuple):
    """A point that was bought, and who sold it; `features` is its φ, int16 of shape (d,).

    If it is not `paid`, it stands in S all the same.
    """

    owner: str
    features: Features
    paid: bool


def gained(
    points: Iterable[Bought], owners: Sequence[str], target: Target | None, session: Session
) -> dict[str, float]:
    """What each owner's points add to J(S) = 2·g̃ᵀμ_S - ‖μ_S‖², each in its place (DPDS §2, incentives).

    Args:
        points: In the order in which they were chosen.
        owners: All, winners or not.
        target: The released g̃; None: there is none, and nothing was bought.
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


def worth(points: Iterable[Bought], noise: Mapping[str, int], weights: Sequence[int]) -> dict[str, float]:
    """What each owner's points are worth in a private settlement, with its noise (docs/privacy.md).

    Args:
        points: In any order.
        noise: Of each owner, in units of 2^-15.
        weights: The first broadcast's, but for that of jitter, in units of 2^-22.
    """
    # C, half of the weight's length in units of 2^15 · 2^22, and one more.
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
