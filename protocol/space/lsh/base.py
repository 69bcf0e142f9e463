"""Locality-sensitive hash functions: the common part of all families (RACE §2.3, Definition 3)."""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar, Final, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from hushbid.protocol.errors import ConfigError, DataError
from hushbid.protocol.space.expansion import NORMAL_BITS, Expansion, Words, normals

__all__ = ["MAX_CELLS", "MAX_ROWS", "Cells", "HashFamily", "Points", "Sampling"]

Points: TypeAlias = npt.NDArray[np.float64]
"""float64 of shape (n, columns), within the public bounds."""
Cells: TypeAlias = npt.NDArray[np.int32]
"""Cell of each point in each row: int32 of shape (n, rows), from 0 to the row's `cells` - 1."""
Sampling: TypeAlias = Literal["independent", "sobol"]
"""How rows are drawn: independently, or each by the same law and spread out together."""

MAX_ROWS: Final = 2**20
"""Most rows of a sketch."""
MAX_CELLS: Final = 2**20
"""Most cells of a row."""
MAX_POWER: Final = 16
"""Most hash functions joined into one."""

_PRIME: Final = 2**31 - 1


class HashFamily(ABC):
    """R independent hash functions of a family, each mapping a point to one cell of its row.

    Over the choice of the function, two points collide with a probability that is a kernel of the two,
    `kernel`. A row has only the cells that points within the public bounds can reach.

    A p-th power (`power`) joins p functions of the family: all have to collide, so the kernel is the p-th
    power. If all combinations of a row's codes fit into `width` cells, each has its own cell. Otherwise a
    universal hash function spreads them over the cells, and two points that do not collide still share a cell
    with probability 1/`width`; `spread` is then true for the row, and `kernel` is still that of the
    functions.

    With `sampling` "sobol", directions come from a scrambled Sobol sequence. Each row alone has the same law,
    so estimates from it stay unbiased; but rows are spread out evenly, and their mean is nearer to the
    expectation. They are then not independent.

    Everything follows from the arguments, to the last bit on every machine: projections are exact
    (`hushbid.protocol.space.lsh.projection`), and the seed's `Expansion` supplies the draws: row r of the
    domain "directions" gives the directions of row r, and so on. For Sobol directions this holds for one
    version of SciPy; the digest shows a difference.

    Attributes:
        cells: Cells of each row: int64 of shape (rows,).
        spread: Whether each row spreads its codes over fewer cells: bool of shape (rows,).
        digest: SHA-256 of everything that determines the functions, and of their draws.

    Args:
        rows: R, from 1 to `MAX_ROWS`.
        width: Most cells of a row, from 2 to `MAX_CELLS`.
        lower, upper: Public bounds of the points' columns, float64 of shape (columns,), upper above lower.
        seed: Not negative, or secret bytes.
        power: p, from 1 to `MAX_POWER`.
        sampling: ``independent``, or ``sobol``, which has up to 21,201 coordinates for a row's directions.

    Raises:
        ConfigError: An argument is out of range; the error names it.
    """

    name: ClassVar[str]

    def __init__(
        self,
        *,
        rows: int,
        width: int,
        lower: npt.ArrayLike,
        upper: npt.ArrayLike,
        seed: int | bytes,
        power: int = 1,
        sampling: Sampling = "independent",
    ) -> None:
        self.lower, self.upper = (
            np.array(bound, dtype=np.float64, ndmin=1) for bound in np.broadcast_arrays(lower, upper)
        )
        self.columns = len(self.lower)
        self.rows, self.width, self.power, self.seed = rows, width, power, seed
        self.sampling = sampling
        for holds, what in (
            (1 <= rows <= MAX_ROWS, f"{rows} rows are not in 1..{MAX_ROWS}"),
            (2 <= width <= MAX_CELLS, f"{width} cells of a row are not in 2..{MAX_CELLS}"),
            (1 <= power <= MAX_POWER, f"the power {power} is not in 1..{MAX_POWER}"),
            (isinstance(seed, bytes) or seed >= 0, "the seed is negative"),
            (sampling in get_args(Sampling), f"there is no sampling {sampling!r}"),
            (
                self.lower.ndim == 1
                and bool(np.isfinite(self.lower).all() and np.isfinite(self.upper).all())
                and bool((self.lower < self.upper).all()),
                "a column's bounds enclose no interval",
            ),
        ):
            if not holds:
                raise ConfigError(f"Hash functions {self.name!r}: {what}.", advice="Correct it.")
        self._draw()

    @abstractmethod
    def _draw(self) -> None:
        """Draw the functions and settle their cells (`_join`)."""

    @property
    def _parameters(self) -> tuple[float, ...]:
        """The family's own parameters, which determine its functions together with the common ones."""
        return ()

    @property
    @abstractmethod
    def _drawn(self) -> tuple[npt.NDArray[np.float64], ...]:
        """What the family drew for its functions."""

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of the family's name, its arguments without the seed, and the numbers drawn from that."""
        state = hashlib.sha256(self.name.encode() + b"\0")
        state.update(np.array([self.rows, self.width, self.power, self.columns], dtype="<u8").tobytes())
        state.update(self.sampling.encode() + b"\0")
        for values in (self._parameters, self.lower, self.upper, *self._drawn, self._multipliers):
            state.update(np.asarray(values, dtype="<f8").tobytes() + b"\0")
        return state.digest()

    def _normals(self, columns: int) -> npt.NDArray[np.float64]:
        """Standard normal coordinates of the directions, shape (rows * power, columns)."""
        if self.sampling == "sobol":
            from scipy.special import ndtri  # noqa: PLC0415 - parties start a quarter faster without SciPy

            return np.asarray(ndtri(self._sobol(columns)))
        return self._drawn_rows("directions", columns, normals) * 2.0**-NORMAL_BITS

    def _drawn_rows(
        self, what: str, columns: int, law: Callable[[Words], npt.NDArray[Any]], words: int = 1
    ) -> npt.NDArray[np.float64]:
        """Numbers of a law, from so many words each: float64 of shape (rows * power, columns)."""
        return np.asarray(law(self._words(what, self.rows * self.power, words * columns)), dtype=np.float64)

    def _words(self, what: str, count: int, length: int) -> Words:
        return Expansion(f"hushbid hash functions 2 {self.name} {what}".encode(), self.seed).rows(
            count, length
        )

    def _sobol(self, columns: int) -> npt.NDArray[np.float64]:
        """Uniform coordinates in (0, 1), shape (rows * power, columns): each row has a point of its own."""
        # A party that makes no such functions need not wait for all of SciPy's statistics.
        from scipy.stats import qmc  # noqa: PLC0415

        coordinates = self.power * columns
        if coordinates > qmc.Sobol.MAXDIM:
            raise ConfigError(
                f"Hash functions {self.name!r}: a row of {coordinates} coordinates was to be a Sobol point.",
                advice=f"Choose independent sampling: the sequence has up to {qmc.Sobol.MAXDIM} coordinates.",
            )
        scrambling = np.random.PCG64(self._words("scrambling", 1, 4)[0])
        sequence = qmc.Sobol(coordinates, rng=np.random.Generator(scrambling))
        points = sequence.random_base2(math.ceil(math.log2(self.rows)))[: self.rows]
        # They are multiples of 2^-30, 0 among them: to the middle of each step.
        return np.asarray(points + 2.0**-31).reshape(self.rows * self.power, columns)

    def _join(self, bases: npt.NDArray[np.int64]) -> None:
        """Settle how a row's `power` codes become one cell.

        Args:
            bases: How many codes each function has, shape (rows, power): codes run from 0 to bases - 1.
        """
        # In float64 first: the product may not fit.
        combinations = np.prod(bases.astype(np.float64), axis=1)
        self.spread = combinations > self.width
        self.cells = np.where(self.spread, self.width, np.minimum(combinations, self.width)).astype(np.int64)
        self._bases = bases
        # Row 0 of the multipliers is the constant; (Σ a_i·code_i + a_0 mod prime) mod width is universal.
        words = self._words("multipliers", self.rows, self.power + 1)
        self._multipliers = 1 + (words % np.uint64(_PRIME - 1)).astype(np.int64)

    def _cell(self, codes: npt.NDArray[np.int64]) -> Cells:
        """The cell of each row, from its functions' codes: shape (n, rows, power)."""
        joined = codes[..., 0].copy()
        for index in range(1, self.power):
            joined *= self._bases[:, index]
            joined += codes[..., index]
        if self.spread.any():
            rows = np.flatnonzero(self.spread)
            hashed = np.broadcast_to(self._multipliers[rows, 0], (len(codes), len(rows))).copy()
            for index in range(self.power):
                # Codes are below 2^31, and so are the multipliers: a product stays within 2^62.
                hashed += codes[:, rows, index] % _PRIME * self._multipliers[rows, index + 1] % _PRIME
            joined[:, rows] = hashed % _PRIME % self.width
        return joined.astype(np.int32)

    def check_points(self, points: Points) -> None:
        """Raise `DataError` unless points are float64 of shape (n, columns) within the public bounds."""
        if points.ndim != 2 or points.shape[1] != self.columns or points.dtype != np.float64:
            raise DataError(
                f"The points are {points.dtype} of shape {points.shape}; "
                f"hash functions {self.name!r} take float64 of shape (n, {self.columns}).",
                advice="Check the feature columns that the data are read with.",
            )
        inside = bool((points >= self.lower).all() and (points <= self.upper).all())
        if not inside:
            outside = ~((points >= self.lower) & (points <= self.upper)).all(axis=1)
            raise DataError(
                f"{np.count_nonzero(outside)} of {len(points)} points lie outside of the public bounds, "
                "or are not finite.",
                advice="Clip them, or correct the bounds: they are public and must not follow from the data.",
            )

    @abstractmethod
    def hash(self, points: Points) -> Cells:
        """The cell of each data point in each row.

        Raises:
            DataError: Points of another shape or type, or outside of the public bounds.
        """

    def hash_queries(self, queries: Points) -> Cells:
        """The cell that a query reads in each row: that of a data point, unless the family is asymmetric.

        Raises:
            DataError: As `hash`.
        """
        return self.hash(queries)

    @abstractmethod
    def kernel(self, points: Points, queries: Points) -> npt.NDArray[np.float64]:
        """The probability that a point and a query collide, in closed form.

        Returns:
            float64 of shape (len(points), len(queries)).
        """


def interval(
    directions: npt.NDArray[np.float64],
    lower: npt.NDArray[np.float64],
    upper: npt.NDArray[np.float64],
    *,
    step: float,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Least and largest inner product of each direction with a point of the box, and room for rounding.

    Args:
        directions: Shape (m, columns), as they are used.
        lower: Lower bounds of the box, shape (columns,).
        upper: Likewise.
        step: What coordinates of points are rounded to multiples of (`ExactProjection.step`).

    Returns:
        Two arrays of shape (m,).
    """
    # Correctly rounded sums: those of another order may differ, and codes are counted from the least.
    low = np.array([math.fsum(row) for row in np.minimum(directions * lower, directions * upper)])
    high = np.array([math.fsum(row) for row in np.maximum(directions * lower, directions * upper)])
    # A point is rounded by half a step before it is projected; what is left is for the sums above.
    reach = max(float(np.abs(lower).max()), float(np.abs(upper).max()))
    room = np.array([math.fsum(row) for row in np.abs(directions)]) * max(
        max(reach, 1.0) * 2.0**-18, step
    ) + math.ulp(1.0)
    return low - room, high + room
