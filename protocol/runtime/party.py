"""The common part of all roles' processes: state directory, transcript, ending."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path

from hushbid.protocol import __version__, platform
from hushbid.protocol.config.party import ConsumerFile, CuratorFile, OwnerFile
from hushbid.protocol.crypto.identity import Identity
from hushbid.protocol.crypto.sealing import head_statement, sign
from hushbid.protocol.errors import ConfigError, ConnectionFailed, ExitCode, HushbidError, TimedOut
from hushbid.protocol.machine.machine import Finish, Started
from hushbid.protocol.privacy.noise import NoiseSource, SecureNoise, SimulatedNoise
from hushbid.protocol.runtime.driver import Driver
from hushbid.protocol.runtime.keys import KeyPair, read_secret
from hushbid.protocol.runtime.network.transport import parse_address
from hushbid.protocol.runtime.telemetry.log_events import LogEvent
from hushbid.protocol.runtime.telemetry.logs import log
from hushbid.protocol.session.session import Session
from hushbid.protocol.transcript.environment import environment_differences, environment_fingerprint
from hushbid.protocol.transcript.journal import Durability, Journal, held_by_another
from hushbid.protocol.transcript.reader import TranscriptReader
from hushbid.protocol.transcript.record import Header
from hushbid.protocol.transcript.replay import EventReader
from hushbid.protocol.transcript.session_file import check_same_start
from hushbid.protocol.wire.codec import Direction
from hushbid.protocol.wire.messages import BLIND_VERSION, NUMBERED_VERSION, PROTOCOL_VERSION

__all__ = [
    "beginning",
    "check_durability",
    "check_transcript",
    "claimed",
    "ensure_done",
    "head_signer",
    "open_journal",
    "own_keys",
    "party_noise",
    "resume",
    "sealing_identity",
    "settle_process",
    "transcript_header",
    "transcript_path",
]


def beginning(path: Path) -> str:
    """The digest of a transcript's first record, in hexadecimal, which no other transcript has.

    Returns:
        Empty without a record: such a transcript was cut off before anything left.
    """
    if not path.exists() or path.stat().st_size == 0:
        return ""
    with TranscriptReader(path) as records:
        first = next(records, None)
        return "" if first is None else first.digest.hex()


def transcript_path(state: Path, party: str) -> Path:
    """The path of a party's transcript in its state directory."""
    return state / f"{party}.transcript"


@contextmanager
def claimed(state: Path, party: str) -> Iterator[None]:
    """Claim a party's state directory for one process, before anything in it changes.

    The transcript is opened later, after data were read and a session was rehearsed. Directories that cannot
    be made or written to fail there.

    Raises:
        ConfigError: Another process of the party has it.
    """
    path, descriptor = state / f".{party}.lock", None
    missing = [each for each in (state, *state.parents) if not each.exists()]
    try:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = _claim(path)
    except BlockingIOError:
        raise held_by_another(transcript_path(state, party)) from None
    except OSError:
        pass  # who needs the directory more will say so
    try:
        yield
    finally:
        with suppress(OSError):  # Windows keeps an open file
            if descriptor is not None:
                path.unlink()
        if descriptor is not None:
            os.close(descriptor)
        with suppress(OSError):  # a run that was refused leaves no directory behind
            for each in missing:
                each.rmdir()


def _claim(path: Path) -> int:
    """Open and lock a file that still has the name, rather than one that its last holder removed."""
    while True:
        descriptor = platform.open_file(path, os.O_RDWR | os.O_CREAT | platform.NO_LINK)
        try:
            platform.lock(descriptor)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), path.stat()):
                    return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def open_journal(session: Session, *, role: str, party: str, state: Path, durability: Durability) -> Journal:
    """Begin the party's transcript in its state directory, or continue the existing one.

    Raises:
        ConfigError: The directory cannot be made; it has a transcript of another session or party, or of
            another version of hushbid; or another process records to it.
        TranscriptDamaged: The existing one does not hold.
    """
    try:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"{state}: cannot make the state directory: {error.strerror}.",
            advice="Name one that can be made.",
        ) from None
    header = transcript_header(session, role, party)
    path = transcript_path(state, party)
    if not path.exists() or path.stat().st_size == 0:
        return Journal.create(path, header, durability=durability)
    check_transcript(path, header)
    journal = Journal.reopen(path, durability=durability)
    if journal.cut:
        log(LogEvent.TRANSCRIPT_CUT, path=str(path), bytes=journal.cut)
    return journal


def transcript_header(session: Session, role: str, party: str) -> Header:
    """The header of a party's new transcript on this machine."""
    return Header(
        role=role,
        party=party,
        session=session.identifier.hex(),
        config_digest=session.digest,
        software=__version__,
        environment=environment_fingerprint(),
        noise=session.file.noise.source,
        protocol=session.protocol_version,
    )


