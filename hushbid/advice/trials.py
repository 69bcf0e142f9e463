"""The outcome of a width, a dimension and an ε: rehearsed, or by the rule of thumb of `hushbid plan`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from pydantic.dataclasses import dataclass as figures

from hushbid.consumer.answers import Word
from hushbid.consumer.drawn_seed_set import STREAM, drawn_seed_set
from hushbid.consumer.verdict import GOOD, Rehearsal, Verdict
from hushbid.plan.noise import ReleaseError, release_errors
from hushbid.plan.prediction import Prediction, predict
from hushbid.plan.quality import verdict
from hushbid.plan.rehearsal import FEWEST, looked_at, rehearse
from hushbid.plan.setting import PlanSetting, setting_of
from hushbid.plan.tables import DEFAULT_RELEASE, default_rule, names_only, no_network, release_table
from hushbid.plan.verdict import Sets, prospect_of, what_is_wrong
from hushbid.protocol.config.labels import LabelsSection
from hushbid.protocol.config.loading import validated
from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.data import Dataset
from hushbid.protocol.data.schema import Schema
from hushbid.protocol.figures import Figures
from hushbid.protocol.privacy.acquisition.sealed import Sealed
from hushbid.protocol.privacy.noise import SimulatedNoise
from hushbid.protocol.session.session import Session, open_session

__all__ = ["DIMENSION", "MOST", "SEED_POINTS", "Bounds", "Request", "Trial", "Trials"]

DIMENSION: Final = 140
"""d of the trials, and of sessions in rounds."""
MOST: Final = 5_000
"""Most rows, and points, in a rehearsal: some eight settings are rehearsed, one after the other."""
SEED_POINTS: Final = 150
"""Points of a drawn seed set, where no file is named."""

_Rows: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Bounds:
    """Public bounds of the columns: one number for all, or one for each, in the data's own units."""

    lower: float | list[float]
    upper: float | list[float]


@dataclass(frozen=True, kw_only=True)
class Request:
    """The known facts, and the settings already fixed; None means unknown, or to be proposed.

    Attributes:
        validation: D_v, raw, at least two rows.
        schema: The session's columns; None: points are numbers.
        public: Public rows of the same kind.
        seed_set: D_init; None: `seed_points` rows will be drawn.
        bounds: None: those of the public rows.
        owners: Each owner's points, by name.
        points: p.
        wanted: Share of the owners' points that resemble D_v.
        column_values: The session's maximum of distinct values per column; None: any number.
        effect: MMD² relative to that of a uniform choice, both with weights, that ε must reach; None: `GOOD`.
        choice: Whether labels take part in the selection; None: public rows decide.
        labels: The possible labels, which are public; None: those of the public rows.
        in_rounds: Whether the file to be completed names a rule in rounds.
        rehearse: Whether sessions may be rehearsed; else ε follows the rule of thumb of `hushbid plan`.
    """

    validation: Dataset
    schema: Schema | None = None
    public: Dataset | None = None
    seed_set: Dataset | None = None
    bounds: Bounds | None = None
    owners: Mapping[str, int] = field(default_factory=dict)
    points: int | None = None
    wanted: float | None = None
    gamma: float | None = None
    dimension: int | None = None
    epsilon: float | None = None
    seed_points: int = SEED_POINTS
    column_values: int | None = None
    effect: float | None = None
    choice: Literal["features", "labels"] | None = None
    labels: LabelsSection | None = None
    in_rounds: bool = False
    rehearse: bool = True

    def rule(self, points: int) -> str:
        return Sealed.name if self.in_rounds else default_rule(points)

    @property
    def names(self) -> list[str]:
        """The owners' names; one name for all if none is known."""
        return list(self.owners) or ["owner-1"]


@figures(frozen=True, slots=True, kw_only=True)
class Trial(Figures):
    """A width, a dimension and an ε, and their outcome.

    Attributes:
        kernel: `mean_kernel` of the rows.
        rehearsal: None: there was none.
        expected: Without a rehearsal, MMD² over a uniform choice's by the rule of thumb, without weights.
    """

    TOLD: ClassVar[Mapping[str, str]] = {"reach": "reach", "ratio": "ratio"}

    gamma: float
    dimension: int
    epsilon: float
    kernel: float
    rehearsal: Rehearsal | None = None
    expected: float | None = None

    @property
    def ratio(self) -> float:
        """MMD² over that of a uniform choice: the larger of those where a tenth and a fiftieth is wanted.

        With weights if it was rehearsed; infinite where the kernel can tell nothing.
        """
        if self.rehearsal is not None:
            return self.rehearsal.little
        assert self.expected is not None, "otherwise it was rehearsed"
        return self.expected

    @property
    def reach(self) -> float:
        """Distance at which the kernel falls to one half, on columns scaled to [0, 1]."""
        return math.sqrt(math.log(2.0) / self.gamma)


