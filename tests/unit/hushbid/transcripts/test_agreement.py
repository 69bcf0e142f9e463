"""`transcript verify` of several parties' files: each received what the other sent, and nothing else."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from hushbid.cli.app import main
from hushbid.evidence.sweep.crashes import crashes_at
from hushbid.evidence.sweep.small_session import run, small_session
from hushbid.protocol.crypto.sealing import head_statement, sign
from hushbid.protocol.errors import DataError
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.transcript.record import Record, RecordedItem
from hushbid.protocol.wire.codec import Direction, decode_message, encode_message
from hushbid.protocol.wire.messages import Bid, Close, fixed
from hushbid.transcripts.verification.text import render_verification
from hushbid.transcripts.verification.whole_session import verify_all
from tests.support.forgeries import (
    frame_in,
    recorded,
    records_of,
    rewritten,
    session_of,
    stopped,
    with_frame,
    written,
)
from tests.support.transcripts import record_spans, redact

OWNER = "owner-0"
SESSION = session_of()
FRAMES = 30
"""Fewer than a whole session has."""
TICK = RecordedItem("tick", {}, {}, {})
"""In the place of an event that is to be forgotten."""


def checked(paths: Sequence[Path]) -> dict[str, Any]:
    """The findings about these files, as JSON."""
    found: dict[str, Any] = json.loads(json.dumps(verify_all(paths), allow_nan=False))
    return found


def pair_of(found: dict[str, Any], party: str) -> dict[str, Any]:
    (pair,) = [pair for pair in found["pairs"] if pair["party"] == party]
    assert isinstance(pair, dict)
    return pair


def what(pair: dict[str, Any]) -> list[tuple[str, str, str]]:
    """The disagreements: what, whose frame or head, of which kind.

    Messages with a head that a forger signed anew are left out: they differ by that alone.
    """
    found = [(each["what"], each["sender"], each["message"]) for each in pair["disagreements"]]
    return [each for each in found if each[2] not in ("close", "farewell")]


def told(paths: Sequence[Path]) -> str:
    """The findings for people."""
    console = Console(file=io.StringIO(), width=300)
    render_verification(verify_all(paths), console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def forged(directory: Path, party: str, change: Callable[[Record], Record | None]) -> dict[str, Any]:
    """The findings about a file that a party rewrote with its own key."""
    images = dict(recorded())
    images[party] = rewritten(images[party], directory, change, session=SESSION)
    found = checked(written(images, directory))
    assert not found["ok"]
    return found


def has(item: RecordedItem, kind: str, message: str, sequence: int | None = None, peer: str = "") -> bool:
    frame = frame_in(item)
    return (
        item.kind == kind
        and frame["message"] == message
        and sequence in (None, frame["sequence"])
        and peer in ("", frame["peer"])
    )


# -- files that agree --------------------------------------------------------------------------------------


@pytest.mark.parametrize("away", ["", OWNER])
@pytest.mark.parametrize("rule", ["ask-all", "blind", "sealed", "winner-only"])
def test_honest_parties_agree_under_every_rule_and_after_a_lost_connection(
    tmp_path: Path, rule: str, away: str
) -> None:
    images = recorded(rule, away=away)
    paths = written(images, tmp_path)
    found = checked(paths)
    assert found["ok"]
    assert [pair["party"] for pair in found["pairs"]] == [CONSUMER, OWNER, "owner-1"]
    for pair in found["pairs"]:
        assert (pair["ok"], pair["compared"], pair["count"], pair["under_way"]) == (True, True, 0, 0)
        assert pair["frames"] >= (5 if pair["party"] == CONSUMER else 8)
    assert (found["equivocations"], found["versions"], found["missing"]) == ([], [], [])
    assert f"{CURATOR} and {OWNER} agree" in told(paths)
    if away:
        _, records = records_of(images[CURATOR], tmp_path)
        sent = [frame for record in records for frame in map(frame_in, record.effects) if frame]
        numbers = [frame["sequence"] for frame in sent if frame["peer"] == OWNER and frame["sequence"]]
        # A blind curator has a round's weight only when the round has begun, and its owner is away by then.
        assert len(numbers) > len(set(numbers)) or rule == "blind", "a frame was sent twice"


@pytest.mark.parametrize("frames", range(1, FRAMES, 3))
def test_what_is_under_way_when_all_stop_is_no_disagreement(tmp_path: Path, frames: int) -> None:
    found = checked(written(stopped(frames), tmp_path))
    assert found["ok"]
    assert all(pair["ok"] for pair in found["pairs"])
    assert all(each["signature"] in ("absent", "holds") for each in found["transcripts"])


def test_frames_under_way_are_counted(tmp_path: Path) -> None:
    found = [checked(written(stopped(frames), tmp_path)) for frames in (16, 17)]
    assert any(pair["under_way"] for each in found for pair in each["pairs"])
    assert "under way" in "".join(told(written(stopped(frames), tmp_path)) for frames in (16, 17))


def test_a_torn_file_still_agrees(tmp_path: Path) -> None:
    images = dict(stopped(17))
    images[OWNER] += b"torn"
    found = checked(written(images, tmp_path))
    assert found["ok"]
    assert [each["torn_bytes"] for each in found["transcripts"] if each["party"] == OWNER] == [4]


# -- files that do not -------------------------------------------------------------------------------------


def test_a_frame_that_was_received_and_never_sent_is_told(tmp_path: Path) -> None:
    def without_bid(record: Record) -> Record:
        effects = tuple(each for each in record.effects if not has(each, "send", "bid", 2))
        return record._replace(effects=effects)

    found = forged(tmp_path, OWNER, without_bid)
    pair = pair_of(found, OWNER)
    assert what(pair) == [("other-head", OWNER, ""), ("never-sent", OWNER, "bid")]
    told_of = pair["disagreements"][1]
    assert (told_of["sequence"], told_of["sent"]) == (2, None)
    _, records = records_of(recorded()[CURATOR], tmp_path)
    record = records[told_of["received"]["record"]]
    assert has(record.event, "received", "bid", 2, OWNER), "the record that is named has the frame"
    assert pair_of(found, "owner-1")["ok"], "with the others it agrees"
    assert not next(each for each in found["transcripts"] if each["party"] == OWNER)["ok"], "a gap in its own"


def test_a_frame_that_was_dropped_in_the_middle_is_told(tmp_path: Path) -> None:
    def forgotten(record: Record) -> Record:
        dropped = frame_in(record.event) and has(record.event, "received", "broadcast", 2)
        return record._replace(event=TICK) if dropped else record

    pair = pair_of(forged(tmp_path, OWNER, forgotten), OWNER)
    assert ("never-received", CURATOR, "broadcast") in what(pair)
    dropped = next(each for each in pair["disagreements"] if each["what"] == "never-received")
    assert (dropped["sequence"], dropped["received"]) == (2, None)
    assert dropped["sent"]["path"].endswith("curator.transcript")


@pytest.mark.parametrize("side", [OWNER, CURATOR])
def test_other_bytes_under_one_number_are_told_with_both_records(tmp_path: Path, side: str) -> None:
    kind, peer = ("send", CURATOR) if side == OWNER else ("received", OWNER)

    def other_score(frame: dict[str, Any]) -> bytes:
        bid = decode_message(Direction.OWNER_TO_CURATOR, frame["body"])
        return encode_message(bid.model_copy(update={"score": fixed(7)}))

    def change(record: Record) -> Record:
        return with_frame(
            record,
            lambda which, frame: (
                (which, frame["message"], frame["sequence"], frame["peer"]) == (kind, "bid", 2, peer)
            ),
            body=other_score,
        )

    found = forged(tmp_path, side, change)
    pair = pair_of(found, OWNER)
    assert what(pair) == [("other-head", side, ""), ("other-bytes", OWNER, "bid")]
    bid = next(each for each in pair["disagreements"] if each["message"] == "bid")
    assert bid["sequence"] == 2
    assert bid["sent"]["digest"] != bid["received"]["digest"]
    for place, party, other in ((bid["sent"], OWNER, "send"), (bid["received"], CURATOR, "received")):
        path = tmp_path / f"{party}.transcript"
        assert place["path"] == str(path)
        _, records = records_of(path.read_bytes(), tmp_path)
        items = [item for item in records[place["record"]].items if frame_in(item)]
        assert any(has(item, other, "bid", 2) for item in items)
    assert all(each["ok"] for each in found["transcripts"]), "each file holds by itself"
    assert f"frame 2 (bid) of {OWNER} was received with other bytes" in told(sorted(tmp_path.iterdir()))


def test_a_sealed_bid_is_compared_by_what_is_kept_of_it_too(tmp_path: Path) -> None:
    """A forger that keeps the digest of the original body, and changes the score beside it, is caught."""
    session = session_of("sealed")
    images = dict(recorded("sealed"))

    def other_score(frame: dict[str, Any]) -> bytes:
        assert len(frame["digest"]) == 32
        bid = decode_message(Direction.OWNER_TO_CURATOR, frame["body"])
        assert isinstance(bid, Bid)
        return encode_message(bid.model_copy(update={"score": fixed(7)}))

    def change(record: Record) -> Record:
        return with_frame(
            record,
            lambda kind, frame: (kind, frame["message"], frame["peer"]) == ("received", "bid", OWNER),
            body=other_score,
        )

    images[CURATOR] = rewritten(images[CURATOR], tmp_path, change, session=session)
    found = checked(written(images, tmp_path))
    assert ("other-bytes", OWNER, "bid") in what(pair_of(found, OWNER))
    assert what(pair_of(found, "owner-1")) == [("other-head", CURATOR, "")]


def test_a_message_that_makes_a_link_is_compared_too(tmp_path: Path) -> None:
    def change(record: Record) -> Record:
        return with_frame(record, lambda kind, frame: frame["message"] == "welcome", body=b"\x80")

    pair = pair_of(forged(tmp_path, CONSUMER, change), CONSUMER)
    assert what(pair) == [("other-head", CONSUMER, ""), ("never-sent", CURATOR, "welcome")]
    assert pair["disagreements"][1]["sequence"] == 0


def test_what_a_party_acknowledged_it_had_received(tmp_path: Path) -> None:
    """An owner that stops cannot deny the last broadcast that it acknowledged."""
    for frames in range(8, FRAMES):
        images = dict(stopped(frames))
        _, records = records_of(images[OWNER], tmp_path)
        _, curators = records_of(images[CURATOR], tmp_path)
        last = records[-1]
        sequence = frame_in(last.event).get("sequence", 0)
        if frame_in(last.event).get("message") != "broadcast":
            continue
        if any(
            frame["peer"] == OWNER and frame["acknowledged"] >= sequence
            for frame in (frame_in(record.event) for record in curators)
            if frame
        ):
            break
    else:
        raise AssertionError("no moment shows it")

    def taken_back(record: Record) -> Record:
        if record.number != last.number:
            return record
        record = with_frame(record, lambda kind, frame: kind == "send", acknowledged=sequence - 1)
        return record._replace(event=TICK)

    honest = checked(written(images, tmp_path))
    assert honest["ok"]
    images[OWNER] = rewritten(images[OWNER], tmp_path, taken_back, session=SESSION)
    found = checked(written(images, tmp_path))
    assert all(each["ok"] for each in found["transcripts"])
    assert what(pair_of(found, OWNER)) == [("acknowledged", CURATOR, "broadcast")]


@pytest.mark.parametrize(("party", "records"), [(CURATOR, 4), (OWNER, 1)])
def test_whole_records_that_were_cut_off_a_file_show_in_the_others(
    tmp_path: Path, party: str, records: int
) -> None:
    images = dict(recorded())
    start, _ = list(record_spans(images[party]))[-records]
    images[party] = images[party][:start]
    found = checked(written({party: images[party]}, tmp_path))
    assert found["ok"], "the file alone cannot show it"
    found = checked(written(images, tmp_path))
    assert not found["ok"]
    assert found["pairs"]


# -- signed heads ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("party", [CURATOR, CONSUMER, OWNER])
@pytest.mark.parametrize("copy", ["whole", "redacted"])
def test_a_transcript_that_was_rewritten_after_the_end_is_not_the_one_that_was_signed(
    tmp_path: Path, party: str, copy: str
) -> None:
    """Even if nothing in it concerns the others, and if its private fields were removed since."""
    images = dict(recorded())

    def change(record: Record) -> Record:
        return record._replace(now=record.now + 0.5)

    images[party] = rewritten(images[party], tmp_path, change, session=SESSION)
    if copy == "redacted":
        images[party] = redact(images[party], lambda number, name: False)
    found = checked(written(images, tmp_path))
    assert all(each["ok"] for each in found["transcripts"])
    concerned = [pair for pair in found["pairs"] if party in (CURATOR, pair["party"])]
    for pair in concerned:
        assert (pair["ok"], what(pair)) == (False, [("other-head", party, "")])
        held = pair["disagreements"][0]["received"]
        assert held["path"].endswith(f"{pair['party'] if party == CURATOR else CURATOR}.transcript")
    assert all(pair["ok"] for pair in found["pairs"] if pair not in concerned)
    assert f"the head of {party} is signed, and not that of the file" in told(written(images, tmp_path))


def told_anew(peer: str, **changes: Any) -> Callable[[Record], Record]:
    """The curator's close to a peer, as sent or received, with other content."""

    def body(frame: dict[str, Any]) -> bytes:
        close = decode_message(Direction.CURATOR_TO_OWNER, frame["body"])
        assert isinstance(close, Close)
        close = close.model_copy(update=changes)
        key = SESSION.simulated_identity(CURATOR).signing
        signature = sign(head_statement(SESSION.identifier, CURATOR, close.head), key)
        return encode_message(close.model_copy(update={"signature": signature}))

    return lambda record: with_frame(
        record,
        lambda _kind, frame: frame["message"] == "close" and frame["peer"] in (peer, CURATOR),
        body=body,
    )