def check_transcript(path: Path, header: Header) -> None:
    """Refuse to continue a transcript that is not this party's of this session.

    Args:
        header: The header of a new one (`transcript_header`).

    Raises:
        ConfigError: It is of another session or party, or of another version of hushbid.
        TranscriptDamaged: It cannot be read.
    """
    with TranscriptReader(path) as reader:
        there = reader.header
    if there.protocol != header.protocol:
        raise ConfigError(
            f"{path}: it was recorded under version {there.protocol} of the protocol, and this is version "
            f"{header.protocol}.",
            advice="It began before boxes had numbers: set `numbered = false` under [session] in the session "
            "file of every party, and start them again."
            if header.protocol == NUMBERED_VERSION and there.protocol in (PROTOCOL_VERSION, BLIND_VERSION)
            else f"Finish the session with hushbid {there.software} as it was then, or start a new one.",
        )
    if (there.role, there.party, there.config_digest) != (header.role, header.party, header.config_digest):
        raise ConfigError(
            f"{path}: the transcript of another session is there already, or of another party.",
            advice="For a new session name another state directory, with `--state` or in the party's file.",
        )
    if there.software != header.software:
        raise ConfigError(
            f"{path}: hushbid {there.software} recorded it, and this is {header.software}: they may go on "
            "differently.",
            advice=f"Finish the session with hushbid {there.software}, or start a new one.",
        )
    if environment_differences(there.environment):
        log(LogEvent.TRANSCRIPT_FROM_ELSEWHERE, path=str(path))


def resume(
    driver: Driver,
    journal: Journal,
    begins: Started,
    direction: Callable[[str], Direction],
    *,
    box: Callable[[bytes], bytes] | None = None,
) -> None:
    """Bring a driver to where its transcript ends, if it has one.

    Args:
        begins: The first event of a new transcript.
        direction: What a peer may say, by the peer's name.
        box: Returns the sealed box of a SHA-256, for the curator.

    Raises:
        ReplayDivergence: The machine's effects differ from the recorded ones.
        ConfigError, DataError: The transcript cannot be replayed, or was begun with other time limits or
            data.
    """
    if journal.count == 0:
        return
    with TranscriptReader(journal.path) as records:
        first = next(records)
        check_same_start(first.event, begins)
        driver.resume(chain([first], records), EventReader(driver.machine.table.outcomes, direction, box))
    if driver.finished is None:
        log(LogEvent.SESSION_RESUMED, record=journal.count - 1, path=str(journal.path))
    else:
        log(LogEvent.SESSION_ENDED_BEFORE, path=str(journal.path))


def head_signer(session: Session, party: str, identity: Identity | None) -> Callable[[bytes], bytes] | None:
    """A function that signs a transcript's head for a party; None if it has no key."""
    if identity is None:
        return None
    return lambda head: sign(head_statement(session.identifier, party, head), identity.signing)


def own_keys(
    session: Session, file: CuratorFile | OwnerFile | ConsumerFile, *, expected: str, party: str
) -> KeyPair | None:
    """The party's keys; None in an insecure session.

    Args:
        expected: The party's public key on the roster.

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


def party_noise(session: Session, party: str) -> NoiseSource:
    """A party's own source of noise and of keys, according to the session file."""
    if session.noise_protects:
        return SecureNoise()
    return SimulatedNoise(session.file.noise.seed or 0, party)


def sealing_identity(session: Session, pair: KeyPair | None, party: str) -> Identity | None:
    """The keys with which a party seals, opens and signs; None if it has none.

    With simulated noise they are simulated too, so that a session gives the same bytes with and without
    CURVE.
    """
    return pair if session.noise_protects else session.simulated_identity(party)


def check_durability(session: Session, durability: Durability, *, listen: str | None = None) -> None:
    """Refuse what must not be deployed: noise that protects nobody, records that a power cut loses.

    A session is deployed if its curator can be reached from another machine.

    Args:
        listen: Where the curator listens, if that is not the session's address.

    Raises:
        ConfigError: Secure noise whose record need not survive a crash of the machine; or a deployed session
            with simulated noise, or with a transcript that need not survive one.
    """
    if durability == "flush" and session.noise_protects and session.draws_noise():
        raise ConfigError(
            'durability = "flush" is for simulated noise: what secure noise hides is not released twice, '
            "and a record that a power cut loses would let it be.",
            advice='Set durability = "fsync" in the party\'s file.',
        )
    addresses = [session.file.network.address, *([] if listen is None else [listen])]
    address = next((text for text in addresses if not parse_address(text).is_loopback), None)
    if address is None:
        return
    if not session.noise_protects and session.draws_noise():
        raise ConfigError(
            f"The session is deployed at {address} and its noise is simulated: whoever has the session file "
            "can subtract it.",
            advice='Set [noise] source = "secure", or run the session on this machine alone (127.0.0.1).',
        )
    if durability == "flush":
        raise ConfigError(
            f'The session is deployed at {address}; durability = "flush" would lose records in a power cut.',
            advice='Set durability = "fsync" in the party\'s file.',
        )


def settle_process() -> None:
    """Make the process one of a party: no core dump has its memory, and the collector skips what is imported.

    A dump would have the party's key and rows.
    """
    platform.forbid_core_dumps()
    gc.freeze()


def ensure_done(finish: Finish) -> None:
    """Raise the error of a machine's end, unless it ended well."""
    if finish.code is ExitCode.DONE:
        return
    kinds: dict[ExitCode, type[HushbidError]] = {
        ExitCode.CONNECTION: ConnectionFailed,
        ExitCode.TIMEOUT: TimedOut,
        ExitCode.USAGE: ConfigError,
    }
    raise kinds.get(finish.code, HushbidError)(finish.reason, advice=finish.advice)
