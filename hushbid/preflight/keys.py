"""The roster and its keys."""

from __future__ import annotations

from hushbid.preflight.subject import NotChecked, Subject, Warned
from hushbid.protocol import platform
from hushbid.protocol.crypto.identity import PublicIdentity
from hushbid.protocol.names import CONSUMER, CURATOR

__all__ = ["fingerprints", "key", "roster"]

_NO_KEYS = "the session is insecure: it has no keys, and is for this machine alone"


def roster(subject: Subject) -> str:
    """Check the roster; with a missing key, or a key that another party has, there is no session."""
    count = len(subject.session.file.owners)
    owners = f"{count} owner{'s' if count > 1 else ''}"
    return f"complete: the curator, the consumer and {owners}; this is {subject.name}"


def key(subject: Subject) -> str | NotChecked | Warned:
    """Whether the key file is readable by the party alone, and its key is the roster's."""
    pair = subject.pair
    if pair is None:
        return NotChecked(_NO_KEYS)
    if not platform.has_modes():
        return Warned(
            f"{subject.file.key} has the roster's key; this system does not say who else can read the file",
            "Keep it below this user's own directory.",
        )
    return f"{subject.file.key} is readable by its owner alone; fingerprint {pair.public.fingerprint}"


def fingerprints(subject: Subject) -> NotChecked:
    """Fingerprints, which only people can compare."""
    file = subject.session.file
    if file.network.insecure:
        return NotChecked(_NO_KEYS)
    keys = {CURATOR: file.roster.curator, CONSUMER: file.roster.consumer}
    if subject.role == "curator":
        keys |= file.roster.owners
    told = [
        f"{name} {PublicIdentity(text).fingerprint}" for name, text in keys.items() if name != subject.name
    ]
    return NotChecked(f"compare by telephone: {', '.join(told)}")
