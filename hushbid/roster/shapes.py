"""What the verbs of a roster say, as JSON has it; a module of its own, so that their help imports little."""

from __future__ import annotations

from typing import TypedDict

__all__ = ["Approved", "ApprovedParty", "PartiesOnRoster", "PartyOnRoster", "Revoked"]


class ApprovedParty(TypedDict):
    """A party whose key is now on the roster, and the name that it asked by."""

    name: str
    role: str
    asked_by: str
    fingerprint: str


class Approved(TypedDict):
    """A session file to whose roster keys were put; without a digest, `problem` says what is missing."""

    session: str
    approved: list[ApprovedParty]
    problem: str | None
    digest: str | None
    digest_before: str | None


class PartyOnRoster(TypedDict):
    """A place on a roster: its key, or what is missing."""

    name: str
    role: str
    public: str | None
    fingerprint: str | None
    missing: str | None


class PartiesOnRoster(TypedDict):
    """A session file's places; `wrong` is an error other than a missing key."""

    session: str
    parties: list[PartyOnRoster]
    problem: str | None
    digest: str | None
    wrong: str | None


class Revoked(TypedDict):
    """A party that is off the roster, or shut out, of which file, and what to do next."""

    revoked: str
    file: str
    next: str
