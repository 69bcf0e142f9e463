"""A suite with several purchases per round, where a curator could let one record change a whole batch.

The first circle decides who wins (`circles`). There x lies at the target, the rival's points close to it, and
the victim's others far away. On the other circles the victim's points are like x, the rival's the opposite.
Every round buys the rival's points; in D' the first buys x instead of one of them.
"""

from __future__ import annotations

from typing import Final

from hushbid.evidence.audit.attack import SessionAttack, SessionData
from hushbid.evidence.audit.circles import LIKE_X, LIKE_Y, SEED_SET, attack_on_circles, points_on_first
from hushbid.evidence.audit.points import seed_set
from hushbid.protocol.space.features import FeatureMap

__all__ = ["batches"]

ROUNDS: Final = 5
BATCH: Final = 3
_AT: Final = 0.5
"""The target's angle on the first circle."""
_CLOSE: Final = 0.3
_FAR: Final = 1.5


def batches() -> SessionAttack:
    """A session with `filtered-gaussian`, the default release, that buys `BATCH` points per round."""
    return attack_on_circles(
        "filtered-gaussian",
        owners=("rival", "victim", "watcher"),
        data=_data,
        angles=[_AT] * ROUNDS,
        batch=BATCH,
        jitter=1.0,
    )


def _data(feature_map: FeatureMap) -> SessionData:
    extra, others, rivals, own = (
        points_on_first(feature_map, [place] * count)
        for place, count in (
            ((_AT, LIKE_X), 1),
            ((_AT + _FAR, LIKE_X), ROUNDS * BATCH),
            ((_AT + _CLOSE, LIKE_Y), ROUNDS * BATCH),
            ((_AT - _FAR, LIKE_Y), 1),
        )
    )
    return SessionData.one_more(
        {"rival": rivals, "watcher": own},
        others,
        extra,
        validation=own,
        seed_set=seed_set(feature_map, SEED_SET),
    )
