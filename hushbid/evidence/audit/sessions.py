"""Suites for whole sessions: an owner's view, with one record of another owner added or not.

The victim's records are all y, and x is the extra one, with φ(x) = -φ(y). The target is x: if present, x is
chosen first, and from then on the summaries of D and D' differ by x instead of one y, as much as the lemma
(DESIGN §1) permits. The first release shows only the seed set, every later one the difference.

The watcher has a point that it chose itself: also a y, so that the supply of them lasts.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt

from hushbid.evidence.audit.attack import SessionAttack, SessionData, public_map, stated_by
from hushbid.evidence.audit.circles import LIKE_X, LIKE_Y, opposite
from hushbid.evidence.audit.points import points_at_angle, points_near, seed_set
from hushbid.evidence.audit.readings import broadcasts, with_betrayed_counts
from hushbid.evidence.audit.settings import protected_session
from hushbid.protocol.session.session import Session
from hushbid.protocol.space.features import FeatureMap
from hushbid.protocol.space.grid import features_to_float

__all__ = ["concentrated", "exhausted", "filtered_gaussian", "gaussian"]

DIMENSION: Final = 8
ROUNDS: Final = 5
SEED_SET: Final = 200
"""Large enough that the noise of a release, divided by q, does not change the best point."""
SMALL_SEED_SET: Final = 20
"""Small enough that the grid of Σφ, divided by q, is visible on the grid of the weights."""
SPREAD: Final = 0.05
"""Spread of a concentrated seed set about one angle, in radians."""


def gaussian() -> SessionAttack:
    """A session of `ROUNDS` rounds with `gaussian`; the watcher is exhausted after its first point."""
    return _substituting(_session("gaussian"))


def filtered_gaussian() -> SessionAttack:
    """The same with `filtered-gaussian`."""
    return _substituting(_session("filtered-gaussian"))


def concentrated() -> SessionAttack:
    """The same with a seed set a quarter turn from other points: several times its small clip radius."""
    session = _session("filtered-gaussian")
    near = points_near(public_map(session), LIKE_X + math.pi / 2.0, spread=SPREAD, count=SEED_SET)
    return _substituting(session, seeds=near)


def exhausted() -> SessionAttack:
    """A session in which all owners run out of points, so that S' has one more than S."""
    session = _session("gaussian")
    feature_map = public_map(session)
    one, more = points_at_angle(feature_map, LIKE_Y), points_at_angle(feature_map, LIKE_X)
    target = features_to_float(feature_map.hash(more))[0]
    sums = broadcasts(opposite(DIMENSION), ROUNDS, SMALL_SEED_SET)
    return SessionAttack(
        stated=stated_by(session.privacy()[0]),
        session=session,
        data=lambda feature_map: SessionData.one_more(
            {"watcher": one}, one, more, validation=more, seed_set=seed_set(feature_map, SMALL_SEED_SET)
        ),
        read=with_betrayed_counts(sums, target, ROUNDS, SMALL_SEED_SET),
    )


def _session(mechanism: str) -> Session:
    return protected_session(mechanism, owners=("victim", "watcher"), points=ROUNDS, dimension=DIMENSION)


def _substituting(session: Session, *, seeds: npt.NDArray[np.float64] | None = None) -> SessionAttack:
    """The strongest neighbours: x replaces a y in every summary but the first."""

    def data(feature_map: FeatureMap) -> SessionData:
        worse = points_at_angle(feature_map, *[LIKE_Y] * (ROUNDS + 1))
        better = points_at_angle(feature_map, LIKE_X)
        public = seed_set(feature_map, SEED_SET) if seeds is None else seeds
        return SessionData.one_more({"watcher": worse[:1]}, worse, better, validation=better, seed_set=public)

    return SessionAttack(
        stated=stated_by(session.privacy()[0]),
        session=session,
        data=data,
        read=broadcasts(opposite(DIMENSION), ROUNDS, SEED_SET),
    )
