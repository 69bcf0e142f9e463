"""The correct outcome of a blind session, computed in the clear: contents of boxes and greedy selection."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from hushbid.evidence.sweep.blind_on_record import BidOnRecord, Weighed
from hushbid.protocol.crypto.blinding import MASK_BYTES, NOT_SENT, Mask, blind_bid_statement, blind_digest
from hushbid.protocol.crypto.commitment import Opening, row_leaf
from hushbid.protocol.crypto.sealing import DIGEST_BYTES, open_sealed, unpack_content, verify_signature
from hushbid.protocol.crypto.unlinking import OwnMask
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

__all__ = ["ChosenBox", "Opened", "ReferenceGreedy", "opened"]

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
    """Open the boxes of an award, in its order, with the consumer's keys: everybody here has them."""
    weights = dict(weighed.weights)[award.round]
    mask = _mask(session, weighed, award.round, weights)
    found = []
    for purchase in award.purchases:
        held = _held(session, weighed, purchase)
        own = None
        if session.unlinked:
            own = OwnMask(mask, weighed.places(session, purchase.owner, award.round))
        if isinstance(held, bytes):
            nothing = purchase.score == mask.of_nothing if own is None else own.is_floor(purchase.score)
            wrong = not (_signed(session, purchase) and nothing)
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
        if own is not None:
            wrong = not own.fits(purchase.score, int(scores[0]), features[0])
        else:
            wrong = mask.of(scores.tolist(), features) != [purchase.score]
        found.append(Opened(purchase.owner, features[0], wrong))
    return found


def _held(
    session: Session, weighed: Weighed, purchase: BlindPurchase
) -> tuple[npt.NDArray[Any], bytes] | bytes | None:
    """The point in a box, with its attributes; no bytes if it is empty; None if it is void."""
    box = purchase.candidate.box
    if not any(box):
        # Where the curator cannot link, empty boxes are sealed too; zeros stand for a box that never came.
        return None if session.unlinked else b""
    try:
        number = unfixed(purchase.handle) if session.numbered_boxes else None
        content = open_sealed(box, session.simulated_identity(CONSUMER).sealing, number=number)
        if session.unlinked and not any(content):
            return b""
        split = Opening.split(content, session.commitment_depth) if weighed.roots else (None, content)
        if split is None:
            return None
        opening, content = split
        point, attributes = unpack_content(content)
    except RemoteProtocolError:
        return None
    if weighed.roots is not None and opening is not None:
        committed = weighed.roots.of(session.file.owners).get(purchase.owner)
        if committed is None or opening.root(row_leaf(opening.salt, point, attributes)) != committed.root:
            return None
    return (point, attributes) if point.shape == (session.space.columns,) else None


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


class ChosenBox(NamedTuple):
    """A box that selection chooses.

    Attributes:
        score: Its masked score, or the highest possible one.
        features: φ of its point, for an honest owner; empty if the box is empty or its owner lies.
        row: The owner's row number, for an honest owner; otherwise the box's number.
    """

    owner: str
    score: bytes
    features: bytes
    row: int
    spread: int = 0
    """By how much the score may be lower."""
    place: int = 0
    """Position of its score in the bid, where that breaks ties."""


class ReferenceGreedy:
    """Greedy selection in the clear, by all points of honest owners and what others said of their boxes."""

    def __init__(
        self, session: Session, weighed: Weighed, data: Mapping[str, Dataset], honest: Collection[str]
    ) -> None:
        self._session, self._weighed = session, weighed
        feature_map = weighed.map(session)
        self._features = {owner: hash_dataset(feature_map, data[owner]) for owner in honest}
        self._ranks = {owner: rank for rank, owner in enumerate(session.file.owners)}
        self._weights = dict(weighed.weights)
        self._taken: dict[str, set[int]] = {owner: set() for owner in session.file.owners}

    def choose(self, number: int, bids: Mapping[str, Sequence[BidOnRecord]]) -> list[ChosenBox]:
        """The best boxes of a round, best first.

        Args:
            bids: The bids of each present owner so far, this round's last.
        """
        weights = self._weights[number]
        mask = _mask(self._session, self._weighed, number, weights)
        found: list[ChosenBox] = []
        for owner, sent in bids.items():
            honest = owner in self._features
            if self._session.unlinked:
                places = self._weighed.places(self._session, owner, number)
                found += self._in_places(owner, sent[-1], weights, OwnMask(mask, places), honest=honest)
            elif honest:
                found += self._honest(owner, sent, weights, mask)
            else:
                found += self._said(owner, sent[-1])
        found.sort(key=self._place)
        chosen = found[: self._session.bought_in(number)]
        for each in chosen:
            self._taken[each.owner].add(each.row)
        return chosen

    def _place(self, each: ChosenBox) -> tuple[int, ...]:
        """Highest score first, then by the owner's rank, then by the owner's order."""
        return -int.from_bytes(each.score, "big"), self._ranks[each.owner], each.place, each.row

    def _honest(
        self, owner: str, sent: Sequence[BidOnRecord], weights: Weights, mask: Mask
    ) -> Iterator[ChosenBox]:
        features = self._features[owner]
        scores = mask.of(scores_of(features, weights, self._session.jitter).tolist(), features)
        for row, score in enumerate(scores):
            if row not in self._taken[owner]:
                yield ChosenBox(owner, score, features[row].tobytes(), row)
        # Padding follows once all points are sent.
        for row in range(len(features), self._session.batch * len(sent)):
            if row not in self._taken[owner]:
                yield ChosenBox(owner, mask.of_nothing, b"", row)

    def _in_places(
        self, owner: str, last: BidOnRecord, weights: Weights, mask: OwnMask, *, honest: bool
    ) -> Iterator[ChosenBox]:
        """An honest owner's points, and any owner's other statements, by this round's places.

        The lowest bits of a point's score depend on its box, which is unknown until it is sent.
        """
        if honest:
            features = self._features[owner]
            scores = scores_of(features, weights, self._session.jitter).tolist()
            for row, score in enumerate(scores):
                if row not in self._taken[owner]:
                    highest = mask.highest(score, features[row])
                    yield ChosenBox(owner, highest, features[row].tobytes(), row, mask.SPREAD)
        for place in range(len(last.bid.scores) // MASK_BYTES):
            score = last.bid.scores[MASK_BYTES * place : MASK_BYTES * (place + 1)]
            box = -mask.places.handle(place)
            if score != NOT_SENT and box not in self._taken[owner] and (mask.is_floor(score) or not honest):
                yield ChosenBox(owner, score, b"", box, place=place)

    def _said(self, owner: str, last: BidOnRecord) -> Iterator[ChosenBox]:
        scores = last.bid.scores
        for handle in range(1, len(scores) // MASK_BYTES + 1):
            score = scores[MASK_BYTES * (handle - 1) : MASK_BYTES * handle]
            if score != NOT_SENT and handle not in self._taken[owner]:
                yield ChosenBox(owner, score, b"", handle)
