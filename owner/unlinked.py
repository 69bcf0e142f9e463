"""A blind owner's numerics where the curator cannot link (`hushbid.protocol.crypto.unlinking`)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from hushbid.owner.events import NOTHING, BlindScored
from hushbid.owner.numerics import BlindOwnerNumerics, Sealer
from hushbid.protocol.crypto.blinding import MASK_BYTES, NOT_SENT
from hushbid.protocol.crypto.sealing import SEAL_BYTES
from hushbid.protocol.crypto.unlinking import OwnMask, PairKey
from hushbid.protocol.machine.machine import Computation, Event
from hushbid.protocol.space.grid import Weights

__all__ = ["UnlinkedOwnerNumerics"]


class UnlinkedOwnerNumerics(BlindOwnerNumerics):
    """Carries out the computations of an owner that a blind curator cannot follow.

    In every bid it shows the scores of its best boxes, as many as could be chosen or more, and lets the
    others look like empty ones. How many it shows stays what it was until more are needed, and then becomes
    the number of all its boxes, less a few. So it looks the same when its points run out: it then shows all
    of them, and as many ever after.
    """

    _shown = 0
    """How many scores the last bid showed."""

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

    def _own_mask(self, number: int, weights: Weights) -> OwnMask:
        return OwnMask(super()._own_mask(number, weights), self._pair.places(number, self._session.batch))

    def _in_order(self, mask: OwnMask, rows: tuple[int, ...]) -> tuple[int, ...]:
        return mask.places.shuffled(rows)

    def _new_boxes(self, sealer: Sealer, rows: Sequence[int], first: int) -> tuple[list[bytes], bytes]:
        nothing = bytes(len(self._blank_box) - SEAL_BYTES)
        contents = [nothing if row == NOTHING else self._content(row) for row in rows]
        return self._sealed_contents(sealer, contents, first)

    def _masked(self, mask: OwnMask, weights: Weights) -> bytes:  # type: ignore[override]
        """The masked scores of all boxes so far in their places, with floors instead of those not shown."""
        table, batch = self._points(), self._session.batch
        sent = np.array(self._sent, dtype=np.intp)
        points = np.flatnonzero(sent != NOTHING)
        scores = table.scores(sent[points], weights)
        new = points >= len(sent) - batch
        needed = len(points)
        if new.sum() == batch:
            # Lower scores are not among the b best, and neither are empty boxes.
            needed = int((scores >= scores[new].min()).sum())
        self._shown = self._to_show(mask, needed, len(points))
        best = np.argsort(-scores, kind="stable")[: self._shown]
        handles = points[best] + 1
        shown = mask.of(handles.tolist(), scores[best].tolist(), table.rows(sent[points[best]]))
        masked: list[bytes] = mask.floors()
        masked[len(sent) :] = [NOT_SENT] * (mask.places.count - len(sent))
        for handle, score in zip(handles.tolist(), shown, strict=True):
            masked[handle - 1] = score
        return mask.places.arranged(masked)

    def _to_show(self, mask: OwnMask, needed: int, most: int) -> int:
        """How many of the best scores to show, of which some have to be shown, and `most` can be."""
        if needed <= self._shown <= most:
            return self._shown
        if needed == most:
            return most
        return max(needed, most - mask.places.spare)
