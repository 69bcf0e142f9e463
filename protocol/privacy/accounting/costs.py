"""Privacy costs: a small frozen description of each kind of mechanism, which any accountant can add up.

A cost belongs to the neighbour relation of its sensitivity; costs of different relations must not be added.
Costs are public: they depend on a session's parameters, never on data. Each is the cost of `count` releases,
and so are its `rho` and `mu_squared`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Final, TypeAlias

from hushbid.protocol.errors import ConfigError
from hushbid.protocol.privacy.accounting.zcdp import bounded_range_rho, gaussian_rho, pure_rho

__all__ = [
    "ApproximateCost",
    "BoundedRangeCost",
    "Cost",
    "DiscreteGaussianCost",
    "GaussianCost",
    "LaplaceCost",
    "ZcdpCost",
    "cost_from_record",
    "cost_to_record",
    "merge_costs",
]

SMALLEST: Final = 1e-100
LARGEST: Final = 1e100
"""Bound on the components of costs, so that squares and quotients stay within float64."""

MAX_COUNT: Final = 2**53
"""Most repetitions of a cost; a larger number is not exact in float64."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianCost:
    """Continuous Gaussian noise, or such noise rounded to whole numbers if totals are whole.

    Attributes:
        noise_multiplier: σ/Δ, with Δ the L2 sensitivity of one release.
    """

    noise_multiplier: float
    count: int

    def __post_init__(self) -> None:
        _check(self, positive=("noise_multiplier",))

    @property
    def mu_squared(self) -> float:
        """μ² of Gaussian differential privacy (Dong, Roth, Su 2022)."""
        return self.count / self.noise_multiplier**2

    @property
    def rho(self) -> float:
        return self.count * gaussian_rho(1.0, self.noise_multiplier)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteGaussianCost:
    """Discrete Gaussian noise on whole numbers. All lengths are in units of that grid.

    Attributes:
        sensitivity: L2 sensitivity Δ of one release.
        sigma: σ of the noise on a coordinate.
        width: Coordinates of one release.
    """

    sensitivity: float
    sigma: float
    width: int
    count: int

    def __post_init__(self) -> None:
        _check(self, positive=("sensitivity", "sigma"), whole=("width",))

    @property
    def values(self) -> int:
        return self.width * self.count

    @property
    def mu_squared(self) -> float:
        """μ² if the noise were a rounded Gaussian."""
        return self.count * (self.sensitivity / self.sigma) ** 2

    @property
    def rho(self) -> float:
        return self.count * gaussian_rho(self.sensitivity, self.sigma)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaplaceCost:
    """Laplace noise.

    Attributes:
        epsilon: L1 sensitivity divided by the noise's scale.
    """

    epsilon: float
    count: int

    def __post_init__(self) -> None:
        _check(self, positive=("epsilon",))

    @property
    def rho(self) -> float:
        return self.count * pure_rho(self.epsilon)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedRangeCost:
    """A mechanism of bounded range: an exponential mechanism, or a coin whose log-odds change by η.

    Attributes:
        eta: Range η. With weights e^(cψ) and a score of sensitivity Δ, η = 2cΔ (Dong, Durfee, Rogers 2020).
    """

    eta: float
    count: int

    def __post_init__(self) -> None:
        _check(self, positive=("eta",))

    @property
    def rho(self) -> float:
        return self.count * bounded_range_rho(self.eta)


@dataclass(frozen=True, slots=True, kw_only=True)
class ZcdpCost:
    """A mechanism known only by its zero-concentrated differential privacy.

    Attributes:
        rho_each: ρ of one release.
    """

    rho_each: float
    count: int

    def __post_init__(self) -> None:
        _check(self, positive=("rho_each",))

    @property
    def rho(self) -> float:
        return self.count * self.rho_each


@dataclass(frozen=True, slots=True, kw_only=True)
class ApproximateCost:
    """A mechanism known only by its (ε, δ).

    Attributes:
        epsilon: ε of one release; 0 for a mere probability of failure.
        delta: δ of one release; 0 for pure differential privacy.
    """

    epsilon: float
    delta: float
    count: int

    def __post_init__(self) -> None:
        _check(self)
        if not (math.isfinite(self.epsilon) and self.epsilon >= 0.0 and 0.0 <= self.delta < 1.0):
            raise ConfigError(
                f"A cost has epsilon {self.epsilon} and delta {self.delta}.",
                advice="Its epsilon is at least 0, its delta at least 0 and below 1.",
            )

    @property
    def rho(self) -> float:
        """Infinite if δ > 0, which implies no zCDP."""
        return math.inf if self.delta > 0.0 else self.count * pure_rho(self.epsilon)


Cost: TypeAlias = (
    GaussianCost | DiscreteGaussianCost | LaplaceCost | BoundedRangeCost | ZcdpCost | ApproximateCost
)

_KINDS: Final[dict[str, type[Cost]]] = {
    "gaussian": GaussianCost,
    "discrete-gaussian": DiscreteGaussianCost,
    "laplace": LaplaceCost,
    "bounded-range": BoundedRangeCost,
    "zcdp": ZcdpCost,
    "approximate": ApproximateCost,
}
_NAMES: Final = {kind: name for name, kind in _KINDS.items()}


def merge_costs(costs: Iterable[Cost]) -> tuple[Cost, ...]:
    """The same costs, with one entry per kind of release.

    The result is sorted by kind, so figures computed from it do not depend on the order of `costs`, not even
    in the last digit: a session that spends its budget exactly must not be refused its last release.
    """
    merged: dict[Cost, int] = {}
    for cost in costs:
        single = replace(cost, count=1)
        merged[single] = merged.get(single, 0) + cost.count
    return tuple(replace(single, count=merged[single]) for single in sorted(merged, key=repr))


def cost_to_record(cost: Cost) -> dict[str, Any]:
    """A cost as a JSON object: its kind under "kind", and its attributes."""
    return {"kind": _NAMES[type(cost)], **asdict(cost)}


def cost_from_record(record: Mapping[str, Any]) -> Cost:
    """Rebuild a cost from the result of `cost_to_record`.

    Raises:
        ConfigError: It is not a cost, or has a value that no cost has.
    """
    kind = _KINDS.get(str(record.get("kind")))
    if kind is None:
        raise ConfigError(
            f"A cost of kind {record.get('kind')!r} is not known.", advice=f"Kinds are: {', '.join(_KINDS)}."
        )
    given = {name: value for name, value in record.items() if name != "kind"}
    names = {field.name for field in fields(kind)}
    if set(given) != names or any(
        isinstance(value, bool) or not isinstance(value, int | float) for value in given.values()
    ):
        raise ConfigError(
            f"A cost of kind {record['kind']!r} does not have the numbers that it should have.",
            advice=f"They are: {', '.join(sorted(names))}.",
        )
    return kind(**given)


def _check(cost: Any, *, positive: tuple[str, ...] = (), whole: tuple[str, ...] = ()) -> None:
    for name in positive:
        value = getattr(cost, name)
        if not SMALLEST <= value <= LARGEST:  # excludes NaN
            raise ConfigError(
                f"A cost has {name} {value}.",
                advice=f"Set it to a number from {SMALLEST:g} to {LARGEST:g}.",
            )
    for name in (*whole, "count"):
        value = getattr(cost, name)
        if not isinstance(value, int) or not 1 <= value <= MAX_COUNT:
            raise ConfigError(f"A cost has {name} {value}.", advice="Set it to a whole number above 0.")
