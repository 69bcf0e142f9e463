"""A network delay on loopback: a process between parties and curator that forwards bytes late.

It does not interpret the bytes, so that CURVE and everything above it work as on a network.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import selectors
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from typing import Final

from hushbid.protocol import platform
from hushbid.protocol.errors import ConnectionFailed, TimedOut

__all__ = ["relay"]

_PATIENCE_SECONDS: Final = 30.0
"""Seconds that a relay may take to listen."""
_END_SECONDS: Final = 5.0
"""Seconds that it may take to end before it is killed."""
_RETRY_SECONDS: Final = 0.02
"""Seconds between two attempts to reach the curator."""
_HOST: Final = "127.0.0.1"


@contextlib.contextmanager
def relay(address: str, *, delay: float) -> Iterator[str]:
    """Run a relay to a curator for as long as the ``with`` lasts, and yield its address.

    Each chunk is forwarded `delay` after it was read, in order, in both directions; bandwidth is unlimited.
    Connections are accepted at once, even before the curator listens; data wait until it does. When one side
    closes, the other is closed after the same delay, once it has received everything sent before. The relay
    ends with the process that started it, however that ends.

    Args:
        address: The curator's address, tcp://HOST:PORT.
        delay: Delay of each byte, in seconds.

    Raises:
        ConnectionFailed: The relay cannot be started, or cannot listen.
        TimedOut: It does not listen in time.
    """
    # It imports much that the relay's own process does not need.
    from hushbid.running.fork_server import party_environment

    host, _, port = address.removeprefix("tcp://").rpartition(":")
    platform.check_linux("The benchmark's relay")
    # -P: do not import from the working directory.
    command = [
        sys.executable,
        "-P",
        "-m",
        "hushbid.lab.bench.relay",
        host.strip("[]"),
        port,
        repr(delay),
    ]
    try:
        process = subprocess.Popen(
            command,
            env=party_environment(os.environ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # It leaves the terminal's process group: after Ctrl-C the parties say farewell through it.
            process_group=0,
        )
    except OSError as error:
        raise ConnectionFailed(
            f"The relay's process cannot be started: {error.strerror}.",
            advice="Check this machine's limits on processes and open files.",
        ) from None
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        if not select.select([process.stdout], [], [], _PATIENCE_SECONDS)[0]:
            raise TimedOut(
                f"The relay did not listen within {_PATIENCE_SECONDS:g} s.",
                advice="Try again when the machine is less busy.",
            )
        said = process.stdout.readline()
        if not said.endswith(b"\n"):
            raise ConnectionFailed(
                f"The relay's process ended before it listened at {_HOST}.",
                advice="See what it said above.",
            )
        yield f"tcp://{_HOST}:{int(said)}"
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_END_SECONDS)
    finally:
        # This also runs when Ctrl-C interrupts the wait.
        process.kill()
        process.wait()


class _Side(asyncio.Protocol):
    """One side of a connection: data received here leave at the opposite side after the delay."""

    def __init__(self, delay: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._delay = delay
        self._under_way: deque[tuple[float, bytes | None]] = deque()
        """Chunks with their due times on the loop's clock; None marks the end of this side."""
        self._transport: asyncio.WriteTransport | None = None
        self._opposite: _Side | None = None
        self.ended = False

    @classmethod
    def pair(cls, delay: float) -> tuple[_Side, _Side]:
        """Make both sides of a connection."""
        one, other = cls(delay), cls(delay)
        one._opposite, other._opposite = other, one
        return one, other

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Forward what the opposite side received before this one was connected."""
        assert isinstance(transport, asyncio.WriteTransport)
        assert self._opposite is not None
        self._transport = transport
        self._opposite.hand_on()

    def data_received(self, data: bytes) -> None:
        self._send(data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """End the opposite side later, whether this one was closed or reset."""
        self.ended = True
        self._send(None)

    def _send(self, chunk: bytes | None) -> None:
        self._under_way.append((self._loop.time() + self._delay, chunk))
        if len(self._under_way) == 1:  # Otherwise it is already scheduled.
            self.hand_on()

    def hand_on(self) -> None:
        """Forward what is due, and schedule the next chunk."""
        assert self._opposite is not None
        out = self._opposite._transport
        if out is None:  # Nothing is lost: this is called again once there is a connection.
            return
        while self._under_way:
            due, chunk = self._under_way[0]
            if due > self._loop.time():
                # One timer, for the first chunk: timers for the same time would fire in any order.
                self._loop.call_at(due, self.hand_on)
                return
            self._under_way.popleft()
            if chunk is None:
                out.close()  # once everything is written
            elif not out.is_closing():
                out.write(chunk)


async def _serve(host: str, port: int, delay: float) -> None:
    """Relay to a curator until stdin is closed; print the port on stdout."""
    loop = asyncio.get_running_loop()
    connecting: set[asyncio.Task[None]] = set()

    async def connect(inner: _Side, outer: _Side) -> None:
        while not inner.ended:
            try:
                await loop.create_connection(lambda: outer, host, port)
            except OSError:  # Nobody listens there yet.
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                return

    def accept() -> _Side:
        inner, outer = _Side.pair(delay)
        task = loop.create_task(connect(inner, outer))
        connecting.add(task)
        task.add_done_callback(connecting.discard)
        return inner

    over = asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), over.set)  # It becomes readable only when closed.
    server = await loop.create_server(accept, _HOST, 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await over.wait()
    server.close()


def _main() -> None:
    host, port, delay = sys.argv[1:]
    # epoll has a resolution of a millisecond, by which every chunk could be late.
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selectors.SelectSelector())) as runner:
        runner.run(_serve(host, int(port), float(delay)))


if __name__ == "__main__":
    _main()
