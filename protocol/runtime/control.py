"""Control over a running party: events about its progress, and a way to stop it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Final, Literal, Self, TypeAlias

from hushbid.protocol.errors import Stopped
from hushbid.protocol.machine.progress import Progress

__all__ = ["PROGRESS_SECONDS", "Control", "Watch"]

PROGRESS_SECONDS: Final = 0.1
"""Seconds between two events, if neither phase nor pause change."""


Watch: TypeAlias = Callable[[Progress], object]
"""The party's own thread calls it between two turns of its loop, so the session waits for it. An exception
ends the party's run; the transcript is kept.
"""


class Control:
    """A party's link to its caller: it reports progress, and can be told to stop.

    `stop` in any thread stops it, and so do SIGTERM and SIGINT while its loop runs in the main thread. Each
    sets a flag, so that no write is interrupted.

    Args:
        watch: Gets events; None: nobody does.
    """

    def __init__(self, watch: Watch | None = None) -> None:
        self._watch = watch
        self._by: str | None = None
        self._told: Progress | None = None
        self._previous: dict[signal.Signals, object] = {}

    @property
    def watched(self) -> bool:
        return self._watch is not None

    def tell(self, progress: Progress) -> None:
        """Report the party's progress, unless nothing has changed."""
        if self._watch is not None and progress != self._told:
            self._told = progress
            self._watch(progress)

    def stop(self) -> None:
        """Have the party end at the next turn of its loop. Any thread may call it, even before the run."""
        self._by = "stop()"

    def raise_if_stopped(self) -> None:
        if self._by is not None:
            raise Stopped(
                f"Stopped by {self._by}; what was recorded is kept.",
                advice="Start it again with the same state directory, and it goes on where it was.",
            )

    @contextmanager
    def one_run(self) -> Iterator[None]:
        """A run, even one that is refused. A request to stop before or during it stops no later run."""
        try:
            yield
        finally:
            self._by = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():  # no other thread may set handlers
            for number in (signal.SIGTERM, signal.SIGINT):
                self._previous[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> Literal[False]:
        while self._previous:
            number, handler = self._previous.popitem()
            # A handler that was not set from Python cannot be restored from there.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)  # type: ignore[arg-type]
        return False

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self._by = signal.Signals(number).name
