"""docs/wire.md says what the code does: directions, limits, layout. Its lists of fields are generated."""

from __future__ import annotations

import math
import re

import nacl.bindings
import nacl.public
import numpy as np
import pytest

from hushbid.protocol import limits
from hushbid.protocol.crypto.blinding import (
    BlindKeys,
    account_statement,
    blind_bid_statement,
    blind_digest,
    broadcast_statement,
)
from hushbid.protocol.crypto.commitment import Opening, opening_bytes, row_leaf
from hushbid.protocol.crypto.identity import Identity, simulated_identity
from hushbid.protocol.crypto.sealing import (
    NONCE_BYTES,
    SEAL_BYTES,
    SIGNATURE_BYTES,
    batch_statement,
    batched_digest,
    candidate_statement,
    open_between,
    pack_content,
    rows_statement,
    seal_between,
    seal_numbered,
    submission_statement,
)
from hushbid.protocol.crypto.unlinking import PairKey
from hushbid.protocol.privacy.releases import Prior
from hushbid.protocol.space.copies import lots_of
from hushbid.protocol.space.herding import FARTHEST, MOST_WEIGHED
from hushbid.protocol.space.jitter import Jitter
from hushbid.protocol.wire import arrays
from hushbid.protocol.wire.codec import FRAME_VERSION, HEADER_BYTES, Frame, encode_frame
from hushbid.protocol.wire.merkle import NODE_BYTES, Tree, root_of
from hushbid.protocol.wire.messages import (
    CONTROL_SEQUENCE,
    PROTOCOL_VERSION,
    SubmittedCandidate,
)
from tests.conftest import ROOT
from tests.docs.formulas import Value, formulas, stated, value_of
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


BOX, FEATURES = b"any box", np.arange(-2, 2, dtype=np.int16)
GIVEN: dict[str, Value] = {
    "session16": SESSION,
    "round": 7,
    "handle": 5,
    "number": 258,
    "name": "digits-34",
    "box": BOX,
    "features": FEATURES,
    "phi": FEATURES,
    "digests": bytes(range(96)),
    "b": 3,
    "root": bytes(32),
    "depth": 2,
    "D": 2,
}
"""What the names in formulas stand for."""


