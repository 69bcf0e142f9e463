"""Suites for whole sessions: an owner's view, where another owner has one record more or not.

The victim's records are all y, and x is the one more, with φ(x) = -φ(y). The target is x: with it, x is
chosen first, and the summaries of D and D' differ by x in the place of one y from then on, as much as the
lemma (DESIGN §1) lets them. The first release shows the seed set alone, every later one the difference.

The watcher has a point of its own, which it has chosen: a y too, so that the supply of them lasts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hushbid.audit.attack import SessionAttack, SessionData, View, public_map, stated_by
from hushbid.audit.broken import counting_actual_points
from hushbid.audit.points import points_at_angle, seed_set
from hushbid.audit.settings import SESSION_DELTA, SESSION_EPSILON, release_table, session_of
from protocol.features import FeatureMap
from protocol.grid import FEATURE_UNIT, features_to_float
from protocol.releases import Neighbours
from protocol.session import Session

__all__ = [
    "actual_count",
    "exhausted",
    "filtered_gaussian",
    "gaussian",
    "projections",
]

DIMENSION: Final = 8
ROUNDS: Final = 5
SEED_SET: Final = 200
"""Large enough that the noise of a release, divided by q, does not change which point is best."""
SMALL_SEED_SET: Final = 20
"""Small enough that the grid of Σφ, divided by q, can be seen on the grid of the weights."""

_NEIGHBOURS: Final = Neighbours.ADD_REMOVE_ONE
_VICTIM: Final = "victim"
_WATCHER: Final = "watcher"
_LIKE_X, _LIKE_Y = 0.0, math.pi


def gaussian() -> SessionAttack:
    """A session of `ROUNDS` rounds with `gaussian`; the watcher is exhausted after its first point."""
    return _substituting(_session(release_table("gaussian", _NEIGHBOURS, epsilon=SESSION_EPSILON)))


def filtered_gaussian() -> SessionAttack:
    """The same with `filtered-gaussian`."""
    return _substituting(_session(release_table("filtered-gaussian", _NEIGHBOURS, epsilon=SESSION_EPSILON)))


def exhausted() -> SessionAttack:
    """A session in which all owners run out of points, so that S' has one more than S."""
    session = _session(release_table("gaussian", _NEIGHBOURS, epsilon=SESSION_EPSILON))
    feature_map = public_map(session)
    one, more = points_at_angle(feature_map, _LIKE_Y), points_at_angle(feature_map, _LIKE_X)
    project = projections(_direction(), ROUNDS, SMALL_SEED_SET)
    counts = _betrayed_counts(features_to_float(feature_map.hash(more))[0], ROUNDS, SMALL_SEED_SET)
    return SessionAttack(
        stated=stated_by(session.privacy()[0]),
        session=session,
        data=lambda feature_map: SessionData(
            owners=(
                {_VICTIM: one, _WATCHER: one},
                {_VICTIM: np.concatenate([one, more]), _WATCHER: one},
            ),
            validation=more,
            seed_set=seed_set(feature_map, SMALL_SEED_SET),
        ),
        watcher=_WATCHER,
        read=lambda view: [*project(view), *counts(view)],
    )


def actual_count() -> SessionAttack:
    """The same with a curator whose q is the summary's actual count: the weights' grid tells it."""
    return replace(exhausted(), curator=counting_actual_points)


def projections(
    direction: npt.NDArray[np.float64], rounds: int, seed_size: int
) -> Callable[[View], list[float]]:
    """Reads off every broadcast how far the noisy Σφ goes into a direction, up to a constant.

    Args:
        direction: Shape (d,).
        rounds: p; a round whose broadcast did not come reads 0.
        seed_size: |D_init|.
    """
    return lambda view: [
        -float(view.weights[number] @ direction) * (seed_size + number) if number in view.weights else 0.0
        for number in range(1, rounds + 1)
    ]


def _betrayed_counts(
    target: npt.NDArray[np.float64], rounds: int, seed_size: int
) -> Callable[[View], list[float]]:
    """Reads off every broadcast the q that it was most likely made with.

    Σφ and its noise are whole numbers of grid units, so that g̃ - w is one of them divided by q + 1, for
    one q only, but for the rounding of w.
    """
    counts = seed_size + np.arange(rounds)

    def read(view: View) -> list[float]:
        betrayed = []
        for number in range(1, rounds + 1):
            if number not in view.weights:
                betrayed.append(0.0)
                continue
            sums = np.outer(counts + 1, target - view.weights[number]) / FEATURE_UNIT
            betrayed.append(float(counts[np.abs(sums - np.rint(sums)).sum(axis=1).argmin()]))
        return betrayed

    return read


def _session(summary: dict[str, Any]) -> Session:
    return session_of(
        owners=(_VICTIM, _WATCHER),
        points=ROUNDS,
        dimension=DIMENSION,
        delta=SESSION_DELTA,
        summary=summary,
    )


def _substituting(session: Session) -> SessionAttack:
    """The strongest neighbours: x takes the place of a y in every summary but the first."""

    def data(feature_map: FeatureMap) -> SessionData:
        worse, better = (
            points_at_angle(feature_map, *[_LIKE_Y] * (ROUNDS + 1)),
            points_at_angle(feature_map, _LIKE_X),
        )
        return SessionData(
            owners=(
                {_VICTIM: worse, _WATCHER: worse[:1]},
                {_VICTIM: np.concatenate([worse, better]), _WATCHER: worse[:1]},
            ),
            validation=better,
            seed_set=seed_set(feature_map, SEED_SET),
        )

    return SessionAttack(
        stated=stated_by(session.privacy()[0]),
        session=session,
        data=data,
        watcher=_WATCHER,
        read=projections(_direction(), ROUNDS, SEED_SET),
    )


def _direction() -> npt.NDArray[np.float64]:
    """From y to x: along all cosines."""
    return np.repeat([1.0, 0.0], DIMENSION // 2)
