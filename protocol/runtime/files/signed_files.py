"""Reading key requests and invitations: what these return has been checked, signature and all.

An invitation holds a session file, and goes wherever one goes (`read_session`).
"""

from __future__ import annotations

from pathlib import Path

from protocol import limits
from protocol.config.invitation import Invitation, check_invitation
from protocol.config.key_request import KeyRequest, check_request
from protocol.config.loading import load_toml, read_toml_sent, validated
from protocol.config.session import SessionFile
from protocol.config.signed import check_kind
from protocol.errors import ConfigError

__all__ = ["read_invitation", "read_key_request", "read_session"]


def read_key_request(path: Path) -> KeyRequest:
    """The request that a file holds.

    Raises:
        ConfigError: It cannot be read, is not a request, or is not signed by the key that it asks for.
    """
    values = read_toml_sent(path, limits.MAX_REQUEST_FILE_BYTES)
    check_kind(KeyRequest, values, where=str(path))
    request = validated(KeyRequest, values, where=str(path))
    check_request(request, values, where=str(path))
    return request


def read_invitation(path: Path) -> Invitation:
    """The invitation that a file holds.

    Raises:
        ConfigError: It cannot be read, is not an invitation, contradicts itself, or is not signed by the
            curator that it names.
    """
    values = read_toml_sent(path, limits.MAX_INVITATION_FILE_BYTES)
    check_kind(Invitation, values, where=str(path))
    read = validated(Invitation, values, where=str(path))
    check_invitation(read, values, where=str(path))
    return read


def read_session(session: Path | None, invitation: Path | None) -> tuple[SessionFile, str | None]:
    """The session of a session file or of an invitation, whichever a party was given.

    Returns:
        The session, and who is invited to it: an owner's name or "consumer"; None with a session file.

    Raises:
        ConfigError: Neither or both were given, or what was given cannot be used.
    """
    if invitation is not None and session is None:
        read = read_invitation(invitation)
        return read.configuration, read.party
    if session is not None and invitation is None:
        return load_toml(SessionFile, session), None
    raise ConfigError(
        "A party needs either --session or --invitation.",
        advice="Give the file that the curator's operator sent.",
    )
