"""A sealed session with real keys and boxes, for tests of the parties' numerics."""

from __future__ import annotations

from typing import Any

import numpy as np

from hushbid.consumer.events import CheckPurchases, Delivered, PurchasesChecked, ReleaseTarget, TargetReleased
from hushbid.consumer.numerics import ConsumerNumerics
from hushbid.consumer.party import consumer_party
from hushbid.owner.events import MapOpened, OpenMap, Scored, ScorePoints
from hushbid.owner.machine import OwnerMachine
from hushbid.owner.numerics import OwnerNumerics
from hushbid.owner.party import owner_party
from hushbid.protocol import limits
from hushbid.protocol.crypto.identity import Identity
from hushbid.protocol.data import Dataset
from hushbid.protocol.names import CONSUMER
from hushbid.protocol.privacy.noise import SimulatedNoise
from hushbid.protocol.session.session import Session, open_session
from hushbid.protocol.wire.messages import Purchase, SealedCandidate, fixed
from tests.simulation.harness import names, session_file, weights_of

__all__ = [
    "COLUMNS",
    "DIMENSION",
    "OWNERS",
    "Consumer",
    "W",
    "owner_of",
    "points_of",
    "purchase_of",
    "scored_by",
    "sealed_session",
]

COLUMNS, DIMENSION = 3, 8
OWNERS = names(2)
W = weights_of(9, 4, 2, 1, -3, 5, 7, -6)


def sealed_session(**changes: Any) -> Session:
    values: dict[str, Any] = {
        "owners": OWNERS,
        "points": 6,
        "rule": "sealed",
        "dimension": DIMENSION,
        "columns": COLUMNS,
    }
    return open_session(session_file(**(values | changes)))


def points_of(owner: str, count: int = 6) -> Dataset:
    rng = np.random.default_rng(OWNERS.index(owner))
    return Dataset.from_arrays(owner, rng.random((count, COLUMNS)), np.arange(count))


def owner_of(
    session: Session, owner: str, data: Dataset | None = None, identity: Identity | None = None
) -> tuple[OwnerMachine, OwnerNumerics]:
    return owner_party(
        session,
        owner,
        data or points_of(owner),
        identity=identity or session.simulated_identity(owner),
        noise=SimulatedNoise(1, owner),
        scratch=None,
        memory_limit=2**40,
    )


class Consumer:
    """The consumer's numerics, with its target released and the map drawn."""

    def __init__(self, session: Session) -> None:
        rng = np.random.default_rng(10)
        self.session = session
        self.numerics: ConsumerNumerics
        _, self.numerics = consumer_party(
            session,
            identity=session.simulated_identity(CONSUMER),
            noise=SimulatedNoise(1, CONSUMER),
            validation=Dataset.from_arrays("v", rng.random((7, COLUMNS))),
            seed_set=Dataset.from_arrays("s", rng.random((5, COLUMNS))),
            store=lambda purchases: None,
        )
        released = self.numerics.perform(ReleaseTarget())
        assert isinstance(released, TargetReleased)
        self.released = released

    def map_of(self, owner: str) -> bytes:
        """The sealed map for that owner."""
        start = self.session.file.owners.index(owner) * limits.MAP_BOX_BYTES
        return self.released.maps[start : start + limits.MAP_BOX_BYTES]

    def check(self, *purchases: Purchase) -> tuple[Delivered, ...]:
        checked = self.numerics.perform(CheckPurchases(purchases, last=False))
        assert isinstance(checked, PurchasesChecked)
        return checked.delivered


def scored_by(consumer: Consumer, owner: str, round_number: int = 1, handle: int = 1) -> Scored:
    """An honest owner's best point under `W`, sealed and signed."""
    _, numerics = owner_of(consumer.session, owner)
    assert isinstance(numerics.perform(OpenMap(consumer.map_of(owner))), MapOpened)
    scored = numerics.perform(ScorePoints(round_number, W, handle))
    assert isinstance(scored, Scored)
    return scored


def purchase_of(owner: str, scored: Scored, *, handle: int = 1, **changes: Any) -> Purchase:
    """That point as it is delivered; `changes` apply to the candidate."""
    candidate = scored.handed
    assert isinstance(candidate, SealedCandidate)
    return Purchase(
        owner=owner,
        round=5,
        bid_round=scored.round,
        handle=fixed(handle),
        candidate=candidate.model_copy(update=changes),
    )
