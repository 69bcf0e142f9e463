"""The result of `hushbid run` and `hushbid simulate` for people: sixteen lines, or all of it."""

from __future__ import annotations

import math
from functools import partial
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from hushbid.cluster.display_names import shown_name
from hushbid.consumer.appraisal import Judgement, Quality
from hushbid.consumer.model_figures import Figure
from hushbid.consumer.own_figures import MOST_SHOWN, OwnerPart
from hushbid.consumer.result import missing_said, test_shared_said
from hushbid.protocol.errors import Offence
from hushbid.protocol.names import listed
from hushbid.protocol.printable import printable
from hushbid.protocol.privacy.acquisition import herds
from hushbid.protocol.privacy.payment import OwnerStatement
from hushbid.protocol.session.guarantee import TRUSTED
from hushbid.results.run import RunResult

__all__ = ["as_text", "render"]

_NOTEBOOK: Final = 100
"""Width of text in a notebook."""
_PAID: Final = 2
"""Most owners whose share the short form lists."""
_SHOWN_OWNERS: Final = 12
"""Most owners with a line in the settlement table; the others are summed up."""


_STYLES: Final = {"better": "bold", "same": "bold yellow", "worse": "bold red", "unknown": "bold yellow"}


def render(result: RunResult, console: Console, *, details: bool = False) -> None:
    """Print the result for people: the judgement, one table, payments and paths; or all figures too."""
    model, privacy = result.sentences
    lost = any(each.why and each.against != TRUSTED for each in result.privacy)
    parts: list[RenderableType] = [
        Rule(result.session, align="left"),
        Text(model, style=_STYLES[result.model.word]),
        *_beside_random(result),
        Text(privacy, style="bold red" if lost else ""),
    ]
    if details:
        parts += [*_standing(result), _facts(result), _quality(result), _privacy(result), _settlement(result)]
    else:
        parts += [_comparison(result), _payments(result)]
    if wrongs := [*_wrongs(result), *([] if details else _warnings(result))]:
        parts.append(Text("\n".join(wrongs), style="yellow"))
    console.print(Group(*parts))
    for line in _places(result, details=details):
        console.print(line, soft_wrap=True)  # a path stays whole, and can be copied


def as_text(result: RunResult) -> str:
    """The sixteen lines without colours."""
    # A console in a notebook's kernel would show captured text as an empty cell of its own.
    console = Console(width=_NOTEBOOK, force_terminal=False, force_jupyter=False, color_system=None)
    with console.capture() as captured:
        render(result, console)
    return captured.get()


def _beside_random(result: RunResult) -> list[Text]:
    """The purchase beside as many random rows: what the model gains by it, and how close it is."""
    said = [result.model.beside_random(), "" if result.standing is None else result.standing.short()]
    told = ", ".join(filter(None, said))
    return [Text(f"Beside as many random rows: {told}.")] if told else []


def _comparison(result: RunResult) -> Table:
    """The training data of the models, and how close their points are."""
    model, run, uniform = result.model, result.choices.run, result.choices.uniform
    both = run.weighted is not None and uniform.weighted is not None
    table = _table()
    table.add_column("learned from", no_wrap=True)
    figures: list[tuple[str, Figure | None, Quality | None]] = [
        ("own rows", model.own, None),
        (
            "own and bought rows",
            model.own_and_bought or model.bought,
            _of(run, weighted=both),
        ),
        (
            "own and random rows",
            model.own_and_uniform or model.uniform,
            _of(uniform, weighted=both),
        ),
    ]
    if model.own is None:
        figures = [(name.removeprefix("own and "), *rest) for name, *rest in figures[1:]]  # type: ignore[misc]
    if model.metric is not None:
        table.add_column("R²" if model.metric == "r2" else "right", justify="right")
        table.add_column("95 %", justify="right")
    test = run.plain.mmd2_test is not None and not result.test_unlike
    table.add_column(f"MMD² to {'test' if test else 'own'} rows", justify="right")
    table.add_column("eff. points", justify="right")
    for name, figure, quality in figures:
        cells = [] if model.metric is None else _judged(figure)
        distance = None if quality is None else quality.mmd2_test if test else quality.mmd2
        points = None if quality is None else quality.effective_points
        table.add_row(name, *cells, _figure(distance, "{:.5f}"), _figure(points, "{:.0f}"))
    return table


