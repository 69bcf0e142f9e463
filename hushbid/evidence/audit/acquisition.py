"""Suites for acquisition: a victim that comes and goes, and an attacker that chooses which points win.

The first circle decides who wins (`circles`). On the others, x and every c are opposite to b and every v.

=====  =======  =====================================================================================
round  target   what happens
=====  =======  =====================================================================================
1      x        The victim offers x in D' and v1 in D. In D' x wins, in D the watcher's b, next to x.
2      v1       The victim loses its connection. Its pool, with v1 in D, has to be withheld: in both
                the watcher's c1, next to v1, wins. If the pool is kept, v1 wins in D, and c1 in D'.
3, 4   filler   The victim comes back; once present, it has offered v2 and v3 in D, v1 and v2 in D'.
                In both a filler of the watcher's wins.
5      v3       As round 2, and so on: each absence makes a difference of one point more.
=====  =======  =====================================================================================

So S' is S with x instead of b; if the pool is kept, with x and all c instead of b and all v.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt

from hushbid.evidence.audit.attack import SessionAttack, SessionData, stated_by
from hushbid.evidence.audit.broken import with_targets
from hushbid.evidence.audit.circles import LIKE_X, LIKE_Y, opposite, placed, target
from hushbid.evidence.audit.points import points_at, seed_set
from hushbid.evidence.audit.readings import broadcasts
from hushbid.evidence.audit.settings import SESSION_DELTA, SESSION_EPSILON, release_table, session_of
from protocol.privacy.releases import Neighbours
from protocol.space.features import FeatureMap

__all__ = ["ask_all", "blind", "registered", "sealed"]

DIMENSION: Final = 16
ABSENCES: Final = 3
ROUNDS: Final = 3 * ABSENCES + 1
SEED_SET: Final = 400

STEP: Final = 0.36
"""Radians between x, v1, v2, … on the first circle; the last is less than half a turn from the filler."""
NEXT_TO: Final = 0.12
"""Radians between a point and the watcher's neighbouring point."""
FILLER: Final = 0.0

_NEIGHBOURS: Final = Neighbours.ADD_REMOVE_ONE
_OWNERS: Final = ("one-point", "victim", "watcher")


def registered(rule: str) -> SessionAttack:
    """Any private rule of `RULES`, with `gaussian` releases."""
    return _attack(rule, "gaussian")


def ask_all() -> SessionAttack:
    """`ask-all` with `gaussian` releases, an owner that comes and goes, and one with a single point."""
    return _attack("ask-all", "gaussian")


def sealed() -> SessionAttack:
    """The same with `sealed` and `filtered-gaussian`, the defaults."""
    return _attack("sealed", "filtered-gaussian")


def blind() -> SessionAttack:
    """The same with `blind`: the consumer computes weights, and the curator orders masked scores."""
    return _attack("blind", "filtered-gaussian")


def _attack(rule: str, mechanism: str) -> SessionAttack:
    session = session_of(
        owners=_OWNERS,
        points=ROUNDS,
        dimension=DIMENSION,
        delta=SESSION_DELTA,
        summary=release_table(mechanism, _NEIGHBOURS, epsilon=SESSION_EPSILON),
        rule=rule,
    )
    return SessionAttack(
        stated=stated_by(session.privacy()[0]),
        session=session,
        data=_data,
        watcher="watcher",
        read=broadcasts(opposite(DIMENSION, first=1), ROUNDS, SEED_SET),
        away=lambda number: ("victim",) if number % 3 == 2 else (),
        **with_targets(session, _targets()),
    )


def _data(feature_map: FeatureMap) -> SessionData:
    first, *victims = points_at(feature_map, np.array([_at(_angle(0), LIKE_X), *_victims()]))
    own = points_at(feature_map, np.array(_watchers()))
    last = points_at(feature_map, np.array([_at(-math.pi / 2.0, LIKE_Y)]))
    return SessionData(
        owners=(
            {"one-point": last, "victim": np.array(victims), "watcher": own},
            {"one-point": last, "victim": np.array([*victims, first]), "watcher": own},
        ),
        validation=last,
        seed_set=seed_set(feature_map, SEED_SET),
    )


def _angle(place: int) -> float:
    """Angle of x (place 0), v1, v2, … on the first circle, in order of distance from the filler."""
    return 0.5 + STEP * place


def _at(angle: float, others: float) -> npt.NDArray[np.float64]:
    """A point's angles."""
    return placed(DIMENSION, others, {0: angle})


def _victims() -> list[npt.NDArray[np.float64]]:
    return [_at(_angle(place), LIKE_Y) for place in range(1, 2 * ABSENCES + 2)]


def _watchers() -> list[npt.NDArray[np.float64]]:
    beside = [_at(_angle(2 * absence + 1) + NEXT_TO, LIKE_X) for absence in range(ABSENCES)]
    fillers = [_at(FILLER, LIKE_Y)] * ROUNDS
    return [_at(_angle(0) + NEXT_TO, LIKE_Y), *beside, *fillers]


def _targets() -> list[npt.NDArray[np.float64]]:
    """The target of each round."""
    angles = [FILLER] * ROUNDS
    for absence in range(ABSENCES):
        angles[3 * absence + 1] = _angle(2 * absence + 1)
    angles[0] = _angle(0)
    return [target(DIMENSION, angle) for angle in angles]
