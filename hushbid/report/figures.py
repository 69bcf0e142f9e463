"""The figures of a report, computed from transcripts: plain values, without any markup.

docs/report.md gives each field's meaning, its formula, and the transcript that it needs. A figure that the
given transcripts lack is None, and `ReportFigures.missing` says which file would have it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from hushbid.consumer.judgement import judged
from hushbid.consumer.model_figures import ModelFigures
from hushbid.consumer.store import read_verdict
from hushbid.consumer.verdict import Verdict
from hushbid.protocol.finite import finite
from hushbid.protocol.privacy.acquisition import RULES
from hushbid.protocol.privacy.settlement import SettlementTerms
from hushbid.protocol.session.guarantee import OWNERS_DATA, PrivacyStatement
from hushbid.protocol.session.odometer import Odometer, odometers
from hushbid.report.curves import EvaluationFile, QualityCurves, quality_of, read_evaluation
from hushbid.report.incidents import Incidents, incidents_of
from hushbid.report.missing import Missing, missing_of
from hushbid.report.naming import named
from hushbid.report.own_rows import OwnRows
from hushbid.report.owners import OwnerFigures, owners_of
from hushbid.report.pictures import Pictures, pictures_of
from hushbid.report.rounds import RoundFigures, rounds_of, wins_of
from hushbid.report.sources import TranscriptSource

__all__ = ["ReportFigures", "SessionFacts", "TranscriptFacts", "figures_of"]


@dataclass(frozen=True, kw_only=True)
class SessionFacts:
    """The session file without its seeds, and other public facts; None: not on record."""

    name: str
    identifier: str
    points: int
    owners: int
    min_owners: int
    delta: float
    features: Mapping[str, Any]
    target: Mapping[str, Any]
    summary: Mapping[str, Any]
    acquisition: Mapping[str, Any]
    noise: str
    allow_nonprivate: bool
    m: int | None
    seed_points: int | None
    bought: int | None


@dataclass(frozen=True, kw_only=True)
class TranscriptFacts:
    """What a transcript is, and how far it can be trusted: its chain holds, or there would be no report."""

    party: str
    role: str
    records: int
    head: str
    replayed: bool
    redacted_fields: int
    private_fields: int
    torn_bytes: int
    software: str
    environment: Mapping[str, Any]
    finish: Mapping[str, Any] | None


_UNTOLD: Final = ModelFigures(why="no transcript tells, and the consumer's result does (`--evaluation`)")


@dataclass(frozen=True, kw_only=True)
class ReportFigures:
    """Everything that a report shows."""

    session: SessionFacts
    transcripts: tuple[TranscriptFacts, ...]
    quality: QualityCurves
    verdict: Verdict | None
    """On record beside the consumer's transcript, if that is not redacted."""
    rounds: RoundFigures
    owners: OwnerFigures
    settlement_terms: SettlementTerms
    privacy: tuple[PrivacyStatement, ...]
    odometers: tuple[Odometer, ...]
    incidents: Incidents
    missing: tuple[Missing, ...]
    pictures: Pictures | None = None
    """Figures of the consumer's private rows, if it requested them."""

    @property
    def sentences(self) -> tuple[str, str]:
        """Whether the model improved on own rows alone; and which guarantee protects whom, at what ε."""
        appraisal = self.quality.appraisal
        return judged((None if appraisal is None else appraisal.model) or _UNTOLD, self.privacy)

    @property
    def blind(self) -> bool:
        """Whether the session's curator orders boxes that it cannot read."""
        return RULES[self.session.acquisition["rule"]].blind

    def as_json(self) -> dict[str, Any]:
        """The figures in JSON's types: non-finite values are null."""
        pictures = None if self.pictures is None else asdict(replace(self.pictures, pixels=()))
        if pictures is not None:
            del pictures["pixels"]  # the page shows them, and does not list them
        values = {
            **asdict(replace(self, pictures=None)),
            "verdict": None if self.verdict is None else self.verdict.as_json()["verdict"],
            "settlement_terms": self.settlement_terms.as_json(),
            "privacy": [statement.as_json() for statement in self.privacy],
            "odometers": [odometer.as_json() for odometer in self.odometers],
            "pictures": pictures,
        }
        if (appraisal := self.quality.appraisal) is not None:
            values["quality"]["appraisal"] |= appraisal.earlier_names()
        values["judgement"] = list(self.sentences)
        found: dict[str, Any] = finite(values)
        return found


