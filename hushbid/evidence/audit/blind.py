"""Suites for sessions whose curator is blind: an owner's view, what the curator is sent, and sizes.

`restarted` is `switching` with a consumer that dies, as the consumer draws the noise here. In `void` the
attacker hands over a box that does not open, next to the victim's record x on the first circle (`circles`):

=====  =======  =======================================================================================
round  target   what happens
=====  =======  =======================================================================================
1      x        In D' x is bought, in D the void box: S' is S with one point more.
2, …   z1, …    In both the attacker's z, like x on the other circles, is bought. Were its owner left out
                for the void box, which in D alone is found, the watcher's points next to z would be
                bought in D, which are like y.
=====  =======  =======================================================================================

`curator` uses everything that is sent to a blind curator, in a case where the choice is the same: in D' the
target differs on all circles but the first, where all points are alike. So all scores change by one number.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from hushbid.evidence.audit.attack import SessionAttack, SessionData, Stated
from hushbid.evidence.audit.broken_blind import sending_a_void_box
from hushbid.evidence.audit.circles import (
    DIMENSION,
    LIKE_X,
    LIKE_Y,
    SEED_SET,
    attack_on_circles,
    points_on_first,
)
from hushbid.evidence.audit.points import seed_set
from hushbid.evidence.audit.settings import DELTA, SESSION_DELTA, SESSION_EPSILON, release_table, session_of
from hushbid.evidence.audit.switching import angle_of, switching
from hushbid.protocol.crypto.blinding import MASK_BYTES
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.privacy.releases import Neighbours
from hushbid.protocol.runtime.driver import Outgoing
from hushbid.protocol.session.session import Session
from hushbid.protocol.space.features import FeatureMap
from hushbid.protocol.wire.blind import BlindBid, SealedBroadcast
from hushbid.protocol.wire.codec import Direction, decode_frame, decode_message
from hushbid.protocol.wire.unlinked import RoundOpening
from hushbid.simulation.simulator import Crash

__all__ = ["CuratorAttack", "CuratorView", "curator", "restarted", "sizes", "void"]

ROUNDS: Final = 7
NEXT_TO: Final = 0.12
"""Radians between a point and another owner's neighbouring point."""
CRASH: Final = 5
"""The consumer's step in the fourth round."""
_ALIKE: Final = ("owner-1", "owner-2")
"""Names of equal length: an award contains its owners' names, and its length depends on theirs."""
FEW: Final = 3
"""Rounds of the sessions that the curator observes."""

Floats = npt.NDArray[np.float64]


def restarted() -> SessionAttack:
    """`switching` with a blind curator, and a consumer that dies and resumes from its record."""
    return replace(switching("blind"), crashes=(Crash(CONSUMER, step=CRASH, left=0),))


def void() -> SessionAttack:
    """A session with an owner that sells a void box, which is discovered in D and not in D'."""
    return attack_on_circles(
        "filtered-gaussian",
        owners=("liar", "victim", "watcher"),
        data=_with_a_void_box,
        angles=[angle_of(place) for place in range(ROUNDS)],
        rule="blind",
        owner=sending_a_void_box("liar", row=0),
    )


def _with_a_void_box(feature_map: FeatureMap) -> SessionData:
    later = range(1, ROUNDS)
    lies = [(angle_of(0) + NEXT_TO, LIKE_X), *((angle_of(place), LIKE_X) for place in later)]
    beside = [(angle_of(place) + NEXT_TO, LIKE_Y) for place in later]
    first, last = np.split(points_on_first(feature_map, [(angle_of(0), LIKE_X), (-1.0, LIKE_Y)]), 2)
    return SessionData.one_more(
        {"liar": points_on_first(feature_map, lies), "watcher": points_on_first(feature_map, beside)},
        last,
        first,
        validation=last,
        seed_set=seed_set(feature_map, SEED_SET),
    )


# -- what the curator is sent -----------------------------------------------------------------------------


