"""`hushbid run` and `hushbid simulate`: a whole session from a cluster file, in many processes or in one."""

from __future__ import annotations

import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from hushbid.cli.progress import session_progress
from hushbid.cli.terminal import Terminal
from hushbid.parties import AnywayOption, RehearsalOption
from hushbid.protocol import platform, ranges
from hushbid.protocol.runtime.command import JsonOption, by_option, option, say, takes, verb
from hushbid.protocol.runtime.interrupts import SignalEnd
from hushbid.protocol.runtime.ranged import ranged

if TYPE_CHECKING:
    from hushbid.cluster.file import Cluster
    from hushbid.plan.verdict import Rehearsing
    from hushbid.results.run import RunResult

__all__ = ["end_on_signals", "run_command", "simulate_command"]


@dataclass(frozen=True, kw_only=True)
class _ClusterOptions:
    """The shared options: the session, and whether to rehearse it first."""

    cluster: Path = field(
        metadata=by_option(
            Annotated[
                Path,
                typer.Argument(
                    help="The cluster file, or the name of an example: digits.", metavar="CLUSTER.toml"
                ),
            ]
        )
    )
    data: Path | None = option(
        Path | None, "--data", help="Directory of the cluster file's dataset.", envvar="HUSHBID_DATA"
    )
    settings: list[str] | None = option(
        list[str] | None,
        "--set",
        help="Override a key of the cluster file, as in session.points=200.",
        metavar="SECTION.KEY=VALUE",
    )
    rehearsal: bool = field(default=True, metadata=by_option(RehearsalOption))
    anyway: bool = field(default=False, metadata=by_option(AnywayOption))

    details: bool = option(
        bool,
        "--details",
        default=False,
        help="Print all figures, and each owner's sales and payment.",
    )

    def opened(self) -> Cluster:
        from hushbid.cluster.file import open_cluster

        return open_cluster(self.cluster, data=self.data, settings=self.settings or ())

    def rehearsing(self) -> Rehearsing:
        from hushbid.plan.verdict import Rehearsing

        return Rehearsing(wanted=self.rehearsal, anyway=self.anyway, say=say)


@takes(_ClusterOptions)
@verb()
def run_command(
    options: _ClusterOptions,
    directory: Annotated[
        Path | None,
        typer.Option(
            "--output",
            help="Parent directory of the run's directory; default: runs.",
            envvar="HUSHBID_DIRECTORY",
        ),
    ] = None,
    replay: Annotated[
        bool, typer.Option("--replay", help="Also write a page that replays the session in the browser.")
    ] = False,
    as_json: JsonOption = False,
) -> dict[str, Any]:
    """Run a whole cluster on this machine, every party as its own process."""
    from hushbid.running.fork_server import ForkServer

    end_on_signals()
    with ForkServer() as server:  # imports run meanwhile
        from hushbid.running.launcher import run

        opened = options.opened()
        with session_progress() as follow:
            result = run(
                opened,
                directory=directory,
                follow=follow,
                say=say,
                rehearsing=options.rehearsing(),
                server=server,
                replay=replay,
            )
    return _finished(result, details=options.details, as_json=as_json)


@takes(_ClusterOptions)
@verb()
def simulate_command(
    options: _ClusterOptions,
    owners: Annotated[
        int | None, ranged(ranges.OwnerCount, help="Number of owners to spread the points over.")
    ] = None,
    owner_points: Annotated[
        int | None,
        ranged(
            ranges.Count,
            help="Points of each of --owners, drawn with replacement; default: all points, dealt out.",
        ),
    ] = None,
    record: Annotated[
        Path | None, typer.Option("--output", help="Directory for the parties' transcripts.")
    ] = None,
    as_json: JsonOption = False,
) -> dict[str, Any]:
    """Run a whole cluster in one process: the same machines and messages, no network."""
    from hushbid.running.simulate import simulate

    opened = options.opened()
    with session_progress() as follow:
        result = simulate(
            opened,
            owners=owners,
            owner_points=owner_points,
            record=record,
            follow=follow,
            say=say,
            rehearsing=options.rehearsing(),
        )
    return _finished(result, details=options.details, as_json=as_json)


def _finished(result: RunResult, *, details: bool, as_json: bool) -> dict[str, Any]:
    """Print a result's tables, to stderr if stdout is for JSON; returns the JSON."""
    from hushbid.results.terminal import render

    render(result, Terminal(stderr=as_json), details=details)
    return result.as_json()


def end_on_signals() -> None:
    """Let SIGTERM and SIGHUP unwind the stack, as Ctrl-C does, so that every party's process is ended."""

    def end(number: int, _frame: object) -> NoReturn:
        raise SignalEnd(number)

    for number in platform.ENDING:
        signal.signal(number, end)
