"""The top of a report: how the session ended, its main figures, and what a reader must not overlook."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from typing import Final

from hushbid.protocol.errors import ExitCode
from hushbid.protocol.privacy.noise import SimulatedNoise
from hushbid.protocol.session.guarantee import CONSUMERS_DATA, OWNERS_DATA, TRUSTED, PrivacyStatement
from hushbid.report.figures import ReportFigures
from hushbid.report.gallery import PRIVATE_ROWS
from hushbid.report.html import Html, coded, element, fragment, notice

__all__ = ["judgement", "notices", "sentence", "tiles"]

_ENDINGS: Final = {
    ExitCode.DONE: "the session is complete",
    ExitCode.FAILED: "the session failed",
    ExitCode.CONNECTION: "there was no connection, or no trust, between parties",
    ExitCode.TIMEOUT: "a time limit passed",
    ExitCode.USAGE: "a configuration or data could not be used",
    ExitCode.BUG: "there was a bug in hushbid",
}
"""The meaning of exit codes: a redacted transcript gives no other reason for a party's end."""


def judgement(figures: ReportFigures) -> Iterable[Html]:
    """The judgement in two sentences, the verdict before the session, and what to do next."""
    for said in figures.sentences:
        yield element("p", coded(said), class_="judgement")
    if figures.verdict is not None and figures.verdict.word is not None:
        yield element("p", coded(f"Before the session: {figures.verdict.summary()}."), class_="lead")
    yield element("p", coded(f"Next: {_next(figures)}"), class_="lead")


def _next(figures: ReportFigures) -> str:
    """The advice on using the purchase."""
    if figures.session.bought is None:
        return "read the consumer's report, which has the purchase."
    appraisal = figures.quality.appraisal
    if appraisal is None:
        return "name the consumer's result with --evaluation; it says whether a model gets better."
    weighs = "`hushbid results STATE` has own and bought rows with their weights, and a model of both"
    words = {
        "better": f"{weighs}.",
        "same": f"{weighs}; own rows alone do as well here, so that more would tell little.",
        "worse": "train on own rows alone: the purchase does harm.",
        "unknown": f"label some own rows or name test rows, to see what the purchase is worth; {weighs}.",
    }
    said = words["unknown" if appraisal.model is None else appraisal.model.word]
    if figures.owners.settlement is None:  # which the curator's transcript has
        return said
    return f"{said} The section Shares and settlement says what owners should be paid."


def notices(figures: ReportFigures) -> Iterable[Html]:
    """The end of the session in a sentence, then reservations about the figures."""
    yield element("p", coded(_ending(figures)), class_="lead")
    unprotected = [statement for statement in figures.privacy if _against(statement)]
    if unprotected:
        reasons = [sentence(f"{each.protects}, from {each.against}: {each.why}") for each in unprotected]
        if any(_simulated(statement) for statement in unprotected):
            reasons.append("Each ε below is what secret noise of the same size would give.")
        yield notice("Not everybody's data are protected", reasons, alert=True)
    if torn := ", ".join(each.party for each in figures.transcripts if each.torn_bytes):
        why = f"A party stopped while it wrote its last record, which is left out. This concerns: {torn}."
        yield notice("A transcript is torn", [why], alert=True)
    if figures.pictures is not None:
        yield notice("Private rows", [PRIVATE_ROWS], alert=True)
    if figures.missing:
        absent = [sentence(f"{each.what}: {each.why}") for each in figures.missing]
        yield notice("Not shown here", absent, alert=False)


def _ending(figures: ReportFigures) -> str:
    """How the session ended, by the transcript that knows best."""
    teller = figures.transcripts[0]
    finish = teller.finish
    if finish is None:
        return f"The transcript of {teller.party} ends before the session does."
    code, reason = finish["code"], finish["reason"]
    if code == ExitCode.DONE:
        return reason or sentence(_ENDINGS[ExitCode.DONE])
    why = f"{reason} {finish['advice'] or ''}".strip() if reason else f"{_ENDINGS.get(code, 'unknown')}."
    return f"{teller.party} ended with exit code {code}: {why}"


def _against(statement: PrivacyStatement) -> bool:
    """Whether anything weakens a guarantee that the session could have given."""
    return statement.against != TRUSTED and bool(statement.why)


