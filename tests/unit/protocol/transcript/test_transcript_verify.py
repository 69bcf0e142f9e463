"""`transcript verify` of single files: chains, signed heads, and impossible frames."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from hushbid.protocol.crypto.identity import Identity
from hushbid.protocol.crypto.sealing import head_statement, sign
from hushbid.protocol.machine.machine import HeadSigned
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.session.session import Session, open_session
from hushbid.protocol.transcript.journal import MemoryJournal
from hushbid.protocol.transcript.record import Record, RecordedItem
from hushbid.protocol.transcript.session_file import started
from hushbid.protocol.transcript.verify import Signature, verify
from hushbid.protocol.wire.codec import Direction, decode_message, encode_message
from hushbid.protocol.wire.messages import Ask, Close, Farewell, fixed
from hushbid.protocol.wire.values import Item
from hushbid.transcripts.verification.text import render_verification
from hushbid.transcripts.verification.whole_session import verify_all
from tests.support import session_files
from tests.support.forgeries import (
    frame_in,
    header_of,
    recorded,
    records_of,
    rewritten,
    session_of,
    with_frame,
)
from tests.support.transcripts import STEPS, header_end, record_spans, redact, transcript

OWNER = "owner-0"
SESSION = session_of()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "owner.transcript"
    path.write_bytes(transcript())
    return path


def checked(path: Path, image: bytes) -> dict[str, Any]:
    """The findings about one file."""
    path.write_bytes(image)
    found = verify_all([path])
    assert found["ok"] == found["transcripts"][0]["ok"]
    (described,) = found["transcripts"]
    return dict(described)


def record_of(image: bytes, directory: Path, wanted: Callable[[RecordedItem], bool]) -> int:
    """The number of the first record with such an item."""
    _, records = records_of(image, directory)
    return next(record.number for record in records if any(map(wanted, record.items)))


def is_signed(item: RecordedItem) -> bool:
    return item.kind == HeadSigned.KIND


def received(message: str, peer: str) -> Callable[[RecordedItem], bool]:
    def wanted(item: RecordedItem) -> bool:
        frame = frame_in(item)
        return item.kind == "received" and (frame.get("message"), frame.get("peer")) == (message, peer)

    return wanted


def with_signed(record: Record, **public: Any) -> Record:
    """The record with other fields in its own signed head, if it has one."""
    effects = tuple(
        effect._replace(public={**effect.public, **public}) if is_signed(effect) else effect
        for effect in record.effects
    )
    return record._replace(effects=effects)


# -- chains ----------------------------------------------------------------------------------------------


def test_a_bad_file_does_not_keep_others_from_being_verified(path: Path) -> None:
    bad, none = path.with_name("bad"), path.with_name("none")
    image = bytearray(transcript())
    image[header_end(transcript()) + 30] ^= 1
    bad.write_bytes(image)
    found = verify_all([bad, none, path])
    files = found["transcripts"]
    assert not found["ok"]
    assert [entry["ok"] for entry in files] == [False, False, True]
    assert [entry.get("record") for entry in files[:2]] == [0, None]
    assert (files[2]["records"], files[2]["party"], files[2]["torn_bytes"]) == (len(STEPS), "hospital-a", 0)
    assert json.loads(json.dumps(found)) == found


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, 8))])
def test_no_flipped_byte_of_a_transcript_passes(path: Path, part: int) -> None:
    """Another bit from byte to byte; the slow ones flip every bit.

    The quick one flips every byte of the header and of the first and last 60 of a record, where lengths and
    hashes are, and every eighth of those between, which are hashed and nothing else.
    """
    image = recorded(points=1, owners=1)[OWNER]
    assert len(image) < 8_000
    header = dict.fromkeys(range(header_end(image)), -1)
    spans = list(record_spans(image))
    places = header | {at: number for number, span in enumerate(spans) for at in range(*span)}
    assert sorted(places) == list(range(len(image)))
    for at, record in places.items():
        if part == 0 and at % 8 and record >= 0 and spans[record][0] + 60 <= at < spans[record][1] - 60:
            continue
        flipped = bytearray(image)
        flipped[at] ^= 1 << (at // 2 + part) % 8
        found = checked(path, bytes(flipped))
        assert (at, found["ok"], found["record"]) == (at, False, record)
        assert str(path) in found["error"]


def test_verifications_are_told_to_people(path: Path) -> None:
    bad = path.with_name("bad")
    bad.write_bytes(transcript()[:-40] + b"x" * 40)
    path.write_bytes(redact(transcript(), lambda number, name: False) + b"torn")
    text = told([path, bad])
    assert "3 records hold" in text
    assert "6 of 6 private fields redacted" in text
    assert "4 bytes are left of it" in text
    assert "record 2 is damaged" in text


def told(paths: list[Path]) -> str:
    """The findings for people."""
    console = Console(file=io.StringIO(), width=300)
    render_verification(verify_all(paths), console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


# -- signatures ------------------------------------------------------------------------------------------


def heads(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(signed["party"], signed["signature"]) for signed in found["signed_heads"]]


def test_every_party_signs_its_head_and_has_those_of_its_peers(path: Path) -> None:
    images = recorded()
    for party in (CONSUMER, OWNER, "owner-1"):
        found = checked(path, images[party])
        assert (found["ok"], found["signature"]) == (True, "holds")
        assert heads(found) == [(CURATOR, "holds"), (party, "holds")]
    found = checked(path, images[CURATOR])
    assert (found["ok"], found["signature"]) == (True, "holds")
    assert heads(found)[0] == (CURATOR, "holds")
    assert sorted(heads(found)[1:]) == [(CONSUMER, "holds"), (OWNER, "holds"), ("owner-1", "holds")]
    assert "holds" not in told([path])
    assert ", signed" in told([path])


def test_a_session_that_has_not_ended_is_not_signed_and_no_error(path: Path) -> None:
    image = recorded()[OWNER]
    *_, (last, _) = record_spans(image)
    for cut in (last, last + 5):
        found = checked(path, image[:cut])
        assert (found["ok"], found["signature"], found["torn_bytes"]) == (True, "absent", cut - last)
    assert "not signed" in told([path])


def test_a_signature_that_does_not_hold_fails_with_its_record(path: Path, tmp_path: Path) -> None:
    for party in (OWNER, CURATOR):
        image = recorded()[party]
        number = record_of(image, tmp_path, is_signed)
        forged = rewritten(image, tmp_path, lambda record: with_signed(record, signature=bytes(64)))
        found = checked(path, forged)
        assert (found["ok"], found["signature"]) == (False, "fails")
        # The chain is another one as well, by its salts: the head that was signed is of the old one.
        assert found["record"] == number
        assert f"record {number} does not hold" in found["error"]


def test_what_is_signed_is_as_documented() -> None:
    """From docs/transcript-format.md alone: tag, session, head, length of the name, name."""
    name = "φ-owner".encode()
    documented = b"hushbid transcript head 1\0" + bytes(range(16)) + bytes(range(32))
    documented += len(name).to_bytes(4, "little") + name
    assert head_statement(bytes(range(16)), "φ-owner", bytes(range(32))) == documented


@pytest.mark.parametrize("signer", ["owner-1", CURATOR])
def test_nobody_can_sign_for_another_party(path: Path, tmp_path: Path, signer: str) -> None:
    image = recorded()[OWNER]
    number = record_of(image, tmp_path, is_signed)
    same = rewritten(image, tmp_path, lambda record: record, session=SESSION)
    assert checked(path, same)["signature"] == "holds", "the forger can, with the party's own key"
    _, records = records_of(same, tmp_path)
    head = records[number - 1].digest
    key = SESSION.simulated_identity(signer).signing
    for party in (OWNER, signer):
        other = sign(head_statement(SESSION.identifier, party, head), key)
        found = checked(path, rewritten(same, tmp_path, partial(with_signed, signature=other)))
        assert (found["ok"], found["signature"], found["record"]) == (False, "fails", number)
        assert f"not that of {OWNER}" in found["error"]


def test_a_signed_head_that_is_not_the_chains_fails(path: Path, tmp_path: Path) -> None:
    image = recorded()[OWNER]
    number = record_of(image, tmp_path, is_signed)
    forged = rewritten(image, tmp_path, lambda record: record._replace(now=record.now + 1))
    found = checked(path, forged)
    assert (found["ok"], found["record"]) == (False, number)
    assert found["signature"] == "holds", "of the chain that was there before"
    assert "not the chain's" in found["error"]


@pytest.mark.parametrize(
    ("party", "message", "peer"), [(OWNER, "close", CURATOR), (CURATOR, "farewell", "owner-1")]
)
def test_a_received_head_that_its_sender_did_not_sign_fails(
    path: Path, tmp_path: Path, party: str, message: str, peer: str
) -> None:
    image = recorded()[party]
    number = record_of(image, tmp_path, received(message, peer))

    way = Direction.CURATOR_TO_OWNER if party == OWNER else Direction.OWNER_TO_CURATOR

    def other_head(frame: dict[str, Any]) -> bytes:
        return encode_message(decode_message(way, frame["body"]).model_copy(update={"head": bytes(32)}))

    def change(record: Record) -> Record:
        return with_frame(
            record, lambda kind, frame: frame["message"] == message and frame["peer"] == peer, body=other_head
        )

    found = checked(path, rewritten(image, tmp_path, change, session=SESSION))
    assert (found["ok"], found["record"], found["signature"]) == (False, number, "holds")
    assert f"not that of {peer}" in found["error"]
    assert (peer, "fails") in heads(found)
    assert f"✗ {path}: record {number}" in told([path])


def test_who_is_not_on_the_roster_cannot_sign_either(path: Path, tmp_path: Path) -> None:
    image = recorded()[CURATOR]
    number = record_of(image, tmp_path, received("farewell", "owner-1"))
    key = SESSION.simulated_identity("mallory").signing
    signature = sign(head_statement(SESSION.identifier, "mallory", bytes(32)), key)
    change = partial(
        with_frame,
        wanted=lambda kind, frame: frame["message"] == "farewell" and frame["peer"] == "owner-1",
        peer="mallory",
        body=encode_message(Farewell(head=bytes(32), signature=signature)),
    )
    found = checked(path, rewritten(image, tmp_path, change, session=SESSION))
    assert (found["ok"], found["record"]) == (False, number)
    assert ("mallory", "fails") in heads(found)


def test_a_redacted_copy_of_a_simulated_session_verifies_but_for_signatures(path: Path) -> None:
    image = recorded()[OWNER]
    whole = checked(path, image)
    found = checked(path, redact(image, lambda number, name: False))
    assert (found["ok"], found["head"], found["signature"]) == (True, whole["head"], "unchecked")
    assert heads(found) == [(OWNER, "unchecked")]
    assert "a seed that was taken out" in told([path])


# -- keys of the roster ----------------------------------------------------------------------------------

KEYS = {
    party: Identity(bytes([number]) * 32)
    for number, party in enumerate((CURATOR, CONSUMER, "alpha", "beta"), 1)
}


def kept_session(*, insecure: bool) -> Session:
    """A session with secure noise, with keys or without."""
    changes: dict[str, Any] = {
        "noise": {"source": "secure"},
        "network.insecure": insecure,
        "roster": {"owners": {"alpha": "", "beta": ""}},
    }
    if not insecure:
        text = {party: key.public.text for party, key in KEYS.items()}
        owners = {owner: text[owner] for owner in ("alpha", "beta")}
        changes["roster"] = {"curator": text[CURATOR], "consumer": text[CONSUMER], "owners": owners}
    return open_session(session_files.load(changes))


def ended(session: Session, signature: Callable[[bytes], bytes], *, close: bytes | None = None) -> bytes:
    """Alpha's transcript: it began, was told that the session is over, and signed its head."""
    journal = MemoryJournal(header_of(session, "owner", "alpha"))
    journal.append(0.0, started(session.file).item(), ())
    message = Close(outcome="complete", head=bytes(32), signature=b"" if close is None else close)
    fields: dict[str, Any] = {"peer": CURATOR, "sequence": 1, "acknowledged": 0}
    frame = {**fields, "message": "close", "body": encode_message(message)}
    head = journal.head
    signed = HeadSigned(head, signature(head))
    journal.append(1.0, Item("received", {}, {"frame": frame}), [signed.item()])
    journal.close()
    return journal.image