def _of(choice: Judgement, *, weighted: bool) -> Quality:
    return choice.best if weighted else choice.plain


def _judged(figure: Figure | None) -> list[str]:
    if figure is None:
        return ["–", "–"]
    return [f"{figure.value:.3f}", f"{figure.low:.2f} to {figure.high:.2f}"]


def _payments(result: RunResult) -> Text:
    """The points of each owner, and each one's share of the payments, in one number."""
    seen = result.points_accessed_curator
    more = "Trust" if any(each.against == TRUSTED for each in result.privacy) else "More"
    facts = (
        f"{result.owners} owners, {result.wall_seconds:.2f} s. Raw points: curator {seen:,}, consumer "
        f"{result.points_delivered:,} of {result.p:,}. {more}: --details."
    )
    if (paid := result.settlement_paid) is None:
        return Text(facts)
    if not paid.sum:
        return Text(f"{facts}\n{paid.sentence()}")
    ranked = sorted(paid.owners.items(), key=lambda item: -(item[1].paid or 0.0))
    shares = [
        f"{shown_name(owner, result.display)} {100 * line.share:.0f} %"
        for owner, line in ranked
        if line.share
    ]
    whose = "Owners' parts" + ("" if result.settlement_terms.private else ", not for them to see")
    return Text(f"{facts}\n{whose}: {listed(shares, _PAID, rest='other')}.")


def _standing(result: RunResult) -> list[Text]:
    if (standing := result.standing) is None:
        return []
    return [Text(standing.sentence(), style="bold red" if standing.rank == "unmeasured" else "")]


