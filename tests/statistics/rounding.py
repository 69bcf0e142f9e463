"""Attacks by points next to rounding boundaries, on maps whose φ depends on neighbouring points.

A victim has points a_1, a_2, …, each next to a boundary, where one more row in its table moves φ by a unit.
In round i the weight is w_i, whose coordinates are as large as possible, so that noise does not matter. The
rival has a point c_i far from a_i, with a score between the two that a_i can have: without the extra record x
a_i wins, and with it c_i does. So S and S' differ in one point per round, where the lemma allows one in all.
In the round after these x wins if it is there, and otherwise the rival's e.

Angles are relative to the middle of the first quadrant on every circle of the features; w_i is turned by half
a turn on a few circles, others for each i, so that in round i nothing scores as high as a_i and c_i.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from hushbid.evidence.audit.attack import SessionData
from hushbid.evidence.audit.settings import SESSION_DELTA, SESSION_EPSILON, release_table, session_of
from hushbid.protocol import limits
from hushbid.protocol.privacy.releases import Neighbours
from hushbid.protocol.session.session import Session
from hushbid.protocol.space.features import FourierMap
from hushbid.protocol.space.grid import Features
from tests.conformance.float_maps import BlasMap

__all__ = ["OBSERVED", "RIVAL", "SEED_SET", "Attack", "FourierLike", "crafted", "direction", "session"]

Points = npt.NDArray[np.float64]
Signs = npt.NDArray[np.int64]
FourierLike: TypeAlias = FourierMap | BlasMap

DIMENSION: Final = 140
CIRCLES: Final = DIMENSION // 2
COLUMNS: Final = 128
"""More than circles, so that points of any angles exist."""
GAMMA: Final = 10.0
TURNED: Final = 4
"""Circles on which w_i is turned."""
ASIDE: Final = math.pi / 3.0
"""How far a_i and c_i are from w_i, on either side: ‖φ(a_i) - φ(c_i)‖ is √3."""
E_ASIDE: Final = 80.0 / 180.0 * math.pi
TRIES: Final = 25
"""How often a boundary is looked for, where one more row matters, for each a_i."""
HALVINGS: Final = 50
SEED_SET: Final = 200
OBSERVED: Final = 2
"""Rounds after the last choice: their releases show S."""

VICTIM: Final = "victim"
RIVAL: Final = "rival"


@dataclass(frozen=True)
class Attack:
    """The points found for a map.

    Attributes:
        victim: a_1, a_2, …, shape (n, `COLUMNS`).
        extra: x, shape (1, `COLUMNS`).
        rival: c_1, …, and e last.
        signs: Those of each round's weight, shape (rounds, `DIMENSION`): those of a_i, and the last for x.
        moved: In how many rounds one more row makes a_i lose to c_i.
    """

    victim: Points
    extra: Points
    rival: Points
    signs: Signs
    moved: int

    @property
    def targets(self) -> list[Points]:
        """g̃ of each round: so large that weights are clipped, and 0 in the rounds that show S."""
        chosen = [2.0 * limits.MAX_WEIGHT * signs for signs in self.signs.astype(np.float64)]
        return chosen + [np.zeros(DIMENSION)] * OBSERVED

    @property
    def data(self) -> SessionData:
        """Both worlds, with and without x."""
        drawn = np.random.default_rng(3).uniform(size=(SEED_SET + 1, COLUMNS))
        return SessionData(
            owners=(
                {VICTIM: self.victim, RIVAL: self.rival},
                {VICTIM: np.concatenate([self.victim, self.extra]), RIVAL: self.rival},
            ),
            validation=drawn[:1],
            seed_set=drawn[1:],
        )


def session(rounds: int) -> Session:
    """The attacked session: `gaussian` releases of the summary, and a target of the attacker's."""
    return session_of(
        owners=(VICTIM, RIVAL),
        points=rounds,
        dimension=DIMENSION,
        delta=SESSION_DELTA,
        summary=release_table("gaussian", Neighbours.ADD_REMOVE_ONE, epsilon=SESSION_EPSILON),
        features={"dimension": DIMENSION, "gamma": GAMMA, "columns": COLUMNS},
    )


def direction() -> Points:
    """From c to a, except for the turned circles: shape (d,)."""
    return np.repeat([-1.0, 1.0], CIRCLES) / math.sqrt(DIMENSION)


