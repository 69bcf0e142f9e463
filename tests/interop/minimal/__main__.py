"""Take part in a session: ``python -m tests.interop.minimal --session F --name N --key F --data F.npz``.

It keeps no transcript, so it cannot be restarted; it reconnects after a lost connection. Exit codes: 0 the
session is complete, 1 it was abandoned, 2 refused or broken, 3 the curator is gone.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import nacl.signing
import numpy as np
import numpy.typing as npt
from nacl.public import PrivateKey, SealedBox

from tests.interop.minimal import formats
from tests.interop.minimal.choice import aimed, chosen
from tests.interop.minimal.commitments import Rows
from tests.interop.minimal.feature_map import FeatureMap
from tests.interop.minimal.formats import Session, number, packed
from tests.interop.minimal.line import Message, Party, run, signing_key


class Owner(Party):
    """An owner's answer to each message; its key signs and opens the map, `data` is a file of points."""

    role = "owner"

    def __init__(self, session: Session, name: str, key: nacl.signing.SigningKey, data: Path) -> None:
        super().__init__(session, name, key)
        with np.load(data) as file:
            points: npt.NDArray[Any] = file["features"]
            none = [None] * len(points)
            columns = [file[each].tolist() if each in file else none for each in ("labels", "identifiers")]
        length = 1 + sum(max(len(packed(value)) for value in column) for column in columns)
        self._attributes = [packed(pair).ljust(length, b"\0") for pair in zip(*columns, strict=True)]
        # Behind the points stands their padding, under the number 0, which is never bid as a point.
        self._padding = len(points)
        self._points = np.pad(points, ((0, 1), (0, 0)))
        self._attributes.append(bytes(length))
        self._handles = {self._padding: 0}
        self._gone = {self._padding}
        self._last = (0, 0, self._padding)
        if "seed" in session.tables["features"]:
            self.public = self._use(session.tables["features"]["seed"])

    def _use(self, seed: int | bytes) -> bytes:
        """Hash all points by the map of a seed; returns the map's digest."""
        feature_map = FeatureMap(self.session.tables["features"], seed)
        self._features = np.pad(feature_map.hash(self._points[:-1]), ((0, 1), (0, 0)))
        self._scored = self._features.astype(np.int64)
        if self.session.tables["session"]["jitter"]:
            jitter = [formats.jitter_of(self.session.identifier, row) for row in self._features[:-1]]
            self._scored = np.column_stack([self._scored, [*jitter, 0]])
        return feature_map.digest

    def begin(self) -> Message | None:
        """An owner commits to its rows, or waits to be asked."""
        if not (depth := self.session.depth):
            return None
        self._rows = Rows(self._points[:-1], self._attributes, depth)
        said = formats.rows_statement(self.session.identifier, self.name, depth, self._rows.root)
        return {"kind": "commitment", "root": self._rows.root, "signature": self.sign(said)}

    def told(self, kind: str, message: Message) -> Message:
        """The answer to a message of the rounds."""
        if kind == "secret-map":
            return self._open(message["box"])
        if kind == "broadcast":
            return self._bid(message["round"], message["weights"])
        if kind == "call":
            self._submission = self._submitted(message)
        if kind in ("call", "next"):
            return next(self._submission)
        if kind == "ask":
            return self._offer(message["round"], int(message["handle"][0]))
        return super().told(kind, message)

    def _open(self, box: bytes) -> Message:
        consumer = self.session.sealing_key("consumer")
        seed, digest = formats.open_map(box, self.session.identifier, consumer, self._key)
        if self._use(seed) != digest:
            raise ValueError("the consumer's map is another one than its seed makes here")
        return {"kind": "ready"}

    def _bid(self, round_: int, weights: npt.NDArray[np.int32]) -> Message:
        room = self.session.tables["session"]["batch"]
        left = set(range(self._padding)) - self._gone
        found = (self._scored @ weights.astype(np.int64)).tolist()
        order = sorted(left, key=lambda row: (-found[row], self._features[row].astype("<i2").tobytes(), row))
        rows = (order + [self._padding] * room)[:room]
        with_points = self.session.rule in formats.WITH_POINTS
        self._gone.update(rows if with_points else ())
        if room > 1:
            return self._batch("batch", round_, found, rows)
        handle = self._handles.setdefault(rows[0], len(self._handles))
        self._last = (round_, handle, rows[0])
        one = self._one(round_, handle, rows[0]) if with_points else None
        said = {"kind": "bid", "round": round_, "exhausted": not left, "score": number(found[rows[0]])}
        return {**said, "handle": number(handle), "candidate": one}

    def _submitted(self, call: Message) -> Iterator[Message]:
        table, features = self.session.tables["session"], self._features[:-1]
        found = (self._scored @ call["weights"].astype(np.int64)).tolist()
        order = chosen(*aimed(self.session.tables["target"]["mechanism"], call, features), features)
        room, most = table["batch"], -(-table["submission"] // table["batch"]) * table["batch"]
        rows = [*islice(order, most), *[self._padding] * most]
        for at in range(0, most, room):
            yield self._batch("submission", call["round"], found, rows[at : at + room])

    def _offer(self, round_: int, handle: int) -> Message:
        row = self._last[2]
        if self._last[:2] != (round_, handle) or row in self._gone:
            raise ValueError("the curator asks for another point than was bid")
        self._gone.add(row)
        return {"kind": "offer", "round": round_, "handle": number(handle), "candidate": self._candidate(row)}

    def _candidate(self, row: int) -> Message:
        point, features = self._points[row], self._features[row]
        return {"point": point, "features": features, "attributes": self._attributes[row]}

    def _box(self, row: int, handle: int = 0, shared: PrivateKey | None = None) -> bytes:
        size, consumer = self.session.tables["acquisition"]["box_bytes"], self.session.sealing_key("consumer")
        if row == self._padding:
            return bytes(self.session.box_bytes)
        content = self._rows.opening(row) if self.session.depth else b""
        content += formats.content_of(self._points[row], self._attributes[row], size)
        if shared:
            return formats.numbered_box(content, handle, consumer, shared)
        return SealedBox(consumer).encrypt(content)

    def _ephemeral(self) -> PrivateKey | None:
        """The key of all numbered boxes of a message."""
        return PrivateKey.generate() if self.session.numbered else None

    def _one(self, round_: int, handle: int, row: int) -> Message:
        if self.session.rule != "sealed":
            return self._candidate(row)
        box, features = self._box(row, handle, self._ephemeral()), self._features[row]
        place, hashed = (self.session.identifier, self.name, round_, handle), formats.hashed(box, features)
        signature = self.sign(formats.candidate_statement(*place, hashed)) if handle else bytes(64)
        return {"features": features, "box": box, "signature": signature}

    def _batch(self, kind: str, round_: int, found: list[int], rows: list[int]) -> Message:
        handles = [self._handles.setdefault(row, len(self._handles)) for row in rows]
        scores = number(*(found[row] for row in rows))
        said = {"kind": kind, "round": round_, "scores": scores, "handles": number(*handles)}
        return {**said, "candidates": self._candidates(round_, handles, rows)}

    def _candidates(self, round_: int, handles: list[int], rows: list[int]) -> Message:
        features = self._features[rows].reshape(-1)
        if self.session.rule not in formats.SEALED:
            attributes = b"".join(self._attributes[row] for row in rows)
            return {"points": self._points[rows].reshape(-1), "features": features, "attributes": attributes}
        shared, tender = self._ephemeral(), self.session.rule == "tender"
        boxes = [self._box(row, handle, shared) for row, handle in zip(rows, handles, strict=True)]
        digests = b"".join(
            map(formats.batched_digest, handles, map(formats.hashed, boxes, self._features[rows]))
        )
        statement = formats.submission_statement if tender else formats.batch_statement
        signature = self.sign(statement(self.session.identifier, self.name, round_, digests))
        return {"features": features, "boxes": b"".join(boxes), "digests": digests, "signature": signature}


def owner(session: Session, key: nacl.signing.SigningKey, name: str, data: str) -> Owner:
    """The owner of that name."""
    return Owner(session, name, signing_key(session, name, key), Path(data))


def main() -> int:
    return run(owner, "name", "data", prog="minimal")[1]


if __name__ == "__main__":
    sys.exit(main())
