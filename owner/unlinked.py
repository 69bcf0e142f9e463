"""A blind owner's numerics where the curator cannot link (`hushbid.protocol.crypto.unlinking`)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from hushbid.owner.events import NOTHING, BlindScored
from hushbid.owner.numerics import BlindOwnerNumerics, Sealer
from hushbid.protocol.crypto.blinding import MASK_BYTES, NOT_SENT
from hushbid.protocol.crypto.sealing import SEAL_BYTES
from hushbid.protocol.crypto.unlinking import OwnMask, PairKey, Places
from hushbid.protocol.machine.machine import Computation, Event
from hushbid.protocol.space.expansion import Words
from hushbid.protocol.space.grid import Weights

__all__ = ["UnlinkedOwnerNumerics"]

_NONE: Final = np.zeros(0, dtype=np.uint64)


class _Next(NamedTuple):
    """What is known of a round before its weights are."""

    number: int
    places: Places
    ties: Words
    """`Places.ties` of the points in the boxes sent so far; anything for a box of nothing."""


class UnlinkedOwnerNumerics(BlindOwnerNumerics):
    """Carries out the computations of an owner that a blind curator cannot follow.

    In every bid it shows the scores of its best boxes, as many as could be chosen or more, and lets the
    others look like empty ones. That number stays until more are needed, and then becomes the number of all
    its boxes, less a few. So it looks the same when its points run out: it then shows all of them, and as
    many ever after.
    """

    _shown = 0
    """How many scores the last bid showed."""
    _number = 0
    """The last bid's round."""
    _next: _Next | None = None

    @cached_property
    def _pair(self) -> PairKey:
        sealer = self._require_sealer()
        return PairKey(sealer.identity.sealing, sealer.consumer.sealing, self._session.identifier)

    def restore(self, effect: Computation, outcome: Event | None) -> None:
        super().restore(effect, outcome)
        if isinstance(outcome, BlindScored):
            mask = self._own_mask(outcome.round, outcome.weights)
            scores = (
                outcome.scores[at : at + MASK_BYTES] for at in range(0, len(outcome.scores), MASK_BYTES)
            )
            self._shown = sum(score != NOT_SENT and not mask.is_floor(score) for score in scores)

    def ahead(self) -> None:
        number = self._number + 1
        known = self._next is not None and self._next.number == number
        if known or self._table is None or number > self._session.rounds:
            return
        places = self._pair.places(number, self._session.batch)
        boxes, rows = self._points_sent()
        ties = np.zeros(len(self._sent), dtype=np.uint64)
        if len(boxes):
            ties[boxes] = places.ties(self._table.rows(rows))
        self._next = _Next(number, places, ties)

    def _own_mask(self, number: int, weights: Weights) -> OwnMask:
        self._number = number
        if self._next is None or self._next.number != number:
            self._next = _Next(number, self._pair.places(number, self._session.batch), _NONE)
        return OwnMask(super()._own_mask(number, weights), self._next.places)

    def _points_sent(self) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Which boxes hold points, from 0, and the row in each of them."""
        sent = np.array(self._sent, dtype=np.intp)
        boxes = np.flatnonzero(sent != NOTHING)
        return boxes, sent[boxes]

    def _ties(self, mask: OwnMask, boxes: npt.NDArray[np.intp], rows: npt.NDArray[np.intp]) -> Words:
        """`Places.ties` of the points in boxes, those first that were sent before."""
        known = _NONE if self._next is None else self._next.ties
        old = boxes < len(known)
        ties = np.empty(len(boxes), dtype=np.uint64)
        ties[old] = known[boxes[old]]
        ties[~old] = mask.places.ties(self._points().rows(rows[~old]))
        return ties

    def _in_order(self, mask: OwnMask, rows: tuple[int, ...]) -> tuple[int, ...]:
        return mask.places.shuffled(rows)

    def _new_boxes(self, sealer: Sealer, rows: Sequence[int], first: int) -> tuple[list[bytes], bytes]:
        nothing = bytes(len(self._blank_box) - SEAL_BYTES)
        held = iter(self._contents([row for row in rows if row != NOTHING]))
        contents = [nothing if row == NOTHING else next(held) for row in rows]
        return self._sealed_contents(sealer, contents, first)

    def _masked(self, mask: OwnMask, weights: Weights) -> bytes:  # type: ignore[override]
        """The masked scores of all boxes so far in their places, with floors instead of those not shown."""
        sent, batch = len(self._sent), self._session.batch
        points, rows = self._points_sent()
        scores = self._points().scores(rows, weights)
        new = points >= sent - batch
        needed = len(points)
        if new.sum() == batch:
            # Lower scores are not among the b best, and neither are empty boxes.
            needed = int((scores >= scores[new].min()).sum())
        self._shown = self._to_show(mask, needed, len(points))
        best = np.argsort(-scores, kind="stable")[: self._shown]
        boxes = points[best]
        masked = mask.masked_floors()
        masked[sent:] = 0  # `NOT_SENT`
        masked[boxes] = mask.masked(boxes + 1, scores[best], self._ties(mask, boxes, rows[best]))
        return mask.places.arranged(masked)

    def _to_show(self, mask: OwnMask, needed: int, most: int) -> int:
        """How many of the best scores to show, of which some have to be shown, and `most` can be."""
        if needed <= self._shown <= most:
            return self._shown
        if needed == most:
            return most
        return max(needed, most - mask.places.spare)
