"""`hushbid again`: another session of the same parties after one has ended, with new invitations."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, MutableMapping
from pathlib import Path
from typing import Any, Final, cast

import tomlkit
from pydantic.dataclasses import dataclass as figures

from hushbid.cluster.kind import kind_of
from hushbid.protocol.config.loading import load_toml, load_toml_text, read_text, read_toml
from hushbid.protocol.config.party import CuratorFile
from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.figures import Figures
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.runtime.files.expiry import expiry
from hushbid.protocol.runtime.keys import read_secret
from hushbid.protocol.runtime.network.transport import contact_address
from hushbid.protocol.runtime.party import transcript_path
from hushbid.protocol.runtime.telemetry.status_file import Status, status_path
from hushbid.protocol.session.guarantee import TRUSTED
from hushbid.protocol.session.session import Session, open_session
from hushbid.protocol.transcript.reader import TranscriptReader
from hushbid.starting.commands import Command, quoted
from hushbid.starting.invitations import write_invitation
from hushbid.starting.options import AgainOptions
from hushbid.text_files import check_new_file, write_new_file

__all__ = ["BegunAgain", "begin_again"]

_NONCE_BYTES: Final = 8
_OVER: Final = ("closing", "done")
"""Phases of a curator in which its session is over; in others its process may end, and resume later."""


@figures(frozen=True, kw_only=True)
class BegunAgain(Figures):
    """Another session of the same parties.

    Attributes:
        session_file, config_file: Its file, and the curator's private one.
        nonce, digest: The session's.
        expires: When the invitations do.
        invitations: Each party's.
        state: The name of a new state directory.
        outcome: How the previous session ended: "complete" or "given up".
        charges: The ε that the new session charges, by whose data; None: it guarantees nothing.
        commands: Commands to paste.
    """

    session_file: Path
    config_file: Path
    nonce: str
    digest: str
    expires: str
    invitations: Mapping[str, Path]
    state: str
    outcome: str
    charges: Mapping[str, float | None]
    commands: tuple[Command, ...]


def begin_again(options: AgainOptions) -> BegunAgain:
    """Write the files of another session beside those of the one that is over, which stay.

    Raises:
        ConfigError: The session is not over, or has not begun; its file or the curator's cannot be used; or a
            file already exists.
        KeyFileError: The curator's key cannot be read.
    """
    _check_kind(options.session)
    text = read_text(options.session)
    before = load_toml_text(SessionFile, text, where=str(options.session))
    config = options.config or options.session.with_name(f"{CURATOR}.toml")
    if not config.exists():
        raise ConfigError(
            f"{config}: the curator's private file is not there.",
            advice="Name it with --config: it names the state directory of the previous session.",
        )
    private = load_toml(CuratorFile, config).resolved(config.parent)
    outcome = _outcome(private.state, options.session, config, open_session(before).identifier.hex())
    number = _free_number(options.session, config, (CONSUMER, *before.roster.owners))
    nonce = secrets.token_hex(_NONCE_BYTES)
    changes: dict[str, dict[str, Any]] = {
        "timeouts": {"enrolment": options.enrolment},
        "session": {"min_owners": options.min_owners, "nonce": nonce},
    }
    changed = _changed(text, changes)
    session = load_toml_text(SessionFile, changed, where=str(options.session))
    charges = _charges(open_session(session))
    contact_address(session.network.address)
    if private.key is None:
        raise ConfigError(f"{config} names no key.", advice="Set `key` there: it signs the invitations.")
    pair = read_secret(private.key)
    expires = expiry(options.days)
    invitations = {
        party: options.session.with_name(f"{party}-{number}.invitation")
        for party in (CONSUMER, *session.roster.owners)
    }
    for party, path in invitations.items():  # first, so that a failure to sign leaves no other file
        write_invitation(path, session, party, pair, expires=expires)
    state = f"state-{number}"
    session_file = _numbered(options.session, number)
    config_file = _numbered(config, number)
    write_new_file(session_file, changed)
    write_new_file(config_file, _changed(read_text(config), {"": {"state": f"{CURATOR}-{state}"}}))
    return BegunAgain(
        session_file=session_file,
        config_file=config_file,
        nonce=nonce,
        digest=session.digest().hex(),
        expires=expires,
        invitations=invitations,
        state=state,
        outcome=outcome,
        charges=charges,
        commands=tuple(_commands(session_file, config_file, invitations, state)),
    )


def _charges(session: Session) -> dict[str, float | None]:
    """The ε of owners and of the consumer, the largest if it differs by who may learn of the data."""
    found: dict[str, float | None] = {}
    for each in session.privacy():
        if each.against == TRUSTED:
            continue  # guarantees that rest on trust are charged to no ledger
        known = found.get(each.protects, 0.0)
        found[each.protects] = None if known is None or each.epsilon is None else max(known, each.epsilon)
    return found


def _check_kind(path: Path) -> None:
    if path.is_dir():
        raise ConfigError(
            f"{path} is a directory.",
            advice="Name the session file; of a session on this machine, `hushbid run` with the cluster file "
            "makes another by itself.",
        )
    kind = kind_of(read_toml(path))
    if kind == "cluster":
        raise ConfigError(
            f"{path} is a cluster file, of a session on one machine.",
            advice=f"`hushbid run {quoted(path)}` makes another session by itself, with new keys and "
            "states. With docker-compose set HUSHBID_SET=session.nonce=second.",
        )
    if kind == "invitation":
        raise ConfigError(
            f"{path} is an invitation: whoever runs the curator begins another session.",
            advice="Ask there for another invitation, and name a new state directory with it.",
        )


def _outcome(state: Path, session: Path, config: Path, identifier: str) -> str:
    """How the session ended: "complete" or "given up".

    Raises:
        ConfigError: It has not ended, or not begun, or the state is of another session.
    """
    path, command = status_path(state, CURATOR), _curator(session, config)
    if not transcript_path(state, CURATOR).exists() or not path.exists():
        raise ConfigError(
            f"The session of {session} has not begun: {state} has no record of it.",
            advice=f"`{command}` begins it.",
        )
    with TranscriptReader(transcript_path(state, CURATOR)) as records:
        if records.header.session != identifier:
            raise ConfigError(
                f"{state} is of another session than {session}.",
                advice="Name with --config the curator's file that this session was begun with; one that "
                "`hushbid again` wrote has the number of its session, as session-2.toml and curator-2.toml.",
            )
    status = Status.read(path)
    if status.finished and status.phase in _OVER:
        return "complete" if status.exit_code == 0 else "given up"
    if not status.finished and status.is_running:
        raise ConfigError(
            f"The session of {session} is still running, in phase {status.phase}.",
            advice=f"`hushbid status --watch {quoted(state)}` shows it; Ctrl-C stops its curator.",
        )
    raise ConfigError(
        f"The session of {session} was stopped in phase {status.phase}, and is not over.",
        advice=f"`{command}` goes on with it.",
    )


def _numbered(path: Path, number: int) -> Path:
    stem, dash, last = path.stem.rpartition("-")
    stem = stem if dash and last.isdecimal() else path.stem
    return path.with_name(f"{stem}-{number}{path.suffix}")


def _free_number(session: Path, config: Path, parties: tuple[str, ...]) -> int:
    """The first number from 2 that no existing file has."""
    number = 2
    while True:
        names = [_numbered(session, number), _numbered(config, number)]
        names += [session.with_name(f"{party}-{number}.invitation") for party in parties]
        if not any(path.exists() for path in names):
            for path in names:
                check_new_file(path)
            return number
        number += 1


def _changed(text: str, changes: Mapping[str, Mapping[str, Any]]) -> str:
    """A TOML file with other values and its comments unchanged; None changes nothing."""
    document = tomlkit.parse(text)
    for table, values in changes.items():
        given = {key: value for key, value in values.items() if value is not None}
        if not given:
            continue
        place: MutableMapping[str, Any] = document
        if table:
            place = cast(MutableMapping[str, Any], document.setdefault(table, tomlkit.table()))
        place.update(given)
    return tomlkit.dumps(document)


def _commands(session: Path, config: Path, invitations: Mapping[str, Path], state: str) -> Iterator[Command]:
    yield Command(CURATOR, _curator(session, config))
    for party, path in invitations.items():
        role = CONSUMER if party == CONSUMER else "owner"
        yield Command(party, f"hushbid {role} --invitation {path.name} --config {party}.toml --state {state}")


def _curator(session: Path, config: Path) -> str:
    return f"hushbid curator --session {quoted(session)} --config {quoted(config)}"
