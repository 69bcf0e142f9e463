"""The feature map φ, which the paper calls h1: the common part of all maps."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Final, NoReturn, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from hushbid.protocol import limits
from hushbid.protocol.errors import ConfigError, DataError, LocalProtocolError
from hushbid.protocol.space.grid import Features
from hushbid.protocol.space.labels import LabelCode, Labels

__all__ = [
    "CHUNK_VALUES",
    "SEED_BYTES",
    "Bound",
    "Codes",
    "FeatureMap",
    "FeatureSpace",
    "RealArray",
    "check_seed",
    "refuse_row",
]

RealArray: TypeAlias = npt.NDArray[np.floating[Any] | np.integer[Any] | np.bool_]
"""Raw points: any real dtype."""
Bound: TypeAlias = npt.NDArray[np.float64] | float
"""A public bound of the feature columns: one per column, shape (columns,), or one for all."""

Codes: TypeAlias = npt.NDArray[np.int64] | None
"""Labels as a map takes them (`LabelCode.codes`); None: labels have no part."""

SEED_BYTES: Final = 32
"""Length of a secret seed."""

CHUNK_VALUES: Final = 2**17
"""Raw values mapped at a time, so that they stay in the processor's cache."""


class FeatureSpace(ABC):
    """The public part of a feature map: the scaling of points, and the possible features.

    The curator of a session with a secret map (DESIGN §3, `sealed`) has the space and not the map.

    The bounds below hold for everything that `admits` accepts, forged or honest, since sensitivities are
    stated with them.

    Attributes:
        options: Names of further parameters of maps with this name.
        rows: Number of equally long rows of coordinates, if each of them has exactly one nonzero coordinate,
            with the same value everywhere (`lsh`); 0 for features of another kind.
        labels: What φ takes of a point's label; None: nothing. `with_labels` sets it.
        norm_bound: Largest ‖φ‖, rounding included.
        coordinate_bound: Largest |φ_i|, rounding included.

    Args:
        dimension: d, the coordinates of φ, within `limits.MIN_DIMENSION` and `limits.MAX_FEATURES`.
        gamma: γ of the RBF kernel of the session's MMD², for scaled points; positive.
        lower, upper: Public bounds of the columns, upper above lower.
        columns: Feature columns of a raw point, from 1 to `limits.MAX_COLUMNS`.

    Raises:
        ConfigError: A parameter is not finite or out of range; the error names it.
    """

    name: ClassVar[str]
    options: ClassVar[frozenset[str]] = frozenset()
    rows: int = 0
    labels: LabelCode | None = None

    def __init__(self, *, dimension: int, gamma: float, lower: Bound, upper: Bound, columns: int) -> None:
        _check(dimension, gamma, columns)
        self.dimension = dimension
        self.columns = columns
        self.gamma = gamma
        self.lower = _bound(lower, columns, "lower")
        with np.errstate(over="ignore"):
            self.range = _bound(upper, columns, "upper") - self.lower
        if not np.all(np.isfinite(self.range) & (self.range > 0)):
            column = int(np.argmin(np.isfinite(self.range) & (self.range > 0)))
            raise ConfigError(
                f"The bounds of feature column {column} enclose no interval: upper is not above lower.",
                advice="Correct `lower` or `upper` in the session file.",
            )
        self.norm_bound, self.coordinate_bound = self._bounds()

    @abstractmethod
    def _bounds(self) -> tuple[float, float]:
        """`norm_bound` and `coordinate_bound`; raises ConfigError if no map has the dimension."""

    @abstractmethod
    def random_features(self, count: int, generator: np.random.Generator) -> Features:
        """Features that `admits` accepts but that belong to no points: for measurements without data.

        Returns:
            int16 of shape (count, d), in units of 2^-15.
        """

    @abstractmethod
    def admits(self, features: Features) -> npt.NDArray[np.bool_]:
        """Whether each row can be some point's φ, shape (n,), judged by norms (DESIGN §3, "Verification").

        Args:
            features: Shape (n, d).

        Raises:
            LocalProtocolError: Another shape or dtype.
        """

    def with_labels(self, labels: LabelCode) -> Self:
        """The same space, of maps in which labels have a part.

        Raises:
            ConfigError: Maps of this kind have no place for labels.
        """
        raise ConfigError(
            f"[labels]: the feature map {self.name!r} has no place for labels in the choice.",
            advice='Choose the map "paired", or leave [labels] out.',
        )

    @abstractmethod
    def map(self, seed: int | bytes) -> FeatureMap:
        """The map with that seed.

        Args:
            seed: A non-negative number known to all parties of a session; or `SEED_BYTES` bytes, if the map
                is secret.

        Raises:
            ConfigError: A negative seed.
            LocalProtocolError: A seed of another number of bytes.
        """

    def scale(self, points: RealArray) -> npt.NDArray[np.float64]:
        """(x - lower)/(upper - lower), column by column; values outside of the bounds are not clipped.

        Args:
            points: Shape (n, columns).

        Returns:
            float64 of the same shape.

        Raises:
            DataError: Another shape or a dtype that is not real.
        """
        self.check_points(points)
        return np.asarray((points - self.lower) / self.range, dtype=np.float64)

    def check_points(self, points: RealArray) -> None:
        """Raise `DataError` unless points are real numbers of shape (n, columns)."""
        if points.ndim != 2 or points.shape[1] != self.columns or points.dtype.kind not in "fiub":
            raise DataError(
                f"The points are {points.dtype} of shape {points.shape}; "
                f"the session has real numbers of shape (n, {self.columns}).",
                advice="Check the feature columns that the data file is read with.",
            )

    def _check_features(self, features: Features) -> None:
        if features.ndim != 2 or features.shape[1] != self.dimension or features.dtype != np.int16:
            raise LocalProtocolError(
                f"The features are {features.dtype} {features.shape}, not int16 (n, {self.dimension})."
            )


