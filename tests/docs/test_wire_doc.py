"""docs/wire.md says what the code does: directions, limits, layout. Its lists of fields are generated."""

from __future__ import annotations

import hashlib
import re

import nacl.public
import numpy as np
import pytest

from hushbid.protocol import limits
from hushbid.protocol.crypto.identity import Identity
from hushbid.protocol.crypto.sealing import (
    NONCE_BYTES,
    SEAL_BYTES,
    SIGNATURE_BYTES,
    batch_statement,
    batched_digest,
    candidate_statement,
    open_between,
    pack_content,
    seal_between,
)
from hushbid.protocol.wire import arrays
from hushbid.protocol.wire.codec import FRAME_VERSION, HEADER_BYTES, Frame, encode_frame
from hushbid.protocol.wire.messages import (
    CONTROL_SEQUENCE,
    PROTOCOL_VERSION,
)
from tests.conftest import ROOT
from tests.docs.pages import Page
from tests.docs.tables.protocol import MESSAGES, sender_and_receiver
from tests.support.message_cases import CASES

PAGE = Page("docs/wire.md")


def test_the_messages_of_the_page_are_the_messages_there_are() -> None:
    assert sorted(re.findall(r"^### `(.+)`$", PAGE.text, re.M)) == sorted(MESSAGES)


@pytest.mark.parametrize("kind", sorted(MESSAGES))
def test_a_message_s_section_says_who_may_send_it_and_has_its_fields(kind: str) -> None:
    parties = sender_and_receiver(kind)
    sender, *_, receiver = parties.split(" → ")
    both = "any party" if sender == receiver else "owner or consumer"
    parties = parties.replace("all", both).capitalize()
    section = PAGE.section(f"`{kind}`")
    assert section.strip().startswith(f"{parties}. ")
    assert f"<!-- generated: fields of {kind} -->" in section


def test_no_limit_of_the_wire_is_left_out() -> None:
    sources = [path.read_text() for path in sorted((ROOT / "protocol" / "wire").glob("*.py"))]
    used = {name for source in sources for name in re.findall(r"limits\.([A-Z_]+)", source)}
    assert used <= set(PAGE.first_names("Limits"))


def test_the_header_is_laid_out_as_stated() -> None:
    frame = encode_frame(Frame(bytes(range(16)), 2, 3, b"body"))
    parts = {
        "magic": b"HBID",
        "frame version": bytes([FRAME_VERSION]),
        "session": bytes(range(16)),
        "sequence": (2).to_bytes(8, "big"),
        "acknowledged": (3).to_bytes(8, "big"),
        "body": b"body",
    }
    table = PAGE.rows("Frame")
    assert [row[2] for row in table] == list(parts)
    for offset, length, field, _ in table:
        end = int(offset) + int(length) if length else len(frame)
        assert frame[int(offset) : end] == parts[field]
    assert int(table[-1][0]) == HEADER_BYTES


def test_the_array_types_are_those_of_the_code() -> None:
    (stated,) = [row[2] for row in PAGE.rows("Arrays of numbers") if row[1] == "dtype"]
    for code, name in re.findall(r"(\d) (u?(?:int|float)\d+)", stated):
        assert arrays.pack_array(np.zeros(1, name))[0] == int(code)
    assert len(re.findall(r"\d (?:u?int|float)", stated)) == 6


def test_the_versions_and_the_unnumbered_messages_are_those_of_the_code() -> None:
    assert PAGE.text.splitlines()[2].startswith(
        f"Frame version {FRAME_VERSION}, protocol version {PROTOCOL_VERSION}."
    )
    unnumbered = {case.message.kind for case in CASES.values() if case.sequence == CONTROL_SEQUENCE}
    (stated,) = re.findall(r"\*\*Sequence and acknowledgement\.\*\* (.+?) have sequence 0", PAGE.text, re.S)
    assert set(re.findall(r"`(\w+)`", stated)) == unnumbered


# -- sealed points --------------------------------------------------------------------------------------

OWNER, CONSUMER = Identity(bytes(range(32))), Identity(bytes(range(1, 33)))
SESSION = bytes(range(16))


