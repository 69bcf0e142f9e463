"""`hushbid keys new | show | request`: make a party's identity key, and the files that others need."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal, TypedDict

import typer

from hushbid.cli.roster import approve_command, list_command, revoke_command
from hushbid.protocol.errors import KeyFileError
from hushbid.protocol.runtime.command import show_figures, verb
from hushbid.protocol.runtime.files.expiry import DAYS_IN_FORCE, Days, expiry
from hushbid.protocol.runtime.keys import (
    PublicKey,
    new_keypair,
    read_public,
    read_secret,
    write_public,
    write_secret,
)
from hushbid.protocol.runtime.ranged import ranged

__all__ = ["keys_app"]

_PUBLIC_SUFFIX: Final = ".pub"
_SECRET_SUFFIX: Final = ".key"  # noqa: S105 - a file suffix

keys_app = typer.Typer(help="Make a party's key, and collect the keys of a session.")


class _PublicKey(TypedDict):
    """A public key for a roster, and what is compared by telephone."""

    public: str
    fingerprint: str


class _MadeKey(_PublicKey):
    """A new key's two files."""

    secret_file: str
    public_file: str


class _ShownKey(_PublicKey):
    """A key's file."""

    file: str


class _MadeRequest(_PublicKey):
    """A request's file, and what it asks for; `session` is None if any may accept it."""

    request_file: str
    name: str
    role: str
    session: str | None
    expires: str


def _show_new(made: _MadeKey) -> None:
    show_figures(
        {
            "secret key": f"{made['secret_file']} (keep it to yourself)",
            "public key": f"{made['public']} (in {made['public_file']})",
            "fingerprint": made["fingerprint"],
        }
    )


@keys_app.command("new")
@verb(show=_show_new)
def _new(
    name: Annotated[str, typer.Argument(help="The party's name, used to name the files.")],
    directory: Annotated[Path, typer.Option("--output", help="Directory for the two files.")] = Path(),
) -> _MadeKey:
    """Make a key: NAME.key, which stays with the party, and NAME.pub, which the roster needs."""
    _check_name(name)
    pair = new_keypair()
    secret, public = (directory / f"{name}{suffix}" for suffix in (_SECRET_SUFFIX, _PUBLIC_SUFFIX))
    write_secret(secret, pair)
    try:
        write_public(public, pair.public)
    except KeyFileError:
        secret.unlink()  # nobody knows this key yet
        raise
    return {"secret_file": str(secret), "public_file": str(public), **_described(pair.public)}


@keys_app.command("show")
@verb(show=lambda found: show_figures({"public key": found["public"], "fingerprint": found["fingerprint"]}))
def _key(file: Annotated[Path, typer.Argument(help="A secret or a public key file.")]) -> _ShownKey:
    """Show a file's public key, for a roster, and its fingerprint, to compare by telephone."""
    return {"file": str(file), **_described(_public_key(file))}


def _show_request(made: _MadeRequest) -> None:
    show_figures(
        {
            "request": f"{made['request_file']} (send it to whoever keeps the session file)",
            "fingerprint": f"{made['fingerprint']} (read it to them over the telephone)",
            "expires": made["expires"],
        }
    )


@keys_app.command("request")
@verb(show=_show_request)
def _request(
    name: Annotated[str, typer.Argument(help="The party's name, as it should appear on the roster.")],
    role: Annotated[
        Literal["owner", "consumer", "curator"], typer.Option(help="The party's role in the session.")
    ],
    key: Annotated[Path | None, typer.Option(help="The party's secret key file; default: NAME.key.")] = None,
    out: Annotated[
        Path | None, typer.Option("--output", help="The file to write; default: NAME.request.")
    ] = None,
    session_name: Annotated[
        str | None,
        typer.Option(
            help="The session's name, if known: no other session then accepts the request.",
            metavar="NAME",
        ),
    ] = None,
    days: Annotated[int, ranged(Days, help="Days until it expires.")] = DAYS_IN_FORCE,
) -> _MadeRequest:
    """Request a place on a session's roster: write a file with the public key, signed by the secret key."""
    import tomli_w

    from hushbid.protocol.config.key_request import key_request
    from hushbid.text_files import write_new_file

    _check_name(name)
    pair = read_secret(key or Path(f"{name}{_SECRET_SUFFIX}"))
    if session_name is not None:
        _check_name(session_name)
    values = key_request(name, role, pair, session=session_name, expires=expiry(days))
    text = tomli_w.dumps(values)
    file = out or Path(f"{name}.request")
    write_new_file(file, f"# A request to be put on a session's roster. Nothing in it is secret.\n{text}")
    return {
        "request_file": str(file),
        "name": name,
        "role": role,
        "session": session_name,
        "expires": values["expires"],
        **_described(pair.public),
    }


keys_app.command("approve")(approve_command)
keys_app.command("list")(list_command)
keys_app.command("revoke")(revoke_command)


def _check_name(name: str) -> None:
    from hushbid.protocol.config.section import check_party_name

    check_party_name(name, "a name on a roster")


def _public_key(file: Path) -> PublicKey:
    """The public key of either kind of file; errors are those of the kind that the name suggests."""
    try:
        return read_public(file)
    except KeyFileError:
        if file.suffix == _PUBLIC_SUFFIX:
            raise
        return read_secret(file).public


def _described(key: PublicKey) -> _PublicKey:
    return {"public": key.text, "fingerprint": key.fingerprint}
