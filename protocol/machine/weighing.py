"""Computing weights: the total of the bought points, noise drawn ahead, charges, and the broadcast weight.

The curator computes the weights, or the consumer under the rule `blind`. Either way its machine keeps a
`Weighing`, which says what to compute, and its numerics keep a `Weigher`, which computes it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from hushbid.protocol.errors import LocalProtocolError
from hushbid.protocol.machine.machine import Charge, ChargedData, Computation, Event
from hushbid.protocol.privacy.noise import Draw, NoiseSource
from hushbid.protocol.privacy.releases import ReleaseStream, Statistic
from hushbid.protocol.session.prior import prior_of
from hushbid.protocol.session.session import Session
from hushbid.protocol.space.grid import Features, Totals, Weights, round_weights
from hushbid.protocol.space.jitter import jitter_weight
from hushbid.protocol.wire.messages import Target

__all__ = [
    "ComputeWeights",
    "DrawNoise",
    "NoiseDrawn",
    "RoundNoise",
    "Weigher",
    "Weighing",
    "WeightsComputed",
    "check_noise",
]

NOISE_BATCH: Final = 64
"""Number of rounds whose noise is drawn together, off the critical path."""

RoundNoise = tuple[tuple[npt.NDArray[Any], ...], tuple[npt.NDArray[Any], ...]]
"""One round's noise: the release's draws, then the acquisition rule's."""


@dataclass(frozen=True, slots=True)
class DrawNoise(Computation):
    """Draw the noise of the rounds `first` … `last`; it does not depend on data."""

    KIND: ClassVar[str] = "draw-noise"
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class NoiseDrawn(Event):
    """The noise of the rounds from `first` on, drawn once and only for these releases."""

    KIND: ClassVar[str] = "noise-drawn"
    PUBLIC: ClassVar[tuple[str, ...]] = ("first",)
    first: int
    rounds: tuple[RoundNoise, ...]


@dataclass(frozen=True, slots=True)
class ComputeWeights(Computation):
    """Release the summary's mean embedding and compute the round's broadcast weight from it."""

    KIND: ClassVar[str] = "compute-weights"
    round: int
    target: Target
    """g̃, and the public facts about the seed set."""
    total: Totals
    """Sum of the statistics of the won points (`ReleaseMechanism.statistic`)."""
    count: float
    """q = s·|D_init| + b·(round - 1) (DESIGN §1), never an actual count."""
    noise: tuple[npt.NDArray[Any], ...]


@dataclass(frozen=True, slots=True)
class WeightsComputed(Event):
    """The weight to broadcast, recorded because floating-point results are not recomputed."""

    KIND: ClassVar[str] = "weights-computed"
    PUBLIC: ClassVar[tuple[str, ...]] = ("round",)
    round: int
    weights: Weights


