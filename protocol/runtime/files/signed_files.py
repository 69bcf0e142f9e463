"""Reading key requests and invitations, with all checks, including the signature.

An invitation contains a session file, and is accepted wherever one is (`read_session`).
"""

from __future__ import annotations

from pathlib import Path

from hushbid.protocol import limits
from hushbid.protocol.config.invitation import Invitation, check_invitation
from hushbid.protocol.config.key_request import KeyRequest, check_request
from hushbid.protocol.config.loading import load_toml, read_toml_sent, validated
from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.config.signed import check_kind
from hushbid.protocol.errors import ConfigError

__all__ = ["read_invitation", "read_key_request", "read_session"]


def read_key_request(path: Path) -> KeyRequest:
    """The request in a file.

    Raises:
        ConfigError: It cannot be read, is not a request, or is not signed with the requested key.
    """
    values = read_toml_sent(path, limits.MAX_REQUEST_FILE_BYTES)
    check_kind(KeyRequest, values, where=str(path))
    request = validated(KeyRequest, values, where=str(path))
    check_request(request, values, where=str(path))
    return request


def read_invitation(path: Path) -> Invitation:
    """The invitation in a file.

    Raises:
        ConfigError: It cannot be read, is not an invitation, contradicts itself, or is not signed by its
            curator.
    """
    values = read_toml_sent(path, limits.MAX_INVITATION_FILE_BYTES)
    check_kind(Invitation, values, where=str(path))
    read = validated(Invitation, values, where=str(path))
    check_invitation(read, values, where=str(path))
    return read


def read_session(session: Path | None, invitation: Path | None) -> tuple[SessionFile, str | None]:
    """The session of a session file or of an invitation, whichever a party was given.

    Returns:
        The session, and the invited party, an owner's name or "consumer"; None with a session file.

    Raises:
        ConfigError: Neither or both were given, or the file cannot be used.
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
