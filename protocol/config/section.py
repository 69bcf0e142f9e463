"""The base of every table of a configuration file."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict

from hushbid.protocol.errors import ConfigError

__all__ = ["PartyName", "Section", "check_party_name", "is_party_name", "matches"]


def matches(pattern: str, otherwise: str) -> AfterValidator:
    """Require a text to match a pattern; the refusal describes the requirement and not the pattern."""
    compiled = re.compile(pattern)

    def check(text: str) -> str:
        if compiled.fullmatch(text) is None:
            raise ValueError(otherwise)
        return text

    return AfterValidator(check)


_PARTY_NAME = r"[a-z0-9][a-z0-9_.-]{0,63}"
PartyName = Annotated[
    str,
    matches(
        _PARTY_NAME,
        "not a name: 1 to 64 of a-z 0-9 _ . -, the first a letter or a digit",
    ),
]


def is_party_name(text: str) -> bool:
    """Whether a party may have this name on a roster."""
    return re.fullmatch(_PARTY_NAME, text) is not None


def check_party_name(name: str, what: str, *, where: str = "") -> None:
    """Refuse a text that can be the name of no party, and of no session.

    Args:
        what: What it was to be, as in "a name on a roster".
        where: What the message begins with.

    Raises:
        ConfigError: It is one.
    """
    if not is_party_name(name):
        raise ConfigError(
            f"{where}{name!r} cannot be {what}.",
            advice="Use small letters, digits, and after the first of them also _ . - (64 at most).",
        )


class Section(BaseModel):
    """A table of a configuration file; strict, and unknown keys are refused."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")