def _simulated(statement: PrivacyStatement) -> bool:
    return statement.noise == SimulatedNoise.name


def sentence(text: str) -> str:
    """The text with a capital letter and a full stop."""
    return f"{text[:1].upper()}{text[1:]}."


def tiles(figures: ReportFigures) -> Html:
    """The main figures, as far as they are known."""
    found = [
        *_model(figures),
        *_distance(figures),
        *_points(figures),
        *_rounds(figures),
        *_seen(figures),
        *_epsilon(figures, OWNERS_DATA, "privacy of the owners"),
        *_epsilon(figures, CONSUMERS_DATA, "privacy of the validation set"),
    ]
    return element("dl", *found, class_="tiles")


def _tile(name: str, value: str, more: str = "") -> Html:
    shown = fragment(value, element("span", more, class_="more") if more else "")
    return element("div", element("dt", name), element("dd", shown), class_="tile")


def _model(figures: ReportFigures) -> Iterable[Html]:
    """Accuracy or R² with the purchase, beside own rows alone."""
    appraisal = figures.quality.appraisal
    model = None if appraisal is None else appraisal.model
    if model is None or (both := model.own_and_bought or model.bought) is None:
        return
    name = "R²" if model.metric == "r2" else "accuracy"
    which = "bought rows" if model.own is None else "own and bought rows"
    more = "" if model.own is None else f"own rows alone {model.own.value:.3f}"
    yield _tile(f"{name}, {which}", f"{both.value:.3f}", more)


def _points(figures: ReportFigures) -> Iterable[Html]:
    session = figures.session
    more = f"from {session.owners:,} owners"
    if session.bought is None:
        yield _tile("points to buy", f"{session.points:,}", more)
    else:
        yield _tile("points bought", f"{session.bought:,} of {session.points:,}", more)


def _distance(figures: ReportFigures) -> Iterable[Html]:
    quality = figures.quality
    if quality.session is None:
        return
    if quality.appraisal is not None:
        of = {each.name: each.mmd2 for each in quality.appraisal.choices}
        weighted = {name: of.get(f"{name}, with weights") for name in ("this session", "greedy", "uniform")}
        if (mine := weighted.pop("this session")) is not None:
            known = [f"{name} {value:.5f}" for name, value in weighted.items() if value is not None]
            yield _tile("MMD² of all points, with weights", f"{mine:.5f}", ", ".join(known))
            return
    beside = [("greedy", quality.greedy), ("uniform", quality.uniform)]
    more = ", ".join(f"{name} {curve.last:.5f}" for name, curve in beside if curve is not None)
    yield _tile("MMD² of all points", f"{quality.session.last:.5f}", more)


def _rounds(figures: ReportFigures) -> Iterable[Html]:
    rounds = figures.rounds
    known = [value for value in rounds.seconds or () if value is not None]
    more = f"median {statistics.median(known) * 1e3:,.3g} ms" if known else ""
    if rounds.run or rounds.seconds is not None:
        yield _tile("rounds", f"{rounds.run:,}", more)


def _seen(figures: ReportFigures) -> Iterable[Html]:
    raw, session = figures.owners.raw, figures.session
    if figures.rounds.curator is None or raw is None:
        return
    total = sum(count or 0 for count in raw)
    more = "" if session.m is None else f"parsimony {total / (session.points + session.m):.2f}"
    yield _tile("raw points the curator saw", f"{total:,}", more)


def _epsilon(figures: ReportFigures, protects: str, what: str) -> Iterable[Html]:
    stated = [each for each in figures.privacy if each.protects == protects and each.against != TRUSTED]
    for statement in stated:
        # If there are several, the consumer's release for the curator differs from that for owners.
        name = f"{what} from {statement.against}" if len(stated) > 1 else what
        if statement.epsilon is None or statement.why:
            # Also for simulated noise: its nominal ε is no guarantee.
            yield _tile(name, "none", "simulated noise" if _simulated(statement) else "see Privacy")
        else:
            yield _tile(
                name, f"ε = {statement.epsilon:.4g}", f"δ = {statement.delta:g}, {statement.neighbours}"
            )