@pytest.mark.parametrize(
    ("changes", "several"), [({"head": b"\1" * 32}, "heads"), ({"outcome": "abandoned"}, "outcomes")]
)
def test_owners_that_were_told_of_two_ends_show_it_without_the_curators_file(
    tmp_path: Path, changes: dict[str, Any], several: str
) -> None:
    images = dict(recorded())
    images[OWNER] = rewritten(images[OWNER], tmp_path, told_anew(OWNER, **changes), session=SESSION)
    paths = written(images, tmp_path, OWNER, "owner-1")
    found = checked(paths)
    assert [each["ok"] for each in found["transcripts"]] == [True, True]
    assert (found["ok"], found["pairs"], found["equivocations"]) == (False, [], [])
    (heads,) = found["heads"]
    assert heads["party"] == CURATOR
    places = {record["path"]: record["record"] for each in heads["heads"] for record in each["records"]}
    assert set(places) == set(map(str, paths))
    for path, record in places.items():
        _, records = records_of(Path(path).read_bytes(), tmp_path)
        assert has(records[record].event, "received", "close")
    assert f"{CURATOR} told of several {several}" in told(paths)
    assert checked(written(recorded(), tmp_path, OWNER, "owner-1"))["heads"] == []


def test_a_curator_that_told_everybody_of_an_earlier_head_is_caught_by_its_file(tmp_path: Path) -> None:
    """It could continue from there as it likes: a head within the chain is not enough."""
    _, records = records_of(recorded()[CURATOR], tmp_path)
    stale = told_anew(OWNER, head=records[2].digest)
    images = {}
    for party in (CURATOR, OWNER):
        images[party] = rewritten(recorded()[party], tmp_path, lambda record: record, session=SESSION)
        assert checked(written(images, tmp_path, party))["ok"], "the same forger, without the earlier head"
        images[party] = rewritten(images[party], tmp_path, stale)
    found = checked(written(images, tmp_path, CURATOR))
    assert not found["ok"]
    assert "the head in the close is not the one" in found["transcripts"][0]["error"]
    assert found["transcripts"][0]["signature"] == "holds"
    paths = written({**recorded(), OWNER: images[OWNER]}, tmp_path, CURATOR, OWNER)
    found = checked(paths)
    assert ("other-head", CURATOR, "") in what(pair_of(found, OWNER)), "though it is one of the chain"
    assert CURATOR in [each["party"] for each in found["heads"]]


