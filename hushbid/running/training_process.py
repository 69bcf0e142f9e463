"""``python -m hushbid.running.training_process``: calls one function for `hushbid.running.training`.

It reads the function from stdin, a socket, and answers there with the result or the exception.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import socket
import sys
import traceback
from typing import Any, NoReturn

from hushbid.protocol.errors import HushbidError
from hushbid.protocol.runtime.blas_threads import keep_one_blas_thread
from hushbid.protocol.runtime.interrupts import run_main
from hushbid.running.training import read_all

__all__: list[str] = []


def _main() -> NoReturn:
    keep_one_blas_thread()  # as the launcher itself: the same sums in the same order
    # Where the launcher is gone, nobody waits for an answer.
    with (
        socket.socket(fileno=os.dup(0)) as stream,
        contextlib.suppress(BrokenPipeError, ConnectionResetError),
    ):
        stream.sendall(_answer(read_all(stream)))
    sys.exit()


def _answer(asked: bytes) -> bytes:
    """The result of the function, or its exception."""
    answer: tuple[Any, BaseException | None]
    try:
        answer = pickle.loads(asked)(), None  # noqa: S301 - from the process that forked us
    except Exception as error:
        if not isinstance(error, HushbidError):
            error.add_note(traceback.format_exc())
        answer = None, error
    return pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)


if __name__ == "__main__":
    run_main(_main)
