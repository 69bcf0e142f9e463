"""Algorithm 1: a dataset's embedding in the span of public points, as a vector of whole numbers.

*Claim.* For any two points x, x' the vectors of whole numbers that they add to what `Subspace.totals` returns
are at most `Subspace.distance` apart, and `Subspace.record_norm` long.

*Proof.* Let z_1, …, z_r be the pivots, κ(x) = (k(z_1, x), …, k(z_r, x)), K the pivots' Gram matrix, and B the
matrix `Subspace.basis`, whose entries are whole multiples of 2^-BASIS_BITS. The linear map
h ↦ B·(h(z_1), …, h(z_r)) takes k(x, ·) to Bκ(x). Its squared norm is the largest eigenvalue of BKBᵀ: at most
1 + τ with τ ≥ ‖BKBᵀ - I‖. As k ≥ 0 and k(x, x) = 1, ‖k(x, ·) - k(x', ·)‖² = 2 - 2k(x, x') ≤ 2. Hence
‖Bκ(x) - Bκ(x')‖ ≤ √2·√(1 + τ), where KME's Lemma 9 has 2 in place of √2; and ‖Bκ(x)‖ ≤ √(1 + τ).

A record does not add κ(x) but its values rounded to multiples of 2^-KERNEL_BITS, each with an error of
e = 2^-KERNEL_BITS/2 + (columns + 5)·2^-53 at most, the kernel's own error included. `kernels.kernel` computes
a value from its two points alone, to the last bit, so that the other records' values stay the same. That
moves Bκ(x) by ‖B‖·√r·e. Sums of these whole numbers, and their products with B's whole numbers, are exact in
any order. At the end each coordinate is rounded to a multiple of 2^-COORDINATE_BITS, by half a unit at most:
two rounded vectors are apart by up to √r units more than before. In those units

    distance = 2^COORDINATE_BITS·(√2·√(1 + τ) + 2‖B‖√r·e) + √r,

and `record_norm` the same with 1 in place of √2 and of 2. ∎

τ is measured on public values alone: n Gaussian probes v bound ‖E‖, E = BKBᵀ - I, by 10·√(2/π)·max‖Ev‖,
except with probability 10^-n over the probes (Halko, Martinsson, Tropp 2011, Lemma 4.1). The code bounds ‖B‖
by its Frobenius norm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.linalg import lapack

from hushbid.kme.kernels import CHUNK_VALUES, kernel
from hushbid.protocol.errors import ConfigError, DataError
from hushbid.protocol.runtime.threads import in_threads

__all__ = ["COORDINATE_UNIT", "Subspace", "span"]

Points: TypeAlias = npt.NDArray[np.float64]
Vector: TypeAlias = npt.NDArray[np.float64]
Totals: TypeAlias = npt.NDArray[np.int64]

KERNEL_BITS: Final = 36
BASIS_BITS: Final = 30
COORDINATE_BITS: Final = 20
COORDINATE_UNIT: Final = 2.0**-COORDINATE_BITS
"""The value of a unit of a coordinate's whole numbers."""
MAX_RECORDS: Final = 2**26
"""Maximum number of records: their sum of kernel values fits into 64 bits."""
RESIDUAL: Final = 1e-6
"""Squared distance to the span at which a public point adds no direction: noise would drown it."""
ORTHONORMAL: Final = 12
"""Probes of the basis: their bound on τ fails with a probability of 10^-12."""
NEAREST: Final = 256
"""Most pivots to whose span the records' distances are computed: 5 s of a core for 100,000 records, and four
times that with twice as many."""
LARGEST_DEVIATION: Final = 0.01
"""Largest τ of a basis."""
LIMB_BITS: Final = 12
"""Bits of a sum that are multiplied at a time: 26 bits of the basis, 12 of the sum and 14 of the rank are
below the 53 of float64."""
MAX_POINTS: Final = 2**14
"""Maximum number of public points: see `LIMB_BITS`."""