@dataclass(slots=True)
class CuratorView:
    """Everything that a blind curator receives and sends, in order: all that it can learn from."""

    frames: list[tuple[str, str, str, int]] = field(default_factory=list)
    """Sender, receiver, kind and length in bytes of each frame."""
    scores: dict[int, list[int]] = field(default_factory=dict)
    """Per round, the masked scores of all scored boxes."""
    boxes: dict[int, bytes] = field(default_factory=dict)
    """Per round, the encrypted broadcast."""

    def take(self, sender: str, receiver: str, frame: Outgoing) -> None:
        self.frames.append((sender, receiver, frame.kind, len(frame.data)))
        if receiver != CURATOR:
            return
        way = Direction.CONSUMER_TO_CURATOR if sender == CONSUMER else Direction.OWNER_TO_CURATOR
        message = decode_message(way, decode_frame(frame.data).body)
        if isinstance(message, SealedBroadcast | RoundOpening):
            self.boxes[message.round] = message.box
        elif isinstance(message, BlindBid):
            masked = (
                int.from_bytes(message.scores[at : at + MASK_BYTES], "big")
                for at in range(0, len(message.scores), MASK_BYTES)
            )
            self.scores.setdefault(message.round, []).extend(filter(None, masked))

    @property
    def shape(self) -> int:
        """A number for senders, receivers, kinds and lengths of the frames, in order."""
        return zlib.crc32(repr(self.frames).encode())


def _nothing(_view: CuratorView) -> Floats:
    return np.zeros((1, 0))


class CuratorAttack(SessionAttack):
    """A whole session: everything sent to the curator, and everything visible on its network."""

    def view(self, neighbour: int, seed: int) -> CuratorView:
        view = CuratorView()
        self.simulation(neighbour, seed, tap=view.take).run()
        return view


def curator() -> CuratorAttack:
    """Everything that a blind curator receives if D_v differs and the choice does not."""
    session = _small("exact")
    return CuratorAttack(
        stated=Stated(0.0, DELTA, Neighbours.SUBSTITUTE_ONE.value),
        session=session,
        data=_with_other_targets,
        read=_masks_and_broadcasts,
        watcher=CURATOR,
    )


def sizes() -> CuratorAttack:
    """Sizes and order of all frames, where an owner runs out of points a round earlier or later."""

    def data(feature_map: FeatureMap) -> SessionData:
        one, more, others = (_consecutive(feature_map, count) for count in (FEW - 1, FEW, 2 * FEW))
        return SessionData(
            owners=({_ALIKE[0]: one, _ALIKE[1]: others}, {_ALIKE[0]: more, _ALIKE[1]: others}),
            validation=others[:1],
            seed_set=seed_set(feature_map, FEW),
        )

    return CuratorAttack(
        stated=Stated(0.0, DELTA, Neighbours.ADD_REMOVE_ONE.value),
        session=_small("gaussian", epsilon=SESSION_EPSILON),
        data=data,
        read=_nothing,
        watcher=CURATOR,
    )


def _small(mechanism: str, **keys: float) -> Session:
    summary = release_table(mechanism, Neighbours.ADD_REMOVE_ONE, **keys) if keys else None
    return session_of(
        owners=_ALIKE,
        points=FEW,
        dimension=DIMENSION,
        delta=SESSION_DELTA,
        summary=summary,
        rule="blind",
    )


def _consecutive(feature_map: FeatureMap, count: int) -> Floats:
    """Points that are alike on all circles but the first."""
    return points_on_first(feature_map, [(angle_of(place), LIKE_X) for place in range(count)])


def _with_other_targets(feature_map: FeatureMap) -> SessionData:
    points = _consecutive(feature_map, 4 * FEW)
    one, other = points_on_first(feature_map, [(angle_of(0), others) for others in (LIKE_X, LIKE_Y)])
    data = {_ALIKE[0]: points[::2], _ALIKE[1]: points[1::2]}
    return SessionData(
        owners=(data, data),
        validation=one[None],
        other_validation=other[None],
        seed_set=seed_set(feature_map, SEED_SET),
    )


def _masks_and_broadcasts(view: CuratorView) -> Floats:
    """Per round: the size of masked scores, their spread, and the share of bytes in which broadcasts differ.

    That share is 255 of 256 if each broadcast has its own nonce.
    """
    found = []
    for number, box in sorted(view.boxes.items()):
        scores = sorted(view.scores[number])
        before = view.boxes.get(number - 1, view.boxes[max(view.boxes)])
        differing = np.frombuffer(box, dtype=np.uint8) != np.frombuffer(before, dtype=np.uint8)
        found.append(
            [
                np.log2(float(scores[0]) + 1.0),
                np.log2(float(scores[-1]) + 1.0),
                np.log2(float(scores[-1] - scores[0]) + 1.0),
                float(differing.mean()),
            ]
        )
    return np.array(found)
