"""The sections of a report, each with its plots, its tables, and the explanations that a reader needs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from hushbid.consumer.own_figures import MOST_SHOWN
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.privacy.acquisition import herds
from hushbid.protocol.privacy.settlement import SettlementTerms
from hushbid.protocol.session.guarantee import TRUSTED, PrivacyStatement
from hushbid.report.appraisal import Appraisal
from hushbid.report.figures import ReportFigures, TranscriptFacts
from hushbid.report.gallery import pictures
from hushbid.report.html import (
    TABLE_ROWS,
    Html,
    bullets,
    coded,
    cut_table,
    element,
    fragment,
    numbers,
    plot,
    section,
    table,
    words,
)
from hushbid.report.incidents import Incidents
from hushbid.report.overview import sentence
from hushbid.report.rounds import SHOWN_ROUNDS

__all__ = ["sections"]

_ALWAYS: Final = ("chosen", "share", "disputed", "rounds absent")
"""Columns of the owners' table that are informative even with nothing but zeros."""
_UNKNOWN: Final = "–"
_ERROR: Final = "standard error"
_BY_CONSUMER: Final = "The consumer computed it, in its signed account: the curator is blind."
_PRICE: Final = "price of a point"
"""A column without a sum."""
_INCIDENT_NAMES: Final = {
    "lost": "connection lost",
    "returned": "connection back",
    "restarted": "process started again",
    "fault": "point at fault",
    "dispute": "point disputed",
    "refusal": "refused",
}
_CONSUMERS: Final = "{} on the validation set: only the consumer may disclose this."
"""Whose secret a figure is."""


def sections(figures: ReportFigures, plots: Collection[str]) -> tuple[Html, ...]:
    """All sections of the page, in order, with the plots of these names."""
    return (
        *_appraisal(figures),
        *_choice(figures, plots),
        *pictures(figures.pictures, plots),
        *_course(figures, plots),
        *_settlement(figures, plots),
        *_privacy(figures, plots),
        *_time(figures, plots),
        *_incidents(figures, plots),
        *_session(figures),
        *_transcripts(figures),
    )


def _appraisal(figures: ReportFigures) -> Iterable[Html]:
    appraisal = figures.quality.appraisal
    if appraisal is None:
        return ()
    rows = [
        (
            each.name,
            _known(each.mmd2, ".5f"),
            _known(each.mmd2_test, ".5f"),
            _known(each.accuracy, ".3f"),
            "{:.3f} to {:.3f}".format(*each.accuracy_interval) if each.accuracy_interval else _UNKNOWN,
            _known(each.effective_points, ".0f"),
        )
        for each in appraisal.choices
    ]
    figures_of_each = numbers("MMD²", "MMD² to test", "accuracy", "95 %", "effective points")
    shares = appraisal.own.label_shares.line(MOST_SHOWN)
    parts = [
        *_model(appraisal),
        table([*words("choice"), *figures_of_each], rows),
        *([element("p", f"Labels in per cent, {shares}.")] if shares else []),
        *_parts(appraisal),
    ]
    lead = (
        "The consumer computed these figures from its validation set and test points, with exact kernels. "
        f"{_CONSUMERS.format('They depend')} A 95 % interval (Wilson) covers the draw of the test points "
        "for one model. It covers neither the purchase nor its noise."
    )
    return section("What the purchase is worth", parts, lead)


def _model(appraisal: Appraisal) -> Iterable[Html]:
    """Whether the consumer's model improves: a sentence, and its scores with each training set."""
    if (model := appraisal.model) is None:
        return
    if model.training_weights is not None:
        weights = model.training_weights
        kinds = {"labels": "with labels", "plain": "by features", "equal": "equal", "none": "none"}
        yield element(
            "p",
            f"In training, each own row has weight 1, and all bought points together have weight "
            f"{weights.total:,.1f} (matching weights: {kinds[weights.kind]}). They are ",
            element("code", "training_weights"),
            " in delivered.npz.",
        )
    figures = {
        "own rows alone": model.own,
        "bought points": model.bought,
        "own rows and bought points": model.own_and_bought,
        "as many at random": model.uniform,
        "own rows and as many at random": model.own_and_uniform,
        "no model": model.trivial,
    }
    rows = [
        (name, _known(found.value, ".3f"), f"{_known(found.low, '.3f')} to {_known(found.high, '.3f')}")
        for name, found in figures.items()
        if found is not None
    ]
    if rows:
        metric = "R²" if model.metric == "r2" else "accuracy"
        yield table([*words("training set"), *numbers(metric, "95 %")], rows)


