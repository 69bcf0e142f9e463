"""Progress on stderr during long work: bars on a terminal, otherwise one line per update."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from hushbid.protocol.machine.progress import COMPARING
from hushbid.protocol.machine.progress import Progress as SessionProgress
from hushbid.protocol.names import CONSUMER
from hushbid.protocol.runtime.command import is_quiet
from hushbid.protocol.runtime.command import say as say_line

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

__all__ = [
    "JobProgress",
    "bought",
    "job_progress",
    "left",
    "rate",
    "session_bar",
    "session_progress",
    "waiting",
]

JobProgress: TypeAlias = Callable[[str, int, int], None]
"""Takes a job's name, the part of it that is done, and its total."""


@contextmanager
def session_progress(console: Console | None = None) -> Iterator[Callable[[SessionProgress], None] | None]:
    """A bar of a session's rounds on a console, by default stderr, if that is a terminal; else None."""
    from rich.live import Live

    from hushbid.cli.terminal import Terminal

    console = Terminal(stderr=True) if console is None else console
    if is_quiet() or not console.is_terminal:
        yield None
        return
    with Live(console=console, transient=True) as live:
        yield lambda progress: live.update(session_bar(progress))


def session_bar(progress: SessionProgress) -> RenderableType:
    """A bar that is full once all rounds are decided, above the missing parties; or a bar for a comparison.

    It counts rounds, as owners may run out of points before the planned number is reached.
    """
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    over = progress.phase not in ("enrolling", "rounds")
    begun = progress.rounds if over else max(0, progress.round - 1)
    where = f"round {progress.round} of {progress.rounds}" if progress.round else progress.phase
    figures = [
        f"{points} points" if (points := bought(progress)) else "",
        rate(progress.points_per_second),
        left(progress.seconds_left),
    ]
    line = Table.grid(padding=(0, 1))
    if progress.phase == COMPARING:
        share = progress.busy_share
        line.add_row(
            Text(progress.busy or "", no_wrap=True),
            ProgressBar(total=1.0, completed=share or 0.0, width=20, pulse=share is None),
        )
        return line
    line.add_row(
        Text(where, no_wrap=True),
        ProgressBar(total=progress.rounds, completed=begun, width=20),
        Text(", ".join(figure for figure in figures if figure)),
    )
    missing = waiting(progress)
    if not missing:
        return line
    return Group(line, Text(f"{'paused, ' if progress.paused else ''}missing: {missing}"))


def bought(progress: SessionProgress) -> str:
    """Points bought, and the planned number if known; empty if unknown."""
    points, planned = progress.points, progress.points_planned
    return "" if points is None else str(points) if planned is None else f"{points} of {planned}"


def rate(points_per_second: float | None) -> str:
    """A rate in words; empty if unknown."""
    return "" if points_per_second is None else f"{points_per_second:.3g} points/s"


def left(seconds: float | None) -> str:
    """The remaining time in words; empty if unknown."""
    if seconds is None:
        return ""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02} left" if hours else f"{minutes}:{rest:02} left"


def waiting(progress: SessionProgress) -> str:
    """The missing parties, named as far as owners may be named; empty if nobody is missing."""
    here, owners = progress.owners_connected, progress.owners
    if here is None or owners is None or progress.phase not in ("enrolling", "rounds"):
        return ""
    if not progress.missing:
        return "" if here >= owners else f"{owners - here} of {owners} owners"
    more = owners - here - sum(name != CONSUMER for name in progress.missing)
    return ", ".join([*progress.missing, *([f"{more} more"] if more > 0 else [])])


@contextmanager
def job_progress(doing: str, unit: str) -> Iterator[JobProgress]:
    """Show the progress of several jobs, in words such as "auditing" and "runs"."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from hushbid.cli.terminal import Terminal

    console = Terminal(stderr=True)
    shown: dict[str, Any] = {}
    if is_quiet() or not console.is_terminal:

        def say(job: str, _done: int, total: int) -> None:
            if job not in shown:
                shown[job] = total
                say_line(f"{doing} {job}: {total} {unit}")

        yield say
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as bar:

        def update(job: str, done: int, total: int) -> None:
            if job not in shown:
                shown[job] = bar.add_task(job, total=total)
            bar.update(shown[job], completed=done)

        yield update
