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

from hushbid.evidence.audit.attack import SessionAttack, SessionData
from hushbid.evidence.audit.circles import LIKE_X, LIKE_Y, SEED_SET, attack_on_circles, points_on_first
from hushbid.evidence.audit.points import seed_set
from hushbid.protocol.space.features import FeatureMap

__all__ = ["ask_all", "blind", "registered", "sealed"]

ABSENCES: Final = 3
ROUNDS: Final = 3 * ABSENCES + 1

STEP: Final = 0.36
"""Radians between x, v1, v2, … on the first circle; the last is less than half a turn from the filler."""
NEXT_TO: Final = 0.12
"""Radians between a point and the watcher's neighbouring point."""
FILLER: Final = 0.0


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
    targets = [_angle(0), *[FILLER] * (ROUNDS - 1)]
    for absence in range(ABSENCES):
        targets[3 * absence + 1] = _angle(2 * absence + 1)
    return attack_on_circles(
        mechanism,
        owners=("one-point", "victim", "watcher"),
        data=_data,
        angles=targets,
        rule=rule,
        away=lambda number: ("victim",) if number % 3 == 2 else (),
    )


def _data(feature_map: FeatureMap) -> SessionData:
    places = [(_angle(0), LIKE_X), *((_angle(place), LIKE_Y) for place in range(1, 2 * ABSENCES + 2))]
    beside = [(_angle(2 * absence + 1) + NEXT_TO, LIKE_X) for absence in range(ABSENCES)]
    own = [(_angle(0) + NEXT_TO, LIKE_Y), *beside, *[(FILLER, LIKE_Y)] * ROUNDS]
    victims = points_on_first(feature_map, places)
    last = points_on_first(feature_map, [(-math.pi / 2.0, LIKE_Y)])
    return SessionData.one_more(
        {"one-point": last, "watcher": points_on_first(feature_map, own)},
        victims[1:],
        victims[:1],
        validation=last,
        seed_set=seed_set(feature_map, SEED_SET),
    )


def _angle(place: int) -> float:
    """Angle on the first circle of x (place 0), v1, v2, …, by distance from the filler."""
    return 0.5 + STEP * place