def _parts(appraisal: Appraisal) -> Iterable[Html]:
    owners = sorted(appraisal.own.by_owner.items(), key=lambda item: -item[1].gain)
    plain = appraisal.choices[0].mmd2
    rows = [
        (
            name,
            f"{part.points:,}",
            f"{part.gain:+.5f}".replace("-", "−"),
            _known(None if None in (part.mmd2_without, plain) else part.mmd2_without - plain, "+.5f"),  # type: ignore[operator]
            _known(part.weighted_mmd2_without, ".5f"),
        )
        for name, part in owners
    ]
    figures = numbers("points", "exact gain", "change in MMD² without it", "weighted MMD² without it")
    return cut_table([*words("owner"), *figures], rows)


def _known(value: float | None, form: str) -> str:
    return _UNKNOWN if value is None else format(value, form).replace("-", "−")


# -- the choice -------------------------------------------------------------------------------------------


def _choice(figures: ReportFigures, plots: Collection[str]) -> Iterable[Html]:
    parts = (
        *plot(
            "quality",
            plots,
            "Biased MMD² between the first points and the validation set, with the exact kernel on scaled "
            "points and without the seed set. Smaller is better. Source: the consumer's transcript"
            f"{_baselines(figures)}. {_CONSUMERS.format('The curves depend')}",
        ),
        *_verdict(figures),
        *_seed_set(figures),
        *_warnings(figures),
        *plot(
            "objective",
            plots,
            "The objective J(S) = 2·g̃ᵀμ − ‖μ‖². g̃ is the released target, and μ is the mean embedding of the "
            "seed set and the points chosen so far. Larger is better, as far as the noise in g̃ allows. "
            f"Source: the {_weigher(figures)}'s transcript.",
        ),
        *plot(
            "gains",
            plots,
            "The gain J(S + x) − J(S) of each round's point, by owner. ",
            "Settlement sums these gains. " if figures.settlement_terms.standard_error is None else "",
            f"Source: the {_weigher(figures)}'s transcript. ",
            _thinned(figures),
        ),
    )
    return section("How close the chosen points are to the validation set", parts)


def _weigher(figures: ReportFigures) -> str:
    return CURATOR if figures.rounds.consumer is None else CONSUMER


def _seed_set(figures: ReportFigures) -> Iterable[Html]:
    found = figures.quality.seed_distance
    if found is None:
        return
    tender = herds(figures.session.acquisition["rule"])
    harm = "noise does more harm" if tender else "a small seed weight limits the harm"
    far = f" The seed set lies far from the validation set: {harm}." if found.far else ""
    yield element(
        "p",
        f"The selection starts from the seed set: {found.sentence()}.{far} Source: the consumer's "
        f"transcript. {_CONSUMERS.format('This distance depends')}",
    )


def _verdict(figures: ReportFigures) -> Iterable[Html]:
    verdict = figures.verdict
    if verdict is None or verdict.word is None:
        return
    kept = (
        f"Source: verdict.json beside the consumer's transcript. {_CONSUMERS.format('The verdict depends')}"
    )
    yield element("p", coded(f"{verdict.sentence()} {kept}"))
    rows = [
        (each.owners, f"{each.ratio:.2f}", f"{each.ratio_plain:.2f}")
        for each in (() if verdict.rehearsal is None else verdict.rehearsal.staged)
    ]
    if rows:
        ratios = numbers("MMD² relative to a random choice, with weights", "without weights")
        yield table([*words("stand-in owners have"), *ratios], rows)