def signing(session: Session, party: str, key: str) -> Callable[[bytes], bytes]:
    return lambda head: sign(head_statement(session.identifier, party, head), KEYS[key].signing)


def test_heads_are_signed_with_the_rosters_keys(path: Path) -> None:
    session = kept_session(insecure=False)
    close = signing(session, CURATOR, CURATOR)(bytes(32))
    image = ended(session, signing(session, "alpha", "alpha"), close=close)
    assert checked(path, image)["signature"] == "holds"
    redacted = checked(path, redact(image, lambda number, name: False))
    assert (redacted["ok"], redacted["signature"]) == (True, "holds"), "keys are public"
    for party, key in (("alpha", "beta"), ("beta", "beta"), ("beta", "alpha")):
        found = checked(path, ended(session, signing(session, party, key), close=close))
        assert (found["ok"], found["signature"], found["record"]) == (False, "fails", 1)
    unsigned = checked(path, ended(session, lambda head: b"", close=close))
    assert (unsigned["ok"], unsigned["signature"]) == (False, "fails"), "who has a key signs"


def test_where_nobody_has_a_key_nothing_is_signed_and_that_is_said(path: Path) -> None:
    session = kept_session(insecure=True)
    found = checked(path, ended(session, lambda head: b""))
    assert (found["ok"], found["signature"]) == (True, "no-keys")
    assert heads(found) == [(CURATOR, "no-keys"), ("alpha", "no-keys")]
    assert "the session has no keys" in told([path])
    wrong = checked(path, ended(session, lambda head: bytes(64)))
    assert (wrong["ok"], wrong["signature"]) == (False, "fails")