@pytest.mark.parametrize(
    ("section", "thing", "computed"),
    [
        ("The signature", "signed", candidate_statement(SESSION, "digits-34", 7, 5, BOX, FEATURES)),
        ("The signature of a batch", "digest", batched_digest(5, BOX, FEATURES)),
        ("The signature of a batch", "signed", batch_statement(SESSION, "digits-34", 7, bytes(range(96)))),
        (
            "The signature of a submission",
            "signed",
            submission_statement(SESSION, "digits-34", 7, 2, bytes(32)),
        ),
        ("Commitments", "signed", rows_statement(SESSION, "digits-34", 2, bytes(32))),
        ("Copies", "draw", lots_of(SESSION, 4, FEATURES, [6])[0]),
        ("What is signed under `blind`", "broadcast", broadcast_statement(SESSION, 7, BOX)),
        ("What is signed under `blind`", "account", account_statement(SESSION, b"any numbers")),
        ("What is signed under `blind`", "digest", blind_digest(258, BOX)),
        (
            "What is signed under `blind`",
            "bid",
            blind_bid_statement(SESSION, "digits-34", 7, [bytes(range(96))]),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_formula_gives_the_bytes_that_the_code_makes(section: str, thing: str, computed: bytes) -> None:
    more: dict[str, Value] = {"place": 4, "owner": 6, "numbers": b"any numbers"}
    assert stated(PAGE, section, thing, **GIVEN, **more) == computed


@pytest.mark.parametrize(
    ("right", "wrong"),
    [("u64(round)", "u32(round)"), ("hushbid candidate 1", "hushbid candidate 2"), ("name8", "name32")],
)
def test_a_formula_that_is_wrong_would_be_noticed(right: str, wrong: str) -> None:
    formula = formulas(PAGE, "The signature")["signed"]
    computed = candidate_statement(SESSION, "digits-34", 7, 5, BOX, FEATURES)
    assert value_of(formula, GIVEN) == computed
    assert value_of(formula.replace(right, wrong), GIVEN) != computed


def test_a_simulated_key_follows_from_what_is_stated() -> None:
    digest = bytes(range(32))
    seed = stated(PAGE, "Keys", "seed", digest=digest, number=258, name="heron")
    assert seed == simulated_identity(digest, 258, "heron").seed


def test_a_row_s_leaf_and_the_way_to_its_root_are_as_stated() -> None:
    point, salt = np.array([1.5, -2.0, 0.25]), bytes(range(16))
    leaf = stated(
        PAGE,
        "Commitments",
        "leaf",
        type=b"<f8",
        columns=3,
        salt=salt,
        point=point.astype("<f8").tobytes(),
        attributes=b"attributes",
    )
    assert leaf == row_leaf(salt, point, b"attributes")
    beside = bytes(32), bytes(range(32))
    node = stated(PAGE, "Commitments", "node", left=beside[0], right=leaf)
    root = stated(PAGE, "Commitments", "node", left=node, right=beside[1])
    assert Opening(salt, 0b01, b"".join(beside)).root(leaf) == root


def test_a_submission_s_tree_is_as_stated() -> None:
    leaves = [bytes([number]) * 32 for number in range(1, 4)]

    def node(left: bytes, right: bytes) -> bytes:
        return stated(PAGE, "Commitments", "node", left=left, right=right)

    left, right = node(leaves[0], leaves[1]), node(leaves[2], bytes(NODE_BYTES))
    tree = Tree(leaves)
    assert (tree.depth, tree.root) == (2, node(left, right))
    assert [tree.path(place) for place in range(3)] == [
        leaves[1] + right,
        leaves[0] + right,
        bytes(NODE_BYTES) + left,
    ]
    assert root_of(leaves[2], 2, tree.path(2)) == tree.root


def test_a_numbered_box_is_made_as_stated() -> None:
    ephemeral, number = bytes(range(2, 34)), 258
    (box,) = seal_numbered({number: b"content"}, CONSUMER.public.sealing, ephemeral)
    public = bytes(nacl.public.PrivateKey(ephemeral).public_key)
    recipient = bytes(CONSUMER.public.sealing)
    nonce = stated(PAGE, "Numbered boxes", "nonce", ephemeral=public, recipient=recipient, number=number)
    assert len(nonce) == NONCE_BYTES
    sealed = nacl.public.Box(nacl.public.PrivateKey(ephemeral), CONSUMER.public.sealing).encrypt(
        b"content", nonce
    )
    assert box == public + sealed.ciphertext
    assert len(sealed.ciphertext) == len(b"content") + 16


def test_a_jitter_is_as_stated() -> None:
    (formula,) = re.findall(r"`(SHA256\(.+?\))`", PAGE.section("Jitter"))
    summed = sum(value_of(formula, GIVEN)[:12])
    assert Jitter(SESSION).of(FEATURES[None]).tolist() == [16 * (summed - 1530)]
    assert "16·(n−1530)" in PAGE.section("Jitter")


def test_a_masked_score_is_as_stated() -> None:
    seed = bytes(range(32))
    mask_key = stated(PAGE, "The session's keys", "mask_key", seed=seed, session16=SESSION)
    given: dict[str, Value] = {**GIVEN, "mask_key": mask_key}
    drawn, given["tie_key"] = (stated(PAGE, "Masked scores", name, **given) for name in ("drawn", "tie_key"))
    a = int.from_bytes(drawn[:8], "big") >> 2 | 2**61
    c = (int.from_bytes(drawn[8:], "big") >> 2) + 1
    t = int.from_bytes(stated(PAGE, "Masked scores", "h", **given), "big") * a >> 64
    bound, score = 1000, -12
    (masked,) = BlindKeys(seed, SESSION).mask(7, bound).of([score], FEATURES[None])
    assert int.from_bytes(masked, "big") == a * (score + bound + 1) + c + t


def test_a_broadcast_is_encrypted_as_stated() -> None:
    seed, weights = bytes(range(32)), np.arange(4, dtype=np.int32)
    key = stated(PAGE, "The session's keys", "broadcast_key", seed=seed, session16=SESSION)
    bound = value_of("session16, u64(round)", GIVEN)
    assert "`session16, u64(ℓ)`" in PAGE.section("The session's keys")
    opened = nacl.bindings.crypto_aead_xchacha20poly1305_ietf_decrypt(
        BlindKeys(seed, SESSION).encrypt(weights, 7), bound, (7).to_bytes(24, "big"), key
    )
    assert opened == arrays.pack_array(weights)


def test_what_an_owner_and_the_consumer_share_is_as_stated() -> None:
    section, recipient = "Scores that cannot be linked", CONSUMER.public.sealing
    shared = nacl.bindings.crypto_box_beforenm(bytes(recipient), bytes(OWNER.sealing))
    given: dict[str, Value] = {**GIVEN, "shared": shared}
    for name in ("pair_key", "round_key", "own_tie_key"):
        given[name] = stated(PAGE, section, name, **given)
    places = PairKey(OWNER.sealing, recipient, SESSION).places(7, 3)
    assert places.tie(FEATURES) == int.from_bytes(stated(PAGE, section, "own_h", **given), "big")


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
    nonce_bytes, *parts = map(int, re.findall(r"\((\d+)\)", PAGE.section("The sealed map")))
    assert nonce_bytes == NONCE_BYTES
    assert len(parts) == 3
    assert NONCE_BYTES + 16 + sum(parts) == limits.MAP_BOX_BYTES
    assert PAGE.section("The sealed map").strip().startswith(f"{limits.MAP_BOX_BYTES} bytes")
    sender, recipient = CONSUMER.public.sealing, OWNER.public.sealing
    binding = stated(
        PAGE,
        "The sealed map",
        "binding",
        sender=bytes(sender),
        recipient=bytes(recipient),
        session16=SESSION,
    )
    context = b"hushbid secret map 1\0" + SESSION
    box = seal_between(b"seed", recipient, CONSUMER.sealing, bytes(NONCE_BYTES), context=context)
    assert nacl.public.Box(OWNER.sealing, sender).decrypt(box) == binding + b"seed"
    assert open_between(box, sender, OWNER.sealing, context=context) == b"seed"


def test_the_lengths_of_boxes_and_signatures_are_those_of_the_code() -> None:
    (longer,) = re.findall(r"(\d+) bytes longer in all", PAGE.section("The box"))
    assert int(longer) == SEAL_BYTES
    most = SEAL_BYTES + opening_bytes(limits.MAX_COMMITMENT_DEPTH)
    assert most == limits.MAX_BOX_BYTES - limits.MAX_CONTENT_BYTES
    assert SIGNATURE_BYTES == 64
