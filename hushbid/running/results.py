"""The result of `hushbid run` and `hushbid simulate`: for programs as JSON, for people as tables."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from hushbid.cluster.display_names import shown_name
from hushbid.cluster.evaluation import Baselines
from hushbid.consumer.appraisal import Judgement, Quality
from hushbid.consumer.course import Course
from hushbid.consumer.model_figures import NO_MODEL, ModelFigures
from hushbid.consumer.own_figures import MOST_SHOWN, OwnerPart, OwnFigures
from hushbid.consumer.result import missing_said, test_shared_said
from hushbid.consumer.seed_distance import SeedDistance
from hushbid.consumer.verdict import NO_VERDICT, Verdict
from hushbid.curator.ledger import Fault
from hushbid.protocol.names import listed
from hushbid.protocol.printable import printable
from hushbid.protocol.privacy.acquisition import herds
from hushbid.protocol.privacy.payment import Errors, OwnerStatement, PaidStatement
from hushbid.protocol.privacy.settlement import SettlementTerms
from hushbid.protocol.runtime.command import finite
from hushbid.protocol.session.guarantee import TRUSTED, PrivacyStatement
from hushbid.protocol.session.odometer import Odometer, odometers
from hushbid.protocol.session.session import Session
from hushbid.protocol.space.prices import bill_lines
from hushbid.running.standing import Standing, beside_uniform

__all__ = ["RunResult", "Transcripts", "render"]

Transcripts = Mapping[str, Path]
"""Party → its transcript."""

_SHOWN_OWNERS: Final = 12
"""Owners that the settlement table has a line for; the others are summed up."""


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """The result of a procurement: the fields of its JSON, which docs/results.md describes, and these.

    Attributes:
        chosen: How good the delivered points are, by the consumer.
        greedy, uniform: How good the baselines are (`hushbid.cluster.evaluation`).
        test_unlike: Whether the test points are of another distribution than D_v; None: there are none.
        own: Figures of the consumer alone: baselines, label shares, and owners' exact parts.
        model: Whether the consumer's model gets better, beside a uniform choice.
        display: Owners' names as people have them, by their names here; of others there is none.
    """

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
    chosen: Judgement
    greedy: Judgement
    uniform: Judgement
    points_accessed_curator: int
    points_delivered: int
    disputed: int
    m: int
    privacy: tuple[PrivacyStatement, ...]
    odometers: tuple[Odometer, ...]
    settlement: Mapping[str, float]
    settlement_terms: SettlementTerms
    absences: Mapping[str, int]
    faults: tuple[Mapping[str, Any], ...]
    refusals: tuple[Mapping[str, Any], ...] = ()
    failed_parties: Mapping[str, str] = field(default_factory=dict)
    transcripts: Transcripts = field(default_factory=dict)
    data: Path | None = None
    directory: Path | None = None
    processes: Mapping[str, int] = field(default_factory=dict)
    report: Path | None = None
    seed_distance: SeedDistance | None = None
    course: Course | None = None
    seed_set_drawn: bool = False
    settlement_standard_error: Errors = field(default_factory=dict)
    settlement_paid: PaidStatement | None = None
    bill: Mapping[str, Any] | None = None
    own: OwnFigures = field(default_factory=OwnFigures)
    model: ModelFigures = NO_MODEL
    verdict: Verdict = NO_VERDICT
    test_unlike: bool | None = None
    unlabelled: int = 0
    unidentified: int = 0
    unweighted: int = 0
    test_shared: float | None = None
    display: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def told(
        cls,
        session: Session,
        reference: Baselines,
        *,
        curator: Mapping[str, Any],
        consumer: Mapping[str, Any],
        **kept: Any,
    ) -> RunResult:
        """The result of a session, from those of its curator and consumer (`result` in their packages).

        Args:
            reference: What the operator compares it with.
            kept: Attributes of where things lie, and of processes.
        """
        file = session.file
        apart, course, paid = consumer["seed_distance"], consumer["course"], curator["settlement_paid"]
        return cls(
            session=file.session.name,
            p=file.session.points,
            batch=file.batch,
            seed_weight=file.seed_weight,
            rule=file.acquisition.rule,
            jitter=file.jitter,
            distinct=file.distinct,
            owners=len(file.owners),
            rounds=curator["rounds"],
            wall_seconds=curator["wall_seconds"],
            chosen=Judgement.from_json(consumer),
            greedy=reference.greedy,
            uniform=reference.uniform,
            test_unlike=reference.test_unlike,
            points_accessed_curator=curator["points_accessed"],
            points_delivered=consumer["points_delivered"],
            unlabelled=consumer["unlabelled"],
            unidentified=consumer["unidentified"],
            unweighted=consumer["unweighted"],
            test_shared=consumer["test_shared"],
            disputed=consumer["disputed"],
            m=consumer["m"],
            seed_distance=None if apart is None else SeedDistance.from_json(apart),
            course=None if course is None else Course.from_json(course),
            seed_set_drawn=consumer["seed_set_drawn"],
            verdict=Verdict.from_json(consumer),
            privacy=session.privacy(),
            odometers=odometers(session, curator["rounds"], settled=True),
            settlement=curator["settlement"],
            settlement_terms=session.settlement_terms,
            settlement_standard_error=curator["settlement_standard_error"],
            settlement_paid=None if paid is None else PaidStatement.from_json(paid),
            bill=curator["bill"],
            own=OwnFigures.from_json(consumer),
            model=ModelFigures.from_json(consumer["model"]).beside(reference.uniform_model),
            absences=curator["absences"],
            faults=tuple(curator["faults"]),
            refusals=tuple(curator["refusals"]),
            **kept,
        )

    @property
    def mmd2(self) -> float | None:
        """MMD² of the delivered points, without the seed set, against D_v."""
        return self.chosen.plain.mmd2

    @property
    def accuracy(self) -> float | None:
        """Accuracy of the consumer's downstream model, trained on the delivered points without weights."""
        return self.chosen.plain.accuracy

    @property
    def standing(self) -> Standing | None:
        """How the delivered points stand beside a uniform choice; None where a figure is missing."""
        return beside_uniform(self.chosen, self.uniform, unlike=bool(self.test_unlike))

    @property
    def rounds_per_second(self) -> float | None:
        """None where no time was measured."""
        return self.rounds / self.wall_seconds if self.wall_seconds > 0 else None

    @property
    def parsimony(self) -> float:
        """Distinct raw points that the curator accessed, over p + m (DESIGN §3)."""
        return self.points_accessed_curator / (self.p + self.m)

    def as_json(self) -> dict[str, Any]:
        """The result under the names of DESIGN §7, of what JSON can hold: no NaN."""
        found: dict[str, Any] = finite(self._told())
        return found

    def _told(self) -> dict[str, Any]:
        return {
            "session": self.session,
            "p": self.p,
            "batch": self.batch,
            "seed_weight": self.seed_weight,
            "rule": self.rule,
            "jitter": self.jitter,
            "distinct": self.distinct,
            "owners": self.owners,
            "display": dict(self.display),
            "rounds": self.rounds,
            "wall_seconds": self.wall_seconds,
            "rounds_per_second": self.rounds_per_second,
            "mmd2": self.chosen.plain.mmd2,
            "mmd2_greedy": self.greedy.plain.mmd2,
            "mmd2_uniform": self.uniform.plain.mmd2,
            "accuracy": self.chosen.plain.accuracy,
            "accuracy_greedy": self.greedy.plain.accuracy,
            "accuracy_uniform": self.uniform.plain.accuracy,
            "choices": {
                "run": self.chosen.as_json(),
                "greedy": self.greedy.as_json(),
                "uniform": self.uniform.as_json(),
            },
            "beside_uniform": None if self.standing is None else self.standing.as_json(),
            **self.own.as_json(),
            "model": self.model.as_json(),
            "points_accessed_curator": self.points_accessed_curator,
            "points_delivered": self.points_delivered,
            "unlabelled": self.unlabelled,
            "unidentified": self.unidentified,
            "unweighted": self.unweighted,
            "test_shared": self.test_shared,
            "disputed": self.disputed,
            "m": self.m,
            "seed_distance": None if self.seed_distance is None else self.seed_distance.as_json(),
            "course": None if self.course is None else self.course.as_json(),
            "seed_set_drawn": self.seed_set_drawn,
            **self.verdict.as_json(),
            "parsimony": self.parsimony,
            "privacy": [statement.as_json() for statement in self.privacy],
            "odometer": [odometer.as_json() for odometer in self.odometers],
            "settlement": self.settlement,
            "settlement_terms": self.settlement_terms.as_json(),
            "settlement_standard_error": self.settlement_standard_error,
            "settlement_paid": None if self.settlement_paid is None else self.settlement_paid.as_json(),
            "bill": self.bill,
            "absences": self.absences,
            "faults": self.faults,
            "refusals": self.refusals,
            "failed_parties": self.failed_parties,
            "transcripts": {party: str(path) for party, path in self.transcripts.items()},
            "data": _text(self.data),
            "directory": _text(self.directory),
            "processes": self.processes,
            "report": _text(self.report),
        }


