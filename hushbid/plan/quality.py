"""The expected MMD² of a selection by noisy embeddings, a verdict on it, and remedies."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias

from hushbid.consumer.verdict import EXPECTED_HOPELESS, Staged
from hushbid.plan.noise import ReleaseError, release_errors
from hushbid.plan.setting import PlanSetting
from hushbid.plan.supply import all_sold, offer
from hushbid.plan.tables import DEFAULT_RELEASE
from hushbid.protocol import limits
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.privacy.accounting.validation import check_delta_of
from hushbid.protocol.privacy.acquisition import acquisition_rule
from hushbid.protocol.privacy.releases import RELEASES, Neighbours
from hushbid.protocol.space.herding import MOST_HERDED

__all__ = ["RANGE", "Prediction", "Verdict", "Word", "predict", "refusal", "verdict"]

Word: TypeAlias = Literal["good", "uncertain", "poor", "hopeless"]

SUMMARY_WEIGHT: Final = 0.3
"""Weight of the summary's squared error beside the target's: its noise is fresh in every round."""

FITTED_WEIGHT: Final = 10.0
"""Weight of the squared error of a release that is fitted, and not a noisy sum: it is a bias that stays from
round to round, and the choice follows it."""

HALFWAY: Final = 0.8 / 140
"""Squared error of a coordinate of φ at which noise does half of its harm."""

STEEPNESS: Final = 0.8
SPOILT: Final = 1.5
"""MMD² over that of a random choice when the choice follows noise alone, which is worse than random."""

FLOOR: Final = 0.03
"""MMD² over that of a random choice, without noise and with a seed set that does not matter."""

LARGEST_FLOOR: Final = 0.45
"""The same with a seed set that outweighs the purchase."""

FEW_ROUNDS: Final = 1.5
FEWER_ROUNDS: Final = 1.3
"""Few rounds add 1.5/T^1.3 times the MMD² of a random choice, as the points of one round are chosen without
regard to each other. Measured without noise at T from 1 to 50 (docs/plan.md)."""

RANGE: Final = 2.0
"""Factor either way within which nearly all measured sessions lie (docs/plan.md)."""

GUESS_LOW: Final = 0.5
GUESS_HIGH: Final = 8.0
GUESS_BESIDE: Final = 1.5
"""Without data U is a guess. MMD² over U then lay between `GUESS_LOW` times the expected ratio and the larger
of `GUESS_HIGH` times it and `GUESS_BESIDE` more, in all of 48 settings on four datasets (docs/plan.md).
Wanted points may be common, so that a random choice is hard to beat, or too rare to buy.
"""

GOOD: Final = 0.5
"""MMD² over that of a random choice below which a session is good."""

LARGEST_EPSILON: Final = 20.0
LARGEST_VALIDATION: Final = 10_000_000
BY_RULE: Final[Mapping[str, str]] = {"good": "not ruled out", "poor": "doubtful", "hopeless": "doubtful"}
"""What people read for a word of the rule of thumb: it knows no data, and a rehearsal may say otherwise."""
PRECISION: Final = 1.02
"""Precision of a remedy's figure, as a ratio."""


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """MMD² of the bought points against D_v, by a rule of thumb that is fitted to measured sessions.

    Let E² = E_target² + 0.3·E_summary², in which the squared error of ``mwem`` counts ten times, d the number
    of coordinates with noise, U the MMD² of a random choice, and h = (E²/(d·0.8/140))^0.8. Then
    MMD² ≈ floor + 1.5·U·h/(1 + h). The floor is 0.03·U + x/(1 + x/(0.45·U)) for
    x = (|D_init|/p)²·‖g_v - g_init‖²: the purchase makes up for the seed set, as far as owners' points can.

    Attributes:
        expected: The rule's figure.
        floor: The expected value without any noise.
        seeds: The seed set's share of both. It is the roughest term, and is no reason to call a session
            hopeless (`drowned`).
        uniform: U.
        measured: Whether U was measured; else it is assumed.
        staged: The outcomes of sessions with the owners' points, and without noise, if such were played:
            they replace the rule's figures.
    """

    expected: float
    floor: float
    seeds: float
    uniform: float
    measured: bool = False
    staged: tuple[Staged, Staged] | None = None

    def by_rehearsal(self, found: Staged, without_noise: Staged) -> Prediction:
        """The outcomes of played sessions in place of the rule's figures."""
        return replace(
            self,
            expected=found.bought_plain,
            floor=without_noise.bought_plain,
            uniform=found.uniform_plain,
            staged=(found, without_noise),
        )

    @property
    def drowned(self) -> float:
        """MMD² over a random choice's by noise and few rounds alone; hopeless from `EXPECTED_HOPELESS` on."""
        return (self.expected - self.seeds) / self.uniform

    @property
    def times_random(self) -> dict[str, float]:
        """MMD² over that of a random choice: the expected ratio and its range."""
        expected = self.expected / self.uniform
        if self.measured:
            return _around(expected)
        high = max(GUESS_HIGH * expected, expected + GUESS_BESIDE)
        return {"expected": expected, "low": expected * GUESS_LOW, "high": high}

    def as_json(self) -> dict[str, Any]:
        return {
            **_around(self.expected),
            "without_noise": self.floor,
            "uniform": self.uniform,
            "uniform_is_measured": self.measured,
            "times_random": self.times_random,
            "by": "the rule of thumb" if self.staged is None else "sessions played with the owners' points",
            "weighted": self._weighted(),
        }

    def _weighted(self) -> dict[str, Any] | None:
        """The same with matching weights, which no rule predicts."""
        if self.staged is None:
            return None
        found, without_noise = self.staged
        return {
            **_around(found.bought),
            "without_noise": without_noise.bought,
            "uniform": found.uniform,
            "times_random": _around(found.ratio),
        }


