"""Transcripts of every format version ever written stay readable, with the same contents.

The files in `transcripts/` are never rewritten: a change of the format adds a version and a file.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hushbid.protocol.errors import DataError
from hushbid.protocol.transcript.journal import MemoryJournal
from hushbid.protocol.transcript.reader import TranscriptReader
from hushbid.protocol.transcript.session_file import recorded_digest
from hushbid.protocol.transcript.verify import verify
from hushbid.protocol.wire.messages import COMMITTED_VERSION, PROTOCOL_VERSION
from hushbid.protocol.wire.values import Item
from hushbid.transcripts.replay import replayed
from hushbid.transcripts.verification.whole_session import verify_all
from tests.golden.make_transcripts import SESSIONS, golden_images
from tests.support.transcripts import HEADER, STEPS, read_transcript, redact, same, transcript

TRANSCRIPTS = Path(__file__).parent / "transcripts"
EARLIER = TRANSCRIPTS / "session-1"
"""A sealed session of two owners and three rounds, from all parties, of version 1 of the protocol."""
SESSION = TRANSCRIPTS / "session-2"
"""The same in version 2 (`make_transcripts`)."""
EARLIER_HEADS = {
    "consumer": ("consumer", 5, "b672db783659f36c3babd00f4ed47eba45327c0d88124335fc018f88ebebd96b"),
    "curator": ("curator", 17, "66278940423d6f312e82feefd424f839b9f7c1dd52a2184e7b8bf642961ef6be"),
    "owner-0": ("owner", 8, "491e46a31daf16a2cedc4212deae66cc8aa3c1d445bd6402072f82e6be929f94"),
    "owner-1": ("owner", 8, "f5dfb0ad3d0c4f5747cb7351ee4c6bb559f57779cbac1a4638311555ab2e7a2c"),
}
"""Party → role, records, head."""
HEADS = {
    "consumer": ("consumer", 5, "14a7e784a62649aeaeffaece5284754d2aafb7757b3409d549d0bb60620116b9"),
    "curator": ("curator", 17, "dd5802a74d83474e1477d4fff59d877dad3302f9a1d4ac58b1799e20d583acf3"),
    "owner-0": ("owner", 8, "dab0943c858d6efdb080a2d886151fdf474ad6a4ef8abe34b06dac6a6b437a42"),
    "owner-1": ("owner", 8, "56c2e42324432ac107eff4ef35aafc9cb8640c791fe207dff0e4aa30bca586bb"),
}
"""The same of `SESSION`."""
TENDER_HEADS = {
    "consumer": ("consumer", 5, "fbd61ca41d4b2d38f5850dc5ed722b3abe8752c8792a13c53e54ecb19681b43d"),
    "curator": ("curator", 15, "694ee7b069477fe99e2c84e639905a1d52e9eb37767705ce5a73fa9786e51747"),
    "owner-0": ("owner", 7, "e542869d20fe9a1deaae34f1583d74a1a27189ce8dcc911abc8b4bef52148f11"),
    "owner-1": ("owner", 7, "9bd8426620db854c88b4a68459295d4c206c8d63f4854768fbd9151b3f756504"),
}
COMMITTED_HEADS = {
    "consumer": ("consumer", 6, "6f038500e33a87255577001b82e3a28f70f044632979a4f52250c60f1e5cd6ff"),
    "curator": ("curator", 19, "c17550e5fc7f93b676a271f9f5d957333376507f7f8b31bd9e192517c90079ef"),
    "owner-0": ("owner", 8, "80c1f8326b463c648bfda66fe8f450ae6971f7904ec7b0b86f4caf3f7655271f"),
    "owner-1": ("owner", 8, "3b663a8c74f002d4750186343bfbc158d07938b1db8cafdda4e6eded164654f0"),
}
GOLDEN = {
    (name, party): expected
    for name, heads in (("session-2", HEADS), ("tender", TENDER_HEADS), ("committed", COMMITTED_HEADS))
    for party, expected in heads.items()
}
FORMATS = {
    "format-1.0": ("e4290a8d32591c2d38990db5c5feaa06f40efc85bcb9ff962882e9bafbc7e78d", 1),
    "format-1.1": ("1285630dc4842fce7227536e124c30c15f24d9e612b76c1eaa281d693f1be7b3", 2),
}
"""Version of the format → head, and version of the protocol."""


@pytest.mark.parametrize("name", [f"{name}{end}" for name in FORMATS for end in ("", "-redacted")])
def test_a_golden_transcript_reads_as_ever(name: str) -> None:
    found = read_transcript(TRANSCRIPTS / f"{name}.transcript")
    assert (found.head.hex(), found.header.protocol) == FORMATS[name.removesuffix("-redacted")]
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
    assert transcript() == (TRANSCRIPTS / "format-1.1.transcript").read_bytes()


def test_redaction_as_documented_gives_the_golden_redacted_one() -> None:
    redacted = redact(transcript(), lambda number, name: False)
    assert redacted == (TRANSCRIPTS / "format-1.1-redacted.transcript").read_bytes()


@pytest.mark.parametrize(("name", "party"), sorted(GOLDEN))
def test_a_golden_transcript_of_every_role_reads_and_replays_as_ever(name: str, party: str) -> None:
    path = TRANSCRIPTS / name / f"{party}.transcript"
    role, records, head = GOLDEN[name, party]
    found = read_transcript(path)
    assert (found.header.role, found.header.party) == (role, party)
    assert (len(found.records), found.head.hex(), found.torn_bytes) == (records, head, 0)
    version = COMMITTED_VERSION if name == "committed" else PROTOCOL_VERSION
    assert found.header.protocol == version
    assert recorded_digest(found.records[0].event, version) == found.header.config_digest
    # The machine of today does to the last byte what the machine did that recorded it. Should it ever have to
    # do otherwise, the protocol has a new version, and this file is one that is only read.
    again = replayed(path)
    assert again.records == records
    assert again.finished


@pytest.mark.parametrize("name", ["session-1", *SESSIONS])
def test_golden_sessions_verify_by_themselves_and_together(name: str) -> None:
    found = verify_all(sorted((TRANSCRIPTS / name).iterdir()))
    assert found["ok"], found
    assert {each["signature"] for each in found["transcripts"]} == {"holds"}
    assert [pair["compared"] for pair in found["pairs"]] == [True] * 3


@pytest.mark.parametrize("party", sorted(EARLIER_HEADS))
def test_what_version_1_recorded_reads_as_ever_and_is_not_replayed(party: str) -> None:
    """Its φ was another function: a replay could only diverge somewhere."""
    path = EARLIER / f"{party}.transcript"
    role, records, head = EARLIER_HEADS[party]
    found = read_transcript(path)
    assert (found.header.role, found.header.party, found.header.protocol) == (role, party, 1)
    assert (len(found.records), found.head.hex(), found.torn_bytes) == (records, head, 0)
    with pytest.raises(DataError, match=r"version 1 of the protocol.*its feature map was another one"):
        replayed(path)


def test_a_transcript_that_names_another_version_than_its_session_does_not_verify(tmp_path: Path) -> None:
    there = read_transcript(SESSION / "owner-0.transcript")
    forged = MemoryJournal(there.header._replace(protocol=1))
    first = there.records[0]
    forged.append(first.now, Item(first.event.kind, first.event.public, first.event.private), ())
    forged.commit()
    (tmp_path / "forged").write_bytes(forged.image)
    (fault,) = verify(tmp_path / "forged").faults
    assert "belongs to another session than its header names" in fault.what


@pytest.mark.parametrize("name", SESSIONS)
def test_the_golden_session_is_that_of_its_maker(name: str) -> None:
    """Its kinds and peers, not its figures, whose last bits depend on the BLAS."""
    made = golden_images(name)
    assert sorted(made) == sorted(HEADS)
    for party, image in made.items():
        today = list(TranscriptReader(Path(party), image))
        there = read_transcript(TRANSCRIPTS / name / f"{party}.transcript").records
        assert [record.event.kind for record in today] == [record.event.kind for record in there]
        assert [[item.kind for item in record.effects] for record in today] == [
            [item.kind for item in record.effects] for record in there
        ]