_STYLES: Final = {"better": "bold", "same": "bold yellow", "worse": "bold red", "unknown": "bold yellow"}


def render(result: RunResult, console: Console) -> None:
    """Print the result for people."""
    parts: list[RenderableType] = [
        Rule(result.session, align="left"),
        Text(result.model.sentence(), style=_STYLES[result.model.word]),
        *_standing(result),
        _facts(result),
        _quality(result),
        _privacy(result),
        _settlement(result),
    ]
    if wrongs := _wrongs(result):
        parts.append(Text("\n".join(wrongs), style="yellow"))
    if places := _places(result):
        parts.append(places)
    console.print(Group(*parts))


def _standing(result: RunResult) -> list[Text]:
    if (standing := result.standing) is None:
        return []
    style = {"closer": "bold", "alike": "bold yellow", "farther": "bold red", "unmeasured": "bold red"}[
        standing.rank
    ]
    return [Text(standing.sentence(), style=style)]


def _quality(result: RunResult) -> RenderableType:
    choices = {
        "this run": result.chosen,
        "greedy, nothing private": result.greedy,
        "uniform, nobody chooses": result.uniform,
    }
    rows: list[tuple[str, Quality]] = []
    for name, judgement in choices.items():
        weighted = Quality() if judgement.weighted is None else judgement.weighted.quality
        rows += [(name, judgement.plain), ("  with weights", weighted)]
    columns = [("MMD²", "mmd2", "{:.5f}"), ("accuracy", "accuracy", "{:.3f}")]
    if any(quality.mmd2_test is not None for _, quality in rows):
        columns.insert(1, ("to test", "mmd2_test", "{:.5f}"))
    if any(quality.accuracy_interval is not None for _, quality in rows):
        columns.append(("95 %", "accuracy_interval", "{0[0]:.2f}–{0[1]:.2f}"))
    columns.append(("eff. points", "effective_points", "{:.0f}"))
    table = _table()
    table.add_column("choice of points")
    for heading, _, _ in columns:
        table.add_column(heading, justify="right")
    for place, (name, quality) in enumerate(rows):
        figures = (_figure(getattr(quality, attribute), form) for _, attribute, form in columns)
        table.add_row(name, *figures, style="bold" if place < 2 else "")
    shares = result.own.share_line(MOST_SHOWN)
    notes = [Text(f"Labels in %, {shares}.")] if shares else []
    if beaten := _beating_greedy(result):
        notes.append(
            Text(
                "Greedy is the choice without noise, point by point from a seed set that counts in full, of "
                f"points that all count alike. It is no best choice: {beaten} came out better."
            )
        )
    if result.chosen.why:
        notes.append(Text(f"There are no weights: {printable(result.chosen.why)}.\n", style="yellow"))
    if result.chosen.labels_why:
        notes.append(Text(f"{printable(result.chosen.labels_why)}.\n", style="yellow"))
    return Group(table, *notes)


