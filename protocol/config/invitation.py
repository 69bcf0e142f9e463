"""An invitation: everything that an owner or the consumer needs of a session, in a file the curator signs.

It contains the whole public configuration, so the recipient recomputes its digest, and parties compare that
digest to confirm that they mean the same session. Its address is where this party reaches the curator.
Nothing in it is secret.

A forged invitation would be signed with a forged key as well. It is trustworthy only once people have
compared the curator's and the consumer's fingerprints over the telephone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import StringConstraints

from hushbid.protocol import __version__
from hushbid.protocol.config.session import PartyName, SessionFile
from hushbid.protocol.config.signed import SignedFile, check_signature, signed
from hushbid.protocol.crypto.identity import Identity, roster_identity
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.names import CONSUMER, CURATOR

__all__ = ["Invitation", "check_invitation", "invitation"]

_ASK = "Ask the curator's operator for a new invitation."


class Invitation(SignedFile):
    """The fields of an invitation."""

    FORMAT: ClassVar[str] = "hushbid-invitation"

    party: PartyName
    """The invited party: an owner's name on the roster, or "consumer"."""
    curator_fingerprint: Annotated[str, StringConstraints(max_length=64)]
    """Fingerprint of the curator's key on the roster, for people to compare."""
    digest: Annotated[str, StringConstraints(max_length=64)]
    """SHA-256 of what defines the session (`SessionFile.digest`), in hexadecimal."""
    configuration: SessionFile
    """The session's public file; `network.address` is where this party reaches the curator."""


def invitation(
    session: SessionFile, party: str, key: Identity, *, expires: str | None = None
) -> dict[str, Any]:
    """The values of a party's invitation file.

    Args:
        session: The session, with the address at which the party reaches the curator.
        party: An owner's name, or "consumer".
        expires: Until when it may be used (`SignedFile.expires`); None: for ever.

    Raises:
        ConfigError: The session has no CURVE, the party is not on its roster, or the key is not the roster's
            curator's.
    """
    if session.network.insecure:
        raise ConfigError(
            "An invitation is signed, and an insecure session has no keys to do it with.",
            advice="Leave network.insecure out: such a session is for one machine alone.",
        )
    if key.public.text != session.roster.curator:
        raise ConfigError(
            "The key that was given is not the one that the roster gives to the curator.",
            advice="Sign with the curator's key, or put its request on the roster (`hushbid keys approve`).",
        )
    _check_invited(session, party, where="The session file")
    values = {
        "expires": expires,
        "party": party,
        "curator_fingerprint": key.public.fingerprint,
        "digest": session.digest().hex(),
        "configuration": session.model_dump(mode="json", exclude_none=True),
    }
    return signed(Invitation, values, key)


def check_invitation(read: Invitation, values: Mapping[str, object], *, where: str) -> None:
    """Raise `ConfigError` for an invitation that contradicts itself, or whose signature is not its curator's.

    Args:
        values: The invitation's values as in the file.
    """
    session = read.configuration
    curator = roster_identity(session.roster.curator, CURATOR)
    _check_invited(session, read.party, where=where)
    check_signature(values, curator, whose="the curator of its roster", where=where)
    if read.curator_fingerprint != curator.fingerprint:
        raise ConfigError(f"{where}: its fingerprint is not its curator's.", advice=_ASK)
    if read.digest != session.digest().hex():
        raise ConfigError(
            f"{where}: its digest is not that of its configuration, as hushbid {__version__} computes it; "
            f"hushbid {read.software} wrote it.",
            advice="All parties of a session need the same version of hushbid.",
        )


def _check_invited(session: SessionFile, party: str, *, where: str) -> None:
    if party != CONSUMER and party not in session.roster.owners:
        raise ConfigError(
            f"{where}: there is no owner named {party} on its roster.",
            advice="Have the key approved first (`hushbid keys approve`), or correct the name.",
        )
