"""A journal that is continued: a torn tail is cut, damage is refused, and one process has it at a time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hushbid.protocol.errors import ConfigError, DataError, TranscriptDamaged
from hushbid.protocol.runtime import party
from hushbid.protocol.runtime.party import open_journal, transcript_path
from hushbid.protocol.session.session import Session, open_session
from hushbid.protocol.transcript.journal import Journal, MemoryJournal
from hushbid.protocol.wire.values import Item
from tests.support.session_files import load
from tests.support.transcripts import HEADER, STEPS, read_transcript, record_spans, transcript


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "owner.transcript"
    path.write_bytes(transcript())
    return path


def reopen(path: Path) -> Journal:
    return Journal.reopen(path, durability="flush")


@pytest.mark.parametrize("steps", [0, 1, len(STEPS)])
def test_what_is_appended_follows_what_was_there(path: Path, steps: int) -> None:
    path.write_bytes(transcript(STEPS[:steps]))
    before = read_transcript(path)
    journal = reopen(path)
    assert (journal.count, journal.head, journal.cut) == (steps, before.head, 0)
    journal.append(9.0, Item("one more", {}, {}), ())
    journal.close()
    after = read_transcript(path)
    assert [record.event.kind for record in after.records[steps:]] == ["one more"]
    assert [record.digest for record in after.records[:steps]] == [r.digest for r in before.records]
    assert after.head == journal.head


def test_a_torn_tail_is_cut_wherever_it_was_torn(path: Path) -> None:
    image = transcript()
    start, end = list(record_spans(image))[-1]
    for length in range(start + 1, end):
        path.write_bytes(image[:length])
        journal = reopen(path)
        assert journal.cut == length - start
        assert journal.count == len(STEPS) - 1
        now, event, effects = STEPS[-1]
        journal.append(now, event, effects)
        journal.close()
        found = read_transcript(path)
        assert (len(found.records), found.torn_bytes) == (len(STEPS), 0)


def test_in_memory_it_is_the_same() -> None:
    image = transcript()
    journal = MemoryJournal.reopen(image[:-5])
    assert journal.count == len(STEPS) - 1
    assert journal.image == transcript(STEPS[:-1])
    now, event, effects = STEPS[-1]
    journal.append(now, event, effects)
    journal.commit()
    assert len(journal.image) == len(image)


def test_damage_is_refused_and_the_file_is_as_it_was(path: Path) -> None:
    image = bytearray(path.read_bytes())
    start, _ = list(record_spans(bytes(image)))[1]
    image[start + 20] ^= 1
    path.write_bytes(image)
    with pytest.raises(TranscriptDamaged):
        reopen(path)
    assert path.read_bytes() == image


def test_what_is_no_transcript_is_refused(path: Path) -> None:
    path.write_bytes(b"precious")
    with pytest.raises(DataError):
        reopen(path)
    assert path.read_bytes() == b"precious"


def test_a_file_that_is_not_there_is_refused(path: Path) -> None:
    path.unlink()
    with pytest.raises(ConfigError, match="cannot go on with the transcript"):
        reopen(path)
    assert not path.exists()


HOLDER = """
import sys
from pathlib import Path
from hushbid.protocol.transcript.journal import Journal
journal = Journal.reopen(Path(sys.argv[1]), durability="flush")
print("held", flush=True)
sys.stdin.read()
"""


def test_another_process_that_records_to_it_keeps_it(path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(ConfigError, match="another process records to this transcript") as caught:
            reopen(path)
        assert "Stop it first" in caught.value.advice
        holder.kill()
    reopen(path).close()  # with the process its lock is gone


def test_a_journal_that_was_just_begun_is_locked_too(tmp_path: Path) -> None:
    path = tmp_path / "new.transcript"
    with (
        Journal.create(path, HEADER, durability="flush"),
        pytest.raises(ConfigError, match="another process"),
    ):
        reopen(path)


# -- a party's own -----------------------------------------------------------------------------------


def session(**changes: Any) -> Session:
    return open_session(load(changes))


def opened(state: Path, of: Session | None = None, *, role: str = "owner", name: str = "alpha") -> Journal:
    return open_journal(of or session(), role=role, party=name, state=state, durability="flush")


def test_a_party_goes_on_with_its_own_transcript(tmp_path: Path) -> None:
    state = tmp_path / "made" / "if need be"
    with opened(state) as journal:
        journal.append(1.0, Item("a", {}, {}), ())
    with opened(state) as journal:
        assert journal.path == transcript_path(state, "alpha")
        assert journal.count == 1


def test_what_a_crash_tore_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with opened(tmp_path) as journal:
        journal.append(1.0, Item("a", {}, {}), ())
    path = journal.path
    path.write_bytes(path.read_bytes()[:-3])
    with caplog.at_level("WARNING", "hushbid"), opened(tmp_path) as journal:
        assert journal.count == 0
    assert "its last record was cut off by a crash" in caplog.text


@pytest.mark.parametrize(
    ("of", "role"),
    [({"session.nonce": "another"}, "owner"), ({"session.points": 3}, "owner"), ({}, "consumer")],
)
def test_the_transcript_of_another_session_or_role_is_refused(
    tmp_path: Path, of: dict[str, Any], role: str
) -> None:
    opened(tmp_path).close()
    before = transcript_path(tmp_path, "alpha").read_bytes()
    with pytest.raises(
        ConfigError, match="of another session is there already, or of another party"
    ) as caught:
        opened(tmp_path, open_session(load(of)), role=role)
    assert "another state directory" in caught.value.advice
    assert transcript_path(tmp_path, "alpha").read_bytes() == before


def test_a_transcript_that_was_renamed_to_this_partys_is_refused(tmp_path: Path) -> None:
    opened(tmp_path, name="beta").close()
    transcript_path(tmp_path, "beta").rename(transcript_path(tmp_path, "alpha"))
    with pytest.raises(ConfigError, match="or of another party"):
        opened(tmp_path)


def test_the_transcript_of_another_version_of_hushbid_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(party, "__version__", "0.0.9")
        opened(tmp_path).close()
    with pytest.raises(ConfigError, match=r"hushbid 0\.0\.9 recorded it") as caught:
        opened(tmp_path)
    assert "Finish the session with hushbid 0.0.9" in caught.value.advice


def test_another_environment_is_told_and_no_reason_to_refuse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(party, "environment_fingerprint", lambda: {"python": "another"})
        opened(tmp_path).close()
    with caplog.at_level("WARNING", "hushbid"):
        opened(tmp_path).close()
    assert "recorded with another numpy, BLAS or processor" in caplog.text


def test_the_environment_of_this_machine_is_its_own(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("WARNING", "hushbid"):
        opened(tmp_path).close()
        opened(tmp_path).close()
    assert caplog.text == ""