def figures_of(
    sources: Sequence[TranscriptSource], evaluation: Path | None = None, rows: OwnRows | None = None
) -> ReportFigures:
    """The figures of the transcripts of one session.

    Args:
        evaluation: The baselines' curves (`hushbid.report.curves.read_evaluation`).
        rows: The consumer's own rows, for the pictures.

    Raises:
        DataError: The evaluation cannot be used.
    """
    session = sources[0].session
    told = EvaluationFile() if evaluation is None else read_evaluation(evaluation, sources[0].header.session)
    rounds, quality = rounds_of(sources), quality_of(sources, told)
    # A consumer that does not weigh learns the number of rounds with its delivery.
    counted = rounds.run > 0 or any(source.header.role != "consumer" for source in sources)
    found = ReportFigures(
        session=_session_facts(sources),
        transcripts=tuple(_transcript_facts(source) for source in sources),
        quality=quality,
        verdict=_verdict(sources),
        rounds=rounds,
        owners=owners_of(sources),
        settlement_terms=session.settlement_terms,
        privacy=session.privacy(),
        odometers=tuple(
            odometer
            for odometer in odometers(session, rounds.run, settled=_settled(sources, rounds.run))
            if counted or odometer.protects != OWNERS_DATA
        ),
        incidents=incidents_of(sources),
        missing=missing_of(sources, quality),
        pictures=None if rows is None else pictures_of(rows),
    )
    return named(found, told.display) if told.display else found


def _verdict(sources: Sequence[TranscriptSource]) -> Verdict | None:
    """A rehearsal's verdict, which is the consumer's like the private fields of its transcript."""
    consumer = next((source for source in sources if source.consumer is not None), None)
    return None if consumer is None else read_verdict(consumer.path.parent, consumer.header.session)


def _settled(sources: Sequence[TranscriptSource], rounds: int) -> bool:
    """Whether the session settled; without the curator's transcript, whether all rounds were run."""
    session = sources[0].session
    machine = next((source.curator for source in sources if source.curator is not None), None)
    if session.settlement is None or machine is None:
        return rounds >= session.rounds
    return machine.settlement() is not None


def _session_facts(sources: Sequence[TranscriptSource]) -> SessionFacts:
    file, wins = sources[0].session.file, wins_of(sources)
    m, seed_points = _sizes(sources)
    return SessionFacts(
        name=file.session.name,
        identifier=sources[0].header.session,
        points=file.session.points,
        owners=len(file.owners),
        min_owners=file.session.min_owners,
        delta=file.session.delta,
        features=file.features.model_dump(include={"map", "dimension", "gamma", "columns"}),
        target=file.target.model_dump(mode="json"),
        summary=file.summary.model_dump(mode="json"),
        acquisition=file.acquisition.model_dump(mode="json"),
        noise=file.noise.source,
        allow_nonprivate=file.session.allow_nonprivate,
        m=m,
        seed_points=seed_points,
        bought=None if wins is None else len(wins),
    )


def _sizes(sources: Sequence[TranscriptSource]) -> tuple[int | None, int | None]:
    """|D_v| and |D_init|: the curator's target has them, and the consumer's transcript in public."""
    for source in sources:
        if source.curator is not None and source.curator.target is not None:
            return source.curator.target.size, source.curator.target.seed_size
        if source.course.sizes is not None:
            return source.course.sizes
    return None, None


def _transcript_facts(source: TranscriptSource) -> TranscriptFacts:
    course = source.course
    return TranscriptFacts(
        party=source.header.party,
        role=source.header.role,
        records=course.records,
        head=course.head.hex(),
        replayed=source.machine is not None,
        redacted_fields=course.redacted_fields,
        private_fields=course.private_fields,
        torn_bytes=source.torn_bytes,
        software=source.header.software,
        environment=source.header.environment,
        finish=course.finish,
    )
