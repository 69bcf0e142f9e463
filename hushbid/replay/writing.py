"""Writing a replay: from transcripts to a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hushbid.protocol.errors import ConfigError
from hushbid.protocol.runtime.files.durable import in_place_of
from hushbid.replay.facts import Facts
from hushbid.replay.merging import facts_of
from hushbid.replay.page import FIRST_BYTES, SESSION, page_of
from hushbid.text_files import check_file_place

__all__ = ["write_replay"]

_HEAD_BYTES = 1_000
"""Within which a page names its session."""


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
    old = _beginning(output)
    if old is not None and not old.startswith(FIRST_BYTES):
        raise ConfigError(
            f"{output} exists already, and is not a replay.", advice="Name another file with --output."
        )
    facts = facts_of(transcripts)
    if old is not None and SESSION + facts.session.encode() not in old:
        raise ConfigError(
            f"{output} is the replay of another session, which is kept.",
            advice="Name another file with --output.",
        )
    try:
        with in_place_of(output) as stream:
            stream.write(page_of(facts).encode())
    except OSError as error:
        raise _unwritable(output, error) from None
    return facts


def _beginning(output: Path) -> bytes | None:
    """The first bytes of what is there, before work is done to replace it: it may be a transcript."""
    check_file_place(output)  # no pipe is opened then, which would wait for a writer
    try:
        with output.open("rb") as file:
            return file.read(_HEAD_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unwritable(output, error) from None


def _unwritable(output: Path, error: OSError) -> ConfigError:
    return ConfigError(
        f"{output}: cannot write the replay: {error.strerror}.",
        advice="Name a file in a directory that exists and that this user can write to, with room for it.",
    )
