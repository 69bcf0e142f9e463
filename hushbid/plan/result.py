"""A plan: all its figures, as a record that is its own JSON (docs/plan.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from pydantic.dataclasses import dataclass as figures

from hushbid.consumer.answers import Basis, Word, said
from hushbid.plan.batches import BatchOption, batches
from hushbid.plan.noise import ReleaseError, noise_values, owners_error, release_errors
from hushbid.plan.prediction import Expected, predict
from hushbid.plan.quality import refusal, verdict
from hushbid.plan.remedies import Remedy
from hushbid.plan.setting import PlanSetting
from hushbid.plan.speed import Speed, Times, times
from hushbid.plan.submissions import Submissions, submissions
from hushbid.plan.theory import Theory, theory_of
from hushbid.plan.traffic import Traffic, points_accessed, traffic
from hushbid.plan.wanted import Wanted, wanted_of
from hushbid.plan.with_data import NOT_REHEARSED, Rehearsed, judge
from hushbid.protocol import platform
from hushbid.protocol.figures import Figures
from hushbid.protocol.printable import printable
from hushbid.protocol.privacy.settlement import SettlementTerms
from hushbid.protocol.session.guarantee import PrivacyStatement

__all__ = ["Plan", "make_plan"]


@figures(frozen=True, kw_only=True, repr=False)
class Plan(Figures, Mapping[str, Any]):
    """The estimate of a session. As a mapping it is its own JSON.

    If the session's acquisition rule is refused, figures that depend on the rule are None, or empty.

    Attributes:
        verdict, reason, remedies: `hushbid.plan.quality.Judged`.
        wanted: Whether to buy by this protocol; None: the share of wanted points was not given.
        owners: Their number.
        points, batch, rounds, validation, dimension, columns: p, b, ⌈p/b⌉, |D_v|, d, columns of a raw point.
        owner_points, owner_points_total: Points of the largest owner, and of all.
        spread, drift: `hushbid.plan.setting.PlanSetting`, as `sources`.
        target: The consumer's release of D_v; the curator's, if that has a finer one than `target_owners`.
        summary: The curator's last release of the summary.
        rehearsal: The rehearsal; None without data.
        bytes: Bytes that parties send and receive.
        noise_values: Noise values that all parties together draw, by distribution.
        seconds: Its duration by `speed`, which was measured on this machine.
        round_trip: Seconds that a frame and its answer are in transit.
        theory: The conditions of the paper's theorems; None: not requested.
        submissions: What an owner submits; None for a session in rounds.
    """

    TOLD: ClassVar[Mapping[str, str]] = {"called": "called", "parsimony": "parsimony"}

    session: str
    verdict: Word
    verdict_by: Basis
    reason: str
    remedies: tuple[Remedy, ...]
    wanted: Wanted | None
    owners: int
    points: int
    batch: int
    rounds: int
    seed_weight: float
    validation: int
    dimension: int
    owner_points: int
    owner_points_total: int
    seed_points: int
    columns: int
    rule: str
    delta: float
    spread: float
    drift: float
    sources: Mapping[str, str]
    target: ReleaseError
    target_owners: ReleaseError | None
    summary: ReleaseError
    mmd2: Expected
    rehearsal: Rehearsed | None
    points_accessed_curator: float | None
    bytes: Traffic | None
    noise_values: Mapping[str, int]
    settlement: SettlementTerms | None
    seconds: Times | None
    round_trip: float
    theory: Theory | None
    batches: tuple[BatchOption, ...]
    submissions: Submissions | None
    speed: Speed
    privacy: tuple[PrivacyStatement, ...]

    def __repr__(self) -> str:
        sizes = f"{self.points} points of {self.owners} owners"
        return f"<Plan of {printable(self.session)!r}: {self.called}, {sizes}>"

    @property
    def called(self) -> str:
        """The verdict as people read it; the rule of thumb's is marked as ignoring the data."""
        return said(self.verdict, by_rule=self.verdict_by == "the rule of thumb")

    @property
    def parsimony(self) -> float | None:
        """Distinct raw points that the curator receives, over p + m."""
        accessed = self.points_accessed_curator
        return None if accessed is None else accessed / (self.points + self.validation)

    def __getitem__(self, name: str) -> Any:
        return self.as_json()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.as_json())

    def __len__(self) -> int:
        return len(self.as_json())


def make_plan(
    setting: PlanSetting,
    speed: Speed,
    *,
    cores: int | None = None,
    round_trip: float = 0.1,
    wanted: float | None = None,
    theory: bool = False,
    played: Rehearsed | None = None,
) -> Plan:
    """Plan a setting.

    Args:
        setting: The planned setting.
        speed, cores: Of the machine that runs it (`measure_speed`); no cores: this machine's.
        round_trip: Seconds for a frame and its answer (`batches`).
        wanted: The share of the owners' points that resemble the target, in (0, 1]; None: unknown.
        theory: Whether to include the conditions and promises of DPDS's theorems.
        played: The rehearsal, if there are data (`hushbid.plan.with_data`); None: it was left out.

    Raises:
        ConfigError: A mechanism is impossible.
    """
    cores = cores or platform.cores()
    target, summary = release_errors(setting)
    predicted = predict(setting, target, summary)
    by_rule = partial(verdict, setting, target, summary, predicted)
    if setting.data is None:
        judged, expected = by_rule(), predicted.told()
    else:
        played = played or NOT_REHEARSED
        judged, expected = judge(setting, played, by_rule), played.expected(predicted)
    available, accessed = sum(setting.owner_points), points_accessed(setting)
    refused, file, session = bool(setting.refusal), setting.file, setting.session()
    share = None
    if wanted is not None:
        drowned = judged.verdict == "hopeless"
        share = wanted_of(wanted, points=setting.p, available=available, drowned=drowned)
    # If sessions were played, the MMD² of other batches is proportional to their outcome.
    scale = expected.span.expected / predicted.expected
    rows = () if refused else batches(setting, speed, cores=cores, round_trip=round_trip)
    return Plan(
        **Plan.shared(judged),
        session=file.session.name,
        verdict_by=_judged_by(setting, played),
        wanted=share,
        owners=len(setting.owner_points),
        points=setting.p,
        batch=file.batch,
        rounds=setting.rounds,
        seed_weight=file.seed_weight,
        validation=setting.m,
        dimension=file.features.dimension,
        owner_points=max(setting.owner_points),
        owner_points_total=available,
        seed_points=setting.seed_points,
        columns=file.features.columns,
        rule=file.acquisition.rule,
        delta=file.session.delta,
        spread=setting.spread,
        drift=setting.drift,
        sources=setting.sources,
        target=target,
        target_owners=owners_error(setting),
        summary=summary,
        mmd2=expected,
        rehearsal=played,
        points_accessed_curator=accessed,
        bytes=None if refused else traffic(setting, accessed),
        noise_values=noise_values(setting),
        settlement=None if refused else session.settlement_terms,
        seconds=None if refused else times(setting, speed, cores=cores),
        round_trip=round_trip,
        theory=theory_of(setting) if theory else None,
        batches=tuple(replace(row, mmd2=row.mmd2 * scale) for row in rows),
        submissions=None if refused else submissions(setting),
        speed=speed,
        privacy=() if refused else session.privacy(),
    )


def _judged_by(setting: PlanSetting, played: Rehearsed | None) -> Basis:
    if refusal(setting):
        return "the session's settings"
    if played is None or played.verdict.word is None:
        return "the rule of thumb"
    return "own rows" if played.verdict.by_model else "a rehearsal"
