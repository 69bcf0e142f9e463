"""``python -m consumer`` and ``hushbid consumer``."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from protocol.errors import ConfigError
from protocol.runtime.command import KeyOption, LogFormatOption, MetricsOption, StateOption, run_verb
from protocol.runtime.logs import LogFormat, set_up_logging

__all__ = ["command", "quality_lines", "seed_lines"]


def command(
    config: Annotated[Path, typer.Option(help="The consumer's private file.", envvar="HUSHBID_CONFIG")],
    session: Annotated[Path | None, typer.Option(help="The session file.", envvar="HUSHBID_SESSION")] = None,
    invitation: Annotated[
        Path | None, typer.Option(help="In place of the session file.", envvar="HUSHBID_INVITATION")
    ] = None,
    validation: Annotated[
        Path | None, typer.Option(help="D_v, in place of the file's.", envvar="HUSHBID_VALIDATION")
    ] = None,
    seed_set: Annotated[
        Path | None, typer.Option(help="D_init, in place of the file's.", envvar="HUSHBID_SEED_SET")
    ] = None,
    key: KeyOption = None,
    state: StateOption = None,
    ledger: Annotated[
        Path | None,
        typer.Option(help="D_v's lifetime ledger, in place of the file's.", envvar="HUSHBID_LEDGER"),
    ] = None,
    target_file: Annotated[
        Path | None,
        typer.Option(
            help="A release of D_v that `hushbid screen` made, in place of a new one.",
            envvar="HUSHBID_TARGET_FILE",
        ),
    ] = None,
    metrics: MetricsOption = None,
    log_format: LogFormatOption = LogFormat.TEXT,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Take part in a session as its consumer, on this machine."""

    def body() -> dict[str, Any]:
        from consumer.process import run_consumer
        from protocol.config.loading import load_toml
        from protocol.config.party import ConsumerFile
        from protocol.names import CONSUMER
        from protocol.runtime.signed_files import read_session

        set_up_logging("consumer", log_format)
        session_file, invited = read_session(session, invitation)
        if invited not in (None, CONSUMER):
            raise ConfigError(f"{invitation} is for {invited}.", advice="Give it to `hushbid owner`.")
        file = load_toml(ConsumerFile, config).resolved(config.parent)
        file = file.with_options(
            validation=validation,
            seed_set=seed_set,
            key=key,
            state=state,
            ledger=ledger,
            target_file=target_file,
            metrics=metrics,
        )
        return run_consumer(session_file, file)

    run_verb(body, as_json=as_json, show=_show)


def _show(result: Mapping[str, Any]) -> None:
    from protocol.session import privacy_lines

    figures = {
        "points delivered": f"{result['points_delivered']} of {result['p']}, {result['disputed']} disputed",
        **quality_lines(result),
        **own_lines(result),
        **seed_lines(result),
        **course_lines(result),
        "seconds": _figure(result["wall_seconds"], ".1f"),
        "delivered points": result["data"],
        "ledger of the validation set": result["ledger"],
        "transcript": result["transcript"],
    }
    width = max(map(len, figures))
    lines = [
        f"{result['session']}: what was procured",
        *(f"  {name:<{width}}  {value}" for name, value in figures.items()),
        *privacy_lines(result["privacy"]),
    ]
    sys.stdout.write("\n".join(lines) + "\n")


def seed_lines(result: Mapping[str, Any]) -> dict[str, str]:
    """How far the seed set lies from the validation set (`SeedDistance.as_json`), for people."""
    from consumer.seed_distance import SeedDistance

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
    from consumer.own_figures import OwnFigures

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
