"""A suite in which an owner hands over features that no point has, nearly four times too long.

The first circle decides who wins (`circles`). In the first round x wins with D'; with D the attacker's forged
point next to x wins, if the curator lets it into its pool. So S' is S with x instead of the forged point, and
Σφ changes by nearly five instead of two. A curator that checks φ never pools it: with D the victim's own
point wins. In later rounds fillers win.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hushbid.evidence.audit.attack import OwnerParty, SessionAttack, SessionData, stated_by
from hushbid.evidence.audit.broken import choosing_targets
from hushbid.evidence.audit.circles import LIKE_X, LIKE_Y, opposite, placed, target
from hushbid.evidence.audit.points import points_at, seed_set
from hushbid.evidence.audit.readings import broadcasts
from hushbid.evidence.audit.settings import SESSION_DELTA, SESSION_EPSILON, release_table, session_of
from owner.numerics import OwnerNumerics
from owner.party import owner_party
from protocol.errors import LocalProtocolError
from protocol.privacy.releases import Neighbours
from protocol.session.session import Session
from protocol.space.features import FeatureMap
from protocol.space.grid import FEATURE_BITS, Features
from protocol.space.scoring import Points

__all__ = ["forged"]

DIMENSION: Final = 16
ROUNDS: Final = 5
SEED_SET: Final = 400
FORGER: Final = "watcher"

_X, _BESIDE_X, _NEXT, _FILLER = 0.0, 0.12, 0.6, math.pi
"""Angles on the first circle."""


def forged() -> SessionAttack:
    """A session with `gaussian`, whose sensitivity rests on the length of φ."""
    session = session_of(
        owners=("other", "victim", FORGER),
        points=ROUNDS,
        dimension=DIMENSION,
        delta=SESSION_DELTA,
        summary=release_table("gaussian", Neighbours.ADD_REMOVE_ONE, epsilon=SESSION_EPSILON),
    )
    angles = [_X, *[_FILLER] * (ROUNDS - 1)]
    return SessionAttack(
        stated=stated_by(session.privacy()[0]),
        session=session,
        data=_data,
        watcher=FORGER,
        read=broadcasts(opposite(DIMENSION, first=1), ROUNDS, SEED_SET),
        curator=choosing_targets([target(DIMENSION, angle) for angle in angles]),
        owner=_owner,
    )


def _data(feature_map: FeatureMap) -> SessionData:
    x, other, own, filler = (
        points_at(feature_map, np.array([placed(DIMENSION, others, {0: angle})]))
        for angle, others in ((_X, LIKE_X), (_NEXT, LIKE_Y), (_BESIDE_X, LIKE_Y), (_FILLER, LIKE_Y))
    )
    fillers = np.repeat(filler, ROUNDS, axis=0)
    return SessionData(
        owners=(
            {"other": fillers, "victim": other, FORGER: own},
            {"other": fillers, "victim": np.concatenate([other, x]), FORGER: own},
        ),
        validation=x,
        seed_set=seed_set(feature_map, SEED_SET),
    )


def _owner(session: Session, name: str, *rest: Any, **options: Any) -> OwnerParty:
    machine, numerics = owner_party(session, name, *rest, **options)
    if name == FORGER:
        _forge(numerics)
    return machine, numerics


def _forge(numerics: OwnerNumerics) -> None:
    """Give an owner's only point the longest features on the grid, except on the first circle."""
    table = numerics._table
    if table is None:
        raise LocalProtocolError("An owner's features were to be forged before there are any.")
    longest: npt.NDArray[np.float64] = -np.sign(opposite(DIMENSION, first=1)) * (2**FEATURE_BITS - 1)
    forged: Features = np.where(longest, longest, table.features(0)).astype(np.int16)[None]
    numerics._table = Points(forged, norm_bound=math.sqrt(DIMENSION))
