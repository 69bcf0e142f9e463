"""Models trained in a process of their own, forked from one that has imported scikit-learn already.

``python -m hushbid.running.training`` is that process: it is told a function on its stdin, a socket, and
answers there with what it returns or raises. Its launcher holds all data of a run anyway, and is nobody's party.
"""

from __future__ import annotations

import os
import pickle
import socket
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from hushbid.protocol.errors import HushbidError
from hushbid.protocol.runtime.blas_threads import keep_one_blas_thread
from hushbid.running.fork_server import ForkServer

__all__ = ["ForkedTraining"]

_T = TypeVar("_T")
_MODULE: Final = "hushbid.running.training"
_STDERR: Final = 2
_ENDING_SECONDS: Final = 5.0


class ForkedTraining:
    """Calls functions in processes of a fork server (`hushbid.consumer.learners.Training`).

    Args:
        modules: What they import, which the server imports once.
    """

    def __init__(self, server: ForkServer, modules: Sequence[str]) -> None:
        self._server, self._modules = server, modules
        self._loaded = False

    def get_ready(self) -> None:
        """Have the server import, while we go on; those that it forks from now on have it, too."""
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
                said = _all(ours)
            except (BrokenPipeError, ConnectionResetError):
                said = b""
        process.wait(_ENDING_SECONDS)
        if not said:
            raise HushbidError(
                "A process that trains models ended without an answer.",
                advice="If nobody ended it, see whether the machine ran out of memory.",
            )
        result, error = pickle.loads(said)
        if error is not None:
            raise error
        return result  # type: ignore[no-any-return]


def _all(stream: socket.socket) -> bytes:
    parts: list[bytes] = []
    while part := stream.recv(1 << 20):
        parts.append(part)
    return b"".join(parts)


def _main() -> None:
    keep_one_blas_thread()  # as the launcher itself: the same sums in the same order
    with socket.socket(fileno=os.dup(0)) as stream:
        answer: tuple[Any, BaseException | None]
        try:
            answer = pickle.loads(_all(stream))(), None
        except Exception as error:
            if not isinstance(error, HushbidError):
                error.add_note(traceback.format_exc())
            answer = None, error
        stream.sendall(pickle.dumps(answer, pickle.HIGHEST_PROTOCOL))


if __name__ == "__main__":
    _main()
