"""Suites for rules with one call (`tender`): an owner's view must not depend on what others hold.

The stated ε is 0, and the view depends only on the session and the consumer's release. So the attacker may
know the release with its noise: it has the view that D gives with the run's noise, and looks for any
different byte. Only the salted head in the last frame is excluded.

The watcher comes last, when all others have submitted, so that its frames could contain anything of theirs.

=============  ==========================================  ============================================
suite          D                                           D'
=============  ==========================================  ============================================
`tender`       v and the watcher's w are bought            The victim has x as well, which is bought first
                                                           and leaves no place for w. It needs a second
                                                           message for its points, which is padding in D.
`…-exhausted`  One point fewer than are to be bought       As many: the victim has x as well.
=============  ==========================================  ============================================

In `finer_release` the records of D_v are attacked: the curator has a finer release than the owners.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hushbid.evidence.audit.attack import SessionAttack, SessionData, stated_by
from hushbid.evidence.audit.nested import against
from hushbid.evidence.audit.points import points_at_angle, seed_set
from hushbid.evidence.audit.settings import DELTA, SESSION_DELTA, SESSION_EPSILON, release_table, session_of
from hushbid.protocol.privacy.releases import Neighbours
from hushbid.protocol.runtime.driver import Outgoing
from hushbid.protocol.session.session import Session
from hushbid.protocol.space.features import FeatureMap
from hushbid.protocol.wire.codec import Direction, decode_frame, decode_message, encode_frame, encode_message
from hushbid.protocol.wire.messages import Call, Close
from hushbid.simulation.simulator import Crash

__all__ = ["CallView", "OwnerAttack", "exhausted", "finer_release", "registered", "tender"]

DIMENSION: Final = 8
SEED_SET: Final = 40
VALIDATION: Final = 200
"""|D_v|, so large that the release's noise does not change which points are bought."""
OTHERS: Final = 9
"""Records of D_v that stay the same when one changes."""
BATCH: Final = 2
"""Points per message."""
MESSAGES: Final = 2
LATE: Final = 20.0
"""Seconds by which the watcher comes after the others; enrolment takes longer."""
EPSILON: Final = 10.0
"""ε of a release that is not attacked: what an owner sees does not depend on it."""
EPSILON_CURATOR: Final = 20.0
"""ε of the curator's finer release."""

_TARGET, _X, _V, _W, _FAR = 0.0, 0.0, 0.2, -0.3, 2.5
"""Angles of the target and of points, in radians."""

Floats = npt.NDArray[np.float64]


@dataclass(slots=True)
class CallView:
    """Everything that one owner is sent, to the byte, except a transcript's head.

    Attributes:
        frames: Kind and bytes of each frame, in order.
        calls: The calls among them.
        expected: The frames that D would give with the same noise; None: unknown to the attacker.
    """

    frames: list[tuple[str, bytes]] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    expected: list[tuple[str, bytes]] | None = None

    def take(self, frame: Outgoing) -> None:
        data, inner = frame.data, decode_frame(frame.data)
        message = decode_message(Direction.CURATOR_TO_OWNER, inner.body)
        if isinstance(message, Call):
            self.calls.append(message)
        elif isinstance(message, Close):
            blank = {"head": bytes(len(message.head)), "signature": bytes(len(message.signature))}
            data = encode_frame(inner._replace(body=encode_message(message.model_copy(update=blank))))
        self.frames.append((frame.kind, data))

    @property
    def shape(self) -> int:
        """A number for the kinds and lengths of the frames, in order."""
        return zlib.crc32(repr([(kind, len(data)) for kind, data in self.frames]).encode())

    @property
    def differing(self) -> int:
        """Number of unexpected frames, including missing and additional ones."""
        expected = self.frames if self.expected is None else self.expected
        same = sum(one == other for one, other in zip(self.frames, expected, strict=False))
        return max(len(self.frames), len(expected)) - same


@dataclass(frozen=True)
class OwnerAttack(SessionAttack):
    """A whole session: everything that an owner is sent, beside what it would have been sent on D.

    Args:
        knows_release: Whether the attacker has the consumer's release with its noise.
    """

    knows_release: bool = True

    def view(self, neighbour: int, seed: int) -> CallView:
        view = self._sent(neighbour, seed)
        if self.knows_release:
            view.expected = self._sent(0, seed).frames
        return view

    def _sent(self, neighbour: int, seed: int) -> CallView:
        view = CallView()

        def tap(_sender: str, receiver: str, frame: Outgoing) -> None:
            if receiver == self.watcher:
                view.take(frame)

        self.simulation(neighbour, seed, tap=tap).run()
        return view


