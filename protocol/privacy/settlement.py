"""A settlement that owners may be told: the worth of their points, with noise, released once.

The exact settlement (`hushbid.protocol.session.settling.settle`) pays each point's gain of J in the round of
its choice. That has no useful sensitivity: adding a record substitutes one point of S, but it may also move
every later point to another round with other g and q. So the gains of as many points as there are rounds can
change, for any owners.

This settlement is linear in S instead. A point counts by its score under the *first* broadcast's weight w₁ =
g̃ - q/(q + 1)·g₀, clipped and rounded down to an integer number of units:

    worth(φ) = ⌊min(max(w₁ᵀφ, 0), C)·U/C⌋ ∈ {0, …, U},    C = ⌊½·‖w₁‖⌋ + 1 on the grid,    U = 2^15,

and an owner has T_i = Σ worth(φ) over its points in S. w₁ is a release that does not depend on owners' data,
and 2/(q + 1)·w₁ᵀφ is the point's gain of J at the seed set, without its square and the part that all points
share.

Sensitivity. Fix all broadcasts. By the lemma (docs/privacy.md §3) S with one record more is S, or S with one
point in addition, or S with one point, e of owner j, replaced by another, y of owner i. A worth depends on φ
and w₁ alone, so that all other points count the same. T moves by nothing; by worth(e)·1_j; by
worth(y)·1_i - worth(e)·1_j with i ≠ j, of length √(worth(y)² + worth(e)²); or, with i = j, by
|worth(y) - worth(e)|. So ‖ΔT‖₂ ≤ √2·U, of two owners at most, each by U at most. ∎
A disputed point counts 0. Its dispute depends on what its owner handed over, never on the order of rounds:
the same points count 0 with the record and without it.

Z, discrete Gaussian on whole numbers, is added to each T_i: a release of sensitivity ⌈√2·U⌉ and width K, for
neighbours that add or remove one record of one owner (`DiscreteGaussianCost`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from pydantic.dataclasses import dataclass as figures

from hushbid.protocol.errors import ConfigError
from hushbid.protocol.figures import Figures
from hushbid.protocol.privacy.accounting import Cost, DiscreteGaussianCost, gaussian_sigma
from hushbid.protocol.privacy.noise import Draw
from hushbid.protocol.privacy.releases import Neighbours
from hushbid.protocol.space.grid import FEATURE_BITS, Features, Weights, exact_scores

__all__ = [
    "NEIGHBOURS",
    "SENSITIVITY",
    "UNITS",
    "PrivateSettlement",
    "SettlementTerms",
    "whole_score",
    "worths",
]

UNITS: Final = 2**15
"""U: units of a point that counts fully."""
SENSITIVITY: Final = math.isqrt(2 * UNITS**2) + 1
"""⌈√2·U⌉: L2 bound on the change of all totals by one record of one owner."""
NEIGHBOURS: Final = Neighbours.ADD_REMOVE_ONE

_ROWS: Final = 512
"""Points scored at a time: 16 MiB of float64 at the largest d."""

_GAINS: Final = "gain in the released target"
_POINTS: Final = "points"
_EXACT: Final = (
    "not to be disclosed to owners: the numbers are exact, and what an owner won depends on the others' data"
)
_NOISY: Final = "private: owners may be told it, and be paid by it"


@dataclass(frozen=True, slots=True)
class PrivateSettlement:
    """The single release of all owners' totals.

    Attributes:
        epsilon: ε of this release alone, at `delta`.
        sigma: σ of each total's noise, in units of 1/`UNITS` of a point.
    """

    epsilon: float
    delta: float
    owners: int
    sigma: float

    @classmethod
    def of(cls, *, epsilon: float, delta: float, owners: int) -> PrivateSettlement:
        """Calibrate the noise.

        Raises:
            ConfigError: No 64-bit noise meets so small an ε.
        """
        try:
            sigma = gaussian_sigma(epsilon, delta, sensitivity=SENSITIVITY, releases=1, values=owners)
            settlement = cls(epsilon, delta, owners, sigma)
            _ = settlement.draw  # raises if its scale is too large
        except ConfigError as error:
            raise ConfigError(f"[settlement]: {error.what}", advice=error.advice) from None
        return settlement

    @property
    def draw(self) -> Draw:
        """The noise: one value per owner. It does not depend on data."""
        return Draw("discrete-gaussian", self.sigma, self.owners)

    @property
    def costs(self) -> tuple[Cost, ...]:
        """Its cost to the owners, for `NEIGHBOURS`."""
        return (
            DiscreteGaussianCost(
                sensitivity=float(SENSITIVITY), sigma=self.sigma, width=self.owners, count=1
            ),
        )

    @property
    def standard_error(self) -> float:
        """Standard error of each owner's number, in points; the same for all, and known in advance."""
        return self.sigma / UNITS


