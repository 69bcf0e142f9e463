"""`transcript verify` checks that owners commit before they see anything."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from hushbid.evidence.sweep.small_session import small_session
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.transcript.record import Record, RecordedItem
from hushbid.protocol.wire.codec import Direction, decode_message, encode_message
from hushbid.protocol.wire.messages import Commitment, Roots
from hushbid.transcripts.replay import replayed
from hushbid.transcripts.verification.account import account_of
from hushbid.transcripts.verification.whole_session import verify_all
from tests.support.forgeries import Recording, frame_in, rewritten, with_frame, written

OWNER, OTHER = "owner-0", "owner-1"
RULES = ("sealed", "tender", "blind")


@cache
def images_of(rule: str) -> dict[str, bytes]:
    session = small_session(rule, release="filtered-gaussian", rounds=3, owners=2, commits=True)
    return dict(Recording(session).run())


def faults(image: bytes, directory: Path) -> list[str]:
    path = directory / "read.transcript"
    path.write_bytes(image)
    return [fault.what for fault in account_of(path)[1].faults]


def forged(party: str, directory: Path, change: Any, rule: str = "sealed") -> list[str]:
    return faults(rewritten(images_of(rule)[party], directory, change), directory)


def without(message: str, owner: str = "") -> Any:
    """A record without frames of a message; of one owner, if named."""

    def unwanted(item: RecordedItem) -> bool:
        frame = frame_in(item)
        return frame.get("message") == message and owner in ("", frame["peer"])

    def change(record: Record) -> Record | None:
        kept = [each for each in record.items if not unwanted(each)]
        return record._replace(event=kept[0], effects=tuple(kept[1:])) if kept else None

    return change


def with_body(message: str, body: Any) -> Any:
    """A record in which frames of a message have another body."""

    def change(record: Record) -> Record:
        return with_frame(record, lambda _, frame: frame["message"] == message, body=body)

    return change


def other_roots(frame: dict[str, Any]) -> bytes:
    message = decode_message(Direction.CURATOR_TO_CONSUMER, frame["body"])
    assert isinstance(message, Roots)
    return encode_message(message.model_copy(update={"roots": message.roots[32:] + message.roots[:32]}))


def of_the_first_alone(frame: dict[str, Any]) -> bytes:
    """The roots without the second owner's."""
    message = decode_message(Direction.CURATOR_TO_CONSUMER, frame["body"])
    assert isinstance(message, Roots)
    parts = {"roots": message.roots[:32] + bytes(32), "signatures": message.signatures[:64] + bytes(64)}
    return encode_message(message.model_copy(update=parts))


def another_root(frame: dict[str, Any]) -> bytes:
    message = decode_message(Direction.OWNER_TO_CURATOR, frame["body"])
    assert isinstance(message, Commitment)
    return encode_message(message.model_copy(update={"root": bytes(32)}))


@pytest.mark.parametrize("rule", RULES)
def test_a_session_that_was_as_it_should_be_has_no_fault_and_replays(tmp_path: Path, rule: str) -> None:
    images = images_of(rule)
    found = verify_all(written(images, tmp_path))
    assert found["ok"], found
    for party, image in images.items():
        assert faults(image, tmp_path) == []
        replayed(Path(party), image=image)


def test_a_target_before_the_roots_is_told(tmp_path: Path) -> None:
    for party in (CURATOR, CONSUMER):
        found = forged(party, tmp_path, without("roots"))
        assert "a target left before the owners' rows were committed to" in found
    assert "a maps left before the owners' rows were committed to" in forged(
        CONSUMER, tmp_path, without("roots"), "blind"
    )


def test_a_subspace_target_before_the_roots_is_told(tmp_path: Path) -> None:
    session = small_session("sealed", release="subspace", rounds=2, owners=2, commits=True)
    for party, image in Recording(session).run().items():
        if party in (CURATOR, CONSUMER):
            found = faults(rewritten(image, tmp_path, without("roots")), tmp_path)
            assert "a subspace-target left before the owners' rows were committed to" in found


def test_roots_that_are_told_twice_are_told(tmp_path: Path) -> None:
    def twice(record: Record) -> Record:
        roots = [each for each in record.effects if frame_in(each).get("message") == "roots"]
        later = [
            each._replace(private={"frame": {**frame_in(each), "sequence": frame_in(each)["sequence"] + 1}})
            for each in roots
        ]
        return record._replace(effects=(*record.effects, *later))

    assert "the roots were announced a second time" in forged(CURATOR, tmp_path, twice)


def test_a_map_to_who_has_not_committed_is_told(tmp_path: Path) -> None:
    told = f"a map came to {OWNER} before its rows were committed to"
    assert told in forged(OWNER, tmp_path, without("commitment"))
    found = forged(CURATOR, tmp_path, with_body("roots", of_the_first_alone))
    assert f"a map came to {OTHER} before its rows were committed to" in found


def test_roots_that_are_not_what_owners_committed_to_are_told(tmp_path: Path) -> None:
    found = forged(CURATOR, tmp_path, without("commitment", OWNER))
    assert f"the root announced for {OWNER} is not what it committed to" in found
    for party in (CURATOR, CONSUMER):
        found = forged(party, tmp_path, with_body("roots", other_roots))
        assert f"the root announced for {OWNER} is not signed by it" in found


def test_a_commitment_that_its_owner_did_not_sign_is_told(tmp_path: Path) -> None:
    for party in (CURATOR, OWNER):
        found = forged(party, tmp_path, with_body("commitment", another_root))
        assert f"a commitment of {OWNER} is not signed by it" in found
