"""Cells of locality-sensitive hash functions as features; their sums are the counts of a RACE sketch."""

from __future__ import annotations

import hashlib
import math
from typing import ClassVar, Final

import numpy as np
import numpy.typing as npt

from hushbid.protocol.errors import ConfigError
from hushbid.protocol.space.features.base import (
    Bound,
    Codes,
    FeatureMap,
    FeatureSpace,
    RealArray,
    check_seed,
    refuse_row,
)
from hushbid.protocol.space.grid import FEATURE_BITS, FEATURE_UNIT, Features
from hushbid.protocol.space.lsh import L1Family, L2Family, StableFamily

__all__ = ["FAMILY", "LEAST_ROWS", "LshMap", "LshSpace", "row_unit"]

FAMILY: Final = L2Family.name
"""Default family of the hash functions."""
CELLS: Final = 4
"""Default number of cells in a row."""
LEAST_ROWS: Final = 2
"""A single row would have a coordinate of 2^15, which does not fit int16."""

_FAMILIES: Final[dict[str, type[StableFamily]]] = {L1Family.name: L1Family, L2Family.name: L2Family}
_LARGEST: Final = 2.0**20
"""Largest |coordinate| accepted as a scaled point's."""


def row_unit(rows: int) -> int:
    """Value of a point's nonzero coordinates in grid units: 2^15/√R, rounded.

    Args:
        rows: R, at least `LEAST_ROWS`.
    """
    return round(2.0**FEATURE_BITS / math.sqrt(rows))


class LshSpace(FeatureSpace):
    """φ(x) has R rows of W coordinates; in row r, that of cell h_r(x) is 1/√R, and the others are 0.

    φ(x)·φ(y) is the share of hash functions under which x and y collide. Over the choice of functions its
    mean is the family's kernel k (`hushbid.protocol.space.lsh`), or k + (1 - k)/W in rows that spread their
    codes over W cells. It is no RBF kernel: γ remains that of the session's MMD².

    1/√R is rounded to the grid (`row_unit`), so ‖φ‖ = √R·row_unit(R)·2^-15 for every point. `admits` accepts
    nothing else, so both bounds hold for forged features too: substituting one point changes at most 2R
    coordinates of Σφ, by one unit each.

    Attributes:
        rows: R = d/W.
        cells: W.
        bandwidth: Bandwidth of the hash functions, on points scaled to [0, 1].

    Args:
        dimension: d = R·W.
        family: ``l2`` or ``l1``.
        cells: W, at least 2.
        bandwidth: Positive; None: 1/√γ, the distance at which the RBF kernel equals 1/e.

    Raises:
        ConfigError: As `FeatureSpace`; an unknown family; cells that do not divide the dimension into
            `LEAST_ROWS` rows or more.
    """

    name: ClassVar[str] = "lsh"
    options: ClassVar[frozenset[str]] = frozenset({"family", "cells", "bandwidth"})

    def __init__(
        self,
        *,
        dimension: int,
        gamma: float,
        lower: Bound,
        upper: Bound,
        columns: int,
        family: str = FAMILY,
        cells: int = CELLS,
        bandwidth: float | None = None,
    ) -> None:
        if family not in _FAMILIES:
            raise ConfigError(
                f"The feature map {self.name!r} has no hash functions {family!r}.",
                advice=f"Choose one of: {', '.join(_FAMILIES)}.",
            )
        if cells < 2 or dimension % cells or dimension < cells * LEAST_ROWS:
            raise ConfigError(
                f"The feature map's dimension {dimension} is not {LEAST_ROWS} or more rows of {cells} cells.",
                advice="Set a dimension that is a multiple of features.cells, and at least twice it.",
            )
        self.family, self.cells, self.rows = family, cells, dimension // cells
        super().__init__(dimension=dimension, gamma=gamma, lower=lower, upper=upper, columns=columns)
        self.bandwidth = 1.0 / math.sqrt(gamma) if bandwidth is None else bandwidth

    def _bounds(self) -> tuple[float, float]:
        unit = row_unit(self.rows)
        # √R·unit is rounded only once, and it bounds an integer number of units, so no rounding is missed.
        return math.nextafter(
            math.sqrt(self.rows * unit * unit), math.inf
        ) * FEATURE_UNIT, unit * FEATURE_UNIT

    def admits(self, features: Features) -> npt.NDArray[np.bool_]:
        """Whether each row is zero but for one coordinate with the unit value; see `FeatureSpace.admits`."""
        self._check_features(features)
        rows = features.reshape(len(features), self.rows, self.cells)
        ones = (rows == row_unit(self.rows)).sum(axis=2)
        zeros = (rows == 0).sum(axis=2)
        admitted: npt.NDArray[np.bool_] = ((ones == 1) & (zeros == self.cells - 1)).all(axis=1)
        return admitted

    def random_features(self, count: int, generator: np.random.Generator) -> Features:
        return self.one_hot(generator.integers(0, self.cells, (count, self.rows)))

    def one_hot(self, cells: npt.NDArray[np.integer]) -> Features:
        """Φ of points in those cells: int16 of shape (n, d), in units of 2^-15.

        Args:
            cells: Shape (n, R), each from 0 to W - 1.
        """
        features = np.zeros((len(cells), self.dimension), dtype=np.int16)
        places = cells + self.cells * np.arange(self.rows)
        np.put_along_axis(features, places.astype(np.intp), np.int16(row_unit(self.rows)), axis=1)
        return features

    def map(self, seed: int | bytes) -> LshMap:
        return LshMap(self, seed)


class LshMap(FeatureMap):
    """R hash functions of a p-stable family on points scaled to [0, 1] (Datar et al. 2004; RACE §2.3).

    A scaled point is clipped to [0, 1], as rounding may leave a point at a bound slightly outside. The
    recipient of a point first checks that it lies within the bounds (`hushbid.protocol.session.points`). All
    cells are exact, and identical on every machine.

    Attributes:
        digest: SHA-256 of the map's name and the family's own digest, which tells what was drawn.

    Raises:
        ConfigError, LocalProtocolError: As `FeatureSpace.map`, or a bandwidth that the family refuses.
    """

    space: LshSpace

    def __init__(self, space: LshSpace, seed: int | bytes) -> None:
        super().__init__(space)
        check_seed(seed)
        self._family = _FAMILIES[space.family](
            rows=space.rows,
            width=space.cells,
            lower=np.zeros(space.columns),
            upper=np.ones(space.columns),
            seed=seed,
            bandwidth=space.bandwidth,
        )
        self.digest = hashlib.sha256(space.name.encode() + b"\0" + self._family.digest).digest()

    def _hash(self, points: RealArray, codes: Codes, start: int) -> Features:
        with np.errstate(invalid="ignore", over="ignore"):
            scaled = np.subtract(points, self.space.lower, dtype=np.float64) / self.space.range
            sound = (np.abs(scaled) <= _LARGEST).all(axis=1)
        if not sound.all():
            refuse_row(start + int(np.argmin(sound)))
        return self.space.one_hot(self._family.hash(np.clip(scaled, 0.0, 1.0)))
