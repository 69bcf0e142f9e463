"""Small TOML files that one party signs and another reads: key requests and invitations.

The signature covers the file as written, not its meaning to this version of hushbid, so it survives a later
version that adds a key with a default::

    tag of the kind || JSON of all but `signature`, keys sorted, no spaces, UTF-8
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import StringConstraints

from hushbid.protocol import __version__
from hushbid.protocol.config.section import Section
from hushbid.protocol.crypto.identity import Identity, PublicIdentity
from hushbid.protocol.crypto.sealing import sign, verify_signature
from hushbid.protocol.errors import ConfigError

__all__ = ["SignedFile", "check_kind", "check_signature", "signed"]

_TAGS = {
    "hushbid-key-request": b"hushbid key request 1\0",
    "hushbid-invitation": b"hushbid invitation 1\0",
}
"""The first bytes of each format's statement, so that none can pass for another."""


class SignedFile(Section):
    """The common fields of signed files."""

    FORMAT: ClassVar[str]
    VERSION: ClassVar[int] = 1

    format: str
    version: Literal[1]
    software: Annotated[str, StringConstraints(max_length=64)]
    """The version of hushbid that wrote the file."""
    expires: (
        Annotated[str, StringConstraints(pattern=r"^[0-9]{4}(-[0-9]{2}){2}T([0-9]{2}:){2}[0-9]{2}Z$")] | None
    ) = None
    """Until when the file may be used, in UTC; None in files of earlier versions. Such times sort as text."""
    signature: Annotated[str, StringConstraints(max_length=88)]
    """Ed25519 signature, in base64."""


def signed(kind: type[SignedFile], values: Mapping[str, Any], key: Identity) -> dict[str, Any]:
    """The values of a signed file.

    Args:
        values: Its other fields. Those that are None are left out, as TOML has no None.
    """
    said = {"format": kind.FORMAT, "version": kind.VERSION, "software": __version__, **values}
    said = {key: value for key, value in said.items() if value is not None}
    signature = base64.b64encode(sign(_statement(said), key.signing)).decode("ascii")
    return {**said, "signature": signature}


def check_kind(kind: type[SignedFile], values: Mapping[str, Any], *, where: str) -> None:
    """Refuse a file of another format or version before its keys are examined.

    Raises:
        ConfigError: It is such a file.
    """
    if values.get("format") != kind.FORMAT:
        raise ConfigError(
            f'{where}: this is not a file of the format "{kind.FORMAT}".',
            advice="Check which file was named.",
        )
    if values.get("version") != kind.VERSION:
        raise ConfigError(
            f"{where}: it is not of version {kind.VERSION} of its format, which this hushbid reads.",
            advice="Have it made again, by the same version of hushbid that reads it.",
        )


def check_signature(values: Mapping[str, Any], key: PublicIdentity, *, whose: str, where: str) -> None:
    """Refuse a file whose signature does not hold.

    Args:
        whose: The signer's name, for the error.

    Raises:
        ConfigError: The key did not sign these values.
    """
    try:
        signature = base64.b64decode(str(values.get("signature", "")), validate=True)
    except ValueError:
        signature = b""
    if not verify_signature(_statement(values), signature, key.verify):
        raise ConfigError(
            f"{where}: its signature is not one of {whose} over what it says.",
            advice="It was changed after it was signed, or another signed it: have it sent again.",
        )


def _statement(values: Mapping[str, Any]) -> bytes:
    said = {key: value for key, value in values.items() if key != "signature"}
    # A file may contain what JSON cannot, such as a date: then we did not sign it, but must not crash on it.
    text = json.dumps(said, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)
    return _TAGS[values["format"]] + text.encode("utf-8", "surrogatepass")