def _quality(result: RunResult) -> RenderableType:
    choices = {
        "this run": result.choices.run,
        "greedy, nothing private": result.choices.greedy,
        "uniform, nobody chooses": result.choices.uniform,
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
    shares = result.own.label_shares.line(MOST_SHOWN)
    notes = [Text(f"Labels in %, {shares}.")] if shares else []
    if beaten := _beating_greedy(result):
        notes.append(
            Text(
                "Greedy is the choice without noise, point by point from a seed set that counts in full, of "
                f"points that all count alike. It is no best choice: {beaten} came out better."
            )
        )
    if result.choices.run.why:
        notes.append(Text(f"There are no weights: {printable(result.choices.run.why)}.\n", style="yellow"))
    if result.choices.run.labels_why:
        notes.append(Text(f"{printable(result.choices.run.labels_why)}.\n", style="yellow"))
    return Group(table, *notes)


def _beating_greedy(result: RunResult) -> str:
    """The choices that came out closer than the greedy one, with weights or without."""

    def better(choice: Judgement) -> bool:
        pairs = [(choice.plain, result.choices.greedy.plain)]
        if choice.weighted is not None and result.choices.greedy.weighted is not None:
            pairs.append((choice.weighted.quality, result.choices.greedy.weighted.quality))
        return any(
            mine.mmd2 is not None and other.mmd2 is not None and mine.mmd2 < other.mmd2
            for mine, other in pairs
        )

    choices = (("this run", result.choices.run), ("a uniform choice", result.choices.uniform))
    return " and ".join(name for name, choice in choices if better(choice))


def _table() -> Table:
    """A table without padding lines, with at most two spaces between columns."""
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
    if result.verdict.word is not None:
        style = "" if result.verdict.word == "good" else "yellow"
        by = "own rows" if result.verdict.by_model else "a rehearsal"
        text.append(f"\nBefore the session {by} said {result.verdict.summary()}.", style=style)
    for warning in _warnings(result):
        text.append(f"\n{warning}", style="yellow")
    return text


def _warnings(result: RunResult) -> list[str]:
    """Reservations about the figures."""
    found, far = [], result.seed_distance is not None and result.seed_distance.far
    if result.disputed:
        found.append(f"{result.disputed} delivered points do not match their features.")
    if missing := missing_said(result):
        found.append(f"Of the delivered points{missing[1:]}.")
    if shared := test_shared_said(result.test_shared):
        found.append(shared)
    if result.seed_set_drawn:
        found.append("The seed set was drawn within the public bounds.")
    if far and result.seed_distance is not None:
        weight = "" if herds(result.rule) else f" (seed weight {result.seed_weight:g})"
        found.append(
            "The seed set lies far from the validation set, "
            f"{result.seed_distance.radii:.2f} clipping radii: noise does more harm{weight}."
        )
    found += [] if result.course is None else result.course.warnings()
    found += [f"The {each.figure} choice was not made: {each.why}." for each in result.not_computed]
    if result.absences:
        absent = [
            f"{shown_name(owner, result.display)} in {count} round{'s' if count > 1 else ''}"
            for owner, count in result.absences.items()
        ]
        found.append(f"Absent: {listed(absent, 5, rest='other')}.")
    return found


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
    if parts := result.own.by_owner:
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
        exact = _exact(parts.get(owner), result.choices.run.plain.mmd2) if parts else []
        paid = _paid([lines.get(owner)], form, priced=priced)
        table.add_row(Text(shown_name(owner, result.display)), number, error, *paid, *exact)
    if rest := ranked[_SHOWN_OWNERS:]:
        total = terms.figures(math.fsum(value for _, value in rest), owners=len(rest))
        number, error, *_ = *total, "–"
        paid = _paid([lines.get(owner) for owner, _ in rest], form, priced=priced)
        table.add_row(f"{len(rest)} other{'' if len(rest) == 1 else 's'}", number, error, *paid, style="dim")
    said = [f"Settled: {terms.unit}."]
    said += [] if statement is None else [statement.sentence()]
    bill = (
        []
        if result.bill is None
        else [Text(result.bill.sentence(partial(shown_name, display=result.display)))]
    )
    return Group(table, Text(" ".join([*said, terms.sentence()])), *bill)


def _exact(part: OwnerPart | None, distance: float | None) -> list[str]:
    """An owner's part by exact kernels, and the increase of MMD² without the owner's points."""
    if part is None:
        return ["–", "–"]
    more = None if part.mmd2_without is None or distance is None else part.mmd2_without - distance
    return [f"{part.gain:+.5f}", _figure(more, "{:+.5f}")]


def _paid(lines: list[OwnerStatement | None], form: str, *, priced: bool) -> list[str]:
    """Owners' total payment, with the standard error for a single one; their share; the amount."""
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
    name = partial(shown_name, display=result.display)
    lines = [f"Round {each.bid_round}, {name(each.owner)}: {each.text}." for each in result.faults]
    lines += [
        f"Round {each.round}, {name(each.peer)} was refused: {Offence(each.code).said}."
        for each in result.refusals
    ]
    lines += [f"{name(party)} failed: {what}" for party, what in result.failed_parties.items()]
    return [printable(line) for line in lines]


def _places(result: RunResult, *, details: bool) -> list[Text]:
    lines = []
    if result.data is not None:
        lines.append(f"Delivered points: {result.data}")
    if result.report is not None and not details:
        lines.append(f"Report: {result.report}")
    elif result.directory is not None and result.transcripts:
        report = "" if result.report is None else f", and {result.report.name}"
        lines.append(f"Transcripts of {len(result.transcripts)} parties{report}: {result.directory}")
    if result.replay is not None:
        lines.append(f"Replay: {result.replay}")
    return [Text(line) for line in lines]


def _figure(value: float | tuple[float, float] | None, form: str) -> str:
    known = value is not None and (isinstance(value, tuple) or math.isfinite(value))
    return form.format(value) if known else "–"
