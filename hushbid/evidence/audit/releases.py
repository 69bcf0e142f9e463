"""Suites for one broadcast: the consumer's release of D_v, with one record replaced.

The record is replaced by one with φ(x) = -φ(y), as far as possible: Σφ changes by 2·‖φ‖, a scaled coordinate
sum by 2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hushbid.evidence.audit.attack import Attack, Points, ReleaseAttack, Stated, public_map, stated_by
from hushbid.evidence.audit.points import points_at, points_near, seed_set
from hushbid.evidence.audit.settings import DELTA, release_table, session_of
from hushbid.evidence.audit.statistic import Observations
from hushbid.protocol.errors import LocalProtocolError
from hushbid.protocol.names import CONSUMER
from hushbid.protocol.privacy.noise import Draw, SimulatedNoise
from hushbid.protocol.privacy.releases import RELEASES, Neighbours, Prior
from hushbid.protocol.session.session import Session
from hushbid.protocol.space.features import FeatureMap
from hushbid.protocol.space.grid import features_to_float

__all__ = [
    "SketchAttack",
    "concentrated",
    "filtered_gaussian",
    "gaussian",
    "labels",
    "mwem_printed",
    "mwem_sound",
    "null",
    "one_direction",
    "race",
    "race_added",
    "race_printed",
    "race_sketch",
    "registered",
    "subspace",
]

DIMENSION: Final = 4
WIDE: Final = 8
"""Number of coordinates, if one of their directions is to have a small share of the seed set's variance."""
SPREAD: Final = 0.05
"""Spread of a concentrated seed set about one angle, in radians."""
SIGMA: Final = 2.0
"""2·‖φ‖/σ = 1, a Gaussian mechanism with μ = 1."""
STEPS: Final = 2
"""T of MWEM, each step with ε = 1: the leak of its printed noise shows in few steps (and not in 1656)."""
OTHERS: Final = 9
"""Records of D_v that do not change."""

PRINTED_EPSILON: Final = 2.0
ROWS: Final = 2
"""Rows of sketches: the printed noise leaks most with few rows."""
COLUMNS: Final = 3

_CLASSES: Final = 60
"""So many that two of them turn both angles by half a turn, nearly."""
_SIMILARITY: Final = 1e-3

_NEIGHBOURS: Final = Neighbours.SUBSTITUTE_ONE
_SEED_SET: Final = 200
_POINTS: Final = 5
"""Seed of the points hashed to cells."""


def registered(mechanism: str) -> ReleaseAttack:
    """Any private release of `RELEASES` that works with the default map, one broadcast at ε = 1."""
    keys: Any = RELEASES[mechanism].small_keys
    return _attack(_session(mechanism, epsilon=1.0, **keys))


def gaussian() -> ReleaseAttack:
    """`gaussian`, one broadcast."""
    return _attack(_session("gaussian", sigma=SIGMA))


def filtered_gaussian() -> ReleaseAttack:
    """`filtered-gaussian`, one broadcast."""
    return _attack(_session("filtered-gaussian", epsilon=1.0))


