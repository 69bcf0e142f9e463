"""The interface of acquisition rules."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from protocol.privacy.accounting import Cost
from protocol.privacy.noise import Draw
from protocol.privacy.registry import Parameters

__all__ = ["AcquisitionRule", "Standing"]


@dataclass(frozen=True, slots=True)
class Standing:
    """An owner's bid in one round, as a rule sees it."""

    owner: str
    score: int
    """wᵀφ in units of 2^-37; where points have prices, what it is for its price (`protocol.space.prices`)."""
    times: int
    """In how many rounds, this one included, the owner has bid this point."""
    position: int = 0
    """The owner's place among the session's sorted names, from 0: which coin is its own."""
    rank: int = 0
    """From 1, for rules that are `ranked` (`protocol.privacy.acquisition.ranks`); else 0."""


class AcquisitionRule(ABC):
    """How the curator gets the points behind the bids.

    In a round the curator collects the bids of all present owners, then calls `ask` with stage 0, 1, …
    until it names nobody, and collects and verifies the named owners' points each time. It then takes
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
    """Whether what an owner learns about the others' data is bounded; else a session needs
    ``allow_nonprivate``."""
    candidate_with_bid: ClassVar[bool]
    """Whether every bid carries its point, so that nobody has to be asked."""
    exact: ClassVar[bool]
    """Whether the best available point is obtained in every round, so that S is the exact greedy one."""
    learns: ClassVar[str]
    """What an owner learns about the other owners' data, for people."""
    against: ClassVar[str] = "every other owner"
    """From whom owners' records are protected, for people."""
    sealed: ClassVar[bool] = False
    """Whether points travel sealed to the consumer, and the feature map is kept from the curator."""
    blind: ClassVar[bool] = False
    """Whether the consumer weighs, and the curator orders masked bids: then `sealed` too."""
    unpriced: ClassVar[str] = ""
    """Why points cannot have prices that differ, for people: a clause; empty: they can."""
    curator_sees: ClassVar[str] = (
        "the curator is handed raw points, and the consumer the chosen ones: owners have to trust them with "
        "these"
    )
    """What owners have to trust the curator and the consumer with, for people: a clause."""
    one_at_a_time: ClassVar[str] = ""
    """Where bids bring no points: why a round buys one, for people: a clause."""
    even_owners: ClassVar[str] = ""
    """Why all owners have to be treated alike, by prices and turns, for people: a clause; empty: they need
    not be."""
    ranked: ClassVar[bool] = False
    """Whether `ask` looks at ranks: they take a pass over the pool each time."""
    fewest_owners: ClassVar[int] = 1
    """With fewer it is refused, whatever its keys."""

    def __init__(self, parameters: Any, *, owners: int, rounds: int, delta: float) -> None:
        self.parameters = parameters
        self.owners = owners
        self.rounds = rounds
        self.delta = delta

    @classmethod
    def small_keys(cls, *, owners: int, rounds: int, delta: float) -> Mapping[str, Any]:
        """Its own keys in a session of few owners: sweeps make such. None, unless it needs some.

        Args:
            owners: K.
            rounds: p.
            delta: The δ at which the session states its privacy.

        Raises:
            ConfigError: It is not for so few owners.
        """
        return {}

    @property
    def expected_points(self) -> float:
        """Raw points that the curator is handed in all rounds, in expectation, if owners have enough of them.

        One of every owner in every round, unless a rule says otherwise.
        """
        return float(self.owners * self.rounds)

    def draws(self) -> tuple[Draw, ...]:
        """The noise that one round needs."""
        return ()

    def costs(self) -> tuple[Cost, ...]:
        """What all rounds' asks tell one owner of another owner's data, one record there or not."""
        return ()

    @property
    def slack(self) -> tuple[float, float]:
        """The amounts added to the ε and to the δ of all costs together, including the releases'.

        Releases are charged as if the best available point were taken in every round. A rule that may miss
        it pays for the difference here.
        """
        return 0.0, 0.0

    @abstractmethod
    def ask(
        self,
        stage: int,
        standings: Sequence[Standing],
        obtained: frozenset[str],
        noise: tuple[npt.NDArray[np.float64], ...],
    ) -> tuple[str, ...]:
        """Whom to ask next in this round.

        Args:
            stage: How many times this was called before in the round.
            standings: The bids of the owners that are still present, best first.
            obtained: Owners whose point of this round is verified and in the pool.
            noise: What `draws` asked for.

        Returns:
            Owners' names, none twice; nobody: the round can be decided.
        """
