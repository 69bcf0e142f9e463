"""Reading key requests and invitations: what these return has been checked, signature and all."""

from __future__ import annotations

from pathlib import Path

from protocol.config.invitation import Invitation, check_invitation
from protocol.config.key_request import KeyRequest, check_request
from protocol.config.loading import read_toml, validated
from protocol.config.signed import check_kind

__all__ = ["read_invitation", "read_key_request"]


def read_key_request(path: Path) -> KeyRequest:
    """The request that a file holds.

    Raises:
        ConfigError: It cannot be read, is none, or is not signed by the key that it asks for.
    """
    values = read_toml(path)
    check_kind(KeyRequest, values, where=str(path))
    request = validated(KeyRequest, values, where=str(path))
    check_request(request, values, where=str(path))
    return request


def read_invitation(path: Path) -> Invitation:
    """The invitation that a file holds.

    Raises:
        ConfigError: It cannot be read, is none, contradicts itself, or is not signed by the curator that it
            names.
    """
    values = read_toml(path)
    check_kind(Invitation, values, where=str(path))
    read = validated(Invitation, values, where=str(path))
    check_invitation(read, values, where=str(path))
    return read
