"""Owners' display names, such as ``Hôpital Nord``, and the roster names that stand for them."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Final

from hushbid.protocol.config.section import is_party_name
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.printable import printable

__all__ = ["MOST_SHOWN", "handles_of", "shown_name"]

MOST_SHOWN: Final = 200
"""Most characters of a display name."""
_LONGEST: Final = 48
"""Characters of a handle made from a display name, before the part that makes it unique."""
_PARTS: Final = {"ß": "ss", "æ": "ae", "ø": "o", "œ": "oe", "ł": "l", "đ": "d", "ð": "d", "þ": "th"}
"""Letters that are not an ASCII letter with a diacritic, and their replacements."""


_OTHER: Final = "Give every owner a name of its own, as people have it."


def handles_of(names: Iterable[str]) -> dict[str, str]:
    """A roster name for each display name: the same if it is valid, else one made from it.

    The result does not depend on the order of the names. Two that would have one handle get the beginning of
    a digest appended; a name without a letter or digit of any Latin script becomes `owner` and a digest.

    Raises:
        ConfigError: A name is empty, too long, or that of another party.
    """
    given, reserved = dict.fromkeys(names), (CONSUMER, CURATOR)
    for name in given:
        if name.strip().lower() in reserved:
            raise ConfigError(f"owners: an owner cannot be named {CONSUMER} or {CURATOR}.", advice=_OTHER)
        if not name.strip() or len(name) > MOST_SHOWN:
            what = f"longer than {MOST_SHOWN} characters" if name.strip() else "empty"
            raise ConfigError(f"owners: a name is {what}.", advice=_OTHER)
    handles = {name: name for name in given if is_party_name(name)}
    made = {name: _handle(name) for name in given if name not in handles}
    taken = [*handles.values(), *made.values(), *reserved]
    for name, handle in made.items():
        unique = bool(handle) and taken.count(handle) == 1
        handles[name] = handle if unique else f"{handle or 'owner'}-{_digest(name)}"
    return {name: handles[name] for name in given}


def shown_name(handle: str, display: Mapping[str, str]) -> str:
    """The printed name of an owner: its display name, made safe to show, or its handle."""
    return printable(display[handle]) if handle in display else handle


def _handle(name: str) -> str:
    """The name in a roster's letters; empty if it has none of them."""
    plain = unicodedata.normalize("NFKD", "".join(_PARTS.get(each, each) for each in name.lower()))
    letters = "".join(each for each in plain.lower() if not unicodedata.combining(each))
    return re.sub(r"[^a-z0-9_.]+", "-", letters).strip("-_.")[:_LONGEST].strip("-_.")


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
