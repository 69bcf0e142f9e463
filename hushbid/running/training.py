"""Models trained in a process forked from one that has already imported scikit-learn."""

from __future__ import annotations

import os
import pickle
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TypeVar

from hushbid.protocol.errors import HushbidError
from hushbid.running.fork_server import ForkServer

__all__ = ["ForkedTraining", "read_all"]

_T = TypeVar("_T")
_MODULE: Final = "hushbid.running.training_process"
_STDERR: Final = 2
_ENDING_SECONDS: Final = 5.0


class ForkedTraining:
    """Calls functions in processes of a fork server (`hushbid.consumer.learners.Training`).

    Args:
        modules: Their imports, which the server does once.
    """

    def __init__(self, server: ForkServer, modules: Sequence[str]) -> None:
        self._server, self._modules = server, modules
        self._loaded = False

    def get_ready(self) -> None:
        """Start the server's imports, and return at once; processes forked from then on have the modules."""
        if not self._loaded:
            self._loaded = True
            self._server.load(self._modules)

    def __call__(self, function: Callable[[], _T], /) -> _T:
        self.get_ready()
        ours, theirs = socket.socketpair()
        with ours, open(os.devnull, "wb") as nowhere:
            with theirs:
                streams = (theirs.fileno(), nowhere.fileno(), _STDERR)
                process = self._server.fork(_MODULE, (), directory=Path("/"), streams=streams)
            try:
                ours.sendall(pickle.dumps(function, pickle.HIGHEST_PROTOCOL))
                ours.shutdown(socket.SHUT_WR)
                said = read_all(ours)
            except (BrokenPipeError, ConnectionResetError):
                said = b""
        process.wait(_ENDING_SECONDS)
        if not said:
            raise HushbidError(
                "A process that trains models ended without an answer.",
                advice="If nobody ended it, check whether the machine ran out of memory.",
            )
        result, error = pickle.loads(said)  # noqa: S301 - from a process of our own
        if error is not None:
            raise error
        return result  # type: ignore[no-any-return]


def read_all(stream: socket.socket) -> bytes:
    """The bytes that arrive until the other end is shut for writing."""
    parts: list[bytes] = []
    while part := stream.recv(1 << 20):
        parts.append(part)
    return b"".join(parts)