def test_a_signature_that_fails_is_no_evidence_against_who_should_have_signed(tmp_path: Path) -> None:
    key = SESSION.simulated_identity(OWNER).signing
    signature = sign(head_statement(SESSION.identifier, CURATOR, bytes(32)), key)
    body = encode_message(Close(outcome="complete", head=bytes(32), signature=signature))
    images = dict(recorded())
    images[OWNER] = rewritten(
        images[OWNER],
        tmp_path,
        lambda record: with_frame(record, lambda _kind, frame: frame["message"] == "close", body=body),
        session=SESSION,
    )
    found = checked(written(images, tmp_path, OWNER, "owner-1"))
    assert [each["ok"] for each in found["transcripts"]] == [False, True]
    assert found["heads"] == []


@pytest.mark.parametrize("rule", ["ask-all", "blind", "sealed"])
def test_honest_parties_that_crash_while_closing_sign_once(tmp_path: Path, rule: str) -> None:
    session = small_session(rule, release="exact", rounds=2, owners=2)
    course = run(session)
    for party in (CURATOR, CONSUMER, OWNER):
        last = len(course.steps[party]) - 1
        for step in range(max(0, last - 3), last + 1):
            for crash in crashes_at(course, party, step):
                crashed = run(session, [crash])
                assert crashed.crashed == (crash,)
                assert checked(written(crashed.transcripts, tmp_path))["ok"], crash


