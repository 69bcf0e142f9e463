"""The figures of docs/privacy.md."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from hushbid.protocol.privacy.accounting import adaptive_epsilon, epsilon_of
from hushbid.protocol.privacy.accounting.costs import GaussianCost
from hushbid.protocol.privacy.accounting.gaussian import gaussian_epsilon, gaussian_mu, law_ratios
from hushbid.protocol.privacy.accounting.zcdp import epsilon_of_rho
from hushbid.protocol.privacy.acquisition.logistic import Logistic, LogisticParameters
from hushbid.protocol.privacy.releases import Neighbours, Setting, release_mechanism
from hushbid.protocol.privacy.releases.filtered_gaussian import FilteredGaussianRelease
from hushbid.protocol.privacy.releases.gaussian import GaussianRelease
from hushbid.protocol.privacy.settlement import PrivateSettlement
from hushbid.protocol.space.features import feature_space
from tests.docs.tables.markers import Made, Table

DIMENSION, DELTA = 140, 1e-5


def bound() -> float:
    space = feature_space("paired", dimension=DIMENSION, gamma=1.0, lower=0.0, upper=1.0, columns=1)
    return space.norm_bound


def calibrated(
    mechanism: type[GaussianRelease | FilteredGaussianRelease], releases: int, *, summary: bool = True
) -> Any:
    """The mechanism that meets ε = 1 over all its releases."""
    neighbours = Neighbours.ADD_REMOVE_ONE if summary else Neighbours.SUBSTITUTE_ONE
    setting = Setting(
        dimension=DIMENSION, releases=releases, norm_bound=bound(), delta=DELTA, starts_public=summary
    )
    return release_mechanism(mechanism.name, {"epsilon": 1.0, "neighbours": neighbours.value}, setting)


def thousand_rounds() -> Any:
    """The costs of a session of a thousand rounds at ε = 1."""
    return calibrated(GaussianRelease, 1000).costs(neighbours=Neighbours.ADD_REMOVE_ONE)


def logistic() -> Logistic:
    return Logistic(LogisticParameters(epsilon=1.0), owners=10_000, rounds=1000, delta=DELTA)


def as_printed(releases: int, step: float, steps: int, neighbours: Neighbours, delta: float) -> float:
    """ε of MWEM with the paper's own noise."""
    keys = {"calibration": "published", "step_epsilon": step, "steps": steps, "eta": 1 / 70}
    mechanism = release_mechanism(
        "mwem",
        {**keys, "neighbours": neighbours.value},
        Setting(dimension=DIMENSION, releases=releases, norm_bound=1.0, delta=delta),
    )
    return mechanism.guarantee(neighbours=neighbours, delta=delta).epsilon or 0.0


def settlement() -> PrivateSettlement:
    return PrivateSettlement.of(epsilon=1.0, delta=DELTA, owners=100)


def one_session() -> float:
    """μ of a session at ε = 1."""
    return gaussian_mu(1.0, DELTA)


def in_view_of_one_another(sessions: int) -> float:
    """ε of several sessions at ε = 1 each, as a ledger adds them up."""
    one = GaussianCost(noise_multiplier=1.0 / one_session(), count=1)
    return adaptive_epsilon([(one,)] * sessions, DELTA)


FIGURES: Final[dict[str, Callable[[], float]]] = {
    "Largest ‖φ‖, rounding included": bound,
    "`gaussian`, ε = 1, p = 1000: σ of a coordinate, in units of φ": lambda: (
        calibrated(GaussianRelease, 1000).sigma
    ),
    "the same, p = 3000": lambda: calibrated(GaussianRelease, 3000).sigma,
    "the same, one release (D_v)": lambda: calibrated(GaussianRelease, 1, summary=False).sigma,
    "`filtered-gaussian`, ε = 1, p = 1000: σ of a coordinate, in units of y": lambda: (
        calibrated(FilteredGaussianRelease, 1000).sigma
    ),
    "ε that zCDP alone states for noise that has ε = 1": lambda: epsilon_of_rho(
        sum(cost.rho for cost in thousand_rounds()), DELTA
    ),
    "a + b of the comparison of laws, ε = 1, p = 1000": lambda: sum(
        law_ratios(thousand_rounds(), 1.1, DELTA)
    ),
    "ε of two records at once, where one has ε = 1": lambda: gaussian_epsilon(2 * one_session(), DELTA),
    "ε of ten records at once, where one has ε = 1": lambda: gaussian_epsilon(10 * one_session(), DELTA),
    "ε of two sessions that have ε = 1 each": lambda: gaussian_epsilon(math.sqrt(2) * one_session(), DELTA),
    "ε of ten sessions that have ε = 1 each": lambda: gaussian_epsilon(math.sqrt(10) * one_session(), DELTA),
    "the same two, each agreed to in view of the last": lambda: in_view_of_one_another(2),
    "the same ten": lambda: in_view_of_one_another(10),
    "`logistic`, asks of ε = 1, p = 1000: r0": lambda: logistic().middle,
    "the same, K = 10,000: raw points handed to the curator": lambda: logistic().expected_points,
    "private settlement of ε = 1, 100 owners: standard error of each number, in points": lambda: (
        settlement().standard_error
    ),
    "ε of it together with rounds of ε = 1": lambda: epsilon_of(
        (*thousand_rounds(), *settlement().costs), DELTA
    ),
    "the paper's noise for D_v at its own δ = 0.01, as it is": lambda: as_printed(
        1, 0.01, 1656, Neighbours.SUBSTITUTE_ONE, 0.01
    ),
    "the paper's noise for the summary at its own δ = 10⁻⁴, as it is": lambda: as_printed(
        1000, 0.01 / math.sqrt(5 * 1000), 5, Neighbours.ADD_REMOVE_ONE, 1e-4
    ),
}
FORMATS: Final = {
    "Largest ‖φ‖, rounding included": ".5g",
    "a + b of the comparison of laws, ε = 1, p = 1000": ".1e",
    "the paper's noise for D_v at its own δ = 0.01, as it is": ".2f",
    "the paper's noise for the summary at its own δ = 10⁻⁴, as it is": ".2g",
}
"""Of figures that have other than four digits."""

PRIVACY: Final[dict[str, Made]] = {
    "figures": lambda: Table(
        [(name, format(figure(), FORMATS.get(name, ".4g"))) for name, figure in FIGURES.items()]
    )
}
