"""Reading key requests and invitations, with all checks, including the signature.

An invitation contains a session file, and is accepted wherever one is (`read_session`). Both expire: whoever
takes part, or puts a key on a roster, does so with a file that is in force (`expiry.check_in_force`). An
expired invitation can still be read, as tables of its session are read by it.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from hushbid.protocol import limits
from hushbid.protocol.config.invitation import Invitation, check_invitation
from hushbid.protocol.config.key_request import KeyRequest, check_request
from hushbid.protocol.config.loading import load_toml, read_toml_sent, validated
from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.config.signed import check_kind
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.runtime.files.expiry import check_in_force

__all__ = [
    "GivenSession",
    "check_begun_or_in_force",
    "read_invitation",
    "read_key_request",
    "read_session",
]


class GivenSession(NamedTuple):
    """What a party was given to take part with.

    Attributes:
        file: The session.
        invited: The invited party, an owner's name or "consumer"; None with a session file.
        expires: Until when the invitation may be used; None: it does not say, or there is none.
    """

    file: SessionFile
    invited: str | None = None
    expires: str | None = None


def check_begun_or_in_force(
    given: GivenSession, invitation: Path | None, transcript: Path, *, now: datetime | None = None
) -> None:
    """Refuse to begin with an invitation that has expired; what has begun goes on with it.

    Args:
        transcript: The party's, which is there once it has begun.
        now: As in `check_in_force`.

    Raises:
        ConfigError: The invitation has expired, and the party has recorded nothing yet.
    """
    begun = transcript.exists() and transcript.stat().st_size > 0
    if not begun:
        check_in_force(given.expires, where=str(invitation), now=now)


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


def read_session(session: Path | None, invitation: Path | None) -> GivenSession:
    """The session of a session file or of an invitation, whichever a party was given.

    An expired invitation is read too (`check_begun_or_in_force`).

    Raises:
        ConfigError: Neither or both were given, or the file cannot be used.
    """
    if invitation is not None and session is None:
        read = read_invitation(invitation)
        return GivenSession(read.configuration, read.party, read.expires)
    if session is not None and invitation is None:
        return GivenSession(load_toml(SessionFile, session))
    raise ConfigError(
        "A party needs either --session or --invitation.",
        advice="Give the file that the curator's operator sent.",
    )
