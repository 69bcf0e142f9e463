"""The curator's numerics: noise, releases of the summary, and checks of points that were handed over."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from hushbid.curator.events import BidsChecked, CandidatesChecked, CheckBids, CheckCandidates, DestroyBoxes
from hushbid.curator.parcels import Parcel
from hushbid.curator.verification import UncheckedBid, bid_holds
from hushbid.protocol.errors import LocalProtocolError
from hushbid.protocol.machine.machine import Computation, Event
from hushbid.protocol.machine.weighing import Weigher
from hushbid.protocol.privacy.noise import NoiseSource
from hushbid.protocol.session.points import Signatures, hash_points
from hushbid.protocol.session.session import Session
from hushbid.protocol.space.grid import Features
from hushbid.protocol.wire.messages import boxes_of

__all__ = ["BlindCuratorNumerics", "CuratorNumerics"]


class CuratorNumerics:
    """Carries out the curator machine's computations.

    Args:
        noise: The curator's own source of noise.
        destroy: Destroys the boxes on disk.
    """

    def __init__(self, session: Session, noise: NoiseSource, *, destroy: Callable[[], None]) -> None:
        self._session = session
        self._weigher = Weigher(session, noise)
        self._rule = session.rule
        self._destroy = destroy
        self._signatures = Signatures(session)

    def perform(self, effect: Computation) -> Event | None:
        if type(effect) is CheckCandidates:
            return self._check(effect.parcels)
        if type(effect) is DestroyBoxes:
            self._destroy()
        return self._weigher.perform(effect)

    def restore(self, effect: Computation, outcome: Event | None) -> None:  # noqa: ARG002 - none is needed
        self._weigher.restore(effect)
        if type(effect) is DestroyBoxes:
            self._destroy()

    def _check(self, parcels: Sequence[Parcel]) -> CandidatesChecked:
        if self._rule.sealed:
            signed = tuple(held for parcel in parcels for held in self._signed(parcel))
            return CandidatesChecked(None, signed)
        return CandidatesChecked(self._hash(parcels), (True,) * sum(map(len, parcels)))

    def _signed(self, parcel: Parcel) -> Sequence[bool]:
        if not parcel.brought.sealed:
            return [False] * len(parcel)
        return self._signatures.hold_all(parcel.owner, parcel.bid_round, parcel.handles, parcel.brought)

    def _hash(self, parcels: Sequence[Parcel]) -> Features:
        if self._session.public_map is None:
            raise LocalProtocolError("Raw points came to a curator that has no feature map.")
        points: list[npt.NDArray[np.generic]] = []
        attributes: list[bytes] = []
        for parcel in parcels:
            if parcel.brought.sealed:
                raise LocalProtocolError("A sealed point is to be hashed.")
            points += list(parcel.brought.points[: len(parcel)])
            attributes += parcel.brought.attributes[: len(parcel)]
        return hash_points(self._session.public_map, points, attributes, schema=self._session.file.rows)


class BlindCuratorNumerics:
    """Carries out the blind curator's computations: it checks signatures, and nothing else.

    Args:
        destroy: Destroys the boxes on disk.
        digest: SHA-256 of a box, or of its substitute where a transcript does not hold the box.
    """

    def __init__(
        self,
        session: Session,
        *,
        destroy: Callable[[], None],
        digest: Callable[[bytes], bytes] = lambda box: hashlib.sha256(box).digest(),
    ) -> None:
        self._session = session
        self._destroy = destroy
        self._digest = digest

    def perform(self, effect: Computation) -> Event | None:
        if type(effect) is CheckBids:
            held = tuple(self._holds(entry) for entry in effect.entries)
            return BidsChecked(held, max(entry.bid.round for entry in effect.entries))
        if type(effect) is DestroyBoxes:
            self._destroy()
        return None

    def restore(self, effect: Computation, outcome: Event | None) -> None:  # noqa: ARG002 - none is needed
        if type(effect) is DestroyBoxes:
            self._destroy()

    def _holds(self, entry: UncheckedBid) -> bool:
        return bid_holds(self._session, entry, [self._digest(box) for box in boxes_of(entry.bid)])
