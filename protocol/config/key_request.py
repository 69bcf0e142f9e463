"""A request to be put on a session's roster: a party's public key, signed with its secret key.

The signature shows that the author has the secret key. People confirm who that is by comparing the key's
fingerprint over the telephone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, TypeAlias

from hushbid.protocol.config.session import PartyName, PublicKeyText
from hushbid.protocol.config.signed import SignedFile, check_signature, signed
from hushbid.protocol.crypto.identity import Identity, PublicIdentity
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.names import CONSUMER, CURATOR

__all__ = ["KeyRequest", "Role", "check_request", "check_role", "key_request"]

Role: TypeAlias = Literal["owner", "consumer", "curator"]


class KeyRequest(SignedFile):
    """The fields of a request."""

    FORMAT: ClassVar[str] = "hushbid-key-request"

    name: PartyName
    """The name the party gives itself; an owner's name on the roster."""
    role: Role
    session: PartyName | None = None
    """The name of the session that it is for; None: the party did not say."""
    public_key: PublicKeyText

    @property
    def identity(self) -> PublicIdentity:
        """The key; raises `ConfigError` if it is invalid."""
        return PublicIdentity(self.public_key)


def key_request(
    name: str, role: Role, key: Identity, *, session: str | None = None, expires: str | None = None
) -> dict[str, Any]:
    """The values of a party's request file, without the secret half of its key.

    Args:
        session: The name of the session that it is for; None: of any.
        expires: Until when it may be used (`SignedFile.expires`); None: for ever.

    Raises:
        ConfigError: An owner cannot have this name.
    """
    check_role(name, role)
    values = {"expires": expires, "name": name, "role": role, "session": session}
    return signed(KeyRequest, {**values, "public_key": key.public.text}, key)


def check_request(request: KeyRequest, values: Mapping[str, object], *, where: str) -> None:
    """Raise `ConfigError` for a request that its key has not signed, or with a wrong key or a reserved name.

    Args:
        values: The request's values as in the file.
    """
    check_role(request.name, request.role)
    check_signature(values, request.identity, whose="the key that it asks for", where=where)


def check_role(name: str, role: Role) -> None:
    """Raise `ConfigError` for a name that a roster reserves for another role."""
    if name in (CURATOR, CONSUMER) and role != name:
        raise ConfigError(
            f"The name {name!r} belongs to another role than {role}.",
            advice=f"Say `--role {name}` if that is meant, or take another name.",
        )
