"""Transcripts of every format version that was ever written stay readable, to the same contents.

The files in `transcripts/` are never written anew: a change of the format adds a version and a file.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from protocol.transcript.reader import read_transcript
from tests.unit.transcripts import HEADER, STEPS, redact, same, transcript

TRANSCRIPTS = Path(__file__).parent / "transcripts"
HEAD_1_0 = "e4290a8d32591c2d38990db5c5feaa06f40efc85bcb9ff962882e9bafbc7e78d"


@pytest.mark.parametrize("name", ["format-1.0", "format-1.0-redacted"])
def test_a_golden_transcript_reads_as_ever(name: str) -> None:
    found = read_transcript(TRANSCRIPTS / f"{name}.transcript")
    assert found.head.hex() == HEAD_1_0
    assert found.torn_bytes == 0
    assert found.header.role == HEADER.role
    assert found.header.config_digest == HEADER.config_digest
    assert same(dict(found.header.environment), dict(HEADER.environment))
    for record, (now, event, effects) in zip(found.records, STEPS, strict=True):
        assert record.now == now
        for back, item in zip(record.items, (event, *effects), strict=True):
            assert back.kind == item.kind
            assert same(dict(back.public), dict(item.public))
            assert back.commitments.keys() == item.private.keys()
            assert back.redacted == (tuple(sorted(item.private)) if name.endswith("redacted") else ())
            assert all(same(back.private[field], item.private[field]) for field in back.private)


def test_the_writer_of_today_writes_the_newest_golden_transcript() -> None:
    assert transcript() == (TRANSCRIPTS / "format-1.0.transcript").read_bytes()


def test_redaction_as_documented_gives_the_golden_redacted_one() -> None:
    redacted = redact(transcript(), lambda number, name: False)
    assert redacted == (TRANSCRIPTS / "format-1.0-redacted.transcript").read_bytes()
