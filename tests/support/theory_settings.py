"""Sessions that docs/plan.md compares: two that this repository runs, and two far larger ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hushbid.plan.theory import TheorySetting

__all__ = ["SETTINGS"]


def _large(
    owners: int, *, points: int, held: int, dimension: int, epsilon: float, delta: float
) -> TheorySetting:
    """Owners of 10⁴ points each, and a consumer with as many validation points as its seed set has."""
    return TheorySetting(
        owners=owners,
        available=owners * 10**4,
        points=points,
        validation=held,
        seed_points=held,
        dimension=dimension,
        epsilon=epsilon,
        epsilon_target=epsilon,
        delta=delta,
    )


_SEALED: Final[Mapping[str, Any]] = {"seed_points": 150, "dimension": 140, "delta": 1e-5}
SETTINGS: Final = {
    "digits, the demonstration": TheorySetting(
        owners=5, available=900, points=200, validation=66, epsilon=3.0, epsilon_target=3.0, **_SEALED
    ),
    "MNIST, appendix G": TheorySetting(
        owners=5, available=47_960, points=1_000, validation=380, epsilon=1.0, epsilon_target=1.0, **_SEALED
    ),
    "10⁴ owners of 10⁴ points": _large(
        10**4, points=10**4, held=10**5, dimension=140, epsilon=1.0, delta=1e-9
    ),
    "10⁶ owners of 10⁴ points, ε = 10": _large(
        10**6, points=10**5, held=10**7, dimension=4_096, epsilon=10.0, delta=1e-11
    ),
}
