"""A suite in which the victim has n or n + 1 records, and all its other records nearly tie.

On the circle of each of the first rounds, one point of the victim's and one of the watcher's are equal; all
others lie opposite the target, which lets the watcher's win by half a grid unit of φ. The extra record never
wins: with a sound map S' = S.

If φ of a point depends, in its last place, on what is hashed beside it, the victim's point wins with D' in
every one of these rounds. The lemma (DESIGN §1) then fails: S' differs from S in as many points as there are
near ties.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt

from hushbid.evidence.audit.attack import SessionAttack, SessionData, public_map, stated_by
from hushbid.evidence.audit.broken import choosing_targets
from hushbid.evidence.audit.circles import DIMENSION, LIKE_X, LIKE_Y, opposite, placed, target
from hushbid.evidence.audit.points import points_at, seed_set
from hushbid.evidence.audit.readings import broadcasts
from hushbid.evidence.audit.settings import protected_session
from hushbid.protocol.space.features import FeatureMap
from hushbid.protocol.space.grid import FEATURE_UNIT, features_to_float

__all__ = ["near_ties"]

TIES: Final = 4
ROUNDS: Final = TIES + 2
SEED_SET: Final = 4000
"""So large that the noise of a weight, 0.0006 per coordinate, does not decide a near tie."""
STRENGTH: Final = 250.0
"""Length of targets; a grid unit of φ is 0.0076 of a score."""

_ALIKE, _BEHIND, _OPPOSITE = math.pi / 2.0, 0.8 * math.pi, math.pi
"""Angles on the circles of the near ties; the cosines that the target measures are 0, close to -1, and -1."""


def near_ties() -> SessionAttack:
    """A session with `gaussian`; the victim has an even number of records, or one more."""
    session = protected_session("gaussian", owners=("victim", "watcher"), points=ROUNDS, dimension=DIMENSION)
    return SessionAttack(
        stated=stated_by(session.privacy()[0]),
        session=session,
        data=_data,
        read=broadcasts(_direction(), ROUNDS, SEED_SET),
        curator=choosing_targets(_targets(public_map(session))),
    )


def _data(feature_map: FeatureMap) -> SessionData:
    victims, own = _tied(feature_map)
    fillers = points_at(feature_map, np.array([_at(LIKE_X, None)] * ROUNDS))
    more = points_at(feature_map, np.array([placed(DIMENSION, LIKE_Y, dict.fromkeys(range(TIES), _BEHIND))]))
    return SessionData.one_more(
        {"watcher": np.concatenate([own, fillers])},
        victims,
        more,
        validation=more,
        seed_set=seed_set(feature_map, SEED_SET),
    )


def _tied(feature_map: FeatureMap) -> tuple[npt.NDArray[np.float64], ...]:
    """The victim's and the watcher's points of the near ties: raw, each of shape (`TIES`, columns)."""
    return tuple(
        points_at(feature_map, np.array([_at(others, circle) for circle in range(TIES)]))
        for others in (LIKE_Y, LIKE_X)
    )


def _at(others: float, alike: int | None) -> npt.NDArray[np.float64]:
    """The angles of a point that is `_ALIKE` on one of the first circles, or on none."""
    return placed(
        DIMENSION, others, {circle: _ALIKE if circle == alike else _OPPOSITE for circle in range(TIES)}
    )


def _targets(feature_map: FeatureMap) -> list[npt.NDArray[np.float64]]:
    """The target of each round; in a near tie a share of `_direction` puts the watcher's point ahead.

    The weight is nearly the target minus the seed set's mean, whose effect on the tie is compensated.
    """
    victims, own = (features_to_float(feature_map.hash(points)) for points in _tied(feature_map))
    seeds = features_to_float(feature_map.hash(seed_set(feature_map, SEED_SET))).sum(axis=0)
    targets = []
    for circle in range(TIES):
        embedding = target(DIMENSION, 0.0, circle=circle, strength=STRENGTH)
        apart = victims[circle] - own[circle]
        # Without noise, and with the watcher's points in the summary, as S is with D.
        summed = seeds + own[:circle].sum(axis=0)
        ahead = (embedding - summed / (SEED_SET + circle + 1)) @ apart
        wanted = -0.5 * STRENGTH * FEATURE_UNIT
        targets.append(embedding + _direction() * (wanted - ahead) / (_direction() @ apart))
    filler = sum(target(DIMENSION, _OPPOSITE, circle=circle, strength=STRENGTH) for circle in range(TIES))
    return [*targets, *[np.asarray(filler)] * (ROUNDS - TIES)]


def _direction() -> npt.NDArray[np.float64]:
    return opposite(DIMENSION, first=TIES)
