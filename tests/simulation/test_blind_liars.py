"""The effect of a liar's points on S under `blind` depends on the points alone, not on when they are chosen.

One record of another owner can move many points from the round in which they are chosen to a later one. An
owner whose score of a point is wrong in some rounds and right in others could otherwise use it to decide how
many of its points a release counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from hushbid.consumer.buying.blind import BlindBuying
from hushbid.owner.numerics import BlindOwnerNumerics
from hushbid.owner.party import owner_party
from hushbid.protocol.crypto.blinding import BlindKeys, Mask
from hushbid.protocol.data import Dataset
from hushbid.protocol.session.session import Session, open_session
from hushbid.protocol.space.grid import Features
from hushbid.simulation.simulator import Simulation, SimulationOutcome
from tests.simulation.harness import names, session_file

OWNERS = names(3)
LIAR = OWNERS[1]
COLUMNS, DIMENSION, POINTS, BATCH = 4, 12, 24, 3


class LyingMask(Mask):
    """Raises every point's score by one."""

    def of(self, scores: Sequence[int], features: Features) -> list[bytes]:
        return super().of([score + 1 for score in scores], features)


class LyingKeys(BlindKeys):
    """Has a lying mask from a given round on."""

    since = 1

    def mask(self, number: int, bound: int) -> Mask:
        honest = super().mask(number, bound)
        if number < self.since:
            return honest
        honest.__class__ = LyingMask
        return honest


class LyingNumerics(BlindOwnerNumerics):
    """An owner's, with `LyingKeys`."""

    def _keep_seed(self, seed: bytes) -> None:
        self._keys = LyingKeys(seed, self._session.identifier)


def lying(session: Session, name: str, *given: Any, **more: Any) -> Any:
    machine, numerics = owner_party(session, name, *given, **more)
    if name == LIAR:
        numerics.__class__ = LyingNumerics
    return machine, numerics


def played(owner: Callable[..., Any]) -> SimulationOutcome:
    rng = np.random.default_rng(5)
    session = open_session(
        session_file(
            owners=OWNERS,
            points=POINTS,
            batch=BATCH,
            rule="blind",
            dimension=DIMENSION,
            columns=COLUMNS,
        )
    )
    return Simulation(
        session,
        owners={name: Dataset.from_arrays(name, rng.random((30, COLUMNS))) for name in OWNERS},
        validation=Dataset.from_arrays("validation", rng.random((20, COLUMNS))),
        seed_set=Dataset.from_arrays("seed-set", rng.random((10, COLUMNS))),
        owner=owner,
    ).run()


@pytest.mark.parametrize("since", [1, 5])
def test_points_of_a_wrong_score_are_disputed_and_count_as_what_they_are(
    since: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LyingKeys, "since", since)
    honest, lied = played(owner_party), played(lying)
    assert isinstance(honest.consumer.buying, BlindBuying)
    assert isinstance(lied.consumer.buying, BlindBuying)
    assert honest.delivered is not None
    assert lied.delivered is not None
    pairs = list(zip(honest.delivered.delivered, lied.delivered.delivered, strict=True))
    assert all((one.owner, one.chosen_round) == (other.owner, other.chosen_round) for one, other in pairs)
    wrong = {"the score is not the point's"}
    found = {other.dispute for _, other in pairs if other.owner == LIAR and other.chosen_round >= since}
    assert found == wrong
    assert not any(other.dispute for _, other in pairs if other.owner != LIAR or other.chosen_round < since)
    assert lied.consumer.buying.weighing.total.tolist() == honest.consumer.buying.weighing.total.tolist()
    assert lied.consumer.buying.void[LIAR] > 0
    account = lied.curator.selection.account
    sold = {name: sum(not o.dispute for _, o in pairs if o.owner == name) for name in OWNERS}
    assert dict(zip(OWNERS, account.sold.tolist(), strict=True)) == sold
