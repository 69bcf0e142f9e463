"""Noise drawn ahead of time, by a thread of its own (DESIGN §2, "Noise").

Otherwise rounds wait for noise: 140 values of a secure discrete Gaussian take 1 to 2 ms. A draw depends only
on public values, so all of a session's noise can be drawn before its data are known.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

import numpy.typing as npt

from hushbid.protocol.closing import Closing
from hushbid.protocol.errors import LocalProtocolError
from hushbid.protocol.platform import LIBRARIES
from hushbid.protocol.privacy.noise import Draw, NoiseSource
from hushbid.protocol.session.session import Session

__all__ = ["DrawnAhead", "expect_noise"]

BULK_VALUES: Final = 1024
"""Values that the thread requests from the source at once, about 10 ms of work. Values cost less in bulk; a
caller whose noise is not ready waits for the current request.
"""

CAPACITY: Final = 2**17
"""Most values that are kept, 1 MiB of unused noise."""


class DrawnAhead(Closing):
    """A source of noise that keeps expected vectors ready, and passes other requests on to another source.

    Each value is handed out at most once, and `close` discards the rest. The source gets one request at a
    time. Callers may be in several threads.

    Args:
        source: Draws the noise. It must protect: seeded noise depends on the order of requests, and so would
            depend on the thread's timing.
        capacity: Most values that are kept. A longer vector is drawn when it is requested.

    Raises:
        LocalProtocolError: The source does not protect.
    """

    def __init__(self, source: NoiseSource, *, capacity: int = CAPACITY) -> None:
        if not source.protects:
            raise LocalProtocolError(
                f"Noise that is {source.name} was to be drawn ahead, and would not repeat."
            )
        self._source = source
        self._capacity = capacity
        self._changed = threading.Condition()
        # All below is read and written under `_changed`.
        self._expected: dict[Draw, int] = {}
        self._ready: dict[Draw, deque[npt.NDArray[Any]]] = {}
        self._kept = 0
        self._busy = False
        self._waiting = 0
        self._closed = False
        self._failure: Exception | None = None
        self._thread: threading.Thread | None = None
        self._process = os.getpid()

    @property
    def name(self) -> str:
        return self._source.name

    @property
    def protects(self) -> bool:
        return self._source.protects

    def check(self, request: Draw) -> None:
        self._source.check(request)

    def expect(self, draw: Draw, count: int) -> None:
        """Have `count` more vectors like `draw` drawn, after those already expected.

        Raises:
            ConfigError: The source has no such noise.
            LocalProtocolError: `count` is negative, or this source is closed.
        """
        if count < 0:
            raise LocalProtocolError(f"{count} draws of noise were expected.")
        self._source.check(draw)
        with self._changed:
            self._ensure_open()
            if count == 0:
                return
            self._expected[draw] = self._expected.get(draw, 0) + count
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="drawn-ahead", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def draw(self, request: Draw) -> npt.NDArray[Any]:
        """A vector that is ready, or a fresh one from the source.

        Raises:
            ConfigError: The source has no such noise.
            LocalProtocolError: This source is closed.
            Exception: Any error that the source raised in the thread, from then on.
        """
        with self._changed:
            self._take_turn(request)
            ready = self._ready.get(request)
            if ready:
                self._kept -= request.size
                self._changed.notify_all()
                return ready.popleft()
            self._busy = True
            self._forget(request, 1)  # it is made here, and need not be made by the thread
        try:
            return self._source.draw(request)
        finally:
            self._end_turn()

    def random_bytes(self, count: int) -> bytes:
        """Fresh bytes from the source.

        Raises:
            LocalProtocolError: `count` is less than 1, or this source is closed.
            Exception: As `draw`.
        """
        with self._changed:
            self._take_turn(None)
            self._busy = True
        try:
            return self._source.random_bytes(count)
        finally:
            self._end_turn()

    def close(self) -> None:
        """End the thread, wait for it, and discard unused noise."""
        with self._changed:
            self._closed = True
            self._expected.clear()
            self._changed.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join()
        with self._changed:
            self._ready.clear()
            self._kept = 0

    # Callers, with `_changed` held.

    def _take_turn(self, request: Draw | None) -> None:
        """Wait until `request` is ready, or the source is idle."""
        self._waiting += 1
        try:
            self._changed.wait_for(
                lambda: (
                    self._closed
                    or self._failure is not None
                    or not self._busy
                    or (request is not None and self._ready.get(request))
                )
            )
        finally:
            self._waiting -= 1
        self._ensure_open()
        if self._failure is not None:
            raise self._failure

    def _ensure_open(self) -> None:
        if self._closed:
            raise LocalProtocolError("Noise was asked of a source that is closed.")
        if os.getpid() != self._process:
            raise LocalProtocolError("Noise was asked of another process's source: it has what that one has.")

    def _forget(self, draw: Draw, count: int) -> None:
        left = self._expected.get(draw, 0) - count
        if left > 0:
            self._expected[draw] = left
        else:
            self._expected.pop(draw, None)

    def _end_turn(self) -> None:
        with self._changed:
            self._busy = False
            self._changed.notify_all()

    # The thread.

    def _run(self) -> None:
        loads: AbstractContextManager[object] = LIBRARIES  # the first draw imports OpenDP
        while (job := self._next_job()) is not None:
            draw, count = job
            try:
                with loads:
                    drawn = self._source.draw(Draw(draw.distribution, draw.scale, draw.size * count))
                loads = nullcontext()
            except Exception as error:  # it belongs to whoever asks for noise
                with self._changed:
                    self._failure = error
                    self._busy = False
                    self._changed.notify_all()
                return
            with self._changed:
                # Copies: each vector can be freed alone, and changed by its caller.
                self._ready.setdefault(draw, deque()).extend(row.copy() for row in drawn.reshape(count, -1))
                self._kept += draw.size * count
                self._busy = False
                self._changed.notify_all()

    def _next_job(self) -> tuple[Draw, int] | None:
        """Wait for something to draw, and take the turn; None at the end."""
        with self._changed:
            while not self._closed:
                # Callers go first: they hold up a round.
                job = None if self._busy or self._waiting else self._job()
                if job is not None:
                    self._busy = True
                    self._forget(*job)
                    return job
                self._changed.wait()
        return None

    def _job(self) -> tuple[Draw, int] | None:
        for draw, count in self._expected.items():
            room = (self._capacity - self._kept) // draw.size
            fits = min(count, room, max(1, BULK_VALUES // draw.size))
            if fits:
                return draw, fits
        return None


def expect_noise(ahead: DrawnAhead, session: Session, *, drawn: int) -> None:
    """Have the noise of all remaining releases drawn.

    Args:
        drawn: Number of releases whose noise was drawn before.
    """
    summary, settlement = session.summary, session.settlement
    if settlement is not None:
        ahead.expect(settlement.draw, 0 if drawn == session.owners_releases else 1)
    drawn = min(drawn, summary.releases)
    first = 1 if drawn == 0 else 0
    for draw in summary.draws(0):
        ahead.expect(draw, first)
    for draw in summary.draws(summary.releases - 1):
        ahead.expect(draw, summary.releases - max(drawn, 1))
    for draw in session.rule.draws():
        ahead.expect(draw, summary.releases - drawn)
