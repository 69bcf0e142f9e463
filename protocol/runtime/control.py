"""Control over a running party: events about its progress, and a way to stop it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Final, Literal, Self, TypeAlias

from protocol.errors import Stopped
from protocol.machine.progress import Progress

__all__ = ["PROGRESS_SECONDS", "Control", "Watch"]

PROGRESS_SECONDS: Final = 0.1
"""Between two events, if neither phase nor pause change."""


Watch: TypeAlias = Callable[[Progress], object]
"""Called by the party's own thread, between two turns of its loop: the session waits for it. What it raises
ends the party's run; what was recorded is kept."""


class Control:
    """A party's way to the outside: it tells how far it is, and learns that it is to end.

    It is told to end by `stop` in any thread, and by SIGTERM and SIGINT while its loop runs in the main
    thread. Either sets a flag, so that nothing is cut in the middle of a write.

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
        """Whether anybody gets events."""
        return self._watch is not None

    def tell(self, progress: Progress) -> None:
        """Hand on how far the party is, unless nothing has changed.

        Args:
            progress: What its status file says too.
        """
        if self._watch is not None and progress != self._told:
            self._told = progress
            self._watch(progress)

    def stop(self) -> None:
        """Have the party end at the next turn of its loop; any thread may call it, also before the run."""
        self._by = "stop()"

    def raise_if_stopped(self) -> None:
        """Raise `Stopped` if the party was told to end."""
        if self._by is not None:
            raise Stopped(
                f"Stopped by {self._by}; what was recorded is kept.",
                advice="Start it again with the same state directory, and it goes on where it was.",
            )

    @contextmanager
    def one_run(self) -> Iterator[None]:
        """A run, also one that is refused: a word to end that came before or during it ends no later one."""
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
