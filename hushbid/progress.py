"""What is shown on stderr while a verb works for long: bars where somebody watches, and else a line each."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

__all__ = ["JobProgress", "job_progress"]

JobProgress: TypeAlias = Callable[[str, int, int], None]
"""Called with a job's name, what is done of it, and all that is to do."""


@contextmanager
def job_progress(doing: str, unit: str) -> Iterator[JobProgress]:
    """Show how far each of several jobs is.

    Args:
        doing: What is done to a job, such as "auditing".
        unit: What is counted, such as "runs".
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    shown: dict[str, Any] = {}
    if not console.is_terminal:

        def say(job: str, _done: int, total: int) -> None:
            if job not in shown:
                shown[job] = total
                sys.stderr.write(f"{doing} {job}: {total} {unit}\n")
                sys.stderr.flush()

        yield say
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as bar:

        def update(job: str, done: int, total: int) -> None:
            if job not in shown:
                shown[job] = bar.add_task(job, total=total)
            bar.update(shown[job], completed=done)

        yield update
