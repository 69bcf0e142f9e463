"""The kind of a TOML file that describes a session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from hushbid.protocol.config.invitation import Invitation

__all__ = ["kind_of"]


def kind_of(values: Mapping[str, object]) -> Literal["invitation", "session", "cluster"]:
    """The kind of a file with these tables; a session file counts as one before it has a roster."""
    if values.get("format") == Invitation.FORMAT:
        return "invitation"
    return "cluster" if "roster" not in values and ("owners" in values or "dataset" in values) else "session"
