"""Suites in which the lemma's extra point changes after every round.

The first circle decides who wins (`circles`). The victim has y1, y2, …, and in D' also x, at consecutive
places on that circle. The target of round ℓ is the place of y(ℓ-1), and x's in the first. With D' that point
wins; with D it was taken before, and y(ℓ) wins. So S' is S with x instead of y(ℓ).

On the other circles the y of odd rounds are opposite to x, and those of even rounds are like it. The
difference between D and D' comes and goes: noise that is the same in two rounds can be subtracted, and the
difference remains. If it never changed, as in `sessions`, it would cancel with the noise.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from hushbid.evidence.audit.attack import SessionAttack, SessionData
from hushbid.evidence.audit.circles import LIKE_X, LIKE_Y, SEED_SET, attack_on_circles, points_on_first
from hushbid.evidence.audit.points import seed_set
from hushbid.protocol.names import CURATOR
from hushbid.protocol.space.features import FeatureMap
from hushbid.simulation.simulator import Crash

__all__ = ["ROUNDS", "angle_of", "restarted", "switching"]

ROUNDS: Final = 7
STEP: Final = 0.36
"""Radians between one place on the first circle and the next."""
CRASH: Final = 11
"""The curator's step in the fourth round, with three rounds before and three after it: the rounds before and
after it whose noise a broken curator confuses differ in what they show.
"""


def switching(rule: str = "ask-all") -> SessionAttack:
    """A session with `filtered-gaussian`, the default release."""
    return attack_on_circles(
        "filtered-gaussian",
        owners=("victim", "watcher"),
        data=_data,
        angles=[angle_of(place) for place in range(ROUNDS)],
        rule=rule,
    )


def restarted() -> SessionAttack:
    """The same with a curator whose process dies once, and resumes from its transcript."""
    return replace(switching(), crashes=(Crash(CURATOR, step=CRASH, left=0),))


def angle_of(place: int) -> float:
    """The angle of a place on the first circle."""
    return 0.5 + STEP * place


def _data(feature_map: FeatureMap) -> SessionData:
    places = [(angle_of(place), LIKE_Y if place % 2 else LIKE_X) for place in range(ROUNDS + 1)]
    victims = points_on_first(feature_map, places)
    last = points_on_first(feature_map, [(-1.0, LIKE_Y)])
    return SessionData.one_more(
        {"watcher": last},
        victims[1:],
        victims[:1],
        validation=last,
        seed_set=seed_set(feature_map, SEED_SET),
    )
