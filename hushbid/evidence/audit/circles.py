"""Points on the circles of a paired map: some circles decide who wins, the others show in releases.

The attacker chooses each round's target (`broken.ChosenTargets`) on one circle, so large that noise does not
matter there: the available point nearest to the target's angle wins. On the other circles points are `LIKE_X`
or `LIKE_Y`, where φ(x) = -φ(y).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hushbid.evidence.audit.attack import SessionAttack, SessionData, stated_by
from hushbid.evidence.audit.broken import with_targets
from hushbid.evidence.audit.points import points_at
from hushbid.evidence.audit.readings import broadcasts
from hushbid.evidence.audit.settings import protected_session
from hushbid.protocol.space.features import FeatureMap

__all__ = [
    "DIMENSION",
    "LIKE_X",
    "LIKE_Y",
    "SEED_SET",
    "STRENGTH",
    "attack_on_circles",
    "opposite",
    "placed",
    "points_on_first",
    "target",
]

Angles = npt.NDArray[np.float64]

DIMENSION: Final = 16
"""d of the map."""
SEED_SET: Final = 400
"""|D_init|."""

LIKE_X: Final = 0.7 * math.pi
"""Neither cosine nor sine is 0, and they differ: noise that is missing anywhere, or the same in all
coordinates, leaves some of the difference exposed.
"""
LIKE_Y: Final = LIKE_X + math.pi
STRENGTH: Final = 200.0
"""Length of chosen targets; the noise of a weight is about 0.02."""


def placed(dimension: int, others: float, on: Mapping[int, float]) -> Angles:
    """A point's angles, shape (d/2,), in radians.

    Args:
        dimension: d of the map.
        others: Angle on all circles not in `on`.
        on: Circle, from 0 → angle on it.
    """
    angles = np.full(dimension // 2, others)
    for circle, angle in on.items():
        angles[circle] = angle
    return angles


def target(dimension: int, angle: float, *, circle: int = 0, strength: float = STRENGTH) -> Angles:
    """A target with an angle on one circle and nothing else, shape (d,)."""
    embedding = np.zeros(dimension)
    embedding[circle], embedding[dimension // 2 + circle] = (
        strength * math.cos(angle),
        strength * math.sin(angle),
    )
    return embedding


def opposite(dimension: int, *, first: int = 0) -> Angles:
    """The direction from y to x on the circles from `first` on, shape (d,): where releases show x."""
    there = np.arange(dimension // 2) >= first
    return np.concatenate([there * math.cos(LIKE_X), there * math.sin(LIKE_X)])


def points_on_first(feature_map: FeatureMap, places: Iterable[tuple[float, float]]) -> Angles:
    """Points by their angles on the first circle and on all others: raw, shape (places, d/2)."""
    return points_at(feature_map, np.array([placed(DIMENSION, others, {0: on}) for on, others in places]))


def attack_on_circles(
    mechanism: str,
    *,
    owners: Sequence[str],
    data: Callable[[FeatureMap], SessionData],
    angles: Sequence[float],
    rule: str = "ask-all",
    batch: int = 1,
    jitter: float = 0.0,
    **more: Any,
) -> SessionAttack:
    """The attack in which the first circle decides who wins, and the watcher reads releases on the others.

    Args:
        data: As in `SessionAttack`, with `SEED_SET` points of D_init.
        angles: Each round's angle of the target on the first circle.
        **more: Arguments of `SessionAttack`.
    """
    session = protected_session(
        mechanism,
        owners=owners,
        points=len(angles) * batch,
        batch=batch,
        jitter=jitter,
        dimension=DIMENSION,
        rule=rule,
    )
    return SessionAttack(
        stated=stated_by(session.privacy()[0]),
        session=session,
        data=data,
        read=broadcasts(opposite(DIMENSION, first=1), len(angles), SEED_SET, batch=batch),
        **with_targets(session, [target(DIMENSION, angle) for angle in angles]),
        **more,
    )
