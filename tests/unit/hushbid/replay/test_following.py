"""The view of a running session equals that of redacted copies of its transcripts, read once."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from hushbid.protocol.errors import ConfigError
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.privacy.acquisition import asks
from hushbid.protocol.transcript.reader import Mark, TranscriptReader
from hushbid.protocol.transcript.record import Record
from hushbid.protocol.transcript.redaction import redact
from hushbid.replay import following
from hushbid.replay.facts import Facts
from hushbid.replay.following import Follower, left_out
from hushbid.replay.merging import facts_of
from tests.support.replay_sessions import recorded_with
from tests.support.transcripts import record_spans


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, bytes]:
    """The transcripts of a session, by party."""
    paths = recorded_with(tmp_path_factory.mktemp("sealed"), "sealed")
    return {party: path.read_bytes() for party, path in paths.items()}


def places(run: Path, images: Mapping[str, bytes]) -> Path:
    """The directory of a run with so much of each transcript; growth was appended."""
    for party, image in images.items():
        path = run / "parties" / party / "state" / f"{party}.transcript"
        path.parent.mkdir(parents=True, exist_ok=True)
        before = path.stat().st_size if path.exists() else 0
        with path.open("ab") as file:
            file.write(image[before:])
    return run


def of_redacted(run: Path, place: Path, *, without: frozenset[str] = frozenset()) -> Facts:
    """The facts of `hushbid replay` for redacted copies of a run's transcripts."""
    place.mkdir(exist_ok=True)
    copies = []
    for path in sorted(run.rglob("*.transcript")):
        if path.stem not in without:
            copies.append(place / path.name)
            with copies[-1].open("wb") as file:
                redact(path, file.write)
    return facts_of(copies)


@pytest.mark.parametrize("rule", ["blind", "logistic", "tender", "winner-only"])
def test_at_the_end_the_facts_are_those_of_redacted_copies(rule: str, tmp_path: Path) -> None:
    images = {party: path.read_bytes() for party, path in recorded_with(tmp_path, rule).items()}
    run = places(tmp_path / "run", images)
    owners = frozenset(images) - {CURATOR, CONSUMER}
    follower = Follower([run])
    assert follower.look()
    assert follower.facts is not None
    hidden = owners if asks(rule) else frozenset()
    assert follower.facts == of_redacted(run, tmp_path / "copies", without=hidden)
    assert set(follower.facts.copies) == set(images) - hidden
    assert follower.facts.chosen is None
    assert any("Owners' own transcripts" in line for line in left_out(follower.facts)) == asks(rule)


def test_what_grows_is_shown_as_far_as_whole_records_go(sealed: Mapping[str, bytes], tmp_path: Path) -> None:
    follower = Follower([tmp_path / "run"])
    assert not follower.look(), "nothing is there yet"
    counts = []
    ends = {party: [end for _, end in record_spans(image)] for party, image in sealed.items()}
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        grown = {
            # With the first bytes of the next record, where there is one.
            party: sealed[party][: ends[party][int(share * (len(ends[party]) - 1))] + 20]
            for party in sealed
        }
        run = places(tmp_path / "run", grown)
        assert follower.look()
        assert follower.facts is not None
        assert follower.facts == of_redacted(run, tmp_path / "copies")
        assert [copy.torn_bytes for copy in follower.facts.copies.values()] == [0] * len(sealed)
        counts.append(len(follower.facts.steps.round))
        assert not follower.look(), "nothing was written since"
    assert counts == sorted(set(counts)), "each look shows more"


def test_parties_come_one_by_one_and_what_is_no_record_yet_is_waited_for(
    sealed: Mapping[str, bytes], tmp_path: Path
) -> None:
    image = sealed[CURATOR]
    follower = Follower([tmp_path / "run", tmp_path / "nowhere"])
    start = next(record_spans(image))[0]
    places(tmp_path / "run", {CURATOR: b""})
    for size in (0, start - 40, start, start + 100):
        places(tmp_path / "run", {CURATOR: image[:size]})
        assert not follower.look()
        assert follower.facts is None
        ((path, why),) = follower.unread
        assert path.stem == CURATOR
        assert str(path) not in why
    places(tmp_path / "run", {CURATOR: image})
    assert follower.look()
    assert follower.facts is not None
    assert follower.unread == []
    assert set(follower.facts.copies) == {CURATOR}
    places(tmp_path / "run", {"owner-0": sealed["owner-0"]})
    assert follower.look()
    assert follower.facts is not None
    assert set(follower.facts.copies) == {CURATOR, "owner-0"}


