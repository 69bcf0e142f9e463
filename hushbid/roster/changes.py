"""Changes to a session's roster: approving keys and revoking them."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

import tomlkit
import typer

from hushbid.protocol.config.key_request import KeyRequest
from hushbid.protocol.config.loading import load_toml_text, read_text
from hushbid.protocol.config.party import CuratorFile
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.runtime.command import say
from hushbid.protocol.runtime.files.expiry import check_in_force
from hushbid.protocol.runtime.files.signed_files import read_key_request
from hushbid.roster.file import RosterFile, RosterPlace
from hushbid.roster.shapes import Approved, PartiesOnRoster, PartyOnRoster, Revoked
from hushbid.text_files import one_at_a_time, replace_file

__all__ = ["ALL_ANEW", "approve", "parties", "revoke"]

ALL_ANEW: Final = "All parties need the new file, or a new invitation: the session's digest has changed."


def approve(
    session: Path,
    requests: Sequence[Path],
    *,
    fingerprints: Sequence[str] | None,
    compare: bool,
    replace: bool,
    now: datetime | None = None,
) -> Approved:
    """Put the keys of requests on a session file's roster: all of them, or none.

    Args:
        fingerprints: What was read out, each as NAME=FINGERPRINT: an owner's name, "consumer" or "curator",
            so that whoever approves says which place is filled; None: a person is asked.
        compare: Whether fingerprints are compared at all.
        replace: Whether a key may replace another one.
        now: The time; None: the clock's.

    Raises:
        ConfigError: A request is invalid, has expired, or is for another session; or its fingerprint was not
            confirmed, or its key cannot be put there; or the file cannot be read or written. The file is then
            unchanged.
    """
    draft = RosterFile(session).draft  # report problems of the requests before asking anybody
    read = [_requested(path, draft.session.name, now) for path in requests]
    if compare:
        _compare(read, None if fingerprints is None else _told(fingerprints))
    with one_at_a_time(session):
        roster = RosterFile(session)
        before, _ = roster.session()
        for request in read:
            roster.put(_party(request), request.identity, replace=replace)
        after, problem = roster.session()
        roster.save()
    return {
        "session": str(session),
        "approved": [
            {
                "name": _party(request),
                "role": request.role,
                "asked_by": request.name,
                "fingerprint": request.identity.fingerprint,
            }
            for request in read
        ],
        "problem": problem or None,
        "digest": None if after is None else after.digest().hex(),
        "digest_before": None if before is None else before.digest().hex(),
    }


def _requested(path: Path, session: str, now: datetime | None) -> KeyRequest:
    """A valid, unexpired request, and for this session if it names one."""
    request = read_key_request(path)
    again = f"Have {request.name} make a new one (`hushbid keys request`), if this machine's clock is right."
    check_in_force(request.expires, where=str(path), advice=again, now=now)
    if request.session not in (None, session):
        raise ConfigError(
            f"{path}: {request.name} asks to take part in the session {request.session}, and this is "
            f"{session}.",
            advice=f"Name that session's file, or have {request.name} ask for this one "
            f"(`hushbid keys request --session-name {session}`).",
        )
    return request


def parties(session: Path) -> PartiesOnRoster:
    """The parties of a session file, each with its key or with what is missing; raises as `RosterFile`."""
    roster = RosterFile(session)
    complete, problem = roster.session()
    return {
        "session": str(session),
        "parties": [_described(place) for place in roster.places()],
        "problem": problem or None,
        "digest": None if complete is None else complete.digest().hex(),
        "wrong": roster.wrong() or None,
    }


def revoke(name: str, session: Path, config: Path | None) -> Revoked:
    """Take a party off a session's roster; or exclude an owner from a session that has begun.

    Args:
        config: The curator's private file, which then lists the owner; None: the roster is changed.

    Raises:
        ConfigError: The party is not on the roster, or is one that a session requires; or a file cannot be
            read or written.
    """
    if config is not None:
        place = _place(name, RosterFile(session))
        with one_at_a_time(config):
            _shut_out(place, config)
        told = "Stop the curator and start it again: the session goes on without this owner."
        return {"revoked": name, "file": str(config), "next": told}
    with one_at_a_time(session):
        roster = RosterFile(session)
        roster.remove(_place(name, roster).party)
        roster.save()
    return {"revoked": name, "file": str(session), "next": ALL_ANEW}


def _place(name: str, roster: RosterFile) -> RosterPlace:
    place = roster.place(name)
    if place is None:
        raise ConfigError(
            f"{roster.path}: {name} is not on the roster.", advice="`hushbid keys list` shows the roster."
        )
    return place


def _told(fingerprints: Sequence[str]) -> dict[str, str]:
    told: dict[str, str] = {}
    for text in fingerprints:
        party, equals, fingerprint = text.partition("=")
        if not equals:
            raise ConfigError(
                f"--fingerprint {text}: this does not say whose it is, and so not which place it fills.",
                advice=f"Say `--fingerprint NAME={text}`, where NAME is the owner's name, `{CONSUMER}` or "
                f"`{CURATOR}`.",
            )
        party = party.strip()
        if told.setdefault(party, _plain(fingerprint)) != _plain(fingerprint):
            raise ConfigError(
                f"--fingerprint {text}: another one was given for {party} too.",
                advice="Give the one that was read out.",
            )
    return told


def _compare(requests: Sequence[KeyRequest], told: Mapping[str, str] | None) -> None:
    """Refuse requests unless a person confirmed both the fingerprint and the place."""
    if told is None and not sys.stdin.isatty():
        raise _nobody(requests)
    for request in requests:
        if told is None:
            _ask(request)
        else:
            _compare_told(request, told)
    if unused := sorted(set(told or ()) - {_party(request) for request in requests}):
        raise ConfigError(
            f"A fingerprint was given for {', '.join(unused)}, and no request asks for that place.",
            advice="Correct the name, or name the request's file too. Nothing was changed.",
        )


def _compare_told(request: KeyRequest, told: Mapping[str, str]) -> None:
    party, mine = _party(request), request.identity.fingerprint
    if party not in told:
        raise ConfigError(
            f"{_wish(request)}, by the key {mine}, and no fingerprint was given for {party}.",
            advice=f"If {request.name} is to be {_as(request)}, and read this out, say "
            f"`--fingerprint {party}={mine}`.",
        )
    if _plain(mine) != told[party]:
        raise ConfigError(
            f"{_wish(request)}, by the key {mine}, which is not the fingerprint that was given for {party}.",
            advice=f"Have {request.name} read its own out again (`hushbid keys show`): if it is another, "
            "the request did not come from there.",
        )


def _nobody(requests: Sequence[KeyRequest]) -> ConfigError:
    asked = [
        f"of {each.name}, which asks to be {_as(each)}: {each.identity.fingerprint}" for each in requests
    ]
    options = [f"--fingerprint {_party(each)}=FINGERPRINT" for each in requests]
    many = "s" if len(requests) > 1 else ""
    return ConfigError(
        f"Nobody is here to compare the fingerprint{many} {'; '.join(asked)}.",
        advice=f"Run it in a terminal, where it asks; or give what was read out over the telephone with "
        f"`{' '.join(options)}`; or say `--yes`.",
    )


def _ask(request: KeyRequest) -> None:
    mine = request.identity.fingerprint
    say(f"{_wish(request)}, by the key {mine}.")
    if request.role == CONSUMER:
        say("Every owner seals its points to the consumer's key.")
    if not typer.confirm(
        f"Is {request.name} to be {_as(request)}, and did it read this fingerprint to you?", err=True
    ):
        raise ConfigError(f"The key of {request.name} was not approved.", advice="Nothing was changed.")


def _as(request: KeyRequest) -> str:
    return f"the owner {request.name}" if request.role == "owner" else f"the {request.role}"


def _wish(request: KeyRequest) -> str:
    return f"Role {request.role}: {request.name} asks to be {_as(request)}"


def _plain(fingerprint: str) -> str:
    """A fingerprint for comparison, independent of how it was typed."""
    return "".join(character for character in fingerprint.upper() if character.isalnum())


def _party(request: KeyRequest) -> str:
    return request.name if request.role == "owner" else request.role


def _shut_out(place: RosterPlace, config: Path) -> None:
    if place.party in (CURATOR, CONSUMER):
        raise ConfigError(
            f"A session cannot go on without its {place.party}.",
            advice="Stop the curator, and run another session with another key.",
        )
    text = read_text(config)
    revoked: Sequence[str] = load_toml_text(CuratorFile, text, where=str(config)).revoked
    document = tomlkit.parse(text)
    document["revoked"] = [*revoked, *([] if place.party in revoked else [place.party])]
    replace_file(config, tomlkit.dumps(document))


def _described(place: RosterPlace) -> PartyOnRoster:
    key = place.key
    return {
        "name": place.party,
        "role": place.role,
        "public": None if key is None else key.text,
        "fingerprint": None if key is None else key.fingerprint,
        "missing": place.missing or None,
    }
