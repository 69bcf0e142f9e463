"""Until when an invitation or a key request may be used: a public time in UTC, signed with the file."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Final, TypeAlias

from annotated_types import Ge, Le

from hushbid.protocol.errors import ConfigError

__all__ = ["DAYS_IN_FORCE", "Days", "check_in_force", "expiry"]

DAYS_IN_FORCE: Final = 30
"""How long an invitation or a request can be used, unless its author says otherwise."""
Days: TypeAlias = Annotated[int, Ge(1), Le(3650)]
"""As long as its author can say."""

_FORM: Final = "%Y-%m-%dT%H:%M:%SZ"
_ASK_AGAIN: Final = (
    "If this machine's clock is right, ask the curator's operator for a new invitation (`hushbid invite`)."
)


def expiry(days: int, *, now: datetime | None = None) -> str:
    """The time that many days from now, as signed files have it (`SignedFile.expires`)."""
    at = (datetime.now(UTC) if now is None else now.astimezone(UTC)) + timedelta(days=days)
    return at.strftime(_FORM)


def check_in_force(
    expires: str | None, *, where: str, advice: str = _ASK_AGAIN, now: datetime | None = None
) -> None:
    """Refuse a file that has expired. One without a time never does: earlier versions wrote none.

    Args:
        expires: `SignedFile.expires`.
        where: The file, for the error.
        now: The time; None: the clock's.

    Raises:
        ConfigError: Its time is over.
    """
    at = expiry(0, now=now)
    if expires is not None and at > expires:
        raise ConfigError(f"{where}: it expired at {expires}, and it is {at} on this machine.", advice=advice)
