"""``python -m consumer`` and ``hushbid consumer``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hushbid.consumer.role import Consumer
from hushbid.protocol.runtime.command import (
    JsonOption,
    LogFormatOption,
    LogLevelOption,
    log_to_stderr,
    run_verb,
    show_figures,
    takes,
    tell,
)
from hushbid.protocol.runtime.telemetry.logs import LogFormat, LogLevel

__all__ = ["command", "quality_lines", "run_consumer_verb", "seed_lines", "show"]


@takes(Consumer)
def command(
    consumer: Consumer,
    log_format: LogFormatOption = LogFormat.TEXT,
    log_level: LogLevelOption = LogLevel.INFO,
    as_json: JsonOption = False,
) -> None:
    """Take part in a session as its consumer, on this machine. Only `hushbid consumer` rehearses it first."""
    run_consumer_verb(consumer, log_format, log_level, as_json=as_json)


def run_consumer_verb(
    consumer: Consumer,
    log_format: LogFormat,
    log_level: LogLevel,
    *,
    as_json: bool,
    after: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None,
) -> None:
    """Run a consumer as a process of its own.

    Args:
        after: Takes the result once the session is over, and returns what it adds.
    """

    def body() -> dict[str, Any]:
        from hushbid.protocol.runtime.party import settle_process

        log_to_stderr("consumer", log_format, log_level)
        settle_process()
        result = consumer.run().as_json()
        return result if after is None else {**result, **after(result)}

    run_verb(body, as_json=as_json, show=show)


def show(result: Mapping[str, Any]) -> None:
    """Print a consumer's result for people."""
    from hushbid.consumer.disputes import told
    from hushbid.consumer.verdict import Verdict
    from hushbid.protocol.session.guarantee import privacy_lines
    from hushbid.protocol.space.prices import bill_lines

    delivered, bare = result["points_delivered"], result.get("unlabelled", 0)
    some = f", {bare} without a label" if 0 < bare < delivered else ""
    figures = {
        "points delivered": f"{delivered} of {result['p']}, {result['disputed']} disputed{some}",
        **({"disputed": told(result["faults"])} if result["faults"] else {}),
        "model": result["model"]["sentence"],
        **quality_lines(result),
        **own_lines(result),
        **seed_lines(result),
        "rehearsal": Verdict.from_json(result).summary(),
        **course_lines(result),
        **dict(zip(("bill",), bill_lines(result.get("bill")), strict=False)),
        "seconds": _figure(result["wall_seconds"], ".1f"),
        "delivered points": result.get("table") or result["data"],
        "ledger of the validation set": result["ledger"],
        "transcript": result["transcript"],
    }
    tell(f"{result['session']}: what was procured")
    show_figures(figures, indent="  ")
    tell("\n".join(privacy_lines(result["privacy"])))


def seed_lines(result: Mapping[str, Any]) -> dict[str, str]:
    """How far the seed set lies from the validation set (`SeedDistance.as_json`), for people."""
    from hushbid.consumer.seed_distance import SeedDistance

    found = result.get("seed_distance")
    if found is None:
        return {}
    how = "drawn, " if result["seed_set_drawn"] else ""
    return {"seed set": f"{how}{'far: ' if found['far'] else ''}{SeedDistance.from_json(found).sentence()}"}


def course_lines(result: Mapping[str, Any]) -> dict[str, str]:
    """What people should know of how the purchase went (`Course.as_json`)."""
    course = result.get("course")
    return {"course": " ".join(course["warnings"])} if course is not None and course["warnings"] else {}


def own_lines(result: Mapping[str, Any]) -> dict[str, str]:
    """Baselines, label shares and owners' parts (`OwnFigures.as_json`), for people."""
    if "baselines" not in result:  # of an older version
        return {}
    from hushbid.consumer.own_figures import OwnFigures

    return OwnFigures.from_json(result).lines(result["mmd2"])


def quality_lines(result: Mapping[str, Any]) -> dict[str, str]:
    """A judgement's figures for people (`Judgement.as_json`)."""
    lines = _lines(result, "")
    if result.get("labels_why"):
        lines["labels"] = result["labels_why"]
    weighted = result["weighted"]
    if weighted is None:
        return lines | ({"weights": f"none: {result['weighted_why']}"} if result["weighted_why"] else {})
    effective = _figure(weighted["effective_points"], ".0f")
    return {
        **lines,
        **_lines(weighted, " with weights"),
        "effective points": f"{effective} of {_figure(result['effective_points'], '.0f')}, "
        f"with weights of λ = {weighted['ridge']:g}",
    }


def _lines(quality: Mapping[str, Any], how: str) -> dict[str, str]:
    to_test = quality["mmd2_test"]
    return {
        f"MMD² to the validation set{how}": _figure(quality["mmd2"], ".5f"),
        **({} if to_test is None else {f"MMD² to the test points{how}": _figure(to_test, ".5f")}),
        f"accuracy{how}": _figure(quality["accuracy"], ".3f") + _interval(quality.get("accuracy_interval")),
    }


def _interval(interval: Sequence[float] | None) -> str:
    return "" if interval is None else f" ({interval[0]:.3f} to {interval[1]:.3f})"


def _figure(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)
