"""The result of `hushbid run` and `hushbid simulate`: a record that is its own JSON (docs/results.md)."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field
from pydantic.dataclasses import dataclass

from hushbid.cluster.evaluation import Baselines, NotComputed
from hushbid.consumer.appraisal import Judgement
from hushbid.consumer.course import ClosenessCourse
from hushbid.consumer.judgement import judged
from hushbid.consumer.model_figures import NO_MODEL, ModelFigures
from hushbid.consumer.own_figures import OwnFigures
from hushbid.consumer.result import PurchaseResult
from hushbid.consumer.seed_distance import SeedDistance
from hushbid.consumer.verdict import NO_VERDICT, Verdict
from hushbid.curator.ledger import PointFault
from hushbid.curator.result import RefusalOf, Sale
from hushbid.protocol.figures import Figures
from hushbid.protocol.printable import printable
from hushbid.protocol.privacy.payment import PaidStatement
from hushbid.protocol.privacy.settlement import SettlementTerms
from hushbid.protocol.session.guarantee import PrivacyStatement
from hushbid.protocol.session.odometer import Odometer, odometers
from hushbid.protocol.session.session import Session
from hushbid.protocol.space.prices import Bill
from hushbid.results.standing import Standing, beside_uniform

__all__ = ["Choices", "RunResult"]


@dataclass(frozen=True, slots=True)
class Choices(Figures):
    """The quality of the delivered points, and of the baselines (`hushbid.cluster.evaluation`)."""

    run: Judgement = Judgement()
    greedy: Judgement = Judgement()
    uniform: Judgement = Judgement()


@dataclass(frozen=True, kw_only=True, repr=False)
class RunResult(Figures):
    """The result of a procurement.

    Attributes:
        owners: Their number.
        choices: The delivered points and the choices that they are compared with.
        test_unlike: Whether the test points are of another distribution than D_v; None: there are none.
        not_computed: Figures of `choices` that the operator left out.
        own: Figures of the consumer alone: baselines, label shares, and owners' exact parts.
        model: Whether the consumer's model improves, beside a uniform choice.
        display: Owners' display names, by their names here; other owners have none.
        transcripts: Party → its transcript.
    """

    FLAT: ClassVar[frozenset[str]] = frozenset({"own", "verdict"})
    TOLD: ClassVar[Mapping[str, str]] = {
        "rounds_per_second": "rounds_per_second",
        "mmd2": "mmd2",
        "accuracy": "accuracy",
        "mmd2_greedy": "choices.greedy.plain.mmd2",
        "mmd2_uniform": "choices.uniform.plain.mmd2",
        "accuracy_greedy": "choices.greedy.plain.accuracy",
        "accuracy_uniform": "choices.uniform.plain.accuracy",
        "beside_uniform": "standing",
        "parsimony": "parsimony",
        "judgement": "sentences",
    }

    session: str
    p: int
    batch: int
    seed_weight: float
    rule: str
    jitter: float
    distinct: bool
    owners: int
    rounds: int
    wall_seconds: float
    choices: Choices
    test_unlike: bool | None = None
    not_computed: tuple[NotComputed, ...] = ()
    own: OwnFigures = OwnFigures()
    model: ModelFigures = NO_MODEL
    points_accessed_curator: int
    points_delivered: int
    unlabelled: int = 0
    unidentified: int = 0
    unweighted: int = 0
    test_shared: float | None = None
    display: Mapping[str, str] = Field(default_factory=dict)
    disputed: int
    m: int
    seed_distance: SeedDistance | None = None
    course: ClosenessCourse | None = None
    seed_set_drawn: bool = False
    verdict: Verdict = NO_VERDICT
    privacy: tuple[PrivacyStatement, ...]
    odometers: Annotated[tuple[Odometer, ...], Field(alias="odometer")]
    settlement: Mapping[str, float]
    settlement_terms: SettlementTerms
    settlement_standard_error: Mapping[str, float | None] = Field(default_factory=dict)
    settlement_paid: PaidStatement | None = None
    bill: Bill | None = None
    absences: Mapping[str, int]
    faults: tuple[PointFault, ...]
    refusals: tuple[RefusalOf, ...] = ()
    failed_parties: Mapping[str, str] = Field(default_factory=dict)
    transcripts: Mapping[str, Path] = Field(default_factory=dict)
    data: Path | None = None
    directory: Path | None = None
    processes: Mapping[str, int] = Field(default_factory=dict)
    report: Path | None = None
    replay: Path | None = None

    @classmethod
    def told(
        cls, session: Session, reference: Baselines, *, curator: Sale, consumer: PurchaseResult, **kept: Any
    ) -> RunResult:
        """The result of a session, from those of its curator and consumer.

        Args:
            reference: The operator's baselines.
            kept: Attributes for paths and processes.
        """
        file = session.file
        facts = {
            "batch": file.batch,
            "seed_weight": file.seed_weight,
            "rule": file.acquisition.rule,
            "jitter": file.jitter,
            "distinct": file.distinct,
            "owners": len(file.owners),
            "choices": Choices(consumer.judgement, reference.greedy, reference.uniform),
            "test_unlike": reference.test_unlike,
            "not_computed": reference.not_computed,
            "model": consumer.model.beside(reference.uniform_model),
            "points_accessed_curator": curator.points_accessed,
            "privacy": session.privacy(),
            "odometers": odometers(session, curator.rounds, settled=True),
            "settlement_terms": session.settlement_terms,
            "faults": curator.faults,
            "bill": curator.bill,
            "wall_seconds": curator.wall_seconds,
        }
        return cls(**{**cls.shared(curator, consumer), **facts, **kept})

    def __repr__(self) -> str:
        found = self.model.own_and_bought or self.model.bought
        metric = "R²" if self.model.metric == "r2" else "accuracy"
        right = "" if found is None else f", {metric} {found.value:.3f}"
        bought = f"{self.points_delivered} of {self.p} points of {self.owners} owners"
        return f"<RunResult of {printable(self.session)!r}: {bought}{right}>"

    def _repr_html_(self) -> str:
        from hushbid.results.terminal import as_text  # which imports rich

        return f"<pre>{escape(as_text(self))}</pre>"

    @property
    def sentences(self) -> tuple[str, str]:
        """Whether the model improved on own rows alone; and which guarantee protects whom, at what ε."""
        return judged(self.model, self.privacy)

    @property
    def mmd2(self) -> float | None:
        """MMD² of the delivered points, without the seed set, against D_v."""
        return self.choices.run.plain.mmd2

    @property
    def accuracy(self) -> float | None:
        """Accuracy of the consumer's downstream model, trained on the delivered points without weights."""
        return self.choices.run.plain.accuracy

    @property
    def standing(self) -> Standing | None:
        """The delivered points compared with a uniform choice; None if a figure is missing."""
        return beside_uniform(self.choices.run, self.choices.uniform, unlike=bool(self.test_unlike))

    @property
    def rounds_per_second(self) -> float | None:
        """None if no time was measured."""
        return self.rounds / self.wall_seconds if self.wall_seconds > 0 else None

    @property
    def parsimony(self) -> float:
        """Distinct raw points that the curator accessed, over p + m (DESIGN §3)."""
        return self.points_accessed_curator / (self.p + self.m)