def _around(expected: float) -> dict[str, float]:
    """A figure with half and twice that."""
    return {"expected": expected, "low": expected / RANGE, "high": expected * RANGE}


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Whether a session is worth running.

    Attributes:
        verdict: ``good``: MMD² is expected below half of a random choice's; ``poor``: it is not;
            ``hopeless``: noise and few rounds alone bring it to a random choice's, or it cannot be run. With
            data it is a rehearsal's (`hushbid.plan.with_data`), and ``uncertain`` in place of ``poor``.
        reason: Why.
        remedies: Changes, each of which alone would make it good: ``change``, the new values, and ``mmd2``
            where there is a figure. Empty for a session that is good, or was rehearsed.
    """

    verdict: Word
    reason: str
    remedies: tuple[dict[str, Any], ...] = ()


def predict(setting: PlanSetting, target: ReleaseError, summary: ReleaseError) -> Prediction:
    """The expected MMD² of a session with these errors of its releases."""
    uniform = setting.mmd2_uniform
    wanted = setting.spread * setting.drift  # ‖g_v - g_init‖
    counted = 0.0 if setting.file.herds else setting.file.seed_weight * setting.seed_points
    seeds = (counted / setting.p * wanted) ** 2
    seeds /= 1.0 + seeds / (LARGEST_FLOOR * uniform)
    floor = FLOOR * uniform + seeds + _few_rounds(setting) * uniform
    square = _harm(target) + SUMMARY_WEIGHT * _harm(summary)
    strength = (square / HALFWAY) ** STEEPNESS
    expected = floor + SPOILT * uniform * strength / (1.0 + strength)
    return Prediction(
        expected=expected,
        floor=floor,
        seeds=seeds,
        uniform=uniform,
        measured=setting.data is not None,
    )


def _few_rounds(setting: PlanSetting) -> float:
    """The share of U that its number of rounds adds; none under `tender`, which chooses point by point."""
    if setting.file.herds:
        return 0.0
    return float(FEW_ROUNDS / setting.rounds**FEWER_ROUNDS)


def _harm(release: ReleaseError) -> float:
    """Weighted squared error of a coordinate."""
    return (FITTED_WEIGHT if release.is_simulated else 1.0) * release.error**2 / release.width


def verdict(
    setting: PlanSetting, target: ReleaseError, summary: ReleaseError, prediction: Prediction
) -> Verdict:
    """Whether the session is worth running by the rule of thumb, why, and what would make it so.

    With data, the rule says ``uncertain`` for ``good`` and ``poor``: it does not know the best that the
    owners' data can give.
    """
    if refused := refusal(setting):
        return refused
    share = prediction.expected / prediction.uniform
    compared = f"an MMD² of about {prediction.expected:.2g} is expected, {share:.2g} times a random choice's"
    if not prediction.measured:
        around = prediction.times_random
        compared += (
            f" if that is {prediction.uniform:.2g}; on other data it may be {around['low']:.2g} to "
            f"{around['high']:.2g} times, which the consumer's `hushbid preflight` measures"
        )
    if share < GOOD:
        private = all(RELEASES[release.mechanism].private for release in (target, summary))
        why = "The choice follows the data more than the noise" if private else "A release has no noise"
        word: Word = "uncertain" if prediction.measured else "good"
        return Verdict(verdict=word, reason=f"{why}: {compared}.")
    cause = (
        _floor_as_cause(setting)
        if prediction.floor > 0.5 * prediction.expected
        else _noise_as_cause(setting, target, summary)
    )
    hopeless = prediction.drowned >= EXPECTED_HOPELESS
    rank: Word = "hopeless" if hopeless else "uncertain" if prediction.measured else "poor"
    return Verdict(verdict=rank, reason=f"{cause}: {compared}.", remedies=_remedies(setting))


def refusal(setting: PlanSetting) -> Verdict | None:
    """The verdict on a session that is hopeless whatever is released; None if it is not."""
    if setting.refusal:
        return Verdict(verdict="hopeless", reason=setting.refusal, remedies=_other_rules(setting))
    if reason := _no_guarantee(setting):
        return Verdict(verdict="hopeless", reason=reason)
    rows = dict(zip(setting.file.owners, setting.owner_points, strict=True))
    if (available := all_sold(setting.file, rows)) is None:
        return None
    return Verdict(
        verdict="hopeless",
        reason=f"{offer(available, rows)} in all, so that a session for {setting.p:,} "
        "would buy every one of them and choose nothing.",
        remedies=({"change": "points", "points": max(1, available // 10)},) if available > 1 else (),
    )


def _no_guarantee(setting: PlanSetting) -> str:
    """Why δ is too large for one of the parties' data; empty if it is not, or nothing is guaranteed."""
    releases = (setting.file.target, setting.file.summary)
    if not all(RELEASES[release.mechanism].private for release in releases):
        return ""
    file = setting.file
    for name, delta, rows, whose in (
        ("validation", file.session.delta, setting.m, "the validation set"),
        ("owner_points", file.owners_delta, max(setting.owner_points), "the largest owner's points"),
    ):
        if setting.sources.get(name) == "assumed":
            continue
        try:
            check_delta_of(delta, rows, whose)
        except ConfigError as error:
            return error.what
    return ""