def named(title: str) -> dict[str, str]:
    """Field → bytes of a table of three columns."""
    return {row[1]: row[0] for row in PAGE.rows(title) if len(row) == 3}


def test_what_an_owner_signs_is_laid_out_as_stated() -> None:
    box, features = b"any box", np.arange(4, dtype=np.int16)
    parts = {
        "tag": b"hushbid candidate 1\0",
        "session": SESSION,
        "round": (7).to_bytes(8, "big"),
        "handle": (5).to_bytes(8, "big", signed=True),
        "n": bytes([9]),
        "name": b"digits-34",
        "box": hashlib.sha256(box).digest(),
        "features": hashlib.sha256(arrays.pack_array(features)).digest(),
    }
    table = named("The signature")
    assert list(table) == list(parts)
    assert {name: int(size) for name, size in table.items() if size != "n"} == {
        name: len(part) for name, part in parts.items() if name != "name"
    }
    assert candidate_statement(SESSION, "digits-34", 7, 5, box, features) == b"".join(parts.values())


def test_what_an_owner_signs_of_a_batch_is_laid_out_as_stated() -> None:
    box, features = b"any box", np.arange(4, dtype=np.int16)
    of_a_point = {
        "tag": b"hushbid batched 1\0",
        "handle": (5).to_bytes(8, "big", signed=True),
        "box": hashlib.sha256(box).digest(),
        "features": hashlib.sha256(arrays.pack_array(features)).digest(),
    }
    assert batched_digest(5, box, features) == hashlib.sha256(b"".join(of_a_point.values())).digest()
    digests = bytes(range(96))
    of_all = {
        "tag": b"hushbid batch 1\0",
        "session": SESSION,
        "round": (7).to_bytes(8, "big"),
        "b": (3).to_bytes(8, "big", signed=True),
        "n": bytes([9]),
        "name": b"digits-34",
        "digests": digests,
    }
    assert batch_statement(SESSION, "digits-34", 7, digests) == b"".join(of_all.values())
    stated = [(row[1], row[0]) for row in PAGE.rows("The signature of a batch")]
    parts = [*of_a_point.items(), *of_all.items()]
    assert [name for name, _ in stated] == [name for name, _ in parts]
    lengths = {"name": "n", "digests": "32b"}
    assert [size for _, size in stated] == [lengths.get(name, str(len(part))) for name, part in parts]


def test_a_content_is_laid_out_as_stated() -> None:
    assert list(named("The box")) == ["L", "point", "padding"]
    content = pack_content(np.arange(3, dtype=np.uint8), b"attributes", 128)
    length = int.from_bytes(content[:4], "big")
    assert len(content) == 128
    assert content[4 + length :] == bytes(128 - 4 - length)
    assert content[4] == 0x92, "msgpack of a pair"


def test_a_sealed_map_is_laid_out_as_stated() -> None:
    lengths = [int(size) for size in named("The sealed map").values()]
    assert NONCE_BYTES + 16 + sum(lengths) == limits.MAP_BOX_BYTES
    tags = [
        f"{tag}\0".encode()
        for tag in re.findall(r"`(hushbid [a-z ]+ 1)` and a\s+zero", PAGE.section("The sealed map"))
    ]
    keys = [bytes(identity.public.sealing) for identity in (CONSUMER, OWNER)]
    binding = hashlib.sha256(tags[0] + keys[0] + keys[1] + tags[1] + SESSION).digest()
    nonce = bytes(NONCE_BYTES)
    box = seal_between(b"seed", OWNER.public.sealing, CONSUMER.sealing, nonce, context=tags[1] + SESSION)
    assert nacl.public.Box(OWNER.sealing, CONSUMER.public.sealing).decrypt(box) == binding + b"seed"
    assert open_between(box, CONSUMER.public.sealing, OWNER.sealing, context=tags[1] + SESSION) == b"seed"


def test_the_lengths_of_boxes_and_signatures_are_those_of_the_code() -> None:
    (longer,) = re.findall(r"(\d+) bytes longer in all", PAGE.section("The box"))
    assert int(longer) == SEAL_BYTES == limits.MAX_BOX_BYTES - limits.MAX_CONTENT_BYTES
    assert SIGNATURE_BYTES == 64
