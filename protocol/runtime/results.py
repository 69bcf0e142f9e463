"""A party's result of a session, for users of Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hushbid.protocol.session.guarantee import PrivacyStatement

__all__ = ["PartyResult"]


@dataclass(frozen=True)
class PartyResult:
    """A party's result of a session.

    Attributes:
        figures: All of it, under the names of docs/results.md, as the command line prints it.
    """

    figures: Mapping[str, Any]

    @property
    def session(self) -> str:
        return str(self.figures["session"])

    @property
    def wall_seconds(self) -> float:
        """Duration of the session, including the time that the party was down."""
        return float(self.figures["wall_seconds"])

    @property
    def privacy(self) -> tuple[PrivacyStatement, ...]:
        """The guarantees: protected party, neighbours, ε and δ, and reasons against each."""
        from hushbid.protocol.session.guarantee import PrivacyStatement  # noqa: PLC0415

        return tuple(PrivacyStatement.from_json(each) for each in self.figures["privacy"])

    @property
    def transcript(self) -> Path:
        return Path(self.figures["transcript"])

    def as_json(self) -> dict[str, Any]:
        """The figures, as a dict of their own."""
        return dict(self.figures)
