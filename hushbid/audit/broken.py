"""Curators for an audit: one whose targets the attacker chooses, and two that break a rule of DESIGN §3.

Each is the real curator but for one thing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from curator.events import ComputeWeights
from curator.machine import CuratorMachine
from curator.party import curator_party
from protocol.grid import Weights
from protocol.machine import Computation, Event
from protocol.noise import NoiseSource
from protocol.runtime.driver import Numerics
from protocol.scoring import Best, Pool
from protocol.session import Session

__all__ = ["ChosenTargets", "Party", "counting_actual_points", "keeping_absent_pools", "with_chosen_targets"]

Party: TypeAlias = tuple[CuratorMachine, Numerics]
Targets: TypeAlias = Sequence[npt.NDArray[np.float64]]


class _NothingWithheld(Pool):
    """A pool in which the points of absent owners stay available."""

    def best(self, weights: Weights, *, withheld: npt.NDArray[np.bool_] | None = None) -> Best | None:  # noqa: ARG002
        return super().best(weights)


class _OtherWeights(ABC):
    """Numerics that compute a round's weights of something else."""

    def __init__(self, numerics: Numerics) -> None:
        self._numerics = numerics

    def perform(self, effect: Computation) -> Event | None:
        """The effect's outcome as an event; None for effects of other kinds."""
        return self._numerics.perform(self._instead_of(effect))

    def restore(self, effect: Computation, outcome: Event | None) -> None:
        """Take up what was computed before a restart."""
        self._numerics.restore(self._instead_of(effect), outcome)

    def _instead_of(self, effect: Computation) -> Computation:
        return self._changed(effect) if type(effect) is ComputeWeights else effect

    @abstractmethod
    def _changed(self, effect: ComputeWeights) -> ComputeWeights:
        """What the weights are computed of."""


class _ActualCount(_OtherWeights):
    """Numerics that divide by how many points the summary really has, and not by |D_init| + ℓ - 1."""

    def __init__(self, machine: CuratorMachine, numerics: Numerics) -> None:
        super().__init__(numerics)
        self._machine = machine

    def _changed(self, effect: ComputeWeights) -> ComputeWeights:
        seed_size = effect.count - (effect.round - 1)
        return replace(effect, count=seed_size + len(self._machine.ledger.wins))


class ChosenTargets(_OtherWeights):
    """Numerics that make each round's weight with a target of the attacker's choice; nothing is broken.

    What is promised to the owners holds for any target, so an attacker may have chosen it, and anew for every
    round: with it, it decides which points win, as the lemma's proof lets it.

    Args:
        numerics: The curator's own.
        targets: g̃ of every round, each of shape (d,).
    """

    def __init__(self, numerics: Numerics, targets: Targets) -> None:
        super().__init__(numerics)
        self._targets = targets

    def _changed(self, effect: ComputeWeights) -> ComputeWeights:
        chosen = self._targets[effect.round - 1]
        return replace(effect, target=effect.target.model_copy(update={"embedding": chosen}))


def with_chosen_targets(session: Session, noise: NoiseSource, targets: Targets) -> Party:
    """The session's curator, with a target for every round (`ChosenTargets`)."""
    machine, numerics = curator_party(session, noise=noise)
    return machine, ChosenTargets(numerics, targets)


def keeping_absent_pools(session: Session, noise: NoiseSource, targets: Targets) -> Party:
    """A curator for which the presence rule stops at the pool: an absent owner's points can still win."""
    machine, numerics = with_chosen_targets(session, noise, targets)
    machine._pool = _NothingWithheld(session.space.dimension, norm_bound=session.space.norm_bound)
    return machine, numerics


def counting_actual_points(session: Session, noise: NoiseSource) -> Party:
    """A curator whose q is an actual count, which tells how many points the owners have."""
    machine, numerics = curator_party(session, noise=noise)
    return machine, _ActualCount(machine, numerics)
