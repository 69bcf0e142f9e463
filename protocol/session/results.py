"""A party's result of a session: what its command line prints, and what Python gets."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic.dataclasses import dataclass

from hushbid.protocol.figures import Figures
from hushbid.protocol.session.guarantee import PrivacyStatement

__all__ = ["PartyResult"]


@dataclass(frozen=True, kw_only=True)
class PartyResult(Figures):
    """A party's result of a session (docs/results.md).

    Attributes:
        session: The session's name.
        wall_seconds: Duration of the session, including the time that the party was down.
        privacy: The guarantees: protected party, neighbours, ε and δ, and reasons against each.
        transcript: The party's transcript.
    """

    session: str
    wall_seconds: float
    privacy: tuple[PrivacyStatement, ...]
    transcript: Path

    @property
    def figures(self) -> Mapping[str, Any]:
        """All of it, as the command line prints it."""
        return self.as_json()
