"""The roster of a session file that a person keeps: read, filled in, and written with its comments.

Every party refuses a session file until its roster is complete. Here it may be anything between empty and
complete; the rest of the file is checked as parties check it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import tomlkit

from hushbid.protocol.config.key_request import Role
from hushbid.protocol.config.loading import load_toml_text, read_text, validated
from hushbid.protocol.config.session import DraftSession, SessionFile
from hushbid.protocol.crypto.identity import PublicIdentity
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.runtime.keys import new_keypair
from hushbid.protocol.session.session import open_session
from hushbid.text_files import replace_file, write_new_file

__all__ = ["RosterFile", "RosterPlace"]


@dataclass(frozen=True)
class RosterPlace:
    """A place on a roster: "curator", "consumer", or an owner's name; its role, and its text."""

    party: str
    role: Role
    text: str

    @property
    def key(self) -> PublicIdentity | None:
        """The party's key; None if there is none yet, or something else in its place."""
        try:
            return PublicIdentity(self.text)
        except ConfigError:
            return None

    @property
    def missing(self) -> str:
        if self.key is not None:
            return ""
        return "no valid key" if self.text else "no key yet"


class RosterFile:
    """A session file whose roster is changed; `save` writes it.

    Raises:
        ConfigError: It cannot be read, or is invalid apart from its roster.
    """

    def __init__(self, path: Path) -> None:
        text = read_text(path)
        self.path = path
        self.draft = load_toml_text(DraftSession, text, where=str(path))
        self._document = tomlkit.parse(text)

    def places(self) -> Iterator[RosterPlace]:
        """All places, the curator's and the consumer's first, then the owners' by name."""
        roster = self.draft.roster
        yield RosterPlace(CURATOR, "curator", roster.curator)
        yield RosterPlace(CONSUMER, "consumer", roster.consumer)
        for name in sorted(roster.owners):
            yield RosterPlace(name, "owner", roster.owners[name])

    def place(self, party: str) -> RosterPlace | None:
        return next((place for place in self.places() if place.party == party), None)

    def put(self, party: str, key: PublicIdentity, *, replace: bool) -> None:
        """Give a party its key, replacing another one if allowed. An owner without a place gets one.

        Raises:
            ConfigError: It has another key that must not be replaced, or another party has this one.
        """
        for place in self.places():
            if place.key is None:
                continue
            if place.party != party and place.key.curve == key.curve:
                raise ConfigError(
                    f"{self.path}: {place.party} has this key already, and {party} asks for it too.",
                    advice="Every party needs a key of its own: `hushbid keys new`.",
                )
            if place.party == party and place.key != key and not replace:
                raise ConfigError(
                    f"{self.path}: {party} has another key already, with the fingerprint "
                    f"{place.key.fingerprint}.",
                    advice="If the new one is to take its place, say `--replace`; all parties then need the "
                    "new file.",
                )
        self._set(party, key.text)

    def remove(self, party: str) -> None:
        """Take a party's key off the roster; an owner goes with its place."""
        self._set(party, None)

    def restrict(self, owners: Collection[str]) -> None:
        """Leave these owners on the roster, and no others. One without a place gets one without a key.

        Raises:
            ConfigError: The session would have fewer owners than it needs.
        """
        if len(owners) < self.draft.session.min_owners:
            raise ConfigError(
                f"{self.path}: session.min_owners is {self.draft.session.min_owners}, more than the "
                f"{len(owners)} owners that are to be on the roster.",
                advice="Choose more owners, or lower min_owners.",
            )
        roster = cast(dict[str, Any], self._document.setdefault("roster", tomlkit.table()))
        places = roster.setdefault("owners", tomlkit.table())
        for name in [*places]:
            if name not in owners:
                places.pop(name)
        for name in sorted(owners):
            places.setdefault(name, "")
        self.draft = validated(DraftSession, self._document.unwrap(), where=str(self.path))

    def session(self) -> tuple[SessionFile | None, str]:
        """The present session file; or None, and why no party would take it yet."""
        if without := [place.party for place in self.places() if place.missing]:
            return None, f"Still without a key: {', '.join(without)}."
        try:
            session = validated(SessionFile, self._document.unwrap(), where=str(self.path))
            open_session(session)
        except ConfigError as error:
            return None, error.what
        return session, ""

    def wrong(self) -> str:
        """What is wrong with the file, whichever keys it still gets; empty if nothing.

        An empty place is not wrong; one with something other than a key is.
        """
        no_keys = [place.party for place in self.places() if place.missing and place.text]
        if no_keys:
            return f"The value for {', '.join(no_keys)} is no key."
        insecure = self.draft.network.insecure  # nobody has a key there
        roster = {
            place.party: place.text or ("" if insecure else new_keypair().public.text)
            for place in self.places()
        }
        consumer, curator = roster.pop(CONSUMER), roster.pop(CURATOR)
        values = {
            **self._document.unwrap(),
            "roster": {"curator": curator, "consumer": consumer, "owners": roster},
        }
        try:
            open_session(validated(SessionFile, values, where=str(self.path)))
        except ConfigError as error:
            return error.what
        return ""

    def save(self) -> None:
        """Write the file, keeping its comments and layout.

        Raises:
            ConfigError: It cannot be written.
        """
        replace_file(self.path, tomlkit.dumps(self._document))

    def save_as(self, path: Path) -> None:
        """Write another file, which must not exist yet.

        Raises:
            ConfigError: It exists, or cannot be written.
        """
        write_new_file(path, tomlkit.dumps(self._document))

    def _set(self, party: str, text: str | None) -> None:
        roster = cast(dict[str, Any], self._document.setdefault("roster", tomlkit.table()))
        if party in (CURATOR, CONSUMER):
            roster[party] = text or ""
        else:
            owners = roster.setdefault("owners", tomlkit.table())
            if text is None:
                owners.pop(party, None)
            else:
                owners[party] = text
        self.draft = validated(DraftSession, self._document.unwrap(), where=str(self.path))