def _warnings(figures: ReportFigures) -> Iterable[Html]:
    course = figures.quality.course
    for warning in () if course is None else course.warnings():
        yield element("p", coded(f"{warning} Source: the consumer's transcript."))


def _baselines(figures: ReportFigures) -> str:
    if figures.quality.greedy is None and figures.quality.uniform is None:
        return ""
    if figures.quality.greedy is None:
        return ", and for uniform the operator's evaluation, which has all parties' data"
    return (
        ", and for greedy and uniform the operator's evaluation, which has all parties' data. The greedy "
        "choice uses no noise and gives all points the same weight; it is no lower bound"
    )


def _thinned(figures: ReportFigures) -> str:
    if figures.rounds.run <= SHOWN_ROUNDS:
        return ""
    return f"The plot shows {SHOWN_ROUNDS:,} of {figures.rounds.run:,} rounds, evenly spaced."


def _course(figures: ReportFigures, plots: Collection[str]) -> Iterable[Html]:
    found = figures.rounds.map
    left_out = f"{found.left_out:,} other owners have no row. " if found and found.left_out else ""
    teller = "curator's transcript" if figures.rounds.curator else "owners' transcripts"
    parts = (
        *plot(
            "map",
            plots,
            "What each owner did in each round. An owner may have handed a chosen point over in an earlier "
            f"round. {left_out}Source: the {teller}. ",
            _thinned(figures),
        ),
        *plot("counts", plots, "Number of owners by round. Source: the curator's transcript."),
    )
    return section("Which owners were asked, and whose points were chosen", parts)


# -- owners -----------------------------------------------------------------------------------------------


def _settlement(figures: ReportFigures, plots: Collection[str]) -> Iterable[Html]:
    owners, terms = figures.owners, figures.settlement_terms
    if owners.won is None and owners.raw is None:
        return ()
    order = [place for place in _by_share(figures) if _is_known(figures, place)]
    columns: tuple[tuple[str, Sequence[Any] | None, Callable[[Any], str]], ...] = (
        ("owner", owners.name, str),
        ("chosen", owners.won, "{:,}".format),
        ("share", None if owners.won is None else _shares(owners.won), "{:.1%}".format),
        ("settlement", owners.settlement, lambda value: terms.figures(value)[0].replace("-", "−")),
        (_ERROR, owners.standard_error, partial(_number, terms)),
        ("should be paid", owners.paid, partial(_number, terms)),
        ("disputed", owners.disputed, "{:,}".format),
        (_PRICE, owners.price, "{:g}".format),
        ("costs", owners.amount, "{:,.2f}".format),
        ("raw points handed over", owners.raw, "{:,}".format),
        ("boxes handed over" if figures.blind else "sealed points handed over", owners.sealed, "{:,}".format),
        ("rounds asked", owners.asked, "{:,}".format),
        ("rounds absent", owners.absent, "{:,}".format),
    )
    # Kinds of points that the session's rule does not know need no column.
    known = [
        (title, values, form)
        for title, values, form in columns
        if values is not None and (any(values) or title in _ALWAYS)
    ]
    titles = [*words("owner"), *numbers(*(title for title, _, _ in known[1:]))]
    rows = [
        [_UNKNOWN if values[place] is None else form(values[place]) for _, values, form in known]
        for place in order[:TABLE_ROWS]
    ]
    if left := order[TABLE_ROWS:]:
        rows.append(
            [
                f"{len(left):,} other{'' if len(left) == 1 else 's'}",
                *(
                    _UNKNOWN if title in (_ERROR, _PRICE) else form(sum(values[place] or 0 for place in left))
                    for title, values, form in known[1:]
                ),
            ]
        )
    parts = (
        *plot("shares", plots, "Points by owner. The table has all figures."),
        table(titles, rows),
    )
    if owners.settlement is None:
        return section("What owners sold" if owners.won is not None else "What owners handed over", parts)
    said = [_lead(terms), *([_BY_CONSUMER] if figures.blind else [])]
    said += [] if owners.paid_for is None else [owners.paid_for]
    return section("Shares and settlement", parts, " ".join((*said, terms.sentence())))


