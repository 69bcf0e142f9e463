"""Parties of blind sessions for an audit: an owner that sends a void box, and some that break a rule."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any, TypeAlias, cast

from hushbid.curator.round import Round
from hushbid.curator.selection.blind import BlindSelection
from hushbid.evidence.audit.attack import ConsumerParty, CuratorParty, OwnerParty
from hushbid.evidence.audit.broken import OtherOutcomes
from hushbid.owner.events import BlindScored, ScoreBlind
from hushbid.owner.party import owner_party
from hushbid.protocol.crypto.blinding import MASK_BYTES, BlindKeys, Mask, blind_bid_statement, blind_digest
from hushbid.protocol.crypto.sealing import open_sealed, sign
from hushbid.protocol.data import Dataset
from hushbid.protocol.errors import RemoteProtocolError
from hushbid.protocol.machine.machine import Computation, Event
from hushbid.protocol.names import CONSUMER
from hushbid.protocol.session.session import Session
from hushbid.protocol.space.grid import Features
from hushbid.protocol.wire.arrays import Array
from hushbid.protocol.wire.blind import Award, BlindBid
from hushbid.protocol.wire.unlinked import Choice

__all__ = [
    "excluding_for_void_boxes",
    "masks_off",
    "one_nonce",
    "sending_a_void_box",
    "taking_shorter_bids",
    "without_padding",
]

OwnerMaker: TypeAlias = Callable[..., OwnerParty]
ConsumerMaker: TypeAlias = Callable[..., ConsumerParty]


# -- an attacker --------------------------------------------------------------------------------------


class _VoidBox(OtherOutcomes):
    """Numerics of an owner that hands over a void box instead of one of its points, and signs it."""

    def __init__(self, session: Session, name: str, numerics: Any, row: int) -> None:
        super().__init__(numerics)
        self._session, self._name, self._row = session, name, row

    def _reported(self, effect: Computation, outcome: Event | None) -> Event | None:
        if type(effect) is not ScoreBlind or not isinstance(outcome, BlindScored):
            return outcome
        size = self._session.box_length
        boxes = [outcome.boxes[at : at + size] for at in range(0, len(outcome.boxes), size)]
        boxes = [
            b"\xff" * size if row == self._row else box for row, box in zip(outcome.rows, boxes, strict=True)
        ]
        digests = [blind_digest(effect.handle + place, box) for place, box in enumerate(boxes)]
        digests.append(hashlib.sha256(outcome.scores).digest())
        statement = blind_bid_statement(self._session.identifier, self._name, effect.round, digests)
        return replace(
            outcome,
            boxes=b"".join(boxes),
            digests=b"".join(digests),
            signature=sign(statement, self._session.simulated_identity(self._name).signing),
        )


def sending_a_void_box(liar: str, *, row: int) -> OwnerMaker:
    """Makes owners, one of which hands over a box that does not open instead of one of its points."""

    def owner(session: Session, name: str, dataset: Dataset, **given: Any) -> OwnerParty:
        machine, numerics = owner_party(session, name, dataset, **given)
        if name != liar:
            return machine, numerics
        return machine, _VoidBox(session, name, numerics, row)

    return owner


# -- the choice ---------------------------------------------------------------------------------------


class _ExcludesForVoidBoxes(BlindSelection):
    """A curator that learns of a void box when it is bought, and excludes its owner from then on."""

    def choose(self, current: Round, present: AbstractSet[str]) -> Award | Choice:
        before = len(self._ledger.wins)
        award = super().choose(current, present)
        key = self._session.simulated_identity(CONSUMER).sealing
        for win in self._ledger.wins[before:]:
            box = cast("Any", win.candidate).box
            try:
                if any(box):
                    number = win.handle if self._session.numbered_boxes else None
                    open_sealed(box, key, number=number)
            except RemoteProtocolError:
                self._seats[win.owner].faulty = True
        return award


class _TakesShorterBids(BlindSelection):
    """A curator that accepts bids with scores of fewer boxes than were sent: the rest have none."""

    def take_bid(self, owner: str, bid: BlindBid) -> None:
        due = MASK_BYTES * self._batch * (self.bids_had[owner] + 1)
        # The lowest possible score for each missing one.
        scores = bid.scores + b"\1".rjust(MASK_BYTES, b"\0") * ((due - len(bid.scores)) // MASK_BYTES)
        super().take_bid(owner, bid.model_copy(update={"scores": scores}))


def _with_selection(kind: type[BlindSelection], session: Session, party: CuratorParty) -> CuratorParty:
    machine = party[0]
    machine.selection = kind(session, machine.seats, machine.ledger)
    return party


def excluding_for_void_boxes(session: Session, party: CuratorParty) -> CuratorParty:
    """An owner is excluded for a box found void when bought, which depends on others' data."""
    return _with_selection(_ExcludesForVoidBoxes, session, party)


