"""The attacks of docs/privacy.md on a blind curator's record of sessions with real data.

``python -m tests.statistics.attacks_on_data mnist mnist.npz`` prints the rows of the page's table as JSON;
``insurance train.csv`` and ``digits`` are the others; names of attacks may follow. The files are those of
`hushbid.datasets`. It takes minutes, and no test runs it: we may not ship the data.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from hushbid.datasets.insurance import insurance
from hushbid.datasets.mnist import mnist
from hushbid.datasets.partition import PartitionOptions
from tests.statistics import blind_sessions
from tests.statistics.blind_sessions import GAMMA, Matrix, Source, blind
from tests.statistics.test_blind_attacks import (
    aligned,
    distances,
    early,
    known_points,
    regressed,
    squares,
)
from tests.statistics.test_blind_attacks import estimates as linked_estimates
from tests.statistics.test_unlinked_attacks import (
    best_of,
    by_chance,
    early_ones,
    estimates,
    linked_values,
    picked_out,
    repeated,
    seen_in,
    small,
    solved,
)
from tests.statistics.unlinked_sessions import DEPTH, unlinked

GAMMAS: Mapping[str, float] = {"digits": GAMMA, "mnist": 0.01, "insurance": GAMMA}
"""γ of the kernel of each."""
_ROWS = 1500
"""More than a session has."""
_SHARED = 30


def read(name: str, path: Path | None) -> Source:
    """Rows of a dataset, drawn from its first owner."""
    if name == "digits":
        return blind_sessions.source
    deal = {"mnist": mnist, "insurance": insurance}[name]
    dealt = deal(path, np.random.default_rng(2), PartitionOptions(owner_points=_ROWS))
    held = next(iter(dealt.owners.values()))
    rows = np.asarray(held.features, dtype=np.float64)
    rows = rows / 255.0 if held.features.dtype == np.uint8 else rows
    return Source(rows * np.sqrt(GAMMAS[name] / GAMMA), np.asarray(held.labels))


def clustered(estimate: Matrix, owner: Matrix, labels: Matrix) -> list[tuple[Matrix, Matrix]]:
    """For each owner its points, and the cluster of each, as many clusters as it has classes."""
    found = []
    for each in np.unique(owner):
        mine = np.flatnonzero(owner == each)
        apart = estimate[np.ix_(mine, mine)]
        centred = apart - apart.mean(axis=0) - apart.mean(axis=1)[:, None] + apart.mean()
        values, vectors = np.linalg.eigh(-centred / 2)
        at = vectors[:, -10:] * np.sqrt(np.maximum(values[-10:], 0.0))
        kinds = len(np.unique(labels[mine]))
        found.append((mine, KMeans(kinds, n_init=4, random_state=0).fit_predict(at)))
    return found


def agreement(clusters: list[tuple[Matrix, Matrix]], labels: Matrix) -> float:
    """How well clusters of an owner's points agree with their classes: the mean adjusted Rand index."""
    return float(np.mean([adjusted_rand_score(labels[mine], found) for mine, found in clusters]))


def labels_of(rows: Matrix) -> Matrix:
    source = blind_sessions.source
    known = {row.tobytes(): label for row, label in zip(source.rows, source.labels, strict=True)}
    return np.array([known[row.tobytes()] for row in rows])


def best_classes(found: Mapping[str, Matrix], owner: Matrix, labels: Matrix) -> tuple[float, float]:
    """The best of several estimates, and what 19 of 20 orders of the same classes do not exceed."""
    rng = np.random.default_rng(1)
    clusters = [clustered(each, owner, labels) for each in found.values()]
    orders = [labels[rng.permutation(len(labels))] for _ in range(20)]
    best = [max(agreement(each, order) for each in clusters) for order in (labels, *orders)]
    return best[0], float(np.quantile(best[1:], 0.95))


def equal_points() -> dict[str, int]:
    """Scores of a round that another box shares, where three owners share rows; and offsets seen."""
    sizes = (60, 60, 60)
    values = seen_in(DEPTH, sizes, _SHARED, drawn=False).values
    linked = linked_values(*small(None, sizes, _SHARED, drawn=False))
    return {
        "version 3": repeated(linked),
        "version 4": repeated({key: [each or 0 for each in row] for key, row in values.items()}),
    }


def offsets() -> dict[str, int]:
    """The share of an owner's rounds without rows in which its lowest score occurs twice."""
    sizes = (60, 9, 60)
    linked = linked_values(*small(None, sizes, 0, drawn=False))
    seen = seen_in(DEPTH, sizes, 0, drawn=False).values
    of = {"version 3": linked, "version 4": {key: [v or 0 for v in row] for key, row in seen.items()}}
    return {
        name: sum(
            values[1, number].count(min(each for each in values[1, number] if each)) > 1
            for number in range(8, 21)
        )
        for name, values in of.items()
    }


def apart() -> dict[str, Any]:
    """Distances between points: correlation, and how often the nearest neighbour is found."""
    session = unlinked()
    rows = early_ones(session)
    found, features = estimates(True, rows), session.features[rows]
    by_scores = {name: each for name, each in found.items() if name.split()[0] in ("by", "followed")}
    return {
        "version 3": distances("as built"),
        "version 4": best_of(found, features),
        "by scores alone": best_of(by_scores, features),
        "chance": by_chance(found, features),
    }


def lists() -> dict[str, Any]:
    """How often a row is picked out of a list of 40, with 10, 50 and 100 known points."""
    return {
        "version 3": [known_points(blind(), known) for known in (10, 50, 100)],
        "version 4": [picked_out(True, known) for known in (10, 50, 100)],
    }


def kinds() -> dict[str, Any]:
    """Classes within an owner: the adjusted Rand index, and by chance."""
    linked, session = blind(), unlinked()
    before, rows = early(linked), early_ones(session)
    labels = labels_of(linked.rows[before])
    true = squares(*[linked.features[before].astype(float)] * 2)
    return {
        "sealed": best_classes({"": true}, linked.owner[before], labels),
        "version 3": best_classes(linked_estimates(linked, before), linked.owner[before], labels),
        "version 4": best_classes(estimates(True, rows), session.owner[rows], labels_of(session.rows[rows])),
    }


def colluding() -> dict[str, Any]:
    """Relative errors of φ: of version 4 before anything is known, with purchases, and with guesses."""
    found: dict[str, Any] = {}
    for dimension, rounds in ((400, 50), (20, 25), (20, 50)):
        found[f"d = {dimension}, T = {rounds}"] = {
            "version 3": regressed(blind(dimension=dimension, rounds=rounds)),
            "version 4": solved(unlinked(dimension=dimension, rounds=rounds)),
        }
    return found


def clouds() -> dict[str, Any]:
    """The share of rows that are matched to their points."""
    linked, session = blind(), unlinked()
    before, rows = early(linked), early_ones(session)
    made, found = linked_estimates(linked, before), estimates(True, rows)
    return {
        "version 3": max(aligned(-each, linked.rows[before]) for each in made.values()),
        "version 4": max(aligned(-each, session.rows[rows]) for each in found.values()),
    }


ATTACKS: Mapping[str, Callable[[], dict[str, Any]]] = {
    "distances": apart,
    "lists": lists,
    "classes": kinds,
    "equal-points": equal_points,
    "offsets": offsets,
    "colluding": colluding,
    "alignment": clouds,
}


if __name__ == "__main__":
    blind_sessions.source = read(sys.argv[1], Path(sys.argv[2]) if len(sys.argv) > 2 else None)
    for attack in sys.argv[3:] or ATTACKS:
        print(json.dumps({attack: ATTACKS[attack]()}), flush=True)