def _beating_greedy(result: RunResult) -> str:
    """The choices that came out closer than the greedy one, with weights or without."""

    def better(choice: Judgement) -> bool:
        pairs = [(choice.plain, result.greedy.plain)]
        if choice.weighted is not None and result.greedy.weighted is not None:
            pairs.append((choice.weighted.quality, result.greedy.weighted.quality))
        return any(
            mine.mmd2 is not None and other.mmd2 is not None and mine.mmd2 < other.mmd2
            for mine, other in pairs
        )

    choices = (("this run", result.chosen), ("a uniform choice", result.uniform))
    return " and ".join(name for name, choice in choices if better(choice))


def _table() -> Table:
    """A table that wastes no line, and no more than two spaces between columns."""
    return Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))


def _facts(result: RunResult) -> Text:
    speed = result.rounds_per_second
    in_rounds = not herds(result.rule)
    pace = f" ({speed:,.0f} rounds/s)" if speed is not None and in_rounds else ""
    rounds = f"{result.rounds} round{'' if result.rounds == 1 else 's'}"
    text = Text(
        f"{result.points_delivered} of {result.p} points were delivered after {rounds} "
        f"with {result.owners} owners in {result.wall_seconds:.2f} s{pace}. "
        f"The curator saw {result.points_accessed_curator} raw points: parsimony {result.parsimony:.2f} "
        f"(over p + m = {result.p + result.m})."
    )
    if result.disputed:
        text.append(f"\n{result.disputed} delivered points do not match their features.", style="bold yellow")
    if missing := missing_said(result.as_json()):
        text.append(f"\nOf the delivered points{missing[1:]}.", style="yellow")
    if shared := test_shared_said(result.test_shared):
        text.append(f"\n{shared}", style="yellow")
    if result.seed_set_drawn:
        text.append("\nThe seed set was drawn within the public bounds.", style="yellow")
    if result.seed_distance is not None and result.seed_distance.far:
        text.append(
            "\nThe seed set lies far from the validation set, "
            f"{result.seed_distance.radii:.2f} clipping radii: noise does more harm"
            + (f" (seed weight {result.seed_weight:g})." if in_rounds else "."),
            style="yellow",
        )
    if result.verdict.word is not None:
        style = "" if result.verdict.word == "good" else "yellow"
        by = "Own rows" if result.verdict.by_model else "A rehearsal of the session"
        was = "said" if result.verdict.by_model else "was"
        text.append(f"\n{by} {was} {result.verdict.summary()}.", style=style)
    for warning in () if result.course is None else result.course.warnings():
        text.append(f"\n{warning}", style="yellow")
    if result.absences:
        absent = [
            f"{shown_name(owner, result.display)} in {rounds} round{'s' if rounds > 1 else ''}"
            for owner, rounds in result.absences.items()
        ]
        text.append(f"\nAbsent: {listed(absent, 5, rest='others')}.", style="yellow")
    return text


