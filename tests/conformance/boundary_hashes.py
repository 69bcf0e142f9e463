"""Maps and families of hash functions by kind and name, points at their boundaries, and digests of both.

This is separate from the tests so that processes that stand for another machine need neither pytest nor
scikit-learn, which take a second to import.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hushbid.protocol.space.features import FEATURE_SPACES, FeatureMap, FeatureSpace, feature_map
from hushbid.protocol.space.lsh import FAMILIES, HashFamily, StableFamily
from tests.boundaries import Hash, at_boundaries
from tests.conformance.float_maps import BlasSpace

Points = npt.NDArray[np.float64]

PAIRS = 40
COLUMNS = 45
LOWER, UPPER = np.linspace(-3.0, 0.0, COLUMNS), np.linspace(0.5, 250.0, COLUMNS)


def map_of(name: str, gamma: float = 0.3) -> FeatureMap:
    return feature_map(name, seed=5, dimension=140, gamma=gamma, lower=LOWER, upper=UPPER, columns=COLUMNS)


def control(kind: type[BlasSpace]) -> FeatureMap:
    space: FeatureSpace = kind(dimension=140, gamma=0.3, lower=LOWER, upper=UPPER, columns=COLUMNS)
    return space.map(5)


def family_of(name: str) -> HashFamily:
    parameters: dict[str, Any] = {"bandwidth": 0.4} if issubclass(FAMILIES[name], StableFamily) else {}
    return FAMILIES[name](
        rows=60, width=64, lower=np.full(COLUMNS, -0.1), upper=0.1, seed=5, power=2, **parameters
    )


def spread(count: int, seed: int) -> Points:
    """Points within the bounds of the maps."""
    return np.asarray(LOWER + (UPPER - LOWER) * np.random.default_rng(seed).random((count, COLUMNS)))


def near_the_middle(count: int, seed: int) -> Points:
    """Points within the bounds of the families, and within the unit ball."""
    return np.random.default_rng(seed).uniform(-0.1, 0.1, (count, COLUMNS))


def hashed(kind: str, name: str) -> tuple[Hash, Points]:
    """A map or family, and points at its boundaries."""
    if kind == "map":
        hash: Hash = map_of(name).hash
        return hash, at_boundaries(hash, spread(PAIRS, 1), spread(PAIRS, 2))
    family = family_of(name)
    return family.hash, at_boundaries(family.hash, near_the_middle(PAIRS, 1), near_the_middle(PAIRS, 2))


KINDS = [("map", name) for name in sorted(FEATURE_SPACES)] + [("family", name) for name in sorted(FAMILIES)]


def digests(place: str) -> list[str]:
    """SHA-256 of the hashes of saved points by each map, family and control."""
    hashes: dict[str, Callable[..., npt.NDArray[Any]]] = {
        f"{kind}-{name}": (map_of(name) if kind == "map" else family_of(name)).hash for kind, name in KINDS
    }
    hashes["control"] = control(BlasSpace).hash
    found = []
    for name, hash in hashes.items():
        points = np.load(Path(place) / f"{name}.npy")
        # Many rows, so that a BLAS with two threads uses them.
        digest = hashlib.sha256(hash(np.tile(points, (20, 1))).tobytes() + hash(points[:17]).tobytes())
        found.append(f"{name} {digest.hexdigest()}")
    return found


if __name__ == "__main__":
    print(*digests(sys.argv[1]), sep="\n")
