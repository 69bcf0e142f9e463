"""Curators for an audit: one whose targets the attacker chooses, and some that break a rule of DESIGN §3.

A fault takes a party of the real kind before it starts, and returns it with one part replaced.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from hushbid.consumer.party import consumer_party
from hushbid.curator.events import CandidatesChecked, CheckCandidates
from hushbid.curator.machine import CuratorMachine
from hushbid.curator.party import curator_party
from hushbid.evidence.audit.attack import ConsumerParty, CuratorParty
from hushbid.protocol.machine.machine import Computation, Event
from hushbid.protocol.machine.weighing import ComputeWeights
from hushbid.protocol.names import CONSUMER
from hushbid.protocol.runtime.driver import Numerics
from hushbid.protocol.session.session import Session
from hushbid.protocol.space.features import FeatureSpace
from hushbid.protocol.space.grid import Features, Weights
from hushbid.protocol.space.scoring import Best, Pool

__all__ = [
    "ChosenTargets",
    "CuratorFault",
    "OtherOutcomes",
    "OtherWeights",
    "believing_features",
    "checking_no_features",
    "choosing_targets",
    "counting_actual_points",
    "filling_batches_from_one_owner",
    "keeping_absent_pools",
    "stopping_early",
    "weighing_with_targets",
    "with_targets",
]

CuratorFault: TypeAlias = Callable[[Session, CuratorParty], CuratorParty]
Targets: TypeAlias = Sequence[npt.NDArray[np.float64]]


class OtherWeights(ABC):
    """Numerics that compute a round's weights from something else."""

    def __init__(self, numerics: Numerics) -> None:
        self._numerics = numerics

    def perform(self, effect: Computation) -> Event | None:
        return self._numerics.perform(self._instead_of(effect))

    def restore(self, effect: Computation, outcome: Event | None) -> None:
        self._numerics.restore(self._instead_of(effect), outcome)

    def _instead_of(self, effect: Computation) -> Computation:
        return self._changed(effect) if type(effect) is ComputeWeights else effect

    @abstractmethod
    def _changed(self, effect: ComputeWeights) -> ComputeWeights:
        """The inputs from which the weights are computed."""


class OtherOutcomes(ABC):
    """Numerics that report other outcomes than were computed."""

    def __init__(self, numerics: Any) -> None:
        self._numerics = numerics
        self.restore = numerics.restore

    def perform(self, effect: Computation) -> Event | None:
        return self._reported(effect, self._numerics.perform(effect))

    @abstractmethod
    def _reported(self, effect: Computation, outcome: Event | None) -> Event | None:
        """What is reported in place of an outcome."""


class ChosenTargets(OtherWeights):
    """Numerics that make each round's weight with the attacker's target; nothing is broken.

    The owners' guarantee holds for any target, so an attacker may choose a new one for every round, and with
    it which points win, as the lemma's proof permits.

    Args:
        targets: g̃ of every round, each of shape (d,).
    """

    def __init__(self, numerics: Numerics, targets: Targets) -> None:
        super().__init__(numerics)
        self._targets = targets

    def _changed(self, effect: ComputeWeights) -> ComputeWeights:
        chosen = self._targets[effect.round - 1]
        return replace(effect, target=effect.target.model_copy(update={"embedding": chosen}))


def weighing_with_targets(targets: Targets) -> Callable[..., ConsumerParty]:
    """Makes the consumer of a session with a blind curator, with a target for every round."""

    def consumer(session: Session, **given: Any) -> ConsumerParty:
        machine, numerics = consumer_party(session, **given)
        return machine, ChosenTargets(numerics, targets)

    return consumer


def with_targets(session: Session, targets: Targets) -> dict[str, Any]:
    """Makes the party that computes weights, with the attacker's targets."""
    if session.weigher == CONSUMER:
        return {"consumer": weighing_with_targets(targets)}
    return {"curator": choosing_targets(targets)}


def choosing_targets(targets: Targets) -> Callable[..., CuratorParty]:
    """Makes a session's curator, with a target for every round (`ChosenTargets`)."""

    def curator(session: Session, **given: Any) -> CuratorParty:
        machine, numerics = curator_party(session, **given)
        return machine, ChosenTargets(numerics, targets)

    return curator


