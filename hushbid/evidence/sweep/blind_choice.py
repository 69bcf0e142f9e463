"""The required outcome of a blind session, in the clear: contents of boxes and greedy selection."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from hushbid.evidence.sweep.blind_on_record import BidOnRecord, Weighed
from hushbid.protocol.crypto.blinding import MASK_BYTES, NOT_SENT, Mask, blind_bid_statement, blind_digest
from hushbid.protocol.crypto.sealing import DIGEST_BYTES, open_sealed, unpack_content, verify_signature
from hushbid.protocol.crypto.unlinking import OwnMask, PairKey
from hushbid.protocol.data import Dataset
from hushbid.protocol.errors import RemoteProtocolError
from hushbid.protocol.names import CONSUMER
from hushbid.protocol.session.points import hash_dataset, hash_points, mapped
from hushbid.protocol.session.session import Session
from hushbid.protocol.space.grid import Features, Weights
from hushbid.protocol.space.jitter import scores_of
from hushbid.protocol.space.scoring import score_bound
from hushbid.protocol.wire.blind import Award, BlindPurchase
from hushbid.protocol.wire.messages import unfixed

__all__ = ["Best", "Opened", "Reference", "opened"]

_NOTHING: Final = np.zeros(0, dtype=np.int16)


class Opened(NamedTuple):
    """The contents of an awarded box.

    Attributes:
        features: φ of its point; empty if no point in it counts.
        wrong: Whether the box is void, or holds a point other than the scored one.
    """

    owner: str
    features: Features
    wrong: bool

    @property
    def counts(self) -> bool:
        """Whether its point is in S: a point that only has a wrong score counts as it is."""
        return len(self.features) > 0


def opened(session: Session, weighed: Weighed, award: Award) -> list[Opened]:
    """Open the boxes of an award, in its order, with the consumer's keys.

    Everybody has them in a simulated session.
    """
    weights = dict(weighed.weights)[award.round]
    mask = _mask(session, weighed, award.round, weights)
    found = []
    for purchase in award.purchases:
        held = _held(session, purchase)
        if isinstance(held, bytes):
            # Empty: that is correct if it was scored and signed as empty.
            wrong = not _signed(session, purchase) or not _is_of_nothing(session, award.round, purchase, mask)
            found.append(Opened(purchase.owner, _NOTHING, wrong))
            continue
        features = None
        if held is not None:
            point, attributes = held
            schema = session.file.rows
            features = hash_points(weighed.map(session), (point,), (attributes,), schema=schema)
        if features is None or not mapped(features)[0] or not _signed(session, purchase):
            found.append(Opened(purchase.owner, _NOTHING, True))
            continue
        scores = scores_of(features, weights, session.jitter)
        wrong = not _fits(session, award.round, purchase, mask, int(scores[0]), features)
        found.append(Opened(purchase.owner, features[0], wrong))
    return found


def _held(session: Session, purchase: BlindPurchase) -> tuple[npt.NDArray[Any], bytes] | bytes | None:
    """The point in a box, with its attributes; no bytes if it is empty; None if it is void."""
    box = purchase.candidate.box
    if not any(box):
        return b""
    try:
        content = open_sealed(box, session.simulated_identity(CONSUMER).sealing)
        if session.unlinked and not any(content):
            return b""
        point, attributes = unpack_content(content)
    except RemoteProtocolError:
        return None
    return (point, attributes) if point.shape == (session.space.columns,) else None


def _own_mask(session: Session, number: int, owner: str, mask: Mask) -> OwnMask:
    secret, other = session.simulated_identity(owner).sealing, session.public_identity(CONSUMER).sealing
    return OwnMask(mask, PairKey(secret, other, session.identifier).places(number, session.batch))


def _is_of_nothing(session: Session, number: int, purchase: BlindPurchase, mask: Mask) -> bool:
    if session.unlinked:
        return _own_mask(session, number, purchase.owner, mask).is_floor(purchase.score)
    return purchase.score == mask.of_nothing


def _fits(
    session: Session, number: int, purchase: BlindPurchase, mask: Mask, score: int, features: Features
) -> bool:
    if session.unlinked:
        return _own_mask(session, number, purchase.owner, mask).fits(purchase.score, score, features[0])
    return mask.of([score], features) == [purchase.score]


def _signed(session: Session, purchase: BlindPurchase) -> bool:
    candidate, handle = purchase.candidate, unfixed(purchase.handle)
    statement = blind_bid_statement(
        session.identifier, purchase.owner, purchase.bid_round, [candidate.digests]
    )
    at = DIGEST_BYTES * ((handle - 1) % session.batch)
    own = candidate.digests[at : at + DIGEST_BYTES]
    key = session.public_identity(purchase.owner).verify
    return own == blind_digest(handle, candidate.box) and verify_signature(
        statement, candidate.signature, key
    )


def _mask(session: Session, weighed: Weighed, number: int, weights: Weights) -> Mask:
    bound = score_bound(weights, session.space.coordinate_bound, session.jitter)
    return weighed.keys(session).mask(number, bound)


class Best(NamedTuple):
    """A box that selection chooses.

    Attributes:
        score: Its masked score.
        features: φ of its point, for an honest owner; empty if the box is empty or its owner lies.
        row: The owner's row number, for an honest owner; otherwise the box's number.
    """

    owner: str
    score: bytes
    features: bytes
    row: int


class Reference:
    """Greedy selection in the clear, round after round.

    For honest owners it uses all their points, sent or not. For an owner that breaks the protocol it uses
    what the owner said about its boxes.
    """

    def __init__(
        self, session: Session, weighed: Weighed, data: Mapping[str, Dataset], honest: Collection[str]
    ) -> None:
        self._session, self._weighed = session, weighed
        feature_map = weighed.map(session)
        self._features = {owner: hash_dataset(feature_map, data[owner]) for owner in honest}
        self._ranks = {owner: rank for rank, owner in enumerate(session.file.owners)}
        self._weights = dict(weighed.weights)
        self._taken: dict[str, set[int]] = {owner: set() for owner in session.file.owners}

    def choose(self, number: int, bids: Mapping[str, Sequence[BidOnRecord]]) -> list[Best]:
        """The best boxes of a round, best first.

        Args:
            bids: The bids of each present owner so far, this round's last.
        """
        weights = self._weights[number]
        mask = _mask(self._session, self._weighed, number, weights)
        found: list[Best] = []
        for owner, sent in bids.items():
            found += (
                self._honest(owner, sent, weights, mask)
                if owner in self._features
                else self._said(owner, sent[-1])
            )
        found.sort(key=self._place)
        chosen = found[: self._session.bought_in(number)]
        for each in chosen:
            self._taken[each.owner].add(each.row)
        return chosen

    def _place(self, each: Best) -> tuple[int, int, int]:
        """Highest score first, then by the owner's rank, then by the owner's order."""
        return -int.from_bytes(each.score, "big"), self._ranks[each.owner], each.row

    def _honest(
        self, owner: str, sent: Sequence[BidOnRecord], weights: Weights, mask: Mask
    ) -> Iterator[Best]:
        features = self._features[owner]
        scores = mask.of(scores_of(features, weights, self._session.jitter).tolist(), features)
        for row, score in enumerate(scores):
            if row not in self._taken[owner]:
                yield Best(owner, score, features[row].tobytes(), row)
        # Padding follows once all points were sent.
        for row in range(len(features), self._session.batch * len(sent)):
            if row not in self._taken[owner]:
                yield Best(owner, mask.of_nothing, b"", row)

    def _said(self, owner: str, last: BidOnRecord) -> Iterator[Best]:
        scores = last.bid.scores
        for handle in range(1, len(scores) // MASK_BYTES + 1):
            score = scores[MASK_BYTES * (handle - 1) : MASK_BYTES * handle]
            if score != NOT_SENT and handle not in self._taken[owner]:
                yield Best(owner, score, b"", handle)
