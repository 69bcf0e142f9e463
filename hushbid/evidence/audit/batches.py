"""A suite with several purchases per round, where a curator could let one record change a whole batch.

The first circle decides who wins (`circles`). There x lies at the target, the rival's points close to it, and
the victim's others far away. On the other circles the victim's points are like x, and the rival's are the
opposite. Every round buys the rival's points; in D' the first one buys x instead of one of them.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from hushbid.evidence.audit.attack import SessionAttack, SessionData, stated_by
from hushbid.evidence.audit.broken import choosing_targets
from hushbid.evidence.audit.circles import LIKE_X, LIKE_Y, opposite, placed, target
from hushbid.evidence.audit.points import points_at, seed_set
from hushbid.evidence.audit.readings import broadcasts
from hushbid.evidence.audit.settings import SESSION_DELTA, SESSION_EPSILON, release_table, session_of
from protocol.privacy.releases import Neighbours
from protocol.space.features import FeatureMap

__all__ = ["batches"]

DIMENSION: Final = 16
ROUNDS: Final = 5
BATCH: Final = 3
SEED_SET: Final = 400
_AT: Final = 0.5
"""The target's angle on the first circle."""
_CLOSE: Final = 0.3
_FAR: Final = 1.5


def batches() -> SessionAttack:
    """A session with `filtered-gaussian`, the default release, that buys `BATCH` points per round."""
    session = session_of(
        owners=("rival", "victim", "watcher"),
        points=ROUNDS * BATCH,
        batch=BATCH,
        jitter=1.0,
        dimension=DIMENSION,
        delta=SESSION_DELTA,
        summary=release_table("filtered-gaussian", Neighbours.ADD_REMOVE_ONE, epsilon=SESSION_EPSILON),
    )
    return SessionAttack(
        stated=stated_by(session.privacy()[0]),
        session=session,
        data=_data,
        watcher="watcher",
        read=broadcasts(opposite(DIMENSION, first=1), ROUNDS, SEED_SET, batch=BATCH),
        curator=choosing_targets([target(DIMENSION, _AT)] * ROUNDS),
    )


def _data(feature_map: FeatureMap) -> SessionData:
    def point(angle: float, others: float, count: int = 1) -> npt.NDArray[np.float64]:
        return points_at(feature_map, np.array([placed(DIMENSION, others, {0: angle})] * count))

    most = ROUNDS * BATCH
    extra, others = point(_AT, LIKE_X), point(_AT + _FAR, LIKE_X, most)
    there = {"rival": point(_AT + _CLOSE, LIKE_Y, most), "watcher": point(_AT - _FAR, LIKE_Y)}
    return SessionData(
        owners=(
            {**there, "victim": others},
            {**there, "victim": np.concatenate([others, extra])},
        ),
        validation=there["watcher"],
        seed_set=seed_set(feature_map, SEED_SET),
    )
