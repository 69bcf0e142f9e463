"""Suites in which the lemma's extra point changes after every round.

The first circle decides who wins (`circles`). The victim has y1, y2, …, and in D' also x, at consecutive
places on that circle. The target of round ℓ is the place of y(ℓ-1), and x's in the first. With D' that point
wins; with D it was taken before, and the next one, y(ℓ), wins. So S' is S with x instead of y(ℓ).

On the other circles the y of odd rounds are opposite to x, and those of even rounds are like it. The
difference between D and D' comes and goes: noise that is the same in two rounds can be subtracted, and the
difference remains. If it never changed, as in `sessions`, it would cancel with the noise.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from hushbid.evidence.audit.attack import SessionAttack, SessionData, stated_by
from hushbid.evidence.audit.broken import with_targets
from hushbid.evidence.audit.circles import LIKE_X, LIKE_Y, opposite, placed, target
from hushbid.evidence.audit.points import points_at, seed_set
from hushbid.evidence.audit.readings import broadcasts
from hushbid.evidence.audit.settings import SESSION_DELTA, SESSION_EPSILON, release_table, session_of
from hushbid.simulation.simulator import Crash
from protocol.names import CURATOR
from protocol.privacy.releases import Neighbours
from protocol.space.features import FeatureMap

__all__ = ["restarted", "switching"]

DIMENSION: Final = 16
ROUNDS: Final = 7
SEED_SET: Final = 400
STEP: Final = 0.36
"""Radians between one place on the first circle and the next."""
CRASH: Final = 11
"""The curator's step in the fourth round, with three rounds before and three after it: the rounds before and
after it whose noise a broken curator confuses differ in what they show.
"""


def switching(rule: str = "ask-all") -> SessionAttack:
    """A session with `filtered-gaussian`, the default release.

    Args:
        rule: The acquisition rule.
    """
    session = session_of(
        owners=("victim", "watcher"),
        points=ROUNDS,
        dimension=DIMENSION,
        delta=SESSION_DELTA,
        summary=release_table("filtered-gaussian", Neighbours.ADD_REMOVE_ONE, epsilon=SESSION_EPSILON),
        rule=rule,
    )
    targets = [target(DIMENSION, _angle(place)) for place in range(ROUNDS)]
    return SessionAttack(
        stated=stated_by(session.privacy()[0]),
        session=session,
        data=_data,
        watcher="watcher",
        read=broadcasts(opposite(DIMENSION, first=1), ROUNDS, SEED_SET),
        **with_targets(session, targets),
    )


def restarted() -> SessionAttack:
    """The same with a curator whose process dies once, and resumes from its transcript."""
    return replace(switching(), crashes=(Crash(CURATOR, step=CRASH, left=0),))


def _angle(place: int) -> float:
    return 0.5 + STEP * place


def _data(feature_map: FeatureMap) -> SessionData:
    angles = [
        placed(DIMENSION, LIKE_Y if place % 2 else LIKE_X, {0: _angle(place)}) for place in range(ROUNDS + 1)
    ]
    first, *others = points_at(feature_map, np.array(angles))
    last = points_at(feature_map, np.array([placed(DIMENSION, LIKE_Y, {0: -1.0})]))
    return SessionData(
        owners=(
            {"victim": np.array(others), "watcher": last},
            {"victim": np.array([*others, first]), "watcher": last},
        ),
        validation=last,
        seed_set=seed_set(feature_map, SEED_SET),
    )
