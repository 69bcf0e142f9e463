"""What the processes of all roles share: state directory, transcript, signals, one BLAS thread, ending."""

from __future__ import annotations

import gc
import signal
from pathlib import Path
from types import FrameType, TracebackType
from typing import Literal, Self

from threadpoolctl import threadpool_limits

from protocol import __version__
from protocol.config.party import ConsumerFile, CuratorFile, OwnerFile
from protocol.errors import ConfigError, ConnectionFailed, ExitCode, HushbidError, TimedOut
from protocol.machine import Finish
from protocol.runtime.keys import KeyPair, read_secret
from protocol.session import Session
from protocol.transcript.environment import environment_fingerprint
from protocol.transcript.journal import Durability, Journal
from protocol.transcript.record import Header

__all__ = ["StopSignals", "ensure_done", "one_blas_thread", "open_journal", "own_keys", "spare_collections"]


def open_journal(session: Session, *, role: str, party: str, state: Path, durability: Durability) -> Journal:
    """Begin the party's transcript, ``<party>.transcript`` in its state directory.

    Raises:
        ConfigError: The directory cannot be made, or a transcript is there already.
    """
    try:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"{state}: cannot make the state directory: {error.strerror}.",
            advice="Name one that can be made.",
        ) from None
    header = Header(
        role=role,
        party=party,
        session=session.identifier.hex(),
        config_digest=session.file.digest(),
        software=__version__,
        environment=environment_fingerprint(),
        noise=session.file.noise.source,
    )
    return Journal.create(state / f"{party}.transcript", header, durability=durability)


def own_keys(
    session: Session, file: CuratorFile | OwnerFile | ConsumerFile, *, expected: str, party: str
) -> KeyPair | None:
    """The party's keys; None in an insecure session.

    Args:
        session: The session.
        file: The party's private file.
        expected: The public key that the roster gives to the party.
        party: Its name, for the error.

    Raises:
        KeyFileError: The key file cannot be used.
        ConfigError: No key file is named, or it holds another key than the roster's.
    """
    if session.file.network.insecure:
        return None
    if file.key is None:
        raise ConfigError(
            f"The private file of {party} names no key.", advice="Set `key`; `hushbid keys new` makes one."
        )
    pair = read_secret(file.key)
    if pair.public.text != expected:
        raise ConfigError(
            f"{file.key}: its public key is not the one that the roster gives to {party}.",
            advice="Use the key that was given to the session's operator, or have the roster corrected.",
        )
    return pair


def one_blas_thread() -> None:
    """Keep BLAS to one thread: parties share machines, and the work of one is small."""
    threadpool_limits(limits=1)


def spare_collections() -> None:
    """Let the garbage collector pass over what is there for good, and look less often at the rest.

    A party keeps thousands of messages and makes few cycles; at the default thresholds looking through
    them takes some 5 % of its time.
    """
    gc.freeze()
    gc.set_threshold(20_000, 50, 100)


class StopSignals:
    """Turns SIGTERM and SIGINT into a flag, so that nothing is cut in the middle of a write."""

    def __init__(self) -> None:
        self.received: signal.Signals | None = None
        self._previous: dict[signal.Signals, object] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGTERM, signal.SIGINT):
            self._previous[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> Literal[False]:
        for number, handler in self._previous.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        return False

    def raise_if_received(self) -> None:
        """Raise `HushbidError` if the process was told to stop."""
        if self.received is not None:
            raise HushbidError(
                f"Stopped by {self.received.name}; what was recorded is kept.",
                advice="The session cannot go on without this party.",
            )

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self.received = signal.Signals(number)


def ensure_done(finish: Finish) -> None:
    """Raise the error that a machine's end stands for, unless it ended well."""
    if finish.code is ExitCode.DONE:
        return
    kinds: dict[ExitCode, type[HushbidError]] = {
        ExitCode.CONNECTION: ConnectionFailed,
        ExitCode.TIMEOUT: TimedOut,
        ExitCode.USAGE: ConfigError,
    }
    raise kinds.get(finish.code, HushbidError)(finish.reason, advice=finish.advice)
