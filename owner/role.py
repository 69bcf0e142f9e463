"""An owner of a session, for Python and the command line: its options, and how it runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from hushbid.protocol import ranges
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.runtime.command import KeyOption, MetricsOption, StateOption, by_option, option
from hushbid.protocol.runtime.control import Control, Watch
from hushbid.protocol.runtime.given_tables import (
    GivenPath,
    is_path,
    keep_table,
    needs_ledger,
    path_of,
    place_of,
    stated_budget,
)
from hushbid.protocol.runtime.ranged import ranged

if TYPE_CHECKING:
    from hushbid.owner.result import OwnerResult
    from hushbid.protocol.config.party import OwnerFile
    from hushbid.protocol.config.session import SessionFile
    from hushbid.protocol.data.frames import Frame

__all__ = [
    "BudgetOption",
    "DataOption",
    "FeaturesOption",
    "IdentifierOption",
    "LabelOption",
    "LedgerOption",
    "LiftOption",
    "OutsideOption",
    "Owner",
    "SessionOfTablesOption",
    "SessionOption",
]

SessionOption: TypeAlias = Annotated[
    Path | None, typer.Option(help="The session file.", envvar="HUSHBID_SESSION")
]
SessionOfTablesOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        help="The session file, the cluster file or the invitation: needed if the session has "
        "[\\[columns]], for tables, and for points that an older version delivered, whose file has no "
        "bounds.",
        envvar="HUSHBID_SESSION",
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
OutsideOption: TypeAlias = Annotated[
    Literal["refuse", "clip", "drop"] | None,
    typer.Option(
        help="Treatment of own rows that do not fit the session's public bounds, categories and labels; "
        "default: refuse, which reveals to others that there are some.",
        envvar="HUSHBID_OUTSIDE",
    ),
]
BudgetOption: TypeAlias = Annotated[
    float | None,
    ranged(
        ranges.Epsilon,
        help="Maximum ε that the data may lose over their lifetime, at δ = 1e-5.",
        envvar="HUSHBID_BUDGET_EPSILON",
    ),
]
LiftOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--lift-budget",
        help="Allow raising the recorded budget, lifting it where none is given, and starting a new ledger "
        "for rows that have one. The permission stays on record.",
    ),
]


@dataclass(frozen=True, eq=False)
class Owner:
    """An owner that takes part in a session: ``Owner(invitation, data).run()``.

    The session comes from a session file or an invitation. The owner's own settings come from its private
    file, or from options alone if there is an invitation; an option overrides the file. Any thread may run an
    owner, one at a time. Several parties may run in threads of one process, but nothing then protects them
    from it. A table needs a `ledger`; the state directory keeps the table so that a session can be resumed.

    Attributes:
        invitation: The file that the curator's operator has sent, in place of the session file.
        data: The points: a file, or a table as `hushbid.protocol.data.frames.Frame` says.
        session: The session file.
        config: The owner's private file.
        key: Its secret key's file.
        state: Its state directory, one for each session.
        ledger: The data's lifetime ledger.
        features: The feature columns of a table, as in ``"a,b,c"`` or as a list.
        label: The label's column.
        identifier: The identifier's column.
        outside: What becomes of rows that do not fit what is public: "refuse", "clip" or "drop".
        budget_epsilon: The most ε that the data may lose over their lifetime, at δ = 1e-5.
        lift_budget: Whether the budget on record may be raised or lifted.
        metrics: ``HOST:PORT`` to serve metrics at.
        progress: Called when the phase changes, and with updates at most ten times a second.
    """

    invitation: GivenPath = option(
        Path | None,
        help="In place of the session file. With --data an owner needs no private file: key and state lie "
        "beside the invitation.",
        envvar="HUSHBID_INVITATION",
    )
    data: Frame = field(default=None, repr=False, metadata=by_option(DataOption))
    _: KW_ONLY
    session: GivenPath = field(default=None, metadata=by_option(SessionOption))
    config: GivenPath = option(Path | None, help="The party's private file.", envvar="HUSHBID_CONFIG")
    key: GivenPath = field(default=None, metadata=by_option(KeyOption))
    state: GivenPath = field(default=None, metadata=by_option(StateOption))
    ledger: GivenPath = field(default=None, metadata=by_option(LedgerOption))
    features: str | Sequence[str] | None = field(default=None, metadata=by_option(FeaturesOption))
    label: str | None = field(default=None, metadata=by_option(LabelOption))
    identifier: str | None = field(default=None, metadata=by_option(IdentifierOption))
    outside: Literal["refuse", "clip", "drop"] | None = field(default=None, metadata=by_option(OutsideOption))
    budget_epsilon: float | None = field(default=None, metadata=by_option(BudgetOption))
    lift_budget: bool = field(default=False, metadata=by_option(LiftOption))
    metrics: str | None = field(default=None, metadata=by_option(MetricsOption))
    progress: Watch | None = None
    _control: Control = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_control", Control(self.progress))

    def run(self) -> OwnerResult:
        """Take part until the session is over, or resume one that was stopped.

        Raises:
            Stopped: `stop` was called, or Ctrl-C was typed; everything recorded is kept.
            HushbidError: As `hushbid.protocol.errors` says.
        """
        with self._control.one_run():
            return self.run_as(*self.files())

    def run_as(self, session: SessionFile, file: OwnerFile) -> OwnerResult:
        """Run with files that were already read (see `files`)."""
        from hushbid.owner.process import run_owner
        from hushbid.protocol.runtime.party import claimed

        with claimed(file.state, file.name):
            if self.data is not None and not is_path(self.data):
                keep_table(self.data, file.data, session.reading(file.columns.columns()), what="data")
            return run_owner(session, file, self._control)

    def stop(self) -> None:
        """End the run at the next turn of its loop; any thread may call it. `run` then raises `Stopped`.

        It ends the current run, or else the next one at the first turn of its loop. A run that is refused
        before that consumes the request.
        """
        self._control.stop()

    def files(self) -> tuple[SessionFile, OwnerFile]:
        """The session and the owner's file that the options result in.

        Raises:
            ConfigError: One of them is missing, unusable, or contradicts the other; the invitation has
                expired, and the owner has not begun; or `data` is a table and there is no ledger.
        """
        from hushbid.protocol.runtime.files.signed_files import check_begun_or_in_force, read_session
        from hushbid.protocol.runtime.party import transcript_path

        invitation = path_of(self.invitation)
        given = read_session(path_of(self.session), invitation)
        session = given.file
        file = self._with_options(self._file(session, given.invited))
        check_begun_or_in_force(given, invitation, transcript_path(file.state, file.name))
        if self.data is not None and not is_path(self.data):
            needs_ledger("data", file.ledger)
        return session, file

    def _file(self, session: SessionFile, invited: str | None) -> OwnerFile:
        """The owner's own file, or its substitute if the owner is invited."""
        from hushbid.protocol.config.loading import load_toml
        from hushbid.protocol.config.party import OwnerFile

        config = path_of(self.config)
        if config is None:
            return self._file_of(session, invited)
        file = load_toml(OwnerFile, config).resolved(config.parent)
        if invited not in (None, file.name):
            raise ConfigError(
                f"{self.invitation} is for {invited}, and {config} is the file of {file.name}.",
                advice="Give those of one owner.",
            )
        return file

    def _file_of(self, session: SessionFile, invited: str | None) -> OwnerFile:
        """A file for an owner without one: key and state lie beside the invitation."""
        from hushbid.protocol.config.loading import validated
        from hushbid.protocol.config.party import OwnerFile
        from hushbid.protocol.names import CONSUMER

        invitation = path_of(self.invitation)
        if invited is None or invitation is None:
            raise ConfigError(
                "Without an invitation an owner needs --config.", advice="Give the owner's private file."
            )
        if invited == CONSUMER:
            raise ConfigError(f"{invitation} is for the consumer.", advice="Give it to `hushbid consumer`.")
        if self.data is None:
            raise ConfigError(
                "With an invitation an owner needs --data, or --config.",
                advice="Give the file that holds the points.",
            )
        beside = invitation.resolve().parent
        state = beside / f"{invited}-{session.session.name}"
        values = {
            "name": invited,
            "key": beside / f"{invited}.key",
            "state": state,
            "data": place_of(self.data, state, "data"),
        }
        return validated(OwnerFile, values, where="the options")

    def _with_options(self, file: OwnerFile) -> OwnerFile:
        from hushbid.protocol.data.names import split_names

        features = split_names(self.features)
        named = {
            "features": None if features is None else list(features),
            "label": self.label,
            "identifier": self.identifier,
            "outside": self.outside,
        }
        file = file.with_options(state=path_of(self.state))
        return file.with_options(
            key=path_of(self.key),
            data=place_of(self.data, file.state, "data"),
            ledger=path_of(self.ledger),
            columns=file.columns.with_options(**named),
            budget=stated_budget(file.budget, self.budget_epsilon, lift=self.lift_budget),
            metrics=self.metrics,
        )