def _floor_as_cause(setting: PlanSetting) -> str:
    weight, rounds, batch = setting.file.seed_weight, setting.rounds, setting.file.batch
    if _few_rounds(setting) > FLOOR:
        return f"{rounds} rounds are few: the {batch:,} points of one do not see each other"
    counted = f", each of which counts {weight:g}" if weight < 1.0 else ""
    seeds = f"a seed set of {setting.seed_points:,}{counted}"
    return f"The purchase, {setting.p:,} points, has to make up for {seeds}"


def _noise_as_cause(setting: PlanSetting, target: ReleaseError, summary: ReleaseError) -> str:
    by_summary = SUMMARY_WEIGHT * _harm(summary) > _harm(target)
    worse, what = (summary, "the summary's") if by_summary else (target, "the target's")
    if worse.calibrations is not None:
        section = setting.file.summary if by_summary else setting.file.target
        scale = worse.calibrations[str(section.parameters["calibration"])]["laplace_scale"]
        return (
            f"The noise drowns {what} releases, with a Laplace scale of {scale:.3g} on coordinate sums that "
            f"{worse.count:,.0f} points can bring to {worse.count:,.0f} at most"
        )
    return (
        f"The noise on {what} mean embedding has a norm of {worse.error:.2g}, where what is to be seen has "
        f"{setting.spread * setting.drift:.2g}"
    )


# -- remedies --------------------------------------------------------------------------------------------


def _remedies(setting: PlanSetting) -> tuple[dict[str, Any], ...]:
    """Changes that would make the session good: another release; or more points, D_v or ε with that one."""
    found: list[dict[str, Any]] = []
    epsilons = _epsilons(setting)
    if epsilons is None:  # no ε can help where there is no noise
        return tuple(_more(setting))
    others = [table.mechanism for table in (setting.file.target, setting.file.summary)]
    filtered = setting.with_releases(DEFAULT_RELEASE, *epsilons)
    named: dict[str, Any] = {}
    if others != [DEFAULT_RELEASE] * 2:
        named = {"release": DEFAULT_RELEASE}
        if _is_good(filtered):
            return (
                {
                    "change": "release",
                    **named,
                    **_both(setting, epsilons),
                    "mmd2": _expected(filtered),
                },
            )
    found += _more(filtered)
    if epsilon := _more_epsilon(setting, epsilons):
        found.append(epsilon)
    if not found:  # no single change is enough: as many points as possible, and then ε
        most = _most_points(filtered)
        epsilon = _more_epsilon(filtered.with_session(points=most), epsilons) if most > setting.p else None
        found += [{**epsilon, "change": "points and epsilon", "points": most}] if epsilon else []
    return tuple({**remedy, **named} for remedy in found)