def _lead(terms: SettlementTerms) -> str:
    if terms.standard_error is None:
        return (
            "An owner's settlement is the sum of its points' gains in the released target. Disputed points "
            "do not count. Exact gains would reveal the validation set. With a noisy target the settlement "
            "is noisy, and may be negative."
        )
    return (
        "An owner's settlement is the sum of its points' scores under the first broadcast: at most 1 for a "
        f"point, and 0 for a disputed one. Its noise has standard error {terms.standard_error:.2f} for every "
        "owner, and it may be negative. All other columns are exact, and are not to be disclosed to owners."
    )


def _is_known(figures: ReportFigures, place: int) -> bool:
    """Whether an owner is mentioned at all: by the curator, the consumer, or itself."""
    owners = figures.owners
    return owners.won is not None or (owners.raw is not None and owners.raw[place] is not None)


def _by_share(figures: ReportFigures) -> list[int]:
    """The owners' places: first by payment due, or by hand-overs if no transcript has payments."""
    owners = figures.owners
    worth: Sequence[Any] = owners.settlement or owners.won or [count or 0 for count in owners.raw or ()]
    return sorted(range(len(owners.name)), key=lambda place: (-worth[place], place))


def _shares(won: Sequence[int]) -> list[float]:
    return [count / max(sum(won), 1) for count in won]


def _number(terms: SettlementTerms, value: Any) -> str:
    return f"{value:.{5 if terms.standard_error is None else 2}f}"


# -- privacy ----------------------------------------------------------------------------------------------


def _privacy(figures: ReportFigures, plots: Collection[str]) -> Iterable[Html]:
    stated = [statement for statement in figures.privacy if statement.against != TRUSTED]
    rows = [
        (
            each.protects,
            each.against,
            each.neighbours,
            _promised(each),
            _UNKNOWN if each.claimed_epsilon is None else f"ε = {each.claimed_epsilon:.4g}",
        )
        for each in stated
    ]
    titles = words("protects", "from", "neighbouring datasets", "guaranteed", "as the paper claims")
    not_guaranteed = [
        sentence(f"{each.protects}, from {each.against}: nothing is guaranteed, since {each.why}")
        for each in stated
        if each.why
    ]
    not_guaranteed += [
        f"Owners trust {TRUSTED}: {each.why}." for each in figures.privacy if each.against == TRUSTED
    ]
    parts = (
        table(titles, rows),
        element("h3", "What is not guaranteed"),
        bullets(not_guaranteed),
        *plot(
            "odometer",
            plots,
            "ε of all releases so far, at the session's δ. It holds if the noise is secret and the list "
            "above names no exception. Source: the session file and the number of rounds. ",
            *(
                f"With the settlement, ε is {each.settled:.4g} for {each.protects}."
                for each in figures.odometers
                if each.settled is not None
            ),
        ),
    )
    return section("Privacy", parts)


def _promised(statement: PrivacyStatement) -> Html:
    kept = statement.epsilon is not None and not statement.why
    return element("span", statement.promised(relation=False), class_="plain" if kept else "mark")


# -- time and trouble -------------------------------------------------------------------------------------


def _time(figures: ReportFigures, plots: Collection[str]) -> Iterable[Html]:
    told_by = figures.rounds.timed_by
    teller = f"the {told_by}" if told_by in (CURATOR, CONSUMER) else told_by
    caption = (
        f"Time from the start of each round to the start of the next, by {teller}'s clock. ",
        _thinned(figures),
    )
    return section("How long the rounds took", plot("times", plots, *caption))


