"""What an acquisition rule is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict

from protocol.noise import Draw

__all__ = ["AcquisitionRule", "Parameters", "Standing"]


class Parameters(BaseModel):
    """A rule's own keys in the session file."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


@dataclass(frozen=True, slots=True)
class Standing:
    """An owner's bid in one round, as a rule sees it."""

    owner: str
    score: int
    """wᵀφ in units of 2^-37."""
    times: int
    """In how many rounds, this one included, the owner has bid this point."""


class AcquisitionRule(ABC):
    """How the curator gets the points behind the bids.

    In a round the curator collects the bids of all present owners, then calls `ask` with stage 0, 1, …
    until it names nobody, and collects and verifies the named owners' points each time. It then takes
    the best point of the pool.

    Args:
        parameters: The rule's own keys.
        owners: K.
    """

    name: ClassVar[str]
    Parameters: ClassVar[type[BaseModel]] = Parameters
    private: ClassVar[bool]
    """Whether what an owner learns about the others' data is bounded; else a session needs
    ``allow_nonprivate``."""
    candidate_with_bid: ClassVar[bool]
    """Whether every bid carries its point, so that nobody has to be asked."""
    exact: ClassVar[bool]
    """Whether the best available point is obtained in every round, so that S is the exact greedy one."""
    learns: ClassVar[str]
    """What an owner learns about the other owners' data, for people."""

    def __init__(self, parameters: Any, *, owners: int) -> None:
        self.parameters = parameters
        self.owners = owners

    def draws(self) -> tuple[Draw, ...]:
        """The noise that one round needs."""
        return ()

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
