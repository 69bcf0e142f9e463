"""The vectors equal the code's values, and those of an owner written from the documents."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
from fractions import Fraction
from pathlib import Path
from typing import Any

import nacl.exceptions
import nacl.public
import nacl.signing
import numpy as np
import pytest
from zmq.utils import z85

from hushbid.consumer.events import CheckAward, PurchasesChecked
from hushbid.consumer.numerics import BlindConsumerNumerics
from hushbid.consumer.party import consumer_party
from hushbid.interop.exchange import golden_session, key_of
from hushbid.interop.vectors import check_vectors, vector_files, write_vectors
from hushbid.protocol.config.loading import load_toml, load_toml_text
from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.data import Dataset
from hushbid.protocol.errors import ConfigError, DataError, ExitCode, HushbidError, VectorMismatch
from hushbid.protocol.privacy.noise import SimulatedNoise
from hushbid.protocol.privacy.releases import Prior
from hushbid.protocol.session.session import open_session
from hushbid.protocol.space.features import feature_map
from hushbid.protocol.space.herding import herd
from hushbid.protocol.wire.blind import Award, BlindCandidate, BlindPurchase
from hushbid.protocol.wire.messages import fixed
from tests.conftest import ROOT
from tests.interop import blind_formats, tender_formats, unlinked_formats
from tests.interop.minimal import formats
from tests.interop.minimal.choice import aimed, chosen
from tests.interop.minimal.feature_map import FeatureMap, cosine, normal

PLACE = ROOT / "docs" / "vectors"
SESSIONS = PLACE / "sessions"
VECTORS: dict[str, Any] = json.loads((PLACE / "vectors.json").read_text(encoding="utf-8"))
SEALED = formats.Session.read(SESSIONS / "sealed" / "session.toml")


def test_the_vectors_are_those_of_the_code() -> None:
    files = check_vectors(PLACE)
    there = {str(path.relative_to(PLACE)) for path in PLACE.rglob("*") if path.is_file()}
    assert there == {*files, "README.md"}


def test_writing_them_twice_gives_the_same(tmp_path: Path) -> None:
    assert write_vectors(tmp_path) == sorted(vector_files())
    check_vectors(tmp_path)


@pytest.mark.parametrize(
    ("file", "change", "expected"),
    [
        ("vectors.json", ('"handle": 2', '"handle": 3'), "signature.handle is not"),
        ("vectors.json", ('"handles": [\n   2', '"handles": [\n   3'), "batch.handles[0] is not"),
        ("vectors.json", ('"G": 30', '"G": 29'), "maps[0].G is not"),
        ("vectors.json", ('"depth": 2', '"depth": 3'), "tender.trees[2].depth is not"),
        ("sessions/sealed/session.toml", ("points = 6", "points = 7"), "how it is written is not"),
        ("sessions/ask-all/exchange.json", ('"kind": "bid"', '"kind": "bit"'), "steps[3].kind is not"),
    ],
    ids=["signature", "batch", "map", "tree", "session", "frames"],
)
def test_a_vector_that_does_not_match_is_named(
    file: str, change: tuple[str, str], expected: str, tmp_path: Path
) -> None:
    shutil.copytree(PLACE, tmp_path / "vectors")
    path = tmp_path / "vectors" / file
    text = path.read_text(encoding="utf-8")
    assert change[0] in text
    path.write_text(text.replace(*change, 1), encoding="utf-8")
    with pytest.raises(VectorMismatch) as caught:
        check_vectors(tmp_path / "vectors")
    assert file in caught.value.what
    assert expected in caught.value.what
    assert caught.value.exit_code is ExitCode.FAILED


@pytest.mark.parametrize("damage", [b"", b"{", b"\xff"], ids=["empty", "no-json", "no-text"])
def test_a_file_that_is_no_vector_is_refused(damage: bytes, tmp_path: Path) -> None:
    write_vectors(tmp_path)
    (tmp_path / "vectors.json").write_bytes(damage)
    with pytest.raises(DataError, match=r"vectors\.json: it cannot be read as a vector"):
        check_vectors(tmp_path)


# -- the owner of the documents computes the same ----------------------------------------------------------


@pytest.mark.parametrize("vector", VECTORS["sessions"], ids=lambda vector: vector["name"])
def test_session_digests(vector: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "session.toml"
    path.write_text(vector["toml"], encoding="utf-8")
    digest = formats.Session.read(path).digest.hex()
    assert digest == vector["digest"]
    assert hashlib.sha256(b"hushbid session 2\0" + bytes.fromhex(vector["encoded"])).hexdigest() == digest


MEAN_THE_SAME = (
    {"numbers", "whole-numbers", "defaults-written", "rounds-written"},
    {"fifty rounds", "fifty rounds, written"},
    {"another"},
    {"owners commit"},
    {"the seed set in full"},
    {"without jitter"},
    {"with copies"},
    {"of few values", "of few values, with copies"},
    {"a price", "a price, as a number"},
    {"wishes"},
    {"labels"},
    {"amounts"},
    {"as many points as fit"},
    {"a tender", "a tender, written"},
    {"a tender in three messages"},
)


def test_sessions_that_mean_the_same_have_one_digest() -> None:
    digests = {vector["name"]: vector["digest"] for vector in VECTORS["sessions"]}
    names = [{name for name in digests if digests[name] == digest} for digest in set(digests.values())]
    assert sorted(map(sorted, names)) == sorted(map(sorted, MEAN_THE_SAME))


def test_what_a_session_was_before_there_were_batches_has_the_digest_that_it_had() -> None:
    digests = {vector["name"]: vector["digest"] for vector in VECTORS["sessions"]}
    assert digests["the seed set in full"].startswith("1564f4814eb9")


def test_the_points_of_a_round_are_as_many_as_fit(tmp_path: Path) -> None:
    vector = next(vector for vector in VECTORS["sessions"] if vector["name"] == "as many points as fit")
    path = tmp_path / "session.toml"
    path.write_text(vector["toml"], encoding="utf-8")
    room = formats.Session.read(path).tables["session"]["batch"]
    file = load_toml(SessionFile, path)
    assert room == file.batch == file.most_in_a_bid == 15


def test_a_submission_is_sent_in_as_few_messages_as_have_room_for_it(tmp_path: Path) -> None:
    (vector,) = (each for each in VECTORS["sessions"] if each["name"] == "a tender in three messages")
    path = tmp_path / "session.toml"
    path.write_text(vector["toml"], encoding="utf-8")
    there, file = formats.Session.read(path).tables["session"], load_toml(SessionFile, path)
    assert (there["submission"], there["batch"]) == (file.submission, file.batch) == (3001, 1001)
    assert file.messages == 3


def test_gains_per_price_are_in_the_order_of_exact_quotients_harm_last() -> None:
    there = [(each["score"], Fraction(str(each["price"]))) for each in VECTORS["gain per price"]]
    places = [(score >= 0, score / price if score >= 0 else score) for score, price in there]
    assert places == sorted(places, reverse=True)
    assert len(set(places)) == len(places)


@pytest.mark.parametrize("vector", VECTORS["turns"], ids=["halves", "three", "one"])
def test_turns(vector: dict[str, Any]) -> None:
    rounds = vector["rounds"]
    step = (math.isqrt(5 * rounds**2) - rounds) // 2
    while math.gcd(step, rounds) > 1:
        step += 1
    dealt = 0
    for owner in sorted(vector["caps"]):
        count = min(rounds, vector["caps"][owner] // vector["batch"])
        mine = [1 + step * (dealt + turn) % rounds for turn in range(count)]
        assert vector["turns"][owner] == sorted(mine)
        dealt += count


@pytest.mark.parametrize("vector", VECTORS["words"], ids=lambda vector: vector["word"])
def test_words(vector: dict[str, Any]) -> None:
    word = int(vector["word"], 16)
    assert cosine(word % 2**32) == vector["cosine of its lower half"]
    assert normal(word) == vector["normal number"]


@pytest.mark.parametrize("vector", VECTORS["maps"], ids=["paired", "cosine", "secret-seed"])
def test_maps(vector: dict[str, Any]) -> None:
    seed = vector["seed"]
    made = FeatureMap(vector["features"], bytes.fromhex(seed) if isinstance(seed, str) else seed)
    assert (made.point_bits, made.turn_bits) == (vector["G"], vector["P"])
    assert (made.w.tolist(), made.b.tolist()) == (vector["W"], vector["b"])
    assert made.digest.hex() == vector["digest"]
    points = np.array(vector["points"])
    assert made.hash(points).tolist() == vector["phi"]
    assert made.hash(points[2:3]).tolist() == vector["phi"][2:3]


@pytest.mark.parametrize("seed", VECTORS["seeds that are refused"])
def test_a_seed_of_another_length_is_refused(seed: str) -> None:
    table = VECTORS["maps"][0]["features"]
    with pytest.raises(ValueError, match="32 bytes"):
        FeatureMap(table, bytes.fromhex(seed))
    bounds = {"lower": table["lower"], "upper": table["upper"]}
    numbers = {name: table[name] for name in ("dimension", "gamma", "columns")}
    with pytest.raises(HushbidError, match="32"):
        feature_map(table["map"], seed=bytes.fromhex(seed), **numbers, **bounds)


@pytest.mark.parametrize("kind", ["keys", "simulated keys"])
def test_keys(kind: str) -> None:
    for vector in VECTORS[kind]:
        key = nacl.signing.SigningKey(bytes.fromhex(vector["Ed25519 seed"]))
        assert bytes(key.verify_key).hex() == vector["Ed25519 public key"]
        assert z85.decode(vector["Ed25519 public key, Z85"]) == bytes(key.verify_key)
        assert z85.decode(vector["Ed25519 seed, Z85"]) == bytes(key)
        private = key.to_curve25519_private_key()
        assert bytes(private).hex() == vector["X25519 secret key"]
        assert bytes(private.public_key).hex() == vector["X25519 public key"]
        if kind == "simulated keys":
            hashed = bytes.fromhex(vector["hashed"])
            assert hashlib.sha256(hashed).digest() == bytes(key)
            made = formats.simulated_key(hashed[29:61], vector["noise.seed"], vector["party"])
            assert bytes(made) == bytes(key)


def test_jitter() -> None:
    vector = VECTORS["jitter"]
    session = bytes.fromhex(vector["session"])
    rows = [np.array(features, np.int16) for features in vector["features"]]
    assert [formats.jitter_of(session, row) for row in rows] == vector["jitter"]


def test_who_sells_a_point_that_several_owners_hold() -> None:
    vector = VECTORS["copies"]
    there: dict[tuple[str, str], int] = {}
    offers: dict[tuple[str, int], set[str]] = {}
    for handed in vector["handed over"]:
        phi = str(handed["features"])
        place = there.get((handed["owner"], phi), 0)
        there[handed["owner"], phi] = place + 1
        offers.setdefault((phi, place), set()).add(handed["owner"])
    found = {(str(point["features"]), point["place"]): set(point["draws"]) for point in vector["points"]}
    assert found == offers
    assert max(map(len, offers.values())) == 3
    for point in vector["points"]:
        beginning = b"hushbid copy 1\0" + bytes.fromhex(vector["session"]) + point["place"].to_bytes(4, "big")
        beginning += np.array(point["features"], "<i2").tobytes()
        draws = {
            owner: hashlib.sha256(beginning + vector["owners"].index(owner).to_bytes(4, "big")).hexdigest()
            for owner in point["draws"]
        }
        assert draws == point["draws"]
        assert point["sellers"] == sorted(draws, key=lambda owner: draws[owner])


def test_the_sealed_map() -> None:
    vector, key = VECTORS["sealed map"], owner_key()
    assert SEALED.digest.hex() == vector["session digest"]
    assert hashlib.sha256(bytes.fromhex(vector["bound"])).hexdigest() == vector["binding"]
    box = bytes.fromhex(vector["box"])
    seed, digest = formats.open_map(box, SEALED.identifier, SEALED.sealing_key("consumer"), key)
    assert FeatureMap(SEALED.tables["features"], seed).digest == digest
    for place in (0, 30, 135):
        damaged = box[:place] + bytes([box[place] ^ 1]) + box[place + 1 :]
        with pytest.raises(ValueError, match="does not open"):
            formats.open_map(damaged, SEALED.identifier, SEALED.sealing_key("consumer"), key)
    with pytest.raises(ValueError, match="another session"):
        formats.open_map(box, bytes(16), SEALED.sealing_key("consumer"), key)


def test_the_box() -> None:
    vector = VECTORS["box"]
    attributes = bytes.fromhex(vector["attributes"])
    content = formats.content_of(np.array(vector["point"]), attributes, 128)
    assert content.hex() == vector["content"]
    secret = SESSIONS / "sealed" / "consumer.key.txt"
    consumer = formats.key_of_file(secret).to_curve25519_private_key()
    assert nacl.public.SealedBox(consumer).decrypt(bytes.fromhex(vector["box"])) == content


def test_signatures() -> None:
    key, vector = owner_key(), VECTORS["signature"]
    features = np.array(vector["features"], np.int16)
    assert formats.packed_array(features).hex() == vector["features as an array"]
    box = bytes.fromhex(VECTORS["box"]["box"])
    place = (vector["owner"], vector["round"], vector["handle"])
    hashed = formats.hashed(box, features)
    statement = formats.candidate_statement(SEALED.identifier, *place, hashed)
    assert statement.hex() == vector["statement"]
    assert key.sign(statement).signature.hex() == vector["signature"]
    head = VECTORS["head"]
    said = formats.head_statement(SEALED.identifier, head["party"], bytes.fromhex(head["head"]))
    assert (said.hex(), key.sign(said).signature.hex()) == (head["statement"], head["signature"])


def test_the_signature_of_a_batch() -> None:
    vector, session = VECTORS["batch"], formats.Session.read(SESSIONS / "sealed-batch" / "session.toml")
    assert session.digest.hex() == vector["session digest"]
    boxes = [bytes.fromhex(box) for box in vector["boxes"]]
    rows = [np.array(row, np.int16) for row in vector["features"]]
    assert boxes[0].hex() == VECTORS["box"]["box"]
    assert (vector["handles"][2], boxes[2], set(vector["features"][2])) == (0, bytes(len(boxes[0])), {0})
    digests = list(map(formats.batched_digest, vector["handles"], map(formats.hashed, boxes, rows)))
    assert [digest.hex() for digest in digests] == vector["digests"]
    place = (session.identifier, vector["owner"], vector["round"])
    statement = formats.batch_statement(*place, b"".join(digests))
    assert statement.hex() == vector["statement"]
    assert owner_key().sign(statement).signature.hex() == vector["signature"]


# -- `tender` ----------------------------------------------------------------------------------------------

TENDER: dict[str, Any] = VECTORS["tender"]


@pytest.mark.parametrize("vector", TENDER["trees"], ids=lambda vector: str(len(vector["leaves"])))
def test_trees(vector: dict[str, Any]) -> None:
    leaves = [bytes.fromhex(leaf) for leaf in vector["leaves"]]
    whole = (vector["depth"], bytes.fromhex(vector["root"]))
    assert formats.tree(leaves) == whole
    for place, path in enumerate(map(bytes.fromhex, vector["paths"])):
        assert tender_formats.root_of(leaves[place], place, path) == whole
        assert [each for each in leaves if tender_formats.root_of(each, place, path) == whole] == [
            leaves[place]
        ]


def test_the_boxes_of_a_submission_open_under_their_numbers_alone() -> None:
    vector, consumer = TENDER["submission"], consumer_key().to_curve25519_private_key()
    ephemeral = nacl.public.PrivateKey(bytes.fromhex(vector["ephemeral secret"]))
    *points, padding = zip(vector["handles"], vector["boxes"], strict=True)
    assert padding == (0, bytes(128 + 48).hex())
    for (number, box), content, nonce in zip(points, vector["contents"], vector["nonces"], strict=True):
        made = formats.numbered_box(bytes.fromhex(content), number, consumer.public_key, ephemeral)
        assert made.hex() == box
        assert tender_formats.opened(made, number, consumer).hex() == content
        with pytest.raises(nacl.exceptions.CryptoError):
            tender_formats.opened(made, number + 1, consumer)
        bound = made[:32] + bytes(consumer.public_key) + number.to_bytes(8, "big")
        assert hashlib.blake2b(bound, digest_size=24).hexdigest() == nonce
    assert len({box[:64] for _, box in points}) == 1, "they have an ephemeral key together"


def test_the_signature_of_a_submission() -> None:
    vector, session = TENDER["submission"], formats.Session.read(SESSIONS / "tender" / "session.toml")
    assert session.digest.hex() == TENDER["session digest"]
    boxes = [bytes.fromhex(box) for box in vector["boxes"]]
    rows = [np.array(row, np.int16) for row in vector["features"]]
    digests = list(map(formats.batched_digest, vector["handles"], map(formats.hashed, boxes, rows)))
    assert [digest.hex() for digest in digests] == vector["digests"]
    place = (session.identifier, vector["owner"], vector["round"])
    statement = formats.submission_statement(*place, b"".join(digests))
    assert statement.hex() == vector["statement"]
    assert statement.hex().endswith(vector["root"])
    assert owner_key().sign(statement).signature.hex() == vector["signature"]
    # A delivered point brings its own path alone.
    for at, path in enumerate(map(bytes.fromhex, vector["paths"])):
        depth, root = tender_formats.root_of(digests[at], at, path)
        assert (depth, root.hex()) == (vector["depth"], vector["root"])


@pytest.mark.parametrize("vector", TENDER["choices"], ids=lambda vector: vector["mechanism"])
def test_choices(vector: dict[str, Any]) -> None:
    call = {
        "embedding": np.array(vector["embedding"]),
        "seed_total": np.array(vector["seed_total"], np.int64),
        "seed_size": vector["seed_size"],
    }
    features = np.array(vector["features"], np.int16)
    values, aim = aimed(vector["mechanism"], call, features)
    assert (values.tolist(), aim.tolist()) == (vector["y"], vector["a"])
    assert list(chosen(values, aim, features)) == vector["chosen"]
    # From the second row on several have one score, and φ decides; of equal ones the earlier is first.
    assert vector["features"][1] == vector["features"][4]
    assert vector["chosen"].index(1) < vector["chosen"].index(4)
    if vector["mechanism"] == "exact":
        first, second = vector["chosen"][:2]
        scores = (values @ (2 * aim - values[first])).tolist()
        assert [row for row, score in enumerate(scores) if score == scores[second]] == [1, 2, 3, 4]
        assert second == 2


@pytest.mark.parametrize("name", ["tender", "sealed"])
@pytest.mark.parametrize("case", range(10))
def test_owners_of_ours_choose_the_same(name: str, case: int) -> None:
    """Random points, with copies, and anything that a call may contain."""
    rng = np.random.default_rng(case)
    target = golden_session(name).target
    features = (rng.integers(-(2**15), 2**15, (30, 8)) >> rng.integers(0, 15)).astype(np.int16)
    features = np.concatenate([features, features[::3]])
    size = int(rng.integers(1, 9))
    total = rng.integers(-9000 * size, 9000 * size, 8)
    embedding = rng.normal(0.0, 0.5, 8)
    aim = target.aim(embedding, Prior.of_total(total, size))
    ours = aim.statistic.of(features)
    call = {"embedding": embedding, "seed_total": total, "seed_size": size}
    values, wanted = aimed(target.name, call, features)
    assert (values.tolist(), wanted.tolist()) == (ours.tolist(), aim.mean.tolist())
    there = herd(ours, aim.mean, len(features), features=features)
    assert tuple(chosen(values, wanted, features)) == there


def test_which_rows_are_compared() -> None:
    vector = TENDER["compared"]
    towards, most = vector["y·a"], vector["most"]
    found = tender_formats.compared(list(range(len(towards))), towards, most)
    assert sorted(found) == vector["rows"]
    assert len(found) == most < len(towards)
    assert tender_formats.compared([3, 1], towards, most) == {1, 3}


# -- `blind` -----------------------------------------------------------------------------------------------

BLIND: dict[str, Any] = VECTORS["blind"]


@pytest.fixture(name="blind_session")
def _blind_session(tmp_path: Path) -> formats.Session:
    path = tmp_path / "session.toml"
    path.write_text(BLIND["toml"], encoding="utf-8")
    return formats.Session.read(path)


def blind_map(session: formats.Session) -> FeatureMap:
    return FeatureMap(session.tables["features"], bytes.fromhex(BLIND["seed"]))


def consumer_key() -> nacl.signing.SigningKey:
    return formats.key_of_file(SESSIONS / "sealed" / "consumer.key.txt")


def test_the_keys_of_a_blind_session(blind_session: formats.Session) -> None:
    assert blind_session.digest.hex() == BLIND["session digest"]
    made = blind_formats.keys(bytes.fromhex(BLIND["seed"]), blind_session.identifier)
    assert [key.hex() for key in made] == [BLIND["keys"]["broadcast"], BLIND["keys"]["mask"]]


def test_an_encrypted_broadcast(blind_session: formats.Session) -> None:
    vector, box = BLIND["broadcast"], bytes.fromhex(BLIND["broadcast"]["box"])
    key = bytes.fromhex(BLIND["keys"]["broadcast"])
    weights = blind_formats.array(vector["weights"])
    assert weights.hex() == vector["weights as an array"]
    assert blind_formats.decrypted(box, key, blind_session.identifier, vector["round"]) == weights
    for other in ((bytes(16), vector["round"]), (blind_session.identifier, vector["round"] + 1)):
        with pytest.raises(nacl.exceptions.CryptoError):
            blind_formats.decrypted(box, key, *other)
    said = blind_formats.statement(
        "broadcast", blind_session.identifier, vector["round"], "", hashlib.sha256(box).digest()
    )
    assert said.hex() == vector["statement"]
    assert consumer_key().sign(said).signature.hex() == vector["signature"]


def test_masked_scores(blind_session: formats.Session) -> None:
    vector = BLIND["masks"]
    limit = blind_formats.bound(
        BLIND["broadcast"]["weights"], blind_formats.norm(blind_map(blind_session)), jitter=True
    )
    assert limit == vector["B"]
    place = (bytes.fromhex(BLIND["keys"]["mask"]), blind_session.identifier, vector["round"], limit)
    rows = [np.array(row, np.int16) for row in vector["features"]]
    made = [
        blind_formats.masked(score, row, *place).hex()
        for score, row in zip(vector["scores"], rows, strict=True)
    ]
    assert made == vector["masked"]
    assert blind_formats.masked(0, None, *place).hex() == vector["of nothing"]
    # In the order of the scores; of two points of one score either may be first, and they are not equal.
    assert vector["scores"][2] == vector["scores"][3]
    assert sorted(made[:2] + made[4:]) == made[:2] + made[4:]
    assert len({*made, vector["of nothing"]}) == len(made) + 1
    assert vector["of nothing"] < min(made)


def test_a_blind_bid(blind_session: formats.Session) -> None:
    vector, session = BLIND["bid"], blind_session.identifier
    place = (bytes.fromhex(BLIND["keys"]["mask"]), session, vector["round"], BLIND["masks"]["B"])
    rows = [None if row is None else np.array(row, np.int16) for row in vector["features"]]
    scores = b"".join(
        blind_formats.masked(score or 0, row, *place)
        for score, row in zip(vector["scores"], rows, strict=True)
    )
    assert scores.hex() == "".join(vector["masked"])
    assert vector["masked"][1] == vector["masked"][4], "a point that was sent twice is a tie"
    assert vector["masked, not sent"] == bytes(16).hex()
    boxes = [bytes.fromhex(box) for box in vector["boxes"]]
    digests = [blind_formats.digest(vector["first box"] + at, box) for at, box in enumerate(boxes)]
    digests.append(hashlib.sha256(scores).digest())
    assert [each.hex() for each in digests] == vector["digests"]
    said = blind_formats.statement("bid", session, vector["round"], vector["owner"], b"".join(digests))
    assert said.hex() == vector["statement"]
    assert owner_key().sign(said).signature.hex() == vector["signature"]
    secret = consumer_key().to_curve25519_private_key()
    opened = [nacl.public.SealedBox(secret).decrypt(box).hex() for box in boxes[:2]]
    assert opened == vector["contents"]
    assert boxes[2] == bytes(len(boxes[0])), "a box of nothing"


@pytest.mark.parametrize(
    "vector", BLIND["bid"]["award"], ids=lambda each: f"{each['handle']} {each['verdict']}"
)
def test_what_a_consumer_finds_of_an_awarded_box(
    vector: dict[str, Any], blind_session: formats.Session
) -> None:
    there = blind_formats.Consumer(
        BLIND, blind_map(blind_session), consumer_key(), owner_key().verify_key
    ).verdict(vector["handle"], bytes.fromhex(vector["box"]), bytes.fromhex(vector["score"]))
    assert there == vector["verdict"]
    assert ours(vector) == vector["verdict"]


def ours(vector: dict[str, Any]) -> str:
    """The code's findings about it."""
    bid = BLIND["bid"]
    session = open_session(load_toml_text(SessionFile, BLIND["toml"], where="session.toml"))
    _, numerics = consumer_party(
        session,
        identity=key_of("consumer"),
        noise=SimulatedNoise(0, "consumer"),
        validation=Dataset.from_arrays("v", np.eye(3)),
        seed_set=Dataset.from_arrays("s", np.eye(3)[::-1] / 2),
        store=lambda purchases: None,
    )
    assert isinstance(numerics, BlindConsumerNumerics)
    seed = bytes.fromhex(BLIND["seed"])
    numerics._keep_seed(seed)
    numerics._map = session.space.map(seed)
    purchase = BlindPurchase(
        owner=bid["owner"],
        bid_round=bid["round"],
        handle=fixed(vector["handle"]),
        score=bytes.fromhex(vector["score"]),
        candidate=BlindCandidate(
            box=bytes.fromhex(vector["box"]),
            digests=bytes.fromhex("".join(bid["digests"])),
            signature=bytes.fromhex(bid["signature"]),
        ),
    )
    weights = np.array(BLIND["broadcast"]["weights"], np.int32)
    award = Award(round=bid["round"], purchases=(purchase,))
    checked = numerics.perform(CheckAward(award, weights, last=False))
    assert isinstance(checked, PurchasesChecked)
    return (checked.delivered[0].dispute or "good") if checked.delivered else "nothing"


