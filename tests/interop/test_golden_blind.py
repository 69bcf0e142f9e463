"""The golden session of `blind`: its bids follow from the documents; an error names a wrong bid's field."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nacl.signing
import numpy as np
import pytest
from nacl.public import SealedBox

from hushbid.interop.exchange import OWNER, Exchange, Step, read_exchange
from hushbid.interop.mock_curator import difference
from tests.conftest import ROOT
from tests.interop import blind_formats
from tests.interop.minimal import formats
from tests.interop.minimal.feature_map import FeatureMap
from tests.interop.test_golden_sessions import furnished

GOLDEN = ROOT / "docs" / "vectors" / "sessions" / "blind"
BATCH = 3


class Owner:
    """An owner's bids, by docs/wire.md alone."""

    def __init__(self, place: Path) -> None:
        furnished("blind", place)
        self.session = formats.Session.read(place / "session.toml")
        self.key: nacl.signing.SigningKey = formats.key_of_file(place / "owner.key")
        with np.load(place / "data.npz") as file:
            self._points = file["features"]
            pairs = list(zip(file["labels"].tolist(), file["identifiers"].tolist(), strict=True))
        packed = [tuple(map(formats.packed, pair)) for pair in pairs]
        length = 1 + sum(max(map(len, column)) for column in zip(*packed, strict=True))
        self._attributes = [formats.packed(pair).ljust(length, b"\0") for pair in pairs]
        self._sent: list[int | None] = []

    def open(self, box: bytes) -> None:
        seed, _ = formats.open_map(
            box, self.session.identifier, self.session.sealing_key("consumer"), self.key
        )
        feature_map = FeatureMap(self.session.tables["features"], seed)
        self._keys = blind_formats.keys(seed, self.session.identifier)
        self._norm = blind_formats.norm(feature_map)
        self._features = feature_map.hash(self._points)

    def bid(self, number: int, broadcast: bytes) -> dict[str, Any]:
        session = self.session.identifier
        plain = blind_formats.decrypted(broadcast, self._keys[0], session, number)
        weights = np.frombuffer(plain[6:], "<i4").astype(np.int64)  # one axis
        jitter = np.array([formats.jitter_of(session, row) for row in self._features])
        scores = (self._features.astype(np.int64) @ weights[:-1] + weights[-1] * jitter).tolist()
        limit = blind_formats.bound(weights.tolist(), self._norm, jitter=True)

        def masked(row: int | None) -> bytes:
            phi = None if row is None else self._features[row]
            score = 0 if row is None else scores[row]
            return blind_formats.masked(score, phi, self._keys[1], session, number, limit)

        left = set(range(len(scores))) - set(self._sent)
        order = sorted(left, key=lambda row: (-int.from_bytes(masked(row), "big"), row))
        new = [*order, *[None] * BATCH][:BATCH]
        first = len(self._sent) + 1
        self._sent += new
        least = min(map(masked, new))
        told = b"".join(mask if (mask := masked(row)) >= least else bytes(16) for row in self._sent)
        return self.signed(number, first, [self._box(row) for row in new], told)

    def signed(self, number: int, first: int, boxes: list[bytes], scores: bytes) -> dict[str, Any]:
        digests = [blind_formats.digest(first + at, box) for at, box in enumerate(boxes)]
        whole = b"".join([*digests, hashlib.sha256(scores).digest()])
        statement = blind_formats.statement("bid", self.session.identifier, number, OWNER, whole)
        said = {"kind": "blind-bid", "round": number, "boxes": b"".join(boxes), "scores": scores}
        return {**said, "digests": whole, "signature": self.key.sign(statement).signature}

    def _box(self, row: int | None) -> bytes:
        size = self.session.tables["acquisition"]["box_bytes"]
        if row is None:
            return bytes(size + 48)
        content = formats.content_of(self._points[row], self._attributes[row], size)
        return SealedBox(self.session.sealing_key("consumer")).encrypt(content)


