"""Be a session's consumer: ``python -m tests.interop.minimal.consumer``, with four files as options.

It buys under the rules `ask-all`, `sealed` and `tender`, with a target released without noise: other
mechanisms need securely drawn noise. It keeps no transcript and no ledger. It was written from docs/wire.md
and docs/protocol.md. It prints one JSON object; exit codes are as in `__main__`.
"""

from __future__ import annotations

import json
import secrets
import sys
from collections import Counter
from typing import Any

import nacl.exceptions
import nacl.signing
import numpy as np
import numpy.typing as npt
from nacl.public import Box, PublicKey, SealedBox

from tests.interop.minimal import formats
from tests.interop.minimal.checks import owner_signed, root_of
from tests.interop.minimal.feature_map import FeatureMap
from tests.interop.minimal.formats import Session
from tests.interop.minimal.line import Message, Party, run, signing_key


class Consumer(Party):
    """A consumer's answer to each message; its key signs, seals the map and opens boxes."""

    role = "consumer"

    def __init__(
        self,
        session: Session,
        key: nacl.signing.SigningKey,
        validation: npt.NDArray[Any],
        seed_set: npt.NDArray[Any],
    ) -> None:
        if session.tables["target"]["mechanism"] != "exact":
            raise ValueError("this consumer releases nothing but what is exact")
        super().__init__(session, "consumer", key)
        self._own, self._seed_set = validation, seed_set
        self._features = session.tables["features"]
        self._sealed = session.rule in formats.SEALED
        seed = secrets.token_bytes(32) if self._sealed else self._features["seed"]
        self._seed, self._map = seed, FeatureMap(self._features, seed)
        self.public = None if self._sealed else self._map.digest
        self.points: list[npt.NDArray[Any]] = []
        self.sold: Counter[str] = Counter()
        """Points of each owner that are as they should be."""
        self.disputes: list[str] = []
        self.roots: dict[str, bytes] = {}
        """What each owner committed to."""
        self._opening = 20 + 32 * session.depth if session.depth else 0
        """Bytes in front of a content."""
        self._numbers: set[tuple[str, int]] = set()
        self._part = 0

    def begin(self) -> Message | None:
        """The target, unless owners commit to their rows before that."""
        return None if self.session.depth else self._target()

    def _target(self) -> Message:
        total = self._map.hash(self._own).sum(axis=0, dtype=np.int64)
        seed_total = self._map.hash(self._seed_set).sum(axis=0, dtype=np.int64)
        owners = sorted(self.session.tables["roster"]["owners"])
        return {
            "kind": "target",
            "embedding": total / len(self._own) / 2.0**15,
            "size": len(self._own),
            "seed_total": seed_total,
            "seed_size": len(self._seed_set),
            "maps": b"".join(map(self._sealed_map, owners)) if self._sealed else b"",
            "noise": "none",
        }

    def _sealed_map(self, owner: str) -> bytes:
        own, theirs = self._key.to_curve25519_private_key(), self.session.sealing_key(owner)
        binding = formats.map_binding(self.session.identifier, own.public_key, theirs)
        content = binding + self._seed + self._map.digest
        return bytes(Box(own, theirs).encrypt(content))  # the nonce stands before it

    def told(self, kind: str, message: Message) -> Message:
        """The answer to a message of the rounds."""
        if kind == "delivery":
            return self._take(message)
        if kind == "roots":
            self._keep(message)
            return self._target()
        return super().told(kind, message)

    def _keep(self, roots: Message) -> None:
        """Keep the root of its rows that each owner signed."""
        for at, owner in enumerate(sorted(self.session.tables["roster"]["owners"])):
            root, signature = roots["roots"][32 * at :][:32], roots["signatures"][64 * at :][:64]
            if any(signature):
                said = formats.rows_statement(self.session.identifier, owner, self.session.depth, root)
                self.session.verify_key(owner).verify(said, signature)
                self.roots[owner] = root

    def _take(self, delivery: Message) -> Message:
        if delivery["part"] != self._part + 1:
            raise ValueError(f"part {delivery['part']} came after part {self._part}")
        self._part = delivery["part"]
        bits = []
        for purchase in delivery["purchases"]:
            number = purchase["owner"], int(purchase["handle"][0])
            if number in self._numbers:
                raise ValueError("a point is delivered a second time")
            self._numbers.add(number)
            wrong = self.wrong(purchase)
            bits.append(bool(wrong))
            if wrong:
                self.disputes.append(wrong)
            else:
                self.sold[purchase["owner"]] += 1
        return {"kind": "receipt", "part": self._part, "disputed": np.packbits(bits).tobytes()}

    def wrong(self, purchase: Message) -> str:
        """Why a point is disputed; empty if it is not."""
        candidate = purchase["candidate"]
        point = candidate.get("point")
        if self._sealed:
            try:
                content = self._opened(candidate["box"], int(purchase["handle"][0]))
                opening, content = content[: self._opening], content[self._opening :]
                length = int.from_bytes(content[:4], "big")
                pair: Any = formats.message_of(content[4 : 4 + length])
                point = pair[0]
            except (nacl.exceptions.CryptoError, ValueError, TypeError, LookupError):
                return "the box does not open, or holds no point"
            if not owner_signed(self.session, purchase):
                return "the signature does not hold"
            row = formats.leaf(opening[:16], point, pair[1])
            if self._opening and root_of(opening, row) != self.roots.get(purchase["owner"]):
                return "the row is none that its owner committed to"
        if point.shape != (self._features["columns"],):
            return "the point has other columns"
        lower, upper = self._features["lower"], self._features["upper"]
        if not np.all((point >= lower) & (point <= upper)):  # no number is neither
            return "the point lies outside of the bounds"
        if not np.array_equal(self._map.hash(point[None])[0], candidate["features"]):
            return "the features are not those of the point"
        self.points.append(point)
        return ""

    def _opened(self, box: bytes, number: int) -> bytes:
        own = self._key.to_curve25519_private_key()
        if not self.session.numbered:
            return bytes(SealedBox(own).decrypt(box))
        nonce = formats.box_nonce(box[:32], own.public_key, number)
        return bytes(Box(own, PublicKey(box[:32])).decrypt(box[32:], nonce))


def consumer(session: Session, key: nacl.signing.SigningKey, **files: str) -> Consumer:
    """The consumer of these files' rows."""
    rows = []
    for name in ("validation", "seed_set"):
        with np.load(files[name]) as file:
            rows.append(file["features"])
    return Consumer(session, signing_key(session, "consumer", key), *rows)


def main() -> int:
    party, code = run(consumer, "validation", "seed-set", prog="minimal consumer")
    assert isinstance(party, Consumer), "made above"
    said = {"outcome": party.outcome, "sold": party.sold, "disputes": party.disputes}
    print(json.dumps(said))
    return code


if __name__ == "__main__":
    sys.exit(main())
