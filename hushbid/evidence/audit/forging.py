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

from hushbid.evidence.audit.attack import OwnerParty, SessionAttack, SessionData
from hushbid.evidence.audit.circles import (
    DIMENSION,
    LIKE_X,
    LIKE_Y,
    SEED_SET,
    attack_on_circles,
    opposite,
    points_on_first,
)
from hushbid.evidence.audit.points import seed_set
from hushbid.owner.numerics import OwnerNumerics
from hushbid.owner.party import owner_party
from hushbid.protocol.errors import LocalProtocolError
from hushbid.protocol.session.session import Session
from hushbid.protocol.space.features import FeatureMap
from hushbid.protocol.space.grid import FEATURE_BITS, Features
from hushbid.protocol.space.scoring import Points

__all__ = ["forged"]

ROUNDS: Final = 5
FORGER: Final = "watcher"

_X, _BESIDE_X, _NEXT, _FILLER = 0.0, 0.12, 0.6, math.pi
"""Angles on the first circle."""


def forged() -> SessionAttack:
    """A session with `gaussian`, whose sensitivity rests on the length of φ."""
    return attack_on_circles(
        "gaussian",
        owners=("other", "victim", FORGER),
        data=_data,
        angles=[_X, *[_FILLER] * (ROUNDS - 1)],
        owner=_owner,
    )


def _data(feature_map: FeatureMap) -> SessionData:
    x, other, own, filler = (
        points_on_first(feature_map, [place])
        for place in ((_X, LIKE_X), (_NEXT, LIKE_Y), (_BESIDE_X, LIKE_Y), (_FILLER, LIKE_Y))
    )
    return SessionData.one_more(
        {"other": np.repeat(filler, ROUNDS, axis=0), FORGER: own},
        other,
        x,
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
