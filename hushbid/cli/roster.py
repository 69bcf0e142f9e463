"""`hushbid keys approve | list | revoke`: the roster, managed by whoever keeps the session file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hushbid.protocol.errors import ExitCode
from hushbid.protocol.runtime.command import tell, verb
from hushbid.roster.shapes import Approved, PartiesOnRoster, Revoked

__all__ = ["approve_command", "list_command", "revoke_command"]

SessionOption = Annotated[Path, typer.Option("--session", help="The session file.", envvar="HUSHBID_SESSION")]


def _show_approved(done: Approved) -> None:
    from hushbid.roster.changes import ALL_ANEW

    for party in done["approved"]:
        asked = "" if party["asked_by"] in (party["name"], party["role"]) else f" {party['asked_by']}"
        name = f" {party['name']}" if party["role"] == "owner" else asked
        tell(f"{party['role']}{name}, {party['fingerprint']}: on the roster")
    if done["problem"]:
        tell(done["problem"])
        return
    changed = done["digest_before"] not in (None, done["digest"])
    tell(ALL_ANEW if changed else "The roster is complete: invite the parties.")
    tell(f"session digest {done['digest']}")


@verb(show=_show_approved)
def approve_command(
    requests: Annotated[
        list[Path], typer.Argument(help="Requests, made with `keys request`.", metavar="REQUEST...")
    ],
    session: SessionOption,
    fingerprints: Annotated[
        list[str] | None,
        typer.Option(
            "--fingerprint",
            metavar="NAME=FINGERPRINT",
            help="The fingerprint that the party read out, with its place: an owner's name, `consumer` or "
            "`curator`; once per request.",
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Skip the comparison of fingerprints.")] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace a party's existing key with this one.")
    ] = False,
) -> Approved:
    """Put parties' keys on the session file's roster, once fingerprints and roles are confirmed."""
    from hushbid.roster.changes import approve

    return approve(session, requests, fingerprints=fingerprints, compare=not yes, replace=replace)


def _show_parties(found: PartiesOnRoster) -> None:
    width = max(len(party["name"]) for party in found["parties"])
    for party in found["parties"]:
        told = party["fingerprint"] or party["missing"]
        tell(f"{party['name']:<{width}}  {party['role']:<8}  {told}")
    tell(found["problem"] or f"session digest {found['digest']}")
    if found["wrong"] not in (None, found["problem"]):
        tell(found["wrong"])


@verb(show=_show_parties, ends=lambda found: ExitCode.DONE if found["wrong"] is None else ExitCode.USAGE)
def list_command(session: SessionOption) -> PartiesOnRoster:
    """List the parties of a session file with their fingerprints, and what is missing.

    Exit code 4: the file has an error other than a missing key.
    """
    from hushbid.roster.changes import parties

    return parties(session)


def _show_revoked(done: Revoked) -> None:
    tell(f"{done['revoked']} was revoked in {done['file']}. {done['next']}")


@verb(show=_show_revoked)
def revoke_command(
    name: Annotated[str, typer.Argument(help="The party's name on the roster.")],
    session: SessionOption,
    config: Annotated[
        Path | None,
        typer.Option(
            help="The curator's private file: exclude the owner from a session that has begun, which stays "
            "the same session."
        ),
    ] = None,
) -> Revoked:
    """Remove a party's key from the roster; or, with --config, exclude an owner from a running session."""
    from hushbid.roster.changes import revoke

    return revoke(name, session, config)
