"""The curator's numerics: noise, releases of the summary, and checks of points that were handed over."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from curator.events import CandidatesChecked, CheckCandidates, DestroyBoxes
from curator.verification import Unverified
from protocol.errors import LocalProtocolError
from protocol.machine.machine import Computation, Event
from protocol.machine.weighing import Weigher
from protocol.privacy.noise import NoiseSource
from protocol.session.points import Signatures, hash_points
from protocol.session.session import Session
from protocol.space.grid import Features
from protocol.wire.messages import Candidate, SealedCandidate

__all__ = ["CuratorNumerics"]


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
        """The effect's outcome as an event; None for effects of other kinds."""
        if type(effect) is CheckCandidates:
            return self._check(effect.entries)
        if type(effect) is DestroyBoxes:
            self._destroy()
        return self._weigher.perform(effect)

    def restore(self, effect: Computation, outcome: Event | None) -> None:  # noqa: ARG002 - none is needed
        """Restore the state computed before a restart."""
        self._weigher.restore(effect)
        if type(effect) is DestroyBoxes:
            self._destroy()

    def _check(self, entries: Sequence[Unverified]) -> CandidatesChecked:
        if self._rule.sealed:
            return CandidatesChecked(None, tuple(self._is_signed(entry) for entry in entries))
        return CandidatesChecked(self._hash(entries), (True,) * len(entries))

    def _is_signed(self, entry: Unverified) -> bool:
        point, candidate = entry.point, entry.point.candidate
        if not isinstance(candidate, SealedCandidate):
            return False
        return self._signatures.hold(point.owner, point.bid_round, point.handle, candidate)

    def _hash(self, entries: Sequence[Unverified]) -> Features:
        if self._session.public_map is None:
            raise LocalProtocolError("Raw points came to a curator that has no feature map.")
        points: list[npt.NDArray[np.generic]] = []
        for entry in entries:
            candidate = entry.point.candidate
            if not isinstance(candidate, Candidate):
                raise LocalProtocolError("A sealed point is to be hashed.")
            points.append(candidate.point)
        return hash_points(self._session.public_map, points, schema=self._session.file.rows)