# -- what cannot be so though the chain holds --------------------------------------------------------------


def with_configuration(record: Record, configuration: Mapping[str, Any]) -> Record:
    if record.number:
        return record
    return record._replace(event=record.event._replace(public={"configuration": configuration}))


@pytest.mark.parametrize("place", ["session", "roster", "acquisition", "noise", "features"])
def test_another_session_file_than_the_headers_fails(path: Path, tmp_path: Path, place: str) -> None:
    image = recorded()[OWNER]
    _, records = records_of(image, tmp_path)
    configuration: dict[str, Any] = dict(records[0].event.public["configuration"])  # type: ignore[arg-type]
    others: dict[str, dict[str, Any]] = {
        "session": {"session": {**configuration["session"], "name": "other"}},
        "roster": {"roster": {**configuration["roster"], "owners": {OWNER: "", "mallory": ""}}},
        "acquisition": {"acquisition": {"rule": "none-such"}},
        "noise": {"noise": 5},
        "features": {"features": None},
    }
    change = partial(with_configuration, configuration={**configuration, **others[place]})
    forged = rewritten(image, tmp_path, change, session=SESSION)
    found = checked(path, forged)
    assert (found["ok"], found["record"]) == (False, 0)


def test_a_party_that_is_not_on_the_roster_has_no_transcript_of_the_session(path: Path) -> None:
    for role, party in (("owner", "mallory"), ("owner", CURATOR), ("curator", OWNER)):
        journal = MemoryJournal(header_of(SESSION, role, party))
        journal.append(0.0, started(SESSION.file).item(), ())
        journal.close()
        found = checked(path, journal.image)
        assert (found["ok"], found["record"]) == (False, -1)
        assert "names a party" in found["error"]


