"""Measure rounds of another library: run its script as a process, and read its processes' clocks.

The libraries require incompatible versions, so the script may run in another environment.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hushbid.lab.bench.spent import RoundCost, descendants, processor_seconds, tree_seconds
from hushbid.protocol import platform
from hushbid.protocol.closing import Closing
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.extras import OTHERS, missing
from hushbid.protocol.printable import printable

__all__ = ["PEERS", "WARM_UP_ROUNDS", "Peer", "PeerAbsent", "peer_rounds", "pythons"]

WARM_UP_ROUNDS: Final = 20
"""Rounds that do not count."""
PATIENCE: Final = 300.0
"""Seconds that a peer may take to start, and again for its rounds: Ray starts a dozen processes."""
_LEAVE: Final = 10.0
"""Seconds that its processes may take to end by themselves."""
_BETWEEN_LOOKS: Final = 0.05
_SHOWN_CHARACTERS: Final = 200
_QUIET: Final = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "FLWR_TELEMETRY_ENABLED": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
}
"""Environment: one thread, as parties have, and no telemetry."""
_SCRIPTS: Final = Path(__file__).with_name("peer_rounds")
_WORD: Final = "hushbid-bench"


@dataclass(frozen=True)
class Peer:
    """A library to compare with.

    Attributes:
        what: How it is used, for the table.
        script: The script's name (`hushbid.lab.bench.peer_rounds`).
        modules: The modules that the script imports.
        install: What to install with pip; in a separate environment unless it is one of our extras.
    """

    what: str
    script: str
    modules: tuple[str, ...]
    install: str


def _extra(module: str) -> str:
    return f"hushbid[{OTHERS[module][1]}]"


PEERS: Final[Mapping[str, Peer]] = {
    "grpc": Peer(
        "gRPC, unary calls to a server an owner", "grpc_echo.py", ("grpc", "google.protobuf"), _extra("grpc")
    ),
    "dask": Peer("Dask, `Client.run`", "dask_run.py", ("distributed",), _extra("distributed")),
    "flower": Peer("Flower, simulation engine", "flower_simulation.py", ("flwr", "ray"), "flwr[simulation]"),
}


class PeerAbsent(Exception):
    """A peer is not installed or failed; its row shows the message."""


def pythons(other: Path | None) -> dict[str, Path | None]:
    """The Python that has each peer: this one, else `other`, or None.

    Raises:
        ConfigError: `other` does not run.
    """
    own = Path(sys.executable)
    homes: dict[str, Path | None] = {}
    for name, peer in PEERS.items():
        if not any(map(missing, peer.modules)):
            homes[name] = own
        else:
            homes[name] = other if other is not None and _has(other, peer.modules) else None
    return homes


def _has(python: Path, modules: Iterable[str]) -> bool:
    looking = "import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, sys.argv[1:])))"
    try:
        found = subprocess.run(
            [str(python), "-P", "-c", looking, *modules],
            check=False,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _no_python(python, str(error)) from None
    if found.returncode not in (0, 1):
        raise _no_python(python, found.stderr.strip()[-_SHOWN_CHARACTERS:])
    return found.returncode == 0


def _no_python(python: Path, why: str) -> ConfigError:
    return ConfigError(f"{python} does not run: {why}.", advice="Name an environment's Python.")


def peer_rounds(
    peer: Peer, python: Path | None, owners: int, rounds: int, broadcast_bytes: int, reply_bytes: int
) -> tuple[str, RoundCost]:
    """Start a peer afresh and measure its rounds; returns its version and their cost.

    Its processes are gone afterwards, however this ends.

    Args:
        python: The Python to run the script with; None: no Python has the library.

    Raises:
        PeerAbsent: It is not installed, or failed.
    """
    if python is None:
        raise PeerAbsent(f"not installed: pip install '{peer.install}'")
    numbers = map(str, (owners, rounds, WARM_UP_ROUNDS, broadcast_bytes, reply_bytes))
    command = [str(python), "-P", str(_SCRIPTS / peer.script), *numbers]
    with (
        tempfile.TemporaryDirectory(prefix="hushbid-peer-") as place,
        _Running(command, Path(place)) as running,
    ):
        version = running.until("ready")
        spent, began = tree_seconds(running.process.pid), time.perf_counter()
        running.go()
        running.until("done")
        seconds = time.perf_counter() - began
        spent = tree_seconds(running.process.pid) - spent
        running.leave()
    return version, RoundCost(rounds, seconds, spent)


class _Running(Closing):
    """A running script and the processes that it starts.

    Args:
        place: Its working directory, and its directory for temporary files.
    """

    def __init__(self, command: Sequence[str], place: Path) -> None:
        self._log = place / "stderr"
        with open(self._log, "wb") as log:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=place,
                env={**os.environ, **_QUIET, "TMPDIR": str(place), "FLWR_HOME": str(place)},
            )

    def until(self, word: str) -> str:
        """Read its output up to the given word; returns the text after the word.

        Raises:
            PeerAbsent: It ended first, or took too long.
        """
        said = f"{_WORD} {word}"
        timer = threading.Timer(PATIENCE, self._kill)
        timer.start()
        try:
            assert self.process.stdout is not None
            for line in self.process.stdout:
                text = line.decode(errors="replace").strip()
                if text.startswith(said):
                    return text[len(said) :].strip()
        finally:
            timer.cancel()
        lines = self._log.read_text(errors="replace").split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "nothing on stderr")
        raise PeerAbsent(f"made no rounds: {printable(last)[:_SHOWN_CHARACTERS]}")

    def go(self) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # The next read tells what became of it.
            self.process.stdin.write(b"\n")
            self.process.stdin.flush()

    def leave(self) -> None:
        """Let it end, and wait for its processes, some of which outlive it for a moment."""
        started = [self.process.pid, *descendants(self.process.pid)]
        self.go()
        until = time.monotonic() + _LEAVE
        while time.monotonic() < until and any(processor_seconds(each) is not None for each in started):
            self.process.poll()
            time.sleep(_BETWEEN_LOOKS)
        _kill(started)

    def close(self) -> None:
        """End all remaining processes."""
        self._kill()
        with self.process:
            pass

    def _kill(self) -> None:
        if self.process.poll() is None:
            _kill([*descendants(self.process.pid), self.process.pid])


def _kill(processes: Iterable[int]) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            platform.send_signal(process, platform.KILL)
