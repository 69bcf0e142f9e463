"""Writing a replay: from transcripts to a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from hushbid.replay.facts import Facts
from hushbid.replay.merging import facts_of
from hushbid.replay.page import FIRST_BYTES, page_of
from hushbid.report.html import SESSION
from hushbid.text_files import check_page_session, page_there, write_page

__all__ = ["write_replay"]

_WHAT: Final = "replay"


def write_replay(transcripts: Sequence[Path], output: Path) -> Facts:
    """Make a replay of the transcripts of one session.

    Args:
        transcripts: At least one.
        output: Where to write it, readable by its owner only; an older replay of the session is replaced.

    Raises:
        ConfigError: The transcripts do not go together, or the page cannot be written there.
        DataError: A transcript cannot be used.
        TranscriptDamaged: The first record of one does not hold.
    """
    old = page_there(output, FIRST_BYTES, _WHAT)
    facts = facts_of(transcripts)
    check_page_session(old, output, SESSION, facts.session, _WHAT)
    write_page(output, page_of(facts), _WHAT)
    return facts
