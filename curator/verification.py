"""Whether a point that was handed over is one, and agrees with its features and its bid (DESIGN §3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from protocol.errors import Offence, RemoteProtocolError
from protocol.features import FeatureMap
from protocol.grid import Features, Weights, exact_scores
from protocol.messages import Candidate
from protocol.verification import mapped, matching

__all__ = ["Unverified", "check_shape", "faults_of"]


@dataclass(frozen=True, slots=True)
class Unverified:
    """A point that was handed over and not yet compared with its bid."""

    owner: str
    round: int
    score: int
    """The bid, in units of 2^-37."""
    weights: Weights
    """What it was bid under."""
    candidate: Candidate


def check_shape(candidate: Candidate, feature_map: FeatureMap) -> None:
    """Raise `RemoteProtocolError` (`MALFORMED`) unless a point is of the session's columns and dimension."""
    columns, dimension = feature_map.columns, feature_map.dimension
    if candidate.point.shape != (columns,) or candidate.features.shape != (dimension,):
        raise RemoteProtocolError(
            Offence.MALFORMED,
            f"A point needs {columns} columns and {dimension} features.",
            advice="Check that the data file is the one for this session.",
        )


def faults_of(
    entries: Sequence[Unverified], recomputed: Features, feature_map: FeatureMap
) -> tuple[Features, list[str]]:
    """What is wrong with each point.

    One forged φ would void the sensitivity, so none enters the pool unless it is one of the map's, the
    point's own within one grid unit, and scores exactly what was bid. A point outside of the public bounds
    would spoil whatever the consumer makes of its purchases, though it may have a φ.

    Args:
        entries: At least one.
        recomputed: φ of the points as `hash_points` computed it here, shape (n, d).
        feature_map: The session's.

    Returns:
        The claimed features, int16 of shape (n, d), and per point what is wrong, or nothing.
    """
    claimed = np.stack([entry.candidate.features for entry in entries])
    inside = mapped(recomputed)
    matches = matching(recomputed, claimed)
    admitted = feature_map.admits(claimed)
    together = all(entry.weights is entries[0].weights for entry in entries)
    scores = exact_scores(claimed, entries[0].weights) if together else None
    faults = []
    for row, entry in enumerate(entries):
        score = exact_scores(claimed[row : row + 1], entry.weights)[0] if scores is None else scores[row]
        if not inside[row]:
            faults.append("the point is outside the public bounds")
        elif not admitted[row]:
            faults.append("the features are no output of the feature map")
        elif not matches[row]:
            faults.append("the features are not those of the point")
        elif int(score) != entry.score:
            faults.append("the bid is not the score of the features")
        else:
            faults.append("")
    return claimed, faults
