"""The expected MMD² of a selection by noisy embeddings: by a rule of thumb, or by played sessions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, Literal

from pydantic.dataclasses import dataclass as figures

from hushbid.consumer.verdict import Staged
from hushbid.plan.noise import ReleaseError
from hushbid.plan.setting import PlanSetting
from hushbid.protocol.figures import Figures

__all__ = [
    "FLOOR",
    "SUMMARY_WEIGHT",
    "Distance",
    "Expected",
    "Prediction",
    "Span",
    "came_out",
    "few_rounds",
    "harm",
    "predict",
]

SUMMARY_WEIGHT: Final = 0.3
"""Weight of the summary's squared error relative to the target's: its noise is fresh in every round."""

FITTED_WEIGHT: Final = 10.0
"""Weight of the squared error of a fitted release, in contrast to a noisy sum: it is a bias that persists
from round to round, and the selection follows it.
"""

HALFWAY: Final = 0.8 / 140
"""Squared error per coordinate of φ at which noise does half of its harm."""

STEEPNESS: Final = 0.8
SPOILT: Final = 1.5
"""MMD² relative to that of a random choice if the selection follows noise alone; worse than random."""

FLOOR: Final = 0.03
"""MMD² relative to that of a random choice, without noise and with a negligible seed set."""

LARGEST_FLOOR: Final = 0.45
"""The same with a seed set that outweighs the purchase."""

FEW_ROUNDS: Final = 1.5
FEWER_ROUNDS: Final = 1.3
"""Few rounds add 1.5/T^1.3 times the MMD² of a random choice, as the points of one round are chosen without
regard to each other. Measured without noise at T from 1 to 50."""

RANGE: Final = 2.0
"""Factor either way that covers nearly all measured sessions (docs/plan.md)."""

GUESS_HIGH: Final = 8.0
GUESS_BESIDE: Final = 1.5
"""Without data U is a guess. MMD² over U then lay between half the expected ratio and the larger of
`GUESS_HIGH` times it and `GUESS_BESIDE` more, in all of 48 settings on four datasets (docs/plan.md). Wanted
points may be common, so that a random choice is hard to beat, or too rare to buy.
"""


@figures(frozen=True, slots=True)
class Span(Figures):
    """An expected figure, and the range that covers nearly all measured sessions."""

    expected: float
    low: float
    high: float

    @classmethod
    def around(cls, expected: float) -> Span:
        return cls(expected, expected / RANGE, expected * RANGE)


@figures(frozen=True, slots=True, kw_only=True)
class Distance(Figures):
    """MMD² of the bought points against D_v.

    Attributes:
        span: The expected value and its range.
        without_noise: The same for exact releases.
        uniform: The MMD² of as many points drawn at random.
        times_random: The expected value over `uniform`.
    """

    FLAT: ClassVar[frozenset[str]] = frozenset({"span"})

    span: Span
    without_noise: float
    uniform: float
    times_random: Span


@figures(frozen=True, slots=True, kw_only=True)
class Expected(Distance):
    """MMD² of equally weighted points, and of points with matching weights.

    Attributes:
        uniform_is_measured: Whether `uniform` was measured on the data; else it is assumed.
        weighted: With weights, which no rule predicts; None if nothing was played.
    """

    uniform_is_measured: bool
    by: Literal["the rule of thumb", "sessions played with the owners' points"]
    weighted: Distance | None = None


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """MMD² of the bought points against D_v, by a rule of thumb fitted to measured sessions.

    Let E² = E_target² + 0.3·E_summary², in which the squared error of ``mwem`` counts ten times, d the number
    of coordinates with noise, U the MMD² of a random choice, and h = (E²/(d·0.8/140))^0.8. Then MMD² ≈ floor
    + 1.5·U·h/(1 + h). The floor is 0.03·U + x/(1 + x/(0.45·U)) for x = (|D_init|/p)²·‖g_v - g_init‖²: the
    purchase makes up for the seed set, as far as owners' points can.

    Attributes:
        floor: The expected value without any noise.
        seeds: The seed set's share of both. It is the roughest term, and does not make a session hopeless
            (`drowned`).
        uniform: U.
        measured: Whether U was measured; else it is assumed.
    """

    expected: float
    floor: float
    seeds: float
    uniform: float
    measured: bool = False

    @property
    def drowned(self) -> float:
        """MMD² over a random choice's, from noise and few rounds alone; `EXPECTED_HOPELESS` is the limit."""
        return (self.expected - self.seeds) / self.uniform

    @property
    def times_random(self) -> Span:
        """MMD² over that of a random choice: the expected ratio and its range."""
        expected = self.expected / self.uniform
        if self.measured:
            return Span.around(expected)
        high = max(GUESS_HIGH * expected, expected + GUESS_BESIDE)
        return Span(expected, expected / RANGE, high)

    def told(self) -> Expected:
        """The prediction in the plan's form."""
        return Expected(
            span=Span.around(self.expected),
            without_noise=self.floor,
            uniform=self.uniform,
            times_random=self.times_random,
            uniform_is_measured=self.measured,
            by="the rule of thumb",
        )


def predict(setting: PlanSetting, target: ReleaseError, summary: ReleaseError) -> Prediction:
    """The expected MMD² of a session with these errors of its releases."""
    uniform = setting.mmd2_uniform
    wanted = setting.spread * setting.drift  # ‖g_v - g_init‖
    counted = 0.0 if setting.file.herds else setting.file.seed_weight * setting.seed_points
    seeds = (counted / setting.p * wanted) ** 2
    seeds /= 1.0 + seeds / (LARGEST_FLOOR * uniform)
    floor = FLOOR * uniform + seeds + few_rounds(setting) * uniform
    square = harm(target) + SUMMARY_WEIGHT * harm(summary)
    strength = (square / HALFWAY) ** STEEPNESS
    expected = floor + SPOILT * uniform * strength / (1.0 + strength)
    return Prediction(
        expected=expected,
        floor=floor,
        seeds=seeds,
        uniform=uniform,
        measured=setting.data is not None,
    )


def few_rounds(setting: PlanSetting) -> float:
    """The share of U that its number of rounds adds; zero under `tender`, which chooses point by point."""
    if setting.file.herds:
        return 0.0
    return float(FEW_ROUNDS / setting.rounds**FEWER_ROUNDS)


def harm(release: ReleaseError) -> float:
    """Weighted squared error per coordinate."""
    return (FITTED_WEIGHT if release.is_simulated else 1.0) * release.error**2 / release.width


def came_out(found: Staged, without_noise: Staged) -> Expected:
    """The outcome of sessions with the owners' points, and without noise, in place of a prediction."""
    weighted = Distance(
        span=Span.around(found.bought),
        without_noise=without_noise.bought,
        uniform=found.uniform,
        times_random=Span.around(found.ratio),
    )
    return Expected(
        span=Span.around(found.bought_plain),
        without_noise=without_noise.bought_plain,
        uniform=found.uniform_plain,
        times_random=Span.around(found.ratio_plain),
        uniform_is_measured=True,
        by="sessions played with the owners' points",
        weighted=weighted,
    )
