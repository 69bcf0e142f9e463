"""The order of points under `blind` depends on the points alone, not on what their owner sent before.

The lemma of docs/privacy.md needs that: if points of one score were chosen in the order of sending, one more
record could replace two points of S.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from hushbid.owner.events import BlindScored, MapOpened, OpenMap, ScoreBlind, Withdraw
from hushbid.owner.numerics import BlindOwnerNumerics
from hushbid.owner.party import owner_party
from hushbid.protocol.crypto.blinding import MASK_BYTES, NOT_SENT, BlindKeys, broadcast_statement
from hushbid.protocol.crypto.sealing import sign, unpack_content
from hushbid.protocol.data import Dataset
from hushbid.protocol.names import CONSUMER
from hushbid.protocol.privacy.noise import SimulatedNoise
from hushbid.protocol.space.grid import Weights
from hushbid.protocol.space.scoring import score_bound
from tests.simulation.harness import weights_of
from tests.support.boxes import opened_by
from tests.support.sealed_parties import COLUMNS, DIMENSION, OWNERS, Consumer, sealed_session

SESSION = sealed_session(rule="blind")
CONSUMERS = Consumer(SESSION)
KEYS = BlindKeys(CONSUMERS.released.map_seed, SESSION.identifier)
IDENTITY = SESSION.simulated_identity(CONSUMER)
X, Y, Z = np.random.default_rng(0).random((3, COLUMNS))
FEATURES = SESSION.space.map(CONSUMERS.released.map_seed).hash(np.stack([X, Y, Z])).astype(np.int64)
EVEN = weights_of(*[0] * DIMENSION)
"""Under it all points have the same score."""


def ranking(*rows: int) -> Weights:
    """A weight under which x, y and z have this order."""
    rng = np.random.default_rng(1)
    while True:
        weights = weights_of(*rng.integers(-(2**20), 2**20, DIMENSION).tolist())
        if np.argsort(-(FEATURES @ weights.astype(np.int64))).tolist() == list(rows):
            return weights


class Sender:
    """An owner, and the points and masked scores of its boxes."""

    def __init__(self, *points: np.ndarray) -> None:
        _, numerics = owner_party(
            SESSION,
            OWNERS[0],
            Dataset.from_arrays(OWNERS[0], np.stack(points)),
            identity=SESSION.simulated_identity(OWNERS[0]),
            noise=SimulatedNoise(1, OWNERS[0]),
            scratch=None,
            memory_limit=2**40,
        )
        assert isinstance(numerics, BlindOwnerNumerics)
        assert isinstance(numerics.perform(OpenMap(CONSUMERS.map_of(OWNERS[0]))), MapOpened)
        self._numerics = numerics
        self._points: list[bytes] = []

    def bid(self, number: int, weights: Weights) -> dict[bytes, bytes]:
        """The masked score of each sent point, by the point."""
        box = KEYS.encrypt(weights, number)
        signature = sign(broadcast_statement(SESSION.identifier, number, box), IDENTITY.signing)
        scored = self._numerics.perform(ScoreBlind(number, box, signature, number))
        assert isinstance(scored, BlindScored)
        for row in scored.rows:
            if row >= 0:
                self._numerics.perform(Withdraw((row,)))
        assert len(scored.boxes) == SESSION.box_length
        point = b""
        if any(scored.boxes):
            point = unpack_content(opened_by(SESSION, CONSUMER, scored.boxes, number))[0].tobytes()
        self._points.append(point)
        masked = [scored.scores[at : at + MASK_BYTES] for at in range(0, len(scored.scores), MASK_BYTES)]
        return dict(zip(self._points, masked, strict=True))


def test_points_of_one_score_have_the_same_order_whatever_was_sent_before() -> None:
    without, including = Sender(Y, Z), Sender(X, Y, Z)
    for number, order in enumerate([(0, 1, 2), (0, 2, 1)], start=1):
        without.bid(number, ranking(*order))
        including.bid(number, ranking(*order))
    few, all_of_them = without.bid(3, EVEN), including.bid(3, EVEN)
    assert list(few) == [Y.tobytes(), Z.tobytes(), b""]
    assert list(all_of_them) == [X.tobytes(), Z.tobytes(), Y.tobytes()]
    assert {few[point.tobytes()] for point in (Y, Z)} == {all_of_them[point.tobytes()] for point in (Y, Z)}
    assert len({*all_of_them.values()}) == 3
    assert few[Y.tobytes()] == all_of_them[Y.tobytes()]


def test_a_higher_score_is_before_every_tie_and_equal_points_are_equal() -> None:
    bound = score_bound(weights_of(*[1] * DIMENSION), 1.01, None)
    mask = KEYS.mask(1, bound)
    rows = np.random.default_rng(2).integers(-9000, 9000, (50, DIMENSION)).astype(np.int16)
    at = [mask.of([score] * len(rows), rows) for score in (-bound, -1, 0, 1, bound)]
    assert all(max(lower) < min(higher) for lower, higher in pairwise(at))
    assert NOT_SENT < mask.of_nothing < min(at[0])
    assert {len(each) for row in at for each in row} == {MASK_BYTES}
    assert mask.of([3], rows[:1]) == mask.of([3], rows[:1].copy())
    assert KEYS.mask(2, bound).of([3], rows[:1]) != mask.of([3], rows[:1])
