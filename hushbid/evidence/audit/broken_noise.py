"""Curators for an audit whose releases have other noise than their statement requires."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from hushbid.evidence.audit.attack import CuratorParty
from hushbid.evidence.audit.broken import CuratorFault, OtherWeights
from hushbid.protocol.machine.machine import Computation, Event
from hushbid.protocol.machine.weighing import ComputeWeights
from hushbid.protocol.runtime.driver import Numerics
from hushbid.protocol.session.session import Session

__all__ = [
    "cut_off",
    "missing_from_last_coordinate",
    "missing_from_last_release",
    "one_draw_for_all_coordinates",
    "reused_after_restart",
    "same_in_every_round",
    "scaled",
    "scaled_for_one_release",
]

Noise = npt.NDArray[np.int64]


class _OtherNoise(OtherWeights):
    """Numerics that release with other noise than was drawn; a release of public points only has none.

    Args:
        instead: The noise in place of a round's, in grid units of the released total, shape (width,).
    """

    def __init__(self, numerics: Numerics, instead: Callable[[int, Noise], Noise]) -> None:
        super().__init__(numerics)
        self._instead = instead

    def _changed(self, effect: ComputeWeights) -> ComputeWeights:
        if not effect.noise:
            return effect
        return replace(effect, noise=(self._instead(effect.round, effect.noise[0]),))


class _AgainAfterRestart(OtherWeights):
    """After a restart, noise starts again with that of the first release."""

    _restarted = False

    def __init__(self, numerics: Numerics) -> None:
        super().__init__(numerics)
        self._drawn: list[Noise] = []
        self._again = 0

    def restore(self, effect: Computation, outcome: Event | None) -> None:
        super().restore(effect, outcome)
        self._restarted = True

    def perform(self, effect: Computation) -> Event | None:
        if self._restarted and type(effect) is ComputeWeights and self._again < len(self._drawn):
            self._again += 1
            return self._numerics.perform(replace(effect, noise=(self._drawn[self._again - 1],)))
        return super().perform(effect)

    def _changed(self, effect: ComputeWeights) -> ComputeWeights:
        self._drawn += effect.noise[:1]
        return effect


def scaled(factor: float) -> CuratorFault:
    """A fault: noise multiplied by `factor`."""
    return _fault(lambda _number, noise: np.rint(noise * factor).astype(np.int64))


def scaled_for_one_release(session: Session, party: CuratorParty) -> CuratorParty:
    """Each release alone meets ε, and not all of them together."""
    releases = session.rounds - 1
    return scaled(releases**-0.5)(session, party)


def same_in_every_round(_session: Session, party: CuratorParty) -> CuratorParty:
    """Noise is drawn once for all releases."""
    drawn: list[Noise] = []

    def first(_number: int, noise: Noise) -> Noise:
        drawn.append(noise)
        return drawn[0]

    return party[0], _OtherNoise(party[1], first)


def missing_from_last_release(session: Session, party: CuratorParty) -> CuratorParty:
    """The release of the last round has no noise."""
    last = session.rounds
    return _fault(lambda number, noise: np.zeros_like(noise) if number == last else noise)(session, party)


def missing_from_last_coordinate(session: Session, party: CuratorParty) -> CuratorParty:
    """The last coordinate of every release has no noise."""
    return _fault(lambda _number, noise: np.append(noise[:-1], 0))(session, party)


def one_draw_for_all_coordinates(session: Session, party: CuratorParty) -> CuratorParty:
    """One value per round is drawn and added to all coordinates."""
    return _fault(lambda _number, noise: np.full_like(noise, noise[0]))(session, party)


def cut_off(session: Session, party: CuratorParty) -> CuratorParty:
    """Noise is cut off at one standard deviation."""
    summary = session.summary
    most = round(summary.draws(summary.releases - 1)[0].scale)
    return _fault(lambda _number, noise: np.clip(noise, -most, most))(session, party)


def reused_after_restart(_session: Session, party: CuratorParty) -> CuratorParty:
    """A restarted curator releases with the noise of earlier releases."""
    return party[0], _AgainAfterRestart(party[1])


def _fault(function: Callable[[int, Noise], Noise]) -> CuratorFault:
    return lambda _session, party: (party[0], _OtherNoise(party[1], function))