class FeatureMap(ABC):
    """φ: it computes the features of a point.

    Attributes:
        space: The public part of the map.
        digest: SHA-256 of everything that determines the features, so that parties notice a difference.
    """

    digest: bytes

    def __init__(self, space: FeatureSpace) -> None:
        self.space = space

    def hash(self, points: RealArray, labels: Labels | None = None) -> Features:
        """φ of each point, on the grid. Works in chunks of rows: memory stays bounded.

        Args:
            points: Raw, unscaled, shape (n, columns).
            labels: One for each point, or None where a point has none. Only a map in which labels have a part
                looks at them, and it has to be given them.

        Returns:
            int16 of shape (n, d), in units of 2^-15.

        Raises:
            DataError: Another shape, a dtype that is not real, or a value that is not finite, before or after
                scaling; or a label that the space's `LabelCode` does not have.
            LocalProtocolError: Labels have a part, and there are none, or of another number of points.
        """
        self.space.check_points(points)
        codes = self._codes(labels, len(points))
        rows = max(1, CHUNK_VALUES // self.space.columns)
        if len(points) <= rows:
            return self._hash(points, codes, 0)
        hashed = np.empty((len(points), self.space.dimension), dtype=np.int16)
        for start in range(0, len(points), rows):
            end = start + rows
            part = None if codes is None else codes[start:end]
            hashed[start:end] = self._hash(points[start:end], part, start)
        return hashed

    def _codes(self, labels: Labels | None, count: int) -> Codes:
        if self.space.labels is None:
            return None
        if labels is None or len(labels) != count:
            raise LocalProtocolError("Points are to be hashed without their labels, which have a part in φ.")
        return self.space.labels.codes(labels)

    @abstractmethod
    def _hash(self, points: RealArray, codes: Codes, start: int) -> Features:
        """`hash` of one chunk, whose first row is number `start`."""


def refuse_row(row: int) -> NoReturn:
    """Raise `DataError` for a point that has no features, by its number from 0."""
    raise DataError(
        f"Row {row} of the points (counted from 0) has a feature that is not finite or is too large.",
        advice="Remove or repair the row.",
    )


def check_seed(seed: int | bytes) -> None:
    """Refuse a seed that no map has.

    Raises:
        ConfigError: A negative seed.
        LocalProtocolError: A byte seed whose length is not `SEED_BYTES`.
    """
    if isinstance(seed, int):
        if seed < 0:
            raise ConfigError("The feature map's seed is negative.", advice="Correct it in the session file.")
    elif len(seed) != SEED_BYTES:
        raise LocalProtocolError(f"A secret seed of {len(seed)} bytes was given; it has {SEED_BYTES}.")


def _check(dimension: int, gamma: float, columns: int) -> None:
    for holds, what in (
        (dimension >= limits.MIN_DIMENSION, f"dimension {dimension} is below {limits.MIN_DIMENSION}"),
        (dimension <= limits.MAX_FEATURES, f"dimension {dimension} is above {limits.MAX_FEATURES}"),
        (math.isfinite(gamma) and gamma > 0, f"gamma {gamma} is not a positive number"),
        (1 <= columns <= limits.MAX_COLUMNS, f"{columns} columns are not in 1..{limits.MAX_COLUMNS}"),
    ):
        if not holds:
            raise ConfigError(f"The feature map's {what}.", advice="Correct it in the session file.")


def _bound(bound: Bound, columns: int, name: str) -> npt.NDArray[np.float64]:
    values = np.asarray(bound, dtype=np.float64)
    if values.shape not in ((), (columns,)) or not np.isfinite(values).all():
        raise ConfigError(
            f"The feature map's `{name}` is not one finite number, nor one for each of {columns} columns.",
            advice="Correct it in the session file.",
        )
    return np.array(np.broadcast_to(values, (columns,)))
