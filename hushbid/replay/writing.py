"""Writing a replay: from transcripts to a file."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from hushbid.protocol.runtime.blas_threads import one_blas_thread
from hushbid.replay.beside import Beside, beside_of
from hushbid.replay.facts import Facts
from hushbid.replay.merging import recording_of
from hushbid.replay.own import ReplayFiles
from hushbid.replay.page import FIRST_BYTES, page_of, sessions_of
from hushbid.report.html import SESSION
from hushbid.text_files import check_page_session, page_there, write_page

__all__ = ["write_replay"]

_WHAT: Final = "replay"


@one_blas_thread()
def write_replay(
    given: ReplayFiles, output: Path, beside: ReplayFiles | None = None
) -> tuple[Facts, Beside | None]:
    """Make a replay of the transcripts of one session, or of two side by side.

    Args:
        output: Where to write it, readable by its owner only; an older replay of the session is replaced.
        beside: Another session, or another recording of this one; None: there is none.

    Returns:
        What the page shows, and what it shows beside it.

    Raises:
        ConfigError: The transcripts do not go together, the two sides are one recording or have nothing to
            compare, or the page cannot be written there.
        DataError: A transcript cannot be used.
        TranscriptDamaged: The first record of one does not hold.
    """
    old = page_there(output, FIRST_BYTES, _WHAT)
    recording = recording_of(given.transcripts, given.own)
    other = None if beside is None else recording_of(beside.transcripts, beside.own)
    compared = None if other is None else beside_of(recording, other)
    check_page_session(old, output, SESSION, sessions_of(recording.facts, compared), _WHAT)
    write_page(output, page_of(recording.facts, compared), _WHAT)
    return recording.facts, compared