def test_each_record_is_read_once_and_an_unchanged_file_not_at_all(
    sealed: Mapping[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    opened: list[Path] = []

    class Counting(TranscriptReader):
        def __init__(self, path: Path, *, after: Mark | None) -> None:
            opened.append(path)
            super().__init__(path, after=after)

        def __next__(self) -> Record:
            record = super().__next__()
            seen.append(record.number)
            return record

    monkeypatch.setattr(following, "TranscriptReader", Counting)
    image = sealed[CURATOR]
    ends = [end for _, end in record_spans(image)]
    follower = Follower([tmp_path / "run"])
    for end in ends:
        places(tmp_path / "run", {CURATOR: image[: end + 1]})
        assert follower.look()
        assert not follower.look()
    assert seen == list(range(len(ends)))
    assert len(opened) == len(ends)


def test_damage_is_told_and_what_holds_stays(sealed: Mapping[str, bytes], tmp_path: Path) -> None:
    image = bytearray(sealed[CURATOR])
    spans = list(record_spans(bytes(image)))
    image[spans[10][0] + 20] ^= 1
    run = places(tmp_path / "run", {CURATOR: bytes(image)})
    follower = Follower([run])
    assert follower.look()
    assert follower.facts is not None
    found = follower.facts.copies[CURATOR]
    assert found.records == 10
    assert found.stopped is not None
    assert found.stopped.startswith("The transcript: record 10 is damaged")
    assert str(tmp_path) not in found.stopped
    path = run / "parties" / CURATOR / "state" / f"{CURATOR}.transcript"
    path.unlink()
    assert not follower.look(), "what is known of it stands"
    places(run, {CURATOR: sealed[CURATOR]})
    assert follower.look(), "put back from a copy"
    assert follower.facts.copies[CURATOR].stopped is None
    assert follower.facts.copies[CURATOR].records == len(spans)


def test_other_sessions_and_parties_that_come_twice_are_refused(
    sealed: Mapping[str, bytes], tmp_path: Path
) -> None:
    run = places(tmp_path / "run", {CURATOR: sealed[CURATOR]})
    twice = places(tmp_path / "twice", {CURATOR: sealed[CURATOR]})
    with pytest.raises(ConfigError, match="are both of curator"):
        Follower([run, twice]).look()
    (tmp_path / "other").mkdir()
    other = recorded_with(tmp_path / "other", "tender")[CONSUMER].read_bytes()
    with pytest.raises(ConfigError, match="is of another session"):
        Follower([run, places(tmp_path / "run-2", {CONSUMER: other})]).look()


def test_nothing_is_written(sealed: Mapping[str, bytes], tmp_path: Path) -> None:
    run = places(tmp_path / "run", sealed)

    def there() -> dict[Path, tuple[int, int, int]]:
        found = {path: path.stat() for path in tmp_path.rglob("*")}
        return {path: (each.st_mode, each.st_size, each.st_mtime_ns) for path, each in found.items()}

    before = there()
    assert Follower([run]).look()
    assert there() == before


def test_a_session_that_begins_in_place_of_another_is_followed(
    sealed: Mapping[str, bytes], tmp_path: Path
) -> None:
    run = places(tmp_path / "run", sealed)
    follower = Follower([run])
    assert follower.look()
    other = recorded_with(tmp_path, "tender")[CURATOR].read_bytes()
    shutil.rmtree(run)
    assert not follower.look(), "a directory may be away for a moment"
    assert follower.facts is not None
    assert follower.facts.rule == "sealed"
    places(run, {CURATOR: other})
    assert follower.look()
    assert follower.facts.rule == "tender"
    assert set(follower.facts.copies) == {CURATOR}