def _incidents(figures: ReportFigures, plots: Collection[str]) -> Iterable[Html]:
    parts = (*_incident_table(figures.incidents), *_what_was_taken_out(figures))
    if not parts:
        tellers = ", ".join(each.party for each in figures.transcripts)
        nothing = f"Nothing that went wrong is on record in the transcripts of: {tellers}."
        parts = (element("p", nothing),)
    if figures.owners.absent is None:
        return section("What went wrong", parts)
    places = "The map above and the settlement table show" if "map" in plots else "The settlement table shows"
    return section("What went wrong", parts, f"{places} absent owners.")


def _what_was_taken_out(figures: ReportFigures) -> Iterable[Html]:
    redacted = [each.party for each in figures.transcripts if not each.replayed]
    if redacted:
        left = "Redacted transcripts tell of lost connections and restarted processes only. They are of: "
        yield element("p", f"{left}{', '.join(redacted)}.")


def _incident_table(incidents: Incidents) -> Iterable[Html]:
    rows = [
        (
            _INCIDENT_NAMES.get(each.what, each.what),
            each.party or "not shown",
            _known(each.round, ","),
            _known(each.seconds, ",.3f"),
            each.detail,
            each.told_by,
        )
        for each in incidents.listed
    ]
    columns = [*words("what", "whom"), *numbers("round", "after s"), *words("", "told by")]
    return cut_table(columns, rows, incidents.total)


# -- what it was made from --------------------------------------------------------------------------------


def _session(figures: ReportFigures) -> Iterable[Html]:
    facts = figures.session
    tender = herds(facts.acquisition["rule"])
    rows = [
        ("session", facts.name),
        ("identifier", element("code", facts.identifier)),
        ("p, points to buy", f"{facts.points:,}"),
        ("K, owners", f"{facts.owners:,}, of whom {facts.min_owners:,} must be present"),
        ("m, rows of the validation set", _known(facts.m, ",")),
        ("rows of the seed set", _known(facts.seed_points, ",")),
        ("acquisition rule", _described(facts.acquisition, "rule")),
        ("release of the target", _described(facts.target, "mechanism")),
        *([] if tender else [("releases of the summary", _described(facts.summary, "mechanism"))]),
        ("feature map", _described(facts.features, "map")),
        ("noise", facts.noise),
        ("δ", f"{facts.delta:g}"),
    ]
    return section("The session", [table(words("", ""), rows)])


def _described(section: Mapping[str, Any], name: str) -> str:
    others = [f"{key} {_value(value)}" for key, value in section.items() if key != name]
    return f"{section[name]} ({', '.join(others)})" if others else str(section[name])


def _value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(_value(each) for each in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _transcripts(figures: ReportFigures) -> Iterable[Html]:
    rows = [
        (
            fragment(each.party, element("br"), element("code", each.head[:16], "…")),
            f"{each.records:,}",
            _state(each),
            _environment(each),
        )
        for each in figures.transcripts
    ]
    titles = [*words("party and head digest"), *numbers("records"), *words("state", "recorded with")]
    lead = (
        "The digest of every record holds, and so does the commitment of every private value that is there. ",
        element("code", "hushbid transcript verify"),
        " checks whether the parties' files agree.",
    )
    return section("The transcripts", cut_table(titles, rows), *lead)


def _environment(transcript: TranscriptFacts) -> Html:
    lines = [f"hushbid {transcript.software}"]
    lines += [f"{name}: {_value(value)}" for name, value in transcript.environment.items()]
    return fragment(*(part for line in lines for part in (line, element("br"))))


def _state(transcript: TranscriptFacts) -> str:
    parts = []
    if transcript.replayed:
        parts.append("chain holds; replayed without a difference")
    else:
        fields = f"{transcript.redacted_fields:,} of {transcript.private_fields:,}"
        parts.append(f"chain holds; redacted: {fields} private fields removed")
    if transcript.torn_bytes:
        parts.append(f"torn: {transcript.torn_bytes:,} bytes left out")
    if transcript.finish is None:
        parts.append("ends before the session does")
    elif transcript.finish["code"]:
        parts.append(f"ended with exit code {transcript.finish['code']}")
    return "; ".join(parts)