def tender() -> OwnerAttack:
    """A session of `tender` in which the victim's record takes the place of the watcher's."""
    return registered("tender")


def registered(rule: str) -> OwnerAttack:
    """The same for any private rule of `RULES` under which owners choose what to submit."""
    session = _session(rule, points=2, owners=("other", "victim", "watcher"))

    def data(feature_map: FeatureMap) -> SessionData:
        x, v, w, far = _points(feature_map, _X, _V, _W, _FAR)
        return SessionData.one_more(
            {"other": far, "watcher": np.concatenate([w, far])},
            np.concatenate([v, far]),
            x,
            **_public(feature_map),
        )

    return _attack(session, data)


def exhausted() -> OwnerAttack:
    """A session of `tender` whose owners have one point too few, or enough with the victim's last one."""
    session = _session("tender", points=4, owners=("victim", "watcher"))

    def data(feature_map: FeatureMap) -> SessionData:
        x, v, w, far = _points(feature_map, _X, _V, _W, _FAR)
        return SessionData.one_more({"watcher": w}, np.concatenate([v, far]), x, **_public(feature_map))

    return _attack(session, data)


def _attack(session: Session, data: Any) -> OwnerAttack:
    return OwnerAttack(
        stated=stated_by(session.privacy()[0]),
        session=session,
        data=data,
        read=_calls,
        # Its process starts last.
        crashes=(Crash("watcher", step=0, left=0, down=LATE),),
    )


def _session(rule: str, *, points: int, owners: Sequence[str]) -> Session:
    return session_of(
        owners=owners,
        points=points,
        batch=BATCH,
        submission=BATCH * MESSAGES,
        dimension=DIMENSION,
        delta=DELTA,
        target=release_table("filtered-gaussian", Neighbours.SUBSTITUTE_ONE, epsilon=EPSILON),
        summary=_summary(),
        rule=rule,
    )


def _summary() -> dict[str, Any]:
    """``[summary]``, of which only the public start is released."""
    return release_table("filtered-gaussian", Neighbours.ADD_REMOVE_ONE, epsilon=SESSION_EPSILON)


def _points(feature_map: FeatureMap, *angles: float) -> Sequence[Floats]:
    return np.split(points_at_angle(feature_map, *angles), len(angles))


def _public(feature_map: FeatureMap) -> Mapping[str, Floats]:
    (wanted,) = _points(feature_map, _TARGET)
    return {
        "validation": np.repeat(wanted, VALIDATION, axis=0),
        "seed_set": seed_set(feature_map, SEED_SET),
    }


def _calls(view: CallView) -> Floats:
    """The number of frames, of those not expected, and the last call's numbers, g̃ in x's direction last."""
    numbers = [np.zeros(3 * DIMENSION + 2)]
    for call in view.calls:
        towards_x = call.embedding[: DIMENSION // 2].sum()  # There all cosines are 1, and all sines 0.
        public = [call.seed_size, towards_x]
        numbers.append(np.concatenate([call.weights, call.embedding, call.seed_total, public]))
    return np.concatenate([[len(view.frames), view.differing], numbers[-1]])[None]


# -- the consumer's records ------------------------------------------------------------------------------


def finer_release() -> OwnerAttack:
    """An owner's view of a session whose curator has a finer release of D_v than the owners."""
    session = session_of(
        owners=("watcher",),
        points=1,
        dimension=DIMENSION,
        delta=SESSION_DELTA,
        target=release_table(
            "filtered-gaussian",
            Neighbours.SUBSTITUTE_ONE,
            epsilon=SESSION_EPSILON,
            epsilon_curator=EPSILON_CURATOR,
        ),
        summary=_summary(),
        rule="tender",
    )

    def data(feature_map: FeatureMap) -> SessionData:
        one, other = _points(feature_map, _X, np.pi)
        seeds = seed_set(feature_map, SEED_SET + OTHERS)
        owners = {"watcher": one}
        return SessionData(
            owners=(owners, owners),
            validation=np.concatenate([seeds[SEED_SET:], one]),
            other_validation=np.concatenate([seeds[SEED_SET:], other]),
            seed_set=seeds[:SEED_SET],
        )

    return OwnerAttack(
        stated=against(session, "the owners"),
        session=session,
        data=data,
        read=_calls,
        knows_release=False,
    )
