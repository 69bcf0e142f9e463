"""Sessions on data of two classes: a seed set of one, a target of both, owners with parts of the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from hushbid.consumer.events import Delivered
from hushbid.curator.machine import CuratorMachine
from hushbid.protocol.data import Dataset
from hushbid.protocol.session.session import Session, open_session
from hushbid.simulation.simulator import Simulation
from tests.support.session_files import load

__all__ = ["HELD", "TwoClasses", "bought"]

WANTED = 1
"""The class that the seed set lacks: a label of both datasets."""
OWNERS = {"first": (1300, 0.1), "second": (900, 0.3), "third": (300, 0.6)}
"""Owner → its points, and the share of them that are of the wanted class."""
HELD = {owner: round(points * share) for owner, (points, share) in OWNERS.items()}
"""Owner → its wanted points."""
SIZE = 300
"""p and m."""


@dataclass(frozen=True)
class TwoClasses:
    """The outcome of a session."""

    session: Session
    curator: CuratorMachine
    delivered: tuple[Delivered, ...]
    owners: Mapping[str, Dataset]
    validation: Dataset
    seed_set: Dataset
    test: Dataset


def bought(
    path: Path, *, epsilon: float, seed: int, changes: Mapping[str, Any] = MappingProxyType({})
) -> TwoClasses:
    """Deal a dataset out, and run a session on it with that ε for each release.

    Args:
        path: A file of `features` and `labels`.
        epsilon: ε of either release.
        seed: Seed of the dealing and the noise.
        changes: Other values of the session file, by dotted paths.
    """
    with np.load(path) as arrays:
        features, first = np.unique(arrays["features"].astype(np.float64), axis=0, return_index=True)
        labels = (arrays["labels"][first] == WANTED).astype(np.int64)
    generator = np.random.default_rng(1000 + seed)
    pools = {label: list(generator.permutation(np.flatnonzero(labels == label))) for label in (0, 1)}

    def take(name: str, points: int, share: float) -> Dataset:
        wanted = round(points * share)
        chosen = [pools[1].pop() for _ in range(wanted)] + [pools[0].pop() for _ in range(points - wanted)]
        rows = generator.permutation(chosen)
        return Dataset(name, features[rows], labels[rows])

    owners = {name: take(name, *held) for name, held in OWNERS.items()}
    validation = take("validation", SIZE, 0.5)
    seed_set, test = take("seed-set", 150, 0.0), take("test", 500, 0.5)
    lower, upper = features.min(axis=0), features.max(axis=0)
    session = _session(owners, validation, lower, upper, epsilon, seed, changes)
    simulation = Simulation(session, owners=owners, validation=validation, seed_set=seed_set)
    outcome = simulation.run()
    assert outcome.delivered is not None
    return TwoClasses(
        session, outcome.curator, outcome.delivered.delivered, owners, validation, seed_set, test
    )


def _session(
    owners: Mapping[str, Dataset],
    validation: Dataset,
    lower: npt.NDArray[np.float64],
    upper: npt.NDArray[np.float64],
    epsilon: float,
    seed: int,
    others: Mapping[str, Any],
) -> Session:
    scaled = (validation.features - lower) / (upper - lower)
    distances = ((scaled[:, None] - scaled[None]) ** 2).sum(axis=2)
    release = {"mechanism": "filtered-gaussian", "epsilon": epsilon}
    changes = {
        "session.points": SIZE,
        "features.columns": len(lower),
        "features.dimension": 140,
        "features.gamma": 1.0 / float(np.median(distances[distances > 0.0])),
        "features.lower": lower.tolist(),
        "features.upper": upper.tolist(),
        "target": {**release, "neighbours": "substitute-one"},
        "summary": {**release, "neighbours": "add-remove-one"},
        "noise.seed": seed,
        "roster.owners": dict.fromkeys(owners, ""),
        **others,
    }
    return open_session(load(changes))
