"""The consumer of a session, for Python and the command line: its options, and how it runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias

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

if TYPE_CHECKING:
    from hushbid.consumer.result import ConsumerResult
    from hushbid.protocol.config.party import ConsumerFile
    from hushbid.protocol.config.session import SessionFile
    from hushbid.protocol.data.frames import Frame

__all__ = ["ConsumerRole"]

ConfigOption: TypeAlias = Annotated[
    Path | None, typer.Option(help="The consumer's private file.", envvar="HUSHBID_CONFIG")
]
ValidationOption: TypeAlias = Annotated[
    Path | None, typer.Option(help="D_v, in place of the file's.", envvar="HUSHBID_VALIDATION")
]
SeedSetOption: TypeAlias = Annotated[
    Path | None, typer.Option(help="D_init, in place of the file's.", envvar="HUSHBID_SEED_SET")
]


@dataclass(frozen=True, eq=False)
class ConsumerRole:
    """A session's consumer: ``ConsumerRole(config, invitation=…).run()``.

    Options override its private file, and do without one if there is an invitation: key and state then lie
    beside that. It is run, stopped and watched like an `hushbid.owner.role.Owner`, which says what other
    attributes are, and accepts tables as well.

    Attributes:
        config: Its private file.
        session: The session file.
        invitation: An invitation instead of the session file.
        validation: D_v, instead of the file's: a file or a table.
        seed_set: D_init, also instead of the file's.
        seed_points: How many points of D_init are drawn, in place of a `seed_set`.
        test: Labelled points to judge a model by.
        ledger: D_v's lifetime ledger.
        target_file: A release of D_v made by a screening, instead of a new one.
        outside: What becomes of rows of D_v that do not fit what is public: "refuse", "clip" or "drop".
    """

    config: GivenPath = field(default=None, metadata=by_option(ConfigOption))
    _: KW_ONLY
    session: GivenPath = option(Path | None, help="The session file.", envvar="HUSHBID_SESSION")
    invitation: GivenPath = option(
        Path | None,
        help="In place of the session file. With --validation and a seed set the consumer needs no private "
        "file: key and state lie beside the invitation.",
        envvar="HUSHBID_INVITATION",
    )
    validation: Frame = field(default=None, repr=False, metadata=by_option(ValidationOption))
    seed_set: Frame = field(default=None, repr=False, metadata=by_option(SeedSetOption))
    seed_points: int | None = option(
        ranges.DrawnPoints | None, help="Draw this many points of D_init, in place of a file."
    )
    test: GivenPath = option(Path | None, help="Labelled points to judge a model by, in place of the file's.")
    features: str | Sequence[str] | None = option(
        str | None, help="Feature columns of D_v's table, as in a,b,c.", envvar="HUSHBID_FEATURES"
    )
    label: str | None = option(str | None, help="The label's column.", envvar="HUSHBID_LABEL")
    budget_epsilon: float | None = option(
        ranges.Epsilon | None,
        help="Maximum ε that D_v may lose over its lifetime, at δ = 1e-5.",
        envvar="HUSHBID_BUDGET_EPSILON",
    )
    key: GivenPath = field(default=None, metadata=by_option(KeyOption))
    state: GivenPath = field(default=None, metadata=by_option(StateOption))
    ledger: GivenPath = option(
        Path | None, help="D_v's lifetime ledger, in place of the file's.", envvar="HUSHBID_LEDGER"
    )
    target_file: GivenPath = option(
        Path | None,
        help="A release of D_v that `hushbid screen` made, in place of a new one.",
        envvar="HUSHBID_TARGET_FILE",
    )
    outside: Literal["refuse", "clip", "drop"] | None = option(
        Literal["refuse", "clip", "drop"] | None,
        help="Treatment of rows of D_v and of test rows that do not fit the session's public bounds and "
        "categories; default: refuse.",
        envvar="HUSHBID_OUTSIDE",
    )
    metrics: str | None = field(default=None, metadata=by_option(MetricsOption))
    progress: Watch | None = None
    _control: Control = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_control", Control(self.progress))

    def run(self) -> ConsumerResult:
        """Take part until the session is over, or resume one that was stopped; then appraise the purchase.

        Raises:
            Stopped: `stop` was called, or Ctrl-C was typed; everything recorded is kept.
            HushbidError: As `hushbid.protocol.errors` says.
        """
        from hushbid.consumer.process import run_consumer
        from hushbid.protocol.names import CONSUMER
        from hushbid.protocol.runtime.party import claimed

        with self._control.one_run():
            session, file = self.files()
            with claimed(file.state, CONSUMER):
                self._keep_tables(session, file)
                self._before(session, file)
                return run_consumer(session, file, self._control)

    def stop(self) -> None:
        """End the run at the next turn of its loop; any thread may call it (`hushbid.Owner.stop`)."""
        self._control.stop()

    def files(self) -> tuple[SessionFile, ConsumerFile]:
        """The session and the consumer's file that the options result in.

        Raises:
            ConfigError: One of them is missing, unusable, or another party's; the invitation has expired, and
                the consumer has not begun; or `validation` is a table and there is no ledger.
        """
        from hushbid.protocol.data.names import split_names
        from hushbid.protocol.names import CONSUMER
        from hushbid.protocol.runtime.files.signed_files import check_begun_or_in_force, read_session
        from hushbid.protocol.runtime.party import transcript_path

        invitation = path_of(self.invitation)
        given = read_session(path_of(self.session), invitation)
        session_file, invited = given.file, given.invited
        if invited not in (None, CONSUMER):
            raise ConfigError(f"{self.invitation} is for {invited}.", advice="Give it to `hushbid owner`.")
        file = self._file(session_file, invited).with_options(state=path_of(self.state))
        features = split_names(self.features)
        named = {"features": None if features is None else list(features), "label": self.label}
        file = file.with_options(
            key=path_of(self.key),
            ledger=path_of(self.ledger),
            target_file=path_of(self.target_file),
            columns=file.columns.with_options(**named, outside=self.outside),
            test=path_of(self.test),
            seed_points=self.seed_points,
            budget=stated_budget(file.budget, self.budget_epsilon, lift=False),
            metrics=self.metrics,
            **{name: place_of(getattr(self, name), file.state, name) for name in _TABLES},
        )
        check_begun_or_in_force(given, invitation, transcript_path(file.state, CONSUMER))
        if self.validation is not None and not is_path(self.validation):
            needs_ledger("validation", file.ledger)
        return session_file, file

    def _file(self, session: SessionFile, invited: str | None) -> ConsumerFile:
        """The consumer's own file, or its substitute if it is invited."""
        from hushbid.protocol.config.loading import load_toml, validated
        from hushbid.protocol.config.party import ConsumerFile
        from hushbid.protocol.names import CONSUMER

        config, invitation = path_of(self.config), path_of(self.invitation)
        if config is not None:
            return load_toml(ConsumerFile, config).resolved(config.parent)
        if invited is None or invitation is None:
            raise ConfigError(
                "Without an invitation the consumer needs --config.",
                advice="Give the consumer's private file.",
            )
        if self.validation is None:
            raise ConfigError(
                "With an invitation the consumer needs --validation and a seed set, or --config.",
                advice="Give the file that holds D_v, and --seed-set or --seed-points.",
            )
        beside = invitation.resolve().parent
        state = beside / f"{CONSUMER}-{session.session.name}"
        values = {
            "key": beside / f"{CONSUMER}.key",
            "state": state,
            "seed_points": self.seed_points,
            **{name: place_of(getattr(self, name), state, name) for name in _TABLES},
        }
        return validated(ConsumerFile, values, where="the options")

    def _keep_tables(self, session: SessionFile, file: ConsumerFile) -> None:
        for name in _TABLES:
            given, place = getattr(self, name), getattr(file, name)
            if given is not None and not is_path(given):
                keep_table(given, place, session.reading(file.columns.columns()), what=name)

    def _before(self, session: SessionFile, file: ConsumerFile) -> None:
        """Hook that runs before any connection is made; does nothing here."""


_TABLES: Final = ("validation", "seed_set")
"""Options that may be a table instead of a file."""