@dataclass(frozen=True, eq=False)
class Subspace:
    """The span of public points' kernel functions, with a basis that is orthonormal to a stated precision.

    Attributes:
        points: All M public points, scaled.
        pivots: Indices of the points that make the basis, in order: shape (r,).
        coordinates: Coordinates of each public point's kernel function in the basis: shape (M, r).
        basis: B: the coordinates of h are B times its values at the pivots. Whole multiples of
            2^-BASIS_BITS, lower triangular, shape (r, r).
        gamma: γ.
        deviation: τ.
    """

    points: Points
    pivots: npt.NDArray[np.intp]
    coordinates: Points
    basis: Points
    gamma: float
    deviation: float

    @property
    def rank(self) -> int:
        """Directions of the basis, r."""
        return len(self.pivots)

    @property
    def distance(self) -> float:
        """Largest distance between two records' vectors, in units of `COORDINATE_UNIT`."""
        return self._sensitivity(math.sqrt(2.0), 2.0)

    @property
    def record_norm(self) -> float:
        """Largest norm of a record's vector, in units of `COORDINATE_UNIT`."""
        return self._sensitivity(1.0, 1.0)

    def _sensitivity(self, length: float, records: float) -> float:
        rounding = 2.0 ** -(KERNEL_BITS + 1) + (self.points.shape[1] + 5) * 2.0**-53
        by_rounding = records * float(np.linalg.norm(self.basis)) * math.sqrt(self.rank) * rounding
        ideal = length * math.sqrt(1.0 + self.deviation)
        # The last factor is for the float64 operations of this very line.
        return float(((ideal + by_rounding) / COORDINATE_UNIT + math.sqrt(self.rank)) * (1.0 + 2.0**-40))

    def totals(self, data: Points) -> Totals:
        """Σ over scaled records of their coordinates in units of `COORDINATE_UNIT`, in any order: shape (r,).

        Raises:
            DataError: More than `MAX_RECORDS` records.
        """
        if len(data) > MAX_RECORDS:
            raise DataError(
                f"A release of {len(data)} records was requested.", advice=f"The maximum is {MAX_RECORDS}."
            )
        return _exact_product(self.basis, self.kernel_sums(data))

    def kernel_sums(self, data: Points) -> Totals:
        """Σ over the records of their kernel values with the pivots, in units of 2^-KERNEL_BITS, shape (r,).

        Each record adds its own whole numbers: the sums of parts add up to the sums of all records.
        """
        pivots = self.points[self.pivots]
        rows = max(1, CHUNK_VALUES // self.rank)

        def part(start: int) -> Totals:
            values = kernel(data[start : start + rows], pivots, self.gamma)
            values *= 2.0**KERNEL_BITS
            # At most 2^17 whole numbers of at most 2^36 add up to at most 2^53: exactly.
            return np.asarray(np.rint(values, out=values).sum(axis=0), dtype=np.int64)

        return np.asarray(np.sum(in_threads(part, range(0, len(data), rows)), axis=0))

    def distances(self, data: Points, unit: int) -> int:
        """Σ over the records x of the distance of k(x, ·) to the span, as a whole number from 0 to `unit`.

        It is the distance to the span of the first `NEAREST` pivots, which is no smaller. With L the Cholesky
        factor of their Gram matrix, y = L⁻¹κ(x) has the squared length of the projection, and √(1 - ‖y‖²) is
        the distance. `RESIDUAL` is added under the root and the result rounded up, so that rounding makes it
        no smaller. A record's number follows from it alone, to the last bit: each step is one operation of
        IEEE 754 on single numbers.

        Args:
            data: Scaled, shape (n, columns).
            unit: The whole number of a distance of 1.
        """
        pivots = self.points[self.pivots[:NEAREST]]
        factor = self.coordinates[self.pivots[:NEAREST], : len(pivots)]
        rows = max(1, CHUNK_VALUES // len(pivots))

        def part(start: int) -> int:
            left = np.ascontiguousarray(kernel(data[start : start + rows], pivots, self.gamma).T)
            squares, step = np.ones(left.shape[1]), np.empty_like(left)
            for row in range(len(pivots)):
                found = left[row] / factor[row, row]
                squares -= found * found
                np.multiply(factor[row + 1 :, row, None], found, out=step[row + 1 :])
                left[row + 1 :] -= step[row + 1 :]
            lengths = np.sqrt(np.clip(squares + RESIDUAL, 0.0, 1.0))
            return int(np.ceil(lengths * unit).astype(np.int64).sum())

        return sum(in_threads(part, range(0, len(data), rows)))


def span(points: Points, gamma: float, generator: np.random.Generator) -> Subspace:
    """The span of public points (KME Algorithm 1, lines 3 and 4), by pivoted Cholesky factorisation.

    Points whose kernel functions lie nearly in the span of those before (`RESIDUAL`) add no direction.

    Args:
        points: Scaled, shape (M, columns), M ≤ `MAX_POINTS`.
        gamma: γ.
        generator: Draws the probes that test the basis.

    Raises:
        ConfigError: Too many points, or a basis that is not orthonormal enough.
    """
    if not 1 <= len(points) <= MAX_POINTS:
        raise ConfigError(
            f"{len(points)} public points were given.", advice=f"Give from 1 to {MAX_POINTS} of them."
        )
    gram = kernel(points, points, gamma)
    # LAPACK reads by columns: a symmetric matrix stays the same, and is not copied.
    factor, order, rank, _ = lapack.dpstrf(gram.T, lower=1, tol=RESIDUAL, overwrite_a=1)
    order = order.astype(np.intp) - 1
    factor = np.tril(factor)[:, :rank]
    inverse, _ = lapack.dtrtri(factor[:rank], lower=1)
    basis = np.rint(np.tril(inverse) * 2.0**BASIS_BITS) * 2.0**-BASIS_BITS
    coordinates = np.empty_like(factor)
    coordinates[order] = factor
    pivots = order[:rank]
    deviation = _deviation(basis, points[pivots], gamma, generator)
    if not deviation <= LARGEST_DEVIATION or float(np.abs(basis).max()) >= 2.0 ** (52 - BASIS_BITS):
        raise ConfigError(
            "The public points are too close to one another for an orthonormal basis of their span.",
            advice="Leave out points that nearly coincide, or raise gamma.",
        )
    return Subspace(points, pivots, coordinates, basis, gamma, deviation)


def _deviation(basis: Points, pivots: Points, gamma: float, generator: np.random.Generator) -> float:
    """A bound on ‖BKBᵀ - I‖ that fails with probability 10^-ORTHONORMAL."""
    probes = generator.standard_normal((len(pivots), ORTHONORMAL))
    carried = basis.T @ probes
    rows = max(1, CHUNK_VALUES // len(pivots))
    parts = in_threads(
        lambda start: kernel(pivots[start : start + rows], pivots, gamma) @ carried,
        range(0, len(pivots), rows),
    )
    missed = basis @ np.concatenate(parts) - probes
    return 10.0 * math.sqrt(2.0 / math.pi) * float(np.linalg.norm(missed, axis=0).max())


def _exact_product(basis: Points, sums: Totals) -> Totals:
    """B·s in units of `COORDINATE_UNIT`, each coordinate rounded once, half up.

    B is cut into whole numbers of 26 bits and s into limbs of 12, so that float64 holds every partial sum.
    """
    limbs = np.stack([(sums >> shift) & (2**LIMB_BITS - 1) for shift in range(0, 62, LIMB_BITS)], axis=1)
    digits = limbs.astype(np.float64)
    shift = KERNEL_BITS + BASIS_BITS - COORDINATE_BITS
    totals = np.empty(len(sums), dtype=np.int64)
    rows = max(1, 2**22 // len(sums))
    for start in range(0, len(sums), rows):
        whole = basis[start : start + rows] * 2.0**BASIS_BITS
        high = np.rint(whole * 2.0**-26)
        products = ((high, 26), (whole - high * 2.0**26, 0))
        exact = np.zeros(len(whole), dtype=object)
        for part, bits in products:
            for place, column in enumerate((part @ digits).astype(np.int64).T):
                exact += column.astype(object) << (bits + LIMB_BITS * place)
        totals[start : start + rows] = (exact + (1 << (shift - 1))) >> shift
    return totals