# -- absence, counts, rounds --------------------------------------------------------------------------


class _NothingWithheld(Pool):
    """A pool in which the points of absent owners stay available."""

    def first(
        self,
        weights: Weights,
        count: int,
        *,
        withheld: npt.NDArray[np.bool_] | None = None,  # noqa: ARG002
    ) -> tuple[Best, ...]:
        return super().first(weights, count)


class _OneOwnersBatch(Pool):
    """A pool whose first entries all belong to the owner with the best of them."""

    def first(
        self, weights: Weights, count: int, *, withheld: npt.NDArray[np.bool_] | None = None
    ) -> tuple[Best, ...]:
        found = super().first(weights, len(self), withheld=withheld)
        return tuple(best for best in found if self._ranks[best.entry] == self._ranks[found[0].entry])[:count]


class _ActualCount(OtherWeights):
    """Numerics that divide by the summary's actual number of points instead of |D_init| + ℓ - 1."""

    def __init__(self, machine: CuratorMachine, numerics: Numerics) -> None:
        super().__init__(numerics)
        self._machine = machine

    def _changed(self, effect: ComputeWeights) -> ComputeWeights:
        seed_size = effect.count - self._machine.session.batch * (effect.round - 1)
        return replace(effect, count=seed_size + len(self._machine.ledger.wins))


class _StopsEarly(CuratorMachine):
    """A curator that delivers as soon as a round has found no point."""

    @property
    def rounds_over(self) -> bool:
        return len(self.ledger.wins) < self.round or super().rounds_over


def _with_pool(kind: type[Pool], session: Session, party: CuratorParty) -> CuratorParty:
    space = session.space
    party[0].selection.pool = kind(space.dimension, norm_bound=space.norm_bound, jitter=session.jitter)
    return party


def keeping_absent_pools(session: Session, party: CuratorParty) -> CuratorParty:
    """The presence rule does not cover the pool: an absent owner's points can still win."""
    return _with_pool(_NothingWithheld, session, party)


def filling_batches_from_one_owner(session: Session, party: CuratorParty) -> CuratorParty:
    """A batch comes from the owner with the best point, so that one extra record can change all of it."""
    return _with_pool(_OneOwnersBatch, session, party)


def counting_actual_points(_session: Session, party: CuratorParty) -> CuratorParty:
    """The count q is an actual one, which reveals how many points the owners have."""
    machine, numerics = party
    return machine, _ActualCount(machine, numerics)


def stopping_early(session: Session, party: CuratorParty) -> CuratorParty:
    """Rounds end when owners run out of points, and not after p."""
    return _StopsEarly(session), party[1]


# -- verification of φ --------------------------------------------------------------------------------


class _AdmitsAll:
    """A feature space that accepts all features."""

    def __init__(self, space: FeatureSpace) -> None:
        self._space = space

    def __getattr__(self, name: str) -> Any:
        return getattr(self._space, name)

    def admits(self, features: Features) -> npt.NDArray[np.bool_]:
        return np.ones(len(features), dtype=np.bool_)


class _BelievesFeatures(OtherOutcomes):
    """Numerics that report the features claimed by owners for every point."""

    def _reported(self, effect: Computation, outcome: Event | None) -> Event | None:
        if type(effect) is not CheckCandidates or not isinstance(outcome, CandidatesChecked):
            return outcome
        claimed = np.concatenate([parcel.features for parcel in effect.parcels])
        return replace(outcome, features=claimed)


def believing_features(_session: Session, party: CuratorParty) -> CuratorParty:
    """φ of a point is not recomputed, as if points were sealed; whether it is a possible φ is checked."""
    return party[0], _BelievesFeatures(party[1])


def checking_no_features(session: Session, party: CuratorParty) -> CuratorParty:
    """φ is accepted as claimed, with any length: it is neither recomputed nor measured."""
    machine, numerics = believing_features(session, party)
    machine.selection._space = cast("FeatureSpace", _AdmitsAll(session.space))
    return machine, numerics
