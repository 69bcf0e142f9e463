"""Entries, keys and data to test catalogues with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hushbid.catalogue.publishing import Publication, PublishedEntry, publish
from hushbid.catalogue.race import HashSection
from hushbid.protocol.config.session import FeatureSection
from hushbid.protocol.crypto.identity import Identity
from hushbid.protocol.data import DataColumns
from hushbid.protocol.privacy.noise import NoiseSource, SimulatedNoise
from hushbid.protocol.privacy.releases import Neighbours

__all__ = ["FEATURES", "HASHES", "ProtectingNoise", "key_of", "publication", "published"]

FEATURES = FeatureSection(gamma=2.0, seed=3, columns=2, dimension=64, lower=0.0, upper=[1.0, 2.0])
HASHES = HashSection(
    family="l2", rows=60, width=32, bandwidth=0.5, seed=3, columns=2, lower=0.0, upper=[1.0, 2.0]
)


class ProtectingNoise(SimulatedNoise):
    """Repeatable noise that claims to protect: an entry's reader cannot tell."""

    protects = True


def key_of(name: str) -> Identity:
    """An owner's key, the same for the same name."""
    return Identity(name.encode().ljust(32, b"."))


def points_about(centre: tuple[float, float], count: int, seed: int) -> npt.NDArray[np.float64]:
    """Points near one place, within the bounds of `FEATURES`."""
    drawn = np.random.default_rng(seed).normal(centre, 0.1, size=(count, 2))
    return np.clip(drawn, [0.0, 0.0], [1.0, 2.0])


def publication(place: Path, name: str = "north", **changes: Any) -> Publication:
    """The publication of a data file `NAME.npy`, which is made if it does not exist."""
    data = place / f"{name}.npy"
    if not data.exists():
        np.save(data, points_about((0.3, 0.5), 400, seed=1))
    what = Publication(
        data=data,
        columns=DataColumns(),
        name=name,
        functions=FEATURES,
        neighbours=Neighbours.ADD_REMOVE_ONE,
        epsilon=1.0,
        delta=1e-5,
        clip=False,
        points=0,
        directory=place,
        ledger=place / f"{name}.ledger",
        budget=None,
    )
    return replace(what, **changes)


def published(
    place: Path, name: str = "north", *, noise: NoiseSource | None = None, **changes: Any
) -> PublishedEntry:
    """An entry's file, with noise of a fixed seed."""
    source = ProtectingNoise(7, name) if noise is None else noise
    return publish(publication(place, name, **changes), key_of(name), source)
