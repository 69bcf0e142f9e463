"""docs/wire.md says what the code does: directions, limits, layout. Its lists of fields are generated."""

from __future__ import annotations

import hashlib
import math
import re

import nacl.public
import numpy as np
import pytest

from hushbid.protocol import limits
from hushbid.protocol.crypto.commitment import opening_bytes
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
    seal_numbered,
    submission_statement,
)
from hushbid.protocol.privacy.releases import Prior
from hushbid.protocol.space.herding import FARTHEST, MOST_WEIGHED
from hushbid.protocol.wire import arrays
from hushbid.protocol.wire.codec import FRAME_VERSION, HEADER_BYTES, Frame, encode_frame
from hushbid.protocol.wire.merkle import NODE_BYTES, Tree, root_of
from hushbid.protocol.wire.messages import (
    CONTROL_SEQUENCE,
    PROTOCOL_VERSION,
    SubmittedCandidate,
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


def test_a_submission_s_tree_and_what_an_owner_signs_of_it_are_laid_out_as_stated() -> None:
    leaves = [bytes([number]) * 32 for number in range(1, 4)]

    def node(left: bytes, right: bytes) -> bytes:
        parts = {"tag": b"hushbid node 1\0", "left": left, "right": right}
        nodes.append([(name, str(len(part))) for name, part in parts.items()])
        return hashlib.sha256(b"".join(parts.values())).digest()

    nodes: list[list[tuple[str, str]]] = []
    left, right = node(leaves[0], leaves[1]), node(leaves[2], bytes(NODE_BYTES))
    tree = Tree(leaves)
    assert (tree.depth, tree.root) == (2, node(left, right))
    assert [tree.path(place) for place in range(3)] == [
        leaves[1] + right,
        leaves[0] + right,
        bytes(NODE_BYTES) + left,
    ]
    assert root_of(leaves[2], 2, tree.path(2)) == tree.root
    statement = {
        "tag": b"hushbid submission 1\0",
        "session": SESSION,
        "round": (1).to_bytes(8, "big"),
        "depth": (2).to_bytes(8, "big", signed=True),
        "n": bytes([9]),
        "name": b"digits-34",
        "root": tree.root,
    }
    assert submission_statement(SESSION, "digits-34", 1, tree.depth, tree.root) == b"".join(
        statement.values()
    )
    stated = [(row[1], row[0]) for row in PAGE.rows("The signature of a submission")]
    sizes = [(name, "n" if name == "name" else str(len(part))) for name, part in statement.items()]
    assert stated == [*nodes[0], *sizes]


def test_a_numbered_box_is_laid_out_as_stated() -> None:
    assert named("Numbered boxes") == {"ephemeral": "32", "recipient": "32", "number": "8"}
    ephemeral, number = bytes(range(2, 34)), 258
    (box,) = seal_numbered({number: b"content"}, CONSUMER.public.sealing, ephemeral)
    public = bytes(nacl.public.PrivateKey(ephemeral).public_key)
    bound = public + bytes(CONSUMER.public.sealing) + number.to_bytes(8, "big")
    nonce = hashlib.blake2b(bound, digest_size=NONCE_BYTES).digest()
    sealed = nacl.public.Box(nacl.public.PrivateKey(ephemeral), CONSUMER.public.sealing).encrypt(
        b"content", nonce
    )
    assert box == public + sealed.ciphertext
    assert len(sealed.ciphertext) == len(b"content") + 16


def test_the_numbers_of_the_aim_and_of_the_choice_are_those_of_the_code() -> None:
    aim, choice = PAGE.section("The aim"), PAGE.section("The choice")
    assert FARTHEST == 2**17
    assert "±2¹⁷" in aim
    assert f"more than {MOST_WEIGHED:,} rows" in " ".join(choice.split())
    assert f"The first {MOST_WEIGHED // 2:,} are compared" in " ".join(choice.split())
    total, size = np.array([-6, -2, 2, 6, 20_000, -20_001], dtype=np.int64), 4
    known = Prior.of_total(total, size)
    centre = [(2 * each + size) // (2 * size) for each in total.tolist()]
    apart = max(2**30 - sum(each**2 for each in centre), 0) * (size + 1) // (size - 1)
    assert known.centre.tolist() == centre == [-1, 0, 1, 2, 5000, -5000]
    assert (known.spread, known.radius) == (math.isqrt(apart), 9 * math.isqrt(apart) // 10)
    whole = np.zeros(4, dtype=np.int64) + 2**15
    assert (Prior.of_total(whole, 1).spread, Prior.of_total(0 * whole, 1).spread) == (2**13, 46340)
    assert Prior.of_total(0 * whole, 1).radius == 9 * 46340 // 10


def test_a_submitted_candidate_has_the_fields_of_the_page() -> None:
    assert PAGE.first_names("submitted candidate") == list(SubmittedCandidate.model_fields)


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
    assert int(longer) == SEAL_BYTES
    most = SEAL_BYTES + opening_bytes(limits.MAX_COMMITMENT_DEPTH)
    assert most == limits.MAX_BOX_BYTES - limits.MAX_CONTENT_BYTES
    assert SIGNATURE_BYTES == 64
