"""The selection of a tender: owners submit once, and the curator chooses among all points together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hushbid.curator.round import Round
from hushbid.curator.selection.open import OpenSelection
from hushbid.protocol.errors import LocalProtocolError
from hushbid.protocol.session.prior import prior_of
from hushbid.protocol.space.grid import Weights
from hushbid.protocol.space.scoring import Best
from hushbid.protocol.wire.messages import Call, NestedTarget, Target

__all__ = ["TenderSelection"]


class TenderSelection(OpenSelection):
    """The only round calls for submissions and buys all points, by running sums towards the target."""

    def broadcast(self, number: int, weights: Weights) -> Call:
        broadcast, target = super().broadcast(number, weights), self._required_target()
        return Call(
            round=broadcast.round,
            weights=broadcast.weights,
            noise=broadcast.noise,
            embedding=target.embedding,
            seed_total=target.seed_total,
            seed_size=target.seed_size,
        )

    def best(
        self,
        current: Round,
        count: int,
        withheld: npt.NDArray[np.bool_] | None,
    ) -> Sequence[Best]:
        target = self._required_target()
        wanted = target.finer if isinstance(target, NestedTarget) else target.embedding
        aim = self._session.target.aim(wanted, prior_of(target))
        terms = self._session.terms
        entries = self.pool.herd(aim.statistic.of, aim.mean, count, withheld=withheld, terms=terms)
        return tuple(
            Best(entry, parcel.scores[self._places[entry]])
            for entry in entries
            if (parcel := self.pooled[entry]) is not None
        )

    def most_wins(self, number: int) -> int:
        return self._session.file.session.points

    def _required_target(self) -> Target:
        if self.target is None:
            raise LocalProtocolError("There is no target yet.")
        return self.target