def _privacy(result: RunResult) -> RenderableType:
    claimed = any(statement.claimed_epsilon is not None for statement in result.privacy)
    table = _table()
    table.show_header = claimed
    for heading in ("", "guaranteed", *(["as the paper claims"] if claimed else [])):
        table.add_column(heading)
    warnings, trusts = [], []
    for statement in result.privacy:
        if statement.against == TRUSTED:
            trusts.append(f"Owners trust {TRUSTED}: {statement.why}.")
            continue
        table.add_row(
            f"Privacy of {statement.protects}\nfrom {statement.against}",
            statement.promised(relation=True),
            *([_figure(statement.claimed_epsilon, "ε = {:.4g}")] if claimed else []),
            style="red" if statement.why else "",
        )
        if statement.why:
            warnings.append(f"NO PRIVACY for {statement.protects} from {statement.against}: {statement.why}.")
    parts: list[RenderableType] = [table, Text("\n".join(trusts), style="yellow")]
    if warnings:
        parts.append(Panel(Text("\n".join(warnings), style="bold red"), border_style="red", expand=False))
    return Group(*parts)


def _settlement(result: RunResult) -> RenderableType:
    terms, statement = result.settlement_terms, result.settlement_paid
    lines = {} if statement is None else statement.owners
    table = _table()
    table.add_column("owner")
    headings = ["settled", "± s.e.", "paid", "± s.e.", "share"]
    if priced := any(line.amount is not None for line in lines.values()):
        headings.append("amount")
    if parts := result.own.owners or {}:
        headings += ["exact gain", "left out"]
    for heading in headings:
        table.add_column(heading, justify="right")

    def rank(entry: tuple[str, float]) -> tuple[float, float, str]:
        owner, value = entry
        line = lines.get(owner)
        return -((line.paid if line else None) or 0.0), -value, owner

    form = "{:.5f}" if terms.standard_error is None else "{:.2f}"
    ranked = sorted(result.settlement.items(), key=rank)
    for owner, value in ranked[:_SHOWN_OWNERS]:
        error = _figure(result.settlement_standard_error.get(owner), form)
        number, error, *_ = *terms.figures(value), error
        exact = _exact(parts.get(owner), result.chosen.plain.mmd2) if parts else []
        paid = _paid([lines.get(owner)], form, priced=priced)
        table.add_row(Text(shown_name(owner, result.display)), number, error, *paid, *exact)
    if rest := ranked[_SHOWN_OWNERS:]:
        total = terms.figures(math.fsum(value for _, value in rest), owners=len(rest))
        number, error, *_ = *total, "–"
        paid = _paid([lines.get(owner) for owner, _ in rest], form, priced=priced)
        table.add_row(f"{len(rest)} others", number, error, *paid, style="dim")
    said = [f"Settled: {terms.unit}."]
    said += [] if statement is None else [statement.sentence()]
    bill = [Text(line) for line in bill_lines(result.bill, partial(shown_name, display=result.display))]
    return Group(table, Text(" ".join([*said, terms.sentence()])), *bill)


