"""A bar of a session's rounds below a notebook's cell, if there is one and nobody else follows."""

from __future__ import annotations

import sys
from collections.abc import Callable
from html import escape
from typing import Any

from hushbid.protocol.machine.progress import COMPARING, Progress

__all__ = ["notebook_bar"]

_SHELL = "ZMQInteractiveShell"
"""The class of a notebook's shell; a terminal's shell has another, and shows no markup."""


def notebook_bar() -> Callable[[Progress], None] | None:
    """A function that shows a session's progress below the running cell; None: this is no notebook."""
    ipython: Any = sys.modules.get("IPython")
    if ipython is None or type(ipython.get_ipython()).__name__ != _SHELL:
        return None
    shown: Any = None

    def show(progress: Progress) -> None:
        nonlocal shown
        page = ipython.display.HTML(_bar(progress))
        if shown is None:
            shown = ipython.display.display(page, display_id=True)
        else:
            shown.update(page)

    return show


def _bar(progress: Progress) -> str:
    if progress.phase == COMPARING:
        value = "" if progress.busy_share is None else f' value="{progress.busy_share:.2f}"'
        return f"<progress{value}></progress> {escape(progress.busy or '')}"
    done, points = progress.rounds_done, progress.points or 0
    planned = "" if progress.points_planned is None else f" of {progress.points_planned}"
    missing = f", missing: {', '.join(progress.missing)}" if progress.missing else ""
    said = f"{progress.phase}: round {done} of {progress.rounds}, {points}{planned} points{missing}"
    return f'<progress value="{done}" max="{progress.rounds}"></progress> {escape(said)}'
