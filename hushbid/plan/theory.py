"""The conditions and guarantees of DPDS's theorems for a session: Theorems 2 and 3 and Lemma 5, as printed.

Constants that the paper hides in O(·) are taken as 1, in its favour. docs/errata.md lists what does not hold.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar, Final

from pydantic.dataclasses import dataclass as figures

from hushbid.plan.setting import PlanSetting
from hushbid.protocol.figures import Figures

__all__ = ["Theory", "TheorySetting", "asked", "coordinate_error", "theory_of"]

_BEST: Final = 1.0
"""J = 2g̃ᵀg − ‖g‖² of a perfect summary is ‖g̃‖², and ‖φ‖ ≤ 1: an error of 1 leaves no guarantee."""


@figures(frozen=True, slots=True, kw_only=True)
class TheorySetting(Figures):
    """A session as the theorems see it.

    Attributes:
        owners, points, dimension: K, p and d.
        available: N, the owners' points together.
        validation, seed_points: |D_v| and |D_init|.
        epsilon, delta: ε of Theorem 2, of the owners' records, and δ̃.
        epsilon_target: ε of D_v.
        auction_epsilon: ε_auc of Algorithm 3.
    """

    owners: int
    available: int
    points: int
    validation: int
    seed_points: int
    dimension: int
    epsilon: float
    epsilon_target: float
    delta: float
    auction_epsilon: float = 0.5


@figures(frozen=True, slots=True, kw_only=True)
class Theory(Figures):
    """The theorems' conditions on a session, beside its actual values, and their guarantees.

    Attributes:
        steps: T = d² of each release.
        validation_needed, seed_points_needed: Of Theorem 2, with ε_v as printed there.
        validation_needed_proof: The same with the ε_v of its proof, which is √(16T) times larger.
        dimension_needed: For an additive error a = 1.
        dimension_for_error: The least power of two for which log p·√(ln d/d) is below 1.
        additive_error: Δ of Theorem 2 at the smallest a that d allows.
        target_error, summary_error: Theorem 3, of the last round.
        zero_error: The error of zeros in their place, √(2/d).
        points_accessed, points_accessed_corrected: Lemma 5 as printed, and corrected.
        met, unmet: Conditions of Theorem 2, by name.
    """

    FLAT: ClassVar[frozenset[str]] = frozenset({"setting"})
    TOLD: ClassVar[Mapping[str, str]] = {"guarantee": "guarantee"}

    setting: TheorySetting
    steps: int
    validation_needed: float
    validation_needed_proof: float
    seed_points_needed: float
    dimension_needed: float
    dimension_for_error: int
    additive_error: float
    target_error: float
    summary_error: float
    zero_error: float
    points_accessed: float
    points_accessed_corrected: float
    met: tuple[str, ...]
    unmet: tuple[str, ...]

    @property
    def guarantee(self) -> bool:
        """Whether all conditions are met and Δ leaves a guarantee."""
        return not self.unmet


def coordinate_error(count: float, dimension: int, epsilon: float) -> float:
    """Theorem 3's bound on the largest coordinate error of an MWEM release, at T = d² and η = 1/d.

    2√(2·log(2/η)/d²) + 11√2·log d/(qε√d) + 4/d + 2d·exp(−q/4) + η, for q points and ε of a step. Zero itself
    has an error of √(2/d) at most, so that a larger bound says nothing.
    """
    eta = 1.0 / dimension
    return (
        2.0 * math.sqrt(2.0 * math.log(2.0 / eta) / dimension**2)
        + 11.0 * math.sqrt(2.0) * math.log(dimension) / (count * epsilon * math.sqrt(dimension))
        + 4.0 / dimension
        + 2.0 * dimension * math.exp(-count / 4.0)
        + eta
    )


def asked(setting: TheorySetting) -> Theory:
    """The theorems' conditions on a session, and their guarantees."""
    d, p = setting.dimension, max(setting.points, 2)
    log_p, log_d, log_delta = math.log(p), math.log(d), math.log(1.0 / setting.delta)
    steps = d * d
    for_target = setting.epsilon_target / (16.0 * steps)
    in_proof = setting.epsilon_target / math.sqrt(16.0 * steps)
    needed = 44.0 * math.sqrt(2.0) * math.sqrt(d) * log_d * log_p**2
    seeds = 121.0 * 8.0 * d**2 * log_d**2 * log_delta * log_p**5
    smallest_a = math.sqrt(16.0 * math.log(2.0 * setting.available) * log_p**2 / d)
    additive = log_p * math.sqrt(log_d) / math.sqrt(d) + smallest_a + 1.0 / (setting.epsilon * log_p)
    for_summary = setting.epsilon / math.sqrt(16.0 * steps * p * log_delta * log_p)
    tau = math.ceil(setting.owners ** (2 / 3) - 1e-9)
    conditions = {
        "validation": setting.validation >= needed / for_target,
        "seed_points": setting.seed_points >= seeds,
        "dimension": smallest_a < 1.0,
        "error": additive < _BEST,
    }
    corrected = setting.owners / tau + 1.0 / (1.0 - math.exp(-setting.auction_epsilon))
    return Theory(
        setting=setting,
        steps=steps,
        validation_needed=needed / for_target,
        validation_needed_proof=needed / in_proof,
        seed_points_needed=seeds,
        dimension_needed=16.0 * math.log(2.0 * setting.available) * log_p**2,
        dimension_for_error=_least_dimension(log_p),
        additive_error=additive,
        target_error=coordinate_error(setting.validation, d, for_target),
        summary_error=coordinate_error(setting.seed_points + p, d, for_summary),
        zero_error=math.sqrt(2.0 / d),
        points_accessed=p * (setting.owners / tau + 1.0 / setting.auction_epsilon),
        points_accessed_corrected=p * corrected,
        met=tuple(name for name, held in conditions.items() if held),
        unmet=tuple(name for name, held in conditions.items() if not held),
    )


def _least_dimension(log_p: float) -> int:
    """The least power of two d for which log p·√(ln d/d) is below 1."""
    d = 4
    while log_p * math.sqrt(math.log(d) / d) >= 1.0:
        d *= 2
    return d


ASSUMED_EPSILON: Final = 1.0
"""The ε of a release that has none in its table, such as `exact` and `mwem`."""


def theory_of(setting: PlanSetting) -> Theory:
    """`asked` for a planned session."""
    file = setting.file
    epsilons = [section.parameters.get("epsilon", ASSUMED_EPSILON) for section in (file.summary, file.target)]
    return asked(
        TheorySetting(
            owners=len(setting.owner_points),
            available=sum(setting.owner_points),
            points=setting.p,
            validation=setting.m,
            seed_points=setting.seed_points,
            dimension=file.features.dimension,
            epsilon=float(epsilons[0]),
            epsilon_target=float(epsilons[1]),
            delta=file.session.delta,
        )
    )
