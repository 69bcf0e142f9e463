"""A TCP proxy whose connections a test can cut, as networks do, and whose bytes it can change."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable

from tests.processes.cluster import free_port

__all__ = ["Proxy"]


class Proxy:
    """Passes bytes between whoever connects to `port` and a port of this machine, until they are cut."""

    def __init__(self, target: int) -> None:
        self.port = free_port()
        self.accepted = 0
        self.garble: Callable[[bytes, bool], bytes | None] | None = None
        """What makes of a chunk, and of whether it goes to the port of this machine, what is passed on in its
        place; None: not of this one. It does so once, or for good.
        """
        self.for_good = False
        self.linger = 0.0
        """Seconds after which one side learns that the other has closed its connection."""
        self.stalled = threading.Event()
        """While it is set nothing is passed on, and no connection ends."""
        self._left: int | None = None
        self._target = target
        self._open: list[socket.socket] = []
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._serve, daemon=True).start()

    def cut_after(self, size: int) -> None:
        """End every connection after so many more bytes: likely within a frame."""
        with self._lock:
            self._left = size

    @property
    def armed(self) -> bool:
        """Whether the cut is still to come."""
        return self._left is not None

    def _cut(self) -> None:
        with self._lock:
            cut, self._open = self._open, []
            self._left = None
        for end in cut:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._cut()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                inner, _ = self._listener.accept()
                try:
                    outer = socket.create_connection(("127.0.0.1", self._target))
                except OSError:  # nobody listens there yet
                    inner.close()
                    continue
                self.accepted += 1
                with self._lock:
                    self._open += [inner, outer]
                for pair in ((inner, outer, True), (outer, inner, False)):
                    threading.Thread(target=self._pass, args=pair, daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket, inward: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                while self.stalled.is_set():
                    time.sleep(0.02)
                with self._lock:
                    if self.garble is not None and (garbled := self.garble(data, inward)) is not None:
                        data = garbled
                        self.garble = self.garble if self.for_good else None
                    left = self._left
                    if left is not None:
                        self._left = max(0, left - len(data))
                if left is not None and left <= len(data):
                    sink.sendall(data[:left])
                    self._cut()
                else:
                    sink.sendall(data)
        time.sleep(self.linger)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        source.close()