@pytest.fixture
def owner(tmp_path: Path) -> Owner:
    return Owner(tmp_path)


def bids(owner: Owner, exchange: Exchange) -> Iterator[tuple[Step, dict[str, Any]]]:
    """Each recorded bid, and the owner's own."""
    said: dict[str, Any] = {}
    for step in exchange.steps:
        message = formats.message_of(formats.Frame.read(step.data).body)
        if message["kind"] == "secret-map":
            owner.open(message["box"])
        elif message["kind"] == "sealed-broadcast":
            said = owner.bid(message["round"], message["box"])
        elif message["kind"] == "blind-bid":
            yield step, said


def compared(exchange: Exchange, step: Step, said: dict[str, Any]) -> str:
    """The finding about a bid in place of the recorded one."""
    frame = formats.Frame.read(step.data)
    data = frame._replace(body=formats.packed(said)).data
    return str(difference(exchange.session, step, data, 1, frame.acknowledged) or "")


def test_the_bids_are_those_that_the_documents_make(owner: Owner) -> None:
    exchange = read_exchange(GOLDEN)
    sizes = []
    for step, said in bids(owner, exchange):
        assert compared(exchange, step, said) == ""
        sizes.append(len(said["scores"]) // 16)
        recorded = formats.message_of(formats.Frame.read(step.data).body)
        if any(said["boxes"]):
            assert said["boxes"] != recorded["boxes"], "boxes are the owner's own"
    assert sizes == [3, 6, 9, 12, 15, 18]


def another_score(owner: Owner, said: dict[str, Any]) -> dict[str, Any]:
    return {**said, "scores": said["scores"][:-1] + bytes([said["scores"][-1] ^ 1])}


def another_point(owner: Owner, said: dict[str, Any]) -> dict[str, Any]:
    size = len(said["boxes"]) // BATCH
    boxes = [said["boxes"][at : at + size] for at in range(0, len(said["boxes"]), size)]
    return owner.signed(said["round"], 4, [boxes[1], boxes[0], boxes[2]], said["scores"])


def sealed_nothing(owner: Owner, said: dict[str, Any]) -> dict[str, Any]:
    size = len(said["boxes"]) // BATCH
    nothing = SealedBox(owner.session.sealing_key("consumer")).encrypt(bytes(size - 48))
    boxes = [said["boxes"][:size], said["boxes"][size : 2 * size], nothing]
    return owner.signed(said["round"], 4, boxes, said["scores"])


def numbered_from_1_again(owner: Owner, said: dict[str, Any]) -> dict[str, Any]:
    size = len(said["boxes"]) // BATCH
    boxes = [said["boxes"][at : at + size] for at in range(0, len(said["boxes"]), size)]
    return owner.signed(said["round"], 1, boxes, said["scores"])


def without_the_scores(owner: Owner, said: dict[str, Any]) -> dict[str, Any]:
    return {**said, "digests": said["digests"][:-32] + bytes(32)}


def of_another_key(owner: Owner, said: dict[str, Any]) -> dict[str, Any]:
    return {**said, "signature": bytes(64)}


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        (another_score, "field scores, byte "),
        (another_point, "field boxes: of box 4: byte "),
        (sealed_nothing, "field boxes: of box 6: a box of nothing is zeros"),
        (numbered_from_1_again, "field digests: of box 4: it is not that of its number and the box"),
        (without_the_scores, "field digests: the last one is not that of the scores"),
        (of_another_key, "field signature: it is not the owner's over the digests"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_of_a_wrong_bid_the_field_is_named(
    wrong: Callable[[Owner, dict[str, Any]], dict[str, Any]], what: str, owner: Owner
) -> None:
    exchange = read_exchange(GOLDEN)
    _, (step, said) = [next(found) for found in [bids(owner, exchange)] for _ in range(2)]
    assert what in compared(exchange, step, wrong(owner, said))