def test_the_account_of_a_blind_session(blind_session: formats.Session) -> None:
    vector = BLIND["account"]
    content = blind_formats.account(vector)
    assert content.hex() == vector["content"]
    hashed = hashlib.sha256(content).digest()
    said = blind_formats.statement("account", blind_session.identifier, 0, "", hashed)
    assert said.hex() == vector["statement"]
    assert consumer_key().sign(said).signature.hex() == vector["signature"]


def test_scores_that_cannot_be_linked(blind_session: formats.Session) -> None:
    vector, session = BLIND["unlinked"], blind_session.identifier
    number, batch = vector["round"], vector["batch"]
    count, owner = batch * number, owner_key().to_curve25519_private_key()
    consumer = consumer_key().to_curve25519_private_key()
    pair, key = unlinked_formats.round_key(owner, consumer.public_key, session, number)
    assert unlinked_formats.round_key(consumer, owner.public_key, session, number) == (pair, key)
    assert (pair.hex(), key.hex()) == (vector["pair key"], vector["round key"])
    places = unlinked_formats.in_places(key, count)
    assert [places.index(handle) for handle in range(1, count + 1)] == vector["places of boxes"]
    assert unlinked_formats.in_boxes(key, batch) == vector["best first, in the order of numbers"]
    assert unlinked_formats.drawn(key, "low bits", count, 2) == vector["low bits"]
    assert unlinked_formats.drawn(key, "spare", 1)[0] % batch == vector["spare"]
    told = dict(zip(vector["boxes"], zip(vector["scores"], vector["features"], strict=True), strict=True))
    mask_key, limit = bytes.fromhex(BLIND["keys"]["mask"]), BLIND["masks"]["B"]
    mask = unlinked_formats.scale_and_offset(mask_key, session, number)
    made = [
        unlinked_formats.masked(key, count, handle, told.get(handle), mask, limit)
        for handle in range(1, count + 1)
    ]
    assert [score.hex() for score in made] == vector["masked, by number"]
    assert b"".join(made[handle - 1] for handle in places).hex() == vector["scores of the bid"]
    taken = sorted(places.index(handle) for handle in (1, 2))
    assert b"".join(place.to_bytes(4, "big") for place in taken).hex() == vector["taken, of boxes 1 and 2"]
    assert max(made[handle - 1] for handle in (2, 3, 6)) < min(made[handle - 1] for handle in told)


def owner_key() -> nacl.signing.SigningKey:
    return formats.key_of_file(SESSIONS / "sealed" / "heron.key.txt")


def test_a_place_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be written"):
        write_vectors(tmp_path / "file")