class _HoldsAll(OtherOutcomes):
    """Numerics that report all bids as signed."""

    def _reported(self, effect: Computation, outcome: Event | None) -> Event | None:  # noqa: ARG002
        held = getattr(outcome, "held", None)
        return outcome if held is None else replace(cast("Any", outcome), held=(True,) * len(held))


def taking_shorter_bids(session: Session, party: CuratorParty) -> CuratorParty:
    """The curator for owners that do not pad."""
    machine, numerics = _with_selection(_TakesShorterBids, session, party)
    return machine, _HoldsAll(numerics)


# -- sizes --------------------------------------------------------------------------------------------


class _WithoutPadding(OtherOutcomes):
    """Numerics of an owner that leaves out the scores of empty boxes."""

    def _reported(self, effect: Computation, outcome: Event | None) -> Event | None:  # noqa: ARG002
        if not isinstance(outcome, BlindScored):
            return outcome
        points = sum(row >= 0 for row in self._numerics._sent)
        return replace(outcome, scores=outcome.scores[: MASK_BYTES * max(points, 1)])


def without_padding(owner: OwnerMaker) -> OwnerMaker:
    """Makes owners that score only their points, so that a bid's size reveals their number."""

    def made(*given: Any, **more: Any) -> OwnerParty:
        machine, numerics = owner(*given, **more)
        return machine, _WithoutPadding(numerics)

    return made


# -- masks and nonces ---------------------------------------------------------------------------------


class _Bare(Mask):
    """A mask that only makes scores positive."""

    def __init__(self, mask: Mask) -> None:
        self.bound = mask.bound
        self.of_nothing = bytes(MASK_BYTES - 1) + b"\1"

    def of(self, scores: Collection[int], features: Features) -> list[bytes]:  # noqa: ARG002
        return [(score + self.bound + 2).to_bytes(MASK_BYTES, "big") for score in scores]

    def tie(self, features: Features) -> int:  # noqa: ARG002
        return 0


class _NoMask(BlindKeys):
    """Keys whose masks are off."""

    def mask(self, number: int, bound: int) -> Mask:
        return _Bare(super().mask(number, bound))


class _OneNonce(BlindKeys):
    """Keys that encrypt every round under the first one's nonce."""

    def encrypt(self, weights: Array, number: int) -> bytes:  # noqa: ARG002
        return super().encrypt(weights, 1)

    def decrypt(self, box: bytes, number: int) -> Array:  # noqa: ARG002
        return super().decrypt(box, 1)


def masks_off(owner: OwnerMaker, consumer: ConsumerMaker) -> tuple[OwnerMaker, ConsumerMaker]:
    """Scores are sent unmasked."""
    return _with_keys(_NoMask, owner), _with_keys(_NoMask, consumer)


def one_nonce(owner: OwnerMaker, consumer: ConsumerMaker) -> tuple[OwnerMaker, ConsumerMaker]:
    """All broadcasts are encrypted with one nonce."""
    return _with_keys(_OneNonce, owner), _with_keys(_OneNonce, consumer)


def _with_keys(kind: type[BlindKeys], maker: Callable[..., Any]) -> Callable[..., Any]:
    """Makes parties that derive other keys from the map's seed."""

    def made(session: Session, *given: Any, **more: Any) -> Any:
        machine, numerics = maker(session, *given, **more)
        numerics._keep_seed = lambda seed: setattr(numerics, "_keys", kind(seed, session.identifier))
        return machine, numerics

    return made