@figures(frozen=True, slots=True)
class SettlementTerms(Figures):
    """Whether owners may be told a session's settlement, and its privacy cost.

    Attributes:
        private: Whether it has noise.
        disclosure: Whether owners may be told, and if not, why.
        neighbours: The datasets that ε compares; None without noise, like all fields below.
        epsilon: ε of the settlement alone. The owners' statement composes it with the rounds.
        standard_error: Standard error of each owner's number, in points.
    """

    private: bool
    unit: str
    disclosure: str
    neighbours: str | None
    epsilon: float | None
    delta: float | None
    standard_error: float | None

    @classmethod
    def of(cls, settlement: PrivateSettlement | None, objection: str) -> SettlementTerms:
        """The terms of a session.

        Args:
            settlement: Its private settlement, if it has one.
            objection: Why the owners' guarantee does not hold; empty if it does.
        """
        if settlement is None:
            return cls(False, _GAINS, _EXACT, None, None, None, None)
        return cls(
            True,
            _POINTS,
            f"not to be disclosed to owners: {objection}" if objection else _NOISY,
            NEIGHBOURS.value,
            settlement.epsilon,
            settlement.delta,
            settlement.standard_error,
        )

    def figures(self, value: float, *, owners: int = 1) -> tuple[str, ...]:
        """A number of the settlement for people, or the sum of several owners', and its standard error."""
        if self.standard_error is None:
            return (f"{value:+.5f}",)
        return f"{value:+.2f}", f"{self.standard_error * math.sqrt(owners):.2f}"

    def sentence(self) -> str:
        """A sentence for people: who may be told."""
        said = f"The settlement is {self.disclosure}."
        if self.epsilon is None or self.delta is None:
            return said
        figures = f"ε = {self.epsilon:g} at δ = {self.delta:.1g}, {self.neighbours}"
        return f"{said} By itself it has {figures}; the owners' ε is of it and of all rounds."

    def planned(self) -> str:
        """The settlement's line in a session's plan, for people."""
        if self.standard_error is None:
            return self.disclosure
        return f"each owner's points by worth, ± {self.standard_error:.3g}; {self.disclosure}"


def whole_score(weights: Weights) -> int:
    """C: the score from which a point counts fully, half of ‖w‖ at ‖φ‖ = 1, in units of 2^-37.

    No score exceeds ‖w‖·‖φ‖. Bought points reached up to 0.6 of it, so half of it cuts few off and halves the
    noise (docs/results.md).

    Args:
        weights: w₁, the first broadcast's, shape (d,).
    """
    squares: int = sum(value * value for value in weights.tolist())
    return math.isqrt(squares << (2 * (FEATURE_BITS - 1))) + 1


def worths(features: Sequence[Features], weights: Weights) -> list[int]:
    """The number of units that each point counts in a settlement, in 0..`UNITS`.

    Args:
        features: φ of each point, shape (d,), in units of 2^-15, admitted by the map's space. Scores are then
            exact (`exact_scores`), and none depends on the points beside it.
        weights: w₁, shape (d,), in units of 2^-22.
    """
    whole = whole_score(weights)
    found: list[int] = []
    for start in range(0, len(features), _ROWS):
        scores = exact_scores(np.stack(features[start : start + _ROWS]), weights)
        # Python's integers from here: whole times U does not fit 64 bits at the largest weights.
        found += [min(max(score, 0), whole) * UNITS // whole for score in scores.tolist()]
    return found
