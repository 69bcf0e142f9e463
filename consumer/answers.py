"""The words for one question, which `plan`, `advise`, `preflight` and results ask: is it worth buying?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

__all__ = ["Basis", "Word", "said"]

Word: TypeAlias = Literal["good", "uncertain", "poor", "hopeless"]
"""The answer: it pays; unclear; by the rule of thumb it does not come close enough; it does not pay."""

Basis: TypeAlias = Literal["the rule of thumb", "the session's settings", "own rows", "a rehearsal"]
"""What an answer rests on. Each but the first overrules the first, which ignores the data."""

_BY_RULE: Final[Mapping[Word, str]] = {"good": "not ruled out", "poor": "doubtful", "hopeless": "doubtful"}


def said(word: Word, *, by_rule: bool) -> str:
    """The answer as people read it.

    Args:
        by_rule: Whether it rests on the rule of thumb, which a rehearsal may contradict.
    """
    return _BY_RULE.get(word, word) if by_rule else word
