"""``python -m owner`` and ``hushbid owner``."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from protocol.errors import ConfigError
from protocol.runtime.command import KeyOption, LogFormatOption, MetricsOption, StateOption, run_verb
from protocol.runtime.logs import LogFormat, set_up_logging

if TYPE_CHECKING:
    from protocol.config.party import BudgetSection, OwnerFile
    from protocol.config.session import SessionFile

__all__ = [
    "BudgetOption",
    "ConfigOption",
    "DataOption",
    "FeaturesOption",
    "IdentifierOption",
    "InvitationOption",
    "LabelOption",
    "LedgerOption",
    "LiftOption",
    "OwnerOptions",
    "SessionOption",
    "command",
    "stated_budget",
]


SessionOption: TypeAlias = Annotated[
    Path | None, typer.Option(help="The session file.", envvar="HUSHBID_SESSION")
]
ConfigOption: TypeAlias = Annotated[
    Path | None, typer.Option(help="The party's private file.", envvar="HUSHBID_CONFIG")
]
InvitationOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        help="In place of the session file. With --data an owner needs no private file: key and state lie "
        "beside the invitation.",
        envvar="HUSHBID_INVITATION",
    ),
]
DataOption: TypeAlias = Annotated[
    Path | None, typer.Option(help="The points, in place of the file's.", envvar="HUSHBID_DATA")
]
LedgerOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(help="The data's lifetime ledger; default: beside the data.", envvar="HUSHBID_LEDGER"),
]
FeaturesOption: TypeAlias = Annotated[
    str | None, typer.Option(help="Feature columns of a table, as in a,b,c.", envvar="HUSHBID_FEATURES")
]
LabelOption: TypeAlias = Annotated[
    str | None, typer.Option(help="The label's column.", envvar="HUSHBID_LABEL")
]
IdentifierOption: TypeAlias = Annotated[
    str | None, typer.Option(help="The identifier's column.", envvar="HUSHBID_IDENTIFIER")
]
BudgetOption: TypeAlias = Annotated[
    float | None,
    typer.Option(
        help="The most ε that the data may lose in their life, at δ = 1e-5.", envvar="HUSHBID_BUDGET_EPSILON"
    ),
]
LiftOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--lift-budget",
        help="Allow that the budget on record is raised, or lifted where none is given; and a new ledger for "
        "rows that have one. It stays on record.",
    ),
]


def stated_budget(
    written: BudgetSection | None, epsilon: float | None, *, lift: bool
) -> BudgetSection | None:
    """What a party says of its data's budget: its file's, and the options, which go before it.

    Raises:
        ConfigError: The option's ε is none.
    """
    from protocol.config.loading import validated
    from protocol.config.party import BudgetSection

    if epsilon is not None:
        return validated(BudgetSection, {"epsilon": epsilon, "lift": lift}, where="--budget-epsilon")
    if lift:
        return BudgetSection(lift=True) if written is None else written.model_copy(update={"lift": True})
    return written


@dataclass(frozen=True)
class OwnerOptions:
    """What an owner's command line says: which session, and what is its own.

    The session comes from a session file or from an invitation; what is the owner's own from its private
    file, or from options alone where there is an invitation. An option goes before the file.
    """

    session: Path | None = None
    config: Path | None = None
    invitation: Path | None = None
    data: Path | None = None
    key: Path | None = None
    state: Path | None = None
    ledger: Path | None = None
    features: str | None = None
    label: str | None = None
    identifier: str | None = None
    budget_epsilon: float | None = None
    lift_budget: bool = False

    def files(self) -> tuple[SessionFile, OwnerFile]:
        """The session and the owner's file that the options come to.

        Raises:
            ConfigError: One of them is missing, cannot be used, or contradicts the other.
        """
        from protocol.runtime.signed_files import read_session

        session, invited = read_session(self.session, self.invitation)
        file = self._file(session, invited)
        return session, self._with_options(file)

    def _file(self, session: SessionFile, invited: str | None) -> OwnerFile:
        """The owner's own file, or one in its place if the owner is invited."""
        from protocol.config.loading import load_toml
        from protocol.config.party import OwnerFile

        if self.config is None:
            return self._file_of(session, invited)
        file = load_toml(OwnerFile, self.config).resolved(self.config.parent)
        if invited not in (None, file.name):
            raise ConfigError(
                f"{self.invitation} is for {invited}, and {self.config} is the file of {file.name}.",
                advice="Give those of one owner.",
            )
        return file

    def _file_of(self, session: SessionFile, invited: str | None) -> OwnerFile:
        """What stands for the file of an owner that has none: key and state lie beside the invitation."""
        from protocol.config.party import OwnerFile
        from protocol.names import CONSUMER

        if invited is None or self.invitation is None:
            raise ConfigError(
                "Without an invitation an owner needs --config.", advice="Give the owner's private file."
            )
        if invited == CONSUMER:
            raise ConfigError(
                f"{self.invitation} is for the consumer.", advice="Give it to `hushbid consumer`."
            )
        if self.data is None:
            raise ConfigError(
                "With an invitation an owner needs --data, or --config.",
                advice="Give the file that holds the points.",
            )
        beside = self.invitation.resolve().parent
        return OwnerFile(
            name=invited,
            key=beside / f"{invited}.key",
            state=beside / f"{invited}-{session.session.name}",
            data=self.data,
        )

    def _with_options(self, file: OwnerFile) -> OwnerFile:
        features = None if self.features is None else [name.strip() for name in self.features.split(",")]
        named = {"features": features, "label": self.label, "identifier": self.identifier}
        columns = {name: value for name, value in named.items() if value is not None}
        return file.with_options(
            data=self.data,
            key=self.key,
            state=self.state,
            ledger=self.ledger,
            columns=file.columns.model_copy(update=columns),
            budget=stated_budget(file.budget, self.budget_epsilon, lift=self.lift_budget),
        )


def command(
    session: SessionOption = None,
    config: ConfigOption = None,
    invitation: InvitationOption = None,
    data: DataOption = None,
    key: KeyOption = None,
    state: StateOption = None,
    ledger: LedgerOption = None,
    features: FeaturesOption = None,
    label: LabelOption = None,
    identifier: IdentifierOption = None,
    budget_epsilon: BudgetOption = None,
    lift_budget: LiftOption = False,
    metrics: MetricsOption = None,
    log_format: LogFormatOption = LogFormat.TEXT,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Take part in a session as an owner, on this machine."""
    options = OwnerOptions(
        session=session,
        config=config,
        invitation=invitation,
        data=data,
        key=key,
        state=state,
        ledger=ledger,
        features=features,
        label=label,
        identifier=identifier,
        budget_epsilon=budget_epsilon,
        lift_budget=lift_budget,
    )

    def body() -> dict[str, Any]:
        from owner.process import run_owner

        set_up_logging("owner", log_format)
        session_file, file = options.files()
        file = file.with_options(metrics=metrics)
        set_up_logging(file.name, log_format)
        return run_owner(session_file, file)

    run_verb(body, as_json=as_json, show=_show)


def _show(result: Mapping[str, Any]) -> None:
    from protocol.session import privacy_lines

    lines = [
        f"{result['owner']}: {result['handed_over']} of {result['points']} points were handed over in "
        f"{result['rounds']} rounds.",
        *privacy_lines(result["privacy"]),
        f"Transcript: {result['transcript']}",
    ]
    sys.stdout.write("\n".join(lines) + "\n")
