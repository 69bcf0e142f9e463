"""The session files under attack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from hushbid.evidence.audit.points import MAP_SEED, feature_table
from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.privacy.acquisition import RULES
from hushbid.protocol.privacy.releases import Neighbours
from hushbid.protocol.session.session import Session, open_session

__all__ = [
    "DELTA",
    "EXACT",
    "SESSION_DELTA",
    "SESSION_EPSILON",
    "protected_session",
    "release_table",
    "session_of",
]

DELTA: Final = 0.01
"""δ of sessions attacked by one broadcast. A guarantee is a whole curve of (ε, δ), and at a larger δ fewer
runs show that it fails: an event that happens once in 10⁵ runs does not show in thousands.
"""

SESSION_DELTA: Final = 0.5
"""δ of sessions that are run as a whole, and fewer times."""

SESSION_EPSILON: Final = 1.0
"""ε of all their releases: with this δ, a Gaussian mechanism with μ = 1.95. It tells D from D' in at least
half of all runs, where a bound from hundreds of runs is tightest: noise at 0.7 times its proper size shows in
nearly every audit of 500 counted runs; at ε = 0.7 and δ = 0.2, only in 98 of 100.
"""

EXACT: Final[dict[str, Any]] = {"mechanism": "exact"}
"""For a release that is not attacked, or that shows public data only."""


def release_table(mechanism: str, neighbours: Neighbours, **keys: Any) -> dict[str, Any]:
    """A mechanism's table of a session file."""
    return {"mechanism": mechanism, "neighbours": neighbours.value, **keys}


def protected_session(mechanism: str, **keys: Any) -> Session:
    """A session that is run as a whole, whose owners a mechanism protects; keys are those of `session_of`."""
    summary = release_table(mechanism, Neighbours.ADD_REMOVE_ONE, epsilon=SESSION_EPSILON)
    return session_of(delta=SESSION_DELTA, summary=summary, **keys)


def session_of(
    *,
    owners: Sequence[str],
    points: int,
    dimension: int,
    target: dict[str, Any] | None = None,
    summary: dict[str, Any] | None = None,
    rule: str = "ask-all",
    delta: float,
    features: dict[str, Any] | None = None,
    batch: int = 1,
    submission: int | None = None,
    seed_weight: float = 1.0,
    jitter: float = 0.0,
    labels: dict[str, Any] | None = None,
    **parameters: Any,
) -> Session:
    """A session in one process, with simulated noise.

    Args:
        dimension: d of the map, which is public unless the rule keeps it secret.
        target, summary: The section of that name; None: no noise.
        submission: Points that an owner submits under `tender`, in messages of `batch`.
        delta: The δ at which privacy is stated.
        features: ``[features]`` without a seed; None: a paired map's.
        labels: ``[labels]``; None: labels have no part.
    """
    features = dict(features or feature_table(dimension))
    if not RULES[rule].sealed:
        features["seed"] = MAP_SEED
    return open_session(
        SessionFile.model_validate(
            {
                "session": {
                    "name": "audit",
                    "points": points,
                    "batch": batch,
                    "submission": submission,
                    "seed_weight": seed_weight,
                    "jitter": jitter,
                    "distinct": False,
                    "delta": delta,
                    "allow_nonprivate": True,
                },
                "features": features,
                "target": target or EXACT,
                "summary": summary or EXACT,
                "acquisition": {"rule": rule, **parameters},
                "labels": labels,
                "noise": {"source": "simulated", "seed": 0},
                "network": {"address": "tcp://127.0.0.1:1", "insecure": True},
                "roster": {"owners": dict.fromkeys(owners, "")},
            }
        )
    )