class Weighing:
    """The machine's state for computing weights.

    Attributes:
        filter: The filter that charges releases; None where nothing is guaranteed.
        first_weights: The weights of round 1 without jitter's, by which a private settlement counts points.
        noise_drawn: Number of releases whose noise was drawn.
        statistic: The vector that each point adds to the total; known once the target is.
        total: Sum over the bought points, int64 of shape (statistic.width,).
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._costs_of = session.release_costs()
        self._noisy = session.draws_curators_noise()
        self._noise: deque[RoundNoise] = deque()
        self._target: Target | None = None
        self.first_weights: Weights | None = None
        self.filter = session.summary_filter()
        self.noise_drawn = 0
        self.statistic = Statistic.identity(session.space.dimension)
        self.total: Totals = np.zeros(0, dtype=np.int64)

    def begin(self, target: Target) -> None:
        """Take in the checked target; no round precedes it."""
        self._target = target
        self.statistic = self._session.summary.statistic(prior_of(target))
        self.total = np.zeros(self.statistic.width, dtype=np.int64)

    def start(self, number: int) -> DrawNoise | ComputeWeights:
        """The first computation of a round: noise for it and later rounds, or its weight."""
        if not self._noisy or self._noise:
            return self._weights(number)
        last = number + NOISE_BATCH - 1
        if last >= self._session.rounds:
            last = self._session.owners_releases  # includes a private settlement's, which is the last
        return DrawNoise(number, last)

    def drawn(self, noise: NoiseDrawn, number: int) -> ComputeWeights:
        """Take in the noise requested in this round, else `LocalProtocolError`; return the next step."""
        if noise.first != number or self._noise:
            raise LocalProtocolError(f"Noise for round {noise.first} came in round {number}.")
        self._noise.extend(noise.rounds)
        self.noise_drawn = noise.first + len(noise.rounds) - 1
        return self._weights(number)

    def _weights(self, number: int) -> ComputeWeights:
        target = self._target
        if target is None:
            raise LocalProtocolError("There is no target yet.")
        count = self._session.file.seed_weight * target.seed_size + self._session.batch * (number - 1)
        noise = self._noise[0][0] if self._noisy else ()
        return ComputeWeights(number, target, self.total.copy(), count, noise)

    def computed(self, weights: WeightsComputed, number: int) -> tuple[Charge, ...]:
        """Take in the weights of this round; return the charges to record before they leave.

        Raises:
            LocalProtocolError: The weights are another round's.
            BudgetExceeded: The filter does not admit the release.
        """
        if weights.round != number:
            raise LocalProtocolError(f"Weights of round {weights.round} came in round {number}.")
        charges = self.charge(number)
        if number == 1:
            self.first_weights = weights.weights[: self._session.space.dimension]
        return charges

    @property
    def rule_noise(self) -> tuple[npt.NDArray[Any], ...]:
        """The acquisition rule's noise for the current round."""
        return self._noise[0][1] if self._noisy else ()

    def charge(self, release: int) -> tuple[Charge, ...]:
        """Charge a release that has not left, to be recorded first; `BudgetExceeded` if refused."""
        if self.filter is None:
            return ()
        costs = self._costs_of(release)
        self.filter.charge(*costs)
        return (Charge(self.filter.neighbours, release, release, costs, ChargedData.OWNERS),)

    def add(self, features: Features) -> None:
        """Add bought points: φ, int16 of shape (n, d)."""
        self.total += self.statistic.of(features).sum(axis=0)

    def end_round(self) -> tuple[npt.NDArray[Any], ...]:
        """Drop the noise of the current round, or of the settlement, and return the release's part."""
        return self._noise.popleft()[0] if self._noisy else ()


class Weigher:
    """Carries out the computations of a `Weighing`, with the party's own source of noise."""

    def __init__(self, session: Session, noise: NoiseSource) -> None:
        self._session = session
        self._noise = noise
        self._draws = session.release_draws()
        self._summary: ReleaseStream | None = None

    def perform(self, effect: Computation) -> NoiseDrawn | WeightsComputed | None:
        if type(effect) is ComputeWeights:
            return self._weights(effect)
        if type(effect) is DrawNoise:
            return self._draw(effect)
        return None

    def restore(self, effect: Computation) -> None:
        """Restore the state computed before a restart: the release's own, and the noise's position."""
        if type(effect) is ComputeWeights:
            self._weights(effect)  # a filter carries over between releases; its output is recorded
        elif type(effect) is DrawNoise and not self._noise.protects:
            self._draw(effect)  # brings seeded noise to its earlier position

    def _weights(self, effect: ComputeWeights) -> WeightsComputed:
        """The bid's weight w = g̃ - q/(q+b)·g (DESIGN §1, row 1), on the grid, with the weight of jitter."""
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


def check_noise(session: Session, noise: NoiseSource) -> None:
    """Raise `ConfigError` unless a source has the noise of the releases, the rule and a settlement."""
    draws_of = session.release_draws()
    for number in {1, session.rounds, session.owners_releases}:
        for draw in chain(*draws_of(number)):
            noise.check(draw)