def test_a_head_that_was_signed_in_no_session_fails(path: Path) -> None:
    journal = MemoryJournal(header_of(SESSION, "owner", OWNER))
    journal.append(0.0, Item("timer", {}, {}), [HeadSigned(journal.head, bytes(64)).item()])
    journal.close()
    assert (checked(path, journal.image)["record"], verify(path).signature) == (0, Signature.FAILS)


def test_a_signed_head_of_the_wrong_type_fails(path: Path, tmp_path: Path) -> None:
    image = recorded()[OWNER]
    forged = rewritten(image, tmp_path, lambda record: with_signed(record, head="head", signature=7))
    found = checked(path, forged)
    assert (found["ok"], found["record"]) == (False, record_of(image, tmp_path, is_signed))


NO_FRAMES: dict[str, Any] = {
    "none": None,
    "fewer": {"peer": CURATOR},
    "more": {"peer": CURATOR, "sequence": 1, "acknowledged": 0, "message": "close", "body": b"", "x": 1},
    "negative": {"peer": CURATOR, "sequence": -1, "acknowledged": 0, "message": "close", "body": b""},
    "types": {"peer": b"c", "sequence": 1, "acknowledged": 0, "message": "close", "body": b""},
    "body": {"peer": CURATOR, "sequence": 1, "acknowledged": 0, "message": "ask", "body": "text"},
    "no-close": {"peer": CURATOR, "sequence": 1, "acknowledged": 0, "message": "close", "body": b"x"},
    "other-message": {
        "peer": CURATOR, "sequence": 1, "acknowledged": 0, "message": "close",
        "body": encode_message(Ask(round=1, handle=fixed(1))),
    },
    "no-broadcast": {"peer": CURATOR, "sequence": 1, "acknowledged": 0, "message": "broadcast", "body": b"x"},
}  # fmt: skip


