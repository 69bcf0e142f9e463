"""Transcripts of every format version that was ever written stay readable, to the same contents.

The files in `transcripts/` are never written anew: a change of the format adds a version and a file.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hushbid.transcripts.replay import replayed
from protocol.recorded_session import recorded_session
from protocol.transcript.reader import TranscriptReader, read_transcript
from tests.golden.make_transcripts import golden_images
from tests.unit.transcripts import HEADER, STEPS, redact, same, transcript

TRANSCRIPTS = Path(__file__).parent / "transcripts"
SESSION = TRANSCRIPTS / "session-1"
"""A sealed session of two owners and three rounds, from all parties (`make_transcripts`)."""
HEADS = {
    "consumer": ("consumer", 5, "b672db783659f36c3babd00f4ed47eba45327c0d88124335fc018f88ebebd96b"),
    "curator": ("curator", 17, "66278940423d6f312e82feefd424f839b9f7c1dd52a2184e7b8bf642961ef6be"),
    "owner-0": ("owner", 8, "491e46a31daf16a2cedc4212deae66cc8aa3c1d445bd6402072f82e6be929f94"),
    "owner-1": ("owner", 8, "f5dfb0ad3d0c4f5747cb7351ee4c6bb559f57779cbac1a4638311555ab2e7a2c"),
}
"""Party → role, records, head."""
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


@pytest.mark.parametrize("party", sorted(HEADS))
def test_a_golden_transcript_of_every_role_reads_and_replays_as_ever(party: str) -> None:
    path = SESSION / f"{party}.transcript"
    role, records, head = HEADS[party]
    found = read_transcript(path)
    assert (found.header.role, found.header.party) == (role, party)
    assert (len(found.records), found.head.hex(), found.torn_bytes) == (records, head, 0)
    session = recorded_session(found.records[0].event)
    assert session.digest() == found.header.config_digest
    # The machine of today does to the last byte what the machine did that recorded it. Should it ever have to
    # do otherwise, the protocol has a new version, and this file is one that is only read.
    again = replayed(path)
    assert again.records == records
    assert again.finished


def test_the_golden_session_is_that_of_its_maker() -> None:
    """Its kinds and peers, not its figures: the last bits of those are the BLAS's."""
    made = golden_images()
    assert sorted(made) == sorted(HEADS)
    for party, image in made.items():
        today = list(TranscriptReader(Path(party), image))
        there = read_transcript(SESSION / f"{party}.transcript").records
        assert [record.event.kind for record in today] == [record.event.kind for record in there]
        assert [[item.kind for item in record.effects] for record in today] == [
            [item.kind for item in record.effects] for record in there
        ]