# -- files that cannot be compared -------------------------------------------------------------------------


def test_a_redacted_file_is_checked_and_not_compared(tmp_path: Path) -> None:
    images = dict(recorded())
    images[OWNER] = redact(images[OWNER], lambda number, name: False)
    found = checked(written(images, tmp_path))
    assert found["ok"]
    pair = pair_of(found, OWNER)
    assert (pair["ok"], pair["compared"], pair["why"], pair["frames"]) == (None, False, "redacted", 0)
    assert pair_of(found, "owner-1")["ok"]
    assert f"{CURATOR} and {OWNER} not compared: redacted" in told(sorted(tmp_path.iterdir()))
    images[OWNER] = redact(recorded()[OWNER], lambda number, name: number != 3)
    assert pair_of(checked(written(images, tmp_path)), OWNER)["ok"] is None, "one frame is enough"


def test_parties_without_a_file_are_named(tmp_path: Path) -> None:
    paths = written(recorded(), tmp_path)
    for given, missing in (
        ([], []),
        ([CURATOR], [CONSUMER, OWNER, "owner-1"]),
        ([OWNER, "owner-1"], [CURATOR, CONSUMER]),
        ([CURATOR, CONSUMER, OWNER, "owner-1"], []),
    ):
        files = [path for path in paths if path.stem in given]
        found = checked(files)
        assert (found["ok"], found["missing"]) == (True, missing)
        if missing:
            assert f"No files of {', '.join(missing)}" in told(files)
        assert ("Only the curator shares frames" in told(files)) == (CURATOR in missing)
    assert checked(written(recorded(), tmp_path, OWNER, "owner-1"))["pairs"] == []
    paths[0].write_bytes(paths[0].read_bytes()[:-1] + b"x")
    assert checked(paths)["missing"] == [], "a damaged file is there"