def labels() -> ReleaseAttack:
    """`filtered-gaussian` with labels in the choice, where a record of D_v gets another label.

    The two labels turn its angles as far apart as any two do, so that φ is nearly opposite. All other records
    have its features, and no label.
    """
    session = session_of(
        owners=["watcher"],
        points=1,
        dimension=DIMENSION,
        delta=DELTA,
        target=release_table("filtered-gaussian", _NEIGHBOURS, epsilon=1.0),
        labels={"classes": list(range(_CLASSES)), "similarity": _SIMILARITY},
    )
    feature_map = public_map(session)
    point = points_at(feature_map, np.zeros((1, DIMENSION // 2)))
    every = features_to_float(feature_map.hash(np.repeat(point, _CLASSES, axis=0), range(_CLASSES)))
    first, second = np.unravel_index((every @ every.T).argmin(), (_CLASSES, _CLASSES))
    others = [None] * OTHERS
    alike = np.repeat(point, OTHERS + 1, axis=0)
    return ReleaseAttack(
        stated=stated_by(session.privacy()[1]),
        session=session,
        validation=(alike, alike),
        seed_set=_seed_set_of(feature_map),
        labels=([*others, int(first)], [*others, int(second)]),
    )


def subspace() -> ReleaseAttack:
    """`subspace`, one broadcast in fewer directions than there are coordinates."""
    return _attack(_session("subspace", epsilon=1.0, directions=DIMENSION - 1))


def concentrated() -> ReleaseAttack:
    """`filtered-gaussian` with a concentrated seed set: its clip radius is small, and D_v is far from it."""
    session = _session("filtered-gaussian", epsilon=1.0)
    beside = points_near(public_map(session), math.pi / 2.0, spread=SPREAD, count=_SEED_SET)
    return _attack(session, seeds=beside)


def one_direction() -> ReleaseAttack:
    """`subspace` in the seed set's first direction alone, with both records far out along it."""
    session = _session("subspace", dimension=WIDE, epsilon=1.0, directions=1)
    feature_map = public_map(session)
    seeds = seed_set(feature_map, _SEED_SET)
    basis = session.target.statistic(Prior.of_features(feature_map.hash(seeds), 1)).basis
    if basis is None:
        raise LocalProtocolError("The seed set was to have a direction, and has none.")
    cosines, sines = np.split(basis[0].astype(np.float64), 2)
    return _attack(session, angles=np.arctan2(sines, cosines))


def race() -> ReleaseAttack:
    """`race`, one broadcast, with the noise that its ε needs."""
    return _race(epsilon=PRINTED_EPSILON)


def race_printed() -> SketchAttack:
    """Counts with the noise of RACE Theorem 3, Laplace(R/ε), as if replacing a record cost ε."""
    printed = _race(scale=ROWS / PRINTED_EPSILON)
    stated = Stated(PRINTED_EPSILON, 0.0, printed.stated.neighbours)
    return SketchAttack(stated, printed.session, printed.validation, printed.session.target.draws(0))


def race_sketch() -> SketchAttack:
    """The same counts with a record added or removed, which the theorem covers."""
    printed = race_printed()
    added = printed.records[0]
    stated = Stated(PRINTED_EPSILON, 0.0, Neighbours.ADD_REMOVE_ONE.value)
    return replace(printed, stated=stated, records=(added[:-1], added))


def race_added() -> SketchAttack:
    """Calibrated counts with the noisy number of records; a record is added or removed."""
    from hushbid.race.release import calibrate, stated_epsilon  # with it come scikit-learn's estimators

    added = race_sketch()
    noise = calibrate(
        rows=ROWS,
        cells=added.draws[0].size,
        neighbours=Neighbours.ADD_REMOVE_ONE,
        epsilon=PRINTED_EPSILON,
        delta=0.0,
    )
    if noise.sizes is None:
        raise LocalProtocolError("A sketch's size was calibrated as public where a record may be missing.")
    stated = Stated(stated_epsilon(noise.costs, noise.delta), noise.delta, noise.neighbours.value)
    return replace(added, stated=stated, draws=(noise.cells, noise.sizes))


@dataclass(frozen=True)
class SketchAttack(Attack):
    """A sketch that is published once: noisy counts, and the number of points if that is noisy.

    The attacker computes their likelihood ratio between the two datasets.

    Args:
        session: Supplies the hash functions.
        records: The points and their neighbour, raw.
        draws: Discrete Laplace noise of the counts, and of the number of points if that is published.
    """

    stated: Stated
    session: Session
    records: tuple[Points, Points]
    draws: tuple[Draw, ...]
    block: int = 500

    def run(self, neighbour: int, seeds: Sequence[int]) -> Observations:
        """Draw the noise of a sketch for each seed; the attacker sees all counts."""
        noise = SimulatedNoise(seeds[0], CONSUMER)
        feature_map = public_map(self.session)
        width = sum(draw.size for draw in self.draws)
        first, second = counts = [
            np.append((feature_map.hash(points) > 0).sum(axis=0), len(points))[:width]
            for points in self.records
        ]
        published = np.array(
            [counts[neighbour] + np.concatenate([noise.draw(draw) for draw in self.draws]) for _ in seeds]
        )
        # ln P(published | D') - ln P(published | D), with P(x) ∝ exp(-|x|/scale) per count.
        nearer = np.abs(published - first) - np.abs(published - second)
        likelier = nearer @ np.concatenate([np.full(draw.size, 1.0 / draw.scale) for draw in self.draws])
        return Observations(likelier[:, None, None].astype(np.float64), np.zeros(len(seeds), dtype=np.int64))


def _race(**keys: Any) -> ReleaseAttack:
    """D_v with `OTHERS` records and one of two more, which share a cell in no row."""
    cells = 4
    session = session_of(
        owners=["watcher"],
        points=1,
        dimension=ROWS * cells,
        delta=DELTA,
        features={"map": "lsh", "dimension": ROWS * cells, "cells": cells, "gamma": 4.0, "columns": COLUMNS},
        target=release_table("race", _NEIGHBOURS, **keys),
    )
    points = np.random.Generator(np.random.PCG64(_POINTS)).random((_SEED_SET + OTHERS + 200, COLUMNS))
    seeds, others, drawn = np.split(points, [_SEED_SET, _SEED_SET + OTHERS])
    hashed = public_map(session).hash(drawn)
    apart = (hashed[:1] != hashed).sum(axis=1)
    if apart.max() != 2 * ROWS:
        raise LocalProtocolError("No two of the points that were drawn share no cell.")
    first, second = drawn[:1], drawn[apart.argmax()][None]
    return ReleaseAttack(
        stated=stated_by(session.privacy()[1]),
        session=session,
        validation=(np.concatenate([others, first]), np.concatenate([others, second])),
        seed_set=seeds,
    )


def null() -> ReleaseAttack:
    """`gaussian` on one dataset twice: nothing can be distinguished, and ε = 0 is stated."""
    sound = gaussian()
    return replace(
        sound,
        stated=Stated(0.0, 0.0, sound.stated.neighbours),
        validation=(sound.validation[0], sound.validation[0]),
    )


def mwem_printed() -> ReleaseAttack:
    """MWEM with the printed noise, at the paper's ε per step, T times.

    This is the first bound of DPDS Theorem 7, and for few steps the smallest that the paper could claim.
    """
    printed = _mwem("published")
    return replace(printed, stated=Stated(STEPS * 1.0, 0.0, printed.stated.neighbours))


def mwem_sound() -> ReleaseAttack:
    """MWEM with sound noise."""
    return _mwem("sound")


def _mwem(calibration: str) -> ReleaseAttack:
    """Two records: one of scaled features (+1, -1), and one of (+1, +1) or (-1, -1).

    The sums are (2, 0) or (0, -2): the selection favours either coordinate, and the measured sum changes.
    """
    session = _session("mwem", calibration=calibration, step_epsilon=1.0, steps=STEPS, eta=0.05)
    kept, first, second = (
        points_at(public_map(session), np.array([angles]))
        for angles in ((0.0, math.pi), (0.0, 0.0), (math.pi, math.pi))
    )
    return ReleaseAttack(
        stated=stated_by(session.privacy()[1]),
        session=session,
        validation=(np.concatenate([kept, first]), np.concatenate([kept, second])),
        seed_set=_seed_set(session),
    )


def _session(mechanism: str, *, dimension: int = DIMENSION, **keys: Any) -> Session:
    return session_of(
        owners=["watcher"],
        points=1,
        dimension=dimension,
        delta=DELTA,
        target=release_table(mechanism, _NEIGHBOURS, **keys),
    )


def _attack(
    session: Session, *, seeds: Points | None = None, angles: npt.NDArray[np.float64] | None = None
) -> ReleaseAttack:
    """D_v with `OTHERS` records that nearly cancel, and one at these angles (None: all 0) or opposite."""
    feature_map = public_map(session)
    others = seed_set(feature_map, _SEED_SET + OTHERS)[_SEED_SET:]
    angles = np.zeros(feature_map.space.dimension // 2) if angles is None else angles
    first, second = (points_at(feature_map, np.array([angles + turn])) for turn in (0.0, math.pi))
    return ReleaseAttack(
        stated=stated_by(session.privacy()[1]),
        session=session,
        validation=(np.concatenate([others, first]), np.concatenate([others, second])),
        seed_set=_seed_set(session) if seeds is None else seeds,
    )


def _seed_set(session: Session) -> Points:
    return _seed_set_of(public_map(session))


def _seed_set_of(feature_map: FeatureMap) -> Points:
    return seed_set(feature_map, _SEED_SET)