def _exact(part: OwnerPart | None, distance: float | None) -> list[str]:
    """An owner's part by exact kernels, and how much larger MMD² is without the owner's points."""
    if part is None:
        return ["–", "–"]
    more = None if part.mmd2_without is None or distance is None else part.mmd2_without - distance
    return [f"{part.gain:+.5f}", _figure(more, "{:+.5f}")]


def _paid(lines: list[OwnerStatement | None], form: str, *, priced: bool) -> list[str]:
    """What owners are paid together, with the standard error for a single one; their share; the amount."""
    known = [line for line in lines if line is not None and line.paid is not None]
    if not known:
        return ["–"] * (4 if priced else 3)
    error = known[0].standard_error if len(known) == 1 else None
    cells = [
        _figure(math.fsum(line.paid or 0.0 for line in known), form),
        _figure(error, form),
        _figure(math.fsum(line.share or 0.0 for line in known), "{:.1%}"),
    ]
    return cells + ([f"{math.fsum(line.amount or 0.0 for line in known):,.2f}"] if priced else [])


def _wrongs(result: RunResult) -> list[str]:
    faults, name = [Fault.of(told) for told in result.faults], partial(shown_name, display=result.display)
    lines = [f"Round {fault.bid_round}, {name(fault.owner)}: {fault.text}." for fault in faults]
    lines += [
        f"Round {refusal['round']}, {name(refusal['peer'])} was refused: {refusal['code']}."
        for refusal in result.refusals
    ]
    lines += [f"{name(party)} failed: {what}" for party, what in result.failed_parties.items()]
    return [printable(line) for line in lines]


def _places(result: RunResult) -> Text | None:
    lines = []
    if result.data is not None:
        lines.append(f"Delivered points: {result.data}")
    if result.directory is not None and result.transcripts:
        report = "" if result.report is None else f", and {result.report.name}"
        lines.append(f"Transcripts of {len(result.transcripts)} parties{report}: {result.directory}")
    return Text("\n".join(lines)) if lines else None


def _figure(value: float | tuple[float, float] | None, form: str) -> str:
    known = value is not None and (isinstance(value, tuple) or math.isfinite(value))
    return form.format(value) if known else "–"


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)
