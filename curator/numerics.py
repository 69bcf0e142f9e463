"""The curator's numerics: noise, releases of the summary, and checks of points that were handed over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from curator.enrolment import prior_of
from curator.events import (
    CandidatesChecked,
    CheckCandidates,
    ComputeWeights,
    DestroyBoxes,
    DrawNoise,
    NoiseDrawn,
    WeightsComputed,
)
from curator.verification import Unverified
from protocol.errors import LocalProtocolError
from protocol.machine.machine import Computation, Event
from protocol.privacy.noise import Draw, NoiseSource
from protocol.privacy.releases import ReleaseStream
from protocol.session.points import Signatures, hash_points
from protocol.session.session import Session
from protocol.space.grid import Features, round_weights
from protocol.space.jitter import jitter_weight
from protocol.wire.messages import Candidate, SealedCandidate, Target

__all__ = ["CuratorNumerics"]


class CuratorNumerics:
    """Carries out the curator machine's computations.

    Args:
        session: The session.
        noise: The curator's own source of noise.
        destroy: Forgets the boxes that are kept.
    """

    def __init__(self, session: Session, noise: NoiseSource, *, destroy: Callable[[], None]) -> None:
        self._session = session
        self._summary: ReleaseStream | None = None
        self._draws = session.release_draws()
        self._rule = session.rule
        self._noise = noise
        self._destroy = destroy
        self._signatures = Signatures(session)

    def perform(self, effect: Computation) -> Event | None:
        """The effect's outcome as an event; None for effects of other kinds."""
        if type(effect) is CheckCandidates:
            return self._check(effect.entries)
        if type(effect) is ComputeWeights:
            return self._weights(effect)
        if type(effect) is DrawNoise:
            return self._draw(effect)
        if type(effect) is DestroyBoxes:
            self._destroy()
        return None

    def restore(self, effect: Computation, outcome: Event | None) -> None:  # noqa: ARG002 - none is needed
        """Take up what was computed before a restart: the release's own state, and the noise's place."""
        if type(effect) is ComputeWeights:
            self._weights(effect)  # a filter goes from release to release; what it gave is on record
        elif type(effect) is DrawNoise and not self._noise.protects:
            self._draw(effect)  # seeded noise is as far as it was
        elif type(effect) is DestroyBoxes:
            self._destroy()

    def _weights(self, effect: ComputeWeights) -> WeightsComputed:
        """The bid's weight w = g̃ - q/(q+b)·g (DESIGN §1, row 1), on the grid, and with it that of jitter."""
        target = effect.target
        summary = self._summary = self._summary or self._of(target)
        mean = summary.release(effect.round - 1, effect.total, effect.count, effect.noise)
        after = effect.count + self._session.batch
        weight = target.embedding - effect.count / after * mean
        if self._session.jitter is not None:
            jitter = jitter_weight(self._session.file.jitter, summary.deviation / after)
            weight = np.append(weight, jitter)
        weights = round_weights(weight)
        weights.flags.writeable = False
        return WeightsComputed(effect.round, weights)

    def _of(self, target: Target) -> ReleaseStream:
        return self._session.summary.stream(target.seed_total, prior_of(target))

    def _draw(self, effect: DrawNoise) -> NoiseDrawn:
        return NoiseDrawn(
            effect.first,
            tuple(
                (self._drawn(release), self._drawn(rule))
                for release, rule in map(self._draws, range(effect.first, effect.last + 1))
            ),
        )

    def _drawn(self, draws: Sequence[Draw]) -> tuple[npt.NDArray[Any], ...]:
        drawn = tuple(self._noise.draw(draw) for draw in draws)
        for noise in drawn:
            noise.flags.writeable = False
        return drawn

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
