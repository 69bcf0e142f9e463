"""`hushbid invite`: everything that an owner or the consumer needs for a session, in one file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict

import typer

from hushbid.protocol.errors import ConfigError
from hushbid.protocol.names import CONSUMER
from hushbid.protocol.runtime.command import tell, verb
from hushbid.protocol.runtime.files.expiry import DAYS_IN_FORCE, Days, expiry
from hushbid.protocol.runtime.ranged import ranged

if TYPE_CHECKING:
    from hushbid.protocol.config.session import SessionFile

__all__ = ["invite_command"]


class _Invited(TypedDict):
    """An invitation's file, and what whoever gets it compares."""

    invitation_file: str
    party: str
    address: str
    curator_fingerprint: str
    digest: str
    expires: str


def _show(made: _Invited) -> None:
    tell(f"invitation   {made['invitation_file']} (send it to {made['party']})")
    tell(f"address      {made['address']}")
    tell(f"curator      {made['curator_fingerprint']} (read it to them over the telephone)")
    tell(f"session      {made['digest']}")
    tell(f"expires      {made['expires']} (who has begun by then goes on)")


@verb(show=_show)
def invite_command(
    session: Annotated[
        Path, typer.Option(help="The session file, with a complete roster.", envvar="HUSHBID_SESSION")
    ],
    owner: Annotated[str | None, typer.Option(help="The owner's name on the roster.")] = None,
    consumer: Annotated[
        bool, typer.Option("--consumer", help="Invite the consumer instead of an owner.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--output", help="The file to write; default: NAME.invitation.")
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option(help="The curator's secret key; default: curator.key beside the session file."),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="The curator's private file, which names the key.")
    ] = None,
    address: Annotated[
        str | None,
        typer.Option(help="The curator's address for this party, if it differs from the session file's."),
    ] = None,
    days: Annotated[int, ranged(Days, help="Days until it expires.")] = DAYS_IN_FORCE,
) -> _Invited:
    """Write an invitation for one party of a session, signed by the curator."""
    from hushbid.protocol.config.loading import load_toml
    from hushbid.protocol.config.session import SessionFile
    from hushbid.protocol.runtime.keys import read_secret
    from hushbid.protocol.session.session import open_session
    from hushbid.starting.invitations import write_invitation

    if (owner is None) is not consumer:
        raise ConfigError("Which party is invited?", advice="Give either --owner NAME or --consumer.")
    party = CONSUMER if owner is None else owner
    file = _reached_at(load_toml(SessionFile, session), address)
    open_session(file)
    pair = read_secret(_key_file(session, key, config))
    written = out or Path(f"{party}.invitation")
    values = write_invitation(written, file, party, pair, expires=expiry(days))
    return {
        "invitation_file": str(written),
        "party": party,
        "address": file.network.address,
        "curator_fingerprint": values["curator_fingerprint"],
        "digest": values["digest"],
        "expires": values["expires"],
    }


def _reached_at(file: SessionFile, address: str | None) -> SessionFile:
    """The session with the address at which the invited party reaches the curator."""
    from hushbid.protocol.config.loading import validated
    from hushbid.protocol.config.session import NetworkSection
    from hushbid.protocol.runtime.network.transport import contact_address

    if address is not None:
        values = {**file.network.model_dump(), "address": address}
        network = validated(NetworkSection, values, where="--address")
        file = file.model_copy(update={"network": network})
    contact_address(file.network.address)
    return file


def _key_file(session: Path, key: Path | None, config: Path | None) -> Path:
    from hushbid.protocol.config.loading import load_toml
    from hushbid.protocol.config.party import CuratorFile

    if key is not None:
        return key
    if config is not None:
        named = load_toml(CuratorFile, config).resolved(config.parent).key
        if named is None:
            raise ConfigError(f"{config} names no key.", advice="Set `key` there, or give --key.")
        return named
    return session.parent / "curator.key"