def _more(setting: PlanSetting) -> list[dict[str, Any]]:
    """The smallest D_v, and the fewest points, that make it good."""

    def with_validation(m: int) -> PlanSetting:
        return replace(setting, m=m)

    def with_points(p: int) -> PlanSetting:
        return setting.with_session(points=p)

    found: list[dict[str, Any]] = []
    for name, changed, low, high in (
        ("validation", with_validation, setting.m, LARGEST_VALIDATION),
        ("points", with_points, setting.p, _most_points(setting)),
    ):
        if (value := _least(changed, low, high)) is not None:
            found.append({"change": name, name: value, "mmd2": _expected(changed(value))})
    return found


def _most_points(setting: PlanSetting) -> int:
    """A quarter of all points, which leaves a choice; as many as owners can submit, under `tender`."""
    file, quarter = setting.file, sum(setting.owner_points) // 4
    if file.herds:
        submitted = len(file.owners) * (file.session.batch or file.most_in_a_bid)
        return min(quarter, submitted, MOST_HERDED)
    return min(quarter, limits.MAX_POINTS)


def _more_epsilon(setting: PlanSetting, epsilons: tuple[float, float]) -> dict[str, Any] | None:
    """The smallest ε that does where either side has less, with the default release."""

    def raised(level: float) -> tuple[float, float]:
        owners, consumer = epsilons
        return max(owners, level), max(consumer, level)

    def changed(level: float) -> PlanSetting:
        return setting.with_releases(DEFAULT_RELEASE, *raised(level))

    low, high = min(epsilons), LARGEST_EPSILON
    if high <= low or not _is_good(changed(high)):
        return None
    while high > low * PRECISION:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if _is_good(changed(middle)) else (middle, high)
    return {"change": "epsilon", **_both(setting, raised(high)), "mmd2": _expected(changed(high))}


def _least(changed: Callable[[int], PlanSetting], low: int, high: int) -> int | None:
    """The smallest value above `low` that makes a session good, to `PRECISION`; None up to `high`."""
    if high <= low or not _is_good(changed(high)):
        return None
    while high > low + 1 and high > low * PRECISION:
        middle = round(math.sqrt(low * high))
        middle = min(max(middle, low + 1), high - 1)
        low, high = (low, middle) if _is_good(changed(middle)) else (middle, high)
    return high


def _expected(setting: PlanSetting) -> float:
    return predict(setting, *release_errors(setting)).expected


def _is_good(setting: PlanSetting) -> bool:
    return _expected(setting) < GOOD * setting.mmd2_uniform


def _epsilons(setting: PlanSetting) -> tuple[float, float] | None:
    """The sound ε of the owners and of the consumer, as it is now; None where one is not protected."""
    session = setting.session()
    delta = setting.file.session.delta
    owners = session.summary.guarantee(neighbours=Neighbours.ADD_REMOVE_ONE, delta=delta).epsilon
    consumer = session.target.guarantee(neighbours=Neighbours.SUBSTITUTE_ONE, delta=delta).epsilon
    if setting.file.herds:  # the owners' own is 0, whatever the noise
        owners = consumer
    return (owners, consumer) if owners and consumer else None


def _both(setting: PlanSetting, epsilons: tuple[float, float]) -> dict[str, float]:
    """What a remedy says of ε: the consumer's alone, where nothing is released of owners."""
    owners = {} if setting.file.herds else {"epsilon_owners": epsilons[0]}
    return {**owners, "epsilon_consumer": epsilons[1]}


def _other_rules(setting: PlanSetting) -> tuple[dict[str, Any], ...]:
    """Another rule; and the fewest owners that this one is for, if a session may have so many."""
    section, session = setting.file.acquisition, setting.file.session
    remedies: list[dict[str, Any]] = [{"change": "rule", "rule": "sealed"}]

    def admits(owners: int) -> bool:
        try:
            acquisition_rule(
                section.rule, section.parameters, owners=owners, rounds=setting.rounds, delta=session.delta
            )
        except ConfigError:
            return False
        return True

    now, most = len(setting.owner_points), limits.MAX_OWNERS
    if admits(most):
        fewest = bisect_left(range(most), True, lo=now + 1, key=admits)
        remedies.append({"change": "owners", "owners": fewest})
    return tuple(remedies)
