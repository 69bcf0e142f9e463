"""The ε spent after each round: the odometer of a session's budget (DESIGN §4)."""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

import numpy as np
from pydantic.dataclasses import dataclass as figures

from hushbid.protocol.figures import Figures
from hushbid.protocol.privacy.accounting import epsilon_of, odometer
from hushbid.protocol.privacy.releases import Neighbours
from hushbid.protocol.session.guarantee import CONSUMERS_DATA, OWNERS_DATA
from hushbid.protocol.session.session import Session, objections

__all__ = ["Odometer", "odometers", "promised"]

READINGS: Final = 2_000
"""Most rounds that are read, evenly spaced, the first and the last always among them."""


@figures(frozen=True, slots=True)
class Odometer(Figures):
    """ε of all releases so far, after some rounds.

    Attributes:
        protects: The party whose records are protected.
        neighbours, delta: The datasets that are compared, and the δ that ε is stated for.
        rounds: After which rounds; 0: before the first, where the consumer's target is out already.
        epsilon: ε after each.
        settled: ε with the private settlement that came after them; None: there was none.
    """

    protects: str
    neighbours: str
    delta: float
    rounds: tuple[int, ...]
    epsilon: tuple[float, ...]
    settled: float | None = None

    def spent(self, rounds: int, *, settled: bool = False) -> dict[str, str | float]:
        """ε after so many rounds, and what it is about. If that was not read, the next later reading.

        Args:
            rounds: At most those that the odometer was made for; negative: nothing was released yet.
            settled: Whether the private settlement was released.
        """
        if rounds < 0:
            epsilon = 0.0
        elif settled and self.settled is not None:
            epsilon = self.settled
        else:
            epsilon = self.epsilon[min(bisect_left(self.rounds, rounds), len(self.rounds) - 1)]
        return {
            "protects": self.protects,
            "neighbours": self.neighbours,
            "epsilon": epsilon,
            "delta": self.delta,
        }


def odometers(session: Session, rounds: int, *, settled: bool) -> tuple[Odometer, ...]:
    """The odometers of the data that a session guarantees something for.

    A reading holds if the noise is secret; `Session.privacy` says whether it is.

    Args:
        rounds: Number of rounds that were run.
        settled: Whether the session came to its end: a private settlement is released then.
    """
    found = _owners(session, rounds, settled=settled), _consumers(session)
    return tuple(each for each in found if each is not None)


def promised(session: Session, protects: str) -> Odometer | None:
    """The odometer of all rounds that a session will have; None if it promises nothing.

    Args:
        protects: `hushbid.protocol.session.guarantee.OWNERS_DATA` or `CONSUMERS_DATA`.
    """
    if any(whose == protects for whose, _ in objections(session)):
        return None
    if protects == CONSUMERS_DATA:
        found = _consumers(session)
    else:
        found = _owners(session, session.rounds, settled=True)
    # An infinite ε is no promise, and JSON has no word for it.
    return found if found is not None and np.isfinite(found.epsilon).all() else None


def _owners(session: Session, rounds: int, *, settled: bool) -> Odometer | None:
    if not (session.summary.private and session.rule.private):
        return None
    delta = session.file.session.delta
    costs_of = session.release_costs()
    more_epsilon, more_delta = session.rule.slack
    costs = [costs_of(number) for number in range(1, rounds + 1)]
    whole = None
    if settled and session.settlement is not None:
        whole = epsilon_of(session.owners_costs(), delta - more_delta) + more_epsilon
    after = np.concatenate([[0.0], odometer(costs, delta - more_delta) + more_epsilon])
    read = np.unique(np.linspace(0, rounds, min(rounds, READINGS - 1) + 1).astype(np.int64))
    return Odometer(
        OWNERS_DATA,
        Neighbours.ADD_REMOVE_ONE.value,
        delta,
        tuple(read.tolist()),
        tuple(after[read].tolist()),
        whole,
    )


def _consumers(session: Session) -> Odometer | None:
    target = session.charged_target
    if not target.private:
        return None
    delta = session.file.session.delta
    spent = odometer([target.costs(neighbours=Neighbours.SUBSTITUTE_ONE)], delta)
    return Odometer(CONSUMERS_DATA, Neighbours.SUBSTITUTE_ONE.value, delta, (0,), tuple(spent.tolist()))
