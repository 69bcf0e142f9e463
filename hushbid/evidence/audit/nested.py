"""Suites for two releases of D_v, one of which follows from the other (`epsilon_curator`).

One record of D_v is replaced by its opposite, as in `releases`. Owners see the coarser release. The curator
sees both, and the coarser one must tell it nothing beyond the finer one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hushbid.consumer.target import TargetRelease, release_target
from hushbid.evidence.audit.attack import ReleaseAttack, Stated, stated_by
from hushbid.evidence.audit.points import MAP_SEED, points_at_angle, seed_set
from hushbid.evidence.audit.settings import (
    DELTA,
    SESSION_DELTA,
    SESSION_EPSILON,
    release_table,
    session_of,
)
from hushbid.evidence.audit.statistic import Observations
from hushbid.protocol.data import Dataset
from hushbid.protocol.errors import LocalProtocolError
from hushbid.protocol.names import CONSUMER
from hushbid.protocol.privacy.noise import SimulatedNoise
from hushbid.protocol.privacy.releases import Neighbours, Prior
from hushbid.protocol.session.points import hash_seed_set
from hushbid.protocol.session.session import Session

__all__ = ["NestedAttack", "against", "curator", "nested"]

DIMENSION: Final = 4
SEED_SET: Final = 200
OTHERS: Final = 9
"""Records of D_v that do not change."""
EPSILON: Final = 1.0
EPSILON_CURATOR: Final = 10.0
"""So much larger that the second noise is nearly all of the owners' noise."""
SLIGHTLY_LESS: Final = 0.9
"""ε of owners close to the curator's: two releases with independent noise would reveal far more."""

Floats = npt.NDArray[np.float64]


def against(session: Session, whom: str) -> Stated:
    """A session's stated guarantee for the consumer's records against somebody."""
    (statement,) = (
        each
        for each in session.privacy()
        if each.against == whom and each.neighbours == Neighbours.SUBSTITUTE_ONE
    )
    return stated_by(statement)


@dataclass(frozen=True)
class NestedAttack(ReleaseAttack):
    """Both releases of the consumer, and the part that the attacker sees.

    Args:
        sees: The numbers that it sees.
        release: Makes both, as `release_target` does.
    """

    sees: Callable[[TargetRelease], Floats] = lambda released: released.embedding
    release: Callable[..., TargetRelease] = release_target

    def run(self, neighbour: int, seeds: Sequence[int]) -> Observations:
        """Release the target once for each seed, under a map that the attacker knows."""
        session, noise = self.session, SimulatedNoise(seeds[0], CONSUMER)
        feature_map = session.space.map(MAP_SEED)
        prior = Prior.of_features(hash_seed_set(feature_map, self.seed_set), session.directions)
        validation = Dataset.from_arrays("validation", self.validation[neighbour])
        seen = [
            self.sees(
                self.release(
                    session.target.stream(prior=prior),
                    feature_map,
                    validation,
                    noise,
                    noise_name=noise.name,
                    nested=session.nested,
                )
            )
            for _ in seeds
        ]
        return Observations(np.array(seen)[:, None, :], np.zeros(len(seeds), dtype=np.int64))


def nested() -> NestedAttack:
    """The owners' view of two releases, where the curator's is far finer."""
    session = _session(epsilon=EPSILON, epsilon_curator=EPSILON_CURATOR, delta=DELTA)
    return _attack(session, "the owners", lambda released: released.embedding)


def curator() -> NestedAttack:
    """The curator's view, which has both releases; the owners' is nearly as fine."""
    session = _session(
        epsilon=SLIGHTLY_LESS * SESSION_EPSILON, epsilon_curator=SESSION_EPSILON, delta=SESSION_DELTA
    )
    return _attack(session, "the curator", _both)


def _both(released: TargetRelease) -> Floats:
    if released.finer is None:
        raise LocalProtocolError("The session was to have a finer release, and has none.")
    return np.concatenate([released.embedding, released.finer])


def _session(*, delta: float, **keys: Any) -> Session:
    return session_of(
        owners=("watcher",),
        points=1,
        dimension=DIMENSION,
        delta=delta,
        target=release_table("filtered-gaussian", Neighbours.SUBSTITUTE_ONE, **keys),
        summary=release_table("filtered-gaussian", Neighbours.ADD_REMOVE_ONE, epsilon=EPSILON),
        rule="tender",
    )


def _attack(session: Session, whom: str, sees: Callable[[TargetRelease], Floats]) -> NestedAttack:
    feature_map = session.space.map(MAP_SEED)
    drawn = seed_set(feature_map, SEED_SET + OTHERS)
    first, second = np.split(points_at_angle(feature_map, 0.0, np.pi), 2)
    return NestedAttack(
        stated=against(session, whom),
        session=session,
        validation=(np.concatenate([drawn[SEED_SET:], first]), np.concatenate([drawn[SEED_SET:], second])),
        seed_set=drawn[:SEED_SET],
        sees=sees,
    )
