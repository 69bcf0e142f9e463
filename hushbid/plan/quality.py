"""A verdict on a planned session by the rule of thumb, which ignores the data: a rehearsal decides."""

from __future__ import annotations

from pydantic.dataclasses import dataclass as figures

from hushbid.consumer.answers import Word
from hushbid.consumer.verdict import EXPECTED_HOPELESS, GOOD
from hushbid.plan.noise import ReleaseError
from hushbid.plan.prediction import FLOOR, SUMMARY_WEIGHT, Prediction, few_rounds, harm
from hushbid.plan.remedies import Remedy, other_rules, remedies_of
from hushbid.plan.setting import PlanSetting
from hushbid.plan.supply import all_sold, offer
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.figures import Figures
from hushbid.protocol.privacy.accounting.validation import check_delta_of
from hushbid.protocol.privacy.releases import RELEASES

__all__ = ["Judged", "refusal", "verdict"]


@figures(frozen=True, slots=True, kw_only=True)
class Judged(Figures):
    """Whether a session is worth running, and why.

    Attributes:
        verdict: ``good``: MMD² is expected below half of a random choice's; ``poor``: it is not;
            ``hopeless``: noise and few rounds alone bring it to a random choice's, or it cannot be run. With
            data the verdict is a rehearsal's, and ``uncertain`` in place of ``poor``
            (`hushbid.plan.with_data`).
        remedies: Empty for a session that is good, or was rehearsed.
    """

    verdict: Word
    reason: str
    remedies: tuple[Remedy, ...] = ()


def verdict(
    setting: PlanSetting, target: ReleaseError, summary: ReleaseError, prediction: Prediction
) -> Judged:
    """Whether the session is worth running by the rule of thumb, why, and what would make it so."""
    if refused := refusal(setting):
        return refused
    share = prediction.expected / prediction.uniform
    compared = f"an MMD² of about {prediction.expected:.2g} is expected, {share:.2g} times a random choice's"
    if not prediction.measured:
        around = prediction.times_random
        compared += (
            f" if that is {prediction.uniform:.2g}; on other data it may be {around.low:.2g} to "
            f"{around.high:.2g} times, which the consumer's `hushbid preflight` measures"
        )
    if share < GOOD:
        private = all(RELEASES[release.mechanism].private for release in (target, summary))
        why = "The choice follows the data more than the noise" if private else "A release has no noise"
        return Judged(verdict="good", reason=f"{why}: {compared}.")
    cause = (
        _floor_as_cause(setting)
        if prediction.floor > 0.5 * prediction.expected
        else _noise_as_cause(setting, target, summary)
    )
    word: Word = "hopeless" if prediction.drowned >= EXPECTED_HOPELESS else "poor"
    return Judged(verdict=word, reason=f"{cause}: {compared}.", remedies=remedies_of(setting))


def refusal(setting: PlanSetting) -> Judged | None:
    """The verdict on a session that is hopeless whatever is released; None if it is not."""
    if setting.refusal:
        return Judged(verdict="hopeless", reason=setting.refusal, remedies=other_rules(setting))
    if reason := _no_guarantee(setting):
        return Judged(verdict="hopeless", reason=reason)
    rows = dict(zip(setting.file.owners, setting.owner_points, strict=True))
    if (available := all_sold(setting.file, rows)) is None:
        return None
    return Judged(
        verdict="hopeless",
        reason=f"{offer(available, rows)} in all, so that a session for {setting.p:,} "
        "would buy every one of them and choose nothing.",
        remedies=(Remedy(change="points", points=max(1, available // 10)),) if available > 1 else (),
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
    if few_rounds(setting) > FLOOR:
        return f"{rounds} rounds are few: the {batch:,} points of one do not see each other"
    counted = f", each of which counts {weight:g}" if weight < 1.0 else ""
    seeds = f"a seed set of {setting.seed_points:,}{counted}"
    return f"The purchase, {setting.p:,} points, has to make up for {seeds}"


def _noise_as_cause(setting: PlanSetting, target: ReleaseError, summary: ReleaseError) -> str:
    by_summary = SUMMARY_WEIGHT * harm(summary) > harm(target)
    worse, what = (summary, "the summary's") if by_summary else (target, "the target's")
    if worse.calibrations is not None:
        section = setting.file.summary if by_summary else setting.file.target
        scale = worse.calibrations[str(section.parameters["calibration"])].laplace_scale
        return (
            f"The noise drowns {what} releases, with a Laplace scale of {scale:.3g} on coordinate sums that "
            f"{worse.count:,.0f} points can bring to {worse.count:,.0f} at most"
        )
    return (
        f"The noise on {what} mean embedding has a norm of {worse.error:.2g}, where what is to be seen has "
        f"{setting.spread * setting.drift:.2g}"
    )
