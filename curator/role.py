"""The curator of a session, for Python and the command line: its options, and how it runs."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from hushbid.protocol.runtime.command import KeyOption, MetricsOption, StateOption, by_option, option
from hushbid.protocol.runtime.control import Control, Watch
from hushbid.protocol.runtime.given_tables import GivenPath, path_of

if TYPE_CHECKING:
    from hushbid.curator.result import CuratorResult
    from hushbid.protocol.config.party import CuratorFile
    from hushbid.protocol.config.session import SessionFile

__all__ = ["Curator"]

SessionOption: TypeAlias = Annotated[Path, typer.Option(help="The session file.", envvar="HUSHBID_SESSION")]
ConfigOption: TypeAlias = Annotated[
    Path, typer.Option(help="The curator's private file.", envvar="HUSHBID_CONFIG")
]


@dataclass(frozen=True, eq=False)
class Curator:
    """A session's curator: ``Curator(session, config).run()``.

    It is run, stopped and watched like an `hushbid.owner.role.Owner`, which says what other attributes are.
    Options override the files.

    Attributes:
        session: The session file.
        config: The curator's private file.
        listen: The address to bind.
    """

    session: Path | str = field(metadata=by_option(SessionOption))
    config: Path | str = field(metadata=by_option(ConfigOption))
    _: KW_ONLY
    listen: str | None = option(
        str | None, help="Address to bind, in place of the files'.", envvar="HUSHBID_LISTEN"
    )
    key: GivenPath = field(default=None, metadata=by_option(KeyOption))
    state: GivenPath = field(default=None, metadata=by_option(StateOption))
    metrics: str | None = field(default=None, metadata=by_option(MetricsOption))
    progress: Watch | None = None
    _control: Control = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_control", Control(self.progress))

    def run(self, *, progress_fd: int | None = None) -> CuratorResult:
        """Run the session's rounds until it is over, or resume one that was stopped.

        Args:
            progress_fd: A file descriptor for lines of JSON, which `hushbid run` reads from another process.

        Raises:
            Stopped: `stop` was called, or Ctrl-C was typed; everything recorded is kept.
            HushbidError: As `hushbid.protocol.errors` says.
        """
        from hushbid.curator.process import run_curator

        with self._control.one_run():
            session, file = self.files()
            return run_curator(session, file, self._control, progress=progress_fd)

    def stop(self) -> None:
        """End the run at the next turn of its loop; any thread may call it (`hushbid.Owner.stop`)."""
        self._control.stop()

    def files(self) -> tuple[SessionFile, CuratorFile]:
        """The session and the curator's file that the options result in; `ConfigError` if one is unusable."""
        from hushbid.protocol.config.loading import load_toml
        from hushbid.protocol.config.party import CuratorFile
        from hushbid.protocol.config.session import SessionFile

        config = Path(self.config)
        file = load_toml(CuratorFile, config).resolved(config.parent)
        options = {"key": path_of(self.key), "state": path_of(self.state)}
        return load_toml(SessionFile, Path(self.session)), file.with_options(
            listen=self.listen, metrics=self.metrics, **options
        )
