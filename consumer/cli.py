"""``python -m consumer`` and ``hushbid consumer``."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from protocol.errors import ConfigError
from protocol.runtime.command import KeyOption, LogFormatOption, MetricsOption, StateOption, run_verb
from protocol.runtime.logs import LogFormat, set_up_logging

if TYPE_CHECKING:
    from protocol.config.party import ConsumerFile
    from protocol.config.session import SessionFile

__all__ = [
    "ConfigOption",
    "ConsumerOptions",
    "InvitationOption",
    "LedgerOption",
    "SeedSetOption",
    "SessionOption",
    "TargetFileOption",
    "ValidationOption",
    "command",
    "quality_lines",
    "seed_lines",
    "show",
]

ConfigOption: TypeAlias = Annotated[
    Path, typer.Option(help="The consumer's private file.", envvar="HUSHBID_CONFIG")
]
SessionOption: TypeAlias = Annotated[
    Path | None, typer.Option(help="The session file.", envvar="HUSHBID_SESSION")
]
InvitationOption: TypeAlias = Annotated[
    Path | None, typer.Option(help="In place of the session file.", envvar="HUSHBID_INVITATION")
]
ValidationOption: TypeAlias = Annotated[
    Path | None, typer.Option(help="D_v, in place of the file's.", envvar="HUSHBID_VALIDATION")
]
SeedSetOption: TypeAlias = Annotated[
    Path | None, typer.Option(help="D_init, in place of the file's.", envvar="HUSHBID_SEED_SET")
]
LedgerOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(help="D_v's lifetime ledger, in place of the file's.", envvar="HUSHBID_LEDGER"),
]
TargetFileOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        help="A release of D_v that `hushbid screen` made, in place of a new one.",
        envvar="HUSHBID_TARGET_FILE",
    ),
]


@dataclass(frozen=True)
class ConsumerOptions:
    """What a consumer's command line says: the session, and what is its own. Options go before its file."""

    config: Path
    session: Path | None = None
    invitation: Path | None = None
    validation: Path | None = None
    seed_set: Path | None = None
    key: Path | None = None
    state: Path | None = None
    ledger: Path | None = None
    target_file: Path | None = None
    metrics: str | None = None

    def files(self) -> tuple[SessionFile, ConsumerFile]:
        """The session and the consumer's file that the options come to.

        Raises:
            ConfigError: One of them is missing, cannot be used, or is of another party.
        """
        from protocol.config.loading import load_toml
        from protocol.config.party import ConsumerFile
        from protocol.names import CONSUMER
        from protocol.runtime.signed_files import read_session

        session_file, invited = read_session(self.session, self.invitation)
        if invited not in (None, CONSUMER):
            raise ConfigError(f"{self.invitation} is for {invited}.", advice="Give it to `hushbid owner`.")
        file = load_toml(ConsumerFile, self.config).resolved(self.config.parent)
        return session_file, file.with_options(
            validation=self.validation,
            seed_set=self.seed_set,
            key=self.key,
            state=self.state,
            ledger=self.ledger,
            target_file=self.target_file,
            metrics=self.metrics,
        )


def command(
    config: ConfigOption,
    session: SessionOption = None,
    invitation: InvitationOption = None,
    validation: ValidationOption = None,
    seed_set: SeedSetOption = None,
    key: KeyOption = None,
    state: StateOption = None,
    ledger: LedgerOption = None,
    target_file: TargetFileOption = None,
    metrics: MetricsOption = None,
    log_format: LogFormatOption = LogFormat.TEXT,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Take part in a session as its consumer, on this machine. Only `hushbid consumer` rehearses it first."""
    options = ConsumerOptions(
        config=config,
        session=session,
        invitation=invitation,
        validation=validation,
        seed_set=seed_set,
        key=key,
        state=state,
        ledger=ledger,
        target_file=target_file,
        metrics=metrics,
    )

    def body() -> dict[str, Any]:
        from consumer.process import run_consumer

        set_up_logging("consumer", log_format)
        return run_consumer(*options.files())

    run_verb(body, as_json=as_json, show=show)


def show(result: Mapping[str, Any]) -> None:
    """Print a consumer's result for people."""
    from consumer.verdict import Verdict
    from protocol.prices import bill_lines
    from protocol.session import privacy_lines

    figures = {
        "points delivered": f"{result['points_delivered']} of {result['p']}, {result['disputed']} disputed",
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
