"""A curator that sends one owner another broadcast is caught, by its own file or by the owners'."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.wire.codec import Direction, decode_message
from hushbid.protocol.wire.messages import Broadcast
from hushbid.transcripts.verification.text import render_verification
from hushbid.transcripts.verification.whole_session import verify_all
from tests.support.forgeries import (
    TWO_FACED_ROUND,
    VICTIM,
    frame_in,
    recorded,
    records_of,
    rewritten,
    session_of,
    two_faced,
    with_frame,
    written,
)
from tests.support.transcripts import redact

OTHERS = ("owner-0", "owner-2")
EVERYONE = (OTHERS[0], VICTIM, OTHERS[1])
SESSION = session_of(owners=3)


def checked(paths: Sequence[Path]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(verify_all(paths), allow_nan=False))
    return found


def told(paths: Sequence[Path]) -> str:
    console = Console(file=io.StringIO(), width=300)
    render_verification(verify_all(paths), console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def body_in(image: bytes, directory: Path, peer: str) -> bytes:
    """The round's broadcast that a file has for a peer, or from it."""
    _, records = records_of(image, directory)
    for record in records:
        for frame in map(frame_in, record.items):
            if frame and (frame["message"], frame["peer"]) == ("broadcast", peer):
                message = decode_message(Direction.CURATOR_TO_OWNER, frame["body"])
                if isinstance(message, Broadcast) and message.round == TWO_FACED_ROUND:
                    return bytes(frame["body"])
    raise AssertionError("no such broadcast")


def denied(directory: Path) -> bytes:
    """The two-faced curator's file, rewritten to claim the same broadcast for all owners."""
    image = two_faced()[CURATOR]
    same = body_in(image, directory, OTHERS[0])

    def is_other(kind: str, frame: dict[str, Any]) -> bool:
        if (kind, frame["message"], frame["peer"]) != ("send", "broadcast", VICTIM):
            return False
        message = decode_message(Direction.CURATOR_TO_OWNER, frame["body"])
        return isinstance(message, Broadcast) and message.round == TWO_FACED_ROUND

    return rewritten(image, directory, partial(with_frame, wanted=is_other, body=same), session=SESSION)


def evidence(found: dict[str, Any]) -> list[set[tuple[str, tuple[str, ...]]]]:
    """For each broadcast of the one equivocation: who reports it, and who received it."""
    (equivocation,) = found["equivocations"]
    assert equivocation["round"] == TWO_FACED_ROUND
    return [
        {(Path(record["path"]).stem, tuple(record["owners"])) for record in broadcast["records"]}
        for broadcast in equivocation["broadcasts"]
    ]


def test_the_honest_curator_is_not_accused(tmp_path: Path) -> None:
    for parties in ((), (CURATOR,), ("owner-0", "owner-1"), ("owner-0", CURATOR)):
        found = checked(written(recorded(owners=3), tmp_path, *parties))
        assert (found["ok"], found["equivocations"]) == (True, [])


def test_a_two_faced_curators_own_file_shows_it(tmp_path: Path) -> None:
    found = checked(written(two_faced(), tmp_path, CURATOR))
    assert not found["ok"]
    assert found["transcripts"][0]["ok"], "its chain and signatures hold"
    told_to = evidence(found)
    assert {(CURATOR, OTHERS)} in told_to
    assert {(CURATOR, (VICTIM,))} in told_to


@pytest.mark.parametrize("with_consumer", [False, True])
def test_owners_files_show_it_without_the_curators(tmp_path: Path, with_consumer: bool) -> None:
    more = (CONSUMER,) if with_consumer else ()
    paths = written(two_faced(), tmp_path, "owner-0", VICTIM, *more)
    found = checked(paths)
    assert (found["ok"], found["pairs"]) == (False, [])
    assert {(OTHERS[0], ())} in evidence(found)
    assert {(VICTIM, ())} in evidence(found)
    assert checked(written(two_faced(), tmp_path, *OTHERS))["ok"], "those two had the same"