@pytest.mark.parametrize("frame", NO_FRAMES.values(), ids=NO_FRAMES)
def test_a_frame_that_is_none_fails_with_its_record(path: Path, frame: Any) -> None:
    journal = MemoryJournal(header_of(SESSION, "owner", OWNER))
    journal.append(0.0, started(SESSION.file).item(), ())
    journal.append(1.0, Item("received", {}, {"frame": frame}), ())
    journal.close()
    found = checked(path, journal.image)
    assert (found["ok"], found["record"]) == (False, 1)


def frame_steps(*frames: tuple[str, int, int, bytes]) -> bytes:
    """An owner's transcript with (kind, sequence, acknowledged, body) for each record."""
    journal = MemoryJournal(header_of(SESSION, "owner", OWNER))
    journal.append(0.0, started(SESSION.file).item(), ())
    for kind, sequence, acknowledged, body in frames:
        fields: dict[str, Any] = {"peer": CURATOR, "sequence": sequence, "acknowledged": acknowledged}
        journal.append(1.0, Item(kind, {}, {"frame": {**fields, "message": "ask", "body": body}}), ())
    journal.close()
    return journal.image


def test_frames_are_numbered_one_after_the_other_and_resent_in_the_same_bytes(path: Path) -> None:
    honest = [
        ("send", 0, 0, b"hello"),
        ("received", 0, 0, b"welcome"),
        ("received", 1, 0, b"a"),
        ("send", 1, 1, b"b"),
        ("send", 0, 0, b"hello again"),
        ("send", 1, 1, b"b"),
        ("received", 2, 1, b"c"),
        ("send", 2, 2, b"d"),
    ]
    assert checked(path, frame_steps(*honest))["ok"]
    for at, step, what in (
        (6, ("send", 1, 1, b"x"), "other bytes than when it was sent in 4"),
        (7, ("received", 1, 1, b"a"), "had come before"),
        (7, ("received", 3, 1, b"c"), "frame 3"),
        (8, ("send", 3, 2, b"d"), "frame 3"),
        (8, ("send", 2, 3, b"d"), "acknowledges frame 3"),
    ):
        forged = [*honest]
        forged[at - 1] = step
        found = checked(path, frame_steps(*forged))
        assert (found["ok"], found["record"]) == (False, at), what
        assert what in found["error"]
