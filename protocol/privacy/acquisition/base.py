"""The interface of acquisition rules."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from hushbid.protocol.privacy.accounting import Cost
from hushbid.protocol.privacy.noise import Draw
from hushbid.protocol.privacy.registry import Keys, Parameters

__all__ = ["AcquisitionRule", "BidStanding", "Noise"]

Noise: TypeAlias = tuple[npt.NDArray[np.float64], ...]
"""The noise of a round, as `AcquisitionRule.draws` requests it."""


@dataclass(frozen=True, slots=True)
class BidStanding:
    """An owner's bid in one round, as a rule sees it."""

    owner: str
    score: int
    """wᵀφ in units of 2^-37, adjusted for the price if points have prices
    (`hushbid.protocol.space.prices`)."""
    times: int
    """Number of rounds, including this one, in which the owner has bid this point."""
    position: int = 0
    """The owner's place among the session's sorted names, from 0; it selects the owner's coin."""
    rank: int = 0
    """From 1, for rules that are `ranked` (`hushbid.protocol.privacy.acquisition.ranks`); else 0."""


class AcquisitionRule(ABC):
    """How the curator gets the points behind the bids.

    In a round the curator collects the bids of all present owners. It then calls `ask` with stage 0, 1, …
    until it names nobody, and each time collects and verifies the named owners' points. Finally it chooses
    the best point of the pool.

    Args:
        parameters: The rule's own keys.
        owners: K.
        rounds: p.
        delta: The δ at which the session states its privacy.
    """

    name: ClassVar[str]
    Parameters: ClassVar[type[Parameters]] = Parameters
    private: ClassVar[bool]
    """Whether the information that an owner gets about the others' data is bounded; if not, a session needs
    ``allow_nonprivate``.
    """
    candidate_with_bid: ClassVar[bool]
    """Whether every bid carries its point, so that nobody has to be asked."""
    exact: ClassVar[bool]
    """Whether the best available point is obtained in every round, so that S is the exact greedy choice."""
    learns: ClassVar[str]
    """Text for people: what an owner learns about the other owners' data."""
    against: ClassVar[str] = "every other owner"
    """Text for people: from whom owners' records are protected."""
    sealed: ClassVar[bool] = False
    """Whether points travel sealed to the consumer, and the curator does not know the feature map."""
    blind: ClassVar[bool] = False
    """Whether the consumer computes weights and the curator orders masked bids; implies `sealed`."""
    herds: ClassVar[bool] = False
    """Whether there is one round, in which each owner submits a choice of its own and the curator chooses of
    all, both by running sums (`hushbid.protocol.space.herding`); implies `candidate_with_bid`.
    """
    unpriced: ClassVar[str] = ""
    """Text for people: why prices of points cannot differ, as a clause; empty if they can."""
    curator_sees: ClassVar[str] = (
        "the curator is handed raw points, and the consumer the chosen ones: owners have to trust them with "
        "these"
    )
    """Text for people: what owners have to trust the curator and the consumer with, as a clause."""
    one_at_a_time: ClassVar[str] = ""
    """Text for people: why a round buys one point, if bids bring no points, as a clause."""
    even_owners: ClassVar[str] = ""
    """Text for people: why prices and turns must treat all owners alike, as a clause; empty if they need
    not.
    """
    ranked: ClassVar[bool] = False
    """Whether `ask` uses ranks, which take a pass over the pool each time."""
    fewest_owners: ClassVar[int] = 1
    """The rule is refused with fewer owners, whatever its keys."""

    def __init__(self, parameters: Any, *, owners: int, rounds: int, delta: float) -> None:
        self.parameters = parameters
        self.owners = owners
        self.rounds = rounds
        self.delta = delta

    @classmethod
    def small_keys(cls, *, owners: int, rounds: int, delta: float) -> Keys:
        """The keys that it needs in a session of few owners, as sweeps run; empty if it needs none.

        Raises:
            ConfigError: It does not work with so few owners.
        """
        return {}

    @property
    def expected_points(self) -> float:
        """Expected raw points that the curator sees: one per owner and round, unless overridden."""
        return float(self.owners * self.rounds)

    def draws(self) -> tuple[Draw, ...]:
        """The noise that one round needs."""
        return ()

    def costs(self) -> tuple[Cost, ...]:
        """The cost of all rounds' asks: what they reveal to one owner about one record of another owner."""
        return ()

    @property
    def slack(self) -> tuple[float, float]:
        """Additions to the ε and the δ of all costs together, including the releases'.

        Releases are charged as if the best available point were chosen in every round. A rule that may miss
        it pays for the difference here.
        """
        return 0.0, 0.0

    @abstractmethod
    def ask(
        self, stage: int, standings: Sequence[BidStanding], obtained: frozenset[str], noise: Noise
    ) -> tuple[str, ...]:
        """The owners to ask next in this round.

        Args:
            stage: Number of earlier calls in the round.
            standings: The bids of the owners still present, best first.
            obtained: Owners whose point of this round is verified and in the pool.

        Returns:
            Names of owners without duplicates; empty when the round can be decided.
        """