def test_a_curator_that_denies_it_is_contradicted_by_the_owner(tmp_path: Path) -> None:
    images = {**two_faced(), CURATOR: denied(tmp_path)}
    assert checked(written(images, tmp_path, CURATOR))["ok"], "alone it cannot be told"
    paths = written(images, tmp_path)
    found = checked(paths)
    pairs = {pair["party"]: pair for pair in found["pairs"]}
    whats = [each["what"] for each in pairs[VICTIM]["disagreements"]]
    assert whats == ["other-head", "other-bytes", "other-bytes"]
    whats = [(each["what"], each["message"]) for each in pairs[OTHERS[0]]["disagreements"]]
    assert whats == [("other-head", ""), ("other-bytes", "close")], "it signed what it made up"
    assert {(CURATOR, (*OTHERS[:1], VICTIM, *OTHERS[1:])), *((owner, ()) for owner in OTHERS)} in evidence(
        found
    )
    assert {(VICTIM, ())} in evidence(found)


def test_two_transcripts_of_one_curator_are_told_apart_with_the_owners_files(tmp_path: Path) -> None:
    """The true file agrees with all owners, the false one contradicts all."""
    paths = written(two_faced(), tmp_path)
    claimed = tmp_path / "claimed.transcript"
    claimed.write_bytes(denied(tmp_path))
    found = checked([*paths, claimed])
    assert not found["ok"]
    true = str(tmp_path / f"{CURATOR}.transcript")
    (related,) = found["versions"]
    assert (related["party"], related["ok"], related["relation"]) == (CURATOR, False, "different")
    assert set(related["paths"]) == {true, str(claimed)}
    assert related["record"] == 0, "every record has salts of its own"
    sides = {(pair["curator"], pair["party"]): pair["ok"] for pair in found["pairs"]}
    assert len(sides) == 8
    assert {ok for (path, _), ok in sides.items() if path == true} == {True}
    assert {ok for (path, _), ok in sides.items() if path == str(claimed)} == {False}
    one, other = sorted(evidence(found), key=len)
    assert one == {(CURATOR, (VICTIM,)), (VICTIM, ())}
    assert other == {(CURATOR, OTHERS), ("claimed", EVERYONE), *((owner, ()) for owner in OTHERS)}
    text = told([*paths, claimed])
    assert f"Equivocation: round {TWO_FACED_ROUND} had 2 broadcasts" in text
    assert f"Two transcripts of {CURATOR}: they part at record 0" in text
    assert f"{true} agrees with {tmp_path / CONSUMER}.transcript" in text
    assert f"{claimed} contradicts {tmp_path / CONSUMER}.transcript" in text


def test_both_records_are_named_and_no_weight_is_shown(tmp_path: Path) -> None:
    paths = written(two_faced(), tmp_path, CURATOR, VICTIM, OTHERS[0])
    found = checked(paths)
    for broadcast in found["equivocations"][0]["broadcasts"]:
        for evidence in broadcast["records"]:
            _, records = records_of(Path(evidence["path"]).read_bytes(), tmp_path)
            frames = [frame for frame in map(frame_in, records[evidence["record"]].items) if frame]
            assert any(frame["message"] == "broadcast" for frame in frames)
    body = body_in(two_faced()[VICTIM], tmp_path, CURATOR)
    message = decode_message(Direction.CURATOR_TO_OWNER, body)
    assert isinstance(message, Broadcast)
    text = json.dumps(found) + told(paths)
    assert message.weights.tobytes().hex() not in text
    assert body.hex()[-64:] not in text
    assert not any(str(weight) in text for weight in message.weights.tolist() if abs(weight) > 99_999)


def test_copies_of_one_transcript_are_no_two_stories(tmp_path: Path) -> None:
    image = recorded()[CURATOR]
    redacted, early = tmp_path / "redacted", tmp_path / "early"
    (whole,) = written(recorded(), tmp_path, CURATOR)
    redacted.write_bytes(redact(image, lambda number, name: False))
    _, records = records_of(image, tmp_path)
    early.write_bytes(image[: image.index(records[4].digest) + 32])
    found = checked([whole, redacted, early])
    assert found["ok"]
    assert [
        (each["relation"], each["record"], Path(each["paths"][0]).name) for each in found["versions"]
    ] == [
        ("same", None, whole.name),
        ("beginning", 5, "early"),
        ("beginning", 5, "early"),
    ]
    text = told([whole, redacted, early])
    assert f"{whole} and {redacted} are one transcript" in text
    assert f"{early} is the beginning of {whole}" in text
