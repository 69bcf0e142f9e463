"""Public jitter: a small term that each point's score has besides wᵀφ (DESIGN §1, "Jitter").

Where noise hides the summary, the points with the highest scores are the few that the noise favours:
outliers, and near-copies of each other. Jitter spreads the choice over points that the noise cannot tell
apart. It protects nobody. It depends on φ and on public numbers, so scores still have one total order, and
the lemma holds unchanged.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from struct import Struct
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from hushbid.protocol.space.grid import Features, Scores, Weights, exact_scores
from hushbid.protocol.space.mapped import let_go

__all__ = [
    "JITTER_DEVIATION",
    "LARGEST_JITTER",
    "Jitter",
    "Jitters",
    "jitter_weight",
    "scores_of",
    "scores_with",
]

Jitters: TypeAlias = npt.NDArray[np.int64]
"""The jitter of each point, in units of 2^-15. Shape (n,)."""

_SUMMED: Final = 12
_MEAN: Final = _SUMMED * 255 // 2
_SCALE: Final = 16
JITTER_DEVIATION: Final = 2.0**-3
"""Standard deviation of a point's jitter, to 1 part in 10^5: a byte's variance is (256² - 1)/12."""
LARGEST_JITTER: Final = _SCALE * _MEAN
"""Largest magnitude of a point's jitter, in units of 2^-15."""
_READ_ROWS: Final = 2**14
"""Rows read at a time: a large memory-mapped table must not become resident as a whole."""
_NONE: Final = np.zeros(0, dtype=np.int64)
_MOST: Final = 2.0
"""Upper limit of jitter's deviation, in deviations of the noise."""


@dataclass(frozen=True)
class Jitter:
    """The jitter of points in a session: a sum of 12 bytes of SHA-256, nearly normal, and bounded.

    Attributes:
        session: The session's identifier, 16 bytes; points have another jitter in another session.
    """

    session: bytes

    def of(self, features: Features) -> Jitters:
        """The jitter of each point: int64 of shape (n,), in units of 2^-15, of magnitude 24,480 at most.

        Args:
            features: φ, int16 of shape (n, d).
        """
        jitters: Jitters = np.empty(len(features), dtype=np.int64)
        for start in range(0, len(features), _READ_ROWS):
            rows = slice(start, start + _READ_ROWS)
            jitters[rows] = self._of(features[rows])
            let_go(features)
        return jitters

    def _of(self, features: Features) -> Jitters:
        begun = hashlib.sha256(b"hushbid jitter 1\0" + self.session).copy
        rows = np.ascontiguousarray(features, dtype="<i2")
        digests = []
        # A row of bytes takes a fourth of the time that an array's row does.
        for (row,) in Struct(f"{rows.shape[1] * rows.itemsize}s").iter_unpack(rows.data):
            state = begun()
            state.update(row)
            digests.append(state.digest())
        parts = np.frombuffer(b"".join(digests), dtype=np.uint8).reshape(len(features), -1)[:, :_SUMMED]
        jitters: Jitters = _SCALE * (parts.sum(axis=1, dtype=np.int64) - _MEAN)
        return jitters


def jitter_weight(points: float, deviation: float) -> float:
    """The weight of jitter in a broadcast: it spreads scores by N·σ², at most by 2σ.

    Choosing points with probabilities proportional to exp(wᵀφ/(N·σ²)) gives the most likely mixture under a
    prior of N points like the owners', if w has noise of variance σ² (DESIGN §1, "Jitter").

    Args:
        points: N (`session.jitter`).
        deviation: σ of the remaining noise on a coordinate of w; not negative.
    """
    return min(points * deviation * deviation, _MOST * deviation) / JITTER_DEVIATION


def scores_of(features: Features, weights: Weights, jitter: Jitter | None) -> Scores:
    """Exact scores, int64 of shape (n,) in units of 2^-37: wᵀφ, plus jitter if the session has it.

    Args:
        features: int16 of shape (n, d), in units of 2^-15.
        weights: As broadcast, in units of 2^-22: shape (d,), or (d + 1,) with jitter, whose weight is last.
        jitter: The session's jitter; None if it has none.
    """
    if jitter is None:
        return exact_scores(features, weights)
    return scores_with(features, weights, jitter.of(features) if weights[-1] else _NONE)


def scores_with(features: Features, weights: Weights, jitters: Jitters | None) -> Scores:
    """`scores_of` points whose jitter is known: shape (n,), or (0,) where its weight is 0."""
    if jitters is None:
        return exact_scores(features, weights)
    scores: Scores = exact_scores(features, weights[:-1])
    if weights[-1]:
        scores += int(weights[-1]) * jitters
    return scores