def test_files_of_different_sessions_are_refused_with_what_differs(tmp_path: Path) -> None:
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    mine.mkdir()
    theirs.mkdir()
    (curator,) = written(recorded(), mine, CURATOR)
    for other, names in (
        (recorded(points=5), "session.points"),
        (recorded("winner-only"), "acquisition.rule"),
        (recorded(noise_seed=1), "seeds"),
    ):
        (owner,) = written(other, theirs, OWNER)
        with pytest.raises(DataError, match=names) as caught:
            verify_all([curator, owner])
        assert str(curator) in caught.value.what
        assert str(owner) in caught.value.what


# -- the command line --------------------------------------------------------------------------------------


@pytest.fixture
def hushbid(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Any:
    """`hushbid(*paths)` verifies them; returns exit code, stdout and stderr."""

    def run(*arguments: str | Path) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["hushbid", "transcript", "verify", *map(str, arguments)])
        with pytest.raises(SystemExit) as ending:
            main()
        captured = capfd.readouterr()
        assert isinstance(ending.value.code, int)
        return int(ending.value.code), captured.out, captured.err

    return run


def test_exit_codes_tell_agreement_from_contradiction_and_from_misuse(hushbid: Any, tmp_path: Path) -> None:
    paths = written(recorded(), tmp_path)
    code, out, _ = hushbid(*paths, "--json")
    assert code == 0
    assert json.loads(out)["ok"]
    assert set(json.loads(out)) == {
        "ok",
        "transcripts",
        "awards",
        "pairs",
        "equivocations",
        "heads",
        "versions",
        "missing",
    }
    assert hushbid(*paths)[0] == 0
    code, out, _ = hushbid(*paths, tmp_path / "none", "--json")
    assert (code, json.loads(out)["ok"]) == (4, False)
    other = written(recorded(points=5), tmp_path, "owner-1")
    code, out, err = hushbid(*paths[:3], *other, "--json")
    assert (code, json.loads(out)["error"]["kind"]) == (4, "DataError")
    assert "session.points" in err
    change = partial(Record._replace, now=1.0)
    images = {**recorded(), OWNER: rewritten(recorded()[OWNER], tmp_path, change, session=SESSION)}
    paths = written(images, tmp_path)
    code, out, _ = hushbid(*paths, "--json")
    assert (code, json.loads(out)["ok"]) == (1, False)
    assert hushbid(*paths, tmp_path / "none")[0] == 1, "a contradiction is worse than a wrong path"
    told_wrong = [line for line in hushbid(*paths)[1].splitlines() if "✗" in line]
    assert len(told_wrong) == 2
    assert f"{CURATOR} and {OWNER} disagree" in told_wrong[0]
    assert f"{OWNER} told of several heads" in told_wrong[1]
