"""``python -m consumer`` and ``hushbid consumer``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from hushbid.consumer.role import ConsumerRole
from hushbid.protocol.runtime.command import (
    JsonOption,
    JsonResult,
    LogFormatOption,
    LogLevelOption,
    log_to_stderr,
    run_verb,
    show_figures,
    takes,
    tell,
)
from hushbid.protocol.runtime.telemetry.logs import LogFormat, LogLevel

if TYPE_CHECKING:
    from hushbid.consumer.appraisal import Judgement, Quality
    from hushbid.consumer.model_figures import ModelFigures
    from hushbid.consumer.result import ConsumerResult
    from hushbid.consumer.seed_distance import SeedDistance

__all__ = ["command", "deciding", "quality_lines", "run_consumer_verb", "seed_lines", "show"]


@takes(ConsumerRole)
def command(
    consumer: ConsumerRole,
    log_format: LogFormatOption = LogFormat.TEXT,
    log_level: LogLevelOption = LogLevel.INFO,
    as_json: JsonOption = False,
) -> None:
    """Take part in a session as its consumer, on this machine. Only `hushbid consumer` rehearses it first."""
    run_consumer_verb(consumer, log_format, log_level, as_json=as_json)


def run_consumer_verb(
    consumer: ConsumerRole,
    log_format: LogFormat,
    log_level: LogLevel,
    *,
    as_json: bool,
    after: Callable[[ConsumerResult], ConsumerResult] | None = None,
) -> None:
    """Run a consumer as a process of its own.

    Args:
        after: Takes the result once the session is over, and returns it with what it adds.
    """

    def body() -> JsonResult:
        from hushbid.protocol.runtime.party import settle_process

        log_to_stderr("consumer", log_format, log_level)
        settle_process()
        result = consumer.run()
        return result if after is None else after(result)

    run_verb(body, as_json=as_json, show=show)


def show(result: ConsumerResult, *, details: bool = True) -> None:
    """Print a consumer's result for people.

    Args:
        details: Whether to print every accuracy. Without, only the first sentence has any: the one that
            decides, with its baseline and interval, if there is one.
    """
    from hushbid.consumer.disputes import told
    from hushbid.consumer.result import missing_said, test_shared_said
    from hushbid.protocol.session.guarantee import privacy_lines

    delivered = f"{result.points_delivered} of {result.p}, {result.disputed} disputed"
    warnings = [] if result.course is None else result.course.warnings()
    figures = {
        "points delivered": f"{delivered}{missing_said(result)}",
        **({"test rows": shared} if (shared := test_shared_said(result.test_shared)) else {}),
        **({"disputed": told(result.faults)} if result.faults else {}),
        **quality_lines(result.judgement),
        **result.own.lines(result.judgement.plain.mmd2),
        **seed_lines(result.seed_distance, drawn=result.seed_set_drawn),
        "before the session": result.verdict.summary(),
        **({"course": " ".join(warnings)} if warnings else {}),
        **({} if result.bill is None else {"bill": result.bill.sentence()}),
        "seconds": f"{result.wall_seconds:.1f}",
        "delivered points": str(result.table or result.data),
        "ledger of the validation set": str(result.ledger),
        "transcript": str(result.transcript),
    }
    figures = deciding(figures, result.model, details=details)
    tell("\n".join([result.session, *result.sentences]))
    show_figures(figures, indent="  ")
    tell("\n".join(privacy_lines(result.privacy)))


def deciding(figures: dict[str, str], model: ModelFigures, *, details: bool) -> dict[str, str]:
    """The figures without accuracies that decide nothing: the first sentence has the one that does."""
    if model.metric is None or details:
        return figures
    return {name: value for name, value in figures.items() if not name.startswith("accuracy")}


def seed_lines(found: SeedDistance | None, *, drawn: bool) -> dict[str, str]:
    """How far the seed set lies from the validation set, for people."""
    if found is None:
        return {}
    return {"seed set": f"{'drawn, ' if drawn else ''}{'far: ' if found.far else ''}{found.sentence()}"}


def quality_lines(judgement: Judgement) -> dict[str, str]:
    """A judgement's figures for people."""
    lines, weighted = _lines(judgement.plain, ""), judgement.weighted
    if judgement.labels_why:
        lines["labels"] = judgement.labels_why
    if weighted is None:
        return lines | ({"weights": f"none: {judgement.why}"} if judgement.why else {})
    effective = _figure(weighted.quality.effective_points, ".0f")
    return {
        **lines,
        **_lines(weighted.quality, " with weights"),
        "effective points": f"{effective} of {_figure(judgement.plain.effective_points, '.0f')}, "
        f"with weights of λ = {weighted.ridge:g}",
    }


def _lines(quality: Quality, how: str) -> dict[str, str]:
    to_test, interval = quality.mmd2_test, quality.accuracy_interval
    within = "" if interval is None else f" ({interval[0]:.3f} to {interval[1]:.3f})"
    return {
        f"MMD² to the validation set{how}": _figure(quality.mmd2, ".5f"),
        **({} if to_test is None else {f"MMD² to the test points{how}": _figure(to_test, ".5f")}),
        f"accuracy{how}": f"{_figure(quality.accuracy, '.3f')}{within}",
    }


def _figure(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)