class Trials:
    """Sessions with the fixed settings, and their outcomes; each is rehearsed once."""

    def __init__(
        self, request: Request, bounds: Bounds, points: int, delta: float, say: Callable[[str], object]
    ) -> None:
        self.request, self.points, self.delta = request, points, delta
        self.effect = GOOD if request.effect is None else request.effect
        self.rows = _stand_in(request)
        self.rehearses = request.rehearse and len(self.rows) >= FEWEST and points <= MOST
        self.labels: LabelsSection | None = None
        """The `[labels]` of `session`: labels take part once this is set."""
        self._bounds, self._say = bounds, say
        self._found: dict[tuple[float, int, float], Trial] = {}
        features = self.session(1.0, DIMENSION, 1.0).file.features
        dtype = request.validation.features.dtype
        seeds = request.seed_set or drawn_seed_set(
            features,
            request.seed_points,
            dtype,
            SimulatedNoise(0, STREAM).random_bytes,
            column_values=request.column_values,
            schema=request.schema,
        )
        self.seeds: _Rows = seeds.features.astype(np.float64)

    def session(self, gamma: float, dimension: int, epsilon: float) -> Session:
        """A session with the default rule and releases, and owners without keys."""
        request = self.request
        tables = {
            "session": {
                "name": "advised",
                "points": self.points,
                "delta": self.delta,
                "column_values": request.column_values,
            },
            "features": {
                "dimension": dimension,
                "gamma": gamma,
                "columns": int(request.validation.features.shape[1]),
                "lower": self._bounds.lower,
                "upper": self._bounds.upper,
            },
            "target": release_table("target", DEFAULT_RELEASE, epsilon),
            "summary": release_table("summary", DEFAULT_RELEASE, epsilon),
            "acquisition": {"rule": request.rule(self.points)},
            "network": no_network(),
            "roster": names_only(request.names),
            **({} if request.schema is None else {"columns": list(request.schema.columns)}),
            **({} if self.labels is None else {"labels": self.labels.model_dump()}),
        }
        return open_session(validated(SessionFile, tables, where="the command line"))

    def of(self, gamma: float, dimension: int, epsilon: float) -> Trial:
        """The outcome of these settings, rehearsed if possible, and otherwise by the rule of thumb."""
        key = gamma, dimension, epsilon
        if key not in self._found:
            session = self.session(*key)
            looked, played, expected = self.looked_at(session, self.rows), None, None
            if self.rehearses:
                self._say(f"Rehearsing γ = {gamma:g}, d = {dimension}, ε = {epsilon:g}.")
                played = rehearse(session, self.rows, self.seeds, looked=looked)
            else:
                prediction = self._by_rule(session)[-1]
                expected = prediction.expected / prediction.uniform
            self._found[key] = Trial(
                gamma=gamma,
                dimension=dimension,
                epsilon=epsilon,
                kernel=looked.kernel,
                rehearsal=played,
                expected=expected,
            )
        return self._found[key]

    def looked_at(self, session: Session, rows: _Rows) -> Rehearsal:
        """What the kernel reveals about these rows and the seed set."""
        return looked_at(session, rows, self.seeds, drawn=self.request.seed_set is None)

    @property
    def found(self) -> list[Trial]:
        return list(self._found.values())

    def verdict(self, trial: Trial, own: Rehearsal | None) -> tuple[Word, str, bool]:
        """The verdict on a trial and its reason: that of `preflight` and `consumer`, or of `hushbid plan`.

        It is for the consumer's eyes: no proposed setting depends on it.

        Args:
            own: Its rehearsal with D_v itself, where public rows stood for it.

        Returns:
            The word, the reason, and whether both are the rule of thumb's.
        """
        session = self.session(trial.gamma, trial.dimension, trial.epsilon)
        looked = self.looked_at(session, self.rows)
        if not self.rehearses and not looked.blind:
            judged = verdict(*self._by_rule(session))
            return judged.verdict, f"By the rule of thumb of `hushbid plan`: {judged.reason}", True
        found = Verdict(own or trial.rehearsal or looked)
        if found.refused:
            what, advice = what_is_wrong(session, self.rows, found)
            return "hopeless", f"{found.since(what)} {advice}", False
        validation = self.request.validation
        found = replace(found, prospect=prospect_of(session, Sets(validation, validation)))
        return found.word or "uncertain", found.sentence(), False

    def _by_rule(self, session: Session) -> tuple[PlanSetting, ReleaseError, ReleaseError, Prediction]:
        """The session as `hushbid plan` sees it, its errors, and the rule of thumb's expectation for it."""
        validation, sizes = self.request.validation, self.request.owners.values()
        each = max(1, sum(sizes) // len(sizes)) if sizes else None
        setting = setting_of(
            session.file, validation=len(validation), seed_points=len(self.seeds), owner_points=each
        )
        target, summary = release_errors(setting)
        return setting, target, summary, predict(setting, target, summary)


def _stand_in(request: Request) -> _Rows:
    """The rows for the rehearsal: as many public rows as D_v has, or D_v; `MOST` at most."""
    generator, rows = np.random.default_rng(0), request.validation.features
    count = min(len(rows), MOST)
    if request.public is not None:
        rows = request.public.features
    elif len(rows) == count:  # in their order: `hushbid preflight` rehearses with the same rows
        return np.asarray(rows, dtype=np.float64)
    few = len(rows) < count
    return np.asarray(rows[generator.choice(len(rows), size=count, replace=few)], dtype=np.float64)