def crafted(feature_map: FourierLike, rows: int, rounds: int) -> Attack:
    """Look for the points of an attack.

    Args:
        feature_map: The map that is attacked.
        rows: Of the victim's table without x.
        rounds: How many of them are to win, or not.
    """
    generator = np.random.default_rng(8)
    turned = np.ones((rows, CIRCLES))
    for row in range(rows):
        turned[row, TURNED * row : TURNED * (row + 1)] = -1.0
    places = np.where(turned > 0.0, 0.25 * math.pi, 1.25 * math.pi)
    signs = np.tile(turned, 2).astype(np.int64)
    extra = _points_at(feature_map, np.full((1, CIRCLES), 1.25 * math.pi))
    last = _points_at(feature_map, np.full((1, CIRCLES), 1.25 * math.pi - E_ASIDE))

    victim = _next_to_boundaries(feature_map, places + ASIDE, signs, extra, generator)
    without, beside = feature_map.hash(victim), _with(feature_map, extra)(victim)
    # Where nothing moves there is no score between the two: c_i then is as good as a_i, and after it.
    rivals = [
        _between(feature_map, places[row] - ASIDE, signs[row], without[row], beside[row], generator)
        for row in range(rounds)
    ]
    rival = np.concatenate([*rivals, last])
    found = feature_map.hash(rival)
    moved = sum(
        _beats(without[row], found[row], signs[row]) and not _beats(beside[row], found[row], signs[row])
        for row in range(rounds)
    )
    after = np.full((1, DIMENSION), -1, dtype=np.int64)
    return Attack(victim, extra, rival, np.concatenate([signs[:rounds], after]), moved)


def _points_at(feature_map: FourierLike, angles: Points) -> Points:
    """Points with these angles on all circles, near the middle of the bounds."""
    start = np.full(COLUMNS, 0.5)
    turn = angles - feature_map.phases - feature_map.frequencies @ start
    turn -= 2.0 * math.pi * np.rint(turn / (2.0 * math.pi))
    found = start + turn @ _inverse(feature_map)
    assert found.min() >= 0.0
    assert found.max() <= 1.0
    return np.asarray(found)


@cache
def _inverse(feature_map: FourierLike) -> Points:
    return np.asarray(np.linalg.pinv(feature_map.frequencies).T, dtype=np.float64)


def _with(feature_map: FourierLike, extra: Points) -> Callable[[Points], Features]:
    """Hash a table with one more row, and leave that out."""
    return lambda points: feature_map.hash(np.concatenate([points, extra]))[: len(points)]


def _next_to_boundaries(
    feature_map: FourierLike, angles: Points, signs: Signs, extra: Points, generator: np.random.Generator
) -> Points:
    """Points of about these angles whose score falls by a grid unit with one more row, if any do."""
    hashes = (feature_map.hash, _with(feature_map, extra))
    found = _points_at(feature_map, angles)
    missing = np.ones(len(found), dtype=np.bool_)
    for _ in range(TRIES):
        if not missing.any():
            break
        low = _points_at(feature_map, angles + generator.uniform(-1e-3, 1e-3, angles.shape))
        high = low.copy()
        high[np.arange(len(low)), generator.integers(0, COLUMNS, len(low))] += 1e-3
        for hash in hashes:
            for table in _bisected(hash, low, high):
                falls = (_scores(hashes[0](table), signs) - _scores(hashes[1](table), signs)) == 1
                found[missing & falls] = table[missing & falls]
                missing &= ~falls
    return found


def _bisected(hash: Callable[[Points], Features], low: Points, high: Points) -> tuple[Points, Points]:
    """The last points that are hashed like `low`, and their neighbours."""
    before = hash(low)
    for _ in range(HALVINGS):
        middle = low + (high - low) / 2.0
        same = (hash(middle) == before).all(axis=1)[:, None]
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return low, high


def _between(
    feature_map: FourierLike,
    angles: Points,
    signs: Signs,
    without: Features,
    beside: Features,
    generator: np.random.Generator,
) -> Points:
    """A point of about these angles that loses to a_i without x, and wins with it: shape (1, columns)."""
    for _ in range(TRIES):
        drawn = _points_at(feature_map, angles + generator.uniform(-1e-2, 1e-2, (100, CIRCLES)))
        for point, features in zip(drawn, feature_map.hash(drawn), strict=True):
            loses = _beats(without, features, signs)
            if loses and (np.array_equal(without, beside) or not _beats(beside, features, signs)):
                return np.array([point])
    raise AssertionError("no point was found with a score between two others")


def _scores(features: Features, signs: Signs) -> npt.NDArray[np.int64]:
    return np.asarray((features * signs).sum(axis=-1))


def _beats(one: Features, other: Features, signs: Signs) -> bool:
    """Whether a point precedes another in the total order, under a weight of these signs."""
    first, second = int(_scores(one, signs)), int(_scores(other, signs))
    return first > second or (first == second and one.tobytes() < other.tobytes())
